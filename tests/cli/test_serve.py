#!/usr/bin/env python3
"""serve, over real sockets.

    test_serve.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import gzip
import http.client
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import fake_store  # noqa: E402
from cases import case, finish, need  # noqa: E402
from progress import PATIENCE, wait_until  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NANO = os.path.join(MODELS, "nano-e-f32.gguf")
HUGE = 5 * 2**30


class Server:
    """bezel serve in a folder, until the end of the block"""

    def __init__(self, *args, env=None):
        self.p = subprocess.Popen([BEZEL, "serve", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OLLAMA_MODELS": "/nonexistent/store/models", **(env or {})},
                                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup's children ignore it
        self.line = self.p.stdout.readline().decode()
        m = re.match(r"http://(\S+):(\d+)/ ", self.line)
        if not m:
            self.p.kill()
            raise AssertionError(f"no address: {self.line!r} {self.p.stderr.read().decode()!r}")
        self.host, self.port = m.group(1).strip("[]"), int(m.group(2))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, number=signal.SIGTERM):
        """seconds to the end, exit code, the rest of both streams"""
        start = time.time()
        if self.p.poll() is None:
            self.p.send_signal(number)
        out, err = self.p.communicate(timeout=PATIENCE)
        return time.time() - start, self.p.returncode, out.decode(), err.decode()

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def raw(self, request):
        """all that comes until the server closes"""
        with self.connect() as s:
            s.sendall(request)
            return read_all(s)

    def ask(self, path, method="GET", **fields):
        """status, headers, body; a field's name has _ for -"""
        c = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        c.putrequest(method, path, skip_host="Host" in fields, skip_accept_encoding=True)
        for k, v in {"Accept": "text/html", **fields}.items():  # as a browser
            c.putheader(k.replace("_", "-"), v)
        c.endheaders()
        r = c.getresponse()
        body = r.read()
        c.close()
        return r.status, r.headers, body


def read_all(s):
    got = b""
    while True:
        piece = s.recv(65536)
        if not piece:
            return got
        got += piece


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


class Site:
    """a folder with what the tests ask for, and a model larger than 32 bits can count"""

    def __init__(self):
        self.top = tempfile.mkdtemp()
        self.root = os.path.join(self.top, "site")
        self.big = bytes(range(256)) * 16384  # 4 MiB
        write(os.path.join(self.top, "secret.txt"), b"secret")
        for name, data in (("index.html", b"<h1>page</h1>"), ("app.js", b"plain();" * 100), ("sub/index.html", b"below"), ("a b/\u00e4.txt".encode(), b"odd name"),
                           ("big.bin", self.big), ("empty.txt", b""), (".hidden", b"secret"), (".git/config", b"secret"), ("engine.wasm", b"\0asm"), ("v/0123456789ab/main.js", b"named();"), ("sub/v/main.js", b"other();"), ("sub/worker.js", b"work();"), ("sub/coworker.js", b"rest();")):
            write(os.path.join(self.root.encode(), name if isinstance(name, bytes) else name.encode()), data)
        write(os.path.join(self.root, "app.js.gz"), gzip.compress(b"plain();" * 100))
        write(os.path.join(self.root, "app.js.br"), b"brotli, for all we know")
        write(os.path.join(self.root, "old.css"), b"new")
        write(os.path.join(self.root, "old.css.gz"), b"stale")
        os.utime(os.path.join(self.root, "old.css.gz"), (1, 1))
        os.symlink("../secret.txt", os.path.join(self.root, "link.txt"))
        os.symlink("/etc", os.path.join(self.root, "etc"))
        os.symlink("..", os.path.join(self.root, "up"))
        os.mkfifo(os.path.join(self.root, "pipe"))
        self.huge = os.path.join(self.top, "huge model.gguf")
        with open(self.huge, "wb") as f:
            f.write(b"GGUF")
            f.seek(HUGE - 8)
            f.write(b"the end!")

    def remove(self):
        shutil.rmtree(self.top)


# ---- files ------------------------------------------------------------------------------------


