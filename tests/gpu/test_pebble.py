#!/usr/bin/env python3
"""Pebble and Pebble Diffusion on a GPU say what they say on the CPU, outside near-ties.

    sh tools/gpu-env.sh /usr/bin/python3 tests/gpu/test_pebble.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "..", "tools")]
from cases import case, finish, need  # noqa: E402
import gguf_io  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
PEBBLE = os.path.join(HERE, "..", "..", "models", "pebble.gguf")
TIE = 0.05                                             # logits closer than this may change places


def run(*args):
    p = subprocess.run([BEZEL, *args], capture_output=True, text=True, timeout=900)
    need(p.returncode == 0, f"{args} ended with {p.returncode}: {p.stderr}")
    return p.stdout


def logits(ids, device):
    with tempfile.NamedTemporaryFile(suffix=".f32") as f:
        run("logits", PEBBLE, "-t", ",".join(map(str, ids)), "-o", f.name, "--device", device)
        return np.fromfile(f.name, np.float32).reshape(len(ids), -1)


def greedy_ids():
    g = gguf_io.Reader(os.path.join(HERE, "..", "..", "build", "golden", "pebble", "golden.gguf"))
    prompt, answer = g.get("text.tokens").tolist(), g.get("text.greedy").tolist()
    cpu, gpu = logits(prompt + answer, "cpu"), logits(prompt + answer, "gpu")
    need(np.isfinite(gpu).all(), "there are logits that are no numbers")
    off = float(np.abs(cpu - gpu).max())
    need(off < 0.5, f"logits differ by {off}")
    for k, want in enumerate(answer):
        row = gpu[len(prompt) - 1 + k]
        need(int(row.argmax()) == want or row.max() - row[want] < TIE, f"token {k}: {int(row.argmax())} for {want}")


def answers():
    ask = (PEBBLE, "What is the capital of France?", "--temp", "0", "--no-think", "-q", "-n", "24")
    cpu, gpu = run("run", *ask, "--device", "cpu"), run("run", *ask, "--device", "gpu")
    need(cpu == gpu and "Paris" in cpu, f"{cpu!r} and {gpu!r}")


def a_story_condenses():
    ask = ("pebble-diffusion", "Tell me a short story about a fox.", "--seed", "6", "--no-think", "-q", "--exact")
    cpu, gpu = run("run", *ask, "--device", "cpu"), run("run", *ask, "--device", "gpu")
    need(cpu == gpu and "fox" in cpu, f"{cpu!r} and {gpu!r}")


case("pebble greedy ids", greedy_ids)
case("pebble answers", answers)
case("pebble diffusion, drawn while it changes", a_story_condenses)
sys.exit(finish())
