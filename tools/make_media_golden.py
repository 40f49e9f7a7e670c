#!/usr/bin/env python3
"""Reduce the golden data of images and sound to what the tests keep.

  make_media_golden.py FULL_DIR OUT_DIR

FULL_DIR is the whole set of golden data. Resized images become a 64-bit FNV-1a hash per row, logits
every third position and the last.
"""
import os
import sys

import numpy as np
import gguf_io as g


def fnv(row):
    h = 0xCBF29CE484222325
    for b in row.tobytes():
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def put(w, name, x):
    kind = {"float32": "f32", "int32": "i32", "int8": "i8"}[str(x.dtype)]
    w.tensor(name, kind, list(x.shape[::-1]), lambda: [np.ascontiguousarray(x).tobytes()])


def media(full, out):
    r, w = g.Reader(os.path.join(full, "media/golden.gguf")), g.Writer()
    w.put("general.architecture", g.STR, "golden")
    for name in r.tensors:
        x = r.get(name)
        if name in ("image.1.rgb", "image.1.patches", "image.1.grid", "audio.1.pcm", "audio.1.features") or "torchvision" in name:
            continue
        if ".resized" in name:
            rows = np.array([fnv(row) for row in x.reshape(len(x), -1)], np.uint64)
            put(w, name + ".sums", rows.view(np.int32))
        else:
            put(w, name, x)
    os.makedirs(os.path.join(out, "media"), exist_ok=True)
    w.save(os.path.join(out, "media/golden.gguf"))


def towers(full, out, case):
    r, w = g.Reader(os.path.join(full, case, "golden.gguf")), g.Writer()
    w.put("general.architecture", g.STR, "golden")
    for name in r.tensors:
        if name.startswith("text.") or name.endswith("logits_static"):
            continue
        x = r.get(name)
        if name.startswith("mm.") and name.endswith((".positions", ".logits")):
            keep = sorted({*range(0, len(x), 3), len(x) - 1})
            x = x[keep]
        put(w, name, x)
    w.save(os.path.join(out, case, "media.gguf"))


def canvas(full, out):
    """DiffusionGemma: a prompt with an image, and the first step after it."""
    r, w = g.Reader(os.path.join(full, "diffusion/golden.gguf")), g.Writer()
    w.put("general.architecture", g.STR, "golden")
    for name in ("image.2.soft_tokens", "mm.tokens", "mm.step0.canvas", "mm.step0.logits"):
        put(w, name, r.get(name))
    w.save(os.path.join(out, "diffusion/media.gguf"))


if __name__ == "__main__":
    media(sys.argv[1], sys.argv[2])
    for name in ("e-like", "moe-like", "unified"):
        towers(sys.argv[1], sys.argv[2], name)
    canvas(sys.argv[1], sys.argv[2])
