#!/usr/bin/env python3
"""Write a synthetic EmbeddingGemma GGUF: real architecture, seeded random weights.

  embedding_synth.py PRESET OUT.gguf [--type T] [--seed N]

PRESET is one of the names in PRESETS below; T as in gemma4_synth.py. The layout is llama.cpp's. The vocabulary is like
Gemma 3's: SentencePiece with scores, runs of spaces and newlines as user-defined tokens, bytes. Same preset, type and
seed give the same bytes on every machine.
"""
import argparse
import itertools
import math
import string
import sys

import numpy as np
import gguf_io as g
from gemma4_synth import FILE_TYPE, Model

PRESETS = {
    "nano":                dict(n=64, heads=2, kv=1, hd=32, layers=7, ff=96, mid=128, win=16, vocab=1536),
    "embeddinggemma-300m": dict(n=768, heads=3, kv=1, hd=256, layers=24, ff=1152, mid=3072, win=512, vocab=262144),
}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
MARK = "\u2581"                                        # a space inside tokens


def vocabulary(size):
    """tokens, scores, types"""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    types = [CONTROL, CONTROL, CONTROL, UNKNOWN, CONTROL]

    def add(texts, kind):
        tokens.extend(texts)
        types.extend([kind] * (len(tokens) - len(types)))
    add(("\n" * n for n in range(1, 32)), USER_DEFINED)
    add((" " * n for n in range(2, 32)), USER_DEFINED)
    add((f"<0x{b:02X}>" for b in range(256)), BYTE)
    special = len(tokens)
    chars = MARK + string.ascii_lowercase + string.ascii_uppercase + string.digits + string.punctuation
    add(chars, NORMAL)
    a = string.ascii_lowercase
    words = itertools.chain(("".join(t) for n in (2,) for t in itertools.product(a, repeat=n)), (MARK + c for c in a),
                            (MARK + "".join(t) for t in itertools.product(a, repeat=2)), ("".join(t) for t in itertools.product(a, repeat=3)),
                            (MARK + "".join(t) for t in itertools.product(a, repeat=3)), ("".join(t) for t in itertools.product(a, repeat=4)))
    add(itertools.islice(words, size - len(tokens)), NORMAL)
    assert len(tokens) == size
    scores = [-1000.0] * special + [float(-i) for i in range(size - special)]
    return tokens, scores, types


class Embedding(Model):
    def __init__(self, cfg, typ, seed):
        super().__init__(dict(cfg, pat=[(i + 1) % 6 != 0 for i in range(cfg["layers"])]), typ, seed)
        self.v_index = {i: i for i in range(cfg["layers"])}

    def metadata(self, name, template=None):
        c, w, a = self.c, self.w, "gemma-embedding."
        w.put("general.architecture", g.STR, "gemma-embedding")
        w.put("general.type", g.STR, "model")
        w.put("general.name", g.STR, f"synthetic {name}")
        w.put("general.file_type", g.U32, FILE_TYPE[self.typ])
        w.put("general.quantization_version", g.U32, 2)
        for key, value in (("context_length", 2048), ("embedding_length", c["n"]), ("block_count", c["layers"]), ("feed_forward_length", c["ff"]),
                           ("attention.head_count", c["heads"]), ("attention.head_count_kv", c["kv"]), ("attention.key_length", c["hd"]),
                           ("attention.value_length", c["hd"]), ("attention.sliding_window", c["win"]), ("pooling_type", 1),
                           ("dense_2_feat_in", c["n"]), ("dense_2_feat_out", c["mid"]), ("dense_3_feat_in", c["mid"]), ("dense_3_feat_out", c["n"])):
            w.put(a + key, g.U32, value)
        w.put(a + "attention.layer_norm_rms_epsilon", g.F32, 1e-6)
        w.put(a + "rope.freq_base", g.F32, 1e6)
        w.put(a + "rope.freq_base_swa", g.F32, 1e4)
        tokens, scores, types = vocabulary(c["vocab"])
        k = "tokenizer.ggml."
        w.put(k + "model", g.STR, "llama")
        w.put(k + "pre", g.STR, "default")
        w.put_array(k + "tokens", g.STR, tokens)
        w.put_array(k + "scores", g.F32, scores)
        w.put_array(k + "token_type", g.I32, types)
        for key, i in (("bos", 2), ("eos", 1), ("unknown", 3), ("padding", 0)):
            w.put(f"{k}{key}_token_id", g.U32, i)
        for key, flag in (("add_bos_token", True), ("add_eos_token", True), ("add_sep_token", False), ("add_space_prefix", False)):
            w.put(k + key, g.BOOL, flag)

    def build(self):
        c = self.c
        n, d = c["n"], c["hd"]
        self.matrix("token_embd.weight", [n, c["vocab"]], 1 / math.sqrt(n))
        self.vector("output_norm.weight", n)
        for i in range(c["layers"]):
            b = f"blk.{i}."
            for name in ("attn_norm", "ffn_norm"):
                self.vector(b + name + ".weight", n)
            for name in ("post_attention_norm", "post_ffw_norm"):
                self.vector(b + name + ".weight", n, 0.5)
            self.matrix(b + "attn_q.weight", [n, d * c["heads"]], layer=i)
            self.matrix(b + "attn_k.weight", [n, d * c["kv"]], layer=i)
            self.matrix(b + "attn_v.weight", [n, d * c["kv"]], layer=i)
            self.matrix(b + "attn_output.weight", [d * c["heads"], n], layer=i)
            self.vector(b + "attn_q_norm.weight", d, math.sqrt(2))   # scores of deviation 2
            self.vector(b + "attn_k_norm.weight", d, math.sqrt(2))
            self.matrix(b + "ffn_gate.weight", [n, c["ff"]], layer=i)
            self.matrix(b + "ffn_up.weight", [n, c["ff"]], layer=i)
            self.matrix(b + "ffn_down.weight", [c["ff"], n], layer=i)
        self.matrix("dense_2.weight", [n, c["mid"]])
        self.matrix("dense_3.weight", [c["mid"], n])


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("preset", choices=sorted(PRESETS))
    ap.add_argument("out")
    ap.add_argument("--type", default="f32", choices=sorted(t for t in FILE_TYPE if t[-2:] != "_m" and t != "mxfp4_moe"))
    ap.add_argument("--seed", default="1")
    ap.add_argument("--quiet", action="store_true")
    a = ap.parse_args(argv)
    m = Embedding(PRESETS[a.preset], a.type, a.seed)
    m.metadata(a.preset)
    m.build()
    m.w.save(a.out)
    if not a.quiet:
        total = sum(int(np.prod(ne, dtype=np.int64)) for _, _, ne, _ in m.w.tensors)
        print(f"{a.out}: {len(m.w.tensors)} tensors, {total / 1e6:.2f} M weights", file=sys.stderr)


if __name__ == "__main__":
    main()
