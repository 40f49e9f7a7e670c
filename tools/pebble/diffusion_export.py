"""From training to a Hugging Face folder: diffusion_export.py WEIGHTS_FOLDER OUT_FOLDER

The folder has the text model only: the official class also needs a vision tower, diffusion_official.py supplies an empty one.
"""
import json
import os
import shutil
import sys

import torch
from safetensors.torch import save_file

import diffusion_model as M
import train_diffusion

SAMPLER = {"max_denoising_steps": 48, "t_min": 0.4, "t_max": 0.8, "stability_threshold": 1, "confidence_threshold": 0.005,
           "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1}}
LAYER = {"q": "self_attn.q_proj.weight", "k": "self_attn.k_proj.weight", "v": "self_attn.v_proj.weight", "o": "self_attn.o_proj.weight",
         "q_norm": "self_attn.q_norm.weight", "k_norm": "self_attn.k_norm.weight", "input_norm": "input_layernorm.weight",
         "post_attention": "post_attention_layernorm.weight", "pre_ffn": "pre_feedforward_layernorm.weight", "post_ffn": "post_feedforward_layernorm.weight",
         "post_ffn_1": "post_feedforward_layernorm_1.weight", "pre_ffn_2": "pre_feedforward_layernorm_2.weight", "post_ffn_2": "post_feedforward_layernorm_2.weight",
         "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight", "down": "mlp.down_proj.weight", "router": "router.proj.weight",
         "router_scale": "router.scale", "expert_scale": "router.per_expert_scale", "expert_in": "experts.gate_up_proj",
         "expert_out": "experts.down_proj", "canvas_scale": "layer_scalar"}
WHOLE = {"embed": "model.decoder.embed_tokens.weight", "out_norm": "model.decoder.norm.weight", "self_norm": "model.decoder.self_conditioning.pre_norm.weight",
         "self_gate": "model.decoder.self_conditioning.gate_proj.weight", "self_up": "model.decoder.self_conditioning.up_proj.weight",
         "self_down": "model.decoder.self_conditioning.down_proj.weight"}


def official_name(name):
    if name in WHOLE:
        return WHOLE[name]
    _, number, what = name.split(".")
    if what == "encoder_scale":
        return f"model.encoder.language_model.layers.{number}.layer_scalar"
    return f"model.decoder.layers.{number}.{LAYER[what]}"


def text_config():
    return dict(vocab_size=M.VOCAB, hidden_size=M.WIDTH, intermediate_size=M.FFN, num_hidden_layers=len(M.PATTERN), num_attention_heads=M.HEADS,
                num_key_value_heads=M.KV["sliding_attention"], num_global_key_value_heads=M.KV["full_attention"], head_dim=M.HEAD["sliding_attention"],
                global_head_dim=M.HEAD["full_attention"], sliding_window=M.WINDOW, layer_types=M.PATTERN, max_position_embeddings=M.CONTEXT,
                num_experts=M.EXPERTS, top_k_experts=M.USED, moe_intermediate_size=M.EXPERT_FFN, eos_token_id=[1, 106, 50])


def main():
    folder, out = sys.argv[1:3]
    net = train_diffusion.load(folder)
    os.makedirs(out, exist_ok=True)
    save_file({official_name(n): p.detach().clone().contiguous() for n, p in net.named_parameters()}, os.path.join(out, "model.safetensors"))
    text = dict(text_config(), model_type="diffusion_gemma_text", rms_norm_eps=M.EPS, final_logit_softcapping=M.CAP)
    write = lambda name, x: json.dump(x, open(os.path.join(out, name), "w"), indent=1)
    write("config.json", {"model_type": "diffusion_gemma", "architectures": ["DiffusionGemmaForBlockDiffusion"], "canvas_length": M.CANVAS, "text_config": text})
    write("generation_config.json", dict(SAMPLER, eos_token_id=[1, 106, 50], pad_token_id=0, bos_token_id=2))
    shutil.copy(os.path.join(train_diffusion.HERE, "tokenizer.json"), out)


if __name__ == "__main__":
    main()
