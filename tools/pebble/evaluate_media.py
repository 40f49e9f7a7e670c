"""Scores pictures and speech with the official classes: evaluate_media.py MODEL [PICTURES CLIPS OUT.json]

MODEL: GGUF in Ollama's layout (its quantised weights are what is scored) or a Hugging Face folder. Pictures are drawn by
Pillow, another hand than the one that drew for training, in many sizes and go through the official processor; speech is
spoken by voices and in phrases that training never heard and goes through the official feature extractor.
An answer counts when it is, word for word, the right one.
"""
import json
import math
import random
import sys

import numpy as np
import torch
from PIL import Image, ImageDraw
from transformers import Gemma4AudioFeatureExtractor
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

import chat_format
import media_data as m
import model as M
import official
import speech
import train


def polygon(kind, x, y, s, turn):
    if kind == "square":
        p = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        p = [(a * 0.8, b * 0.8) for a, b in p]
    elif kind == "diamond":
        p = [(0, -1), (0.66, 0), (0, 1), (-0.66, 0)]
    elif kind == "triangle":
        p = [(0, -1), (0.87, 0.5), (-0.87, 0.5)]
    elif kind == "star":
        p = [((1 if k % 2 == 0 else 0.42) * math.sin(k * math.pi / 5), -(1 if k % 2 == 0 else 0.42) * math.cos(k * math.pi / 5)) for k in range(10)]
    else:                                              # heart, the well-known curve
        p = []
        for k in range(60):
            t = k * math.pi / 30
            p.append((16 * math.sin(t) ** 3 / 17, -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 17))
    c, n = math.cos(turn), math.sin(turn)
    return [(x + s * (a * c - b * n), y + s * (a * n + b * c)) for a, b in p]


def paint(scene, width, height, r):
    big = Image.new("RGB", (width * 2, height * 2), m.BACKGROUNDS[scene["background"]])
    pen = ImageDraw.Draw(big)
    for o in scene["objects"]:
        x, y, s = o["x"] * width * 2, o["y"] * height * 2, o["size"] * min(width, height) * 2
        color = tuple(min(255, max(0, c + r.randint(-8, 8))) for c in m.COLORS[o["color"]])
        if o["shape"] == "circle":
            pen.ellipse([x - s, y - s, x + s, y + s], fill=color)
        else:
            pen.polygon(polygon(o["shape"], x, y, s, o["turn"]), fill=color)
    return big.resize((width, height), Image.BILINEAR)


def right(model, ids, learn, **media):
    """are all tokens of the model the likeliest ones? then greedy decoding says exactly this"""
    with torch.no_grad():
        z = model(input_ids=torch.tensor([ids]), **media).logits[0]
    want = torch.tensor(learn[1:])
    return bool((z[:-1].argmax(-1)[want] == torch.tensor(ids[1:])[want]).all())


def greedy(model, t, ids, media, most=40):
    with torch.no_grad():
        out = model.generate(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), **media,
                             max_new_tokens=most, do_sample=False, eos_token_id=[1, 106, 50], pad_token_id=0)[0].tolist()
    return out[:-1] if out[-1] in (1, 106, 50) else out


def pictures(model, t, n, budget, seed="pictures"):
    r = random.Random(f"{seed} {budget}")
    proc = Gemma4ImageProcessorPil(max_soft_tokens=budget)
    score, wrong = {}, []
    for _ in range(n):
        sc = m.scene(r)
        w = r.randint(160, 800)
        h = min(800, max(160, int(w * r.choice([1, 1, 1, 0.75, 1.33, 0.6, 1.6]))))
        f = proc(images=[np.asarray(paint(sc, w, h, r))], return_tensors="pt")
        conv = m.picture_conversation(r, sc, rounds=1, think=r.random() < 0.5)
        segs = chat_format.segments(conv)
        ids, learn = train.expand(*t.encode_segments(segs), t.ids["<|image|>"], t.ids["<|image>"], t.ids["<image|>"], int(f["num_soft_tokens_per_image"][0]))
        media = {"pixel_values": f["pixel_values"], "image_position_ids": f["image_position_ids"]}
        ok = right(model, ids, learn, **media)
        answer = conv["turns"][1][1][-1][1]
        if not ok and conv["think"]:                   # another thought may still lead to the right answer
            start = ids[:learn.index(True)]
            ok = t.decode(greedy(model, t, start, media, 90)[len(start):]).split("<channel|>")[-1].strip() == answer
        kind = "count" if answer.startswith("There") else "describe" if answer.startswith("I see") else "is it there" if answer.startswith(("Yes", "No")) else \
            "where" if " is in the " in answer else "json" if answer.startswith("[") else "color or shape"
        s = score.setdefault(kind, [0, 0])
        s[0] += ok
        s[1] += 1
        if not ok:
            wrong.append(answer)
    return score, wrong