def page(s, site):
    status, h, body = s.ask("/")
    need((status, body) == (200, b"<h1>page</h1>"), f"{status} {body}")
    for name, value in (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "13"), ("Cache-Control", "no-cache"), ("Accept-Ranges", "bytes"),
                        ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Embedder-Policy", "require-corp"), ("X-Content-Type-Options", "nosniff"),
                        ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "no-referrer")):
        need(h[name] == value, f"{name}: {h[name]}")
    policy = dict(p.strip().split(" ", 1) for p in h["Content-Security-Policy"].split(";"))
    need(policy["script-src"] == "'self' 'wasm-unsafe-eval'" and policy["connect-src"] == "'self' https: http://localhost:* http://127.0.0.1:*" and policy["worker-src"] == "'self'" and
         "blob:" in policy["img-src"] and policy["default-src"] == "'self'" and policy["object-src"] == "'none'", str(policy))
    for path, kind, want in (("/app.js", "text/javascript; charset=utf-8", b"plain();" * 100), ("/engine.wasm", "application/wasm", b"\0asm"), ("/sub/", "text/html; charset=utf-8", b"below"),
                             ("/a%20b/%C3%A4.txt", "text/plain; charset=utf-8", b"odd name"), ("/big.bin", "application/octet-stream", site.big), ("/index.html?a=b", "text/html; charset=utf-8", b"<h1>page</h1>"),
                             ("/empty.txt", "text/plain; charset=utf-8", b"")):
        status, h, body = s.ask(path)
        need(status == 200 and body == want and h["Content-Type"] == kind, f"{path}: {status} {h['Content-Type']} {body[:20]}")
    for path, cache in (("/v/0123456789ab/main.js", "public, max-age=31536000, immutable"), ("/sub/v/main.js", "no-cache")):
        need(s.ask(path)[1]["Cache-Control"] == cache, path)
    for path, own in (("/sub/worker.js", True), ("/sub/coworker.js", False)):
        policies = s.ask(path)[1].get_all("Content-Security-Policy")
        need(len(policies) == 1 + own and any("default-src 'none'" in p for p in policies) == own, f"{path}: {policies}")
    status, h, body = s.ask("/sub?x=1")
    need(status == 308 and h["Location"] == "/sub/?x=1", f"{status} {h['Location']}")
    need(s.ask("/nothing.html")[0] == 404 and s.ask("/sub/nothing/")[0] == 404 and s.ask("/app.js/")[0] == 404, "nothing there")


