#!/usr/bin/env python3
"""bezel embed: texts, lines, both kinds of files, tasks, and what is refused.  test_embed.py PROGRAM MODELS"""
import array
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GOLDEN = os.environ.get("BEZEL_GOLDEN", "build/golden")
FIRST, SECOND = (os.path.join(GOLDEN, name, "text.gguf") for name in ("embedding", "embedding2"))
CHAT = os.path.join(MODELS, "nano-e-f32.gguf")


def embed(*args, model=FIRST, stdin=b""):
    return subprocess.run([BEZEL, "embed", model, *args], input=stdin, capture_output=True, timeout=300)


def vectors(*args, **more):
    r = embed(*args, **more)
    need(r.returncode == 0, r.stderr)
    rows = [json.loads(x) for x in r.stdout.splitlines()]
    same([x["index"] for x in rows], list(range(len(rows))), "the numbers of the texts")
    for x in rows:
        need(abs(sum(v * v for v in x["embedding"]) - 1) < 1e-5, "a vector has another length than 1")
    return rows


def npy(path):
    """shape and values of a NumPy file"""
    with open(path, "rb") as f:
        need(f.read(8) == b"\x93NUMPY\x01\x00", "no NumPy file")
        header = f.read(struct.unpack("<H", f.read(2))[0]).decode()
        need((len(header) + 10) % 64 == 0 and header.endswith("\n"), repr(header))
        shape = tuple(int(x) for x in re.search(r"'shape': \((\d+), (\d+)\)", header).groups())
        need("'descr': '<f4'" in header and "'fortran_order': False" in header, header)
        values = array.array("f")
        values.frombytes(f.read())
    same(len(values), shape[0] * shape[1], "the number of values")
    return shape, values


def texts():
    rows = vectors("the water", "", "the water")
    same([x["tokens"] for x in rows], [rows[0]["tokens"], 2, rows[0]["tokens"]], "token counts")
    same(rows[0]["embedding"], rows[2]["embedding"], "the vector of the same text")
    need(rows[0]["embedding"] != rows[1]["embedding"], "different texts have different vectors")
    same(len(rows[0]["embedding"]), 64, "numbers of a vector")
    same(len(vectors("a", model=SECOND)[0]["embedding"]), 96, "numbers of a vector of the second model")
    same(vectors("-", stdin=b"the water")[0]["embedding"], rows[0]["embedding"], "the text from a pipe")
    same(vectors("--", "--quiet"), vectors("-", stdin=b"--quiet"), "a text like an option")


def lines():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.txt")
        with open(path, "wb") as f:
            f.write(b"the water\r\n\nnear the house\nlast")
        rows = vectors("--lines", path)
        want = vectors("the water", "", "near the house", "last")
        same(rows, want, "the lines' vectors")
        same(vectors("--lines", "-", stdin=b"the water\n"), vectors("the water"), "a line from a pipe")
        many = os.path.join(folder, "many.txt")
        with open(many, "w") as f:
            f.write("".join(f"water {i % 9}\n" for i in range(2500)))   # several blocks
        out = os.path.join(folder, "many.npy")
        r = embed("--lines", many, "-o", out, "--dimensions", "8")
        need(r.returncode == 0 and b"2500 vectors of 8 numbers" in r.stderr, r.stderr)
        shape, values = npy(out)
        same(shape, (2500, 8), "the shape")
        need(values[:8] == values[8 * 9 * 200:8 * 9 * 200 + 8], "texts that are equal have equal vectors in all blocks")


