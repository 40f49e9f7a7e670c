#!/usr/bin/env python3
"""Hugging Face folder of a Gemma 4 model or a DiffusionGemma -> GGUF, in Ollama's layout or llama.cpp's.

  convert.py FOLDER OUT.gguf [--layout ollama|llama.cpp] [--mmproj OUT2.gguf] [--type T] [--towers T]
             [--tensor PATTERN=T]... [--name NAME]

Ollama's layout is one file with text, vision and audio; llama.cpp's is a text file and, with --mmproj, a second one.
DiffusionGemma has llama.cpp's layout only.
T: f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4, or a mix as llama.cpp's quantizer
chooses it: q4_k_m q5_k_m q3_k_m mxfp4_moe. Rows that do not divide into blocks fall back to a type they do divide into.
--tensor sets the type of tensors whose GGUF name matches (shell pattern); the last match wins.
Reads config.json, tokenizer.json, *.safetensors and, if they are there, generation_config.json and
preprocessor_config.json. Needs numpy only.
"""
import argparse
import fnmatch
import glob
import json
import os
import re
import struct
import sys

import numpy as np

import gguf_io as g
import gguf_quantize
from gemma4_synth import FALLBACK, FILE_TYPE, mixed_type
from gguf_ollama import relayout

NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6
VISIBLE = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'}


# ---- safetensors -------------------------------------------------------------------------

class Tensors:
    """name -> float32 array, over all *.safetensors files of a folder; read lazily"""
    KINDS = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64, "I32": np.int32}

    def __init__(self, folder):
        self.where = {}
        files = sorted(glob.glob(os.path.join(folder, "*.safetensors")))
        if not files:
            sys.exit(f"{folder}: there is no *.safetensors file in this folder.")
        for path in files:
            with open(path, "rb") as f:
                (n,) = struct.unpack("<Q", f.read(8))
                if n > os.path.getsize(path):
                    sys.exit(f"{path}: this is not a safetensors file.")
                head = json.loads(f.read(n))
            for name, info in head.items():
                if name != "__metadata__":
                    self.where[name] = (path, 8 + n, info)

    def shape(self, name):
        return self.where[name][2]["shape"]

    def get(self, name):
        path, base, info = self.where[name]
        a, b = info["data_offsets"]
        with open(path, "rb") as f:
            f.seek(base + a)
            raw = f.read(b - a)
        if info["dtype"] == "BF16":
            x = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            x = np.frombuffer(raw, self.KINDS[info["dtype"]]).astype(np.float32)
        return x.reshape(info["shape"])


# ---- names -------------------------------------------------------------------------------

TEXT = {"embed_tokens.weight": "token_embd.weight", "embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
        "per_layer_model_projection.weight": "per_layer_model_proj.weight",
        "per_layer_projection_norm.weight": "per_layer_proj_norm.weight", "norm.weight": "output_norm.weight",
        "self_conditioning.pre_norm.weight": "self_cond_pre_norm.weight", "self_conditioning.gate_proj.weight": "self_cond_gate.weight",
        "self_conditioning.up_proj.weight": "self_cond_up.weight", "self_conditioning.down_proj.weight": "self_cond_down.weight"}
LAYER = {"input_layernorm.weight": "attn_norm.weight", "self_attn.q_proj.weight": "attn_q.weight",
         "self_attn.k_proj.weight": "attn_k.weight", "self_attn.v_proj.weight": "attn_v.weight",
         "self_attn.o_proj.weight": "attn_output.weight", "self_attn.q_norm.weight": "attn_q_norm.weight",
         "self_attn.k_norm.weight": "attn_k_norm.weight", "post_attention_layernorm.weight": "post_attention_norm.weight",
         "pre_feedforward_layernorm.weight": "ffn_norm.weight", "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
         "mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight", "mlp.down_proj.weight": "ffn_down.weight",
         "layer_scalar": "layer_output_scale.weight", "per_layer_input_gate.weight": "inp_gate.weight",
         "per_layer_projection.weight": "proj.weight", "post_per_layer_input_norm.weight": "post_norm.weight",
         "router.proj.weight": "ffn_gate_inp.weight", "router.scale": "ffn_gate_inp.scale",
         "router.per_expert_scale": "ffn_down_exps.scale", "experts.gate_up_proj": "ffn_gate_up_exps.weight",
         "experts.down_proj": "ffn_down_exps.weight", "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
         "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight"}
