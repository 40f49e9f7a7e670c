#!/usr/bin/env python3
"""Write a synthetic Gemma 4 GGUF: real architecture, seeded random weights.

  gemma4_synth.py PRESET OUT.gguf [--type T] [--seed N] [--vocab N] [--layers N] [--ctx N]
                  [--chat-template FILE] [--full-tensors] [--loose-mins] [--layout ollama] [--early]
                  [--outliers] [--holes]

PRESET is one of the names in PRESETS below. T is f32, f16, bf16, a single block type (q8_0
q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4: every matrix in it, with the
type of FALLBACK or f16 where a row does not divide into blocks), or one of the mixes that
llama.cpp's quantizer chooses: q4_k_m q5_k_m q3_k_m mxfp4_moe.
Same preset, type, seed and options give the same bytes on every machine.
"""
import argparse
import math
import sys

import numpy as np
import gguf_io as g
import gemma4_vocab
import gguf_ollama

S, G = True, False                                    # sliding / global layer

# n_embd, heads, kv heads (sliding, global), head sizes (sliding, global), layer pattern,
# ffn per layer, shared-KV tail, per-layer embedding size, window, experts, vocabulary
PRESETS = {
    # small enough to keep as f32 (row lengths are multiples of 32, not of 256)
    "nano-e":     dict(n=64, heads=4, kv=(1, 1), hd=(16, 32), pat=[S, S, S, G, S, S, S, G],
                       ff=[96] * 4 + [192] * 4, shared=4, ple=16, win=8, vocab=640),
    "nano-moe":   dict(n=64, heads=4, kv=(2, 1), hd=(16, 32), pat=[S, S, G, S, S, G],
                       ff=[96] * 6, win=8, k_eq_v=True, experts=(16, 4, 32), vocab=640),
    "nano-dense": dict(n=64, heads=4, kv=(2, 1), hd=(16, 32), pat=[S, S, G, S, S, G],
                       ff=[192] * 6, win=8, k_eq_v=True, vocab=640),
    "nano-12b":   dict(n=64, heads=8, kv=(4, 1), hd=(16, 32), pat=[S, S, S, S, S, G],
                       ff=[192] * 6, win=8, k_eq_v=True, vocab=640),
    # rows are multiples of 256, so that K-quants apply (but for the rows of ffn_down and
    # ffn_down_exps in the MoE, as in the real 26B-A4B: 2112 and 704)
    "tiny-e":     dict(n=256, heads=4, kv=(1, 1), hd=(64, 128), pat=[S, S, S, G, S, S, S, G],
                       ff=[256] * 4 + [512] * 4, shared=4, ple=32, win=16, vocab=2560),
    "tiny-moe":   dict(n=256, heads=4, kv=(2, 1), hd=(64, 128), pat=[S, S, G, S, S, G],
                       ff=[160] * 6, win=16, k_eq_v=True, experts=(16, 4, 32), vocab=2560),
    "tiny-dense": dict(n=256, heads=4, kv=(2, 1), hd=(64, 128), pat=[S, S, G, S, S, G],
                       ff=[768] * 6, win=16, k_eq_v=True, vocab=2560),
    "tiny-12b":   dict(n=256, heads=8, kv=(4, 1), hd=(64, 128), pat=[S, S, S, S, S, G] * 2,
                       ff=[512] * 12, win=16, k_eq_v=True, vocab=2560),
    # diffusion models: canvas (tokens, steps)
    "nano-diffusion": dict(n=64, heads=4, kv=(2, 1), hd=(16, 32), pat=[S, S, G, S, S, G], ff=[96] * 6, win=8, k_eq_v=True,
                       experts=(16, 4, 32), vocab=640, canvas=(32, 8)),
    "tiny-diffusion": dict(n=256, heads=4, kv=(2, 1), hd=(64, 128), pat=[S, S, G, S, S, G], ff=[160] * 6, win=16, k_eq_v=True,
                       experts=(16, 4, 32), vocab=2560, canvas=(128, 16)),
    # published shapes
    "e2b":        dict(n=1536, heads=8, kv=(1, 1), hd=(256, 512), pat=[S, S, S, S, G] * 7,
                       ff=[6144] * 15 + [12288] * 20, shared=20, ple=256, win=512, vocab=262144, ctx=131072),
    "e4b":        dict(n=2560, heads=8, kv=(2, 2), hd=(256, 512), pat=[S, S, S, S, S, G] * 7,
                       ff=[10240] * 42, shared=18, ple=256, win=512, vocab=262144, ctx=131072),
    "12b":        dict(n=3840, heads=16, kv=(8, 1), hd=(256, 512), pat=[S, S, S, S, S, G] * 8,
                       ff=[15360] * 48, win=1024, k_eq_v=True, vocab=262144, ctx=262144),
    "26b-a4b":    dict(n=2816, heads=16, kv=(8, 2), hd=(256, 512), pat=[S, S, S, S, S, G] * 5,
                       ff=[2112] * 30, win=1024, k_eq_v=True, experts=(128, 8, 704), vocab=262144, ctx=262144),
    "diffusion-26b": dict(n=2816, heads=16, kv=(8, 2), hd=(256, 512), pat=[S, S, S, S, S, G] * 5,
                       ff=[2112] * 30, win=1024, k_eq_v=True, experts=(128, 8, 704), vocab=262144, ctx=262144, canvas=(256, 48)),
    "31b":        dict(n=5376, heads=32, kv=(16, 4), hd=(256, 512), pat=[S, S, S, S, S, G] * 10,
                       ff=[21504] * 60, win=1024, k_eq_v=True, vocab=262144, ctx=262144),
}
FILE_TYPE = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k": 11,
             "q3_k_m": 12, "q4_k": 14, "q4_k_m": 15, "q5_k": 16, "q5_k_m": 17, "q6_k": 18, "iq4_nl": 25,
             "iq4_xs": 30, "bf16": 32, "mxfp4": 38, "mxfp4_moe": 38}