def files():
    with tempfile.TemporaryDirectory() as folder:
        want = vectors("the water", "near")
        path = os.path.join(folder, "out.npy")
        r = embed("the water", "near", "-o", path, "-q")
        need(r.returncode == 0 and not r.stdout and not r.stderr, r.stderr)
        shape, values = npy(path)
        same(shape, (2, 64), "the shape")
        flat = [v for x in want for v in x["embedding"]]
        need(max(abs(a - b) for a, b in zip(values, flat)) < 1e-7, "the values differ")
        path = os.path.join(folder, "out.jsonl")
        need(embed("the water", "near", "-o", path, "-q").returncode == 0, "no file")
        with open(path, "rb") as f:
            same([json.loads(x) for x in f], want, "the lines")
        r = embed("a", "-o", os.path.join(folder, "no", "out.npy"))
        need(r.returncode == 1 and b"cannot write" in r.stderr, r.stderr)
        r = embed("x " * 3000, "-o", path)
        need(r.returncode != 0, "a text that is too long")
        with open(path, "rb") as f:
            same([json.loads(x) for x in f], want, "what was there before the refused text")


def options():
    whole, cut = vectors("the water")[0]["embedding"], vectors("the water", "--dimensions", "16")[0]["embedding"]
    scale = sum(v * v for v in whole[:16]) ** 0.5
    need(max(abs(a / scale - b) for a, b in zip(whole, cut)) < 1e-6 and len(cut) == 16, "the cut vector differs")
    same(vectors("what is it?", "--task", "query"), vectors("task: search result | query: what is it?"), "a query")
    same(vectors("rain", "--task", "document", "--title", "Rivers"), vectors("title: Rivers | text: rain"), "a document")
    long = vectors("water " * 3000, "--truncate")[0]
    same(long["tokens"], 2048, "tokens of a text that was cut")
    near = zip(vectors("the water", "--exact", "--kernels", "plain", "--threads", "1")[0]["embedding"], whole)
    need(max(abs(a - b) for a, b in near) < 1e-5, "exact and plain kernels differ")


def refused():
    for code, message, args, model in (
            (2, b"no text given", [], FIRST), (2, b"not both", ["x", "--lines", "y"], FIRST),
            (2, b"must end in .npy or .jsonl", ["x", "-o", "v.bin"], FIRST), (2, b"cannot read '/nowhere'", ["--lines", "/nowhere"], FIRST),
            (2, b"Vectors of 65 numbers were requested; this model's have 64.", ["x", "--dimensions", "65"], FIRST),
            (2, b"There is no task 'poetry'; tasks are query, document,", ["x", "--task", "poetry"], FIRST),
            (2, b"Only documents have a title", ["x", "--title", "T"], FIRST),
            (1, b"the model reads at most 2048. Shorten it, or set truncate", ["water " * 3000], FIRST),
            (4, b"This model writes text and computes no vectors; open an EmbeddingGemma model", ["x"], CHAT)):
        r = embed(*args, model=model)
        need(r.returncode == code and message in r.stderr and not r.stdout, f"{args}: {r.returncode} {r.stderr}")
    for verb, *more in (["run", FIRST, "hi"], ["bench", FIRST], ["logits", FIRST, "-t", "2", "-o", "/dev/null"]):
        r = subprocess.run([BEZEL, verb, *more], capture_output=True, timeout=300)
        need(r.returncode == 4 and b"This model computes vectors of texts and writes none; use it with 'embed'" in r.stderr, f"{verb}: {r.stderr}")


def no_space():
    with open("/dev/full", "wb") as full:
        r = subprocess.run([BEZEL, "embed", FIRST, "x", "-q"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    need(r.returncode == 1 and b"cannot write to standard output" in r.stderr, r.stderr)


def shown():
    r = subprocess.run([BEZEL, "show", FIRST], capture_output=True, text=True, timeout=60)
    need(r.returncode == 0 and "Bezel runs this model." in r.stdout, r.stdout + r.stderr)
    r = subprocess.run([BEZEL, "show", FIRST, "--plan"], capture_output=True, text=True, timeout=60)
    need(all(x in r.stdout for x in ("mean_rows", "dense_3", "on both sides", "the whole text", "for 1 row")), r.stdout[-2000:])
    same("logits" in r.stdout, False, "logits in the plan")


case("texts of the command line", texts)
case("files of lines", lines)
case("files of vectors", files)
case("options", options)
case("what cannot be obeyed is refused", refused)
case("a full disk", no_space)
case("show", shown)
sys.exit(finish())
