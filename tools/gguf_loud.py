#!/usr/bin/env python3
"""Multiply a model's ffn_up matrices, and the up rows of its experts, by 4096.

  gguf_loud.py IN.gguf OUT.gguf

The norm after each feed-forward network cancels the factor, so the logits do not change, but the activations
in between exceed the range of f16. Multiplying by a power of two is exact in F32, F16 and BF16.
"""
import argparse

import numpy as np
import gguf_io as g

FACTOR = 4096


def louder(typ, raw):
    """the bytes of F32, F16 or BF16 values times FACTOR"""
    if typ == "bf16":
        x = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32) * np.float32(FACTOR)
        return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    x = raw.view({"f32": np.float32, "f16": np.float16}[typ])
    y = (x.astype(np.float32) * FACTOR).astype(x.dtype)
    assert np.isfinite(y).all(), "too large for its type"
    return y.tobytes()


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("input")
    ap.add_argument("out")
    a = ap.parse_args(argv)
    r, w = g.Reader(a.input), g.Writer()
    w.copy_metadata(r)
    changed = 0
    for name, (typ, ne, raw) in r.tensors.items():
        raw = np.array(raw)
        if name.endswith(("ffn_up.weight", "ffn_up_exps.weight")):
            data = louder(typ, raw)
        elif name.endswith("ffn_gate_up_exps.weight"):   # [K][gate rows, up rows][experts]
            parts = raw.reshape(ne[2], 2, -1)
            data = b"".join(gate.tobytes() + louder(typ, np.ascontiguousarray(up)) for gate, up in parts)
        else:
            w.copy_tensor(r, name)
            continue
        changed += 1
        w.tensor(name, typ, ne, lambda data=data: [data])
    if not changed:
        raise SystemExit(f"{a.input}: no ffn_up")
    w.save(a.out)


if __name__ == "__main__":
    main()
