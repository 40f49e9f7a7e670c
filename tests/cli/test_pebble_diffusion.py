#!/usr/bin/env python3
"""Pebble Diffusion from outside: its name, a story that a seed fixes, one that goes on over several canvases, in a terminal.

    test_pebble_diffusion.py PROGRAM [DIR]

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from cases import case, finish, need  # noqa: E402
from terminal import Terminal  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
MODELS = os.path.join(HERE, "..", "..", "models")
ASK = ("pebble-diffusion", "Tell me a short story about a fox.", "--seed", "6", "--exact")   # exact: the same on any processor
STORY = ("One day, there was a funny fox named Una. She lived near the jungle. It was Una's birthday, but nobody said "
         'anything. She thought that everyone had forgotten. There was waffles, and there was music, and Iris gave her a'
         ' puzzle piece. "This is the best day ever!" said Una. That night Una slept with a smile.')
CANVAS = 64
QUICK = os.environ.get("BEZEL_QUICK")                 # under sanitizers


def run(*args, stdin="", code=0, program=PROGRAM):
    p = subprocess.run([program, *args], capture_output=True, text=True, input=stdin, timeout=300, env={**os.environ, "OLLAMA_MODELS": "/nonexistent"})
    need(p.returncode == code, f"{args} ended with {p.returncode}: {p.stderr}")
    return p.stdout


def a_seed_fixes_the_story():
    got = run("run", *ASK, "--no-animation", "-q")
    need(got == STORY + "\n", got)
    plain = run("run", *ASK, "-q", "--kernels", "plain", "--threads", "1")
    need(plain == got, f"other kernels, another story: {plain}")
    need(run("run", *ASK, "--seed", "7", "-q") != got, "another seed, the same story")


def says_what_changes_nothing():
    p = subprocess.run([PROGRAM, "run", *ASK, "-n", "4", "--temp", "0.5", "--min-p", "0.1"], capture_output=True, text=True, timeout=300)
    need(p.returncode == 0 and STORY.startswith(p.stdout.strip()), str(p))
    for name in ("temperature", "min_p"):
        need(f"({name} is ignored: diffusion models use their own schedule)" in p.stderr, p.stderr)
    need("seed" not in p.stderr, p.stderr)


def goes_on_over_canvases():
    request = {"messages": [{"role": "user", "content": "Tell me a story about a dragon in the library."}], "think": False, "options": {"seed": 2}}
    got = json.loads(run("run", "pebble-diffusion", "--prompts", "-", "-q", stdin=json.dumps(request) + "\n"))
    need(got["finish"] == "end" and got["usage"]["completion_tokens"] > CANVAS, str(got))
    need("dragon" in got["text"] and "library" in got["text"], got["text"])


def by_name_where_it_is_installed():
    with tempfile.TemporaryDirectory() as d:
        alone = os.path.join(d, "a", "b", "bezel")
        os.makedirs(os.path.dirname(alone))
        shutil.copy(PROGRAM, alone)
        run("show", "pebble-diffusion", code=3, program=alone)
        share = os.path.join(d, "a", "share", "bezel", "models")
        os.makedirs(share)
        for name in ("pebble", "pebble-diffusion"):
            shutil.copy(os.path.join(MODELS, name + ".gguf"), share)
        need("diffusion-gemma" in run("show", "pebble-diffusion", program=alone), "as installed")
        need("gemma4" in run("show", "pebble", program=alone), "its brother")


def says_when_no_canvas_fits():
    p = subprocess.run([PROGRAM, "run", *ASK, "-q", "-c", str(CANVAS)], capture_output=True, text=True, timeout=300)
    need(p.returncode == 1 and not p.stdout.strip() and p.stderr == "bezel: the context is full before the first token; use a larger '-c'.\n", str(p))


def condenses_in_a_terminal():
    with tempfile.TemporaryDirectory() as home, Terminal(
            [PROGRAM, "run", *ASK], rows=40, cols=90,
            env={"TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": home, "LANG": "C.UTF-8", "NO_COLOR": None}) as t:
        need(t.finish() == 0, "status")
        sent, shown = t.raw.decode("utf-8", "replace"), "".join(t.screen.text().split())     # lines break anywhere
    need("step 1 of 48" in sent and "step 2 of 48" in sent, "no steps are drawn")
    need("".join(STORY.split()) == shown, shown)
    with tempfile.TemporaryDirectory() as home, Terminal(
            [PROGRAM, "run", *ASK], rows=2, cols=8,
            env={"TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": home, "LANG": "C.UTF-8", "NO_COLOR": None}) as t:
        need(t.finish() == 0, "status")
        need("".join(STORY.split()) == "".join(t.screen.text().split()), "no room for a canvas: " + t.screen.text())


for f in (says_what_changes_nothing, says_when_no_canvas_fits, by_name_where_it_is_installed,
          *([] if QUICK else [a_seed_fixes_the_story, goes_on_over_canvases, condenses_in_a_terminal])):
    case("pebble diffusion " + f.__name__.replace("_", " "), f)
sys.exit(finish())
