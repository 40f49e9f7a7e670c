#!/usr/bin/env python3
"""Gemma 4 text model in numpy, float64: the plain statement of the mathematics.

  gemma4_ref.py MODEL.gguf --tokens 2,5,7 [--out LOGITS.f32] [--compare LOGITS.f32] [--greedy N]

For small models only. Weights are dequantized, intermediate values are not rounded, and the
whole sequence is computed at once without a cache.
"""
import argparse

import numpy as np
from gguf_io import Reader


def rms(x, eps, w=None):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y if w is None else y * w


def gelu(x):                                           # tanh form
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x)))


def rope(x, base, factors):
    """x: [tokens, heads, d]; pairs are (i, i + d/2)"""
    T, _, d = x.shape
    inv = base ** (-2.0 * np.arange(d // 2) / d) / factors
    ang = (np.arange(T)[:, None] * inv[None, :])[:, None, :]
    c, s = np.cos(ang), np.sin(ang)
    a, b = x[..., :d // 2], x[..., d // 2:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


class Model:
    def __init__(self, path):
        self.r = Reader(path)
        self.cache = {}
        kv = lambda k, d=None: self.r.kv.get("gemma4." + k, d)
        self.L = kv("block_count")
        self.n = kv("embedding_length")
        per_layer = lambda v: v if isinstance(v, list) else [v] * self.L
        self.heads = per_layer(kv("attention.head_count"))
        self.kv_heads = per_layer(kv("attention.head_count_kv"))
        self.sliding = kv("attention.sliding_window_pattern")
        self.window = kv("attention.sliding_window")
        self.first_shared = self.L - kv("attention.shared_kv_layers", 0)
        self.hd = (kv("attention.key_length"), kv("attention.key_length_swa"))
        self.base = (kv("rope.freq_base"), kv("rope.freq_base_swa"))
        self.eps = kv("attention.layer_norm_rms_epsilon")
        self.P = kv("embedding_length_per_layer_input", 0)
        self.cap = kv("final_logit_softcapping", 0)
        self.top_k = kv("expert_used_count", 0)

    def t(self, name):
        if name not in self.r.tensors:
            return None
        if name not in self.cache:
            self.cache[name] = self.r.get(name).astype(np.float64)
        return self.cache[name]

    def ffn(self, b, x):
        return (gelu(x @ self.t(b + "ffn_gate.weight").T) * (x @ self.t(b + "ffn_up.weight").T)) @ self.t(b + "ffn_down.weight").T

    def experts(self, b, router_in, x):
        w, scale = self.t(b + "ffn_gate_inp.weight"), self.t(b + "ffn_gate_inp.scale")
        logits = (rms(router_in, self.eps) / np.sqrt(self.n) * scale) @ w.T
        p = np.exp(logits - logits.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        gu, down, ds = (self.t(b + k) for k in ("ffn_gate_up_exps.weight", "ffn_down_exps.weight", "ffn_down_exps.scale"))
        if gu is None:                                 # Ollama's early files have two tensors
            gu = np.concatenate([self.t(b + "ffn_gate_exps.weight"), self.t(b + "ffn_up_exps.weight")], 1)
        if ds is None:
            ds = self.t(b + "ffn_gate_inp.per_expert_scale")
        F = down.shape[2]
        out = np.zeros_like(x)
        for i in range(len(x)):
            pick = np.argsort(-p[i], kind="stable")[:self.top_k]
            weight = p[i][pick] / p[i][pick].sum()
            for e, we in zip(pick, weight):
                h = gu[e] @ x[i]
                out[i] += we * ds[e] * (down[e] @ (gelu(h[:F]) * h[F:]))
        return out

    def logits(self, tokens, trace=None, images=(), bidirectional=True):
        """images: (first position, embeddings) pairs that replace the tokens there, which should
        be 0 (the padding token selects their per-layer embedding). bidirectional: an image's positions
        see each other in both directions; "sliding": within the window, on sliding layers only, as the official
        implementation does for 26B and 31B; "whole": also beyond the window, on all layers, as for 12B."""
        T, n, L, eps = len(tokens), self.n, self.L, self.eps
        x = self.t("token_embd.weight")[tokens] * np.sqrt(n)
        group = np.full(T, -1)
        for k, (pos, v) in enumerate(images):
            x[pos:pos + len(v)] = v
            group[pos:pos + len(v)] = k if bidirectional else -1
        ple = None
        if self.P:
            per_token = self.t("per_layer_token_embd.weight")[tokens].reshape(T, L, self.P) * np.sqrt(self.P)
            proj = (x @ self.t("per_layer_model_proj.weight").T / np.sqrt(n)).reshape(T, L, self.P)
            proj = rms(proj, eps, self.t("per_layer_proj_norm.weight"))
            ple = (proj + per_token) / np.sqrt(2)
        i, j = np.arange(T)[:, None], np.arange(T)[None, :]
        saved = {}
        for l in range(L):
            b = f"blk.{l}."
            sl = self.sliding[l]
            d, H, K = self.hd[sl], self.heads[l], self.kv_heads[l]
            factors = 1.0 if sl else self.t("rope_freqs.weight")
            h = rms(x, eps, self.t(b + "attn_norm.weight"))
            q = rms((h @ self.t(b + "attn_q.weight").T).reshape(T, H, d), eps, self.t(b + "attn_q_norm.weight"))
            q = rope(q, self.base[sl], factors)
            if l < self.first_shared:
                k = (h @ self.t(b + "attn_k.weight").T).reshape(T, K, d)
                wv = self.t(b + "attn_v.weight")
                v = k if wv is None else (h @ wv.T).reshape(T, K, d)
                k = rope(rms(k, eps, self.t(b + "attn_k_norm.weight")), self.base[sl], factors)
                v = rms(v, eps)
                saved[sl] = (k, v)
            else:
                k, v = saved[sl]                       # of the last layer of this kind that has its own
            together = (group[:, None] == group[None, :]) & (group[:, None] >= 0)
            mask = ((j > i) & ~together) | ((i - j >= self.window) if sl else False)
            if bidirectional == "sliding" and not sl:
                mask = j > i
            elif bidirectional == "whole":
                mask &= ~together
            rep = H // k.shape[1]
            s = np.einsum("ihd,jhd->hij", q, np.repeat(k, rep, 1))
            s = np.where(mask[None], -np.inf, s)
            s = np.exp(s - s.max(-1, keepdims=True))
            s /= s.sum(-1, keepdims=True)
            o = np.einsum("hij,jhd->ihd", s, np.repeat(v, rep, 1)).reshape(T, H * d)
            o = rms(o @ self.t(b + "attn_output.weight").T, eps, self.t(b + "post_attention_norm.weight"))
            a = x + o
            f = self.ffn(b, rms(a, eps, self.t(b + "ffn_norm.weight")))
            if self.t(b + "ffn_gate_inp.weight") is not None:
                f = rms(f, eps, self.t(b + "post_ffw_norm_1.weight"))
                m = self.experts(b, a, rms(a, eps, self.t(b + "pre_ffw_norm_2.weight")))
                f = f + rms(m, eps, self.t(b + "post_ffw_norm_2.weight"))
            x = a + rms(f, eps, self.t(b + "post_ffw_norm.weight"))
            if ple is not None:
                e = gelu(x @ self.t(b + "inp_gate.weight").T) * ple[:, l]
                x = x + rms(e @ self.t(b + "proj.weight").T, eps, self.t(b + "post_norm.weight"))
            scale = self.t(b + "layer_output_scale.weight")
            if scale is not None:
                x = x * scale
            if trace is not None:
                trace.append(x.copy())
        x = rms(x, eps, self.t("output_norm.weight"))
        out = self.t("output.weight") if "output.weight" in self.r.tensors else self.t("token_embd.weight")
        y = x @ out.T
        return self.cap * np.tanh(y / self.cap) if self.cap else y


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--tokens", required=True)
    ap.add_argument("--out")
    ap.add_argument("--compare", nargs="*", default=[])
    ap.add_argument("--greedy", type=int, default=0)
    a = ap.parse_args()
    m = Model(a.model)
    tokens = [int(t) for t in a.tokens.split(",")]
    y = m.logits(tokens)
    if a.out:
        y.astype(np.float32).tofile(a.out)
    for path in a.compare:
        z = np.fromfile(path, np.float32).reshape(y.shape)
        d = np.abs(z - y)
        per = d.max(1)
        print(f"{path}: max {d.max():.3g} rms {np.sqrt((d ** 2).mean()):.3g} worst position {per.argmax()} "
              f"median of positions' max {np.median(per):.3g} argmax equal {(y.argmax(1) == z.argmax(1)).sum()}/{len(y)}")
    if a.greedy:
        out = []
        for _ in range(a.greedy):
            out.append(int(y[-1].argmax()))
            tokens.append(out[-1])
            y = m.logits(tokens)
        print("greedy:", ",".join(map(str, out)))


if __name__ == "__main__":
    main()
