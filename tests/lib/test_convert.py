#!/usr/bin/env python3
"""tools/convert.py and tools/gguf_quantize.py on a small Hugging Face folder made here.

    test_convert.py BUILD [MODELS]

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "..", "tools")]
from cases import case, finish, need, same  # noqa: E402
import convert  # noqa: E402
import gemma4_vocab  # noqa: E402
import gguf_io as g  # noqa: E402
import gguf_quantize  # noqa: E402

BEZEL = os.path.abspath(os.path.join(sys.argv[1], "bezel"))
V, D, L, P = 640, 256, 4, 32
TYPES = [t for t in g.TYPES if t not in ("i8", "i16", "i32")]
# relative error of normal numbers; the second column is what the largest value alone would give
WORST = {"f32": 0, "f16": 3e-4, "bf16": 2e-3, "q8_0": 6e-3, "q6_k": 0.017, "q5_k": 0.036, "q5_1": 0.036, "q5_0": 0.042, "q4_k": 0.072, "q4_1": 0.072,
         "q4_0": 0.082, "iq4_nl": 0.076, "iq4_xs": 0.076, "mxfp4": 0.12, "q3_k": 0.15, "q2_k": 0.27}


# ---- a folder ------------------------------------------------------------------------------

def write_safetensors(path, tensors, bf16=()):
    head, data, at = {}, [], 0
    for name, x in tensors.items():
        x = np.ascontiguousarray(x, np.float32)
        raw = g.to_bf16(x).tobytes() if name in bf16 else x.tobytes()
        head[name] = {"dtype": "BF16" if name in bf16 else "F32", "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def tensors():
    r = np.random.RandomState(1)
    n = lambda *s: (r.randn(*s) / np.sqrt(s[-1])).astype(np.float32)
    one = lambda s: (1 + 0.1 * r.randn(s)).astype(np.float32)
    t, m = {}, "model.language_model."
    t[m + "embed_tokens.weight"] = n(V, D) * 0.3
    t[m + "embed_tokens_per_layer.weight"] = n(V, P * L)
    t[m + "per_layer_model_projection.weight"] = n(P * L, D)
    t[m + "per_layer_projection_norm.weight"] = one(P)
    t[m + "norm.weight"] = one(D) * 8
    for i in range(L):
        b, dim = f"{m}layers.{i}.", 64 if i % 2 == 0 else 128
        for k in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm", "post_per_layer_input_norm"):
            t[b + k + ".weight"] = one(D)
        t[b + "self_attn.q_proj.weight"], t[b + "self_attn.o_proj.weight"] = n(4 * dim, D), n(D, 4 * dim)
        t[b + "self_attn.k_proj.weight"], t[b + "self_attn.v_proj.weight"] = n(dim, D), n(dim, D)
        t[b + "self_attn.q_norm.weight"], t[b + "self_attn.k_norm.weight"] = one(dim), one(dim) / np.sqrt(dim)
        ff = 256 if i < 2 else 512
        t[b + "mlp.gate_proj.weight"], t[b + "mlp.up_proj.weight"], t[b + "mlp.down_proj.weight"] = n(ff, D), n(ff, D), n(D, ff)
        t[b + "per_layer_input_gate.weight"], t[b + "per_layer_projection.weight"] = n(P, D), n(D, P)
        t[b + "layer_scalar"] = np.array([0.9], np.float32)
    v = "model.vision_tower."
    t[v + "patch_embedder.input_proj.weight"] = n(32, 768)
    t[v + "patch_embedder.position_embedding_table"] = n(2, 20, 32)
    t["model.embed_vision.embedding_projection.weight"] = n(D, 32)
    b = v + "encoder.layers.0."
    for k in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"):
        t[b + k + ".weight"] = one(32)
    t[b + "self_attn.q_norm.weight"], t[b + "self_attn.k_norm.weight"] = one(16), one(16)
    for k, shape in (("self_attn.q_proj", (32, 32)), ("self_attn.k_proj", (32, 32)), ("self_attn.v_proj", (32, 32)), ("self_attn.o_proj", (32, 32)),
                     ("mlp.gate_proj", (64, 32)), ("mlp.up_proj", (64, 32)), ("mlp.down_proj", (32, 64))):
        clipped(t, b + k, n(*shape))
    a = "model.audio_tower."
    t[a + "subsample_conv_projection.layer0.conv.weight"], t[a + "subsample_conv_projection.layer1.conv.weight"] = n(8, 1, 3, 3), n(4, 8, 3, 3)
    t[a + "subsample_conv_projection.layer0.norm.weight"], t[a + "subsample_conv_projection.layer1.norm.weight"] = one(8), one(4)
    t[a + "subsample_conv_projection.input_proj_linear.weight"] = n(32, 128)
    t[a + "output_proj.weight"], t[a + "output_proj.bias"] = n(64, 32), one(64)
    t["model.embed_audio.embedding_projection.weight"] = n(D, 64)
    b = a + "layers.0."
    for f in ("feed_forward1", "feed_forward2"):
        t[f"{b}{f}.pre_layer_norm.weight"], t[f"{b}{f}.post_layer_norm.weight"] = one(32), one(32)
        clipped(t, f"{b}{f}.ffw_layer_1", n(128, 32))
        clipped(t, f"{b}{f}.ffw_layer_2", n(32, 128))
    for k in ("norm_pre_attn", "norm_post_attn", "norm_out", "lconv1d.pre_layer_norm", "lconv1d.conv_norm"):
        t[b + k + ".weight"] = one(32)
    for k in ("q_proj", "k_proj", "v_proj", "post"):
        clipped(t, b + "self_attn." + k, n(32, 32))
    t[b + "self_attn.relative_k_proj.weight"], t[b + "self_attn.per_dim_scale"] = n(32, 32), one(16) - 1
    clipped(t, b + "lconv1d.linear_start", n(64, 32))
    clipped(t, b + "lconv1d.linear_end", n(32, 32))
    t[b + "lconv1d.depthwise_conv1d.weight"] = n(32, 1, 5)
    return t


def clipped(t, name, x):
    t[name + ".linear.weight"] = x
    for k, what in enumerate(convert.BOUNDS):
        t[f"{name}.{what}"] = np.float32([-4, 4.5, -5, 5.5][k])


def make_folder(path, source):
    os.makedirs(path)
    names = list(source)
    half = len(names) // 2
    write_safetensors(f"{path}/model-00001-of-00002.safetensors", {k: source[k] for k in names[:half]})
    write_safetensors(f"{path}/model-00002-of-00002.safetensors", {k: source[k] for k in names[half:]})
    tokens, types, merges = gemma4_vocab.build(V)
    special = {t for t in gemma4_vocab.SPECIAL.values()} | set(gemma4_vocab.MEDIA.values())
    write = lambda name, x: json.dump(x, open(f"{path}/{name}", "w"))
    write("tokenizer.json", {"model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges},
                             "added_tokens": [{"id": i, "content": t, "special": True} for i, t in enumerate(tokens) if t in special]})
    text = {"model_type": "gemma4_text", "vocab_size": V, "hidden_size": D, "intermediate_size": 256, "num_hidden_layers": L, "num_attention_heads": 4,
            "num_key_value_heads": 1, "head_dim": 64, "global_head_dim": 128, "sliding_window": 16, "num_kv_shared_layers": 2, "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": P, "final_logit_softcapping": 30.0, "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "rope_parameters": {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_theta": 1e6, "partial_rotary_factor": 0.25}}}
    write("config.json", {"model_type": "gemma4", "text_config": text,
                          "vision_config": {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2},
                          "audio_config": {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2}})
    write("generation_config.json", {"temperature": 0.5, "top_k": 7})
    write("preprocessor_config.json", {"max_soft_tokens": 70})
    return path


# ---- cases -----------------------------------------------------------------------------------

def types_are_close():
    r = np.random.RandomState(2)
    x = (r.randn(40, 512) * 0.05).astype(np.float32)
    x[3], x[4, :256] = 0, 0.5                          # nothing, and one value all over
    same(sorted(TYPES), sorted(WORST), "the list of types")
    for t in TYPES:
        y = g.dequantize(t, np.frombuffer(gguf_quantize.quantize(t, x), np.uint8)).reshape(x.shape)
        rel = float(np.sqrt(((x - y)[8:] ** 2).mean()) / x[8:].std())
        need(rel <= WORST[t], f"{t}: {rel:.4f} off, {WORST[t]} allowed")
        need(not y[3].any(), f"{t}: zeros became {np.abs(y[3]).max()}")
        need(np.abs(y[4, :256] - 0.5).max() <= (0.2 if t == "mxfp4" else 0.03), f"{t}: one value became {y[4, :3]}")


def logits(path, folder):
    out = os.path.join(folder, "rows.f32")
    p = subprocess.run([BEZEL, "logits", path, "-t", "2,105,500,501,502,520,107,530,540", "-o", out], capture_output=True, text=True)
    need(p.returncode == 0, p.stderr)
    return np.fromfile(out, np.float32)


def layouts_agree(folder, out, source):
    one, text, mm = f"{out}/one.gguf", f"{out}/text.gguf", f"{out}/mm.gguf"
    convert.main([folder, one, "--type", "f32", "--towers", "f32"])
    convert.main([folder, text, "--layout", "llama.cpp", "--mmproj", mm, "--type", "f32", "--towers", "f32"])
    a, b = logits(one, out), logits(text, out)
    need(np.isfinite(a).all() and a.std() > 0.1, f"logits deviate by {a.std()}")
    need(np.array_equal(a, b), "the two layouts give different logits")
    for path, ollama in ((one, True), (text, False)):
        r = g.Reader(path)
        rest = g.Reader(mm) if not ollama else r
        seen = 0
        for name, x in source.items():
            group, new = convert.gguf_name(name, ollama)
            file = r if group == "text" else rest
            if group == "text" and name.split(".")[-2] in ("k_proj", "v_proj", "k_norm") and int(name.split(".")[3]) >= 2:
                need(new not in file.tensors, f"{new} belongs to a layer that reads another's K and V")
                continue
            need(new in file.tensors, f"{new} is missing")
            need(np.array_equal(file.get(new).reshape(-1), np.asarray(convert.values(new, np.asarray(x)), np.float32).reshape(-1)), f"{new} has other values")
            seen += 1
        need(seen + 1 == len(r.tensors) + (len(rest.tensors) if rest is not r else 0), "there are more tensors than there should be")
    r = g.Reader(one)
    same(r.kv["gemma4.feed_forward_length"], [256, 256, 512, 512], "the FFN widths")
    same([r.kv["gemma4.vision.max_soft_tokens"], r.kv["general.sampling.top_k"], r.kv["gemma4.audio.block_count"]], [70, 7, 1], "keys")
    same(r.kv["tokenizer.ggml.eos_token_ids"], [1, 106, 50], "the ends")
    same(g.Reader(mm).kv["clip.vision.projector_type"], "gemma4v", "the projector")


def names_as_published(folder, out):
    """the names of a full Ollama file, one layer each"""
    r = g.Reader(f"{out}/one.gguf")
    for name in ("v.patch_embd.weight", "v.position_embd.weight", "v.blk.0.attn_q.input_min", "v.blk.0.attn_out.weight", "v.blk.0.ffn_post_norm.weight", "mm.input_projection.weight",
                 "a.conv1d.1.norm.weight", "a.pre_encode.out.weight", "mm.a.fc.weight", "mm.a.fc.bias", "mm.a.input_projection.weight", "a.blk.0.ln1.weight", "a.blk.0.ln2.weight",
                 "a.blk.0.layer_pre_norm.weight", "a.blk.0.linear_pos.weight", "a.blk.0.norm_conv.weight", "a.blk.0.conv_norm.weight", "a.blk.0.conv_dw.weight", "a.blk.0.ffn_up_1.output_max"):
        need(name in r.tensors, name)
    same(r.tensors["v.patch_embd.weight"][1], [16, 16, 3, 32], "the patch kernel's shape")
    same(r.tensors["a.blk.0.conv_dw.weight"][1], [5, 32], "the depthwise kernel's shape")
    mm = g.Reader(f"{out}/mm.gguf")
    for name in ("a.input_projection.weight", "a.pre_encode.out.bias", "a.blk.0.attn_pre_norm.weight", "a.blk.0.attn_post_norm.weight", "a.blk.0.ln2.weight", "a.blk.0.attn_k_rel.weight"):
        need(name in mm.tensors, name)


def every_type_runs(folder, out):
    want = logits(f"{out}/one.gguf", out)
    for t in ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "bf16", "f16", "q2_k", "q4_k_m", "q5_k_m"):
        path = f"{out}/{t}.gguf"
        convert.main([folder, path, "--type", t])
        got = logits(path, out)
        rel = float(np.sqrt(((got - want) ** 2).mean()) / want.std())
        # random weights forgive nothing: a fifth above what is measured
        most = {"q2_k": 1.15, "q3_k": 0.7, "mxfp4": 0.62, "q8_0": 0.032, "f16": 0.0013, "bf16": 0.01, "q6_k": 0.095, "q5_k": 0.2, "q5_1": 0.2, "q5_0": 0.24, "q5_k_m": 0.18, "q4_k_m": 0.34}.get(t, 0.43)
        need(rel <= most, f"{t}: logits off by {rel:.3f} of their deviation, {most} allowed")
    convert.main([folder, f"{out}/mix.gguf", "--type", "q4_k", "--tensor", "token_embd*=q6_k", "--tensor", "*ffn_down*=q8_0"])
    r = g.Reader(f"{out}/mix.gguf")
    same([r.tensors[n][0] for n in ("token_embd.weight", "blk.0.ffn_down.weight", "blk.0.ffn_up.weight", "blk.0.proj.weight", "v.blk.0.attn_q.weight", "v.position_embd.weight")],
         ["q6_k", "q8_0", "q4_k", "q5_0", "f16", "f32"], "the types")


def complains(folder, out, source):
    def fails(args, what):
        p = subprocess.run([sys.executable, os.path.join(HERE, "..", "..", "tools", "convert.py"), *args], capture_output=True, text=True)
        need(p.returncode != 0 and what in p.stderr and "Traceback" not in p.stderr, p.stderr)
    os.makedirs(f"{out}/empty")
    fails([f"{out}/empty", f"{out}/x.gguf"], "config.json")
    odd = make_folder(f"{out}/odd", dict(source, **{"model.language_model.layers.0.surprise.weight": np.ones((2, 2), np.float32)}))
    fails([odd, f"{out}/x.gguf"], "surprise")
    config = json.load(open(f"{odd}/config.json"))
    config["text_config"]["model_type"] = "llama"
    json.dump(config, open(f"{odd}/config.json", "w"))
    fails([odd, f"{out}/x.gguf"], "llama")


def diffusion(out):
    """the golden DiffusionGemma under Hugging Face's names, and back"""
    was = g.Reader(os.path.join(HERE, "..", "..", "build", "golden", "diffusion", "text.gguf"))
    layer, whole, source = {v: k for k, v in convert.LAYER.items()}, {v: k for k, v in convert.TEXT.items()}, {}
    for name in was.tensors:
        _, number, what = name.split(".", 2) if name.startswith("blk.") else (None, None, name)
        if what == "enc_layer_output_scale.weight":
            source[f"model.encoder.language_model.layers.{number}.layer_scalar"] = was.get(name)
        elif name != "rope_freqs.weight":
            source["model.decoder." + (f"layers.{number}.{layer[what]}" if number else whole[what])] = was.get(name)
    source["model.encoder.language_model.norm.weight"] = np.zeros(96, np.float32)      # what is tied may stand there twice
    folder, made = make_folder(f"{out}/diffusion", source), f"{out}/diffusion.gguf"
    text = {"model_type": "diffusion_gemma_text", "vocab_size": 768, "hidden_size": 96, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
            "num_global_key_value_heads": 1, "head_dim": 32, "global_head_dim": 64, "sliding_window": 8, "final_logit_softcapping": 30.0, "max_position_embeddings": 4096,
            "layer_types": ["sliding_attention", "full_attention"] * 2, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 32}
    json.dump({"model_type": "diffusion_gemma", "canvas_length": 16, "text_config": text}, open(f"{folder}/config.json", "w"))
    json.dump({"max_denoising_steps": 6, "t_min": 0.4, "t_max": 0.8, "stability_threshold": 1, "confidence_threshold": 0.005, "sampler_config": {"entropy_bound": 1.0}},
              open(f"{folder}/generation_config.json", "w"))
    convert.main([folder, made, "--type", "f32"])
    now, rows = g.Reader(made), []
    for key in was.kv:
        if key.startswith("diffusion"):
            same(now.kv.get(key), was.kv[key], key)
    for path in (os.path.join(HERE, "..", "..", "build", "golden", "diffusion", "text.gguf"), made):
        p = subprocess.run([BEZEL, "logits", path, "-t", "2,105,500,501", "--canvas", ",".join(map(str, range(480, 496))), "-o", f"{out}/rows.f32"], capture_output=True, text=True)
        need(p.returncode == 0, p.stderr)
        rows.append(np.fromfile(f"{out}/rows.f32", np.float32))
    need(rows[0].size == 16 * 768 and np.abs(rows[0] - rows[1]).max() < 1e-4, f"logits off by {np.abs(rows[0] - rows[1]).max()}")


with tempfile.TemporaryDirectory() as d:
    source = tensors()
    folder = make_folder(f"{d}/hf", source)
    sys.stderr = open(os.devnull, "w")
    case("every type stays close", types_are_close)
    case("both layouts hold the same", layouts_agree, folder, d, source)
    case("names as in published files", names_as_published, folder, d)
    case("every type converts and runs", every_type_runs, folder, d)
    case("complaints", complains, folder, d, source)
    case("DiffusionGemma", diffusion, d)
sys.exit(finish())
