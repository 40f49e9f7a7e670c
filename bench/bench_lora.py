#!/usr/bin/env python3
"""What an adapter costs: processor time per token with and without it, on one thread.

  bench_lora.py build/bezel MODEL.gguf ADAPTER.gguf [--rounds N] [--tokens N] [--prompt N]

Runs `bezel bench` alternately with and without the adapter and reads the time that its process used, so that other programs of the machine
matter little. Starting is subtracted by a second, shorter run. Prints the median ratio of speeds (1: the adapter costs nothing).
"""
import argparse
import os
import statistics
import subprocess
import sys


def seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("program")
    ap.add_argument("model")
    ap.add_argument("adapter")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--tokens", type=int, default=64)
    ap.add_argument("--prompt", type=int, default=512)
    a = ap.parse_args()
    base = [a.program, "bench", a.model, "--repeat", "1", "--threads", "1"]
    lora = [*base, "--lora", a.adapter]

    def cost(command, long, short):
        return seconds([*command, *long]) - seconds([*command, *short])

    for what, n, long, short in (
            ("decode", a.tokens, ["-p", "1", "-n", str(a.tokens + 1)], ["-p", "1", "-n", "1"]),
            ("prefill", a.prompt, ["-p", str(a.prompt), "-n", "0"], ["-p", "1", "-n", "0"])):
        pairs = [(cost(base, long, short), cost(lora, long, short)) for _ in range(a.rounds)]
        ratio = statistics.median(plain / adapted for plain, adapted in pairs)
        ms = [1e3 * statistics.median(times) / n for times in zip(*pairs)]
        print(f"{what}: {ms[0]:.3f} ms of processor time per token, {ms[1]:.3f} with the adapter: {ratio:.3f} x the speed")


if __name__ == "__main__":
    main()
