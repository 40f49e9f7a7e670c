#!/usr/bin/env python3
"""A running server and its store: /api/pull, /api/copy, /api/delete, bezel ps and stop.

    test_pull_server.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
from cases import case, finish, need, same  # noqa: E402
from registry import Registry, digest_of  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
PATIENCE = 120
with open(os.path.join(HERE, "..", "..", "models", "pebble.gguf"), "rb") as f:
    MODEL = f.read()
PARTS = [("model", MODEL), ("params", b'{"temperature":0.5}')]


class Box:
    """a registry with a model, a store, and a server on it"""

    def __init__(self, hook=None):
        self.hook = hook

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.folder.name, "store")
        self.registry = Registry(self.hook).__enter__()
        self.registry.add("ns/m:t", PARTS)
        self.name = f"{self.registry.host}/ns/m:t"
        self.server = Serving(BEZEL, env={"OLLAMA_MODELS": self.store})
        return self

    def __exit__(self, *args):
        code, text = self.server.end()
        self.registry.__exit__()
        self.folder.cleanup()
        need(code == 0 or args[0], f"the server ended with {code}: {text}")

    def names(self):
        """of the store; the server lists the model it comes with, too"""
        return sorted(m["name"] for m in self.server.get("/api/tags")["models"] if m["name"] != "pebble")

    def blob(self):
        return os.path.join(self.store, "blobs", digest_of(MODEL).replace(":", "-"))


def hold(event):
    """a hook that sends half of each range of the model and waits"""
    def hook(handler, path):
        if not path.endswith(digest_of(MODEL)) or event.is_set():
            return False
        start, end = handler.range_of(len(MODEL))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(MODEL)}")
        handler.send_header("Content-Length", str(end - start))
        handler.end_headers()
        handler.send_bytes(MODEL[start:(start + end) // 2])
        event.wait(PATIENCE)
        handler.cut()
    return hook


def as_a_stream():
    with Box() as b:
        lines = b.server.lines("/api/pull", {"model": b.name})
        same(lines[0], {"status": "pulling manifest"}, "the first line")
        same([x["status"] for x in lines[-2:]], ["writing manifest", "success"], "the last lines")
        blob = [x for x in lines if x.get("digest") == digest_of(MODEL)]
        same(blob[-1], {"status": "pulling " + digest_of(MODEL)[7:19], "digest": digest_of(MODEL), "total": len(MODEL),
                        "completed": len(MODEL)}, "the last line of a file")
        same(b.names(), [b.name], "/api/tags")
        answer = b.server.post("/api/chat", {"model": b.name, "messages": [{"role": "user", "content": "Hi"}], "stream": False,
                                             "options": {"num_predict": 2}})
        need(answer["done"] and answer["message"]["role"] == "assistant", str(answer))
        lines = b.server.lines("/api/pull", {"name": b.name})  # as ollama-js says it; everything is there
        same(lines[-1], {"status": "success"}, "the last line")


def as_a_whole():
    with Box() as b:
        same(b.server.post("/api/pull", {"model": b.name, "stream": False}), {"status": "success"}, "the answer")
        same(b.names(), [b.name], "/api/tags")
        error = b.server.expect(404, "POST", "/api/pull", {"model": b.registry.host + "/ns/other", "stream": False})["error"]
        need("has no model" in error, error)


def errors():
    with Box() as b:
        lines = b.server.lines("/api/pull", {"model": b.registry.host + "/ns/other"})
        same(lines[0], {"status": "pulling manifest"}, "the first line")
        need(len(lines) == 2 and list(lines[1]) == ["error"] and "has no model" in lines[1]["error"], str(lines))
        for body in ({}, {"model": 3}, {"model": ""}, {"model": b.name, "stream": "yes"}, {"model": b.name, "insecure": 1}, []):
            b.server.expect(400, "POST", "/api/pull", body)
        b.registry.manifests["/v2/ns/huge/manifests/latest"] = json.dumps(dict(layers=[dict(
            mediaType="application/vnd.ollama.image.model", digest="sha256:" + "0" * 64, size=1 << 60)])).encode()
        error = b.server.expect(500, "POST", "/api/pull", {"model": b.registry.host + "/ns/huge", "stream": False})["error"]
        need("of free space" in error, error)
        error = b.server.expect(400, "POST", "/api/pull", {"model": "http://example.com/a/b", "stream": False})["error"]
        need("encryption" in error, error)
        for path in "/api/create", "/api/push", "/api/blobs/sha256:" + "0" * 64:
            need("use ollama" in b.server.expect(501, "POST", path, {"model": "x"})["error"], path)
        same(b.names(), [], "/api/tags")


def copy_and_delete():
    with Box() as b:
        b.server.post("/api/pull", {"model": b.name, "stream": False})
        b.server.post("/api/copy", {"source": b.name, "destination": "mine"})
        same(b.names(), [b.name, "mine:latest"], "/api/tags")
        b.server.post("/api/chat", {"model": "mine", "messages": [{"role": "user", "content": "Hi"}], "stream": False, "options": {"num_predict": 1}})
        b.server.expect(200, "DELETE", "/api/delete", {"model": "mine"})   # it is loaded
        need(os.path.exists(b.blob()), "the file of another name was removed")
        b.server.expect(200, "DELETE", "/api/delete", {"name": b.name})
        need(not os.path.exists(b.blob()), "the file was not removed")
        same(b.names(), [], "/api/tags")
        same(b.server.expect(404, "DELETE", "/api/delete", {"model": "mine"}), {"error": "model 'mine' not found"}, "a model that is gone")
        same(b.server.expect(404, "POST", "/api/copy", {"source": "mine", "destination": "x"}), {"error": "model 'mine' not found"}, "its copy")
        for method, path, body in (("POST", "/api/copy", {"source": "x"}), ("POST", "/api/copy", {"source": "x", "destination": "a/b/c/d"}),
                                   ("DELETE", "/api/delete", {}), ("DELETE", "/api/delete", {"model": "../x"})):
            b.server.expect(400, method, path, body)


def documented_lines():
    """the curl lines of docs/API.md that need a registry"""
    with open(os.path.join(HERE, "..", "..", "docs", "API.md"), encoding="utf-8") as f:
        lines = [line.strip() for line in f if re.match(r"    curl .*/api/(pull|copy|delete)", line)]
    same(len(lines), 3, "the number of lines")
    with Box() as b:
        for line in lines:
            p = subprocess.run(["sh", "-c", line.replace("gemma4:e2b", b.name) + " --fail"], env={**os.environ, "BEZEL": b.server.url},
                               capture_output=True, text=True, timeout=PATIENCE)
            need(p.returncode == 0 and "error" not in p.stdout, f"{line}: {p.returncode} {p.stdout} {p.stderr}")
        same(b.names(), [b.name], "/api/tags")


def not_of_the_store():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "own.gguf")
        with open(path, "wb") as f:
            f.write(MODEL)
        with Serving(BEZEL, path) as s:
            name = s.get("/api/tags")["models"][0]["name"]
            need("is not deleted" in s.expect(400, "DELETE", "/api/delete", {"model": name})["error"], "deleted")
            need(os.path.exists(path), "the file was removed")


def until_half(b, r):
    """reads a stream until half of the model has arrived"""
    while True:
        line = json.loads(r.readline())
        if line.get("completed", 0) >= len(MODEL) // 3:
            return


def wait_for_lock(path):
    end = time.time() + PATIENCE
    with open(path, "rb") as f:
        while time.time() < end:
            try:
                return fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
    raise AssertionError("the download goes on")


def client_leaves():
    event = threading.Event()
    with Box(hold(event)) as b:
        r = b.server.open("POST", "/api/pull", {"model": b.name})
        until_half(b, r)
        b.server.get("/api/version")                   # others are served meanwhile
        r.close()
        r.connection.close()
        wait_for_lock(b.blob() + ".bezel-journal")     # the download ends with its client
        event.set()
        b.server.post("/api/pull", {"model": b.name, "stream": False})
        same(b.names(), [b.name], "/api/tags")
        need(b.registry.served < 1.6 * len(MODEL), f"{b.registry.served} bytes were sent")


def server_stops():
    event = threading.Event()
    with Box(hold(event)) as b:
        r = b.server.open("POST", "/api/pull", {"model": b.name})
        until_half(b, r)
        code, text = b.server.end()
        same(code, 0, f"the exit code ({text})")
        event.set()
        r.connection.close()


def process_ends():
    """the process that downloads is killed: pulls end with a sentence, and answers go on"""
    event = threading.Event()
    with Box(hold(event)) as b:
        r = b.server.open("POST", "/api/pull", {"model": b.name})
        until_half(b, r)
        os.kill(b.server.downloader(), signal.SIGKILL)
        event.set()
        need("start the server again" in json.loads(r.read().splitlines()[-1])["error"], "the stream's end")
        r.connection.close()
        need("start the server again" in b.server.expect(500, "POST", "/api/pull", {"model": b.name, "stream": False})["error"], "the next pull")
        b.server.post("/api/generate", {"model": "pebble", "prompt": "Hi", "stream": False, "options": {"num_predict": 1}})


def too_many():
    event = threading.Event()
    with Box(hold(event)) as b:
        streams = [b.server.open("POST", "/api/pull", {"model": b.name}) for _ in range(16)]
        for r in streams:
            r.readline()
        b.server.expect(503, "POST", "/api/pull", {"model": b.name})
        event.set()
        for r in streams:
            same(json.loads(r.read().splitlines()[-1]), {"status": "success"}, "the last line")
            r.connection.close()
        need(b.registry.served < 1.6 * len(MODEL), f"{b.registry.served} bytes were sent")


def ps_and_stop():
    with Serving(BEZEL, "--api-key", "secret") as s:
        def bezel(*args, code=0, key="secret"):
            p = subprocess.run([BEZEL, *args, "--port", str(s.port), "--api-key", key], capture_output=True, text=True, timeout=PATIENCE)
            same(p.returncode, code, f"'bezel {' '.join(args)}' ({p.stdout}{p.stderr})")
            return p.stdout + p.stderr
        same(bezel("ps"), "NAME    ID    SIZE    PROCESSOR    CONTEXT    UNTIL\n", "ps without models")
        loaded = s.expect(200, "POST", "/api/generate", {"model": "pebble"}, Authorization="Bearer secret")
        same(loaded["done_reason"], "load", f"the reason ({loaded})")
        printed = bezel("ps")
        same(len(printed.splitlines()), 2, f"the number of lines after loading ({loaded}, {printed!r}, {bezel('ps', '--json')})")
        row = printed.splitlines()[1]
        need(re.fullmatch(r"pebble +[0-9a-f]{12} +[\d.]+ MB +100% CPU +2048 +(4 minutes|299 seconds|5 minutes) from now", row), row)
        same(json.loads(bezel("ps", "--json"))["models"][0]["name"], "pebble", "ps --json")
        same(bezel("stop", "pebble"), "", "stop prints")
        same(len(bezel("ps").splitlines()), 1, "the lines after stop")
        same(bezel("stop", "nope", code=3), 'bezel: couldn\'t find model "nope" to stop\n', "another name")
        need("The server says" in bezel("ps", code=1, key="wrong"), "a wrong key")
        same(json.loads(bezel("ps", "--health", key="wrong")), {"status": "ok"}, "health needs no key")
        port = s.port
    p = subprocess.run([BEZEL, "ps", "--port", str(port)], capture_output=True, text=True, timeout=PATIENCE)
    need(p.returncode == 1 and "start one with 'bezel serve'" in p.stderr, p.stderr)
    need(subprocess.run([BEZEL, "stop"], capture_output=True, timeout=PATIENCE).returncode == 2, "stop without a name")


def main():
    for name, run in (("pull as a stream", as_a_stream), ("pull as a whole", as_a_whole), ("errors", errors), ("copy and delete", copy_and_delete),
                      ("lines of docs/API.md", documented_lines),
                      ("a file that is not of the store", not_of_the_store), ("the client leaves", client_leaves),
                      ("the server stops", server_stops), ("the process that downloads is killed", process_ends), ("too many downloads", too_many), ("ps and stop", ps_and_stop)):
        case(name, run)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
