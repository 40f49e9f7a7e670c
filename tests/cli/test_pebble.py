#!/usr/bin/env python3
"""Pebble from outside: the model of a run that names none, and what it can do.

    test_pebble.py PROGRAM [DIR]

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

PROGRAM = os.path.abspath(sys.argv[1])
PEBBLE = os.path.join(HERE, "..", "..", "models", "pebble.gguf")
ASK = {"temperature": 0, "num_predict": 200}


def run(*args, stdin="", code=0, program=PROGRAM, **env):
    p = subprocess.run([program, *args], capture_output=True, text=True, input=stdin, timeout=600, env={**os.environ, "OLLAMA_MODELS": "/nonexistent", **env})
    need(p.returncode == code, f"{args} ended with {p.returncode}: {p.stderr}")
    return p


def answer(request):
    out = run("run", PEBBLE, "--prompts", "-", "-q", stdin=json.dumps(dict(request, options=ASK)) + "\n").stdout
    return json.loads(out)


def without_a_name():
    p = run("run", "--temp", "0", "--no-think", stdin="Who are you?")
    need("tiny demo model" in p.stdout, p.stdout)
    need(run("run", "Who are you?", "--temp", "0", "--no-think").stdout == p.stdout, "a lone prompt")
    told = [x for x in p.stderr.splitlines() if "Pebble" in x]
    need(len(told) == 1 and "bezel run model.gguf" in told[0] and "bezel list" in told[0], p.stderr)
    need("Pebble" not in run("run", "--temp", "0", "--no-think", "-q", stdin="Hello!").stderr, "quiet is not quiet")


def names_the_store():
    with tempfile.TemporaryDirectory() as store:
        import hashlib
        blobs, names = os.path.join(store, "blobs"), os.path.join(store, "manifests", "registry.ollama.ai", "library", "gemma4")
        os.makedirs(blobs)
        os.makedirs(names)

        def blob(data):
            digest = hashlib.sha256(data).hexdigest()
            with open(os.path.join(blobs, f"sha256-{digest}"), "wb") as f:
                f.write(data)
            return {"digest": f"sha256:{digest}", "size": len(data)}
        layer = blob(open(os.path.join(HERE, "..", "..", "build", "golden", "e-like", "text.gguf"), "rb").read())
        config = blob(json.dumps({"model_format": "gguf", "model_family": "gemma4"}).encode())
        with open(os.path.join(names, "e2b"), "w") as f:
            json.dump({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "config": dict(config, mediaType="application/vnd.docker.container.image.v1+json"),
                       "layers": [dict(layer, mediaType="application/vnd.ollama.image.model")]}, f)
        p = run("run", "--temp", "0", "--no-think", "-n", "4", stdin="Hello!", OLLAMA_MODELS=store)
        need("Ollama's store has gemma4:e2b; try 'bezel run gemma4:e2b'." in p.stderr, p.stderr)


def not_there():
    with tempfile.TemporaryDirectory() as d:
        alone = os.path.join(d, "a", "b", "bezel")
        os.makedirs(os.path.dirname(alone))
        shutil.copy(PROGRAM, alone)
        need("no model given" in run("run", code=2, program=alone).stderr, "no model, no name: a usage error")
        share = os.path.join(d, "a", "share", "bezel", "models")
        os.makedirs(share)
        shutil.copy(PEBBLE, share)
        need("tiny demo model" in run("run", "--temp", "0", "--no-think", stdin="Who are you?", program=alone).stdout, "as installed")


def thinks():
    request = {"messages": [{"role": "user", "content": "What is the opposite of hot?"}]}
    on, off = answer(dict(request, think=True)), answer(dict(request, think=False))
    need(on.get("thinking") and "cold" in on["text"], str(on))
    need(not off.get("thinking") and "cold" in off["text"], str(off))


def calls_a_tool():
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Looks up the weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
    ask = [{"role": "user", "content": "What is the weather in Oslo?"}]
    got = answer({"messages": ask, "tools": tools, "think": False})
    need([c["function"] for c in got["tool_calls"]] == [{"name": "get_weather", "arguments": {"city": "Oslo"}}], str(got))
    ask += [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}]},
            {"role": "tool", "tool_call_id": "1", "content": "snowy, -3 degrees"}]
    got = answer({"messages": ask, "tools": tools, "think": False})
    need("snowy" in got["text"] and "-3" in got["text"], str(got))


def remembers():
    got = answer({"messages": [{"role": "user", "content": "My name is Tom."}, {"role": "assistant", "content": "Nice to meet you, Tom!"}, {"role": "user", "content": "What is my name?"}], "think": False})
    need("Tom" in got["text"], str(got))


def tells_a_story():
    got = answer({"messages": [{"role": "user", "content": "Tell me a story about a fox in the forest."}], "think": False})
    need("fox" in got["text"] and "forest" in got["text"] and len(got["text"].split()) > 40 and got["finish"] == "end", str(got))


for f in (without_a_name, names_the_store, not_there, thinks, calls_a_tool, remembers, tells_a_story):
    case("pebble " + f.__name__.replace("_", " "), f)
sys.exit(finish())
