"""The official class with the weights of a GGUF file (Ollama's layout) or of a Hugging Face folder."""
import os
import sys

import numpy as np
import torch

import model as M
import train

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import convert      # noqa: E402
import gguf_io      # noqa: E402


def load(path):
    t = train.encoder()
    if os.path.isdir(path):
        from transformers import Gemma4ForConditionalGeneration
        return t, Gemma4ForConditionalGeneration.from_pretrained(path, dtype=torch.float32).eval()
    model, file = M.create(t.ids), gguf_io.Reader(path)
    state = model.state_dict()
    for name, old in state.items():
        _, new = convert.gguf_name(name, True)
        if new == "output.weight":
            new = "token_embd.weight"
        if new not in file.tensors:
            raise SystemExit(f"{name}: {new} is not in {path}")
        x = file.get(new).astype(np.float32)
        if new == "v.patch_embd.weight":
            x = x.transpose(0, 2, 3, 1)
        if new.endswith("per_dim_scale.weight"):
            x = np.log(np.expm1(x))
        state[name] = torch.tensor(np.ascontiguousarray(x)).reshape(old.shape)
    model.load_state_dict(state)
    return t, model.eval()
