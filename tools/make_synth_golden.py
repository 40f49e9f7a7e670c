#!/usr/bin/env python3
"""Regenerate tests/golden/synth: reference logits of the synthetic models that the tests run.

  make_synth_golden.py --out tests/golden/synth --models DIR [--peer PEER_LOGITS] [--only NAME...]

For every model in CASES: writes it into --models, computes its logits with gemma4_ref.py (float64)
and keeps
  NAME.ref.f32   all logits at a few positions,            float32 [positions][n_vocab]
  NAME.all.f32   every stride-th logit at every position,  float32 [tokens][ceil(n_vocab / stride)]
and in manifest.json and manifest.txt (same content; tests/golden/README.md explains the lines) its
sha256, the tokens, and the distance of llama.cpp from the float64 logits. --peer is bench/peer_logits.c
linked against libllama; without it llama.cpp's figures are copied from the old manifest.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys

import numpy as np

import gemma4_ref
import gemma4_synth
import gguf_io

SINGLE = "f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4"
TYPES = {"nano-e": "f32 f16 bf16 q8_0 q4_0", "nano-moe": "f32 q8_0", "nano-dense": "f32", "nano-12b": "f32",
         "tiny-e": SINGLE + " q4_k_m q5_k_m q3_k_m",
         "tiny-moe": "f32 q8_0 q4_k_m q5_k_m q6_k q2_k iq4_xs mxfp4_moe",
         "tiny-dense": "f32 q4_k_m q6_k q3_k q3_k_m iq4_nl", "tiny-12b": "q8_0 q4_k_m"}
# name: (arguments of gemma4_synth.py, the model with the same logits or None)
CASES = {f"{p}-{t}": (f"{p} --type {t}", None) for p, types in TYPES.items() for t in types.split()}
CASES.update({
    "tiny-e-q4_k-loose": ("tiny-e --type q4_k --loose-mins", None),
    "tiny-e-q5_k-loose": ("tiny-e --type q5_k --loose-mins", None),
    "tiny-e-q8_0-full": ("tiny-e --type q8_0 --full-tensors", "tiny-e-q8_0"),
    "tiny-e-q4_k_m-ollama": ("tiny-e --type q4_k_m --layout ollama --full-tensors", None),
    "tiny-moe-q4_k_m-ollama": ("tiny-moe --type q4_k_m --layout ollama", "tiny-moe-q4_k_m"),
    "tiny-moe-q4_k_m-early": ("tiny-moe --type q4_k_m --layout ollama --early", "tiny-moe-q4_k_m"),
})
# One random MoE model is not conclusive, because rounding decides near-ties between experts. Models that
# differ in the seed only (NAME, NAME-s2, ...) are therefore judged together.
CASES.update({f"tiny-moe-q5_k_m-s{i}": (f"tiny-moe --type q5_k_m --seed {i}", None) for i in (2, 3, 4)})
# llama.cpp with its defaults, and with less rounding
PEER = {"peer": ["-k", "f16", "-a", "-r"], "plain": ["-k", "f32"]}
TEXTS = ["Hello world", "The people of the world write about the sea and the sun.", " leading space", "two  spaces   three",
         "line one\nline two\n\n\nline five\n", "tabs\tand\r\nwindows", "naïve café — “quotes” … 日本語 🙂 x",
         "<|turn>user\nHello<turn|>\n<|turn>model\n", "<bos>twice", "1234567890 3.14159", "</s><table><tr>", "▁already escaped",
         "<|\"|>quoted<|\"|> <|tool_call>call:f{}<tool_call|>", " ", "\n", "aaaaaaaaaaaaaaaaaaaaaaaa", "émile ☃ ﷽ \u200bzero",
         "back\\slash and\ttab", "a\n\n b\n▁▁c  \n", "<unused7><|image|>x<image|>"]


def sequence(vocab, window):
    """random ids that run well past the window, with a padding and a byte token"""
    n = 2 * window + 16
    r = gguf_io.random_u64(gguf_io.seed_of("sequence", vocab), 0, 64).tolist()
    ids = [2] + [494 + (x >> 20) % (vocab - 501) for x in r[:n - 1]]
    ids[3], ids[5] = 0, 238 + 65
    return ids


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def run_peer(peer, model, *args):
    p = subprocess.run([peer, model, *args], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(f"{peer} {model}: {p.stderr}")
    return p.stdout


def distance(truth, other, kept, stride):
    """[over the kept positions, over all, over all at every stride-th logit] of each measure"""
    d = other - truth
    rms, median, largest = [], [], []
    for x in (d[kept], d, d[:, ::stride]):
        per = np.sqrt((x ** 2).mean(1))
        rms.append(np.sqrt((x ** 2).mean()))
        median.append(np.median(per))
        largest.append(np.abs(x).max())
    r = lambda v: [float(f"{x:.4g}") for x in v]
    return {"rms": r(rms), "median": r(median), "max": r(largest),
            "argmax": [int((truth.argmax(1) == other.argmax(1)).sum()), len(truth)]}


def answer(path, name, out):
    """-> entry of the manifest and all float64 logits"""
    m = gemma4_ref.Model(path)
    V = len(m.r.kv["tokenizer.ggml.tokens"])
    ids = sequence(V, m.window)
    kept = [1, m.window, len(ids) - 1] if V < 1000 else [m.window, len(ids) - 1]
    stride = V // 32
    truth = m.logits(ids)
    truth[kept].astype(np.float32).tofile(os.path.join(out, name + ".ref.f32"))
    truth[:, ::stride].astype(np.float32).tofile(os.path.join(out, name + ".all.f32"))
    return {"n_vocab": V, "tokens": ids, "positions": kept, "stride": stride}, truth


def compare_with_peer(peer, path, entry, truth):
    tmp = path + ".tmp"
    ids = ",".join(map(str, entry["tokens"]))
    for key, options in PEER.items():
        run_peer(peer, path, "-t", ids, "-o", tmp, *options)
        other = np.fromfile(tmp, np.float32).reshape(truth.shape).astype(np.float64)
        entry[key] = distance(truth, other, entry["positions"], entry["stride"])
    os.remove(tmp)


def write_text(path, models):
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Written by tools/make_synth_golden.py; ../README.md explains the lines.\n")
        for name, e in models.items():
            preset, _, typ, *options = e["args"].split()
            f.write(f"\nmodel {name} {e['sha256']} {preset} {typ} {e['n_vocab']} {e['bytes']}\n")
            f.write("args " + " ".join(e["args"].split()) + "\n")
            f.write(f"answer {e['answer']}\n")
            f.write("tokens " + " ".join(map(str, e["tokens"])) + "\n")
            f.write("positions " + " ".join(map(str, e["positions"])) + "\n")
            f.write(f"stride {e['stride']}\n")
            for key in PEER:
                for measure, values in e.get(key, {}).items():
                    f.write(f"{key}_{measure} " + " ".join(f"{v:g}" for v in values) + "\n")


def write_tokenizer(path, peer, models):
    """the peer's tokens of TEXTS, for both vocabulary sizes"""
    def escape(t):
        for c, e in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
            t = t.replace(c, e)
        t = "\\s" + t[1:] if t.startswith(" ") else t
        return t[:-1] + "\\s" if t.endswith(" ") else t
    with open(path, "w", encoding="utf-8") as f:
        f.write("# text (escapes: \\\\ \\n \\r \\t, \\s for a space at either end) and its ids, special tokens recognized, BOS first.\n")
        for name in ("nano-e-f32", "tiny-e-f32"):
            f.write(f"\nvocab {name} {models[name]['n_vocab']}\n")
            for t in TEXTS:
                line = run_peer(peer, models[name]["path"], "-f", t).splitlines()[0]
                f.write(f"text {escape(t)}\nids {line.partition(': ')[2].replace(',', ' ')}\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--models", required=True)
    ap.add_argument("--peer")
    ap.add_argument("--only", nargs="*", help="update only these entries of the manifest")
    a = ap.parse_args()
    os.makedirs(a.models, exist_ok=True)
    os.makedirs(a.out, exist_ok=True)
    manifest = os.path.join(a.out, "manifest.json")
    old = {}
    if os.path.exists(manifest):
        with open(manifest, encoding="utf-8") as f:
            old = json.load(f)
    models = {}
    for name, (args, twin) in CASES.items():
        before = old.get(name, {})
        if a.only and name not in a.only and before:
            models[name] = before
            continue
        path = os.path.join(a.models, name + ".gguf")
        preset, *rest = args.split()
        gemma4_synth.main([preset, path, *rest, "--quiet"])
        if twin:
            entry = {k: v for k, v in models[twin].items() if k not in ("args", "sha256", "bytes")}
        else:
            entry, truth = answer(path, name, a.out)
            entry["answer"] = name
        entry = {"args": args, "sha256": sha256(path), "bytes": os.path.getsize(path), **entry}
        if not twin and a.peer:
            compare_with_peer(a.peer, path, entry, truth)
        elif not twin and before.get("sha256") == entry["sha256"]:
            entry.update({k: before[k] for k in PEER if k in before})
        models[name] = entry
        print(name, entry.get("peer", {}), file=sys.stderr)
    with open(manifest, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in models.items()) + "\n}\n")
    write_text(os.path.join(a.out, "manifest.txt"), models)
    if a.peer and not a.only:
        for name in ("nano-e-f32", "tiny-e-f32"):
            models[name]["path"] = os.path.join(a.models, name + ".gguf")
        write_tokenizer(os.path.join(a.out, "tokenizer.txt"), a.peer, models)


if __name__ == "__main__":
    main()
