"""Pebble Diffusion: DiffusionGemma's layers with small sizes, written for fast training.

One pass holds the committed tokens and all canvases of a story: committed rows are causal, a canvas sees the committed tokens
before it and itself. This is the same function as the official class's encoder and decoder (diffusion_official.py compares
them); all experts are computed, and those that were not chosen have weight 0.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, HEADS, WINDOW, CONTEXT, CANVAS = 4096, 256, 4, 256, 2048, 64
PATTERN = ["sliding_attention", "sliding_attention", "full_attention"] * 2
KV = {"sliding_attention": 2, "full_attention": 1}
HEAD = {"sliding_attention": 64, "full_attention": 128}
FFN, EXPERTS, USED, EXPERT_FFN = 256, 4, 2, 64
EPS, CAP = 1e-6, 30.0


def norm(x, w=None):
    return F.rms_norm(x.float(), (x.shape[-1],), w, EPS)


def matrix(rows, cols, *front):
    return nn.Parameter(torch.randn(*front, rows, cols) / math.sqrt(cols))


def ones(n, value=1.0):
    return nn.Parameter(torch.full((n,), value))


def turning(kind):
    """angles per position of each pair of a head's values; full layers rotate the first quarter only"""
    half = HEAD[kind] // 2
    j = torch.arange(half)
    if kind == "sliding_attention":
        return 1e4 ** (-j / half)
    return torch.where(j < half // 4, 1e6 ** (-j / half), torch.zeros(()))


def rope(x, angle):
    """x (b, rows, heads, d), angle (b, rows, d / 2)"""
    cos, sin = angle.cos()[:, :, None].to(x.dtype), angle.sin()[:, :, None].to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def geglu(gate, up):
    return F.gelu(gate, approximate="tanh") * up


class Layer(nn.Module):
    def __init__(self, kind):
        super().__init__()
        d, kv = HEAD[kind], KV[kind]
        self.kind = kind
        self.q, self.k, self.o = matrix(HEADS * d, WIDTH), matrix(kv * d, WIDTH), matrix(WIDTH, HEADS * d)
        self.v = matrix(kv * d, WIDTH) if kind == "sliding_attention" else None
        self.q_norm, self.k_norm = ones(d), ones(d, 1 / math.sqrt(d))     # the scale is 1: scores start with deviation 1
        self.input_norm, self.post_attention = ones(WIDTH), ones(WIDTH, 0.5)
        self.pre_ffn, self.post_ffn, self.post_ffn_1 = ones(WIDTH), ones(WIDTH, 0.5), ones(WIDTH)
        self.pre_ffn_2, self.post_ffn_2 = ones(WIDTH), ones(WIDTH)
        self.gate, self.up, self.down = matrix(FFN, WIDTH), matrix(FFN, WIDTH), matrix(WIDTH, FFN)
        self.router, self.router_scale, self.expert_scale = matrix(EXPERTS, WIDTH), ones(WIDTH), ones(EXPERTS)
        self.expert_in, self.expert_out = matrix(2 * EXPERT_FFN, WIDTH, EXPERTS), matrix(WIDTH, EXPERT_FFN, EXPERTS)
        self.encoder_scale, self.canvas_scale = ones(1), ones(1)

    def attend(self, x, angle, mask, skip):
        """queries of the rows from `skip` on, keys of all rows"""
        b, n, d, kv = x.shape[0], x.shape[1], HEAD[self.kind], KV[self.kind]
        a = norm(x, self.input_norm)
        q = norm(F.linear(a[:, skip:], self.q).view(b, n - skip, HEADS, d), self.q_norm)
        raw = F.linear(a, self.k).view(b, n, kv, d)
        v = norm(raw if self.v is None else F.linear(a, self.v).view(b, n, kv, d))
        q, k = rope(q, angle[:, skip:]), rope(norm(raw, self.k_norm), angle)
        q, k, v = (t.transpose(1, 2).to(torch.bfloat16 if x.is_cuda else x.dtype) for t in (q, k, v))
        k, v = (t.repeat_interleave(HEADS // kv, 1) for t in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, skip:], scale=1.0)
        return F.linear(out.transpose(1, 2).reshape(b, n - skip, -1), self.o)

    def route(self, y):
        """-> weights (b, rows, experts), 0 where an expert is not chosen; how uneven the experts are used"""
        with torch.autocast(y.device.type, enabled=False):
            p = F.softmax(F.linear(norm(y) * self.router_scale * WIDTH ** -0.5, self.router), -1)
        order = torch.arange(EXPERTS, device=y.device)
        better = (p[..., None, :] > p[..., None]) | ((p[..., None, :] == p[..., None]) & (order[None, :] < order[:, None]))
        chosen = (better.sum(-1) < USED).float()
        w = p * chosen
        uneven = EXPERTS * (chosen.mean((0, 1)) / USED * p.mean((0, 1))).sum()
        return w / w.sum(-1, keepdim=True) * self.expert_scale, uneven

    def forward(self, x, angle, mask, committed, last):
        """x (b, rows, width), the first `committed` rows are the encoder's; last: return the canvas rows only"""
        skip = committed if last else 0
        y = x[:, skip:] + norm(self.attend(x, angle, mask, skip), self.post_attention)
        n = norm(y, self.pre_ffn)
        dense = norm(F.linear(geglu(F.linear(n, self.gate), F.linear(n, self.up)), self.down), self.post_ffn_1)
        w, uneven = self.route(y)
        both = F.linear(norm(y, self.pre_ffn_2), self.expert_in.flatten(0, 1)).unflatten(-1, (EXPERTS, 2, EXPERT_FFN))
        act = geglu(both[..., 0, :], both[..., 1, :]) * w[..., None].to(both.dtype)
        expert = F.linear(act.flatten(-2), self.expert_out.transpose(0, 1).flatten(1))
        z = y + norm(dense + norm(expert, self.post_ffn_2), self.post_ffn)
        if last:
            return z * self.canvas_scale, uneven
        return torch.cat([z[:, :committed] * self.encoder_scale, z[:, committed:] * self.canvas_scale], 1), uneven


class Net(nn.Module):
    def __init__(self, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Parameter(torch.randn(VOCAB, WIDTH) * 0.04)
        self.layers = nn.ModuleList(Layer(k) for k in PATTERN)
        self.out_norm, self.self_norm = ones(WIDTH), ones(WIDTH)
        self.self_gate, self.self_up, self.self_down = matrix(FFN, WIDTH), matrix(FFN, WIDTH), matrix(WIDTH, FFN)
        for k in HEAD:
            self.register_buffer("turn_" + k, turning(k), persistent=False)

    def soft(self, logits, temperature):
        """input of the next step: the mean embedding of this step's distribution, without the factor sqrt(width)"""
        p = F.softmax(logits / temperature, -1)
        return p.to(torch.bfloat16 if p.is_cuda else p.dtype) @ self.embed.to(torch.bfloat16 if p.is_cuda else p.dtype)

    def forward(self, committed, canvas, position, masks, soft=None):
        """ids (b, m) and (b, n), positions (b, m + n), masks {kind: (b, m + n, m + n) bool}, soft (b, n, width) ->
        logits (b, n, vocab), uneven use of experts"""
        m, root = committed.shape[1], math.sqrt(WIDTH)
        embedded = F.embedding(canvas, self.embed) * root
        if soft is not None:
            u = norm(soft.float() * root, self.self_norm)
            embedded = embedded + F.linear(geglu(F.linear(u, self.self_gate), F.linear(u, self.self_up)), self.self_down)
        x = torch.cat([F.embedding(committed, self.embed) * root, norm(embedded)], 1)
        angle = {k: position[..., None].float() * getattr(self, "turn_" + k) for k in HEAD}
        uneven = 0
        for i, layer in enumerate(self.layers):
            x, u = layer(x, angle[layer.kind], masks[layer.kind], m, i + 1 == len(self.layers))
            uneven = uneven + u
        z = F.linear(norm(x, self.out_norm), self.embed).float()
        return CAP * torch.tanh(z / CAP), uneven / len(self.layers)


def layout(prompt, room, canvases, device):
    """prompt (b,): its lengths; room: capacity of committed rows -> positions (b, room + canvases * CANVAS) and masks

    Committed row r has position r; canvas c starts at prompt + c * CANVAS and sees the committed tokens before it."""
    b, n = len(prompt), canvases * CANVAS
    row = torch.arange(room, device=device).expand(b, room)
    number = torch.arange(n, device=device) // CANVAS
    begin = prompt[:, None] + number * CANVAS                                  # first position of each canvas row's canvas
    position = torch.cat([row, begin + torch.arange(n, device=device) % CANVAS], 1)
    back = row[:, :, None] - row[:, None, :]
    causal = back >= 0
    before = row[:, None, :] < begin[:, :, None]
    own = (number[:, None] == number[None, :]).expand(b, n, n)
    none = torch.zeros(b, room, n, dtype=torch.bool, device=device)
    join = lambda a, p: torch.cat([torch.cat([a, none], 2), torch.cat([p, own], 2)], 1)
    near = before & (row[:, None, :] > begin[:, :, None] - WINDOW)             # the last WINDOW - 1, the same for the whole canvas
    return position, {"full_attention": join(causal, before), "sliding_attention": join(causal & (back < WINDOW), near)}


# ---- the sampler -----------------------------------------------------------------------

@torch.no_grad()
def generate(net, prompts, canvases=4, steps=48, t_min=0.4, t_max=0.8, bound=0.1, confidence=0.005, ends=(1, 106, 50), seed=1):
    """prompts: lists of ids -> answers (lists of ids up to an end token or None where none came), steps per canvas"""
    dev = net.embed.device
    g = torch.Generator(device=dev).manual_seed(seed)
    b = len(prompts)
    answers, taken, open_ = [[] for _ in prompts], [], set(range(b))
    for _ in range(canvases):
        live = sorted(open_)
        if not live:
            break
        text = [prompts[i] + answers[i] for i in live]
        length = torch.tensor([len(t) for t in text], device=dev)
        room = -(-int(length.max()) // 8) * 8
        committed = torch.tensor([t + [0] * (room - len(t)) for t in text], device=dev)
        position, masks = layout(length, room, 1, dev)
        x = torch.randint(VOCAB, (len(live), CANVAS), device=dev, generator=g)
        soft, best, done = None, None, torch.zeros(len(live), dtype=torch.bool, device=dev)
        result, used = torch.zeros_like(x), torch.zeros(len(live), device=dev)
        for s in range(steps, 0, -1):
            with torch.autocast(dev.type, dtype=torch.bfloat16, enabled=dev.type == "cuda"):
                logits, _ = net(committed, x, position, masks, soft)
            t = t_min + (t_max - t_min) * s / steps
            logp = F.log_softmax(logits / t, -1)
            entropy = -(logp.exp() * logp).sum(-1)
            drawn = torch.multinomial(logp.exp().flatten(0, 1), 1, generator=g).view_as(x)
            order = entropy.argsort(-1)
            sorted_ = entropy.gather(-1, order)
            take = torch.zeros_like(done[:, None].expand_as(x)).scatter(-1, order, sorted_.cumsum(-1) - sorted_ <= bound)
            now = logits.argmax(-1)
            result = torch.where(done[:, None], result, now)
            used += (~done).float()
            if best is not None:
                done = done | ((now == best).all(-1) & (entropy.mean(-1) < confidence))
            best, soft = now, net.soft(logits, t)
            if done.all():
                break
            x = torch.where(take, drawn, torch.randint(VOCAB, x.shape, device=dev, generator=g))
        taken += used.tolist()
        for i, ids in zip(live, result.tolist()):
            end = next((k for k, v in enumerate(ids) if v in ends), None)
            answers[i] += ids if end is None else ids[:end + 1]
            if end is not None:
                open_.discard(i)
    return [a if i not in open_ else a + [None] for i, a in enumerate(answers)], taken
