#!/usr/bin/env python3
"""Put a text model in Ollama's layout and an mmproj file into one file, as Ollama's converter writes it.

  gguf_whole.py TEXT.gguf MMPROJ.gguf OUT.gguf

Values do not change: the file has Ollama's keys and names of audio tensors, and the bounds of the vision tower packed
into v.clamp_data.
"""
import re
import sys

import numpy as np
import gguf_io as g

PARTS = ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down")
BOUNDS = ("input_min", "input_max", "output_min", "output_max")
AUDIO = {"attn_pre_norm": "ln1", "attn_post_norm": "ln2", "ln2": "layer_pre_norm", "attn_k_rel": "linear_pos"}


def renamed(name):
    fixed = {"a.input_projection.weight": "a.pre_encode.out.weight", "a.pre_encode.out.weight": "mm.a.fc.weight",
             "a.pre_encode.out.bias": "mm.a.fc.bias"}
    m = re.fullmatch(r"(a\.blk\.\d+)\.(\w+)\.weight", name)
    return f"{m[1]}.{AUDIO.get(m[2], m[2])}.weight" if m else fixed.get(name, name)


def main(argv):
    text, mm, w = g.Reader(argv[0]), g.Reader(argv[1]), g.Writer()
    w.copy_metadata(text, skip=[k for k in text.kv if k.startswith(("gemma4.vision.", "gemma4.audio."))])
    for kind in ("vision", "audio"):
        prefix = f"clip.{kind}."
        if prefix + "block_count" not in mm.kv:
            continue
        for key in ("block_count", "embedding_length", "feed_forward_length", "attention.head_count"):
            w.put(f"gemma4.{kind}.{key}", g.U32, mm.kv[prefix + key])
    towers = ("v.", "a.", "mm.")
    for name in text.tensors:
        if not name.startswith(towers):
            w.copy_tensor(text, name)
    layers = mm.kv["clip.vision.block_count"]
    packed = np.zeros(((layers * len(PARTS)) + 1, 4), np.float32)
    clips = False
    for name, (typ, ne, _) in mm.tensors.items():
        m = re.fullmatch(r"v\.blk\.(\d+)\.(\w+)\.(input_min|input_max|output_min|output_max)", name)
        if m:
            packed[int(m[1]) * len(PARTS) + PARTS.index(m[2]), BOUNDS.index(m[3])] = mm.get(name)[0]
            clips = True
            continue
        raw = mm.get(name)
        if typ == "f32":
            w.tensor(renamed(name), "f32", ne, lambda raw=raw: [raw.astype(np.float32).tobytes()])
        else:
            w.tensor(renamed(name), "f16", ne, lambda raw=raw: [raw.astype(np.float16).tobytes()])
    if clips:
        w.tensor("v.clamp_data", "f32", [packed.size], lambda: [packed.tobytes()])
    w.save(argv[2])


if __name__ == "__main__":
    main(sys.argv[1:])
