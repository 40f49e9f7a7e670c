"""Pebble: the official Gemma 4 classes with small sizes, and the inputs they take, made on the GPU."""
import math

import torch
import torch.nn.functional as F
from transformers import Gemma4AudioConfig, Gemma4Config, Gemma4ForConditionalGeneration, Gemma4TextConfig, Gemma4VisionConfig
from transformers.models.gemma4 import modeling_gemma4 as g4

VOCAB, WINDOW, CONTEXT = 4096, 256, 2048
SLIDING, FULL = "sliding_attention", "full_attention"


def config(ids):
    """ids: token text -> id"""
    text = Gemma4TextConfig(
        vocab_size=VOCAB, vocab_size_per_layer_input=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=8,
        num_attention_heads=4, num_key_value_heads=1, head_dim=64, global_head_dim=128, sliding_window=WINDOW,
        layer_types=[SLIDING, SLIDING, SLIDING, FULL] * 2, num_kv_shared_layers=4, use_double_wide_mlp=True,
        hidden_size_per_layer_input=32, final_logit_softcapping=30.0, max_position_embeddings=CONTEXT,
        pad_token_id=0, eos_token_id=[1, 106, 50], bos_token_id=2, tie_word_embeddings=True)
    vision = Gemma4VisionConfig(hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
                                num_key_value_heads=4, head_dim=32, position_embedding_size=512, use_clipped_linears=True)
    audio = Gemma4AudioConfig(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, output_proj_dims=256)
    return Gemma4Config(text_config=text, vision_config=vision, audio_config=audio, boi_token_id=ids["<|image>"],
                        eoi_token_id=ids["<image|>"], image_token_id=ids["<|image|>"], video_token_id=ids["<|video|>"],
                        boa_token_id=ids["<|audio>"], eoa_token_index=ids["<audio|>"], audio_token_id=ids["<|audio|>"])


def create(ids, seed=1):
    torch.manual_seed(seed)
    cfg = config(ids)
    cfg._attn_implementation = "sdpa"
    model = Gemma4ForConditionalGeneration(cfg)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "k_norm" in name:
                p.fill_(1 / math.sqrt(p.numel()))      # the attention scale is 1: scores start with deviation 1
            elif "position_embedding_table" in name:
                p.normal_(0, 0.3)
            elif "depthwise_conv1d" in name:
                p.normal_(0, 1 / math.sqrt(5))
            elif ".conv.weight" in name:
                p.normal_(0, 1 / math.sqrt(p[0].numel()))
            elif "embed_tokens.weight" in name:
                p.normal_(0, 0.04)
            elif "embed_tokens_per_layer" in name:
                p.normal_(0, 0.1)
            elif p.dim() == 2:
                p.normal_(0, 1 / math.sqrt(p.shape[1]))
            if "post_attention_layernorm" in name or "post_feedforward_layernorm" in name or "post_per_layer" in name or \
               "norm_post_attn" in name or "post_layer_norm" in name:
                p.fill_(0.5)
    return model


def log_mel(waves, filters, window):
    """waves (n, samples) -> the official extractor's features (n, frames, 128)"""
    x = F.pad(waves.float(), (160, 0)).unfold(1, 321, 160)[..., :320] * window
    return torch.log(torch.fft.rfft(x, n=512).abs() @ filters + 1e-3)


def mel_tables(device):
    from transformers import Gemma4AudioFeatureExtractor
    e = Gemma4AudioFeatureExtractor()
    return (torch.tensor(e.mel_filters, dtype=torch.float32, device=device), torch.tensor(e.window, dtype=torch.float32, device=device))


def audio_tokens(samples):
    """number of soft tokens of a clip with this many samples"""
    frames = max((samples - 1) // 160, 0)
    return -(-frames // 4)


_masks = {}


def causal_masks(n, device):
    if n <= WINDOW:
        return {FULL: None, SLIDING: None}
    if (n, device) not in _masks:
        i = torch.arange(n, device=device)
        d = i[:, None] - i[None, :]
        _masks[n, device] = ((d >= 0) & (d < WINDOW))[None, None]
    return {FULL: None, SLIDING: _masks[n, device]}


def fast_norms():
    """the official RMS norm through torch's fused kernel: the same function in fewer steps"""
    def forward(self, x):
        w = self.weight.float() if self.with_scale else None
        return F.rms_norm(x.float(), (x.shape[-1],), w, self.eps).type_as(x)
    g4.Gemma4RMSNorm.forward = forward


def hidden_states(model, ids, soft=None, where=None):
    """The official model's path for one batch padded on the right, without a cache; soft (k, width) go to the flat
    positions `where`. Attention is causal and padding stands right of everything, so that no padding mask is needed.
    Does not synchronise with the GPU."""
    lm = model.model.language_model
    plain = ids if soft is None else ids.flatten().index_fill(0, where, 0).view_as(ids)
    x = lm.embed_tokens(plain)
    per_layer = lm.get_per_layer_inputs(plain, None)
    if soft is not None:
        x = x.flatten(0, 1).index_copy(0, where, soft.to(x.dtype)).view_as(x)
    return lm(inputs_embeds=x, per_layer_inputs=per_layer, attention_mask=causal_masks(ids.shape[1], ids.device), use_cache=False).last_hidden_state


def logits(model, h):
    z = model.lm_head(h).float()
    return torch.tanh(z / 30) * 30


def image_soft(model, pixels, positions):
    """images of one size, without padding -> (n, tokens, width)"""
    m, n = model.model, pixels.shape[1] // 9
    none = torch.zeros(pixels.shape[:2], dtype=torch.bool, device=pixels.device)
    x = m.vision_tower.patch_embedder(pixels, positions, none)
    x = m.vision_tower.encoder(inputs_embeds=x, attention_mask=None, pixel_position_ids=positions).last_hidden_state
    x, _ = m.vision_tower.pooler(hidden_states=x, pixel_position_ids=positions, padding_positions=none, output_length=n)
    return m.embed_vision(inputs_embeds=x)


def audio_soft(model, features, mask):
    """-> (n, tokens, width) and which of them are real"""
    m = model.model
    out = m.audio_tower(features, mask, return_dict=True)
    return m.embed_audio(inputs_embeds=out.last_hidden_state), out.attention_mask


def clippable(model):
    return [(n, x) for n, x in model.named_modules() if isinstance(x, g4.Gemma4ClippableLinear)]


def count(model):
    groups = {}
    for n, p in model.named_parameters():
        k = "vision" if "vision" in n else "audio" if "audio" in n else "embeddings" if "embed_tokens" in n else "text"
        groups[k] = groups.get(k, 0) + p.numel()
    return groups
