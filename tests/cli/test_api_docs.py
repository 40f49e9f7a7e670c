#!/usr/bin/env python3
"""Every curl line of docs/API.md, against a running server; and every endpoint has one.

    test_api_docs.py PROGRAM MODELS
"""
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need  # noqa: E402
from progress import PATIENCE  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
EMBEDDING = os.path.join(os.environ.get("BEZEL_GOLDEN", "build/golden"), "embedding", "text.gguf")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# What is documented as not supported, or needs a registry.
REFUSED = {"/infill": 501}
NOT_RUN = ("/api/pull", "/api/copy", "/api/delete", "/api/create", "/api/push", "/api/blobs/")


def lines():
    with open(os.path.join(ROOT, "docs", "API.md"), encoding="utf-8") as f:
        return [line.strip() for line in f if re.match(r"    curl ", line)]


def path_of(line):
    return re.search(r"\$BEZEL(/[\w/.-]*)", line).group(1)


def run(line, s):
    p = subprocess.run(["sh", "-c", line.replace('"embeddinggemma"', '"text"') + ' -w "\\n%{http_code} %{content_type}"'], env={**os.environ, "BEZEL": s.url}, capture_output=True, text=True, timeout=PATIENCE)
    need(p.returncode == 0, f"{p.returncode} {p.stderr}")
    body, _, last = p.stdout.rpartition("\n")
    status, kind = last.split(" ", 1)
    need(int(status) == REFUSED.get(path_of(line), 200), f"{status} {body[:300]}")
    if kind == "application/json":
        json.loads(body)
    elif kind == "application/x-ndjson":
        need(json.loads(body.splitlines()[-1])["done"], body[-200:])
    elif kind == "text/event-stream":
        need(body.endswith("data: [DONE]\n\n"), body[-200:])
    else:
        need(kind.startswith("text/plain") and body, kind)


def complete():
    routes = set()
    for file in glob.glob(os.path.join(ROOT, "server", "api", "*.c")):
        with open(file, encoding="utf-8") as f:
            routes |= set(re.findall(r'^\s*\{"(/[\w/.-]+)", HTTP_', f.read(), re.M))
    shown = {path_of(line) for line in lines()}
    with open(os.path.join(ROOT, "docs", "API.md"), encoding="utf-8") as f:
        text = f.read()
    missing = {r for r in routes if r.rstrip("/") not in text} | {r for r in routes if not r.endswith("/") and r not in shown and r not in NOT_RUN and r != "/api/embeddings"}
    need(len(routes) > 20 and not missing - {"/v1/", "/api/", "/api/blobs/"}, f"{len(routes)} routes, not in docs/API.md: {sorted(missing)}")


def main():
    case("docs/API.md has every endpoint", complete)
    with Serving(BEZEL, os.path.join(ROOT, "models", "pebble.gguf"), "--model", EMBEDDING) as s:
        for line in lines():
            if path_of(line) not in NOT_RUN:
                case(line[:90], run, line, s)
    return finish()


sys.exit(main())