# for rows that do not divide by 256
FALLBACK = {"q6_k": "q8_0", "q5_k": "q5_1", "q4_k": "q5_0", "q3_k": "q4_0", "q2_k": "q4_0", "iq4_xs": "iq4_nl"}


def more_bits(i, n):
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def mixed_type(mix, kind, v, n_v, layer, n_layer):
    """llama.cpp's choice. kind: the tensor's role; v: its number among the n_v attn_v tensors"""
    if mix == "mxfp4_moe":
        return "mxfp4" if kind.endswith("_exps") else "q8_0"
    if kind in ("token_embd", "per_layer_token_embd"):
        return "q6_k"
    down = kind in ("ffn_down", "ffn_down_exps")
    if mix == "q3_k_m":
        if kind == "attn_v":
            return "q5_k" if v < 2 else "q4_k"
        if down:
            return "q5_k" if layer < n_layer // 16 else "q4_k"
        return "q4_k" if kind == "attn_output" else "q3_k"
    if (kind == "attn_v" and more_bits(v, n_v)) or (down and more_bits(layer, n_layer)):
        return "q6_k"
    return mix[:4]


class Model:
    def __init__(self, cfg, typ, seed, ollama=False, full_tensors=False, loose=False, sharp=False, outliers=False):
        self.c, self.typ, self.seed, self.sharp = cfg, typ, seed, sharp
        self.ollama, self.full_tensors, self.loose, self.outliers = ollama, full_tensors, loose, outliers
        self.w = g.Writer()
        self.n_layer = len(cfg["pat"])

    # -- types
    def matrix_type(self, name, ne, layer):
        t = self.typ
        if self.ollama and name.startswith("per_layer_token_embd"):
            return "bf16"                              # llama.cpp's quantizer leaves this table alone
        if t in ("q4_k_m", "q5_k_m", "q3_k_m", "mxfp4_moe"):
            kind = name.split(".")[2 if name.startswith("blk.") else 0]
            t = mixed_type(t, kind, self.v_index.get(layer), len(self.v_index), layer, self.n_layer)
        if t in ("f32", "f16", "bf16"):
            return t
        if "ffn_gate_inp" in name:
            return "f32"
        if "per_layer_model_proj" in name and not self.ollama:
            return "bf16"
        if ne[0] % g.TYPES[t][1]:
            t = FALLBACK.get(t, t)
        if ne[0] % g.TYPES[t][1]:
            t = "f16"
        return t

    # -- tensors
    def vector(self, name, n, mean=1.0, dev=0.1, factor=1.0):
        s = g.seed_of(self.seed, name)
        v = np.float32(mean) * (np.float32(1) + np.float32(dev) * g.random_normal(s, 0, n)) * np.float32(factor)
        self.w.tensor(name, "f32", [n], lambda v=v: [v.astype(np.float32).tobytes()])

    def outlier_channels(self, layer, d):
        """Factors of the keys' norm, of which one in 32 is 8: as in trained models, a few channels of the keys are much
        larger than the others. The queries are divided by them, and rope rotates channels of the same factor."""
        large = np.ones(d // 2)
        if self.outliers:
            s = g.seed_of(self.seed, layer + "outliers")
            large[np.argsort(g.random_unit(s, 0, d // 2))[:max(1, d // 64)]] = 8
        return np.concatenate((large, large))

    def matrix(self, name, ne, std=None, layer=0):
        typ = self.matrix_type(name, ne, layer)
        std = 1.0 / math.sqrt(ne[0]) if std is None else std
        s = g.seed_of(self.seed, name)
        count = int(np.prod(ne, dtype=np.int64))

        def chunks():
            if typ in ("f32", "f16", "bf16"):
                step = 1 << 20
                for i in range(0, count, step):
                    x = g.random_normal(s, i, min(step, count - i)) * np.float32(std)
                    yield (x.tobytes() if typ == "f32" else
                           x.astype(np.float16).tobytes() if typ == "f16" else g.to_bf16(x).tobytes())
            else:
                blocks, step = count // g.TYPES[typ][1], 1 << 16
                for i in range(0, blocks, step):
                    n = min(step, blocks - i)
                    if not (self.sharp and name == "token_embd.weight"):
                        yield g.random_blocks(typ, s, i, n, std, self.loose)
                        continue
                    # like a trained model, whose distributions are sharp: one token in 1024 has a large logit
                    row = np.arange(i, i + n) // (ne[0] // g.TYPES[typ][1])
                    low, high = (np.frombuffer(g.random_blocks(typ, s, i, n, std * f, self.loose), np.uint8).reshape(n, -1)
                                 for f in (1 / 3, 2))
                    yield np.where((row % 1024 == 7)[:, None], high, low).tobytes()
        self.w.tensor(name, typ, ne, chunks)

    def raw(self, name, values):
        v = np.asarray(values, np.float32)
        self.w.tensor(name, "f32", [v.size], lambda: [v.tobytes()])

    # -- the file
    def metadata(self, name, template):
        c, w, L = self.c, self.w, self.n_layer
        arch = "diffusion-gemma" if c.get("canvas") else "gemma4"
        a = arch + "."
        w.put("general.architecture", g.STR, arch)
        w.put("general.type", g.STR, "model")
        w.put("general.name", g.STR, f"synthetic gemma4 {name}")
        w.put("general.file_type", g.U32, FILE_TYPE[self.typ])
        w.put("general.quantization_version", g.U32, 2)
        w.put(a + "block_count", g.U32, L)
        w.put(a + "context_length", g.U32, c.get("ctx", 512))
        w.put(a + "embedding_length", g.U32, c["n"])
        if len(set(c["ff"])) == 1:
            w.put(a + "feed_forward_length", g.U32, c["ff"][0])
        else:
            w.put_array(a + "feed_forward_length", g.I32, c["ff"])
        w.put(a + "attention.head_count", g.U32, c["heads"])
        if c["kv"][0] == c["kv"][1]:
            w.put(a + "attention.head_count_kv", g.U32, c["kv"][0])
        else:
            w.put_array(a + "attention.head_count_kv", g.I32, [c["kv"][0 if s else 1] for s in c["pat"]])
        w.put(a + "rope.freq_base", g.F32, 1e6)
        w.put(a + "rope.freq_base_swa", g.F32, 1e4)
        w.put(a + "attention.layer_norm_rms_epsilon", g.F32, 1e-6)
        if c.get("experts"):
            w.put(a + "expert_count", g.U32, c["experts"][0])
            w.put(a + "expert_used_count", g.U32, c["experts"][1])
        w.put(a + "attention.key_length", g.U32, c["hd"][1])
        w.put(a + "attention.value_length", g.U32, c["hd"][1])
        w.put(a + "final_logit_softcapping", g.F32, 30.0)
        w.put(a + "attention.sliding_window", g.U32, c["win"])
        w.put(a + "attention.shared_kv_layers", g.U32, c.get("shared", 0))
        w.put(a + "embedding_length_per_layer_input", g.U32, c.get("ple", 0))
        w.put_array(a + "attention.sliding_window_pattern", g.BOOL, c["pat"])
        w.put(a + "attention.key_length_swa", g.U32, c["hd"][0])
        w.put(a + "attention.value_length_swa", g.U32, c["hd"][0])
        if c.get("experts"):
            w.put(a + "expert_feed_forward_length", g.U32, c["experts"][2])
        w.put(a + "rope.dimension_count", g.U32, c["hd"][1])
        w.put(a + "rope.dimension_count_swa", g.U32, c["hd"][0])
        if c.get("canvas"):
            w.put(a + "attention.causal", g.BOOL, False)
            w.put("diffusion.canvas_length", g.U32, c["canvas"][0])
            w.put("diffusion.eb_max_steps", g.U32, c["canvas"][1])
            for key, value in (("t_min", 0.4), ("t_max", 0.8), ("entropy_bound", 0.1), ("confidence_threshold", 0.005)):
                w.put("diffusion.eb_" + key, g.F32, value)
            w.put("diffusion.eb_stability_threshold", g.U32, 1)

        tokens, types, merges = gemma4_vocab.build(c["vocab"], 514906 if c["vocab"] == 262144 else None)
        k = "tokenizer.ggml."
        w.put(k + "model", g.STR, "gemma4")
        w.put_array(k + "tokens", g.STR, tokens)
        w.put_array(k + "scores", g.F32, [-1000.0] * len(tokens))
        w.put_array(k + "token_type", g.I32, types)
        w.put_array(k + "merges", g.STR, merges)
        for key, i in (("bos", 2), ("eos", 1), ("unknown", 3), ("padding", 0), ("mask", 4)):
            w.put(f"{k}{key}_token_id", g.U32, i)
        if template:
            w.put("tokenizer.chat_template", g.STR, template)
        w.put(k + "add_space_prefix", g.BOOL, False)
        w.put(k + "add_bos_token", g.BOOL, True)

    def build(self):
        c, L = self.c, self.n_layer
        n, V, P = c["n"], c["vocab"], c.get("ple", 0)
        first_shared = L - c.get("shared", 0)
        has_k = [i < first_shared or self.full_tensors for i in range(L)]   # published files have all of them, unused from first_shared on
        has_v = [k and (s or not c.get("k_eq_v")) for k, s in zip(has_k, c["pat"])]
        self.v_index = {i: k for k, i in enumerate([i for i in range(L) if has_v[i]])}

        hd_g = c["hd"][1]
        rot = hd_g // 8                                # partial rotary factor 0.25: a quarter of the pairs is rotated
        self.raw("rope_freqs.weight", [1.0] * rot + [1e30] * (hd_g // 2 - rot))
        self.matrix("token_embd.weight", [n, V], 0.25 / math.sqrt(n))  # small, otherwise the tied head repeats its input
        if P:
            self.matrix("per_layer_token_embd.weight", [P * L, V], 1 / math.sqrt(P))
            self.matrix("per_layer_model_proj.weight", [n, P * L])
            self.vector("per_layer_proj_norm.weight", P)
        self.vector("output_norm.weight", n, 24.0)     # logits of deviation ~6, so the soft cap at 30 bends them
        for i, sliding in enumerate(c["pat"]):
            b = f"blk.{i}."
            d = c["hd"][0 if sliding else 1]
            kv = c["kv"][0 if sliding else 1]
            self.vector(b + "attn_norm.weight", n)
            self.matrix(b + "attn_q.weight", [n, d * c["heads"]], layer=i)
            large = self.outlier_channels(b, d)
            self.vector(b + "attn_q_norm.weight", d, factor=1 / large)
            if has_k[i]:
                self.matrix(b + "attn_k.weight", [n, d * kv], layer=i)
                self.vector(b + "attn_k_norm.weight", d, 2 / math.sqrt(d), factor=large)   # attention scale is 1.0: scores of deviation ~2
                if has_v[i]:
                    self.matrix(b + "attn_v.weight", [n, d * kv], layer=i)
            self.matrix(b + "attn_output.weight", [d * c["heads"], n], layer=i)
            self.vector(b + "post_attention_norm.weight", n, 0.5)
            self.vector(b + "ffn_norm.weight", n)
            self.matrix(b + "ffn_gate.weight", [n, c["ff"][i]], layer=i)
            self.matrix(b + "ffn_up.weight", [n, c["ff"][i]], layer=i)
            self.matrix(b + "ffn_down.weight", [c["ff"][i], n], layer=i)
            self.vector(b + "post_ffw_norm.weight", n, 0.5)
            if c.get("experts"):
                E, _, F = c["experts"]
                self.matrix(b + "ffn_gate_inp.weight", [n, E], layer=i)
                self.vector(b + "ffn_gate_inp.scale", n, 1.5 * math.sqrt(n))
                self.vector(b + "pre_ffw_norm_2.weight", n)
                self.vector(b + "post_ffw_norm_1.weight", n)
                self.vector(b + "post_ffw_norm_2.weight", n)
                self.matrix(b + "ffn_gate_up_exps.weight", [n, 2 * F, E], layer=i)
                self.matrix(b + "ffn_down_exps.weight", [F, n, E], layer=i)
                self.vector(b + "ffn_down_exps.scale", E, 1.0, 0.25)
            if P:
                self.matrix(b + "inp_gate.weight", [n, P], layer=i)
                self.matrix(b + "proj.weight", [P, n], layer=i)
                self.vector(b + "post_norm.weight", n, 0.5)
            u = g.random_unit(g.seed_of(self.seed, b + "layer_output_scale"), 0, 1)
            self.raw(b + "layer_output_scale.weight", np.float32(0.8) + np.float32(0.2) * u)
            if c.get("canvas"):
                u = g.random_unit(g.seed_of(self.seed, b + "enc_layer_output_scale"), 0, 1)
                self.raw(b + "enc_layer_output_scale.weight", np.float32(0.8) + np.float32(0.2) * u)
        if c.get("canvas"):
            F = c["ff"][0]
            self.vector("self_cond_pre_norm.weight", n)
            self.matrix("self_cond_gate.weight", [n, F])
            self.matrix("self_cond_up.weight", [n, F])
            self.matrix("self_cond_down.weight", [F, n])


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("preset", choices=sorted(PRESETS))
    ap.add_argument("out")
    ap.add_argument("--type", default="f32", choices=sorted(FILE_TYPE))
    ap.add_argument("--seed", default="1")
    ap.add_argument("--vocab", type=int)
    ap.add_argument("--layers", type=int, help="keep only the first N layers (drops the shared-KV tail)")
    ap.add_argument("--ctx", type=int, help="context_length")
    ap.add_argument("--chat-template")
    ap.add_argument("--full-tensors", action="store_true",
                    help="K and V tensors on the shared-KV layers too, as published E2B and E4B files have them")
    ap.add_argument("--loose-mins", action="store_true", help="q4_k, q5_k: minima that differ from the scales")
    ap.add_argument("--sharp", action="store_true", help="one token in 1024 has a large logit, so that distributions are sharp")
    ap.add_argument("--outliers", action="store_true", help="a few channels of the keys are much larger than the others")
    ap.add_argument("--layout", default="llama.cpp", choices=["llama.cpp", "ollama"])
    ap.add_argument("--early", action="store_true", help="experts as in Ollama's first files: separate gate and up, old scale name")
    ap.add_argument("--holes", action="store_true", help="no weights: a file of the same size that takes little space")
    ap.add_argument("--quiet", action="store_true")
    a = ap.parse_args(argv)
    cfg = dict(PRESETS[a.preset])
    if a.vocab:
        cfg["vocab"] = a.vocab
    if a.ctx:
        cfg["ctx"] = a.ctx
    if a.layers:
        cfg.update(pat=cfg["pat"][:a.layers], ff=cfg["ff"][:a.layers], shared=0)
    m = Model(cfg, a.type, a.seed, a.layout == "ollama", a.full_tensors, a.loose_mins, a.sharp, a.outliers)
    m.metadata(a.preset, open(a.chat_template, encoding="utf-8").read() if a.chat_template else None)
    m.build()
    if a.early:
        gguf_ollama.early_experts(m.w)
    if a.layout == "ollama":
        gguf_ollama.relayout(m.w)
    m.w.save(a.out, a.holes)
    if a.quiet:
        return
    total = sum(int(np.prod(ne, dtype=np.int64)) for _, _, ne, _ in m.w.tensors)
    size = sum(g.nbytes(t, ne) for _, t, ne, _ in m.w.tensors)
    print(f"{a.out}: {len(m.w.tensors)} tensors, {total / 1e6:.2f} M weights, {size / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