VISION_LAYER = {"input_layernorm.weight": "ln1.weight", "self_attn.q_norm.weight": "attn_q_norm.weight",
                "self_attn.k_norm.weight": "attn_k_norm.weight", "post_attention_layernorm.weight": "attn_post_norm.weight",
                "pre_feedforward_layernorm.weight": "ln2.weight", "post_feedforward_layernorm.weight": "ffn_post_norm.weight"}
VISION_LINEAR = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_out",
                 "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
# (llama.cpp, Ollama) where the two differ
AUDIO_LAYER = {"feed_forward1.pre_layer_norm.weight": "ffn_norm.weight", "feed_forward1.post_layer_norm.weight": "ffn_post_norm.weight",
               "feed_forward2.pre_layer_norm.weight": "ffn_norm_1.weight", "feed_forward2.post_layer_norm.weight": "ffn_post_norm_1.weight",
               "norm_pre_attn.weight": ("attn_pre_norm.weight", "ln1.weight"), "norm_post_attn.weight": ("attn_post_norm.weight", "ln2.weight"),
               "norm_out.weight": ("ln2.weight", "layer_pre_norm.weight"), "lconv1d.pre_layer_norm.weight": "conv_norm.weight",
               "lconv1d.conv_norm.weight": "norm_conv.weight", "lconv1d.depthwise_conv1d.weight": "conv_dw.weight",
               "self_attn.relative_k_proj.weight": ("attn_k_rel.weight", "linear_pos.weight"), "self_attn.per_dim_scale": "per_dim_scale.weight"}
AUDIO_LINEAR = {"feed_forward1.ffw_layer_1": "ffn_up", "feed_forward1.ffw_layer_2": "ffn_down", "feed_forward2.ffw_layer_1": "ffn_up_1",
                "feed_forward2.ffw_layer_2": "ffn_down_1", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
                "self_attn.v_proj": "attn_v", "self_attn.post": "attn_out", "lconv1d.linear_start": "conv_pw1", "lconv1d.linear_end": "conv_pw2"}
AUDIO = {"subsample_conv_projection.layer0.conv.weight": "a.conv1d.0.weight", "subsample_conv_projection.layer1.conv.weight": "a.conv1d.1.weight",
         "subsample_conv_projection.layer0.norm.weight": "a.conv1d.0.norm.weight", "subsample_conv_projection.layer1.norm.weight": "a.conv1d.1.norm.weight",
         "subsample_conv_projection.input_proj_linear.weight": ("a.input_projection.weight", "a.pre_encode.out.weight"),
         "output_proj.weight": ("a.pre_encode.out.weight", "mm.a.fc.weight"), "output_proj.bias": ("a.pre_encode.out.bias", "mm.a.fc.bias")}
TIED = ""                                              # in the file under another name
BOUNDS = ("input_min", "input_max", "output_min", "output_max")


def gguf_name(name, ollama):
    """Hugging Face's name -> (group, GGUF name); None for the name if GGUF has no such tensor"""
    choose = lambda x: x[ollama] if isinstance(x, tuple) else x
    m = re.match(r"model\.encoder\.language_model\.(?:layers\.(\d+)\.layer_scalar)?", name)
    if m:                                              # the encoder shares its other weights with the decoder
        return "text", f"blk.{m[1]}.enc_layer_output_scale.weight" if m[1] else TIED
    name = re.sub(r"^model\.(encoder|decoder)\.", "model.", name)
    name = re.sub(r"^(model\.)?(language_model\.)?(model\.)?", "", name) if not re.search(r"(vision|audio)_tower|embed_(vision|audio)", name) \
        else re.sub(r"^(model\.)+", "", name)
    if name.startswith("embed_vision."):
        return "vision", "mm.input_projection.weight" if name.endswith("embedding_projection.weight") else None
    if name.startswith("embed_audio."):
        return "audio", "mm.a.input_projection.weight" if name.endswith("embedding_projection.weight") else None
    if name.startswith("vision_tower."):
        name = name[13:]
        fixed = {"patch_embedder.input_proj.weight": "v.patch_embd.weight", "patch_embedder.position_embedding_table": "v.position_embd.weight",
                 "std_bias": "v.std_bias", "std_scale": "v.std_scale"}
        m = re.match(r"encoder\.layers\.(\d+)\.(.+)", name)
        return "vision", fixed.get(name) if not m else layer_name("v", m, VISION_LAYER, VISION_LINEAR, choose)
    if name.startswith("audio_tower."):
        name = name[12:]
        m = re.match(r"layers\.(\d+)\.(.+)", name)
        return "audio", choose(AUDIO.get(name)) if not m else layer_name("a", m, AUDIO_LAYER, AUDIO_LINEAR, choose)
    if name == "lm_head.weight":
        return "text", "output.weight"
    m = re.match(r"layers\.(\d+)\.(.+)", name)
    if m:
        return "text", f"blk.{m[1]}.{LAYER[m[2]]}" if m[2] in LAYER else None
    return "text", TEXT.get(name)


