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
GOLDEN = os.path.join(MODELS, "..", "golden")
DENSE, DRAFTER, ADAPTER = (os.path.join(GOLDEN, *f) for f in (("dense-like", "text.gguf"), ("assistant", "assistant.gguf"), ("lora", "dense_a.gguf")))


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


def with_value(source, tensor, bad, path):
    """a copy whose tensor begins with these bytes"""
    r = g.Reader(source)
    data, raw = bytearray(read(source)), r.tensors[tensor][2].tobytes()
    at = data.index(raw)
    data[at:at + len(bad)] = bad
    return write(path, data)


def lines(out, what):
    return [line for line in out.splitlines() if line.split()[1:2] == [what]]


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
        path = with_value(source, name, bad, os.path.join(folder, "values.gguf"))
        out, _ = verify(path, code=1)
        need(f"DAMAGED   tensor  {name}: " in out and "NaN or infinite, the first is " in out, out)
        need("values.gguf, " not in out, "the file counts as good: " + out)
        _, err = verify(path, "--quiet", code=1)
        need(name in err, err)
        need(not json.loads(verify(path, "--json", code=1)[0])["ok"], "JSON says ok")


def cut_off(folder):
    out, _ = verify(write(os.path.join(folder, "cut.gguf"), read(NANO)[:-100]), code=1)
    need("DAMAGED" in out and "cut off" in out, out)


def drafters_and_adapters(folder):
    """they are checked like the model, and whether they fit it"""
    out, _ = verify(DENSE, "--draft", DRAFTER, "--lora", ADAPTER + ":0.5", code=0)
    need([len(lines(out, what)) for what in ("values", "model", "drafter", "adapter")] == [3, 1, 1, 1] and "0 failures" in out, out)
    got = json.loads(verify(DENSE, "--draft", DRAFTER, "--json", code=0)[0])
    same([c["check"] for c in got["checks"]], ["values", "values", "model", "drafter"], "the JSON")
    bad = with_value(DRAFTER, "output_norm.weight", b"\x00\x00\xc0\x7f", os.path.join(folder, "draft.gguf"))
    out, _ = verify(DENSE, "--draft", bad, code=1)
    need("DAMAGED   tensor  output_norm.weight: " in out, out)
    for option, path, what in (("--draft", DRAFTER, "drafter"), ("--lora", ADAPTER, "adapter")):
        out, _ = verify(NANO, option, path, code=1)                                    # of another model
        need(lines(out, what)[0].startswith("DAMAGED") and lines(out, "model")[0].startswith("ok"), out)
        out, _ = verify(DENSE, option, write(os.path.join(folder, "cut.gguf"), read(path)[:-8]), code=1)
        need(lines(out, what)[0].startswith("DAMAGED") and "cut off" in out, out)
    verify(DENSE, "--draft", "lookup", code=2)
    verify(DENSE, "--draft", os.path.join(folder, "none.gguf"), code=1)


def alone():
    """files that belong to a model are not damaged because they are none"""
    for path, option in ((DRAFTER, "--draft"), (ADAPTER, "--lora"), (os.path.join(GOLDEN, "e-like", "mmproj.gguf"), "--mmproj")):
        out, _ = verify(path, code=0)
        need("0 failures" in out and f"'bezel verify MODEL {option} {path}'" in out, out)
        need(json.loads(verify(path, "--json", code=0)[0])["ok"], "the JSON")


def store_of_drafter(folder):
    """the drafter and the adapter of a name are checked without an option"""
    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        write(os.path.join(folder, "blobs", "sha256-" + digest), data)
        return dict(digest="sha256:" + digest, size=len(data))

    os.makedirs(os.path.join(folder, "blobs"))
    nan = read(with_value(DRAFTER, "output_norm.weight", b"\x00\x00\xc0\x7f", os.path.join(folder, "nan.gguf")))
    at = os.path.join(folder, "manifests", "registry.ollama.ai", "library", "gem")
    os.makedirs(at)
    for name, draft in (("good", read(DRAFTER)), ("nan", nan)):
        layers = [dict(mediaType="application/vnd.ollama.image." + kind, **blob(data))
                  for kind, data in (("model", read(DENSE)), ("draft", draft), ("adapter", read(ADAPTER)))]
        write(os.path.join(at, name), json.dumps(dict(schemaVersion=2, config=blob(b'{"model_format":"gguf"}'), layers=layers)).encode())
    out, _ = verify("gem:good", code=0, store=folder)
    need(len(lines(out, "drafter")) == len(lines(out, "adapter")) == 1 and "4 digests" in out and "0 failures" in out, out)
    out, _ = verify("gem:nan", code=1, store=folder)
    need("DAMAGED   tensor  output_norm.weight: " in out, out)


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
    case("drafters and adapters", drafters_and_adapters, temporary)
    case("files that belong to a model", alone)
    case("a store with a drafter and an adapter", store_of_drafter, os.path.join(temporary, "parts"))
    case("blobs and their digests", digests, os.path.join(temporary, "store"))
sys.exit(finish())