def head(s, site):
    got = s.raw(b"HEAD /big.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    need(got.startswith(b"HTTP/1.1 200 OK\r\n") and f"Content-Length: {len(site.big)}\r\n".encode() in got and got.endswith(b"\r\n\r\n"), got[-200:])
    need(s.raw(b"HEAD /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").endswith(b"\r\n\r\n"), "a body after HEAD")


def ranges(s, site):
    for value, status, part in (("bytes=0-99", 206, site.big[:100]), ("bytes=4000000-", 206, site.big[4000000:]), ("bytes=-7", 206, site.big[-7:]),
                                ("bytes=0-0,5-6", 200, site.big), ("bytes=x", 200, site.big)):
        got, h, body = s.ask("/big.bin", Range=value)
        need(got == status and body == part and int(h["Content-Length"]) == len(part), f"{value}: {got}, {len(body)} bytes")
    status, h, body = s.ask("/big.bin", Range="bytes=100-199")
    need(h["Content-Range"] == f"bytes 100-199/{len(site.big)}", h["Content-Range"])
    tag = h["ETag"]
    status, h, _ = s.ask("/big.bin", Range=f"bytes={len(site.big)}-")
    need(status == 416 and h["Content-Range"] == f"bytes */{len(site.big)}", f"{status} {h['Content-Range']}")
    need(s.ask("/big.bin", Range="bytes=1-2", If_Range=tag)[0] == 206 and s.ask("/big.bin", Range="bytes=1-2", If_Range='"x"')[0] == 200, "If-Range")


def conditions(s, site):
    status, h, _ = s.ask("/app.js")
    tag, date = h["ETag"], h["Last-Modified"]
    for fields in (dict(If_None_Match=tag), dict(If_None_Match=f'"x", W/{tag}'), dict(If_Modified_Since=date)):
        status, h, body = s.ask("/app.js", **fields)
        need(status == 304 and body == b"" and h["ETag"] == tag and h["Content-Length"] is None, f"{fields}: {status} {h}")
    need(s.ask("/app.js", If_None_Match='"x"')[0] == 200 and s.ask("/app.js", If_Match='"x"')[0] == 412, "another tag")
    path = os.path.join(site.root, "changing.txt")
    write(path, b"one")
    tag = s.ask("/changing.txt")[1]["ETag"]
    write(path, b"two")
    os.utime(path, (time.time() + 2, time.time() + 2))
    status, _, body = s.ask("/changing.txt", If_None_Match=tag)
    need((status, body) == (200, b"two"), f"{status} {body}")


def compressed(s, site):
    status, h, body = s.ask("/app.js", Accept_Encoding="gzip, deflate")
    need(status == 200 and h["Content-Encoding"] == "gzip" and gzip.decompress(body) == b"plain();" * 100, f"{status} {h}")
    need(h["Content-Type"] == "text/javascript; charset=utf-8" and h["Vary"] == "Accept-Encoding", str(h))
    plain = s.ask("/app.js")
    need(plain[1]["Content-Encoding"] is None and plain[1]["Vary"] == "Accept-Encoding" and plain[1]["ETag"] != h["ETag"], str(plain[1]))
    need(s.ask("/app.js", Accept_Encoding="gzip", If_None_Match=h["ETag"])[0] == 304 and s.ask("/app.js", If_None_Match=h["ETag"])[0] == 200, "tags of twins")
    need(s.ask("/app.js", Accept_Encoding="gzip, br")[1]["Content-Encoding"] == "br", "br is smaller")
    need(s.ask("/app.js", Accept_Encoding="br", Range="bytes=0-4")[2] == b"plain", "a part of the plain file")
    need(s.ask("/old.css", Accept_Encoding="gzip")[2] == b"new", "a stale twin")
    need(s.ask("/engine.wasm", Accept_Encoding="gzip")[2] == b"\0asm", "no twin")


def traversal(s, site):
    for path in ("/../secret.txt", "/sub/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/.%2e/secret.txt", "/..\\secret.txt", "/..%5csecret.txt", "//secret.txt",
                 "/sub/..%2f..%2fsecret.txt", "/.hidden", "/.git/config", "/%2ehidden", "/link.txt", "/etc/passwd", "/up/secret.txt", "/etc", "/up/", "/pipe", "/app.js%00.html", "/%",
                 "/models/../index.html", "/models/..%2f..%2fetc%2fpasswd", "/models/" + NANO.replace("/", "%2f"), "/" + "a/" * 2000, "/" + "a" * 5000, "/..;/secret.txt"):
        got = s.raw(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        need(re.match(rb"HTTP/1.1 (400|404) ", got) and b"secret" not in got.split(b"\r\n\r\n")[1] and b"root:" not in got, f"{path[:60]}: {got[:40]}")
    # A folder that becomes a link while it is served.
    moved = os.path.join(site.root, "moved")
    os.mkdir(moved)
    write(os.path.join(moved, "secret.txt"), b"mine")
    need(s.ask("/moved/secret.txt")[2] == b"mine", "before")
    shutil.rmtree(moved)
    os.symlink("..", moved)
    need(s.ask("/moved/secret.txt")[0] == 404, "after")


def models(s, site):
    name = "huge%20model.gguf"
    got = json.loads(s.ask("/models/")[2])
    need(got == {"models": [{"name": "huge model.gguf", "size": HUGE}, {"name": "nano-e-f32.gguf", "size": os.path.getsize(NANO)}]}, str(got))
    status, h, body = s.ask(f"/models/{name}", Range=f"bytes={HUGE - 8}-")
    need((status, body) == (206, b"the end!") and h["Content-Range"] == f"bytes {HUGE - 8}-{HUGE - 1}/{HUGE}", f"{status} {body} {h['Content-Range']}")
    status, h, body = s.ask(f"/models/{name}", Range="bytes=0-3")
    need(body == b"GGUF" and h["Content-Type"] == "application/octet-stream" and h["Cache-Control"] == "no-store", str(h))
    need(len(s.ask(f"/models/{name}", Range=f"bytes={2**32 - 1000}-{2**32 + 999}")[2]) == 2000, "across 4 GiB")
    status, h, _ = s.ask(f"/models/{name}", "HEAD")
    need(status == 200 and int(h["Content-Length"]) == HUGE, str(h))
    with open(NANO, "rb") as f:
        need(s.ask("/models/nano-e-f32.gguf")[2] == f.read(), "a whole model")
    need(s.ask("/models/other.gguf")[0] == 404 and s.ask("/models/nano-e-f32.gguf/")[0] == 404, "another name")
    with s.connect() as c:  # the first piece of 5 GB, then no more: the server goes on
        c.sendall(f"GET /models/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        need(c.recv(100).startswith(b"HTTP/1.1 200 OK"), "no answer")
    need(s.ask("/")[0] == 200, "the server is gone")
    need(s.ask("/big.bin", Range="bytes=0-5")[2] == site.big[:6], "the server is confused")


# ---- connections ---------------------------------------------------------------------------------


def refusals(s, site):
    for request, status in ((b"NONSENSE\r\n\r\n", 400), (b"\x16\x03\x01\x00\xa5\x01", 400), (b"GET / HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/2.0\r\n\r\n", 505), (b"BREW / HTTP/1.1\r\n\r\n", 501),
                            (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 405), (b"DELETE /app.js HTTP/1.1\r\nHost: localhost\r\n" b"Connection: close\r\n\r\n", 405),
                            (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414), (b"GET / HTTP/1.1\r\nA: " + b"a" * 9000, 431), (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
                            (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n", 413), (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
                            (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501), (b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: x\r\n\r\n", 417)):
        got = s.raw(request)
        need(got.startswith(f"HTTP/1.1 {status} ".encode()) and b"Connection: close\r\n" in got and b"X-Content-Type-Options: nosniff\r\n" in got, f"{request[:40]}: {got[:60]}")
        need(got.split(b"\r\n\r\n")[1].endswith(b".\n"), f"no sentence: {got[-80:]}")
    status, h, _ = s.ask("/", "OPTIONS")
    need(status == 204 and h["Allow"] == "GET, HEAD, OPTIONS", f"{status} {h['Allow']}")


def hosts(s, site):
    for host, status in (("localhost", 200), (f"127.0.0.1:{s.port}", 200), ("[::1]", 200), ("chat.example", 200), ("evil.com", 403), ("127.0.0.1.evil.com", 403), ("192.168.0.1", 403)):
        got, _, body = s.ask("/", Host=host)
        need(got == status and (status == 200 or b"--allow-host" in body), f"{host}: {got}")


def keep_alive(s, site):
    c = http.client.HTTPConnection(s.host, s.port, timeout=PATIENCE)
    c.connect()
    port = c.sock.getsockname()
    for i in range(50):
        c.request("GET", ("/app.js", "/nothing", "/big.bin", "/")[i % 4], headers={"Range": "bytes=0-9"} if i % 3 == 0 else {})
        c.getresponse().read()
        need(c.sock and c.sock.getsockname() == port, f"another connection for request {i}")
    c.close()
    got = s.raw(b"GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20 + b"GET / HTTP/1.0\r\nAccept: text/html\r\n\r\n")  # all at once
    need(got.count(b"HTTP/1.1 200 OK") == 21 and got.endswith(b"<h1>page</h1>"), str(got.count(b"HTTP/1.1")))
    with s.connect() as c:  # a client that has said all and waits
        c.sendall(b"GET /big.bin HTTP/1.0\r\n\r\n")
        c.shutdown(socket.SHUT_WR)
        need(read_all(c).endswith(site.big), "half closed")
    with s.connect() as c:  # byte by byte
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n":
            c.sendall(bytes([byte]))
        need(read_all(c).endswith(b"<h1>page</h1>"), "byte by byte")


def slow(s, site):
    """the real patience, on several connections at once"""
    begin = time.time()
    half, silent, dripping = s.connect(), s.connect(), s.connect()
    half.sendall(b"GET / HTTP/1.1\r\nHo")
    times = {}

    def wait(name, c):
        times[name] = (read_all(c), time.time() - begin)

    def drip():
        try:
            while "drip" not in times:
                dripping.sendall(b"a")
                time.sleep(0.3)
        except OSError:
            pass

    threads = [threading.Thread(target=wait, args=a) for a in (("half", half), ("silent", silent), ("drip", dripping))] + [threading.Thread(target=drip)]
    for t in threads:
        t.start()
    need(s.ask("/")[0] == 200, "others must not wait")
    for t in threads:
        t.join()
    for name in times:
        need(9 < times[name][1] < 60, f"{name}: {times[name][1]:.1f} s")
    need(times["half"][0].startswith(b"HTTP/1.1 408 ") and times["silent"][0] == b"" and times["drip"][0].startswith(b"HTTP/1.1 408 "), str(times))
    for c in (half, silent, dripping):
        c.close()


def parallel(s, site):
    """100 downloads together, and nothing is left over"""
    def fds():
        return len(os.listdir(f"/proc/{s.p.pid}/fd"))

    before, bad = fds(), []

    def one(i):
        try:
            if i % 5 == 4:  # some leave in the middle
                with s.connect() as c:
                    c.sendall(b"GET /big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    c.recv(1000)
                return
            status, _, body = s.ask("/big.bin")
            if status != 200 or body != site.big:
                bad.append(f"{i}: {status}, {len(body)} bytes")
        except Exception as e:
            bad.append(f"{i}: {e}")

    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    need(not bad, str(bad[:3]))
    wait_until(lambda: fds() <= before, f"return to {before} open files")
    idle = [s.connect() for _ in range(700)]  # more than it keeps
    need(s.ask("/")[0] == 200, "no place")
    for c in idle:
        c.close()


# ---- the program ----------------------------------------------------------------------------------


def fails(*args, code, why, env=None):
    p = subprocess.run([BEZEL, "serve", *args], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **(env or {})})
    need(p.returncode == code and why in p.stderr and not p.stdout, f"{args}: {p.returncode} {p.stderr!r} {p.stdout!r}")


def inherited(site):
    """a socket that is passed on, as systemd does"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        script = f'import os; os.dup2({listener.fileno()}, 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1"); os.execv({BEZEL!r}, ["bezel", "serve", "--dir", {site.root!r}])'
        p = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, pass_fds=(listener.fileno(),))
    line = p.stdout.readline().decode()
    p.send_signal(signal.SIGTERM)
    p.stdout.close()
    need(line.startswith(f"http://127.0.0.1:{port}/ ") and p.wait(PATIENCE) == 0, line)


def signals(site):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        s = Server("--dir", site.root)
        with s.connect() as idle, s.connect() as busy:
            busy.sendall(b"GET /big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
            busy.recv(10)
            took, code, out, err = s.end(number)
        need(code == 0 and took < 8 and out == "" and err == "", f"{number}: {code}, {took:.2f} s {out!r} {err!r}")


def ports(site):
    with Server("--dir", site.root, "--port", "0") as s:
        need(s.line == f"http://127.0.0.1:{s.port}/ serves the APIs of OpenAI (http://127.0.0.1:{s.port}/v1) and Ollama, the page in {site.root}; stop it with Ctrl-C\n", s.line)
        fails("--dir", site.root, "--port", str(s.port), code=1, why=f"port {s.port} of 127.0.0.1 is in use by another program")
        with Server("--dir", site.root) as first, Server("--dir", site.root) as second:
            need(11435 <= first.port < second.port < 11535, f"{first.port} {second.port}")
    with Server("--dir", site.root, "--port", str(s.port)) as again:  # free at once
        need(again.port == s.port, "another port")
        again.ask("/")
    fails("--dir", site.root, "--port", "70000", code=2, why="port 70000 does not exist")
    fails("--dir", site.root, "--port", "x", code=2, why="needs a whole number")
    fails("--dir", site.root, "--host", "example.com", code=2, why="'example.com' is not a numeric address")
    fails("--dir", site.root, "--host", "192.0.2.1", code=1, why="cannot listen on port 11435 of 192.0.2.1")


def places(site):
    fails("--dir", os.path.join(site.top, "none"), code=1, why="No such file")
    fails("--dir", site.huge, code=1, why="Not a directory")
    fails("--dir", site.root, "--model", "no-such-file.gguf", code=3, why="no-such-file.gguf")
    fails("--dir", site.root, "--model", NANO, "--model", NANO, code=2, why="two models would have the address")
    fails("nothing.gguf", code=3, why="no file nothing.gguf")
    # Installed, in a source tree, and without a page.
    tree = os.path.join(site.top, "tree")
    program = os.path.join(tree, "bin", "bezel")
    os.makedirs(os.path.dirname(program))
    shutil.copy2(BEZEL, program)
    p = subprocess.Popen([program, "serve"], stdout=subprocess.PIPE)
    line = p.stdout.readline().decode()
    p.send_signal(signal.SIGTERM)
    need("and Ollama (the web page is not built" in line and p.wait(20) == 0, line)
    p.stdout.close()
    for folder in (os.path.join(tree, "bin", "web", "app"), os.path.join(tree, "share", "bezel", "web")):
        write(os.path.join(folder, "index.html"), b"found")
        p = subprocess.Popen([program, "serve"], stdout=subprocess.PIPE)
        line = p.stdout.readline().decode()
        p.send_signal(signal.SIGTERM)
        need(f", the page in {os.path.realpath(folder)}; " in line and p.wait(20) == 0, line)
        p.stdout.close()


def answers(s, model):
    """the status and the text of one token"""
    c = http.client.HTTPConnection(s.host, s.port, timeout=PATIENCE)
    c.request("POST", "/api/generate", json.dumps({"model": model, "prompt": "hi", "stream": False, "keep_alive": 0, "options": {"num_predict": 1, "temperature": 0}}))
    r = c.getresponse()
    got = r.status, json.loads(r.read())
    c.close()
    return got


def is_confined(process):
    with open(f"/proc/{process}/status", encoding="utf-8") as f:
        return "Seccomp:\t2" in f.read()


def sandboxed(site):
    """what a confined server may read and write: the folders of its models, of their links, and the store"""
    top = os.path.join(site.top, "confined")
    here, there, store = os.path.join(top, "here"), os.path.join(top, "there"), os.path.join(top, "ollama", "models")
    os.makedirs(here)
    os.makedirs(there)
    model, link, real = os.path.join(here, "m.gguf"), os.path.join(here, "l.gguf"), os.path.join(there, "r.gguf")
    shutil.copy(NANO, model)
    shutil.copy(NANO, real)
    os.symlink(real, link)
    possible = subprocess.run([BEZEL, "show", NANO, "--sandbox", "on"], stdout=subprocess.DEVNULL, check=False).returncode == 0
    for mode, confined in (("on", True), ("auto", possible), ("off", False)):
        if mode == "on" and not possible:
            fails("--sandbox", "on", code=4, why="is not possible")
            continue
        shutil.rmtree(os.path.dirname(store), ignore_errors=True)
        with Server("--dir", site.root, "--model", model, "--model", link, "--sandbox", mode, "--port", "0", env={"OLLAMA_MODELS": store}) as s:
            with open(f"/proc/{s.p.pid}/task/{s.p.pid}/children", encoding="utf-8") as f:
                downloads = f.read().split()  # one process, if this build can pull
            need(is_confined(s.p.pid) == confined, f"seccomp with {mode}")
            for process in downloads:
                wait_until(lambda process=process: is_confined(process) == confined, f"seccomp of downloads with {mode}")
            want = answers(s, "m")
            need(want[0] == 200 and answers(s, "l")[0] == 200, f"{mode}: {want}")
            shutil.copy(NANO, model + ".new")
            os.rename(model + ".new", model)
            need(answers(s, "m")[1].get("response") == want[1]["response"], f"{mode}: a file that was replaced")
            need(s.ask("/models/l.gguf")[0] == 200 and s.ask("/index.html")[2] == b"<h1>page</h1>", f"{mode}: a link for the page")
            os.unlink(link)
            os.symlink(site.huge, link)
            got = s.ask("/models/l.gguf", Range="bytes=0-3")[2]
            need((got == b"GGUF") == (not confined), f"{mode}: a file of another folder: {got[:40]}")
            os.unlink(link)
            os.symlink(real, link)
            if confined:
                need(os.path.isdir(store), "the store was not created")
            os.makedirs(store, exist_ok=True)
            fake_store.add(store, "near:latest", NANO)
            need(answers(s, "near")[0] == 200, f"{mode}: a model that came into the store")
            c = http.client.HTTPConnection(s.host, s.port, timeout=PATIENCE)
            for method, path, body in (("POST", "/api/copy", {"source": "near", "destination": "other"}), ("DELETE", "/api/delete", {"model": "near"})):
                c.request(method, path, json.dumps(body))
                r = c.getresponse()
                need((r.status, r.read())[0] == 200, f"{mode}: {path}: {r.status}")
            c.close()
            need(answers(s, "other")[0] == 200 and answers(s, "near")[0] == 404, f"{mode}: copied and removed")
            s.end()
            need(not any(os.path.exists(f"/proc/{process}") for process in downloads), "the process for downloads is left")
    fails("--sandbox", "sometimes", code=2, why="unknown sandbox 'sometimes'")


def more_options(site):
    golden = os.path.join(MODELS, "..", "golden", "e-like")
    eyes = ("--mmproj", os.path.join(golden, "mmproj.gguf"))
    with Server("--dir", site.root, "--model", os.path.join(golden, "text.gguf"), *eyes) as s:
        got = json.loads(s.ask("/models/")[2])["models"]
        need([(m["name"], m.get("of")) for m in got] == [("text.gguf", None), ("mmproj.gguf", "text.gguf")], str(got))
    fails("--dir", site.root, *eyes, code=2, why="needs exactly one model")
    fails("--dir", site.root, "--model", NANO, "--model", os.path.join(golden, "text.gguf"), *eyes, code=2, why="needs exactly one model")
    split = os.path.join(MODELS, "nano-e-f32-00002-of-00003.gguf")
    with Server("--dir", site.root, "--model", split, "-v", "--host", "::1") as s:
        need(s.host == "::1" and " and /models/nano-e-f32-00001-of-00003.gguf, /models/nano-e-f32-00002-of" in s.line, s.line)
        got = json.loads(s.ask("/models/")[2])["models"]
        need([m["name"][-16:] for m in got] == [f"0000{i}-of-00003.gguf"[-16:] for i in (1, 2, 3)], "parts")
        need([m.get("of") for m in got] == [None, got[0]["name"], got[0]["name"]], f"which belong together: {got}")
        s.ask("/nothing")
        s.ask("/app.js", "HEAD")
        err = s.end()[3]
        need("GET /nothing 404 " in err and "HEAD /app.js 200 0\n" in err, err)
    with Server("--dir", site.root, "--host", "0.0.0.0") as s:
        need(s.host == "127.0.0.1" and s.ask("/", Host="10.1.2.3")[0] == 200 and s.ask("/", Host="evil.com")[0] == 403, "everywhere")
        need("other machines can reach this server" in s.end()[3], "no warning")
    said = os.path.join(site.top, "opened")
    write(os.path.join(site.top, "bin", "xdg-open"), f'#!/bin/sh\necho "$1" > "{said}"\necho noise\n'.encode())
    os.chmod(os.path.join(site.top, "bin", "xdg-open"), 0o755)
    with Server("--dir", site.root, "--open", env={"PATH": os.path.join(site.top, "bin") + ":" + os.environ["PATH"]}) as s:
        wait_until(lambda: os.path.exists(said) and os.path.getsize(said), "call of xdg-open")
        with open(said) as f:
            need(f.read() == f"http://127.0.0.1:{s.port}/\n", "the wrong address")
        _, code, out, err = s.end()
        need(code == 0 and out == "" and err == "", f"{code} {out} {err}")
    with Server("--dir", site.root, "--open", env={"PATH": "/nowhere"}) as s:
        need(s.ask("/")[0] == 200 and "open the address by hand" in s.end()[3], "no browser")
    # Ollama's names.
    store = os.path.join(site.top, "store")
    digest = "sha256-" + "ab" * 32
    write(os.path.join(store, "blobs", digest), b"GGUF....")
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest.replace("-", ":"), "size": 8}
    write(os.path.join(store, "manifests", "registry.ollama.ai", "library", "gemma4", "e2b"), json.dumps({"schemaVersion": 2, "layers": [layer]}).encode())
    with Server("--dir", site.root, "--model", "gemma4:e2b", env={"OLLAMA_MODELS": store}) as s:
        need(s.ask("/models/gemma4:e2b.gguf")[2] == b"GGUF....", s.line)
    stored_models(site, store)


def stored_models(site, store):
    """all models of the store, also those that come while the server runs"""
    def add(name, **layers):
        found = []
        for kind, data in layers.items():
            digest = hashlib.sha256(data).hexdigest()
            write(os.path.join(store, "blobs", "sha256-" + digest), data)
            found.append({"mediaType": f"application/vnd.ollama.image.{kind}", "digest": "sha256:" + digest, "size": len(data)})
        write(os.path.join(store, "manifests", "registry.ollama.ai", *name), json.dumps({"schemaVersion": 2, "layers": found}).encode())

    def listed(s):
        return sorted((m["name"], m["size"], m.get("of")) for m in json.loads(s.ask("/models/")[2])["models"])
    with Server("--dir", site.root, "--model", NANO, env={"OLLAMA_MODELS": store}) as s:
        own = [("nano-e-f32.gguf", os.path.getsize(NANO), None)] if os.path.basename(NANO) == "nano-e-f32.gguf" else [m for m in listed(s) if "nano" in m[0]]
        need(listed(s) == sorted([*own, ("gemma4:e2b.gguf", 8, None)]), str(listed(s)))
        add(("user", "mine", "latest"), model=b"GGUF.mine", projector=b"GGUF.eyes!")
        need(s.ask("/models/user~mine:latest.gguf", Range="bytes=5-8")[2] == b"mine", "a new model, before the list was asked for")
        need(listed(s) == sorted([*own, ("gemma4:e2b.gguf", 8, None), ("user~mine:latest.gguf", 9, None), ("user~mine:latest.mmproj.gguf", 10, "user~mine:latest.gguf")]), str(listed(s)))
        need(s.ask("/models/user~mine:latest.mmproj.gguf")[2] == b"GGUF.eyes!", "its mmproj file")
        write(os.path.join(store, "manifests", "registry.ollama.ai", "library", "odd", "latest"), b"{")
        for path in ("~etc~passwd", "..~..~etc~passwd", "user~mine:latest", "~" * 300, "odd:latest.gguf", NANO.replace("/", "~")):
            need(s.ask("/models/" + path)[0] == 404, path)
        os.remove(os.path.join(store, "manifests", "registry.ollama.ai", "user", "mine", "latest"))
        need(not any("mine" in m[0] for m in listed(s)) and s.ask("/models/user~mine:latest.gguf")[0] == 404, "removed")


def main():
    site = Site()
    try:
        with Server("--dir", site.root, "--model", site.huge, "--model", NANO, "--allow-host", "chat.example") as s:
            for name, run in (("the page and its headers", page), ("HEAD", head), ("ranges", ranges), ("conditions", conditions), ("compressed files", compressed),
                              ("paths outside the folder", traversal), ("models", models), ("refusals", refusals), ("hosts", hosts), ("keep-alive", keep_alive),
                              ("slow clients", slow), ("many at once", parallel)):
                case("serve: " + name, lambda run=run: run(s, site))
            took, code, out, err = s.end()
            case("serve: the end", lambda: need(code == 0 and out == "" and len(err.splitlines()) == 1 and "the API cannot run" in err, f"{code} {out!r} {err!r}"))
        for name, run in (("signals", signals), ("a socket of systemd", inherited), ("ports and addresses", ports), ("missing folders and models", places), ("the sandbox", sandboxed), ("more options", more_options)):
            case("serve: " + name, lambda run=run: run(site))
    finally:
        site.remove()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
