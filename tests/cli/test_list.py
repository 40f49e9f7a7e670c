#!/usr/bin/env python3
"""Models by name, from outside: list, run and the other verbs over a store of our own.

    test_list.py PROGRAM [DIR]

PROGRAM is the bezel to test; its models come from tests/golden. Prints "ok NAME" or "FAIL NAME
reason"; not zero if anything failed.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "golden", "e-like", "text.gguf")
CONFIG = dict(model_format="gguf", model_family="gemma4", model_families=["gemma4"], model_type="5.1B",
              file_type="F16", renderer="gemma4-small", parser="gemma4", architecture="amd64", os="linux")

SHOW_TAKES_NAMES = True

program = store = None


def bezel(*args, code=0, env=None, stdin=""):
    """stdout and stderr of a run that must end with this code"""
    p = subprocess.run([program, *args], capture_output=True, text=True, input=stdin, timeout=300,
                       env={**os.environ, "OLLAMA_MODELS": store, **(env or {})})
    need(p.returncode == code, "'bezel %s' ended with %d: %s" % (" ".join(args), p.returncode, p.stderr.strip()))
    return p.stdout, p.stderr


# ---- a store ----

def blob(data):
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(store, "blobs", "sha256-" + digest), "wb") as f:
        f.write(data)
    return dict(digest="sha256:" + digest, size=len(data))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def add(name, layers, config=CONFIG, age=0):
    """layers: (kind, bytes) of a model called host/namespace/model/tag"""
    manifest = dict(schemaVersion=2, mediaType="application/vnd.docker.distribution.manifest.v2+json",
                    config=dict(mediaType="application/vnd.docker.container.image.v1+json",
                                **blob(json.dumps(config).encode())),
                    layers=[dict(mediaType="application/vnd.ollama.image." + kind, **blob(data)) for kind, data in layers])
    path = os.path.join(store, "manifests", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        json.dump(manifest, f)
    os.utime(path, (time.time() - age, time.time() - age))
    return manifest


def gguf(architecture):
    """a file of one key and no tensors"""
    def text(s):
        return len(s).to_bytes(8, "little") + s.encode()
    return (b"GGUF" + (3).to_bytes(4, "little") + (0).to_bytes(8, "little") + (1).to_bytes(8, "little") +
            text("general.architecture") + (8).to_bytes(4, "little") + text(architecture))


def fill():
    """the store that the cases look at"""
    global manifests
    text = read(TEXT)
    manifests = {
        "gemma4:e2b": add("registry.ollama.ai/library/gemma4/e2b",
                          [("model", text), ("params", b'{"temperature":1,"top_k":64,"top_p":0.95}'),
                           ("license", b"a license")], age=3 * 86400),
        "hf.co/some/model-GGUF:F16": add("hf.co/some/model-GGUF/F16", [("model", text)], age=90),
    }
    add("registry.ollama.ai/library/qwen3/8b", [("model", gguf("qwen3"))], dict(CONFIG, model_family="qwen3"), age=4000)
    add("registry.ollama.ai/library/gemma4/31b-cloud", [], dict(remote_host="https://ollama.com:443"), age=8000)
    add("registry.ollama.ai/library/gemma4/mlx", [("tensor", b"x")], dict(CONFIG, model_format="safetensors"), age=9000)
    add("registry.ollama.ai/library/odd/file", [("model", b"<html>sign in</html>")], age=10000)
    add("registry.ollama.ai/library/eyes/latest", [("model", text), ("projector", text + b"\0")], age=20000)


# ---- cases ----

def table():
    out, err = bezel("list")
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.split("\n\n")[0].splitlines()]
    same(rows[0], ["NAME", "SIZE", "MODIFIED", "RUNS"], "the head")
    got = {r[0]: r[1:] for r in rows[1:]}
    same([r[0] for r in rows[1:]],
         ["hf.co/some/model-GGUF:F16", "qwen3:8b", "gemma4:31b-cloud", "gemma4:mlx", "odd:file", "eyes:latest", "gemma4:e2b"],
         "the order")
    same(got["gemma4:e2b"], ["2.23 MB", "3 days ago", "yes"], "gemma4:e2b")
    same(got["hf.co/some/model-GGUF:F16"], ["2.23 MB", "1 minute ago", "yes"], "hf.co/...")
    same(got["qwen3:8b"][1:], ["1 hour ago", "no (qwen3)"], "qwen3:8b")
    same(got["gemma4:31b-cloud"][1:], ["2 hours ago", "no (reason below)"], "gemma4:31b-cloud")
    same(got["odd:file"][2], "no (reason below)", "odd:file")
    need("gemma4:31b-cloud runs on the servers of ollama.com and has no model file on this machine." in out, out)
    need("gemma4:mlx is stored as safetensors, but Bezel runs GGUF files only." in out, out)
    need("odd:file: The model file cannot be read: " in out and "a web page" in out, out)
    same(err, "", "stderr")
    same(bezel("ls")[0], out, "'bezel ls'")


def as_json():
    out = json.loads(bezel("list", "--json")[0])
    same(out["stores"], [dict(path=store, state="found")], "stores")
    got = {m["name"]: m for m in out["models"]}
    same(len(got), 7, "number of models")
    m, manifest = got["gemma4:e2b"], manifests["gemma4:e2b"]
    same(m["size"], manifest["config"]["size"] + sum(l["size"] for l in manifest["layers"]), "size")
    same(m["model_digest"], manifest["layers"][0]["digest"], "digest")
    same(m["path"], os.path.join(store, "blobs", m["model_digest"].replace(":", "-")), "path")
    same(m["details"], dict(format="gguf", family="gemma4", parameter_size="5.1B", quantization_level="F16"), "details")
    same([m["architecture"], m["runs"], m["reason"]], ["gemma4", True, None], "verdict")
    when = time.mktime(time.strptime(m["modified_at"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    need(abs(time.time() - 3 * 86400 - when) < 600, "modified_at is %s" % m["modified_at"])
    m = got["qwen3:8b"]
    same([m["architecture"], m["runs"], m["reason"]], ["qwen3", False, "Its architecture is qwen3; Bezel runs gemma4 and diffusion-gemma."],
         "verdict of qwen3")
    m = got["gemma4:31b-cloud"]
    same([m["path"], m["model_digest"], m["architecture"], m["runs"]], [None, None, None, False], "cloud")


def empty():
    folder = os.path.join(tempfile.gettempdir(), "bezel-no-such-folder")
    out, _ = bezel("list", env={"OLLAMA_MODELS": folder})
    need(folder in out and "bezel run model.gguf" in out and "No Ollama store" in out, out)
    same(json.loads(bezel("list", "--json", env={"OLLAMA_MODELS": folder})[0]),
         dict(models=[], stores=[dict(path=folder, state="missing")]), "JSON")
    os.makedirs(os.path.join(store, "..", "empty", "manifests"))
    out, _ = bezel("list", env={"OLLAMA_MODELS": os.path.join(store, "..", "empty")})
    need("The Ollama store has no models" in out, out)


def usage():
    need("--json" in bezel("list", "--help")[0], "no help")
    bezel("list", "x", code=2)
    bezel("list", "--fast", code=2)
    need("list" in bezel("--help")[0], "not in the help")


def logits_of(model):
    path = os.path.join(store, "..", "logits.f32")
    bezel("logits", model, "-t", "2,10,20", "-o", path)
    return read(path)


def run_by_name():
    """a model by any of its names is the same model; what it says may be sampled, logits are not"""
    by_path = logits_of(TEXT)
    for name in "gemma4:e2b", "GEMMA4:E2B", "registry.ollama.ai/library/gemma4:e2b", "hf.co/some/model-GGUF:F16":
        need(logits_of(name) == by_path, "other logits from " + name)
        bezel("run", name, "Hello", "-n", "4")


def tokenize_by_name():
    same(bezel("tokenize", "gemma4:e2b", "Hello")[0], bezel("tokenize", TEXT, "Hello")[0], "tokens")


def show_by_name():
    by_name, by_path = (json.loads(bezel("show", m, "--json")[0]) for m in ("gemma4:e2b", TEXT))
    same(by_name["memory"], by_path["memory"], "memory")
    need("gemma4" in bezel("show", "gemma4:e2b")[0], "no text")
    bezel("show", "gemma4", code=3)
    bezel("show", "gemma4:31b-cloud", code=4)


def not_found():
    def says(model, code, *parts):
        _, err = bezel("run", model, "x", code=code)
        need(len(err.splitlines()) == 1 and all(p in err for p in parts), "%s: says %r" % (model, err))

    says("gemma4", 3, "no model gemma4:latest", "did you mean gemma4:")
    says("gemma9:e2b", 3, "did you mean gemma4:e2b")
    says("nothing-like-it", 3, "it has ", " and 4 more")
    says("nothing.gguf", 3, "There is no file nothing.gguf.")
    says("../x", 3, "There is no file ../x.")
    says("gemma4:31b-cloud", 4, "runs on the servers of ollama.com", "the store also has ")
    says("gemma4:mlx", 4, "safetensors")
    says("qwen3:8b", 4, "bezel: qwen3:8b: ")
    says("odd:file", 1, "bezel: odd:file: ")


def projector():
    """eyes:latest has a second text model in place of an mmproj: opening must trip over it"""
    _, err = bezel("run", "eyes", "x", code=2)
    need("two text models" in err, err)
    _, err = bezel("run", "eyes", "x", "--mmproj", "no-such-file.gguf", code=3)
    need("no-such-file.gguf" in err, err)


def truncated():
    digest = manifests["gemma4:e2b"]["layers"][0]["digest"].replace(":", "-")
    path = os.path.join(store, "blobs", digest)
    whole = read(path)
    with open(path, "wb") as f:
        f.write(whole[:1000])
    _, err = bezel("run", "gemma4:e2b", "x", code=1)
    need("has 1000 bytes, but its manifest says %d" % len(whole) in err, err)
    os.unlink(path)
    _, err = bezel("run", "gemma4:e2b", "x", code=3)
    need("is missing from the Ollama store" in err, err)


def untouched(before):
    same(snapshot(), before, "the store")


def snapshot():
    return sorted((os.path.join(folder, f), os.stat(os.path.join(folder, f)).st_mtime_ns)
                  for folder, _, files in os.walk(store) for f in files)


def main():
    global program, store
    program = os.path.abspath(sys.argv[1])
    top = tempfile.mkdtemp(prefix="bezel-list-")
    store = os.path.join(top, "models")
    try:
        os.makedirs(os.path.join(store, "blobs"))
        fill()
        before = snapshot()
        case("list as a table", table)
        case("list as JSON", as_json)
        case("list without models", empty)
        case("list: help and usage", usage)
        case("run by name", run_by_name)
        case("tokenize by name", tokenize_by_name)
        if SHOW_TAKES_NAMES:
            case("show by name", show_by_name)
        case("names that are not found", not_found)
        case("the projector of a name", projector)
        case("nothing was written", untouched, before)
        case("truncated and missing blobs", truncated)
    finally:
        shutil.rmtree(top)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
