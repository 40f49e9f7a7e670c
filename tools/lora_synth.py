#!/usr/bin/env python3
"""Write a LoRA adapter with seeded random values for every projection of a model.

  lora_synth.py MODEL.gguf OUT.gguf [--rank N] [--alpha X] [--type f32|f16|bf16|q8_0] [--seed N] [--match TEXT] [--embeddings]

--match: only tensors whose name contains TEXT. --embeddings: token_embd and per_layer_token_embd, too.
Same model, rank, type and seed give the same bytes on every machine.
"""
import argparse
import re

import numpy as np
import gguf_io as g
import gguf_quantize

PROJECTIONS = re.compile(r"blk\.\d+\.(attn_[qkv]|attn_output|ffn_(gate|up|down)|inp_gate|proj|ffn_gate_inp|"
                         r"ffn_(gate_up|gate|up|down)_exps)\.weight|per_layer_model_proj\.weight|output\.weight")
TABLES = ("token_embd.weight", "per_layer_token_embd.weight")


def values(name, seed, ne, size):
    """Uniform in [-size, size), in GGUF order."""
    n = int(np.prod(ne, dtype=np.int64))
    return ((2 * g.random_unit(g.seed_of(seed, name), 0, n) - 1) * np.float32(size)).astype(np.float32)


def add(w, name, typ, ne, seed, size):
    data = values(name, seed, ne, size)
    typ = typ if ne[0] % g.TYPES[typ][1] == 0 else "f16"
    w.tensor(name, typ, ne, lambda: [gguf_quantize.quantize(typ, data.reshape(-1, ne[0]))])


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("out")
    ap.add_argument("--rank", type=int, default=16)
    ap.add_argument("--alpha", type=float, default=32)
    ap.add_argument("--type", default="f32", choices=["f32", "f16", "bf16", "q8_0"])
    ap.add_argument("--seed", default="1")
    ap.add_argument("--match", default="")
    ap.add_argument("--embeddings", action="store_true")
    a = ap.parse_args(argv)
    base, w = g.Reader(a.model), g.Writer()
    w.put("general.type", g.STR, "adapter")
    w.put("general.architecture", g.STR, base.kv["general.architecture"])
    w.put("general.name", g.STR, f"Random adapter {a.seed}")
    w.put("adapter.type", g.STR, "lora")
    w.put("adapter.lora.alpha", g.F32, a.alpha)
    for name, (_, ne, _) in base.tensors.items():
        table = a.embeddings and name in TABLES
        if a.match not in name or not (table or PROJECTIONS.fullmatch(name)):
            continue
        # B A x stays a few percent of what a product of the model is
        if table:
            add(w, name + ".lora_a", a.type, [a.rank, ne[1]], a.seed, 0.02)
            add(w, name + ".lora_b", a.type, [a.rank, ne[0]], a.seed, 0.02)
        else:
            add(w, name + ".lora_a", a.type, [ne[0], a.rank, *ne[2:]], a.seed, ne[0] ** -0.5)
            add(w, name + ".lora_b", a.type, [a.rank, ne[1], *ne[2:]], a.seed, 0.05 * a.rank ** -0.5)
    w.save(a.out)


if __name__ == "__main__":
    main()
