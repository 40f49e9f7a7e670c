"""What the official class computes with Pebble Diffusion: make_diffusion_golden.py MODEL.gguf OUT.gguf

CPU, float32, the weights of MODEL.gguf; names as in tests/golden/diffusion. Only some rows of a canvas's logits
are kept (".rows"). "gen" is a whole story by the official `generate`, with its random numbers: "u" one per position and step, the token
drawn is the first whose cumulative probability reaches it. None of them is so close to a boundary that rounding could decide.
Shapes are row-major here; GGUF lists them reversed.
"""
import os
import sys

import numpy as np
import torch
from transformers.models.diffusion_gemma import generation_diffusion_gemma as official

import diffusion_data
import diffusion_export as X
import diffusion_model as M
import diffusion_official
import judge_story
import tokenizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gguf_io as g  # noqa: E402

ASK, ROWS, SEED, BORDER = "Write a story about a fox.", [45], 7, 1e-3


class Record:
    """records the random numbers of the official sampler"""

    def __init__(self, seed):
        self.r, self.got = np.random.default_rng(seed), {}
        self.canvas = None

    def add(self, name, x):
        self.got.setdefault(name, []).append(np.asarray(x))

    def multinomial(self, p, num_samples):
        p = p.double().numpy()
        sums = p.cumsum(1)
        while True:
            u = self.r.random(len(p)).astype(np.float32)
            near = np.abs(sums / sums[:, -1:] - u[:, None]).min(1) < BORDER * p.max(1)
            if not (near & (p.max(1) < 0.999)).any():
                break
        ids = (sums < u[:, None] * sums[:, -1:]).sum(1)
        self.add("u", u)
        self.add("sampled", ids.astype(np.int32))
        return torch.tensor(ids)[:, None]

    def random_canvas(self, sampler, batch_size, device):
        ids = self.r.integers(0, M.VOCAB, M.CANVAS)
        self.add("random" if self.stepping else "init", ids.astype(np.int32))
        return torch.tensor(ids)[None]

    def step(self, plain, model, **k):
        self.stepping = True
        self.add("step", np.array([k["cur_step"]], np.int32))
        self.add("canvas_in", k["current_canvas"][0].numpy().astype(np.int32))
        out = plain(model, **k)
        entropy = torch.distributions.Categorical(logits=out[2]).entropy()[0]
        self.add("entropy", entropy.numpy().astype(np.float32))
        self.add("accepted", k["sampler"].accepted_token_mask[0].numpy().astype(np.int32))
        self.add("argmax", out[1][0].numpy().astype(np.int32))
        self.add("canvas_out", out[0][0].numpy().astype(np.int32))
        self.add("stop", out[3].numpy().astype(np.int32))
        self.stepping = False
        return out


def generation(model, prompt, seed):
    rec = Record(seed)
    rec.stepping = False
    kept = torch.multinomial, official.EntropyBoundSampler.initialize_canvas, type(model)._denoising_step
    torch.multinomial = rec.multinomial
    official.EntropyBoundSampler.initialize_canvas = lambda sampler, batch_size, device: rec.random_canvas(sampler, batch_size, device)
    type(model)._denoising_step = lambda self, **k: rec.step(kept[2], self, **k)
    how = dict(X.SAMPLER, sampler_config=official.EntropyBoundSamplerConfig(entropy_bound=X.SAMPLER["sampler_config"]["entropy_bound"]))
    config = official.DiffusionGemmaGenerationConfig(**how, max_new_tokens=4 * M.CANVAS, eos_token_id=[1, 106, 50], pad_token_id=0)
    try:
        sequence = model.generate(torch.tensor([prompt]), generation_config=config).sequences[0]
    finally:
        torch.multinomial, official.EntropyBoundSampler.initialize_canvas, type(model)._denoising_step = kept
    rec.got["sequence"] = [sequence.numpy().astype(np.int32)]
    return rec.got


def main():
    path, out = sys.argv[1:3]
    torch.set_num_threads(2)
    t = tokenizer.Tokenizer(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json"))
    model, w = diffusion_official.load(path), g.Writer()
    w.put("general.architecture", g.STR, "golden")

    def put(name, x):
        x = np.ascontiguousarray(x)
        w.tensor(name, {"float32": "f32", "int32": "i32"}[str(x.dtype)], x.shape[::-1], lambda: [x.tobytes()])

    prompt = t.encode(diffusion_data.prompt_text({}, judge_story.prompt(ASK)))
    made = generation(model, prompt, SEED)
    put("prompt", np.array(prompt, np.int32))
    first = made["argmax"][[int(x[0]) for x in made["stop"]].index(1)]         # the first committed canvas
    r = np.random.default_rng(SEED + 1)
    canvas = [r.integers(0, M.VOCAB, M.CANVAS), np.where(r.random(M.CANVAS) < 0.5, first, r.integers(0, M.VOCAB, M.CANVAS)), r.integers(0, M.VOCAB, M.CANVAS)]
    as_ids = lambda x: torch.tensor(np.array([x]), dtype=torch.long)
    with torch.no_grad():
        z = [model(input_ids=as_ids(prompt), decoder_input_ids=as_ids(canvas[0])).logits]
        z.append(model(input_ids=as_ids(prompt), decoder_input_ids=as_ids(canvas[1]), self_conditioning_logits=z[0] / 0.8).logits)
        z.append(model(input_ids=as_ids(prompt + first.tolist()), decoder_input_ids=as_ids(canvas[2])).logits)
    for name, ids, logits in zip(("step0", "step1", "after_commit"), canvas, z):
        put(name + ".canvas", ids.astype(np.int32))
        put(name + ".rows", np.array(ROWS, np.int32))
        put(name + ".logits", logits[0, ROWS].numpy())
    put("commit.tokens", first)
    for name, x in made.items():
        put("gen." + name, np.concatenate(x))
    w.save(out)
    print(len(made["step"]), "steps over", len(made["init"]), "canvases:", repr(t.decode(made["sequence"][0][len(prompt):].tolist())))
    print(os.path.getsize(out), "bytes")


if __name__ == "__main__":
    main()
