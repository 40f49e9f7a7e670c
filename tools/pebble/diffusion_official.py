"""The official DiffusionGemma class with Pebble Diffusion's weights.

  load(FILE.gguf) -> model                  with the weights of the file
  diffusion_official.py WEIGHTS_FOLDER      compares the trainer's pass with the official one
"""
import os
import sys

import numpy as np
import torch
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, Gemma4VisionConfig

import diffusion_export as X
import diffusion_model as M
import train_diffusion

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import convert      # noqa: E402
import gguf_io      # noqa: E402


def empty():
    vision = Gemma4VisionConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=32)
    cfg = DiffusionGemmaConfig(text_config=X.text_config(), vision_config=vision, canvas_length=M.CANVAS, boi_token_id=M.VOCAB - 7, image_token_id=M.VOCAB - 5, eoi_token_id=M.VOCAB - 3)
    return DiffusionGemmaForBlockDiffusion(cfg).eval()


def fill(model, state):
    """state: the trainer's names -> arrays"""
    own = model.state_dict()
    with torch.no_grad():
        for name, x in state.items():
            own[X.official_name(name)].copy_(torch.as_tensor(np.ascontiguousarray(x)).reshape(own[X.official_name(name)].shape))
    return model


def load(path):
    file, state = gguf_io.Reader(path), {}
    for name, _ in M.Net().named_parameters():
        state[name] = file.get(convert.gguf_name(X.official_name(name), False)[1]).astype(np.float32)
    return fill(empty(), state)


def compare(net, model, seed=3):
    """largest difference of the logits, without a step before and with one, over prompts beyond the window too"""
    g, worst = torch.Generator().manual_seed(seed), 0.0
    for n in (9, 300):
        ids, x = (torch.randint(M.VOCAB - 8, (1, k), generator=g) for k in (n, M.CANVAS))
        position, masks = M.layout(torch.tensor([n]), n, 1, "cpu")
        with torch.no_grad():
            ours, _ = net(ids, x, position, masks)
            theirs = model(input_ids=ids, decoder_input_ids=x).logits
            worst = max(worst, (ours - theirs).abs().max().item())
            again, _ = net(ids, x, position, masks, net.soft(ours, 0.8))
            theirs = model(input_ids=ids, decoder_input_ids=x, self_conditioning_logits=ours / 0.8).logits
            worst = max(worst, (again - theirs).abs().max().item())
    return worst


def main():
    net = train_diffusion.load(sys.argv[1])
    model = fill(empty(), {n: p.detach().numpy() for n, p in net.named_parameters()})
    print(f"largest difference of logits: {compare(net, model):.2e}")


if __name__ == "__main__":
    main()