def clips(model, t, n, new_voices, seed="speech"):
    """words right, words, sentences right: errors count insertions, deletions and substitutions"""
    r = random.Random(f"{seed} {new_voices}")
    ear = Gemma4AudioFeatureExtractor()
    words = errors = whole = 0
    wrong = []
    noise = np.random.RandomState(3)
    for _ in range(n):
        text = m.phrase(r, "test")
        x = speech.random_speech(r, text, new_voices)
        x = x / np.abs(x).max() * r.uniform(0.1, 0.9)
        if r.random() < 0.6:
            x = x + noise.randn(len(x)) * np.sqrt((x ** 2).mean()) * 10 ** (-r.uniform(10, 35) / 20)
        x = np.concatenate([np.zeros(r.randint(0, 4000)), x, np.zeros(r.randint(0, 1600))]).astype(np.float32)
        f = ear([x], return_tensors="pt")
        count = M.audio_tokens(len(x))
        conv = m.speech_conversation(r, text, think=False)
        ids, learn = train.expand(*t.encode_segments(chat_format.segments(conv)), t.ids["<|audio|>"], t.ids["<|audio>"], t.ids["<audio|>"], count)
        media = {"input_features": f["input_features"], "input_features_mask": f["input_features_mask"]}
        want = text.split()
        words += len(want)
        if right(model, ids, learn, **media):
            whole += 1
            continue
        start = ids[:learn.index(True)]
        got = t.decode(greedy(model, t, start, media)[len(start):]).split()
        d = list(range(len(got) + 1))
        for i, a in enumerate(want):
            p, d[0] = d[0], i + 1
            for j, b in enumerate(got):
                p, d[j + 1] = d[j + 1], min(d[j + 1] + 1, d[j] + 1, p + (a != b))
        errors += d[-1]
        wrong.append((text, " ".join(got)))
    return {"words": words, "errors": errors, "phrases": n, "whole": whole}, wrong


def main():
    torch.set_num_threads(2)
    path = sys.argv[1]
    n_pictures, n_clips = (int(x) for x in (sys.argv[2:4] or (300, 200)))
    t, model = official.load(path)
    out = {}
    for budget in (70, 280):
        score, wrong = pictures(model, t, n_pictures if budget == 70 else n_pictures // 3, budget)
        good, all_ = (sum(x[k] for x in score.values()) for k in (0, 1))
        print(f"pictures, budget {budget}: {good} of {all_} answers right, {100 * good / all_:.1f} %;", ", ".join(f"{k} {a}/{b}" for k, (a, b) in sorted(score.items())), flush=True)
        out[f"pictures {budget}"] = {"score": score, "wrong": wrong}
    for new in (False, True):
        s, wrong = clips(model, t, n_clips, new)
        print(f"speech, {'new' if new else 'known'} voices, new phrases: word accuracy {100 * (1 - s['errors'] / s['words']):.1f} %, {s['whole']} of {s['phrases']} phrases whole", flush=True)
        out[f"speech {'new' if new else 'known'} voices"] = {"score": s, "wrong": wrong}
    if len(sys.argv) > 4:
        json.dump(out, open(sys.argv[4], "w"), indent=1)


if __name__ == "__main__":
    main()
