#!/usr/bin/env python3
"""Write a drafter (gemma4-assistant) with seeded random values for a model.

  assistant_synth.py MODEL.gguf OUT.gguf [--type q4_0|q8_0|...] [--width N --heads N --ffn N --clusters N --seed N]

Its drafts are as good as chance: it is for measuring what drafting and verifying cost. The defaults are the published drafters' of E2B
and E4B without their clusters of tokens (--clusters 2048); 12B, 26B and 31B have --width 1024 --ffn 8192 and --heads 16 (31B: 32).
"""
import argparse

import numpy as np

import gguf_io as g

ARCH = "gemma4-assistant."
COPIED = ("context_length", "rope.freq_base", "rope.freq_base_swa", "rope.dimension_count", "rope.dimension_count_swa",
          "attention.layer_norm_rms_epsilon", "attention.key_length", "attention.key_length_swa", "attention.value_length",
          "attention.value_length_swa", "attention.sliding_window")
PATTERN = [True, True, True, False]                    # sliding


def last_of_kind(kv, name, sliding):
    """a number per layer, of the last layer of a kind"""
    value, pattern = kv["gemma4." + name], kv["gemma4.attention.sliding_window_pattern"]
    return value[max(i for i, s in enumerate(pattern) if s == sliding)] if isinstance(value, list) else value


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("out")
    ap.add_argument("--type", default="q4_0")
    ap.add_argument("--width", type=int, default=256)
    ap.add_argument("--heads", type=int, default=4)
    ap.add_argument("--ffn", type=int, default=2048)
    ap.add_argument("--clusters", type=int, default=0)
    ap.add_argument("--seed", default="1")
    a = ap.parse_args(argv)
    base, w = g.Reader(a.model), g.Writer()
    kv, d, out = base.kv, a.width, base.kv["gemma4.embedding_length"]
    vocab = base.tensors["token_embd.weight"][1][1]

    def vector(name, n, mean):
        x = mean * (1 + 0.1 * g.random_normal(g.seed_of(a.seed, name), 0, n))
        w.tensor(name, "f32", [n], lambda: [x.astype("float32").tobytes()])

    def matrix(name, rows, cols):
        typ = a.type if rows % g.TYPES[a.type][1] == 0 else "f16"
        seed, blocks = g.seed_of(a.seed, name), rows * cols // g.TYPES[typ][1]
        w.tensor(name, typ, [rows, cols],
                 lambda: (g.random_blocks(typ, seed, i, min(1 << 16, blocks - i), rows ** -0.5) for i in range(0, blocks, 1 << 16)))

    w.put("general.architecture", g.STR, ARCH[:-1])
    w.put("general.type", g.STR, "model")
    w.put("general.name", g.STR, "synthetic drafter")
    for key in COPIED:
        w.kv.append((ARCH + key, *base.kv_types["gemma4." + key], kv["gemma4." + key]))
    for key, n in (("block_count", 4), ("nextn_predict_layers", 4), ("attention.shared_kv_layers", 4), ("embedding_length", d),
                   ("embedding_length_out", out), ("embedding_length_per_layer_input", 0), ("feed_forward_length", a.ffn),
                   ("attention.head_count", a.heads)):
        w.put(ARCH + key, g.U32, n)
    w.put_array(ARCH + "attention.head_count_kv", g.I32, [last_of_kind(kv, "attention.head_count_kv", s) for s in PATTERN])
    w.put_array(ARCH + "attention.sliding_window_pattern", g.BOOL, PATTERN)
    if "rope_freqs.weight" in base.tensors:
        w.copy_tensor(base, "rope_freqs.weight")
    matrix("token_embd.weight", d, vocab)
    vector("output_norm.weight", d, 1)
    matrix("nextn.pre_projection.weight", 2 * out, d)
    matrix("nextn.post_projection.weight", d, out)
    if a.clusters:
        if vocab % a.clusters:
            ap.error(f"{vocab} tokens do not divide into {a.clusters} clusters")
        matrix("masked_embd_centroids.weight", d, a.clusters)
        order = np.argsort(g.random_normal(g.seed_of(a.seed, "ordering"), 0, vocab)).astype("<i4")
        w.tensor("masked_embd_ordering", "i32", [vocab], lambda: [order.tobytes()])
    for i, sliding in enumerate(PATTERN):
        head = kv["gemma4.attention.key_length" + ("_swa" if sliding else "")]
        q = a.heads * head
        for name, shape in (("attn_q", (d, q)), ("attn_output", (q, d)), ("ffn_gate", (d, a.ffn)), ("ffn_up", (d, a.ffn)),
                            ("ffn_down", (a.ffn, d))):
            matrix(f"blk.{i}.{name}.weight", *shape)
        for name, n, mean in (("attn_norm", d, 1), ("attn_q_norm", head, 1), ("post_attention_norm", d, 0.5), ("ffn_norm", d, 1),
                              ("post_ffw_norm", d, 0.5), ("layer_output_scale", 1, 1)):
            vector(f"blk.{i}.{name}.weight", n, mean)
    w.save(a.out)


if __name__ == "__main__":
    main()
