#!/usr/bin/env python3
"""Compares logits with llama.cpp: same file, same tokens.

  compare_peer.py MODEL... --peer PEER_LOGITS [-t ID,ID,...] [-n N] [--bezel build/bezel] [--fast]
                  [-j THREADS] [--peer-plain] [--ref] [--json]

PEER_LOGITS is peer_logits.c of this folder linked against libllama. Without -t, N random tokens
(default 48) after BOS. The peer runs with its defaults (f16 KV, flash attention, repacked weights);
--peer-plain: f32 KV and plain kernels. --ref adds gemma4_ref.py (float64; small models only).

For every pair: largest and rms difference of the logits, the median over positions of the
position's rms, positions with the same top token, and how many of the five best are shared.
Seconds are of the whole process, loading included; best of --runs.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import gguf_io                                         # noqa: E402
import gemma4_ref                                      # noqa: E402


def random_tokens(vocab, n):
    r = gguf_io.random_u64(gguf_io.seed_of("compare", vocab), 0, n).tolist()
    low, high = 494, vocab - 7                         # past the special tokens, before the media ones
    if vocab > 258884:
        high = 255999
    return [2] + [low + (x >> 20) % (high - low) for x in r[:n - 1]]


def run(cmd, out, n_tokens, runs):
    best = None
    for _ in range(runs):
        t = time.monotonic()
        p = subprocess.run(cmd, capture_output=True, text=True)
        t = time.monotonic() - t
        if p.returncode:
            raise SystemExit(f"{' '.join(cmd[:3])} ...: exit {p.returncode}\n{p.stderr[-2000:]}")
        best = t if best is None else min(best, t)
    y = np.fromfile(out, np.float32)
    if y.size == 0 or y.size % n_tokens:
        raise SystemExit(f"{cmd[0]} wrote {y.size} numbers for {n_tokens} tokens")
    return y.reshape(n_tokens, -1), best


def difference(a, b):
    d = b.astype(np.float64) - a
    per = np.sqrt((d ** 2).mean(1))
    top = lambda x: np.argsort(-x, 1, kind="stable")[:, :5]
    shared = np.mean([len(set(p) & set(q)) for p, q in zip(top(a).tolist(), top(b).tolist())])
    return {"max": float(np.abs(d).max()), "rms": float(np.sqrt((d ** 2).mean())), "median_rms": float(np.median(per)),
            "same_top": int((a.argmax(1) == b.argmax(1)).sum()), "positions": len(a), "shared_of_5": float(shared)}


def compare(model, a):
    if a.tokens:
        ids = [int(x) for x in a.tokens.split(",")]
    else:
        ids = random_tokens(len(gguf_io.Reader(model).kv["tokenizer.ggml.tokens"]), a.n)
    arg = ",".join(map(str, ids))
    peer_options = ["-k", "f32"] if a.peer_plain else ["-k", "f16", "-a", "-r"]
    out = {}
    seconds = {}
    with tempfile.TemporaryDirectory() as tmp:
        f = os.path.join(tmp, "logits.f32")
        ours = [a.bezel, "logits", model, "-t", arg, "-o", f] + (["--fast"] if a.fast else [])
        out["bezel"], seconds["bezel"] = run(ours, f, len(ids), a.runs)
        os.remove(f)
        theirs = [a.peer, model, "-t", arg, "-o", f, "-j", str(a.threads), *peer_options]
        out["peer"], seconds["peer"] = run(theirs, f, len(ids), a.runs)
    if a.ref:
        out["ref"] = gemma4_ref.Model(model).logits(ids)
    shapes = {k: v.shape for k, v in out.items()}
    if len(set(shapes.values())) > 1:
        raise SystemExit(f"{model}: shapes differ: {shapes}")
    pairs = [("peer", "bezel")] + ([("ref", "bezel"), ("ref", "peer")] if a.ref else [])
    return {"model": os.path.basename(model), "tokens": len(ids), "logit_rms": float(out["bezel"].std()), "seconds": seconds,
            "pairs": {f"{y} - {x}": difference(out[x], out[y]) for x, y in pairs}}


def show(r):
    s = r["seconds"]
    print(f"{r['model']}: {r['tokens']} tokens, logits of deviation {r['logit_rms']:.2f}; "
          f"bezel {s['bezel']:.2f} s, peer {s['peer']:.2f} s")
    print(f"  {'':14} {'max':>9} {'rms':>9} {'median':>9}   {'same top':>9}  of best 5")
    for k, d in r["pairs"].items():
        top = f"{d['same_top']}/{d['positions']}"
        print(f"  {k:14} {d['max']:9.3g} {d['rms']:9.3g} {d['median_rms']:9.3g}   {top:>9}  {d['shared_of_5']:.2f}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model", nargs="+")
    ap.add_argument("--peer", required=True)
    ap.add_argument("--bezel", default=os.path.join(HERE, "..", "build", "bezel"))
    ap.add_argument("-t", "--tokens")
    ap.add_argument("-n", type=int, default=48)
    ap.add_argument("-j", "--threads", type=int, default=2, help="threads of the peer")
    ap.add_argument("--runs", type=int, default=1)
    ap.add_argument("--fast", action="store_true", help="bezel with int8 activations, as the peer")
    ap.add_argument("--peer-plain", action="store_true")
    ap.add_argument("--ref", action="store_true")
    ap.add_argument("--json", action="store_true", help="one JSON object per model and line")
    a = ap.parse_args()
    for model in a.model:
        r = compare(model, a)
        print(json.dumps(r), flush=True) if a.json else show(r)


if __name__ == "__main__":
    main()
