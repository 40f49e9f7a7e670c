#!/usr/bin/env python3
"""Copy some tensors of a GGUF, with all its metadata.

  gguf_pick.py IN.gguf OUT.gguf PATTERN... [--drop]

A tensor is kept if its name matches a shell pattern (text.*, blk.[0-3].*); with --drop, if it
matches none.
"""
import argparse
from fnmatch import fnmatchcase

import gguf_io as g


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("input")
    ap.add_argument("out")
    ap.add_argument("pattern", nargs="+")
    ap.add_argument("--drop", action="store_true")
    a = ap.parse_args()
    r, w = g.Reader(a.input), g.Writer()
    w.copy_metadata(r)
    for name in r.tensors:
        if any(fnmatchcase(name, p) for p in a.pattern) != a.drop:
            w.copy_tensor(r, name)
    w.save(a.out)


if __name__ == "__main__":
    main()
