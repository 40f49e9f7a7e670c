#!/usr/bin/env python3
"""bezel verify: whole files, blobs that differ from their digests, values that are not finite.  test_verify.py PROGRAM MODELS"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import gguf_io as g  # noqa: E402
from cases import case, finish, need, same  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NANO = os.path.join(MODELS, "nano-e-f32.gguf")
QUANTIZED = os.path.join(MODELS, "nano-e-q4_0.gguf")


def verify(*args, code, store="/nowhere"):
    r = subprocess.run([BEZEL, "verify", *args], capture_output=True, text=True, timeout=60, env={**os.environ, "OLLAMA_MODELS": store})
    same(r.returncode, code, f"the exit code ({r.stdout[-300:]}{r.stderr[-300:]})")
    return r.stdout, r.stderr


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def whole():
    out, err = verify(NANO, code=0)
    need("ok        values" in out and "ok        model" in out and "0 failures" in out and not err, out + err)
    same(verify(NANO, "--quiet", code=0), ("", ""), "the output with --quiet")
    got = json.loads(verify(NANO, "--json", code=0)[0])
    same((got["ok"], [c["check"] for c in got["checks"]]), (True, ["values", "model"]), "the JSON")
    verify("no-such-model.gguf", code=3)


def not_finite(folder):
    """a NaN in an F32 matrix, and an infinite scale in a quantized one"""
    for source, name, bad in ((NANO, "blk.1.ffn_down.weight", b"\x00\x00\xc0\x7f"), (QUANTIZED, "blk.1.ffn_down.weight", b"\x00\x7c")):
        r = g.Reader(source)
        data, raw = bytearray(read(source)), r.tensors[name][2].tobytes()
        at = data.index(raw)
        data[at:at + len(bad)] = bad
        path = write(os.path.join(folder, "values.gguf"), data)
        out, _ = verify(path, code=1)
        need(f"DAMAGED   tensor  {name}: " in out and "NaN or infinite, the first is " in out, out)
        need("values.gguf, " not in out, "the file counts as good: " + out)
        _, err = verify(path, "--quiet", code=1)
        need(name in err, err)
        need(not json.loads(verify(path, "--json", code=1)[0])["ok"], "JSON says ok")


def cut_off(folder):
    out, _ = verify(write(os.path.join(folder, "cut.gguf"), read(NANO)[:-100]), code=1)
    need("DAMAGED" in out and "cut off" in out, out)


def digests(folder):
    """a store of one model; then a byte of each of its blobs changes"""
    os.makedirs(os.path.join(folder, "blobs"))
    paths = {}

    def blob(data, what):
        digest = hashlib.sha256(data).hexdigest()
        paths[what] = write(os.path.join(folder, "blobs", "sha256-" + digest), data)
        return dict(digest="sha256:" + digest, size=len(data))

    manifest = dict(schemaVersion=2, config=blob(b'{"model_format":"gguf"}', "config"),
                    layers=[dict(mediaType="application/vnd.ollama.image.model", **blob(read(NANO), "model file")),
                            dict(mediaType="application/vnd.ollama.image.license", **blob(b"free", "other file"))])
    at = os.path.join(folder, "manifests", "registry.ollama.ai", "library", "gem", "nano")
    os.makedirs(os.path.dirname(at))
    write(at, json.dumps(manifest).encode())
    out, _ = verify("gem:nano", code=0, store=folder)
    need("3 digests" in out and "0 failures" in out and "model file" in out, out)
    same(verify(paths["model file"], code=0)[0].count("ok        file"), 1, "digests of a blob given by its path")
    for what, path in paths.items():
        data = bytearray(read(path))
        data[-1] ^= 1
        write(path, data)
        out, _ = verify("gem:nano", code=1, store=folder)
        bad = [line for line in out.splitlines() if line.startswith("DAMAGED   file")]
        need(len(bad) == 1 and what in bad[0] and hashlib.sha256(data).hexdigest() in bad[0], out)
        data[-1] ^= 1
        write(path, data)


with tempfile.TemporaryDirectory() as temporary:
    case("a whole file", whole)
    case("values that are not finite", not_finite, temporary)
    case("a file that is cut off", cut_off, temporary)
    case("blobs and their digests", digests, os.path.join(temporary, "store"))
sys.exit(finish())
