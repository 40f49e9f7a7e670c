"""A running `bezel serve`, and requests to it with the standard library alone."""
import http.client
import json
import os
import re
import signal
import subprocess
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from progress import PATIENCE  # noqa: E402


def png(width, height):
    """an image file with some colors"""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((x * 7 + y * 3 + c * 40) % 256 for x in range(width) for c in range(3)) for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Serving:
    """until the end of the block; `env` is added to an environment without settings of Ollama"""

    def __init__(self, bezel, *args, env=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OLLAMA_")}
        self.p = subprocess.Popen([bezel, "serve", "--port", "0", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**clean, "OLLAMA_MODELS": "/nonexistent/store/models", **(env or {})})
        self.line = self.p.stdout.readline().decode()
        m = re.match(r"http://(\S+):(\d+)/ ", self.line)
        if not m:
            self.p.kill()
            raise AssertionError(f"no address: {self.line!r} {self.p.stderr.read().decode()!r}")
        self.host, self.port = m.group(1).strip("[]"), int(m.group(2))
        self.url = f"http://{m.group(1)}:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, number=signal.SIGTERM):
        """the exit code, and what it wrote to stderr"""
        if self.p.poll() is None:
            self.p.send_signal(number)
        _, err = self.p.communicate(timeout=PATIENCE)
        return self.p.returncode, err.decode()

    def downloader(self):
        """the process that downloads; None: this build cannot"""
        with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children", encoding="utf-8") as f:
            return int(f.read() or 0) or None

    def open(self, method, path, body=None, **fields):
        """a response whose body can be read piece by piece; close its connection, .connection"""
        c = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        headers = {k.replace("_", "-"): v for k, v in fields.items()}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            headers.setdefault("Content-Type", "application/json")
        c.request(method, path, data, headers)
        r = c.getresponse()
        r.connection = c
        return r

    def ask(self, method, path, body=None, **fields):
        """status, headers, bytes"""
        r = self.open(method, path, body, **fields)
        got = r.read()
        r.connection.close()
        return r.status, r.headers, got

    def get(self, path):
        """the JSON of a 200"""
        return self.expect(200, "GET", path)

    def post(self, path, body):
        return self.expect(200, "POST", path, body)

    def expect(self, status, method, path, body=None, **fields):
        got, _, text = self.ask(method, path, body, **fields)
        if got != status:
            raise AssertionError(f"{method} {path}: {got} {text[:300]!r}")
        return json.loads(text)

    def lines(self, path, body):
        """objects of an NDJSON stream"""
        status, headers, text = self.ask("POST", path, body)
        if status != 200 or headers["Content-Type"] != "application/x-ndjson":
            raise AssertionError(f"{status} {headers['Content-Type']} {text[:300]!r}")
        return [json.loads(line) for line in text.splitlines()]

    def events(self, path, body):
        """objects of a stream of server-sent events, which must end with [DONE]"""
        status, headers, text = self.ask("POST", path, {**body, "stream": True})
        if status != 200 or headers["Content-Type"] != "text/event-stream":
            raise AssertionError(f"{status} {headers['Content-Type']} {text[:300]!r}")
        parts = text.decode().split("\n\n")
        if parts[-2:] != ["data: [DONE]", ""]:
            raise AssertionError(f"the end is {parts[-2:]}")
        return [json.loads(part[len("data: "):]) for part in parts[:-2]]
