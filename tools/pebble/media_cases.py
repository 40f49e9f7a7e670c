"""Test cases of images and speech, for the official classes and for the engine.

Images are drawn by Pillow, not by the program that draws for training, in many sizes; spoken phrases are not in the training
data, voices are or are not.
"""
import math
import random

import numpy as np
from PIL import Image, ImageDraw

import media_data as m
import speech


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
    else:                                              # heart
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


def pictures(n, budget, seed="pictures"):
    """-> (picture, conversation) each"""
    r = random.Random(f"{seed} {budget}")
    for _ in range(n):
        sc = m.scene(r)
        w = r.randint(160, 800)
        h = min(800, max(160, int(w * r.choice([1, 1, 1, 0.75, 1.33, 0.6, 1.6]))))
        picture = np.asarray(paint(sc, w, h, r))
        yield picture, m.picture_conversation(r, sc, rounds=1, think=r.random() < 0.5)


def kind_of(answer):
    return "count" if answer.startswith("There") else "describe" if answer.startswith("I see") else "is it there" if answer.startswith(("Yes", "No")) else \
        "where" if " is in the " in answer else "json" if answer.startswith("[") else "color or shape"


def clips(n, new_voices, seed="speech"):
    """-> (samples at 16 kHz, phrase, conversation) each"""
    r = random.Random(f"{seed} {new_voices}")
    noise = np.random.RandomState(3)
    for _ in range(n):
        text = m.phrase(r, "test")
        x = speech.random_speech(r, text, new_voices)
        x = x / np.abs(x).max() * r.uniform(0.1, 0.9)
        if r.random() < 0.6:
            x = x + noise.randn(len(x)) * np.sqrt((x ** 2).mean()) * 10 ** (-r.uniform(10, 35) / 20)
        x = np.concatenate([np.zeros(r.randint(0, 4000)), x, np.zeros(r.randint(0, 1600))]).astype(np.float32)
        yield x, text, m.speech_conversation(r, text, think=False)


def word_errors(want, got):
    """insertions, deletions and substitutions between two lists of words"""
    d = list(range(len(got) + 1))
    for i, a in enumerate(want):
        p, d[0] = d[0], i + 1
        for j, b in enumerate(got):
            p, d[j + 1] = d[j + 1], min(d[j + 1] + 1, d[j] + 1, p + (a != b))
    return d[-1]
