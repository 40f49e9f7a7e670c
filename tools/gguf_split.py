#!/usr/bin/env python3
"""Cut a GGUF into N parts of about equal size.

  gguf_split.py IN.gguf OUTPREFIX N [--no-tensor-first]

Writes OUTPREFIX-00001-of-0000N.gguf and so on. The first part has all the metadata (and no
tensor with --no-tensor-first), the others only the split keys; every part has its own offsets.
"""
import argparse

import gguf_io as g


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("input")
    ap.add_argument("prefix")
    ap.add_argument("n", type=int)
    ap.add_argument("--no-tensor-first", action="store_true")
    a = ap.parse_args(argv)
    r = g.Reader(a.input)
    first = 1 if a.no_tensor_first else 0
    if not first < a.n <= min(99999, first + len(r.tensors)):
        raise SystemExit(f"cannot make {a.n} parts of {len(r.tensors)} tensors")
    names, parts = list(r.tensors), [[] for _ in range(a.n)]
    total = sum(raw.size for _, _, raw in r.tensors.values())
    done = 0
    for i, name in enumerate(names):
        p = first + min(done * (a.n - first) // max(total, 1), a.n - first - 1)
        p = max(p, a.n - (len(names) - i))             # leave a tensor for every part
        parts[p].append(name)
        done += r.tensors[name][2].size
    for k, part in enumerate(parts):
        w = g.Writer()
        if k == 0:
            w.copy_metadata(r)
        w.put("split.no", g.U16, k)
        w.put("split.count", g.U16, a.n)
        w.put("split.tensors.count", g.I32, len(names))
        for name in part:
            w.copy_tensor(r, name)
        w.save(f"{a.prefix}-{k + 1:05d}-of-{a.n:05d}.gguf")


if __name__ == "__main__":
    main()
