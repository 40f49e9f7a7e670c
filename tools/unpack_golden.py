#!/usr/bin/env python3
"""Unpack the recorded results of the official implementation, and the small models they belong to.

  unpack_golden.py FROM TO

Compressed files of FROM (tests/golden) are unpacked into TO, other files are copied; newer files in TO are kept.
"""
import lzma
import os
import shutil
import sys


def main(source, target):
    for folder, _, names in os.walk(source):
        to = os.path.normpath(os.path.join(target, os.path.relpath(folder, source)))
        os.makedirs(to, exist_ok=True)
        for name in names:
            packed, bare = os.path.join(folder, name), os.path.join(to, name.removesuffix(".xz"))
            if os.path.exists(bare) and os.path.getmtime(bare) >= os.path.getmtime(packed):
                continue
            with (lzma.open if name.endswith(".xz") else open)(packed, "rb") as i, open(bare + ".tmp", "wb") as o:
                shutil.copyfileobj(i, o)
            os.replace(bare + ".tmp", bare)


if __name__ == "__main__":
    main(*sys.argv[1:])
