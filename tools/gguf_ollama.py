#!/usr/bin/env python3
"""Turn a Gemma 4 text model in llama.cpp's layout into Ollama's.

  gguf_ollama.py IN.gguf OUT.gguf [--early]

Values do not change: keys and tensors are sorted, the tokenizer has Ollama's keys, the table of
per-layer embeddings is BF16. --early splits the fused gate/up experts and uses the old name of the
per-expert scale, as the first published files did. Vision and audio tensors are not added; the
layout is recognized by tokenizer.ggml.model = llama.
"""
import argparse
import re

import numpy as np
import gguf_io as g

NORMAL, CONTROL = 1, 3


def relayout(w, keep_types=False):
    """rewrite the Writer w in place; keep_types: do not convert the table of per-layer embeddings"""
    kv = {key: (vtype, etype, value) for key, vtype, etype, value in w.kv}
    t = "tokenizer.ggml."
    tokens, types = kv[t + "tokens"][2], kv[t + "token_type"][2]
    special = lambda i: types[i] in (2, CONTROL, 4)
    for key in ("general.type", "general.name", "tokenizer.chat_template", t + "add_space_prefix"):
        kv.pop(key, None)
    kv[t + "model"] = (g.STR, None, "llama")
    kv[t + "pre"] = (g.STR, None, "gemma4")
    kv[t + "scores"] = (g.ARR, g.F32, [float(i) for i in range(len(tokens))])
    kv[t + "token_type"] = (g.ARR, g.I32, [CONTROL if special(i) else NORMAL for i in range(len(tokens))])
    ends = [tokens.index(x) for x in ("<eos>", "<turn|>", "<|tool_response>") if x in tokens]
    kv[t + "eos_token_ids"] = (g.ARR, g.I32, ends)
    for what in ("bos", "eos", "unknown", "padding", "mask"):
        kv[f"{t}add_{what}_token"] = (g.BOOL, None, False)
    if kv["general.file_type"][2] not in (0, 1, 32):   # the value that Ollama's quantizer writes
        n = sum(int(np.prod(ne, dtype=np.int64)) for _, _, ne, _ in w.tensors)
        kv["general.parameter_count"] = (g.U64, None, n)
    w.kv = [(key, *kv[key]) for key in sorted(kv)]

    if not keep_types:
        w.tensors = [to_bf16(x) if x[0].startswith("per_layer_token_embd") else x for x in w.tensors]
    block = lambda name: int((re.search(r"blk\.(\d+)\.", name) or [0, -1])[1])
    w.tensors.sort(key=lambda x: (block(x[0]), x[0]))


def to_bf16(tensor):
    name, typ, ne, chunks = tensor
    if typ == "bf16":
        return tensor

    def converted():
        for c in chunks():
            x = g.dequantize(typ, np.frombuffer(c, np.uint8))
            y = g.to_bf16(x)
            if not np.array_equal(g.dequantize("bf16", y.view(np.uint8)), x):
                raise SystemExit(f"{name}: values are not exact in BF16")
            yield y.tobytes()
    return name, "bf16", ne, converted


def early_experts(w):
    """split blk.N.ffn_gate_up_exps, rename blk.N.ffn_down_exps.scale"""
    out = []
    for name, typ, ne, chunks in w.tensors:
        if name.endswith("ffn_down_exps.scale"):
            name = name.replace("ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale")
        if not name.endswith("ffn_gate_up_exps.weight"):
            out.append((name, typ, ne, chunks))
            continue
        for half, new in enumerate(("ffn_gate_exps", "ffn_up_exps")):
            def part(half=half, chunks=chunks, experts=ne[2]):
                whole = np.frombuffer(b"".join(chunks()), np.uint8).reshape(experts, 2, -1)
                yield whole[:, half].tobytes()
            out.append((name.replace("ffn_gate_up_exps", new), typ, [ne[0], ne[1] // 2, ne[2]], part))
    w.tensors = out


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("input")
    ap.add_argument("out")
    ap.add_argument("--early", action="store_true")
    a = ap.parse_args(argv)
    r, w = g.Reader(a.input), g.Writer()
    w.copy_metadata(r)
    for name in r.tensors:
        w.copy_tensor(r, name)
    if a.early:
        early_experts(w)
    relayout(w)
    w.save(a.out)


if __name__ == "__main__":
    main()
