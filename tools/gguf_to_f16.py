#!/usr/bin/env python3
"""Store the matrices of a GGUF file as F16, if that is exact.

  gguf_to_f16.py IN.gguf OUT.gguf

Vectors (norms, scales) and the router's matrix ffn_gate_inp stay F32, as in published files.
Stops at the first matrix with a value that F16 cannot hold.
"""
import argparse

import numpy as np
import gguf_io as g


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("input")
    ap.add_argument("out")
    a = ap.parse_args()
    r, w = g.Reader(a.input), g.Writer()
    r.kv["general.file_type"] = 1
    r.kv_types.setdefault("general.file_type", (g.U32, None))
    w.copy_metadata(r)
    for name, (typ, ne, _) in r.tensors.items():
        if len(ne) < 2 or typ == "f16" or "ffn_gate_inp" in name:
            w.copy_tensor(r, name)
            continue
        x = r.get(name)
        h = x.astype(np.float16)
        if not np.array_equal(h.astype(np.float32), x):
            raise SystemExit(f"{name}: values are not exact in F16")
        w.tensor(name, "f16", ne, lambda h=h: [h.tobytes()])
    w.save(a.out)


if __name__ == "__main__":
    main()
