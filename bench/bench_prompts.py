#!/usr/bin/env python3
"""What files of prompts cost: tokens per second of `bezel run --prompts`, and hours for a million prompts.

    bench/bench_prompts.py MODEL.gguf --threads 1 --device cpu            # a row of docs/SCALE.md
    bench/bench_prompts.py MODEL.gguf --device gpu --count 512 --parallel 64
    bench/bench_prompts.py MODEL.gguf --words 400 --tokens 200

The prompts are words drawn by a fixed seed, none like another; every answer has the same length. Besides the whole, the same prompts are run with
answers of one token, so that both speeds are known. Everything counts: the start of the program, opening the file, writing the
results. --cpu counts processor time instead of the clock: on a machine that does other work only that means anything, and only with --threads 1.
"""
import argparse
import datetime
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

WORDS = ("river stone window garden letter morning paper story winter music silver market bridge yellow dinner doctor summer travel island "
         "pocket corner basket forest engine kitchen planet mirror candle ticket thunder village orange station harbor blanket").split()


def write_prompts(path, count, words, tokens):
    draw = random.Random(7)
    with open(path, "w", encoding="utf-8") as f:
        for i in range(count):
            text = f"{i}: continue. " + " ".join(draw.choice(WORDS) for _ in range(words))
            f.write(json.dumps({"prompt": text, "max_tokens": tokens}) + "\n")


def run(a, folder, tokens):
    """seconds, prompt tokens, answer tokens"""
    prompts, out = f"{folder}/prompts-{tokens}.jsonl", f"{folder}/out-{tokens}.jsonl"
    write_prompts(prompts, a.count, a.words, tokens)
    if os.path.exists(out):
        os.remove(out)
    command = [*a.bezel.split(), "run", a.model, "--prompts", prompts, "--out", out, "--parallel", str(a.parallel), "--device", a.device, "-c", str(a.ctx),
               "--no-think", "--ignore-end", "--temp", "0", "-q", *(["--threads", str(a.threads)] if a.threads else [])]
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(out, encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    if p.returncode or len(records) != a.count or any("error" in r for r in records):
        sys.exit(f"{' '.join(command)}: status {p.returncode}, {len(records)} results: {p.stderr[-500:]} {next((r for r in records if 'error' in r), '')}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (cpu if a.cpu else wall), sum(r["usage"]["prompt_tokens"] for r in records), sum(r["usage"]["completion_tokens"] for r in records)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--bezel", default="build/bezel", help="the command of the program")
    ap.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    ap.add_argument("--count", type=int, default=32, help="prompts")
    ap.add_argument("--words", type=int, default=100, help="of each")
    ap.add_argument("--tokens", type=int, default=32, help="of each answer")
    ap.add_argument("--parallel", type=int, default=16)
    ap.add_argument("--threads", type=int, default=0)
    ap.add_argument("--ctx", type=int, default=512)
    ap.add_argument("--cpu", action="store_true", help="count processor time")
    ap.add_argument("--repeat", type=int, default=1, help="the best of this many runs")
    a = ap.parse_args()
    if a.tokens < 2:
        sys.exit("bench_prompts.py: --tokens must be at least 2")
    with tempfile.TemporaryDirectory(prefix="bezel-prompts-") as folder:
        short = min(run(a, folder, 1) for _ in range(a.repeat))
        whole = min(run(a, folder, a.tokens) for _ in range(a.repeat))
    seconds, read, written = whole
    writing = max(seconds - short[0], 1e-9)
    print(f"{a.count} prompts of {read / a.count:.0f} tokens, answers of {written / a.count:.0f}, {a.parallel} at a time, {a.device}, "
          f"{'processor time' if a.cpu else 'clock'}, {datetime.date.today()}")
    print(f"  {seconds:.1f} s; with answers of one token {short[0]:.1f} s")
    print(f"  prompt {short[1] / short[0]:.1f} tokens/s, answers {(written - short[2]) / writing:.1f} tokens/s")
    print(f"  {a.count / seconds:.3f} prompts/s; a million prompts: {1e6 * seconds / a.count / 3600:.1f} hours")


if __name__ == "__main__":
    main()
