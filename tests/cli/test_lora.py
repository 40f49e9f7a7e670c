#!/usr/bin/env python3
"""Adapters in the program: options, batches, Ollama's store, the server, what is refused.

    test_lora.py PROGRAM MODELS
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tools")]
import fake_store  # noqa: E402
import lora_synth  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
PEBBLE = os.path.join(ROOT, "models", "pebble.gguf")
PROMPT = "Tell me about a fox."
SETTINGS = ["--temp", "0", "-n", "12", "--no-think"]


def bezel(*args, code=0, text=None, env=None):
    r = subprocess.run([BEZEL, *args], capture_output=True, text=True, timeout=120, input=text, env={**os.environ, **(env or {})})
    need(r.returncode == code, f"{args}: {r.returncode} instead of {code}: {r.stderr}")
    return r.stdout if code == 0 else r.stderr


def answer(*args, **more):
    return bezel("run", PEBBLE, PROMPT, *SETTINGS, *args, **more)


def strengths():
    plain, whole = answer(), answer("--lora", LORA)
    need(plain and whole and plain != whole, f"{plain!r} and {whole!r}")
    same(answer("--lora", LORA + ":0"), plain, "scale 0")
    same(answer("--lora", LORA + ":1"), whole, "scale 1")
    same(answer("--lora", LORA + ":2", "--lora", LORA + ":-1"), whole, "2 - 1 of it")
    need(answer("--lora", LORA + ":0.3") != answer("--lora", LORA + ":3"), "the scale has no effect")
    os.link(LORA, COLON)
    same(answer("--lora", COLON), whole, "a name with a colon")


def logits():
    def row(*args):
        bezel("logits", PEBBLE, "-t", "2,500,501,502", "-o", OUT, *args)
        with open(OUT, "rb") as f:
            return f.read()
    need(row() != row("--lora", LORA) == row("--lora", LORA, "--chunk", "1"), "logits")
    same(row("--lora", LORA + ":0"), row(), "without it")


def prompts():
    line = json.dumps({"prompt": PROMPT, "options": {"temperature": 0}})
    def batch(*args):
        out = bezel("run", PEBBLE, "--prompts", "-", *SETTINGS, *args, text=line + "\n" + line + "\n")
        return [json.loads(x)["text"] for x in out.splitlines()]
    same(batch("--lora", LORA), [answer("--lora", LORA).strip()] * 2, "the batch")
    same(batch(), [answer().strip()] * 2, "the batch without it")


def saved():
    with tempfile.TemporaryDirectory() as top:
        chat = os.path.join(top, "chat.json")
        first = answer("--session", chat, "--lora", LORA)
        same(first, answer("--lora", LORA), "the first answer")
        again = bezel("run", PEBBLE, "And then?", *SETTINGS, "--session", chat)
        need(again, "another adapter keeps the conversation and computes it again")


def store():
    with tempfile.TemporaryDirectory() as top:
        with open(LORA, "rb") as f:
            fake_store.add(top, "fox:latest", PEBBLE, adapter=f.read())
        env = {"OLLAMA_MODELS": top}
        same(bezel("run", "fox", PROMPT, *SETTINGS, env=env), answer("--lora", LORA), "the stored model")
        with Serving(BEZEL, env=env) as s:
            same(chat(s, "fox"), answer("--lora", LORA).strip(), "the server's answer")
    with tempfile.TemporaryDirectory() as top:
        fake_store.add(top, "fox:latest", PEBBLE, adapter=b"no adapter")
        need("GGUF" in bezel("run", "fox", PROMPT, code=1, env={"OLLAMA_MODELS": top}), "a broken layer")


def chat(s, model, **more):
    request = {"model": model, "messages": [{"role": "user", "content": PROMPT}], "temperature": 0, "max_tokens": 12, **more}
    return s.post("/v1/chat/completions", request)["choices"][0]["message"]["content"].strip()


def server():
    want = answer("--lora", LORA).strip()
    with Serving(BEZEL, PEBBLE, "--lora", LORA) as s:
        same(chat(s, "pebble"), want, "the answer")
        same(chat(s, "pebble", logprobs=True), want, "the answer of a session")
        for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}), ("/v1/completions", {"prompt": "hi"}),
                           ("/api/chat", {"model": "pebble", "messages": [{"role": "user", "content": "hi"}]}), ("/api/generate", {"model": "pebble", "prompt": "hi"})):
            status, _, got = s.ask("POST", path, {**body, "lora": [{"id": 0, "scale": 1}]})
            need(status == 400 and b"lora is not supported" in got, f"{path}: {status} {got}")
    with Serving(BEZEL, PEBBLE) as s:
        same(chat(s, "pebble"), answer().strip(), "the answer without it")


def refused():
    need("no such file" in answer("--lora", "/nowhere.gguf", code=3).lower(), "a missing file")
    need("is no scale" in answer("--lora", LORA + ":x", code=2), "no scale")
    need("general.type" in answer("--lora", PEBBLE, code=1), "a model")
    need("do not fit" in bezel("run", os.path.join(sys.argv[2], "nano-e-q4_0.gguf"), "hi", "--lora", LORA, code=1), "another model")
    need("exactly one model" in bezel("serve", "--lora", LORA, code=2), "serve without a model")
    need("do not fit" in bezel("serve", os.path.join(sys.argv[2], "nano-e-q4_0.gguf"), "--port", "0", "--lora", LORA, code=1), "serve with another model")
    need("adapters change" in bezel("bench", PEBBLE, "--media", "--lora", LORA, code=2), "bench --media")
    need("'--plan'" in bezel("show", PEBBLE, "--lora", LORA, code=2), "show without --plan")


def shown():
    text = bezel("show", LORA)
    need("LoRA adapter" in text and "rank 4, alpha 120" in text, text)
    same(json.loads(bezel("show", LORA, "--json"))["adapter"]["most_rank"], 4, "the rank")
    plan = bezel("show", PEBBLE, "--plan", "--lora", LORA)
    need(plan.count("add_low_rank") > plan.count(" lora_a ") > 10, plan[-500:])  # Q, K and V have one A


with tempfile.TemporaryDirectory() as folder:
    LORA, COLON, OUT = (os.path.join(folder, name) for name in ("lora.gguf", "a:b.gguf", "out.f32"))
    lora_synth.main([PEBBLE, LORA, "--rank", "4", "--alpha", "120", "--type", "f16", "--embeddings"])
    for run in (strengths, logits, prompts, saved, store, server, refused, shown):
        case(f"adapters: {run.__name__}", run)
sys.exit(finish())
