#!/usr/bin/env python3
"""Downloads: bezel pull, rm and cp over stores of our own, from a real registry and from one that misbehaves.

    test_pull.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
from cases import case, finish, need, same  # noqa: E402
from registry import DockerRegistry, Registry, digest_of, layer  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
PEBBLE = os.path.join(HERE, "..", "..", "models", "pebble-diffusion.gguf")
PATIENCE = 120
MIB = 1 << 20
BIG = random.Random(1).randbytes(6 * MIB + 12345)       # seven ranges
SMALL = b'{"temperature":0.5}'
PARTS = [("model", BIG), ("params", SMALL)]
NAME = "ns/m:t"


def environment(store, **more):
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return {**clean, "OLLAMA_MODELS": store, **more}


def bezel(store, *args, code=0, **env):
    p = subprocess.run([BEZEL, *args], capture_output=True, text=True, timeout=PATIENCE, env=environment(store, **env))
    need(p.returncode == code, f"'bezel {' '.join(args)}' ended with {p.returncode}: {p.stderr.strip()}")
    return p.stdout + p.stderr


class Box:
    """a store and a registry with one model"""

    def __init__(self, hook=None, parts=PARTS):
        self.hook, self.parts = hook, parts

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.folder.name, "store")
        self.registry = Registry(self.hook).__enter__()
        self.manifest = self.registry.add(NAME, self.parts)
        self.name = f"{self.registry.host}/{NAME}"
        return self

    def __exit__(self, *args):
        self.registry.__exit__()
        self.folder.cleanup()

    def pull(self, *args, code=0, **env):
        return bezel(self.store, "pull", self.name, "--retries", "2", *args, code=code, **env)

    def blob(self, data):
        return os.path.join(self.store, "blobs", digest_of(data).replace(":", "-"))

    def files(self):
        return sorted(os.listdir(os.path.join(self.store, "blobs"))) if os.path.exists(os.path.join(self.store, "blobs")) else []

    def manifest_path(self):
        return os.path.join(self.store, "manifests", self.registry.host, "ns", "m", "t")

    def check(self):
        """the model is there, whole, and nothing else"""
        want = [layer["digest"].replace(":", "-") for layer in [self.manifest["config"], *self.manifest["layers"]]]
        same(self.files(), sorted(set(want)), "blobs/")
        for _, data in self.parts:
            with open(self.blob(data), "rb") as f:
                need(f.read() == data, "a blob has other bytes")
        with open(self.manifest_path(), "rb") as f:
            same(f.read(), self.registry.manifests["/v2/ns/m/manifests/t"], "the manifest")

    def refused(self, text, *args, code=1):
        """the pull fails with these words, and the name does not exist"""
        out = self.pull(*args, code=code)
        need(text in out, f"says: {out}")
        need(not os.path.exists(self.manifest_path()), "there is a manifest")
        return out


def is_blob(path, data=BIG):
    return path.endswith("/blobs/" + digest_of(data))


# ---- a real registry ----


def real_registry():
    with tempfile.TemporaryDirectory() as d, DockerRegistry(d) as r, open(PEBBLE, "rb") as f:
        store = os.path.join(d, "store")
        r.push("ns/pebble:q8", [("model", f.read()), ("params", SMALL)])
        name = f"{r.host}/ns/pebble:q8"
        need("success" in bezel(store, "pull", name), "no success")
        need(re.search(rf"^{re.escape(name)} .* yes$", bezel(store, "list"), re.M), "list does not show it")
        need("0 failures" in bezel(store, "verify", name), "verify")
        need("has no model" in bezel(store, "pull", f"{r.host}/ns/other", code=3), "another name")


def real_registry_with_tokens():
    with tempfile.TemporaryDirectory() as d:
        def issue(handler, path):
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
            asked.append((query, handler.headers.get("Authorization")))
            handler.answer(200, json.dumps(dict(token=r.token(["pull"], "ns/m"))).encode())
        asked = []
        with Registry(issue) as tokens, DockerRegistry(d, f"http://{tokens.host}/token") as r:
            r.push(NAME, PARTS, token=r.token(["pull", "push"], "ns/m"))
            bezel(os.path.join(d, "store"), "pull", f"{r.host}/{NAME}")
            same(len(asked), 1, "the number of tokens")
            same(asked[0], ({"service": ["test"], "scope": ["repository:ns/m:pull"]}, None), "the request for a token")


# ---- a good one ----


def ranges():
    barrier = threading.Event()

    def hook(handler, path):                          # answers when a second request is there
        if is_blob(path):
            if handler.server.running > 1:
                barrier.set()
            need(barrier.wait(PATIENCE), "one request at a time")
        return False
    with Box(hook) as b:
        b.pull()
        b.check()
        got = [h["Range"] for path, h in b.registry.requests if is_blob(path)]
        need(len(got) == 7 and len(set(got)) == 7, str(got))
        small = [h for path, h in b.registry.requests if is_blob(path, SMALL)]
        need(len(small) == 1 and "Range" not in small[0], str(small))
        need(all("Accept" in h and "docker" in h["Accept"] for path, h in b.registry.requests if "/manifests/" in path), "Accept")
        same(b.registry.requests[0][0], "/v2/ns/m/manifests/t", "the first request")
        modes = [oct(os.stat(p).st_mode & 0o777) for p in (b.blob(BIG), b.manifest_path(), os.path.dirname(b.blob(BIG)))]
        same(modes, ["0o644", "0o644", "0o755"], "permissions")


def one_connection():
    with Box() as b:
        b.pull("--connections", "1")
        b.check()
        same(b.registry.most, 1, "requests at a time")


def again_fetches_nothing():
    with Box() as b:
        b.pull()
        before = len(b.registry.requests)
        b.pull()
        same([p for p, _ in b.registry.requests[before:]], ["/v2/ns/m/manifests/t"], "requests")
        with open(b.blob(SMALL), "wb") as f:          # of another size
            f.write(b"{}")
        b.pull()
        b.check()


def json_lines():
    with Box() as b:
        lines = [json.loads(line) for line in b.pull("--json").splitlines()]
        same(lines[0], {"status": "pulling manifest"}, "the first line")
        same(lines[-1], {"status": "success"}, "the last line")
        last = [x for x in lines if x.get("digest") == digest_of(BIG)][-1]
        same(last, {"status": "pulling " + digest_of(BIG)[7:19], "digest": digest_of(BIG), "total": len(BIG), "completed": len(BIG)}, "a blob")
        need([x["status"] for x in lines if x["status"] == "writing manifest"], "no 'writing manifest'")
        same(b.pull("--quiet"), "", "--quiet prints")


def on_a_terminal():
    first = threading.Event()

    def hook(handler, path):                          # half of each range, a while, and the rest
        if not is_blob(path):
            return False
        start, end = handler.range_of(len(BIG))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(BIG)}")
        handler.send_header("Content-Length", str(end - start))
        handler.end_headers()
        middle = (start + end) // 2
        handler.send_bytes(BIG[start:middle])
        first.wait(PATIENCE)
        handler.send_bytes(BIG[middle:end])
    with Box(hook) as b:
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(BEZEL, [BEZEL, "pull", b.name], environment(b.store, TERM="xterm", LANG="C.UTF-8"))
        text = b""
        while True:
            try:
                data = os.read(fd, 4096)
            except OSError:
                break
            text += data
            if b" left" in text:
                first.set()
            if not data:
                break
        os.close(fd)
        need(os.waitpid(pid, 0)[1] == 0, text.decode())
        need(re.search(rb"\r\x1b\[Kpulling [0-9a-f]{12}: \d+%, [\d.]+ MB of 6.30 MB, [\d.]+ [kM]?B/s, \d+ (s|min|h)[ \w]* left", text), repr(text))
        need(text.count(b"\n") <= 9, repr(text))      # one line per status, rewritten
        b.check()


def model_replaced():
    with Box() as b:
        b.pull()
        old, b.parts = b.blob(BIG), [("model", b"new model"), ("params", SMALL)]
        b.manifest = b.registry.add(NAME, b.parts)
        b.pull(OLLAMA_NOPRUNE="1")
        need(os.path.exists(old), "the old file was removed in spite of OLLAMA_NOPRUNE")
        b.registry.add(NAME, PARTS)
        b.pull()
        b.manifest = b.registry.add(NAME, b.parts)
        b.pull()
        b.check()


# ---- interruptions ----


class Dam:
    """lets half of every range pass until it is opened"""

    def __init__(self):
        self.open = threading.Event()

    def __call__(self, handler, path):
        if not is_blob(path) or self.open.is_set():
            return False
        start, end = handler.range_of(len(BIG)) or (0, len(BIG))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(BIG)}")
        handler.send_header("Content-Length", str(end - start))
        handler.end_headers()
        handler.send_bytes(BIG[start:(start + end) // 2])
        self.open.wait(PATIENCE)
        handler.cut()


def journal_of(b):
    try:
        with open(b.blob(BIG) + ".bezel-journal", encoding="ascii", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def journaled(text):
    done = set()
    for start, end in re.findall(r"^(\d+) (\d+) [0-9a-f]{8}$", text, re.M):
        done.add((int(start), int(end)))
    return sum(end - start for start, end in done)


def interrupt(b, number):
    """starts a pull and ends it by a signal when half of the bytes are in the journal; -> their number, the process"""
    p = subprocess.Popen([BEZEL, "pull", b.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(b.store))
    end = time.time() + PATIENCE
    while journaled(journal_of(b)) < len(BIG) // 2 and time.time() < end and p.poll() is None:
        time.sleep(0.02)
    p.send_signal(number)
    p.text = p.communicate(timeout=PATIENCE)[0]
    done = journaled(journal_of(b))
    need(len(BIG) // 2 <= done < len(BIG), f"{done} bytes are in the journal: {p.text}")
    return done, p


def killed():
    dam = Dam()
    with Box(dam) as b:
        done, _ = interrupt(b, signal.SIGKILL)
        need(not os.path.exists(b.manifest_path()) and not os.path.exists(b.blob(BIG)), "the model is there")
        dam.open.set()
        before = b.registry.served
        b.pull()
        b.check()
        rest = sum(len(x) for x in (b.registry.manifests["/v2/ns/m/manifests/t"], SMALL, b'{"model_format":"gguf"}'))
        same(b.registry.served - before, len(BIG) - done + rest, "bytes that were sent again")


def ctrl_c():
    dam = Dam()
    with Box(dam) as b:
        _, p = interrupt(b, signal.SIGINT)
        need(p.returncode == 130 and "the next one continues" in p.text, f"{p.returncode}: {p.text}")
        dam.open.set()
        b.pull()
        b.check()


def cut_journals():
    """a journal that ends anywhere, or in garbage: the model is whole afterwards"""
    dam = Dam()
    with Box(dam) as b:
        interrupt(b, signal.SIGKILL)
        dam.open.set()
        text = journal_of(b).encode()
        with open(b.blob(BIG) + ".bezel-part", "rb") as f:
            part = f.read()
        lines = [i + 1 for i, c in enumerate(text) if c == 10]
        for journal in [text[:0], text[:10], text[:lines[0]], text[:lines[1] - 3], text[:lines[1]] + text[lines[2]:-1],
                        text + b"\0" * 4096, text + b"0 99999999999 00000000\n", text.replace(b"bezel-pull 1", b"bezel-pull 2"), b"\xff" * 100]:
            for path in b.blob(BIG), b.blob(SMALL), b.manifest_path():
                if os.path.exists(path):
                    os.unlink(path)
            with open(b.blob(BIG) + ".bezel-journal", "wb") as f:
                f.write(journal)
            with open(b.blob(BIG) + ".bezel-part", "wb") as f:
                f.write(part)
            b.pull()
            b.check()
        os.unlink(b.blob(BIG))                        # a journal without its part file, and the reverse
        with open(b.blob(BIG) + ".bezel-journal", "wb") as f:
            f.write(text)
        b.pull()
        b.check()
        os.unlink(b.blob(BIG))
        with open(b.blob(BIG) + ".bezel-part", "wb") as f:
            f.write(part)
        b.pull()
        b.check()


def damaged_part():
    """the journal lists bytes that are wrong: found by the digest, and fetched again without a question"""
    dam = Dam()
    with Box(dam) as b:
        interrupt(b, signal.SIGKILL)
        dam.open.set()
        with open(b.blob(BIG) + ".bezel-part", "r+b") as f:
            f.write(b"wrong")
        b.pull()
        b.check()


def until_it_waits(process):
    """reads what a second pull prints; it must wait for the first one"""
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    line = process.stderr.readline()
    while line and "waiting for another pull" not in line:
        line = process.stderr.readline()
    timer.cancel()
    need(line, "the second pull does not wait")


def two_at_once():
    dam = Dam()
    with Box(dam) as b:
        command = [BEZEL, "pull", b.name]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(b.store))
        end = time.time() + PATIENCE
        while not journal_of(b) and time.time() < end:
            time.sleep(0.02)
        second = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(b.store))
        until_it_waits(second)
        dam.open.set()
        need(first.wait(PATIENCE) == 0, "the first pull")
        second.communicate(timeout=PATIENCE)
        need(second.returncode == 0, "the second pull")
        b.check()
        need(b.registry.served < 1.6 * len(BIG), f"{b.registry.served} bytes were sent")


def first_is_killed():
    """the second pull continues what the first one has"""
    dam = Dam()
    with Box(dam) as b:
        first = subprocess.Popen([BEZEL, "pull", b.name], stderr=subprocess.DEVNULL, env=environment(b.store))
        end = time.time() + PATIENCE
        while journaled(journal_of(b)) < len(BIG) // 2 and time.time() < end:
            time.sleep(0.02)
        second = subprocess.Popen([BEZEL, "pull", b.name], stderr=subprocess.PIPE, text=True, env=environment(b.store))
        until_it_waits(second)
        dam.open.set()
        first.kill()
        first.wait()
        second.communicate(timeout=PATIENCE)
        need(second.returncode == 0, "the second pull")
        b.check()
        need(b.registry.served < 1.6 * len(BIG), f"{b.registry.served} bytes were sent")


# ---- connections and servers that fail ----


def cut_connections():
    rng = random.Random(2)

    def hook(handler, path):
        if not is_blob(path):
            return False
        start, end = handler.range_of(len(BIG))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(BIG)}")
        handler.send_header("Content-Length", str(end - start))
        handler.end_headers()
        handler.send_bytes(BIG[start:min(end, start + rng.randrange(1, 3 * MIB // 2))])
        handler.cut()
    with Box(hook) as b:
        b.pull()
        b.check()
        need(b.registry.served < len(BIG) + 200000, f"{b.registry.served} bytes were sent")


def fails_then_works(*answers):
    """the manifest and the blob fail a few times, then arrive"""
    def run():
        left = {}

        def hook(handler, path):
            n = left.setdefault(path, list(answers))
            with handler.server.lock:
                todo = n.pop(0) if n else None
            if not todo:
                return False
            if todo == "cut":
                handler.cut()
            else:
                handler.answer(todo, b"busy", **({"Retry-After": "1"} if todo == 429 else {}))
        with Box(hook) as b:
            b.pull()
            b.check()
    return run


def always_fails():
    with Box(lambda handler, path: handler.answer(500, b'{"errors":[{"message":"out of order"}]}')) as b:
        b.refused("answers HTTP status 500")
        b.refused("out of order")
    with Box(lambda handler, path: is_blob(path) and handler.answer(503, b"<html>") is None) as b:
        b.refused("HTTP status 503.")
    with Box() as b:
        b.registry.__exit__()
        b.refused("Cannot fetch the manifest")
        b.registry.__enter__()


def not_there():
    with Box() as b:
        out = bezel(b.store, "pull", f"{b.registry.host}/ns/m:other", code=3)
        need(f"The registry {b.registry.host} has no model {b.registry.host}/ns/m:other." in out, out)
        del b.registry.blobs[digest_of(BIG)]
        b.refused("HTTP status 404", code=3)


def lies(text, change, code=1):
    """change(handler, start, end) answers for the blob"""
    def run():
        def hook(handler, path):
            if not is_blob(path):
                return False
            start, end = handler.range_of(len(BIG)) or (0, len(BIG))
            change(handler, start, end)
        with Box(hook) as b:
            if text:
                b.refused(text, code=code)
            else:
                b.pull()
                b.check()
    return run


def short(handler, start, end):
    """says more than it sends, except of the last bytes"""
    handler.answer(206, BIG[start:end - 100 if end - start > 1000 else end], Content_Range=f"bytes {start}-{end - 1}/{len(BIG)}")


def long_body(handler, start, end):
    handler.answer(206, BIG[start:end] + b"more", Content_Range=f"bytes {start}-{end - 1}/{len(BIG)}")


def other_size(handler, start, end):
    handler.answer(206, BIG[start:end], Content_Range=f"bytes {start}-{end - 1}/{len(BIG) + 1}")


def other_range(handler, start, end):
    handler.answer(206, BIG[:end - start], Content_Range=f"bytes 0-{end - start - 1}/{len(BIG)}" if start else f"bytes 5-{end + 4}/{len(BIG)}")


def no_content_range(handler, start, end):
    handler.answer(206, BIG[start:end])


def whole(handler, start, end):
    handler.answer(200, BIG)


def whole_of_other_size(handler, start, end):
    handler.answer(200, BIG + b"x")


def endless(handler, start, end):
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(BIG)}")
    handler.end_headers()
    while True:
        handler.send_bytes(b"x" * 65536)


def endless_error(handler, start, end):
    handler.send_response(403)
    handler.end_headers()
    while True:
        handler.send_bytes(b"x" * 65536)


def wrong_bytes():
    bad = threading.Event()
    bad.set()

    def hook(handler, path):
        if not is_blob(path) or not bad.is_set():
            return False
        handler.send_blob(BIG[:-1] + bytes([BIG[-1] ^ 1]))
    with Box(hook) as b:
        b.refused("does not have its SHA-256 digest")
        need(not [f for f in b.files() if digest_of(BIG)[7:] in f], f"left: {b.files()}")
        bad.clear()
        b.pull()
        b.check()


# ---- redirects and tokens ----


def redirects():
    with Registry() as cdn:
        cdn.blobs[digest_of(BIG)] = BIG

        def hook(handler, path):
            if "Authorization" not in handler.headers and not path.startswith("/token"):
                handler.answer(401, WWW_Authenticate=f'Bearer realm="http://{b.registry.host}/token",service="s",scope="a b"')
            elif path.startswith("/token"):
                handler.answer(200, b'{"token":"secret"}')
            elif is_blob(path):
                handler.answer(307, Location=f"http://{cdn.host}/blobs/{digest_of(BIG)}?signature=1")
            else:
                return False
        with Box(hook) as b:
            b.pull("--connections", "1")
            b.check()
            need(cdn.requests and all("Authorization" not in h for _, h in cdn.requests), "the token went to the other host")
            at_registry = [h for path, h in b.registry.requests if is_blob(path)]
            same(len(at_registry), 1, "requests for the blob at the registry")
            same(at_registry[0]["Authorization"], "Bearer secret", "the token")


def expired_address():
    """the address of a redirect works twice; then the registry names another"""
    uses = {}

    def serve(handler, path):
        with handler.server.lock:
            uses[handler.path] = uses.get(handler.path, 0) + 1
        if uses[handler.path] > 2:
            handler.answer(403, b"expired")
            return None
        return False
    with Registry(serve) as cdn:
        cdn.blobs[digest_of(BIG)] = BIG
        number = iter(range(1000))

        def hook(handler, path):
            if not is_blob(path):
                return False
            handler.answer(302, Location=f"http://{cdn.host}/blobs/{digest_of(BIG)}?{next(number)}")
        with Box(hook) as b:
            b.pull("--connections", "2")
            b.check()


def bad_redirects():
    with Box(lambda handler, path: handler.answer(302, Location=path)) as b:
        b.refused("more than 10 redirects")
    with Box(lambda handler, path: handler.answer(302, Location="http://192.0.2.1/x")) as b:
        b.refused("without encryption")
    with Box(lambda handler, path: handler.answer(302, Location="file:///etc/passwd")) as b:
        b.refused("without encryption")
    with Box(lambda handler, path: handler.answer(302)) as b:
        b.refused("names no address")


def expired_token():
    tokens = iter(range(1000))
    uses = {}

    def hook(handler, path):
        if path == "/token":
            handler.answer(200, json.dumps(dict(access_token=f"t{next(tokens)}")).encode())
            return None
        token = handler.headers.get("Authorization")
        with handler.server.lock:
            uses[token] = uses.get(token, 0) + 1
        if not token or uses[token] > 3:
            handler.answer(401, WWW_Authenticate=f'Bearer realm="http://{handler.server.host}/token",service="s"')
            return None
        return False
    with Box(hook) as b:
        b.pull("--connections", "1")
        b.check()


def no_token(text, challenge, answer=None):
    def run():
        def hook(handler, path):
            if path == "/token" and answer:
                answer(handler)
            else:
                handler.answer(401, **({"WWW-Authenticate": challenge.replace("HOST", handler.server.host)} if challenge else {}))
        with Box(hook) as b:
            b.refused(text)
    return run


def endless_token(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.send_bytes(b"{" * 65536)


# ---- manifests ----


def bad_manifest(text, manifest, code=1):
    def run():
        with Box() as b:
            b.registry.manifests["/v2/ns/m/manifests/t"] = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
            b.refused(text, code=code)
            same([p for p, _ in b.registry.requests if "/blobs/" in p], [], "blobs")
    return run


def endless_manifest():
    def hook(handler, path):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.send_bytes(b" " * 65536)
    with Box(hook) as b:
        b.refused("longer than 1048576 bytes")
        need(b.registry.served < 64 * MIB, f"{b.registry.served} bytes were sent")


def of_kind(kind, size=1):
    return dict(layers=[dict(mediaType=f"application/vnd.ollama.image.{kind}", digest="sha256:" + "0" * 64, size=size)])


# ---- names, stores ----


def names():
    with Box() as b:
        for name, code, text in (("http://example.com/ns/m", 2, "--insecure"), ("a/b/c/d", 2, "not a valid model name"), ("", 2, "no name given"),
                                 ("http://127.0.0.1.example.com/ns/m", 2, "--insecure"), ("../x", 2, "not a valid model name")):
            out = bezel(b.store, "pull", name, code=code)
            need(text in out, f"{name}: {out}")
        bezel(b.store, "pull", f"http://{b.registry.host}/{NAME}")
        b.check()
        out = bezel(b.store, "pull", f"https://{b.registry.host}/{NAME}", "--retries", "1", code=1)
        need("Cannot fetch the manifest" in out, out)  # the server speaks no TLS
        bezel(b.store, "pull", f"{b.registry.host}/ns/M:T", "--retries", "1", code=3)  # registries distinguish upper and lower case


def stores():
    with Box() as b:
        b.store = "/proc/nowhere"
        out = b.pull(code=1)
        need("Cannot create the folder /proc/nowhere" in out, out)
    with Box() as b:
        home = os.path.join(b.folder.name, "home")
        b.store = os.path.join(home, ".ollama", "models")
        env = {k: v for k, v in environment("", HOME=home).items() if k != "OLLAMA_MODELS"}
        p = subprocess.run([BEZEL, "pull", b.name], capture_output=True, text=True, timeout=PATIENCE, env=env)
        need(p.returncode == 0, p.stderr)
        b.check()


def remove_and_copy():
    with Box() as b:
        b.pull()
        other = f"{b.registry.host}/ns/other:t"
        b.registry.add("ns/other:t", [("model", b"another model"), ("params", SMALL)])
        bezel(b.store, "pull", other)
        same(bezel(b.store, "cp", b.name, "mine"), f"copied '{b.name}' to 'mine'\n", "cp prints")
        need("mine:latest" in bezel(b.store, "list"), "no mine")
        same(bezel(b.store, "rm", b.name), f"deleted '{b.name}'\n", "rm prints")
        need(os.path.exists(b.blob(BIG)) and not os.path.exists(b.manifest_path()), "files of the copy")
        bezel(b.store, "rm", "MINE")
        need(not os.path.exists(b.blob(BIG)) and os.path.exists(b.blob(SMALL)), "files that another model uses")
        need(not os.path.exists(os.path.join(b.store, "manifests", "registry.ollama.ai")), "an empty folder is left")
        for command, text in ((("rm", "mine"), "has no model mine:latest"), (("cp", "mine", "x"), "has no model mine:latest")):
            need(text in bezel(b.store, *command, code=3), str(command))
        for command in (("rm",), ("cp",), ("cp", other), ("cp", other, "a/b/c/d"), ("rm", "../x"), ("cp", "../x", "y")):
            bezel(b.store, *command, code=2)
        bezel(b.store, "cp", other, other)
        bezel(b.store, "cp", other, "two")
        same(bezel(b.store, "rm", "two", other), f"deleted 'two'\ndeleted '{other}'\n", "rm prints")
        same(b.files(), [], "blobs/")
        same(os.listdir(os.path.join(b.store, "manifests")), [], "manifests/")


def main():
    for name, run in (
            ("a real registry", real_registry), ("a real registry with tokens", real_registry_with_tokens),
            ("ranges in parallel", ranges), ("one connection", one_connection), ("again fetches nothing", again_fetches_nothing),
            ("progress as JSON", json_lines), ("progress on a terminal", on_a_terminal), ("a new version of a model", model_replaced),
            ("kill -9 and again", killed), ("Ctrl-C and again", ctrl_c), ("journals that are cut", cut_journals),
            ("a damaged part file", damaged_part), ("two pulls at once", two_at_once), ("the first of two is killed", first_is_killed),
            ("connections that are cut", cut_connections), ("500, then it works", fails_then_works(500, 502)),
            ("429 with Retry-After", fails_then_works(429)), ("cut before a byte", fails_then_works("cut", "cut")),
            ("always 500", always_fails), ("not there", not_there),
            ("shorter than it says", lies(None, short)), ("longer than requested", lies("longer than what was requested", long_body)),
            ("another size in Content-Range", lies("but the manifest says", other_size)),
            ("another range", lies("not the range that was requested", other_range)),
            ("no Content-Range", lies("not the range that was requested", no_content_range)), ("ignores ranges", lies(None, whole)),
            ("the whole, of another size", lies("but the manifest says", whole_of_other_size)),
            ("an endless range", lies("longer than what was requested", endless)),
            ("an endless error", lies("HTTP status 403", endless_error)), ("wrong bytes", wrong_bytes),
            ("a redirect to other storage", redirects), ("an address that expires", expired_address), ("bad redirects", bad_redirects),
            ("a token that expires", expired_token), ("401 without a challenge", no_token("requires authentication", None)),
            ("401 with Basic", no_token("requires authentication", 'Basic realm="x"')),
            ("a token that is refused", no_token("requires authentication", 'Bearer realm="http://HOST/token"',
                                                 lambda h: h.answer(200, b'{"token":"x"}'))),
            ("a token with a line end", no_token("requires authentication", 'Bearer realm="http://HOST/token"',
                                                 lambda h: h.answer(200, b'{"token":"x\\r\\nEvil: 1"}'))),
            ("an endless token", no_token("requires authentication", 'Bearer realm="http://HOST/token"', endless_token)),
            ("a token from an address without encryption", no_token("requires authentication", 'Bearer realm="http://192.0.2.1/token"')),
            ("a manifest that is no JSON", bad_manifest("is not valid", b"<html>")), ("an empty manifest", bad_manifest("is not valid", b"")),
            ("a manifest without layers", bad_manifest("has no GGUF model file", {}, 4)),
            ("a manifest of a container", bad_manifest("has no GGUF model file", of_kind("license"), 4)),
            ("safetensors", bad_manifest("stored as safetensors", of_kind("tensor"), 4)),
            ("a digest that is a path", bad_manifest("is not valid", dict(layers=[dict(digest="../../x", size=1)]))),
            ("a huge manifest", bad_manifest("longer than 1048576 bytes", b" " * (2 * MIB))), ("an endless manifest", endless_manifest),
            ("no space", bad_manifest("of free space", of_kind("model", 1 << 60))),
            ("names and schemes", names), ("stores", stores), ("rm and cp", remove_and_copy)):
        case(name, run)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
