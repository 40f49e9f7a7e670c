#!/usr/bin/env python3
"""Compares two files of `bezel logits`: relative rms of the difference, the largest, and how often the top tokens agree.

    compare_logits.py WANT.f32 GOT.f32 VOCABULARY [ROWS]     ROWS: only that many last rows
"""
import sys

import numpy as np


def main(want_path, got_path, vocabulary, rows=0):
    want, got = (np.memmap(p, np.float32).reshape(-1, int(vocabulary))[-int(rows):] for p in (want_path, got_path))
    rms = np.sqrt(np.mean(want.astype(np.float64) ** 2))
    difference = got.astype(np.float64) - want
    same = np.mean(got.argmax(1) == want.argmax(1))
    print(f"{len(want)} rows: rms {np.sqrt(np.mean(difference ** 2)) / rms:.5f}, largest {np.abs(difference).max() / rms:.4f}, "
          f"same top token {100 * same:.1f} %")


main(*sys.argv[1:])
