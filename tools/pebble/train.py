"""Trains Pebble: train.py --seconds N [--resume FILE] [--lr A --lr-end B] [--qat] ...

Text, images and speech together, every batch new: worker processes generate conversations, scenes and spoken
phrases; images are drawn and spectra computed on the GPU. The schedule follows the clock, to fit a given time on a GPU.
The same seed produces the same data; the number of steps depends on the machine.
"""
import argparse
import os
import queue
import random
import sys
import time

import multiprocessing as mp

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES_70 = [(384, 384), (384, 384), (384, 384), (336, 432), (432, 336), (288, 528), (528, 288), (288, 480), (480, 288), (480, 336), (336, 480)]
SIZES_280 = [(768, 768), (672, 912), (912, 672), (528, 528), (480, 624), (624, 480)]


def encoder():
    import tokenizer
    return tokenizer.Tokenizer(os.path.join(HERE, "tokenizer.json"))


def expand(ids, learn, marker, begin, end, n):
    """one marker becomes begin, n markers, end"""
    k = ids.index(marker)
    return ids[:k] + [begin] + [marker] * n + [end] + ids[k + 1:], learn[:k] + [False] * (n + 2) + learn[k + 1:]


def pad(rows, multiple=32, limit=2048):
    """rows of (ids, learn) -> uint16 (n, L), bool (n, L)"""
    longest = min(max(len(i) for i, _ in rows), limit)
    longest = -(-longest // multiple) * multiple
    ids, learn = np.zeros((len(rows), longest), np.uint16), np.zeros((len(rows), longest), bool)
    for k, (i, l) in enumerate(rows):
        ids[k, :len(i[:longest])] = i[:longest]
        learn[k, :len(l[:longest])] = l[:longest]
    return ids, learn


def text_worker(q, seed, tokens, wide):
    import chat_format
    import text_data
    text_data.WIDE["on"] = wide
    t, r = encoder(), random.Random(seed)
    while True:
        rows = [t.encode_segments(chat_format.segments(text_data.conversation(r))) for _ in range(2400)]
        rows.sort(key=lambda x: len(x[0]))
        batches, k = [], 0
        while k < len(rows):
            n = 1
            while k + n < len(rows) and (n + 1) * len(rows[k + n][0]) <= tokens:
                n += 1
            batches.append(pad(rows[k:k + n]))
            k += n
        r.shuffle(batches)
        for b in batches:
            q.put(b)


def picture_worker(q, seed, batch):
    import chat_format
    import draw
    import media_data
    import torch
    torch.set_num_threads(1)
    t, r = encoder(), random.Random(seed)
    i = {k: t.ids[k] for k in ("<|image|>", "<|image>", "<image|>")}
    while True:
        big = r.random() < 0.12
        h, w = r.choice(SIZES_280 if big else SIZES_70)
        n = batch // 4 if big else batch
        scenes = [media_data.scene(r) for _ in range(n)]
        rows = [expand(*t.encode_segments(chat_format.segments(media_data.picture_conversation(r, s))), i["<|image|>"], i["<|image>"], i["<image|>"], h * w // 2304) for s in scenes]
        q.put((h, w, [x.numpy() for x in draw.pack(scenes)], *pad(rows)))


def speech_worker(q, seed, total):
    os.environ.setdefault("PEBBLE_SPEECH", os.path.join(HERE, "speech"))
    import media_data
    import speech
    r = random.Random(seed)
    for _ in range(total):
        got = []
        for _ in range(16):
            text = media_data.phrase(r)
            got.append((text, (speech.random_speech(r, text)[:80000] * 32767).astype(np.int16)))
        q.put(got)


class Speech:
    """clips in GPU memory, padded to four lengths"""
    ROOM = [16000, 24000, 36000, 80000]

    def __init__(self, torch, device, most):
        self.torch, self.dev = torch, device
        share = [0.35, 0.35, 0.2, 0.1]
        self.clip = [torch.zeros(int(most * s), n, dtype=torch.int16, device=device) for s, n in zip(share, self.ROOM)]
        self.text = [[] for _ in self.ROOM]
        self.n = [[] for _ in self.ROOM]

    def add(self, got):
        """got: [(text, int16 samples)]; one copy per padded length"""
        new = [([], []) for _ in self.ROOM]
        for text, x in got:
            k = next((k for k, n in enumerate(self.ROOM) if len(x) <= n - 6400), None)   # room for silence around it
            if k is None:
                continue
            at = len(self.text[k])
            if at == len(self.clip[k]):
                at = random.randrange(at)
                self.text[k][at], self.n[k][at] = text, len(x)
            else:
                self.text[k].append(text)
                self.n[k].append(len(x))
            row = np.zeros(self.ROOM[k], np.int16)
            row[:len(x)] = x
            new[k][0].append(at)
            new[k][1].append(row)
        for k, (at, rows) in enumerate(new):
            if at:
                self.clip[k][self.torch.tensor(at, device=self.dev)] = self.torch.from_numpy(np.stack(rows)).to(self.dev)

    def size(self):
        return sum(map(len, self.text))

    def batch(self, r, t, batch, plain=False):
        """-> waves (n, samples), lengths, texts; moved, scaled and noisy unless plain"""
        torch = self.torch
        sizes = [len(x) for x in self.text]
        k = r.choices(range(4), sizes)[0]
        n = min(batch if k < 3 else batch // 2, sizes[k])
        pick = [r.randrange(sizes[k]) for _ in range(n)]
        x = self.clip[k][torch.tensor(pick, device=self.dev)].float() / 32768
        lens = torch.tensor([self.n[k][i] for i in pick])
        room = self.ROOM[k]
        lead = (torch.rand(n) * 4800).long()
        tail = (torch.rand(n) * 1600).long()
        idx = torch.arange(room, device=self.dev)[None] - lead.to(self.dev)[:, None]
        x = torch.where(idx >= 0, x.gather(1, idx.clamp(min=0)), 0)
        total = (lead + lens + tail).clamp(max=room)
        top = x.abs().amax(1, keepdim=True).clamp(min=1e-3)
        if not plain:
            gain = torch.exp(torch.empty(n, 1, device=self.dev).uniform_(-2.5, 0)) / top * 0.9
            noise = torch.randn_like(x)
            if r.random() < 0.5:
                noise = torch.cumsum(noise, 1)
                noise = noise - torch.nn.functional.avg_pool1d(noise[:, None], 401, 1, 200)[:, 0]
                noise = noise / noise.std(1, keepdim=True).clamp(min=1e-3)
            power = (x.pow(2).sum(1, keepdim=True) / lens.to(self.dev)[:, None]).sqrt()
            snr = torch.empty(n, 1, device=self.dev).uniform_(8, 45)
            some = (torch.rand(n, 1, device=self.dev) < 0.7).float()
            x = (x + some * noise * power * 10 ** (-snr / 20)) * gain
        live = torch.arange(room, device=self.dev)[None] < total.to(self.dev)[:, None]
        return x * live, total, [self.text[k][i] for i in pick]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, required=True)
    ap.add_argument("--out", default="out")
    ap.add_argument("--resume")
    ap.add_argument("--weights", help="folder of weights*.pt to begin with, without the optimizer's memory")
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--lr-end", type=float, default=2e-3)
    ap.add_argument("--warmup", type=int, default=200)
    ap.add_argument("--qat", action="store_true", help="text matrices rounded to 4 bits on the way through")
    ap.add_argument("--tokens", type=int, default=40960)
    ap.add_argument("--pictures", type=int, default=160)
    ap.add_argument("--clips", type=int, default=160)
    ap.add_argument("--workers", default="5,2,8")
    ap.add_argument("--pool", type=int, default=60000)
    ap.add_argument("--helper", type=float, default=0.3, help="weight of the auxiliary losses of the towers")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--steps", type=int, default=1 << 30)
    ap.add_argument("--wide", action="store_true", help="more invented names, unknown topics and JSON")
    ap.add_argument("--time", action="store_true", help="say where the time goes")
    ap.add_argument("--threads", type=int, default=0)
    a = ap.parse_args()
    start = time.time()
    sys.path.insert(0, HERE)
    ctx = mp.get_context("spawn")
    nt, ni, ns = map(int, a.workers.split(","))
    tq, pq, sq = ctx.Queue(64), ctx.Queue(24), ctx.Queue(400)
    procs = [ctx.Process(target=text_worker, args=(tq, f"text {a.seed} {k}", a.tokens, a.wide), daemon=True) for k in range(nt)]
    procs += [ctx.Process(target=picture_worker, args=(pq, f"picture {a.seed} {k}", a.pictures), daemon=True) for k in range(ni)]
    procs += [ctx.Process(target=speech_worker, args=(sq, f"speech {a.seed} {k}", 1 << 30), daemon=True) for k in range(ns)]
    for p in procs:
        p.start()
    import torch
    import torch.nn.functional as F
    if a.threads:
        torch.set_num_threads(a.threads)
    import chat_format
    import draw
    import media_data
    import model as M
    import words
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)        # it plans again for every shape
    M.fast_norms()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(a.seed)
    r = random.Random(f"main {a.seed}")
    t = encoder()
    model = M.create(t.ids).to(dev)
    model.train()
    n_pairs = len(media_data.SHAPES) * len(media_data.COLORS) + 1
    heads = torch.nn.ModuleDict({"cell": torch.nn.Linear(256, n_pairs), "ctc": torch.nn.Linear(256, len(words.SPOKEN) + 1)}).to(dev)
    print(M.count(model), flush=True)
    everything = torch.nn.ModuleDict({"model": model, "heads": heads})
    # text matrices live in one flat tensor so that rounding them takes a handful of kernels
    mats = [p for n, p in model.named_parameters() if p.dim() == 2 and "language_model" in n and "embed_tokens" not in n and p.shape[1] % 32 == 0]
    flat = torch.cat([p.detach().reshape(-1) for p in mats])
    at = 0
    for p in mats:
        p.data = flat[at:at + p.numel()].view(p.shape)
        at += p.numel()

    def rounded(x):
        g = x.view(-1, 32)
        low = g.amin(1, keepdim=True).clamp(max=0)
        step = ((g.amax(1, keepdim=True) - low) / 15).clamp(min=1e-9)
        return (torch.round((g - low) / step) * step + low).view(-1)

    decay = [p for p in everything.parameters() if p.dim() >= 2]
    rest = [p for p in everything.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=a.lr, betas=(0.9, 0.97), eps=1e-10, fused=dev == "cuda")
    step = 0
    if a.resume:
        state = torch.load(a.resume, map_location=dev, weights_only=False)
        everything.load_state_dict(state["model"])
        if "opt" in state:
            opt.load_state_dict(state["opt"])
        step = state.get("step", 0)
    if a.weights:
        import glob
        start_with = {}
        for f in sorted(glob.glob(os.path.join(a.weights, "weights*.pt"))):
            start_with.update(torch.load(f, map_location=dev, weights_only=True))
        model.load_state_dict({k: v.float() for k, v in start_with.items()})
    pool = Speech(torch, dev, a.pool)
    filters, window = M.mel_tables(dev)
    spoken = {x: k + 1 for k, x in enumerate(words.SPOKEN)}
    img_id, aud_id, boa, eoa = (t.ids[x] for x in ("<|image|>", "<|audio|>", "<|audio>", "<audio|>"))

    def up(x):
        x = torch.from_numpy(np.ascontiguousarray(x))
        return x.pin_memory().to(dev, non_blocking=True) if dev == "cuda" else x

    def to_gpu(ids, learn, marker=None):
        """ids; flat positions of the tokens to be learned; flat positions of the soft tokens"""
        ids = ids.astype(np.int64)
        learn = learn.copy()
        learn[:, 0] = False
        return up(ids), up(np.flatnonzero(learn)), None if marker is None else up(np.flatnonzero(ids == marker))

    def loss_of(ids, learn, soft=None, where=None):
        """mean loss of the model's own tokens, and which of them came out right"""
        h = M.hidden_states(model, ids, soft, where).flatten(0, 1)
        z = M.logits(model, h.index_select(0, learn - 1))
        target = ids.flatten().index_select(0, learn)
        return F.cross_entropy(z, target), (z.detach().argmax(-1) == target, learn // ids.shape[1])

    def picture_loss(b):
        h, w, packed, ids, learn = b
        kinds = torch.from_numpy(packed[0])
        packed = [up(x) for x in packed]
        scale = r.choice([1, 1, 1.5, 2, 0.8])
        img = draw.draw(packed, int(h / scale), int(w / scale), kinds=kinds)
        if scale != 1:
            img = F.interpolate(img, (h, w), mode="bicubic", antialias=scale < 1).clamp(0, 1)
        if r.random() < 0.5:
            img = (img + torch.randn_like(img) * (r.random() * 0.04)).clamp(0, 1)
        img = torch.round(img * 255) / 255
        pixels, pos = draw.patches(img)
        ids, learn, where = to_gpu(ids, learn, img_id)
        soft = M.image_soft(model, pixels, pos)
        label = draw.cell_labels(packed, h // 48, w // 48, kinds).flatten()
        cell = F.cross_entropy(heads["cell"](soft.float()).flatten(0, 1), label, reduction="none")
        there = (label < n_pairs - 1).float()
        cell = (cell * there).sum() / there.sum() + (cell * (1 - there)).sum() / (1 - there).sum()
        lm, right = loss_of(ids, learn, soft.flatten(0, 1), where)
        return lm, cell, right

    def speech_loss(plain=False):
        waves, total, texts = pool.batch(r, t, a.clips, plain)
        feats = M.log_mel(waves, filters, window)
        frames = ((total - 1) // 160).to(dev)
        mask = torch.arange(feats.shape[1], device=dev)[None] < frames[:, None]
        feats = feats * mask[..., None]
        rows = [expand(*t.encode_segments(chat_format.segments(media_data.speech_conversation(r, x))), aud_id, boa, eoa, M.audio_tokens(int(n))) for x, n in zip(texts, total)]
        ids, learn, where = to_gpu(*pad(rows), aud_id)
        soft, _ = M.audio_soft(model, feats, mask)
        count = np.array([M.audio_tokens(int(n)) for n in total])
        live = up(np.flatnonzero(np.arange(soft.shape[1])[None] < count[:, None]))
        targets = [torch.tensor([spoken[y] for y in x.split()]) for x in texts]
        ctc = F.ctc_loss(heads["ctc"](soft.float()).log_softmax(-1).transpose(0, 1), torch.cat(targets).to(dev), torch.from_numpy(count), torch.tensor([len(x) for x in targets]), zero_infinity=True)
        lm, right = loss_of(ids, learn, soft.flatten(0, 1).index_select(0, live), where)
        return lm, ctc, right

    def rows_right(right):
        """fraction of rows whose tokens are all predicted: the score of greedy decoding"""
        ok, row = right
        wrong = torch.zeros(int(row.max()) + 1, device=dev).index_add_(0, row, (~ok).float())
        return (wrong == 0).float().mean().item()

    while pool.size() < min(2000, a.pool // 4):
        pool.add(sq.get())
    print(f"ready after {time.time() - start:.0f} s", flush=True)
    logs, first = [], step
    spent, last = {}, [time.time()]

    def tick(name):
        if a.time:
            if dev == "cuda":
                torch.cuda.synchronize()
            now = time.time()
            spent[name] = spent.get(name, 0) + now - last[0]
            last[0] = now

    tokens = 0
    t0 = time.time()
    while True:
        gone = (time.time() - start) / a.seconds
        if gone >= 1 or step - first >= a.steps:
            break
        lr = a.lr + (a.lr_end - a.lr) * max(0.0, gone)
        lr *= min(1.0, (step - first + 1) / a.warmup)
        for gr in opt.param_groups:
            gr["lr"] = lr
        tick("start")
        got = []
        for _ in range(20 if pool.size() < a.pool * 0.8 else 2):
            try:
                got += sq.get_nowait()
            except queue.Empty:
                break
        pool.add(got)
        tick("clips")
        if a.qat:
            master = flat.clone()
            flat.copy_(rounded(flat))
        parts = {}
        with torch.autocast(dev, dtype=torch.bfloat16, enabled=dev == "cuda"):
            ids, learn, _ = to_gpu(*tq.get())
            loss, right_t = loss_of(ids, learn)
        loss.backward()
        tokens += ids.numel()
        parts["text"] = loss.detach()
        tick("text")
        with torch.autocast(dev, dtype=torch.bfloat16, enabled=dev == "cuda"):
            lm, helper, right_p = picture_loss(pq.get())
            total = lm + a.helper * helper
        total.backward()
        parts["picture"], parts["cell"] = lm.detach(), helper.detach()
        tick("picture")
        with torch.autocast(dev, dtype=torch.bfloat16, enabled=dev == "cuda"):
            lm, helper, right_s = speech_loss()
            total = lm + a.helper * helper
        total.backward()
        parts["speech"], parts["ctc"] = lm.detach(), helper.detach()
        tick("speech")
        if a.qat:
            flat.copy_(master)
        torch.nn.utils.clip_grad_norm_(everything.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=False)
        tick("optimizer")
        step += 1
        if step % 50 == 0 or step - first <= 3:
            logs.append({k: v.item() for k, v in parts.items()})
            print(f"{step} {time.time() - start:.0f}s {(time.time() - t0) / (step - first) * 1e3:.0f}ms lr {lr:.2e} tok/s {tokens / (time.time() - t0):.0f} " +
                  " ".join(f"{k} {v:.3f}" for k, v in logs[-1].items()) +
                  f" right text {right_t[0].float().mean().item():.3f} picture rows {rows_right(right_p):.3f} speech rows {rows_right(right_s):.3f} clips {pool.size()} wait {tq.qsize()},{pq.qsize()},{sq.qsize()}", flush=True)
    if a.time:
        print({k: f"{v / (step - first) * 1e3:.0f} ms" for k, v in spent.items()}, flush=True)
    os.makedirs(a.out, exist_ok=True)
    torch.save({"model": everything.state_dict(), "opt": opt.state_dict(), "step": step}, os.path.join(a.out, "state.pt"))
    # in files of at most 15 MB, which are easy to transfer
    small = {k: v.detach().to("cpu", torch.float32) for k, v in model.state_dict().items()}
    size, part = 0, 0
    group = {}
    for k, v in small.items():
        if size + v.numel() * 4 > 15_000_000:
            torch.save(group, os.path.join(a.out, f"weights{part}.pt"))
            group, size, part = {}, 0, part + 1
        group[k] = v.contiguous().clone()
        size += v.numel() * 4
    torch.save(group, os.path.join(a.out, f"weights{part}.pt"))
    print(f"saved after {time.time() - start:.0f} s, step {step}", flush=True)
    for p in procs:
        p.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
