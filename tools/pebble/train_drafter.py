"""Trains Pebble's drafter: train_drafter.py --seconds N --target pebble.gguf --out drafter.npz

The drafter learns the target's distributions, several drafts deep, with its own states as input of the later ones and the text's
tokens as what was drafted. Every position before a token of the model's own is a row. The schedule follows the clock.
"""
import argparse
import os
import random
import sys
import time

import multiprocessing as mp

HERE = os.path.dirname(os.path.abspath(__file__))
for tools in (HERE, os.path.join(HERE, "..")):
    sys.path.insert(0, tools)


def rounded(x):
    """4 bits with one scale per 32 values of a row, as Q4_0 stores them; gradients pass through"""
    g = x.detach().view(-1, 32)
    big = g.gather(1, g.abs().argmax(1, keepdim=True))
    step = big / -8
    step = step.where(step != 0, step.new_ones(()))
    q = ((g / step).round().clamp(-8, 7) * step).view_as(x)
    return x + (q - x).detach()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, required=True, help="of training, the start included")
    ap.add_argument("--target", default=os.path.join(HERE, "pebble.gguf"))
    ap.add_argument("--out", default="drafter.npz")
    ap.add_argument("--layers", default="sliding,sliding,sliding,full")
    ap.add_argument("--width", type=int, default=128)
    ap.add_argument("--ffn", type=int, default=256)
    ap.add_argument("--depth", type=int, default=4, help="drafts per position")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--lr-end", type=float, default=3e-5)
    ap.add_argument("--flat", type=float, default=0.3, help="share of the time at the full rate")
    ap.add_argument("--warmup", type=int, default=100)
    ap.add_argument("--qat-from", type=float, default=0.5, help="share of the time after which matrices are rounded to 4 bits")
    ap.add_argument("--tokens", type=int, default=32768)
    ap.add_argument("--longest", type=int, default=640)
    ap.add_argument("--workers", type=int, default=6)
    ap.add_argument("--every", type=int, default=100)
    ap.add_argument("--threads", type=int, default=0)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    start = time.time()
    import train
    ctx = mp.get_context("spawn")
    q = ctx.Queue(48)
    procs = [ctx.Process(target=train.text_worker, args=(q, f"drafter {a.seed} {k}", a.tokens, False), daemon=True) for k in range(a.workers)]
    for p in procs:
        p.start()
    import math
    import numpy as np
    import torch
    import torch.nn.functional as F
    import chat_format
    import drafter_model as M
    import gguf_io
    import text_data
    import train_diffusion
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    target = M.Target(gguf_io.Reader(a.target), dev)
    net = M.Drafter(a.layers.split(","), a.width, a.ffn, a.seed).to(dev)
    net.begin_like(target)
    print(f"{sum(p.numel() for p in net.parameters())} parameters, {time.time() - start:.0f} s", flush=True)
    mats = [p for n, p in net.named_parameters() if p.dim() == 2]
    hidden = [p for p in mats if p is not net.token_embd]
    muon = train_diffusion.Muon(torch, hidden)
    taken = {id(p) for p in hidden}
    rest = [p for p in net.parameters() if id(p) not in taken]
    adam = torch.optim.AdamW(rest, lr=a.lr, betas=(0.9, 0.97), eps=1e-10, weight_decay=0.0, fused=dev.type == "cuda")
    embeddings = target.w["token_embd.weight"] * math.sqrt(M.TARGET)

    def passes(ids, learn):
        """the loss, and how many drafts in a row equal the target's best token, per depth; learn (b, n)"""
        n = ids.shape[1]
        # Only positions before the model's own tokens are drafted from: rows (b, r), padded with position 1, and which are real.
        own = F.pad(learn[:, 1:], (0, 1)) & (torch.arange(n, device=dev) > 0)
        r = max(int(own.sum(1).max()), 1)
        rows = own.int().topk(r, 1).indices.sort(1).values
        real = own.gather(1, rows)
        rows = rows.where(real, rows.new_ones(()))
        at = lambda x, s: x.gather(1, (rows + s).clamp(max=n - 1)[..., None].expand(-1, -1, x.shape[-1]))
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            state, caches = target(ids)
            masks, angle = net.surroundings(rows, n)
            embedded = F.embedding(ids, embeddings)
            u, ok, loss, count, hits, run = at(state, -1), real, 0, 0, [], real
            for s in range(a.depth):
                z, u = net(at(embedded, s), u, caches, masks, angle)
                ok = ok & own.gather(1, (rows + s).clamp(max=n - 1))                  # token n + s + 1 is the model's own
                mine, want = z[ok].float(), target.logits(at(state, s)[ok])
                loss = loss - (want.softmax(-1) * mine.log_softmax(-1)).sum() / len(mine) * 0.9 ** s
                count += 0.9 ** s
                right = torch.zeros_like(ok)
                right[ok] = mine.argmax(-1) == want.argmax(-1)
                run = run & right
                hits.append(run.sum() / ok.sum())
        return loss / count, torch.stack(hits).detach()

    def batch():
        ids, learn = (torch.from_numpy(x[:, :a.longest]) for x in (lambda i, l: (i.astype(np.int64), l))(*q.get()))
        return ids.to(dev), learn.to(dev)

    step, seen, t0, exact = 0, 0, time.time(), []
    while True:
        share = (time.time() - start) / a.seconds
        if share >= 1:
            break
        fall = min(max((share - a.flat) / (1 - a.flat), 0), 1)
        lr = (a.lr_end + (a.lr - a.lr_end) * (1 - fall)) * min((step + 1) / a.warmup, 1)
        ids, learn = batch()
        if share >= a.qat_from:
            exact = [p.detach().clone() for p in mats]
            with torch.no_grad():
                for p in mats:
                    p.copy_(rounded(p))
        loss, hits = passes(ids, learn)
        usable = bool(loss.isfinite())                     # not for texts too short to draft in
        if usable:
            loss.backward()
        with torch.no_grad():
            for p, x in zip(mats, exact):
                p.copy_(x)
        if not usable:
            continue
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for g in adam.param_groups:
            g["lr"] = lr
        adam.step()
        muon.step(lr, 0.02)
        net.zero_grad(set_to_none=True)
        step += 1
        seen += ids.numel()
        if step % a.every == 0 or step <= 3:
            print(f"{step} {time.time() - start:.0f}s {(time.time() - t0) / step * 1e3:.0f}ms lr {lr:.1e} tokens {seen} loss {loss.item():.4f} "
                  f"drafts right in a row {' '.join(f'{h:.3f}' for h in hits.tolist())} wait {q.qsize()}{' 4 bits' if exact else ''}", flush=True)
    with torch.no_grad():
        for p in mats:
            p.copy_(rounded(p))
    np.savez(a.out, kinds=np.array(net.kinds), **{n: p.detach().float().cpu().numpy() for n, p in net.named_parameters()})
    print(f"saved after {time.time() - start:.0f} s, {step} steps", flush=True)
    # conversations that training never drew
    r, t, sums = random.Random("held out"), train.encoder(), []
    for _ in range(8):
        rows = [t.encode_segments(chat_format.segments(text_data.conversation(r, "test"))) for _ in range(24)]
        ids, learn = (torch.from_numpy(x[:, :a.longest]) for x in (lambda i, l: (i.astype(np.int64), l))(*train.pad(rows)))
        with torch.no_grad():
            loss, hits = passes(ids.to(dev), learn.to(dev))
        sums.append(torch.cat([loss[None], hits]))
    mean = torch.stack(sums).mean(0).tolist()
    print(f"held out: loss {mean[0]:.4f}, drafts right in a row {' '.join(f'{x:.3f}' for x in mean[1:])}, accepted of {a.depth}: {sum(mean[1:]):.2f}", flush=True)
    for p in procs:
        p.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
