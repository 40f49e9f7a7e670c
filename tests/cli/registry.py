"""Registries for tests of `bezel pull`: one in Python that misbehaves on request, and Debian's docker-registry,
which tools/setup.sh unpacks."""
import base64
import hashlib
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

DOCKER_REGISTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "registry", "usr", "bin", "docker-registry")
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
PATIENCE = 60


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(kind, data):
    return dict(mediaType=kind, digest=digest_of(data), size=len(data))


def manifest_of(parts, config):
    """parts: (kind, bytes) such as ("model", ...)"""
    return dict(schemaVersion=2, mediaType=MANIFEST, config=layer("application/vnd.docker.container.image.v1+json", config),
                layers=[layer("application/vnd.ollama.image." + kind, data) for kind, data in parts])


# ---- in Python ----


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.send_bytes(body)

    def send_bytes(self, body):
        self.wfile.write(body)
        with self.server.lock:
            self.server.served += len(body)

    def cut(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def range_of(self, size):
        """(from, to) of the request, to excluded; None: the whole"""
        m = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        return (int(m[1]), min(int(m[2]) + 1, size)) if m else None

    def send_blob(self, data, **headers):
        part = self.range_of(len(data))
        if part:
            headers["Content-Range"] = f"bytes {part[0]}-{part[1] - 1}/{len(data)}"
        self.answer(206 if part else 200, data[part[0]:part[1]] if part else data, **headers)

    def do_GET(self):
        s = self.server
        path = urllib.parse.urlsplit(self.path).path
        with s.lock:
            s.requests.append((path, dict(self.headers)))
            s.running += 1
            s.most = max(s.most, s.running)
        try:
            name = path.rsplit("/", 1)[-1]
            if s.hook and s.hook(self, path) is not False:
                return
            if "/manifests/" in path and path in s.manifests:
                self.answer(200, s.manifests[path], Content_Type=MANIFEST)
            elif "/blobs/" in path and name in s.blobs:
                self.send_blob(s.blobs[name])
            else:
                self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with s.lock:
                s.running -= 1


class Registry(http.server.ThreadingHTTPServer):
    """hook(handler, path) may answer instead; it returns False to leave that to the registry"""
    daemon_threads = True

    def __init__(self, hook=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.hook, self.lock = hook, threading.Lock()
        self.blobs, self.manifests, self.requests = {}, {}, []
        self.served = self.running = self.most = 0
        self.host = f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def add(self, name, parts, config=b'{"model_format":"gguf"}'):
        """a model called namespace/model:tag; -> its manifest"""
        path, tag = name.rsplit(":", 1)
        m = manifest_of(parts, config)
        for data in [config, *(data for _, data in parts)]:
            self.blobs[digest_of(data)] = data
        self.manifests[f"/v2/{path}/manifests/{tag}"] = json.dumps(m).encode()
        return m

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.shutdown()
        self.server_close()


# ---- Debian's ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class DockerRegistry:
    """with `realm`: requires tokens that token_key signs"""

    def __init__(self, folder, realm=None):
        self.folder, self.port = folder, free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.config = os.path.join(folder, "registry.yml")
        auth = f"auth: {{token: {{realm: '{realm}', service: test, issuer: test, rootcertbundle: {folder}/root.pem}}}}\n" if realm else ""
        if realm:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
                            "-keyout", f"{folder}/key.pem", "-out", f"{folder}/root.pem"], check=True, capture_output=True)
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
                    f"http: {{addr: {self.host}}}\n{auth}")

    def __enter__(self):
        self.process = subprocess.Popen([DOCKER_REGISTRY, "serve", self.config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.time() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                if time.time() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def __exit__(self, *args):
        self.process.kill()
        self.process.wait()

    def token(self, actions, repository):
        """a JSON web token, with its certificate"""
        def part(data):
            return base64.urlsafe_b64encode(data if isinstance(data, bytes) else json.dumps(data).encode()).rstrip(b"=")
        with open(f"{self.folder}/root.pem", encoding="utf-8") as f:
            certificate = "".join(line.strip() for line in f if "---" not in line)
        now = int(time.time())
        text = part(dict(typ="JWT", alg="RS256", x5c=[certificate])) + b"." + part(
            dict(iss="test", sub="", aud="test", exp=now + 600, nbf=now - 60, iat=now, jti="1",
                 access=[dict(type="repository", name=repository, actions=actions)]))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", f"{self.folder}/key.pem"], input=text, check=True,
                                   capture_output=True).stdout
        return (text + b"." + part(signature)).decode()

    def push(self, name, parts, config=b'{"model_format":"gguf"}', token=None):
        """uploads a model called namespace/model:tag"""
        path, tag = name.rsplit(":", 1)
        headers = {"Authorization": "Bearer " + token} if token else {}

        def request(method, url, body, kind="application/octet-stream"):
            return urllib.request.urlopen(urllib.request.Request(url, data=body, method=method, headers={**headers, "Content-Type": kind}),
                                          timeout=PATIENCE)
        base = f"http://{self.host}/v2/{path}"
        for data in [config, *(data for _, data in parts)]:
            place = request("POST", base + "/blobs/uploads/", b"").headers["Location"]
            request("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest_of(data)}", data)
        m = manifest_of(parts, config)
        request("PUT", f"{base}/manifests/{tag}", json.dumps(m).encode(), MANIFEST)
        return m
