#!/usr/bin/env python3
"""CPU time of `bezel embed` and of llama.cpp's llama-embedding on the same file and texts, alternating.

  bench_embed.py BEZEL LLAMA_EMBEDDING MODEL [--threads 1] [--runs 2]

Texts of three lengths, of random words. What each program needs for one short text (opening the file, warming up) is
subtracted. Prints user seconds, best of the runs, tokens per second of CPU time, and the mean cosine between both
programs' vectors and those without rounding (`bezel embed --exact`).
"""
import argparse
import os
import random
import subprocess
import tempfile

import numpy as np

TEXTS = {"short": (64, 5, 12), "paragraph": (12, 60, 110), "long": (1, 700, 800)}   # texts, words of each


def sentence(r, low, high):
    return " ".join("".join(r.choices("etaoinshrdlucmfwygpbvk", k=r.choice([2, 3, 3, 4, 4, 5, 6, 7, 8]))) for _ in range(r.randint(low, high)))


def cpu_seconds(*command, out=subprocess.DEVNULL):
    p = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    assert p.returncode == 0, command
    return usage.ru_utime


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("bezel")
    ap.add_argument("peer")
    ap.add_argument("model")
    ap.add_argument("--threads", default="1")
    ap.add_argument("--runs", type=int, default=2)
    a = ap.parse_args()
    r = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        files = {"start": [sentence(r, 5, 5)], **{name: [sentence(r, low, high) for _ in range(n)] for name, (n, low, high) in TEXTS.items()}}
        for name, lines in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write("\n".join(lines))

        def ours(name, *more):
            npy = os.path.join(folder, "ours.npy")
            return cpu_seconds(a.bezel, "embed", a.model, "--lines", os.path.join(folder, name), "-o", npy, "-q", "--threads", a.threads, *more), np.load(npy)

        def theirs(name):
            path = os.path.join(folder, "theirs.txt")
            with open(path, "wb") as out:
                t = cpu_seconds(a.peer, "-m", a.model, "-f", os.path.join(folder, name), "-t", a.threads, "-b", "2048", "-ub", "2048",
                                "--embd-output-format", "raw", out=out)
            with open(path, encoding="utf-8") as f:
                return t, np.array([[float(x) for x in line.split()] for line in f if line.strip()])
        best = {}
        for _ in range(a.runs):
            for name in files:
                for who, run in (("bezel", ours), ("llama.cpp", theirs)):
                    t, v = run(name)
                    if (name, who) not in best or t < best[name, who][0]:
                        best[name, who] = (t, v)
        print("| texts | tokens | Bezel | llama.cpp | ratio | cosine with exact vectors: Bezel, llama.cpp |")
        print("|---|---|---|---|---|---|")
        for name in TEXTS:
            r = subprocess.run([a.bezel, "embed", a.model, "--lines", os.path.join(folder, name), "-o", os.path.join(folder, "x.npy"), "--exact"],
                               capture_output=True, text=True, check=True)
            tokens = int(r.stderr.split("; ")[1].split(" ")[0])
            exact = np.load(os.path.join(folder, "x.npy"))
            t, u = (best[name, who][0] - best["start", who][0] for who in ("bezel", "llama.cpp"))
            near = [float((best[name, who][1] * exact).sum(1).mean()) for who in ("bezel", "llama.cpp")]
            print(f"| {len(files[name])} {name} | {tokens} | {t:.2f} s, {tokens / t:.0f}/s | {u:.2f} s, {tokens / u:.0f}/s | {u / t:.2f} | {near[0]:.5f}, {near[1]:.5f} |", flush=True)


if __name__ == "__main__":
    main()
