#!/usr/bin/env python3
"""Write the models that the tests run, from their seeds.

  make_test_models.py DIR [NAME...]

Takes names and arguments from tests/golden/synth/manifest.txt and checks every sha256. Models that
exist already with the right sum are kept. Other names:
  moe-like-early      tests/golden/moe-like/text.gguf in the layout of Ollama's first files
  nano-e-f32-split    nano-e-f32 in three parts: nano-e-f32-00001-of-00003.gguf ...
  NAME-whole          tests/golden/NAME in Ollama's layout, with its towers in the same file
  NAME-loud           tests/golden/NAME/text.gguf with ffn_up times 4096
  mmproj-wide         projectors/wide.gguf: one layer of the large vision tower, for tiny-e
"""
import argparse
import hashlib
import os

import gemma4_mmproj_synth
import gemma4_synth
import gguf_loud
import gguf_ollama
import gguf_split
import gguf_whole

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "golden")


def manifest():
    """-> {name: (sha256, synth arguments)}"""
    models, name = {}, None
    with open(os.path.join(GOLDEN, "synth", "manifest.txt"), encoding="utf-8") as f:
        for line in f:
            word, *rest = line.split() or [""]
            if word == "model":
                name, sum256 = rest[0], rest[1]
            elif word == "args":
                models[name] = (sum256, rest)
    return models


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def write(path, sum256, args):
    if os.path.exists(path) and sha256(path) == sum256:
        return
    gemma4_synth.main([args[0], path + ".tmp", *args[1:], "--quiet"])
    if sha256(path + ".tmp") != sum256:
        raise SystemExit(f"{path}.tmp: not the bytes that the manifest lists")
    os.replace(path + ".tmp", path)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dir")
    ap.add_argument("name", nargs="*")
    a = ap.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    models = manifest()
    loud = [f"{name}-loud" for name in ("e-like", "moe-like", "dense-like")]
    whole = ("e-like-whole", "moe-like-whole")
    extra = ["moe-like-early", "nano-e-f32-split", "nano-long", "mmproj-wide", *loud, *whole]
    for name in a.name or [*models, *extra]:
        path = os.path.join(a.dir, name)
        if name == "moe-like-early":
            gguf_ollama.main([os.path.join(GOLDEN, "moe-like", "text.gguf"), path + ".gguf", "--early"])
        elif name == "nano-e-f32-split":
            parts = os.path.join(a.dir, "nano-e-f32")
            write(parts + ".gguf", *models["nano-e-f32"])
            gguf_split.main([parts + ".gguf", parts, "3"])
        elif name == "nano-long":                      # for long contexts; no golden logits
            gemma4_synth.main(["nano-e", path + ".gguf", "--type", "q8_0", "--ctx", "32768", "--quiet"])
        elif name == "mmproj-wide":
            os.makedirs(os.path.join(a.dir, "projectors"), exist_ok=True) # a folder of its own: tests treat every file in DIR as a text model
            gemma4_mmproj_synth.main(["wide", os.path.join(a.dir, "projectors", "wide.gguf"), "--type", "q8_0", "--quiet"])
        elif name in whole:
            part = os.path.join(GOLDEN, name[:-6])
            gguf_ollama.main([os.path.join(part, "text.gguf"), path + ".tmp"])
            gguf_whole.main([path + ".tmp", os.path.join(part, "mmproj.gguf"), path + ".gguf"])
            os.remove(path + ".tmp")
        elif name in loud:
            gguf_loud.main([os.path.join(GOLDEN, name[:-5], "text.gguf"), path + ".gguf"])
        elif name in models:
            write(path + ".gguf", *models[name])
        else:
            raise SystemExit(f"no model is called {name}")


if __name__ == "__main__":
    main()