def layer_name(tower, m, plain, linear, choose):
    if m[2] in plain:
        return f"{tower}.blk.{m[1]}.{choose(plain[m[2]])}"
    module, _, what = m[2].rpartition(".")
    if what in BOUNDS and module in linear:
        return f"{tower}.blk.{m[1]}.{linear[module]}.{what}"
    if what == "weight" and module.endswith(".linear") and module[:-7] in linear:
        return f"{tower}.blk.{m[1]}.{linear[module[:-7]]}.weight"
    return None


def values(name, x):
    """Hugging Face's array x in the layout of the file"""
    if name == "v.patch_embd.weight":                  # (D, row, column, color) -> (D, color, row, column)
        p = int(round((x.shape[1] / 3) ** 0.5))
        return x.reshape(-1, p, p, 3).transpose(0, 3, 1, 2)
    if name.endswith("per_dim_scale.weight"):
        return np.log1p(np.exp(x))
    if name.endswith("conv_dw.weight"):
        return x.reshape(x.shape[0], x.shape[-1])
    return x.reshape(-1) if x.ndim == 0 else x


# ---- types -------------------------------------------------------------------------------

class Types:
    def __init__(self, text, towers, rules, layers, v_layers):
        self.text, self.towers, self.rules, self.layers = text, towers, rules, layers
        self.v_index = {i: k for k, i in enumerate(v_layers)}

    def of(self, name, shape):
        if len(shape) < 2 or re.search(r"norm|\.scale$|conv1d|conv_dw|position_embd|per_dim|ffn_gate_inp", name):
            return "f32"
        asked = [t for p, t in self.rules if fnmatch.fnmatch(name, p)]
        if asked:
            t = asked[-1]
        elif re.match(r"(v|a|mm)\.", name):
            t = self.towers
        elif self.text in ("q4_k_m", "q5_k_m", "q3_k_m", "mxfp4_moe"):
            m = re.match(r"blk\.(\d+)\.([a-z_]+)", name)
            layer = int(m[1]) if m else 0
            t = mixed_type(self.text, m[2] if m else name.split(".")[0], self.v_index.get(layer), len(self.v_index), layer, self.layers)
        else:
            t = self.text
        for _ in range(2):
            if shape[-1] % g.TYPES[t][1]:
                t = FALLBACK.get(t, "f16")
        return "f16" if shape[-1] % g.TYPES[t][1] else t


# ---- metadata ----------------------------------------------------------------------------

def read_json(folder, name):
    path = os.path.join(folder, name)
    return json.load(open(path)) if os.path.exists(path) else {}


def tokenizer(folder):
    t = read_json(folder, "tokenizer.json")
    if not t or t.get("model", {}).get("type") != "BPE":
        sys.exit(f"{folder}/tokenizer.json: there is no BPE tokenizer in this file.")
    size = max(t["model"]["vocab"].values()) + 1
    tokens, types = [f"<unused{i}>" for i in range(size)], [NORMAL] * size
    for text, i in t["model"]["vocab"].items():
        tokens[i] = text
        types[i] = BYTE if re.fullmatch(r"<0x[0-9A-F]{2}>", text) else NORMAL
    for a in t.get("added_tokens", []):
        while a["id"] >= len(tokens):
            tokens.append(f"<unused{len(tokens)}>")
            types.append(NORMAL)
        tokens[a["id"]] = a["content"]
        if a.get("special"):
            types[a["id"]] = USER_DEFINED if a["content"] in VISIBLE else CONTROL
    return tokens, types, [m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]]


