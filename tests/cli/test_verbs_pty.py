#!/usr/bin/env python3
"""Every verb once in a terminal: what a person sees, with nothing left of progress lines.

    test_verbs_pty.py PROGRAM MODELS        BEZEL_SHOW=1 prints the screens
"""
import os
import sys
import tempfile

from terminal import Terminal

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NANO = os.path.join(MODELS, "nano-e-f32.gguf")
SHOW = bool(os.environ.get("BEZEL_SHOW"))
failed = False


def case(name, args, expected, status=0):
    """the screen holds every expected text, in this order, and the program ends with `status`"""
    global failed
    reason = ""
    with tempfile.TemporaryDirectory() as home, Terminal(
            [BEZEL, *args], rows=200, cols=110,
            env={"TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": home, "LANG": "C.UTF-8",
                 "OLLAMA_MODELS": os.path.join(home, "none"), "NO_COLOR": None, "CLICOLOR_FORCE": None}) as t:
        code = t.finish()
        text = t.screen.text()
    at = 0
    for e in expected:
        found = text.find(e, at)
        if found < 0:
            reason = f"'{e}' is not on the screen after character {at}"
            break
        at = found + len(e)
    if not reason and code != status:
        reason = f"status {code}"
    if t.screen.unknown:
        reason = f"unknown sequences {t.screen.unknown}"
    if SHOW or reason:
        print(f"+--- {name} " + "-" * 60 + "\n" + "\n".join("| " + line for line in text.splitlines()))
    print(f"FAIL {name} {reason}" if reason else f"ok {name}")
    failed |= bool(reason)


with tempfile.TemporaryDirectory() as d:
    case("--help", ["--help"], ["Bezel runs Gemma 4", "run", "doctor"])
    case("--version", ["--version"], ["bezel 0."])
    case("run with a prompt", ["run", NANO, "hello", "-n", "5", "--seed", "1", "--no-think", "-v"],
         ["total duration", "eval rate", "finish"])
    case("list", ["list"], ["No Ollama store was found", "bezel run model.gguf"])
    case("show", ["show", NANO], ["Bezel runs this model", "Tokenizer", "Weights by type", "Memory by context size", "Metadata"])
    case("show --plan", ["show", NANO, "--plan"], ["embed", "attn_norm", "q_proj", "attend", "lm_head", "logits"])
    case("tokenize", ["tokenize", NANO, "the people"], ["2,"])
    rows = os.path.join(d, "o.f32")
    case("logits", ["logits", NANO, "-t", "2,500", "-o", rows], [])
    written = os.path.exists(rows) and os.path.getsize(rows) == 2 * 640 * 4
    print("ok logits wrote two rows" if written else "FAIL logits wrote no two rows")
    failed |= not written
    case("bench", ["bench", NANO, "-p", "16", "-n", "4", "--repeat", "1"], ["prefill", "decode", "tokens/s"])
    case("doctor", ["doctor"], ["processor", "kernels", "memory", "bandwidth", "gpu"])
    case("a missing model", ["run", os.path.join(d, "none.gguf"), "hi"], ["bezel:", "none.gguf"], status=3)
sys.exit(failed)
