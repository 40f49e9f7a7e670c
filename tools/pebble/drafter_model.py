"""Pebble's drafter ("assistant"), and Pebble's text model as it needs it: the states and keys that a drafter reads.

A drafter has no keys of its own. Its row at position n takes token n and the state before it, sees the target's keys of all
positions before n (its sliding layers the last WINDOW + 1), and predicts token n + 1 and its own next state; with that state and
the predicted token it predicts the token after, always at position n.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, TARGET, HEADS, WINDOW = 4096, 256, 4, 256
HEAD = {"sliding": 64, "full": 128}
EPS, CAP = 1e-6, 30.0


def norm(x, w=None):
    return F.rms_norm(x.float(), (x.shape[-1],), w, EPS)


def frequencies(kind):
    """angles per position of each pair of a head's values; full layers rotate the first quarter only"""
    half = HEAD[kind] // 2
    j = torch.arange(half)
    if kind == "sliding":
        return 1e4 ** (-j / half)
    return torch.where(j < half // 4, 1e6 ** (-j / half), torch.zeros(()))


def rope(x, angle):
    """x (b, rows, heads, d), angle (rows, d / 2) or (b, rows, d / 2)"""
    cos, sin = angle.cos().unsqueeze(-2).to(x.dtype), angle.sin().unsqueeze(-2).to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def geglu(gate, up):
    return F.gelu(gate, approximate="tanh") * up


def attend(q, k, v, mask):
    """q (b, rows, heads, d), k and v (b, n, 1, d), mask (rows, 1, n) or (b, rows, 1, n) -> (b, rows, heads * d)"""
    b, rows, heads, d = q.shape
    s = q.reshape(b, rows * heads, d) @ k[:, :, 0].mT                # one key for all heads
    s = s.view(b, rows, heads, -1).masked_fill(~mask, -1e9).softmax(-1).to(v.dtype)
    return (s.view(b, rows * heads, -1) @ v[:, :, 0]).view(b, rows, heads * d)


class Target:
    """Pebble's text model with the weights of its file, for whole texts; nothing is learned."""

    def __init__(self, reader, device):
        kv = reader.kv
        self.kinds = ["sliding" if s else "full" for s in kv["gemma4.attention.sliding_window_pattern"]]
        self.owners = len(self.kinds) - kv["gemma4.attention.shared_kv_layers"]
        self.ple = kv["gemma4.embedding_length_per_layer_input"]
        self.w = {n: torch.tensor(np.ascontiguousarray(reader.get(n), np.float32), device=device)
                  for n in reader.tensors if not n.startswith(("v.", "a.", "mm."))}
        self.freq = {k: frequencies(k).to(device) for k in HEAD}

    @torch.no_grad()
    def __call__(self, ids):
        """ids (b, n) -> states after the last norm (b, n, TARGET), {kind: (k, v)} of the last caches"""
        w, n = self.w, ids.shape[1]
        position = torch.arange(n, device=ids.device)
        back = (position[:, None] - position[None, :])[:, None]
        masks = {"full": back >= 0, "sliding": (back >= 0) & (back < WINDOW)}
        angle = {k: position[:, None].float() * f for k, f in self.freq.items()}
        x = F.embedding(ids, w["token_embd.weight"]) * math.sqrt(TARGET)
        context = F.linear(x, w["per_layer_model_proj.weight"]).unflatten(-1, (-1, self.ple))
        token = F.embedding(ids, w["per_layer_token_embd.weight"]).unflatten(-1, (-1, self.ple)) * math.sqrt(self.ple)
        ple = (F.rms_norm(context.float(), (self.ple,), w["per_layer_proj_norm.weight"], EPS * TARGET) + token) * 0.5 ** 0.5
        caches = {}
        for i, kind in enumerate(self.kinds):
            at = lambda name: w[f"blk.{i}.{name}.weight"]
            a, d = norm(x, at("attn_norm")), HEAD[kind]
            if i < self.owners:
                k = rope(norm(F.linear(a, at("attn_k"))[:, :, None], at("attn_k_norm")), angle[kind])
                caches[kind] = k, norm(F.linear(a, at("attn_v"))[:, :, None])
            q = rope(norm(F.linear(a, at("attn_q")).unflatten(-1, (HEADS, d)), at("attn_q_norm")), angle[kind])
            o = attend(q, *caches[kind], masks[kind])
            x = x + norm(F.linear(o, at("attn_output")), at("post_attention_norm"))
            f = norm(x, at("ffn_norm"))
            f = F.linear(geglu(F.linear(f, at("ffn_gate")), F.linear(f, at("ffn_up"))), at("ffn_down"))
            x = x + norm(f, at("post_ffw_norm"))
            g = F.linear(geglu(F.linear(x, at("inp_gate")), ple[:, :, i]), at("proj"))
            x = (x + norm(g, at("post_norm"))) * at("layer_output_scale")
        return norm(x, w["output_norm.weight"]), caches

    @torch.no_grad()
    def logits(self, state):
        return CAP * torch.tanh(F.linear(state, self.w["token_embd.weight"]).float() / CAP)


def matrix(rows, cols):
    return nn.Parameter(torch.randn(rows, cols) / math.sqrt(cols))


def ones(n, value=1.0):
    return nn.Parameter(torch.full((n,), value))


class Layer(nn.Module):
    def __init__(self, kind, width, ffn):
        super().__init__()
        d, self.kind = HEAD[kind], kind
        self.attn_q, self.attn_output = matrix(HEADS * d, width), matrix(width, HEADS * d)
        self.ffn_gate, self.ffn_up, self.ffn_down = matrix(ffn, width), matrix(ffn, width), matrix(width, ffn)
        self.attn_norm, self.ffn_norm, self.attn_q_norm = ones(width), ones(width), ones(d)
        self.post_attention_norm, self.post_ffw_norm = ones(width, 0.5), ones(width, 0.5)
        self.layer_output_scale = ones(1)

    def forward(self, x, cache, mask, angle):
        a = norm(x, self.attn_norm)
        q = rope(norm(F.linear(a, self.attn_q).unflatten(-1, (HEADS, -1)), self.attn_q_norm), angle)
        x = x + norm(F.linear(attend(q, *cache, mask), self.attn_output), self.post_attention_norm)
        f = norm(x, self.ffn_norm)
        f = F.linear(geglu(F.linear(f, self.ffn_gate), F.linear(f, self.ffn_up)), self.ffn_down)
        return (x + norm(f, self.post_ffw_norm)) * self.layer_output_scale


class Drafter(nn.Module):
    def __init__(self, kinds, width, ffn, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        self.kinds, self.width, self.ffn = kinds, width, ffn
        self.token_embd = nn.Parameter(torch.randn(VOCAB, width) * 0.04)
        self.output_norm = ones(width)
        self.pre_projection, self.post_projection = matrix(width, 2 * TARGET), matrix(TARGET, width)
        self.blk = nn.ModuleList(Layer(k, width, ffn) for k in kinds)
        for k in HEAD:
            self.register_buffer("freq_" + k, frequencies(k), persistent=False)

    @torch.no_grad()
    def begin_like(self, target):
        """Begins as a drafter that repeats the state which it was given: head and projections are the directions in which the
        target's embeddings differ most."""
        e = target.w["token_embd.weight"]
        v = torch.linalg.svd(e, full_matrices=False).Vh[:self.width]
        self.token_embd.copy_(e @ v.T)
        self.pre_projection[:, TARGET:] = v
        self.pre_projection[:, :TARGET] *= 0.5
        self.post_projection.copy_(v.T)

    def surroundings(self, rows, n):
        """masks (b, r, 1, n) and angles (b, r, d / 2) of the positions `rows` (b, r), all above 0"""
        back = rows[..., None] - torch.arange(n, device=rows.device)
        masks = {"full": (back > 0)[:, :, None], "sliding": ((back > 0) & (back <= WINDOW + 1))[:, :, None]}
        return masks, {k: rows[..., None].float() * getattr(self, "freq_" + k) for k in HEAD}

    def forward(self, embedded, state, caches, masks, angle):
        """embedded tokens and states (b, r, TARGET) -> logits (b, r, VOCAB), next states"""
        x = F.linear(torch.cat([embedded, state.to(embedded.dtype)], -1), self.pre_projection)
        for layer in self.blk:
            x = layer(x, caches[layer.kind], masks[layer.kind], angle[layer.kind])
        z = norm(x, self.output_norm)
        return F.linear(z, self.token_embd), F.linear(z, self.post_projection)