def diffusion_metadata(w, canvas, gen):
    w.put("diffusion-gemma.attention.causal", g.BOOL, False)
    w.put("diffusion.canvas_length", g.U32, canvas)
    for key, kind, value in (("max_steps", g.U32, gen.get("max_denoising_steps")), ("t_min", g.F32, gen.get("t_min")), ("t_max", g.F32, gen.get("t_max")),
                             ("entropy_bound", g.F32, (gen.get("sampler_config") or {}).get("entropy_bound")),
                             ("stability_threshold", g.U32, gen.get("stability_threshold")),
                             ("confidence_threshold", g.F32, gen.get("confidence_threshold"))):
        if value is not None:
            w.put("diffusion.eb_" + key, kind, value)


def text_metadata(w, folder, c, name, file_type, n_tokens, canvas=None):
    arch = "diffusion-gemma" if canvas else "gemma4"
    a, L = arch + ".", c["num_hidden_layers"]
    kinds = c.get("layer_types") or ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(L)]
    sliding = [k == "sliding_attention" for k in kinds]
    shared = c.get("num_kv_shared_layers") or 0
    own = {str(k): v for k, v in (c.get("per_layer_config") or {}).items()}
    full = next((i for i in range(L) if not sliding[i]), 0)
    wide = c.get("use_double_wide_mlp")
    ff = [c["intermediate_size"] * (2 if wide and i >= L - shared else 1) for i in range(L)]
    of_layer = lambda i, key, other: own.get(str(i), {}).get(key, other)
    full_dim = of_layer(full, "head_dim", c.get("global_head_dim") or 512)
    kv = [of_layer(i, "num_key_value_heads", c["num_key_value_heads"] if s or not c.get("num_global_key_value_heads") else c["num_global_key_value_heads"])
          for i, s in enumerate(sliding)]
    rope = c.get("rope_parameters") or {}
    base = lambda kind, other: float((rope.get(kind) or {}).get("rope_theta") or other)
    w.put("general.architecture", g.STR, arch)
    w.put("general.type", g.STR, "model")
    w.put("general.name", g.STR, name)
    w.put("general.file_type", g.U32, file_type)
    w.put("general.quantization_version", g.U32, 2)
    gen = read_json(folder, "generation_config.json")
    for key, kind, value in (("top_k", g.I32, gen.get("top_k")), ("top_p", g.F32, gen.get("top_p")), ("temp", g.F32, gen.get("temperature"))):
        if value is not None:
            w.put("general.sampling." + key, kind, value)
    if canvas:
        diffusion_metadata(w, canvas, gen)
    w.put(a + "block_count", g.U32, L)
    w.put(a + "context_length", g.U32, c["max_position_embeddings"])
    w.put(a + "embedding_length", g.U32, c["hidden_size"])
    w.put(a + "feed_forward_length", g.U32, ff[0]) if len(set(ff)) == 1 else w.put_array(a + "feed_forward_length", g.I32, ff)
    w.put(a + "attention.head_count", g.U32, c["num_attention_heads"])
    w.put(a + "attention.head_count_kv", g.U32, kv[0]) if len(set(kv)) == 1 else w.put_array(a + "attention.head_count_kv", g.I32, kv)
    w.put(a + "rope.freq_base", g.F32, base("full_attention", 1e6))
    w.put(a + "rope.freq_base_swa", g.F32, base("sliding_attention", 1e4))
    w.put(a + "attention.layer_norm_rms_epsilon", g.F32, c.get("rms_norm_eps", 1e-6))
    if c.get("enable_moe_block") or canvas:
        w.put(a + "expert_count", g.U32, c["num_experts"])
        w.put(a + "expert_used_count", g.U32, c["top_k_experts"])
        w.put(a + "expert_feed_forward_length", g.U32, c["moe_intermediate_size"])
    for key, size in (("attention.key_length", full_dim), ("attention.value_length", full_dim), ("attention.key_length_swa", c["head_dim"]),
                      ("attention.value_length_swa", c["head_dim"]), ("rope.dimension_count", full_dim), ("rope.dimension_count_swa", c["head_dim"])):
        w.put(a + key, g.U32, size)
    if c.get("final_logit_softcapping"):
        w.put(a + "final_logit_softcapping", g.F32, c["final_logit_softcapping"])
    w.put(a + "attention.sliding_window", g.U32, c["sliding_window"])
    w.put(a + "attention.shared_kv_layers", g.U32, shared)
    w.put(a + "embedding_length_per_layer_input", g.U32, c.get("hidden_size_per_layer_input") or 0)
    w.put_array(a + "attention.sliding_window_pattern", g.BOOL, sliding)
    tokens, types, merges = tokenizer(folder)
    if len(tokens) > n_tokens:
        sys.exit(f"{folder}: the tokenizer has {len(tokens)} tokens, the model {n_tokens}.")
    tokens += [f"<unused{i}>" for i in range(len(tokens), n_tokens)]
    types += [NORMAL] * (n_tokens - len(types))
    k = "tokenizer.ggml."
    w.put(k + "model", g.STR, "gemma4")
    w.put_array(k + "tokens", g.STR, tokens)
    w.put_array(k + "scores", g.F32, [-1000.0] * len(tokens))
    w.put_array(k + "token_type", g.I32, types)
    w.put_array(k + "merges", g.STR, merges)
    for key, text in (("bos", "<bos>"), ("eos", "<eos>"), ("unknown", "<unk>"), ("padding", "<pad>"), ("mask", "<mask>")):
        if text in tokens:
            w.put(f"{k}{key}_token_id", g.U32, tokens.index(text))
    w.put(k + "add_space_prefix", g.BOOL, False)
    w.put(k + "add_bos_token", g.BOOL, True)
    rotated = (rope.get("full_attention") or {}).get("partial_rotary_factor", 0.25)
    turning = int(full_dim * rotated) // 2
    freqs = np.array([1.0] * turning + [1e30] * (full_dim // 2 - turning), np.float32)
    w.tensor("rope_freqs.weight", "f32", [full_dim // 2], lambda: [freqs.tobytes()])
    return L, [i for i in range(L) if i < L - shared]


def tower_metadata(w, folder, config, ollama, text_width):
    v, au = config.get("vision_config"), config.get("audio_config")
    p = "gemma4." if ollama else "clip."
    if v:
        k = p + "vision."
        w.put(k + "block_count", g.U32, v["num_hidden_layers"])
        w.put(k + "embedding_length", g.U32, v["hidden_size"])
        w.put(k + "feed_forward_length", g.U32, v["intermediate_size"])
        w.put(k + "attention.head_count", g.U32, v["num_attention_heads"])
        w.put(k + "attention.layer_norm_epsilon", g.F32, v.get("rms_norm_eps", 1e-6))
        w.put(k + "patch_size", g.U32, v.get("patch_size", 16))
        w.put(k + "projector.scale_factor", g.U32, v.get("pooling_kernel_size", 3))
        budget = read_json(folder, "preprocessor_config.json").get("max_soft_tokens")
        if ollama:
            w.put(k + "num_channels", g.U32, 3)
        else:
            w.put(k + "projector_type", g.STR, "gemma4v")
            w.put(k + "projection_dim", g.U32, text_width)
            w.put(k + "image_size", g.U32, 224)
            w.put_array(k + "image_mean", g.F32, [0.0] * 3)
            w.put_array(k + "image_std", g.F32, [1.0] * 3)
        if budget and budget != 280:
            w.put(k + "max_soft_tokens", g.U32, budget)   # a key of Bezel: the budget that the model was trained with
    if au:
        k = p + "audio."
        w.put(k + "block_count", g.U32, au["num_hidden_layers"])
        w.put(k + "embedding_length", g.U32, au["hidden_size"])
        w.put(k + "feed_forward_length", g.U32, au["hidden_size"] * 4)
        w.put(k + "attention.head_count", g.U32, au["num_attention_heads"])
        w.put(k + "attention.layer_norm_epsilon", g.F32, au.get("rms_norm_eps", 1e-6))
        w.put(k + "conv_kernel_size", g.U32, au.get("conv_kernel_size", 5))
        w.put(k + "num_mel_bins", g.U32, 128)
        if not ollama:
            w.put(k + "projector_type", g.STR, "gemma4a")
            w.put(k + "projection_dim", g.U32, text_width)
    if not ollama:
        w.put("clip.has_vision_encoder", g.BOOL, bool(v))
        w.put("clip.has_audio_encoder", g.BOOL, bool(au))
        w.put("clip.use_gelu", g.BOOL, True)


# ---- the files ---------------------------------------------------------------------------

def add(w, name, x, typ):
    x = np.ascontiguousarray(values(name, x), np.float32)
    w.tensor(name, typ, x.shape[::-1], lambda: [gguf_quantize.quantize(typ, x)])


def convert(folder, out, layout="ollama", mmproj=None, typ="q4_k_m", towers="f16", rules=(), name=None):
    config = read_json(folder, "config.json")
    if not config:
        sys.exit(f"{folder}: there is no config.json in this folder.")
    text = config.get("text_config") or config
    if not str(text.get("model_type", "")).startswith(("gemma4", "diffusion_gemma")):
        sys.exit(f"{folder}: config.json describes a model of type '{text.get('model_type')}', not a Gemma 4.")
    canvas = config.get("canvas_length", 256) if text["model_type"].startswith("diffusion_gemma") else None
    ollama = layout == "ollama" and not canvas
    tensors = Tensors(folder)
    groups, unknown = {"text": {}, "vision": {}, "audio": {}}, []
    for n in tensors.where:
        group, new = gguf_name(n, ollama)
        if new:
            groups[group][new] = n
        elif new != TIED and not n.endswith(("inv_freq", "softcap", "inv_timescales")):
            unknown.append(n)
    if unknown:
        sys.exit(f"{folder}: there is no GGUF name for {unknown[0]}" + (f" and {len(unknown) - 1} others." if len(unknown) > 1 else "."))
    if text.get("tie_word_embeddings", True):
        groups["text"].pop("output.weight", None)
    w = g.Writer()
    n_tokens = tensors.shape(groups["text"]["token_embd.weight"])[0]
    layers, own_kv = text_metadata(w, folder, text, name or os.path.basename(os.path.abspath(folder)), FILE_TYPE.get(typ, 1), n_tokens, canvas)
    shared = layers - len(own_kv)
    v_layers = [i for i in own_kv if f"blk.{i}.attn_v.weight" in groups["text"]]
    types = Types(typ, towers, list(rules), layers, v_layers)
    second = w if ollama else g.Writer()
    for group, writer in (("text", w), ("vision", second), ("audio", second)):
        for new, old in groups[group].items():
            if group == "text" and shared and re.match(r"blk\.(\d+)\.attn_(k|v|k_norm)\.", new) and int(new.split(".")[1]) >= layers - shared:
                continue                               # unused
            add(writer, new, tensors.get(old), types.of(new, tensors.shape(old)))
    if ollama:
        tower_metadata(w, folder, config, True, text["hidden_size"])
        general = {x[0]: x for x in w.kv}
        relayout(w, keep_types=True)
        kept = {x[0] for x in w.kv}                    # names and sampling hints are harmless there
        w.kv = sorted(w.kv + [general[k] for k in general if k == "general.name" and k not in kept], key=lambda x: x[0])
    w.save(out)
    if mmproj and not ollama:
        second.put("general.architecture", g.STR, "clip")
        second.put("general.type", g.STR, "mmproj")
        second.put("general.name", g.STR, name or "mmproj")
        second.put("general.file_type", g.U32, FILE_TYPE.get(towers, 1))
        tower_metadata(second, folder, config, False, text["hidden_size"])
        second.save(mmproj)
    return w


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder")
    ap.add_argument("out")
    ap.add_argument("--layout", default="ollama", choices=["ollama", "llama.cpp"])
    ap.add_argument("--mmproj", help="llama.cpp's layout: the file for vision and audio")
    ap.add_argument("--type", default="q4_k_m", choices=sorted(FILE_TYPE))
    ap.add_argument("--towers", default="f16", choices=["f32", "f16", "bf16", "q8_0"])
    ap.add_argument("--tensor", action="append", default=[], metavar="PATTERN=T")
    ap.add_argument("--name")
    a = ap.parse_args(argv)
    rules = [tuple(x.rsplit("=", 1)) for x in a.tensor]
    for x in rules:
        if len(x) != 2 or x[1] not in g.TYPES:
            ap.error(f"--tensor {'='.join(x)}: wanted PATTERN=TYPE.")
    w = convert(a.folder, a.out, a.layout, a.mmproj, a.type, a.towers, rules, a.name)
    print(f"{a.out}: {len(w.tensors)} tensors, {os.path.getsize(a.out) / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
