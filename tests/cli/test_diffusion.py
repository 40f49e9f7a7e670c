#!/usr/bin/env python3
"""Diffusion models from outside: recorded generations replayed, a canvas condensing in a terminal, chat, files of prompts.

    test_diffusion.py PROGRAM MODELS [OPTION...]     options go to every verb, such as --device gpu
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from cases import case, finish, need  # noqa: E402
from gguf_io import Reader  # noqa: E402
from terminal import Terminal  # noqa: E402

BEZEL, MORE = os.path.abspath(sys.argv[1]), sys.argv[3:]
FOLDER = os.path.join(ROOT, "build", "golden", "diffusion")
MODEL = os.path.join(FOLDER, "text.gguf")
golden = Reader(os.path.join(FOLDER, "golden.gguf"))


def bezel(*args, code=0, stdin=""):
    r = subprocess.run([BEZEL, *args, *MORE], input=stdin, capture_output=True, text=True, timeout=300)
    need(r.returncode == code, f"{args[0]} ends with {r.returncode}: {r.stderr}")
    return r


def ids(*arrays):
    return ",".join(str(x) for a in arrays for x in np.asarray(a).reshape(-1).tolist())


def logits(d):
    def rows(tokens, canvas, *extra):
        out = os.path.join(d, "rows.f32")
        bezel("logits", MODEL, "-t", tokens, "--canvas", ids(canvas), "-o", out, *extra)
        return np.fromfile(out, np.float32).reshape(16, 768)

    def close(got, name):
        off = abs(got - golden.get(name)).max()
        need(off <= 1e-3, f"{name}: off by {off}")

    prompt = golden.get("prompt")
    first = rows(ids(prompt), golden.get("step0.canvas"))
    close(first, "step0.logits")
    kept = os.path.join(d, "step0.f32")
    first.tofile(kept)
    close(rows(ids(prompt), golden.get("step1.canvas"), "--self-cond", kept), "step1.logits")
    other = rows(ids(prompt), golden.get("step1.canvas"), "--self-cond", kept, "--self-cond-temp", "0.4")
    need(abs(other - golden.get("step1.logits")).max() > 1e-2, "the temperature makes no difference")
    close(rows(ids(prompt, golden.get("commit.tokens")), golden.get("after_commit.canvas")), "after_commit.logits")


def generation(d, name, *extra):
    init, u, noise, step = (golden.get(f"{name}.{k}") for k in ("init", "u", "random", "step"))
    draws, trace, canvas = os.path.join(d, "draws"), os.path.join(d, "trace"), 0
    with open(draws, "wb") as f:
        for i, left in enumerate(step):
            if left == 6:
                f.write(init[canvas].astype("<i4").tobytes())
                canvas += 1
            f.write(u[i].astype("<f4").tobytes() + noise[i].astype("<i4").tobytes())
    want = golden.get(f"{name}.sequence")[21:]
    said = bezel("diffuse", MODEL, "-t", ids(golden.get("prompt")), "--draws", draws, "--trace", trace, "-n", str(len(want)), *extra).stdout
    said = [int(x) for x in said.split(",")]
    need(said + [0] * (len(want) - len(said)) == want.tolist(), f"said {said}")
    with open(trace, encoding="utf-8") as f:
        steps = [json.loads(x) for x in f]
    for key in "step", "canvas_in", "argmax", "sampled", "accepted", "canvas_out", "stop":
        need(np.array_equal(np.array([s[key] for s in steps]), golden.get(f"{name}.{key}")), f"{key} differs")
    off = abs(np.array([s["entropy"] for s in steps]) - golden.get(f"{name}.entropy")).max()
    need(off <= 1e-2, f"entropy off by {off}")
    with open(draws, "rb+") as f:  # one word is missing
        f.truncate(os.path.getsize(draws) - 4)
    r = bezel("diffuse", MODEL, "-t", ids(golden.get("prompt")), "--draws", draws, "-n", str(len(want)), *extra, code=2)
    need("not enough random numbers" in r.stderr, r.stderr)


def refusals(d):
    text = os.path.join(ROOT, "build", "golden", "moe-like", "text.gguf")
    out = os.path.join(d, "o")
    for args, words in ((("diffuse", text, "-t", "2"), "not a diffusion model"),
                        (("logits", MODEL, "-t", "2", "-o", out), "--canvas"),
                        (("logits", text, "-t", "2", "--canvas", "2", "-o", out), "not a diffusion model"),
                        (("logits", MODEL, "-t", "2", "--canvas", "2,3", "-o", out), "has 2 ids"),
                        (("diffuse", MODEL, "-t", "2", "--confidence", "much"), "needs a number"),
                        (("diffuse", MODEL), "no tokens given")):
        r = bezel(*args, code=2)
        need(words in r.stderr, r.stderr)


def answer(*extra):
    return bezel("run", MODEL, "hello", "--seed", "5", "-n", "32", "--no-think", "--ignore-end", *extra).stdout


def seeds(_):
    plain = answer()
    need(plain == answer() and len(plain) > 10, "another answer")
    need(MORE or plain == answer("--chunk", "3", "--threads", "1"), "another answer in chunks")  # a GPU has other kernels for few rows
    need("\x1b" not in plain, "it draws in a pipe")


def in_terminal(cols, rows, *extra):
    """what is on the screen at the end, and all that was ever sent to it"""
    with tempfile.TemporaryDirectory() as home, Terminal(
            [BEZEL, "run", MODEL, "hello", "--seed", "5", "-n", "32", "--no-think", "--ignore-end", *extra, *MORE], rows=rows, cols=cols,
            env={"TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": home, "LANG": "C.UTF-8", "NO_COLOR": None}) as t:
        code = t.finish()
        need(code == 0, f"status {code}")
        need(not t.screen.unknown, f"unknown sequences {t.screen.unknown}")
        return t.screen.text(), t.raw.decode("utf-8", "replace")


def condenses(_):
    for cols, rows in ((100, 60), (40, 100), (40, 9), (20, 5)):  # in small windows too nothing goes into the scrollback
        still, sent = in_terminal(cols, rows, "--no-animation")
        need("step " not in sent, "--no-animation draws")
        moving, sent = in_terminal(cols, rows)
        need("step 1 of 6" in sent and "step 2 of 6" in sent and sent.count("\x1b[J") >= 12, "no steps are drawn")
        need("\x1b[2m" in sent, "nothing is dim")
        need(moving == still, f"{cols} columns: something is left on the screen:\n{moving}\n---\n{still}")


def prompts(d):
    path, out = os.path.join(d, "in.jsonl"), os.path.join(d, "out.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(json.dumps({"prompt": p, "id": i}) + "\n" for i, p in enumerate(("one", "two", "one"))))
    bezel("run", MODEL, "--prompts", path, "--out", out, "-n", "20", "--ignore-end", "--seed", "1", "--parallel", "4")
    with open(out, encoding="utf-8") as f:
        lines = [json.loads(x) for x in f]
    need([x["id"] for x in lines] == [0, 1, 2] and all(x["usage"]["completion_tokens"] == 20 for x in lines), str(lines))
    need(lines[0]["text"] != lines[2]["text"], "two lines share their chance")


def chat(_):
    with tempfile.TemporaryDirectory() as home, Terminal(
            [BEZEL, "run", MODEL, "-n", "20", "--no-think", "--seed", "2", *MORE], rows=60, cols=90,
            env={"TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": home, "LANG": "C.UTF-8", "NO_COLOR": None}) as t:
        for words in "hello", "and now":
            t.prompt()
            t.type(words + "\r")
            t.until(lambda: t.raw.count(b"step 1 of 6") >= (1 if words == "hello" else 2), what="steps")
        t.prompt()
        t.type("/bye\r")
        need(t.finish() == 0, "status")


def main():
    with tempfile.TemporaryDirectory() as d:
        case("logits of a canvas", logits, d)
        case("a generation of two canvases", generation, d, "gen")
        case("a generation that an end token stops", generation, d, "gen_eos")
        case("a generation that is confident early", generation, d, "gen_stop", "--stability", "0", "--confidence", "0.6")
        case("refusals", refusals, d)
        case("seeds, chunks, threads", seeds, d)
        if not MORE:
            case("a canvas is drawn in a terminal while it changes", condenses, d)
            case("a chat", chat, d)
            case("a file of prompts", prompts, d)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
