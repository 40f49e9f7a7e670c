"""What the official classes compute with Pebble: make_golden.py PEBBLE.gguf HF_FOLDER OUT.gguf

CPU, float32. For a text, an image and a spoken phrase: inputs, soft tokens, logits of the last rows with the weights
of PEBBLE.gguf (".logits") and with those before quantising (".logits_f32"), and the greedy answer.
Shapes are row-major here; GGUF lists them reversed.
"""
import os
import random
import sys

import numpy as np
import torch

import chat_format
import draw
import media_data as m
import model as M
import official
import speech
import train

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gguf_io as g  # noqa: E402

ROWS = 6                                               # logits kept: of the last rows


def main():
    path, folder, out = sys.argv[1:4]
    torch.set_num_threads(2)
    t, own = official.load(path)
    _, exact = official.load(folder)
    w = g.Writer()
    w.put("general.architecture", g.STR, "golden")

    def put(name, x):
        x = np.ascontiguousarray(x)
        kind = {"float32": "f32", "int32": "i32", "int16": "i16", "int8": "i8"}[str(x.dtype)]
        w.tensor(name, kind, x.shape[::-1], lambda: [x.tobytes()])

    def case(name, ids, media):
        put(f"{name}.tokens", np.array(ids, np.int32))
        with torch.no_grad():
            for model, what in ((own, "logits"), (exact, "logits_f32")):
                put(f"{name}.{what}", model(input_ids=torch.tensor([ids]), **media).logits[0, -ROWS:].numpy())
            got = own.generate(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), **media, max_new_tokens=48,
                               do_sample=False, eos_token_id=[1, 106, 50], pad_token_id=0)[0, len(ids):]
        put(f"{name}.greedy", got.numpy().astype(np.int32))
        print(name, len(ids), repr(t.decode(got.tolist())))

    conv = {"system": "You are a friendly chat partner.", "think": False, "turns": [("user", "Hello, my name is Nora."), ("model", [("text", "Hello, Nora!")]), ("user", "Tell me a story about a dragon in the library.")]}
    case("text", t.encode(chat_format.text(conv, True)), {})

    scene = {"background": "white", "objects": [
        {"shape": "circle", "color": "red", "x": 0.18, "y": 0.2, "size": 0.11, "turn": 0.0, "place": "top left"},
        {"shape": "star", "color": "blue", "x": 0.5, "y": 0.52, "size": 0.12, "turn": 0.1, "place": "center"},
        {"shape": "square", "color": "green", "x": 0.8, "y": 0.83, "size": 0.1, "turn": -0.1, "place": "bottom right"}]}
    image = torch.round(draw.draw(draw.pack([scene]), 384, 384, jitter=False) * 255)
    pixels, positions = draw.patches(image / 255)
    put("image.rgb", image[0].permute(1, 2, 0).numpy().astype(np.uint8).view(np.int8))          # bytes 0..255, 384 x 384 x 3: the size needs no resampling
    with torch.no_grad():
        put("image.soft", M.image_soft(own, pixels, positions)[0].numpy())
    ids = t.encode(chat_format.text({"think": False, "turns": [("user", "<|image|>What is in the picture?")]}, True))
    ids, _ = train.expand(ids, [False] * len(ids), t.ids["<|image|>"], t.ids["<|image>"], t.ids["<image|>"], 64)
    case("image", ids, {"pixel_values": pixels, "image_position_ids": positions})

    from transformers import Gemma4AudioFeatureExtractor
    wave = speech.synthesize("turn the blue light off", "gmw/en-US+f3", 160, 55, 50)
    wave = (np.clip(wave, -1, 1) * 32767).astype(np.int16)
    f = Gemma4AudioFeatureExtractor()([wave.astype(np.float32) / 32768], return_tensors="pt")
    live = int(f["input_features_mask"].sum())
    put("audio.samples", wave)                         # 16 kHz, to be divided by 32768
    put("audio.features", f["input_features"][0, :live].numpy())
    with torch.no_grad():
        soft, mask = M.audio_soft(own, f["input_features"], f["input_features_mask"])
        put("audio.soft", soft[0][mask[0]].numpy())
    ids = t.encode(chat_format.text({"think": False, "turns": [("user", "<|audio|>Transcribe this.")]}, True))
    ids, _ = train.expand(ids, [False] * len(ids), t.ids["<|audio|>"], t.ids["<|audio>"], t.ids["<audio|>"], M.audio_tokens(len(wave)))
    case("audio", ids, {"input_features": f["input_features"], "input_features_mask": f["input_features_mask"]})
    w.save(out)
    print(os.path.getsize(out))


if __name__ == "__main__":
    main()
