#!/usr/bin/env python3
"""Logits around an image with more tokens than a chunk, for models that must read an image in one pass.

  make_long_golden.py GOLDEN_DIR OUT_DIR

GOLDEN_DIR has moe-like/text.gguf and unified/text.gguf; OUT_DIR gets NAME/long.gguf.xz with float64 results of gemma4_ref.py:
tokens (-1 where the image is), positions, their logits. The image's values are a function of their index, which
tests/support/long.h computes too.
"""
import lzma
import os
import sys

import numpy as np
import gemma4_ref
import gguf_io as g
from make_media_golden import put

ROWS, BEFORE = 700, 5


def image_rows(rows, width):
    i = np.arange(rows * width, dtype=np.uint64).reshape(rows, width)
    x = (i * np.uint64(2654435761) + np.uint64(12345)) & np.uint64(0xFFFFFFFF)
    return ((x >> np.uint64(8)).astype(np.float64) / 8388608.0 - 1.0).astype(np.float32)


def main(golden, out):
    for name, rule in (("moe-like", "sliding"), ("unified", "whole")):
        model = gemma4_ref.Model(os.path.join(golden, name, "text.gguf"))
        tokens = np.array([2, 100, 101, 102, 103] + [0] * ROWS + [104, 105, 106], np.int32)
        logits = model.logits(tokens, images=[(BEFORE, image_rows(ROWS, model.n).astype(np.float64))], bidirectional=rule)
        at = np.array([BEFORE - 1, BEFORE, BEFORE + 1, BEFORE + ROWS // 2, BEFORE + ROWS - 1, BEFORE + ROWS, len(tokens) - 1], np.int32)
        tokens[BEFORE:BEFORE + ROWS] = -1
        w = g.Writer()
        w.put("general.architecture", g.STR, "golden")
        put(w, "tokens", tokens)
        put(w, "positions", at)
        put(w, "logits", logits[at].astype(np.float32))
        path = os.path.join(out, name, "long.gguf")
        w.save(path)
        with open(path, "rb") as i, lzma.open(path + ".xz", "wb", preset=9) as o:
            o.write(i.read())
        os.remove(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
