"""From training to a Hugging Face folder: export.py WEIGHTS_FOLDER OUT_FOLDER

Measures the range of every clipped product on new images and speech, sets its bounds a quarter wider (products
of the same input share them, as in Google's models) and saves model, tokenizer and processor settings.
"""
import glob
import json
import os
import random
import re
import shutil
import sys

import numpy as np
import torch

import draw
import media_data
import model as M
import speech
import train


def load(folder):
    t = train.encoder()
    model = M.create(t.ids)
    state = {}
    for f in sorted(glob.glob(os.path.join(folder, "weights*.pt"))):
        state.update(torch.load(f, map_location="cpu", weights_only=True))
    model.load_state_dict(state)
    return t, model.eval()


def calibrate(model, pictures=48, clips=96, seed=77):
    """bounds of the clipped products from measured values"""
    r = random.Random(seed)
    seen = {}

    def watch(name):
        def hook(_, args, out):
            x = args[0]
            low = torch.stack([x.min(), out.min()])
            high = torch.stack([x.max(), out.max()])
            if name in seen:
                low, high = torch.minimum(low, seen[name][0]), torch.maximum(high, seen[name][1])
            seen[name] = (low, high)
        return hook
    hooks = [x.register_forward_hook(watch(n)) for n, x in M.clippable(model)]
    torch.manual_seed(seed)
    with torch.no_grad():
        for k in range(pictures // 8):
            h, w = [(384, 384), (336, 432), (528, 288)][k % 3]
            M.image_soft(model, *draw.patches(draw.draw(draw.pack([media_data.scene(r) for _ in range(8)]), h, w)))
        filters, window = M.mel_tables("cpu")
        for k in range(clips):
            x = torch.tensor(speech.random_speech(r, media_data.phrase(r)))[None]
            x = x * r.uniform(0.1, 1.5) + torch.randn_like(x) * r.choice([0, 0.003, 0.02])
            f = M.log_mel(x, filters, window)
            M.audio_soft(model, f, torch.ones(f.shape[:2], dtype=torch.bool))
    for x in hooks:
        x.remove()
    groups = {}
    for n in seen:
        groups.setdefault(re.sub(r"\.(q|k|v)_proj$", ".qkv", re.sub(r"\.(gate|up)_proj$", ".gate_up", n)), []).append(n)
    modules = dict(M.clippable(model))
    for names in groups.values():
        low = torch.stack([seen[n][0] for n in names]).amin(0) * 1.25
        high = torch.stack([seen[n][1] for n in names]).amax(0) * 1.25
        for n in names:
            x = modules[n]
            x.input_min.fill_(low[0].clamp(max=-1e-3)), x.input_max.fill_(high[0].clamp(min=1e-3))
            x.output_min.fill_(low[1].clamp(max=-1e-3)), x.output_max.fill_(high[1].clamp(min=1e-3))
    return len(seen)


def main():
    folder, out = sys.argv[1:3]
    t, model = load(folder)
    print("clipped linears:", calibrate(model))
    model.save_pretrained(out)
    shutil.copy(os.path.join(train.HERE, "tokenizer.json"), out)
    write = lambda name, x: json.dump(x, open(os.path.join(out, name), "w"), indent=1)
    write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>", "eos_token": "<eos>",
                                    "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>", "clean_up_tokenization_spaces": False})
    write("generation_config.json", {"bos_token_id": 2, "eos_token_id": [1, 106, 50], "pad_token_id": 0, "do_sample": True,
                                     "temperature": 0.6, "top_k": 40, "top_p": 0.9})
    write("preprocessor_config.json", {"image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 70, "patch_size": 16, "pooling_kernel_size": 3})


if __name__ == "__main__":
    main()
