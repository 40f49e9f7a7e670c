"""Trains Pebble Diffusion: train_diffusion.py --seconds N [--weights FOLDER] [--lr A --lr-end B] [--qat-from SHARE] ...

Denoising as DiffusionGemma does it: every canvas of a story is noised with uniform random tokens, each canvas to a level
of its own, and the clean tokens are predicted given the committed tokens before it. A previous step (the same canvas with
more noise) is computed first, without gradients, as self-conditioning for most examples. After the end of an answer its
canvas is filled with <eos>. The schedule follows the clock, to fit a given time on a GPU.
"""
import argparse
import glob
import multiprocessing as mp
import os
import random
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CANVASES = 3
ROOM = {1: 64 + 64 * (CANVASES - 1), 2: 320 + 64 * (CANVASES - 1)}      # capacity of committed rows, by the number of rounds
FILL = 1


def example(t, conv):
    """-> prompt, answer (ids)"""
    import chat_format
    import diffusion_data
    answer = conv["turns"][-1][1][-1][1]
    ask = dict(conv, turns=conv["turns"][:-1])
    prompt = t.encode(diffusion_data.prompt_text(conv, chat_format.text(ask, True)))
    return prompt, t.encode(answer.strip() + "<turn|>")


def worker(q, seed, batch):
    import diffusion_data
    import tokenizer
    from diffusion_model import CANVAS
    t, r = tokenizer.Tokenizer(os.path.join(HERE, "tokenizer.json")), random.Random(seed)
    while True:
        rounds = 2 if r.random() < 0.15 else 1
        n = batch if rounds == 1 else batch // 2
        room = ROOM[rounds]
        committed, clean = np.zeros((n, room), np.int16), np.full((n, CANVASES * CANVAS), FILL, np.int16)
        length, canvases = np.zeros(n, np.int16), np.zeros(n, np.int16)
        k = 0
        while k < n:
            prompt, answer = example(t, diffusion_data.conversation(r, "train", rounds))
            if len(prompt) > room - CANVAS * (CANVASES - 1) or len(answer) > CANVASES * CANVAS:
                continue
            clean[k, :len(answer)] = answer
            length[k], canvases[k] = len(prompt), -(-len(answer) // CANVAS)
            whole = np.concatenate([prompt, clean[k]])[:room]
            committed[k, :len(whole)] = whole
            k += 1
        q.put((committed, clean, length, canvases))


def rounded(x):
    """to 4 bits with a scale and a minimum per 32 values, close to Q4_K"""
    g = x.view(-1, 32)
    low = g.amin(1, keepdim=True).clamp(max=0)
    step = ((g.amax(1, keepdim=True) - low) / 15).clamp(min=1e-9)
    return (((g - low) / step).round() * step + low).view(-1)


class Muon:
    """orthogonalised momentum; matrices of one shape are processed together"""

    def __init__(self, torch, params):
        self.torch, self.groups = torch, {}
        for p in params:
            self.groups.setdefault(p.shape[-2:], []).append(p)
        self.memory = {s: torch.zeros(sum(p.numel() // (s[0] * s[1]) for p in ps), *s, device=ps[0].device) for s, ps in self.groups.items()}

    def step(self, lr, decay):
        for shape, ps in self.groups.items():
            g = self.torch.cat([p.grad.reshape(-1, *shape) for p in ps])
            m = self.memory[shape].lerp_(g, 0.05)
            u = g.lerp(m, 0.95).bfloat16()
            flip = shape[0] > shape[1]
            u = u.mT if flip else u
            u = u / (u.norm(dim=(-2, -1), keepdim=True) + 1e-7)
            for _ in range(5):
                a = u @ u.mT
                u = 3.4445 * u + (-4.7750 * a + 2.0315 * a @ a) @ u
            u = (u.mT if flip else u).float() * (0.2 * max(shape) ** 0.5 * lr)
            at = 0
            for p in ps:
                n = p.numel() // (shape[0] * shape[1])
                p.data.mul_(1 - lr * decay).sub_(u[at:at + n].view_as(p))
                at += n


def load(folder, device="cpu"):
    import torch
    import diffusion_model as M
    net, state = M.Net(), {}
    for f in sorted(glob.glob(os.path.join(folder, "weights*.pt"))):
        state.update(torch.load(f, map_location="cpu", weights_only=True))
    net.load_state_dict({k: v.float() for k, v in state.items()})
    return net.to(device)


def save(net, folder):
    """in files of at most 9 MB, which are easy to transfer"""
    import torch
    os.makedirs(folder, exist_ok=True)
    group, size, part = {}, 0, 0
    for k, v in net.state_dict().items():
        if size + v.numel() * 4 > 9_000_000:
            torch.save(group, os.path.join(folder, f"weights{part}.pt"))
            group, size, part = {}, 0, part + 1
        group[k] = v.detach().cpu().contiguous().clone()
        size += v.numel() * 4
    torch.save(group, os.path.join(folder, f"weights{part}.pt"))


def samples(net, t, n, seed=5):
    """stories that training never drew, scored; prints the first ones"""
    import diffusion_data
    import diffusion_model as M
    import judge_story
    r = random.Random(f"samples {seed}")
    got = [judge_story.request(r) for _ in range(n)]
    prompts = [t.encode(diffusion_data.prompt_text({}, judge_story.prompt(ask))) for ask, _ in got]
    start = time.time()
    answers, steps = M.generate(net, prompts, seed=seed)
    texts = [t.decode([i for i in a if i is not None and i not in (0, 1, 106)]) for a in answers]
    ends = [a[-1] is not None for a in answers]
    told = sum(judge_story.told(x, want, e) for x, (_, want), e in zip(texts, got, ends))
    perfect = sum(judge_story.perfect(x) for x in texts)
    print(f"{n} stories in {time.time() - start:.1f} s: told as asked {told}, by the grammar {perfect}, ended {sum(ends)}, "
          f"{sum(steps) / len(steps):.1f} steps a canvas, most {max(steps):.0f}", flush=True)
    for (ask, _), x in list(zip(got, texts))[:3]:
        print("  >", ask, "\n   ", x.replace("\n", " / "), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, required=True, help="of training, the start included")
    ap.add_argument("--out", default="out")
    ap.add_argument("--weights", help="folder of weights*.pt to begin with")
    ap.add_argument("--state", help="file for everything that training needs to go on from where the rate begins to fall")
    ap.add_argument("--resume", help="such a file")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--lr-end", type=float, default=3e-5)
    ap.add_argument("--flat", type=float, default=0.4, help="share of the time at the full rate")
    ap.add_argument("--warmup", type=int, default=200)
    ap.add_argument("--qat-from", type=float, default=0.6, help="share of the time after which matrices are rounded to 4 bits on the way through")
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--told", type=float, default=0.8, help="share of examples that know the step before")
    ap.add_argument("--workers", type=int, default=8)
    ap.add_argument("--steps", type=int, default=1 << 30)
    ap.add_argument("--samples", type=int, default=256)
    ap.add_argument("--every", type=int, default=200)
    ap.add_argument("--threads", type=int, default=0)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    start = time.time()
    sys.path.insert(0, HERE)
    ctx = mp.get_context("spawn")
    q = ctx.Queue(48)
    procs = [ctx.Process(target=worker, args=(q, f"stories {a.seed} {k}", a.batch), daemon=True) for k in range(a.workers)]
    for p in procs:
        p.start()
    import torch
    import torch.nn.functional as F
    import diffusion_model as M
    import tokenizer
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    t = tokenizer.Tokenizer(os.path.join(HERE, "tokenizer.json"))
    net = load(a.weights, dev) if a.weights else M.Net(a.seed).to(dev)
    torch.manual_seed(a.seed)
    print(f"{sum(p.numel() for p in net.parameters())} parameters, {time.time() - start:.0f} s", flush=True)
    mats = [p for n, p in net.named_parameters() if p.dim() >= 2 and n != "embed" and "router" not in n]
    flat, at = torch.cat([p.detach().reshape(-1) for p in mats]), 0
    for p in mats:                                     # one flat tensor, so that rounding takes few kernels
        p.data = flat[at:at + p.numel()].view(p.shape)
        at += p.numel()
    muon = Muon(torch, mats)
    taken = {id(p) for p in mats}
    rest = [p for p in net.parameters() if id(p) not in taken]
    adam = torch.optim.AdamW(rest, lr=a.lr, betas=(0.9, 0.97), eps=1e-10, weight_decay=0.0, fused=dev.type == "cuda")
    up = lambda x: torch.from_numpy(x).pin_memory().to(dev, non_blocking=True).long() if dev.type == "cuda" else torch.from_numpy(x).long()
    step, t0, seen = 0, time.time(), 0
    if a.resume:
        old = torch.load(a.resume, map_location=dev, weights_only=False)
        with torch.no_grad():
            for p, x in zip(net.parameters(), old["net"]):
                p.copy_(x)
        adam.load_state_dict(old["adam"])
        muon.memory, step, seen = old["muon"], old["step"], old["seen"]
    first, kept = step, not a.state
    while True:
        share = (time.time() - start) / a.seconds
        if share >= 1 or step >= a.steps:
            break
        fall = min(max((share - a.flat) / (1 - a.flat), 0), 1)
        lr = (a.lr_end + (a.lr - a.lr_end) * (1 - fall)) * min((step + 1) / a.warmup, 1)
        if fall > 0 and not kept:
            kept = True
            torch.save({"net": [p.detach().clone() for p in net.parameters()], "adam": adam.state_dict(), "muon": muon.memory, "step": step, "seen": seen}, a.state)
            print(f"state saved after {time.time() - start:.0f} s", flush=True)
        committed, clean, length, canvases = map(up, q.get())
        b, n = clean.shape
        position, masks = M.layout(length, committed.shape[1], CANVASES, dev)
        # noise levels of every canvas and of the step before it; a tenth starts from pure noise
        level = torch.rand(b, CANVASES, device=dev) * 1.1
        before = level + torch.rand(b, CANVASES, device=dev) ** 2 * (1 - level).clamp(min=0)
        level, before = (x.clamp(max=1).repeat_interleave(M.CANVAS, 1) for x in (level, before))
        chance = torch.rand(b, n, device=dev)
        noise = lambda: torch.randint(M.VOCAB, (b, n), device=dev)
        x = torch.where(chance < level, noise(), clean)
        earlier = torch.where(chance < before, noise(), clean)
        qat = share >= a.qat_from
        if qat:
            master = flat.clone()
            flat.copy_(rounded(master))
        with torch.autocast(dev.type, dtype=torch.bfloat16, enabled=dev.type == "cuda"):
            with torch.no_grad():
                z, _ = net(committed, earlier, position, masks)
                temperature = torch.rand(b, 1, 1, device=dev) * 0.4 + 0.4
                soft = net.soft(z, temperature) * (torch.rand(b, 1, 1, device=dev) < a.told)
                del z
            z, uneven = net(committed, x, position, masks, soft)
            here = (torch.arange(n, device=dev) // M.CANVAS)[None] < canvases[:, None]
            loss = (F.cross_entropy(z.flatten(0, 1), clean.flatten(), reduction="none").view(b, n) * here).sum() / here.sum()
        (loss + 0.01 * uneven).backward()
        if qat:
            flat.copy_(master)
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for g in adam.param_groups:
            g["lr"] = lr
        adam.step()
        muon.step(lr, 0.05)
        net.zero_grad(set_to_none=True)
        step += 1
        seen += b
        if step % a.every == 0 or step - first <= 3:
            right = (z.argmax(-1) == clean) & here
            at_level = [f"{(right & (level >= lo) & (level <= hi)).sum() / (here & (level >= lo) & (level <= hi)).sum():.3f}" for lo, hi in ((0, .2), (.4, .6), (.8, .95), (1, 1))]
            print(f"{step} {time.time() - start:.0f}s {(time.time() - t0) / (step - first) * 1e3:.0f}ms lr {lr:.1e} stories {seen} loss {loss.item():.3f} uneven {uneven.item():.2f} "
                  f"right at noise 0.1, 0.5, 0.9, 1: {' '.join(at_level)} wait {q.qsize()}{' qat' if qat else ''}", flush=True)
    if a.qat_from <= 1:
        flat.copy_(rounded(flat))
    save(net, a.out)
    print(f"saved after {time.time() - start:.0f} s, {step} steps, {seen} stories", flush=True)
    if a.samples:
        samples(net, t, a.samples)
    for p in procs:
        p.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
