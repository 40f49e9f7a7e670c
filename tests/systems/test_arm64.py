#!/usr/bin/env python3
"""Which kernels the program for arm64 chooses on which processor, and that products with matrix instructions and with dot
products have the same bits. Under qemu.

    test_arm64.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

PROGRAM, MODELS = sys.argv[1:]
# A processor that qemu knows, the features of those that decide, and the kernels that are best.
PROCESSORS = (("max", {"dotprod", "i8mm"}, "i8mm"), ("neoverse-n1", {"dotprod"}, "dotprod"), ("cortex-a72", set(), "neon"))


def bezel(processor, *args):
    return subprocess.run(["qemu-aarch64", "-cpu", processor, PROGRAM, *args], capture_output=True, text=True, timeout=300)


def chosen(processor, features, kernels):
    got = json.loads(bezel(processor, "doctor", "--json").stdout)
    same(features & set(got["features"]), features, "the features")
    need(not ({"dotprod", "i8mm"} - features) & set(got["features"]), str(got["features"]))
    same(got["kernels"], kernels, "the best table")


def refused():
    r = bezel("neoverse-n1", "logits", os.path.join(MODELS, "tiny-e-q4_k_m.gguf"), "-t", "2,3", "-o", os.devnull, "--kernels", "i8mm")
    need(r.returncode != 0 and "This processor cannot run the kernels 'i8mm'" in r.stderr, r.stderr)


def same_bits(model):
    with tempfile.TemporaryDirectory() as d:
        found = {}
        for kernels in ("i8mm", "dotprod"):
            out = os.path.join(d, kernels)
            r = bezel("max", "logits", os.path.join(MODELS, model), "-t", ",".join(map(str, range(2, 25))), "--fast", "--kernels", kernels, "-o", out)
            same(r.returncode, 0, r.stderr)
            with open(out, "rb") as f:
                found[kernels] = f.read()
        need(len(found["i8mm"]) > 1000 and found["i8mm"] == found["dotprod"], f"{len(found['i8mm'])} bytes of logits")


def main():
    for processor, features, kernels in PROCESSORS:
        case(f"kernels on {processor}", chosen, processor, features, kernels)
    case("kernels that the processor lacks", refused)
    for model in ("tiny-e-q4_k_m.gguf", "tiny-dense-q3_k_m.gguf"):
        case(f"i8mm and dotprod, {model}", same_bits, model)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
