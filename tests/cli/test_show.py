#!/usr/bin/env python3
"""show and bench from outside: their facts against a reader of our own.

    test_show.py PROGRAM [DIR]

PROGRAM is the bezel to test, DIR may hold more models (tools/make_test_models.py
writes some). Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "golden")
QUICK = os.environ.get("BEZEL_QUICK")                 # under sanitizers
PAGE = 100  # columns of the summary

# case: what the model is (tests/golden/README.md)
CASES = {
    "e-like": dict(layers=6, width=128, sliding_layers=4, shared_kv_layers=3, ple_width=32, experts=0),
    "moe-like": dict(layers=5, width=128, sliding_layers=3, shared_kv_layers=0, ple_width=0, experts=8,
                     experts_used=2, expert_ffn=32),
    "dense-like": dict(width=256, shared_kv_layers=0, ple_width=0, experts=0),
    "unified": dict(layers=3, width=64, shared_kv_layers=0, ple_width=0, experts=0),
}
COMMON = dict(vocabulary=768, context=4096, window=8, softcap=30, rope_base=1e6, rope_base_sliding=1e4)

program, models = None, None


def bezel(*args, code=0):
    """Runs the program and returns (stdout, stderr) as bytes."""
    p = subprocess.run([program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=300)
    need(p.returncode == code, "%s left with %d instead of %d: %s" %
         (" ".join(args), p.returncode, code, p.stderr.decode("utf-8", "replace").strip()[:200]))
    return p.stdout, p.stderr


def answer(*args, code=0):
    """Standard output of a run that must have nothing to complain about."""
    out, err = bezel(*args, code=code)
    same(err, b"", "stderr")
    return out


def sentence(*args, code):
    """The one line a run that fails must leave."""
    out, err = bezel(*args, code=code)
    same(out, b"", "stdout")
    lines = err.decode().splitlines()
    need(lines and lines[0].startswith("bezel"), "no message")
    return lines


# ---- GGUF, read once more ------------------------------------------------------------

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    def __init__(self, path):
        self.b = open(path, "rb").read()
        self.at = 4
        self.version = self.take("<I")
        n_tensors, n_keys = self.take("<Q"), self.take("<Q")
        self.keys = {}
        for _ in range(n_keys):
            key = self.text()
            self.keys[key] = self.value(self.take("<I"))
        self.tensors = []
        for _ in range(n_tensors):
            name = self.text()
            shape = [self.take("<Q") for _ in range(self.take("<I"))]
            self.take("<I")
            self.tensors.append((name, shape, self.take("<Q")))
        align = self.keys.get("general.alignment", 32)
        start = (self.at + align - 1) // align * align
        self.tensors = [(n, s, start + o) for n, s, o in self.tensors]

    def take(self, form):
        v = struct.unpack_from(form, self.b, self.at)[0]
        self.at += struct.calcsize(form)
        return v

    def text(self):
        n = self.take("<Q")
        self.at += n
        return self.b[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, n = self.take("<I"), self.take("<Q")
            return [self.value(kind) for _ in range(n)]
        return self.take(SCALARS[kind])


def gguf_string(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def write_gguf(path, keys):
    """A file with keys only: (name, type, packed value)."""
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)))
        for name, kind, packed in keys:
            f.write(gguf_string(name) + struct.pack("<I", kind) + packed)


# ---- facts -----------------------------------------------------------------------------

def product(shape):
    n = 1
    for v in shape:
        n *= v
    return n


def close(a, b):
    return a == b or (isinstance(a, float) or isinstance(b, float)) and abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def check_container(facts, path):
    """Files, keys and tensors are those of the file."""
    r = Reader(path)
    f = facts["files"][0]
    same(f["version"], r.version, "version")
    same(f["bytes"], os.path.getsize(path), "size of the file")
    same(facts["bytes"], os.path.getsize(path), "total size")
    same(set(f["metadata"]), set(r.keys), "keys")
    for key, want in r.keys.items():
        got = f["metadata"][key]
        if isinstance(want, list):
            same(got["count"], len(want), "count of " + key)
            whole = got.get("value", got.get("first"))
            need(len(whole) == (len(want) if len(want) <= 1024 else 8), "length of " + key)
            need(all(close(a, b) for a, b in zip(whole, want)), "values of " + key)
        else:
            need(close(got["value"], want), "%s is %r instead of %r" % (key, got["value"], want))
    same([(t["name"], t["shape"], t["offset"]) for t in f["tensors"]], r.tensors, "tensors")
    same(sum(t["tensors"] for t in facts["types"]), len(r.tensors), "tensors by type")
    same(sum(t["bytes"] for t in facts["types"]), sum(t["bytes"] for t in f["tensors"]), "bytes by type")
    need(not f["tensors"] or abs(sum(t["share"] for t in facts["types"]) - 1) < 1e-5, "shares do not add up to 1")
    same(facts["parameters"]["total"], sum(product(s) for _, s, _ in r.tensors), "parameters")


def tower(name):
    return name.startswith(("v.", "a.", "mm."))


def check_memory(facts):
    """Predicted bytes, computed anew from tensors and layers."""
    m, memory = facts["model"], facts["memory"]
    bytes_of = {t["name"]: t for f in facts["files"] for t in f["tensors"] if not tower(t["name"])}
    for i, layer in enumerate(m["layer"]):
        if not layer["owns_kv"]:  # in the files, never used
            for unused in ("attn_k.weight", "attn_v.weight", "attn_k_norm.weight"):
                bytes_of.pop("blk.%d.%s" % (i, unused), None)
    same(memory["weight_bytes"], sum(t["bytes"] for t in bytes_of.values()), "bytes of weights")

    def one_row(name):
        t = bytes_of[name]
        return t["bytes"] // t["shape"][1]

    per_token = one_row("token_embd.weight")
    for name, t in bytes_of.items():
        if name == "per_layer_token_embd.weight" or (name == "token_embd.weight" and "output.weight" in bytes_of):
            per_token += one_row(name) if name != "token_embd.weight" else 0
        elif "_exps." in name or "per_expert_scale" in name:
            per_token += t["bytes"] // m["experts"] * m["experts_used"]
        else:
            per_token += t["bytes"]
    same(memory["weight_bytes_per_token"], per_token, "bytes per token")

    for entry in memory["by_context"]:
        rows = sum((m["window"] + memory["chunk"] - 1 if l["kind"] == "sliding" else entry["context"]) *
                   2 * l["kv_heads"] * l["head_dim"] * 2 for l in m["layer"] if l["owns_kv"])
        same(entry["cache_bytes"], rows, "cache of %d" % entry["context"])
        same(entry["total_bytes"], rows + memory["weight_bytes"] + memory["activation_bytes"], "total")
    same(memory["by_context"][-1]["context"], m["context"], "largest context")


def check_cache_types(path):
    """Blocks of 32 numbers and an f16: 34 and 18 bytes instead of 64, also in what is predicted for a GPU."""
    facts = {kv: json.loads(answer("show", path, "--json", "--kv", kv)) for kv in ("f16", "q8", "q4")}
    for kv, size in (("q8", 34), ("q4", 18)):
        for key in ("cache_bytes", "snapshot_bytes"):
            get = (lambda f: [e[key] for e in f["memory"]["by_context"]]) if key == "cache_bytes" else (lambda f: [f["memory"][key]])
            same([64 * n for n in get(facts[kv])], [size * n for n in get(facts["f16"])], f"{key} in {kv}")
        same(64 * facts[kv]["gpu"]["cache_bytes"], size * facts["f16"]["gpu"]["cache_bytes"], f"GPU, {kv}")
    need(b"Cache in q4," in answer("show", path, "--kv", "q4"), "the table names the type")


def check_json(path, want):
    facts = json.loads(answer("show", path, "--json"))
    same(facts["verdict"]["runs"], True, "verdict")
    same(facts["verdict"]["code"], "ok", "code")
    same(facts["architecture"], "gemma4", "architecture")
    check_container(facts, path)
    for key, value in want.items():
        same(facts["model"][key], value, key)
    m = facts["model"]
    same(len(m["layer"]), m["layers"], "layers in the table")
    same(sum(l["kind"] == "sliding" for l in m["layer"]), m["sliding_layers"], "sliding layers")
    same(sum(not l["owns_kv"] for l in m["layer"]), m["shared_kv_layers"], "sharing layers")
    for l in m["layer"]:
        donor = m["layer"][l["kv_layer"]]
        need(donor["owns_kv"] and donor["kind"] == l["kind"], "a layer reads a cache of the other kind")
    t = facts["tokenizer"]
    same(t["tokens"], m["vocabulary"], "tokens")
    need(t["bos"] == 2 and {e["text"] for e in t["end_tokens"]} >= {"<eos>", "<turn|>"}, "end tokens")
    check_memory(facts)


def check_text(path):
    out = answer("show", path).decode()
    summary, tables = out.split("\nMetadata", 1)
    need("verdict        Bezel runs" in summary, "no verdict at the top")
    need(out.rstrip().splitlines()[-1].startswith("Bezel runs"), "no verdict at the end")
    for section in ("Model", "Tokenizer", "Weights by type", "Memory by context size"):
        need("\n" + section + "\n" in summary, "no section " + section)
    long = [l for l in out.splitlines() if len(l) > PAGE]
    need(not long, "line of %d columns: %s" % (len(long[0]) if long else 0, long[:1]))
    r = Reader(path)
    for name, _, offset in r.tensors:
        need(any(l.startswith("  %s " % name) and l.endswith(" %d" % offset) for l in tables.splitlines()),
             "tensor %s is not in the table" % name)
    same(answer("inspect", path).decode(), out, "inspect")


def check_plan(path):
    facts = json.loads(answer("show", path, "--json"))
    plan = json.loads(answer("show", path, "--plan", "--json"))
    steps = [s for s in plan["plan"] if s["op"] != "cut"]
    same(plan["rows"], 1, "rows")
    same(len(steps), plan["steps"], "steps")
    same(sum(s.get("weight_bytes", 0) for s in steps), plan["weight_bytes"], "sum of weight bytes")
    same(plan["weight_bytes"], facts["memory"]["weight_bytes_per_token"], "bytes of the decode pass")
    same(steps[-1]["out"], [[1, facts["model"]["vocabulary"]]], "last output")
    same(sum(s["op"] == "attend" for s in steps), facts["model"]["layers"], "attend steps")
    same(sum(s["op"] == "kv_write" for s in steps), facts["model"]["layers"] - facts["model"]["shared_kv_layers"],
         "kv_write steps")
    attends = [s for s in steps if s["op"] == "attend"]
    same([s["cache_layer"] for s in attends], [l["kv_layer"] for l in facts["model"]["layer"]], "caches read")
    large = json.loads(answer("show", path, "--plan", "--json", "--rows", "512"))
    same(large["arena_bytes"], facts["memory"]["activation_bytes"], "arena of a large pass")

    lines = answer("show", path, "--plan").decode().splitlines()
    same(sum(l.startswith("-- segment") for l in lines), plan["segments"], "segment lines")
    same(sum(l[:4].strip().isdigit() and l[5:10].strip("- 0123456789") == "" for l in lines), plan["steps"],
         "step lines")
    need("--rows N" in lines[-1], "no word about --rows")
    for s in steps:
        need("weight" not in s or any(s["weight"] in l for l in lines), "a weight is missing")


def check_bench(path, repeat):
    prompt = 40 if QUICK else 2000
    b = json.loads(answer("bench", path, "-p", str(prompt), "-n", "48", "--repeat", str(repeat), "--threads", "1", "--json"))
    facts = json.loads(answer("show", path, "--json"))
    same((b["prefill"]["tokens"], b["decode"]["tokens"]), (prompt, 48), "tokens")
    for part in (b["prefill"], b["decode"]):
        same(len(part["runs"]), repeat, "runs")
        need(0 < part["median"] <= part["best"] == max(part["runs"]), "speeds %r" % part)
    same(b["threads"], 1, "threads")
    need(b["kernels"], "kernels")
    same(b["weight_bytes_per_token"], facts["memory"]["weight_bytes_per_token"], "bytes per token")
    need(b["load_s"] > 0 and b["gigabytes_per_s"] > 0, "times")
    if QUICK:
        return
    # 2048 positions are exactly what the cache grows to: the prediction can be compared with it
    want = [e["cache_bytes"] for e in facts["memory"]["by_context"] if e["context"] == 2048][0]
    same(b["cache_bytes"], want, "cache")


def check_bench_text(path):
    out = answer("bench", path, "-p", "20", "-n", "4", "--repeat", "1", "--kernels", "plain").decode()
    for word in ("plain kernels", "prefill", "decode", "tokens/s", "GB/s", "cache", "load"):
        need(word in out, "no word about '%s'" % word)
    together = json.loads(answer("bench", path, "-p", "20", "-n", "4", "--repeat", "2", "--sequences", "3", "--json"))
    same((together["sequences"], together["tokens"]), (3, 4), "sequences and tokens")
    need(0 < together["decode"]["median"] <= together["decode"]["best"] and together["longest_wait_ms"] > 0, "speeds %r" % together)
    out = answer("bench", path, "-p", "20", "-n", "4", "--repeat", "1", "--sequences", "2").decode()
    need("2 x 4" in out and "wait" in out, "a report without sequences")
    out = answer("bench", path, "-p", "20", "-n", "0", "--repeat", "1").decode()
    need("decode" not in out, "a speed of decoding without decoding")
    lines = sentence("bench", path, "-p", "5000", code=2)
    need("4096" in lines[0], "the limit is not named")
    sentence("bench", path, "-p", "0", code=2)
    sentence("bench", path, "--repeat", "0", code=2)


# ---- what does not run -------------------------------------------------------------------

def check_refused(path, code, *words):
    facts = json.loads(answer("show", path, "--json", code=4))
    v = facts["verdict"]
    same(v["runs"], False, "verdict")
    same(v["code"], code, "code")
    need(v["text"].endswith(".") and "\n" not in v["text"], "no sentence: " + v["text"])
    for word in words:
        need(word in v["text"], "no word about '%s': %s" % (word, v["text"]))
    same(facts["memory"], None, "memory")
    check_container(facts, path)
    need("does not run" in answer("show", path, code=4).decode(), "no verdict")
    sentence("show", path, "--plan", code=4)


def patched(path, out, old, new):
    b = open(path, "rb").read()
    need(old in b and len(old) == len(new), "cannot patch")
    with open(out, "wb") as f:
        f.write(b.replace(old, new, 1))
    return out


def check_missing_key(path, tmp):
    out = patched(path, os.path.join(tmp, "key.gguf"), b"gemma4.attention.sliding_window\x04",
                  b"gemma4.attention.sliding_windoW\x04")
    check_refused(out, "bad_file", "gemma4.attention.sliding_window", "missing")


def check_missing_tensor(path, tmp):
    out = patched(path, os.path.join(tmp, "tensor.gguf"), b"blk.1.ffn_down.weight", b"blk.1.ffn_dawn.weight")
    check_refused(out, "bad_file", "blk.1.ffn_down.weight")
    facts = json.loads(answer("show", out, "--json", code=4))
    same(facts["model"]["layers"], 6, "layers, although it does not run")


def check_truncated(path, tmp):
    whole = open(path, "rb").read()
    header = json.loads(answer("show", path, "--json"))["files"][0]["header_bytes"]
    for n in (0, 3, 24, 100, header // 2, header, header + 1000, len(whole) - 1):
        short = os.path.join(tmp, "short.gguf")
        with open(short, "wb") as f:
            f.write(whole[:n])
        for extra in ([], ["--json"], ["--plan"]):
            lines = sentence("show", short, *extra, code=1)
            same(len(lines), 1, "lines of the message about %d bytes" % n)


def check_not_a_model(tmp):
    page = os.path.join(tmp, "page.gguf")
    with open(page, "w") as f:
        f.write("<!doctype html><title>Not found</title>")
    need("web page" in sentence("show", page, code=1)[0], "it is a web page")
    sentence("show", tmp, code=1)
    sentence("show", os.path.join(tmp, "nothing.gguf"), code=3)


def check_usage(path):
    sentence("show", code=2)
    sentence("show", path, "--rows", "8", code=2)
    sentence("show", path, "--plan", "--rows", "100000", code=2)
    sentence("show", path, "--nonsense", code=2)
    sentence("show", path, "-c", "4097", code=2)
    same(bezel("show", "--help")[0][:6], b"Usage:", "help")
    facts = json.loads(answer("show", path, "--json", "-c", "3000"))
    same([e["context"] for e in facts["memory"]["by_context"]], [2048, 3000, 4096], "contexts")


def check_wgsl():
    """Kernels are listed, and each is printed for each of its block types."""
    kernels = {}
    for line in answer("show", "--wgsl").decode().splitlines():
        kernels[line.split()[0]] = line.split()[1:]
    need(len(kernels) > 50 and kernels["combine"] == [], "the list: %r" % kernels)
    need("Q4_K" in kernels["linear8"] and "F16" not in kernels["linear8"], "block types: %r" % kernels["linear8"])
    for name, types in kernels.items():
        text = answer("show", "--wgsl", name, *types[-1:]).decode()
        same(text.count("\n@compute "), 1, "entry points of " + name)
    need(b"fn dot_unit(" in answer("show", "--wgsl", "linear8", "q4_k"), "no section of the block type")
    need("nonsense" in sentence("show", "--wgsl", "nonsense", code=2)[0], "an unknown kernel")
    need("Q4_K" in sentence("show", "--wgsl", "linear8", code=2)[0], "a kernel without its block type")
    need("Q4_K" in sentence("show", "--wgsl", "linear8", "F16", code=2)[0], "a block type that it has not")
    need("Q4_K" in sentence("show", "--wgsl", "combine", "Q4_K", code=2)[0], "a block type for nothing")
    sentence("show", "--wgsl", "linear8", "Q4_K", "more", code=2)
    texts = json.loads(answer("show", "--wgsl", "--json"))
    need(len(texts) > 300 and {t["subgroups"] for t in texts} == {True, False}, f"{len(texts)} texts")
    sentence("show", "--wgsl", "linear8", "--json", code=2)


def check_hostile(tmp):
    """Text of a stranger never reaches the terminal as it is, and JSON stays JSON."""
    path = os.path.join(tmp, "hostile.gguf")
    write_gguf(path, [
        ("general.architecture", 8, gguf_string("strange\x1b[31m")),
        ("general.name", 8, gguf_string(b"a\x07b\xff\xc2\x9bc\xe2\x80\xaed\n\"\\")),
        ("long", 8, gguf_string("x" * 5000)),
        ("wide", 8, gguf_string("\u6f22" * 300)),
        ("empty", 9, struct.pack("<IQ", 4, 0)),
        ("nan", 6, struct.pack("<f", float("nan"))),
        ("deep", 12, struct.pack("<d", 0.1)),
        ("least", 11, struct.pack("<q", -2**63)),
        ("most", 10, struct.pack("<Q", 2**64 - 1)),
        ("bits", 9, struct.pack("<IQ", 7, 2000) + b"\x01" * 2000),
    ])
    out = answer("show", path, code=4)
    bad = [c for c in out.decode() if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"]
    need(not bad, "control characters: %r" % bad[:5])
    need("\\x1B[31m" in out.decode() and "true x2000" in out.decode(), "escapes")
    need(max(len(l) for l in out.decode().splitlines()) <= PAGE, "a long line")
    facts = json.loads(answer("show", path, "--json", code=4))
    same(facts["name"], "a\x07b\ufffd\x9bc\u202ed\n\"\\", "name")
    keys = facts["files"][0]["metadata"]
    same(len(keys["long"]["value"]), 5000, "a long string")
    same(keys["nan"]["value"], None, "NaN")
    same(keys["deep"]["value"], 0.1, "a double")
    same((keys["least"]["value"], keys["most"]["value"]), (-2**63, 2**64 - 1), "large numbers")
    same((keys["bits"]["count"], len(keys["bits"]["first"])), (2000, 8), "a long array")
    same(keys["empty"]["value"], [], "an empty array")


# ---- more models ---------------------------------------------------------------------------

def check_extra(path):
    facts = json.loads(answer("show", path, "--json"))
    same(facts["verdict"]["runs"], True, "verdict")
    check_memory(facts)
    plan = json.loads(answer("show", path, "--plan", "--json"))
    same(plan["weight_bytes"], facts["memory"]["weight_bytes_per_token"], "bytes of the decode pass")
    need(answer("show", path).decode().startswith("  verdict        Bezel runs"), "text")


def check_split(parts, tmp):
    facts = [json.loads(answer("show", p, "--json")) for p in parts]
    same([len(f["files"]) for f in facts], [len(parts)] * len(parts), "files found")
    same([f["verdict"]["runs"] for f in facts], [True] * len(parts), "verdicts")
    same(facts[0]["bytes"], sum(os.path.getsize(p) for p in parts), "size")
    check_memory(facts[-1])
    alone = os.path.join(tmp, "alone")
    os.mkdir(alone)
    lost = shutil.copy(parts[-1], alone)
    v = json.loads(answer("show", lost, "--json", code=4))["verdict"]
    same((v["runs"], v["code"]), (False, "not_found"), "verdict without the other parts")


def check_towers(model, mmproj=None):
    facts = json.loads(answer("show", model, "--json", *(["--mmproj", mmproj] if mmproj else [])))
    need(facts["vision"], "no vision")
    same(facts["verdict"]["runs"], True, "verdict")
    same(facts["verdict"]["text"], "Bezel runs this model: text, images and audio.", "verdict")


def main():
    global program, models
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    models = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as tmp:
        for name, want in CASES.items():
            for path in (os.path.join(GOLDEN, name, "text.gguf"), os.path.join(models or GOLDEN, name + "-whole.gguf")):
                if os.path.exists(path):
                    title = "%s, %s" % (name, os.path.basename(path))
                    case("show --json " + title, check_json, path, {**COMMON, **want})
                    case("show " + title, check_text, path)
                    case("show --plan " + title, check_plan, path)
                    if path.endswith("text.gguf"):     # the other file has the same weights, and towers
                        case("bench " + title, check_bench, path, 2 if name == "e-like" else 1)
            case("show %s/golden" % name, check_refused, os.path.join(GOLDEN, name, "golden.gguf"),
                 "unsupported_model", "golden")
        e_like = os.path.join(GOLDEN, "e-like", "text.gguf")
        case("bench as text, and its limits", check_bench_text, e_like)
        case("show a file with towers", check_towers, os.path.join(models, "e-like-whole.gguf"))
        case("show a model with an mmproj file", check_towers, e_like, os.path.join(GOLDEN, "e-like", "mmproj.gguf"))
        case("show a model without a key", check_missing_key, e_like, tmp)
        case("show a model without a tensor", check_missing_tensor, e_like, tmp)
        case("show a truncated file", check_truncated, e_like, tmp)
        case("show a file that is not a model", check_not_a_model, tmp)
        case("show text with control characters", check_hostile, tmp)
        case("show's options", check_usage, e_like)
        case("show the memory of each type of KV cache", check_cache_types, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "pebble.gguf"))
        case("show --wgsl", check_wgsl)
        found = sorted(os.listdir(models)) if models and os.path.isdir(models) else []
        parts = [os.path.join(models, f) for f in found if "-of-" in f and f.endswith(".gguf")]
        if parts:
            case("show a file in parts", check_split, parts, tmp)
        for f in found:
            if f.endswith(".gguf") and "-of-" not in f and os.path.getsize(os.path.join(models, f)) < 1 << 26:
                case("show " + f, check_extra, os.path.join(models, f))
    sys.exit(finish())


if __name__ == "__main__":
    main()
