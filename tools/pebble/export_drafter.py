#!/usr/bin/env python3
"""From training to a file: export_drafter.py DRAFTER.npz TARGET.gguf OUT.gguf

Training has rounded the matrices to 4 bits already, so Q4_0 stores them as they are. The vocabulary is the target's.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gguf_io                                         # noqa: E402
import gguf_quantize                                   # noqa: E402

ARCH = "gemma4-assistant"
SAME = ("attention.head_count", "attention.layer_norm_rms_epsilon", "attention.key_length", "attention.key_length_swa",
        "attention.value_length", "attention.value_length_swa", "attention.sliding_window", "context_length",
        "rope.dimension_count", "rope.dimension_count_swa", "rope.freq_base", "rope.freq_base_swa")
NEXTN = ("pre_projection", "post_projection")          # in llama.cpp's names


def main(source, target, out):
    net, reader = np.load(source), gguf_io.Reader(target)
    names = [n for n in net.files if n != "kinds"]
    kinds = [str(k) for k in net["kinds"]]
    w, u32 = gguf_io.Writer(), gguf_io.U32
    w.put("general.architecture", gguf_io.STR, ARCH)
    w.put("general.type", gguf_io.STR, "model")
    w.put("general.name", gguf_io.STR, reader.kv["general.name"] + " drafter")
    for key in SAME:
        w.put(f"{ARCH}.{key}", *[reader.kv_types["gemma4." + key][0], reader.kv["gemma4." + key]])
    w.put(f"{ARCH}.block_count", u32, len(kinds))
    w.put(f"{ARCH}.nextn_predict_layers", u32, len(kinds))
    w.put(f"{ARCH}.attention.shared_kv_layers", u32, len(kinds))
    w.put(f"{ARCH}.attention.head_count_kv", u32, reader.kv["gemma4.attention.head_count_kv"])
    w.put(f"{ARCH}.embedding_length", u32, net["output_norm"].shape[0])
    w.put(f"{ARCH}.embedding_length_out", u32, reader.kv["gemma4.embedding_length"])
    w.put(f"{ARCH}.embedding_length_per_layer_input", u32, 0)
    w.put(f"{ARCH}.feed_forward_length", u32, net["blk.0.ffn_up"].shape[0])
    w.put_array(f"{ARCH}.attention.sliding_window_pattern", gguf_io.BOOL, [k == "sliding" for k in kinds])
    for key, value in reader.kv.items():
        if key.startswith("tokenizer."):
            w.kv.append((key, *reader.kv_types[key], value))
    w.copy_tensor(reader, "rope_freqs.weight")
    for n in names:
        x = np.ascontiguousarray(net[n], np.float32)
        name = ("nextn." if n in NEXTN else "") + n + ".weight"
        if x.ndim == 2:
            packed = gguf_quantize.quantize("q4_0", x)
            back = gguf_io.dequantize("q4_0", np.frombuffer(packed, np.uint8)).reshape(x.shape)
            assert np.abs(back - x).max() <= 1e-3 * np.abs(x).max(), f"{n} is not of 4 bits"
            w.tensor(name, "q4_0", x.shape[::-1], lambda b=packed: [b])
        else:
            w.tensor(name, "f32", x.shape, lambda b=x.tobytes(): [b])
    w.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
