#!/usr/bin/env python3
"""Writes nano.gguf and tiny.gguf: the vocabularies of the synthetic models of the same
names (tools/gemma4_synth.py), the keys that a tokenizer reads and nothing else."""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "..", "tools"))
import gemma4_vocab
import gguf_io as g

for name, size in (("nano", 640), ("tiny", 2560)):
    tokens, types, merges = gemma4_vocab.build(size)
    w, k = g.Writer(), "tokenizer.ggml."
    w.put("general.architecture", g.STR, "gemma4")
    w.put(k + "model", g.STR, "gemma4")
    w.put_array(k + "tokens", g.STR, tokens)
    w.put_array(k + "token_type", g.I32, types)
    w.put_array(k + "merges", g.STR, merges)
    for key, i in (("bos", 2), ("eos", 1), ("unknown", 3), ("padding", 0), ("mask", 4)):
        w.put(f"{k}{key}_token_id", g.U32, i)
    w.save(os.path.join(here, f"{name}.gguf"))
