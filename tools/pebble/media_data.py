"""Images of shapes and spoken phrases: contents, questions and answers."""
import json
import random

import words as w
from text_data import ex, held_out, join, an, cap

SHAPES = w.SPOKEN_SHAPES
COLORS = {"red": (222, 30, 35), "orange": (250, 135, 20), "yellow": (250, 220, 30), "green": (35, 160, 60),
          "blue": (35, 80, 215), "purple": (130, 45, 165), "pink": (250, 130, 180), "brown": (130, 80, 40),
          "black": (18, 18, 20), "white": (250, 250, 250), "gray": (130, 132, 135)}
BACKGROUNDS = {"white": (255, 255, 255), "black": (8, 8, 10), "gray": (200, 202, 204), "blue": (185, 215, 250),
               "green": (195, 235, 195), "yellow": (255, 246, 190), "pink": (255, 222, 232)}
PLACES = [["top left", "top", "top right"], ["left", "center", "right"], ["bottom left", "bottom", "bottom right"]]


def scene(r):
    """{"background": name, "objects": [{"shape", "color", "x", "y", "size", "turn", "place"}]}: x, y in 0..1, size in
    parts of the shorter side, in reading order; no two objects in one of the nine places"""
    n = r.choices([1, 2, 3, 4, 5], [30, 26, 22, 13, 9])[0]
    background = r.choices(list(BACKGROUNDS), [50, 8, 12, 8, 8, 7, 7])[0]
    cells = [4] if n == 1 and r.random() < 0.4 else sorted(r.sample(range(9), n))
    objects = []
    same = r.random() < 0.3                            # several of a kind, to be counted
    shape, color = r.choice(SHAPES), r.choice(list(COLORS))
    for cell in cells:
        while True:
            s = shape if same and r.random() < 0.6 else r.choice(SHAPES)
            c = color if same and r.random() < 0.4 else r.choice(list(COLORS))
            far = sum((a - b) ** 2 for a, b in zip(COLORS[c], BACKGROUNDS[background])) > 85 ** 2
            if c != background and far:
                break
            color = r.choice(list(COLORS))
        jitter = 0.05 if n > 1 else 0.07
        size = r.uniform(0.085, 0.125) if n > 1 else r.uniform(0.09, 0.16) if cell != 4 else r.uniform(0.1, 0.42)
        objects.append({"shape": s, "color": c, "x": (cell % 3 + 0.5) / 3 + r.uniform(-jitter, jitter),
                        "y": (cell // 3 + 0.5) / 3 + r.uniform(-jitter, jitter), "size": size,
                        "turn": r.uniform(-0.2, 0.2), "place": PLACES[cell // 3][cell % 3]})
    return {"background": background, "objects": objects}


def a_thing(o):
    return an(f"{o['color']} {o['shape']}")


def number(n, thing):
    return f"There is one {thing}." if n == 1 else f"There are {w.NUMBERS[n] if n else 'no'} {thing}s."


def at(o):
    return f"{a_thing(o)} in the {o['place']}"


def describe(objects):
    if len(objects) == 1:
        return f"I see {at(objects[0])}."
    return f"I see {w.NUMBERS[len(objects)]} shapes: {join([at(o) for o in objects])}."


def picture_question(r, sc):
    """-> kind, question, the one right answer"""
    objects = sc["objects"]
    shapes, colors = [o["shape"] for o in objects], [o["color"] for o in objects]
    pairs = [(o["color"], o["shape"]) for o in objects]
    kind = r.choices(["describe", "count", "count_shape", "count_color", "color", "shape", "where", "is_there", "background", "place", "json"],
                     [28, 12, 8, 6, 10, 8, 10, 8, 3, 4, 3])[0]
    if kind == "count":
        return kind, ex(r, "[How many shapes are there?|How many shapes do you see?|Count the shapes.|How many things are in the picture?]"), number(len(objects), "shape")
    if kind == "count_shape":
        s = r.choice(shapes) if r.random() < 0.75 else r.choice(SHAPES)
        return kind, ex(r, "[How many {s}s are there?|How many {s}s do you see?|Count the {s}s.]", s=s), number(shapes.count(s), s)
    if kind == "count_color":
        c = r.choice(colors) if r.random() < 0.75 else r.choice(list(COLORS))
        return kind, ex(r, "[How many {c} shapes are there?|How many {c} shapes do you see?|How many shapes are {c}?]", c=c), number(colors.count(c), c + " shape")
    if kind == "color":
        once = [o for o in objects if shapes.count(o["shape"]) == 1]
        if once:
            o = r.choice(once)
            return kind, ex(r, "[What color is the {s}?|Which color does the {s} have?|What is the color of the {s}?]", s=o["shape"]), f"The {o['shape']} is {o['color']}."
    if kind == "shape":
        once = [o for o in objects if colors.count(o["color"]) == 1]
        if once:
            o = r.choice(once)
            return kind, ex(r, "[What is the {c} shape?|What shape is {c}?|Which shape is {c}?]", c=o["color"]), f"The {o['color']} shape is {an(o['shape'])}."
    if kind == "where":
        once = [o for o in objects if pairs.count((o["color"], o["shape"])) == 1]
        if once:
            o = r.choice(once)
            return kind, ex(r, "[Where is the {c} {s}?|Where do you see the {c} {s}?]", c=o["color"], s=o["shape"]), f"The {o['color']} {o['shape']} is in the {o['place']}."
    if kind == "is_there":
        c, s = r.choice(pairs) if r.random() < 0.5 else (r.choice(colors + list(COLORS)), r.choice(shapes + SHAPES))
        ask = ex(r, "[Is there {a}?|Do you see {a}?|Is there {a} in the picture?]", a=an(f"{c} {s}"))
        return kind, ask, f"Yes, there is {an(f'{c} {s}')}." if (c, s) in pairs else f"No, there is no {c} {s}."
    if kind == "background":
        return kind, ex(r, "[What color is the background?|Which color does the background have?]"), f"The background is {sc['background']}."
    if kind == "place":
        o = r.choice(objects)
        return kind, ex(r, "[What is in the {p}?|What do you see in the {p}?]", p=o["place"]), cap(f"{a_thing(o)} is in the {o['place']}.")
    if kind == "json":
        return kind, ex(r, "[List the shapes as JSON.|Describe the picture as JSON.|Give me the shapes as JSON.]"), json.dumps([{"shape": o["shape"], "color": o["color"]} for o in objects])
    return "describe", ex(r, "[What is in the picture?|What do you see?|Describe the picture.|Describe this image.|What is this?|What can you see here?|What is in this image?|Tell me what you see.|Describe this picture, please.|]"), describe(objects)


def picture_thought(sc):
    return ", ".join(f"{o['color']} {o['shape']} {o['place']}" for o in sc["objects"]) + ". " + cap(w.NUMBERS[len(sc["objects"])]) + r_shapes(len(sc["objects"]))


def r_shapes(n):
    return " shape." if n == 1 else " shapes."


def picture_conversation(r, sc, rounds=None, think=None, kinds=None):
    """the first user turn holds <|image|>"""
    think = r.random() < 0.4 if think is None else think
    turns = []
    for k in range(rounds or r.choice([1, 1, 2, 3])):
        while True:
            kind, ask, answer = picture_question(r, sc)
            if (ask or k == 0) and (kinds is None or kind in kinds):
                break
        if k == 0:
            ask = "<|image|>" + ask if r.random() < 0.85 or not ask else ask + "<|image|>"
        steps = [("text", answer)]
        if think:
            steps.insert(0, ("thought", picture_thought(sc)))
        turns += [("user", ask), ("model", steps)]
    return {"system": None, "tools": [], "think": think, "turns": turns}


# ---- speech ------------------------------------------------------------------------------

PHRASES = ["turn the {thing} {onoff}", "turn {onoff} the {thing}", "open the {od}", "close the {od}", "play the music", "stop the music",
           "pause the music", "draw a {color} {shape}", "show the {color} {shape}", "find the {color} {shape}", "go {dir}", "go {dir} and stop",
           "call {digit} {digit} {digit}", "send help please", "hello and goodbye", "yes please", "no thanks", "next", "back", "louder please",
           "quieter please", "show my {color} {thing}", "draw a {shape} and a {shape}", "{digit} {color} {shape}", "start the radio", "go back {digit}",
           "turn {leftright}", "{digit} {digit} {digit}", "{digit} {digit} {digit} {digit}", "a {color} {shape}", "the {color} {thing}", "hello"]


def phrase(r, split="train"):
    while True:
        if r.random() < 0.5:
            words = [r.choice(w.SPOKEN) for _ in range(r.choice([1, 2, 3, 3, 4, 4, 5]))]
        else:
            words = r.choice(PHRASES).split()
            fill = {"{thing}": ["light", "lamp", "radio", "music"], "{onoff}": ["on", "off"], "{od}": ["door", "window"], "{color}": w.SPOKEN_COLORS,
                    "{shape}": w.SPOKEN_SHAPES, "{dir}": ["left", "right", "up", "down", "back"], "{digit}": w.DIGIT_WORDS, "{leftright}": ["left", "right"]}
            words = [r.choice(fill[x]) if x in fill else x for x in words]
        text = " ".join(words)
        if held_out("phrase", text) == (split == "test"):
            return text


def speech_conversation(r, text, think=None):
    think = r.random() < 0.35 if think is None else think
    ask = ex(r, "[Transcribe this.|Transcribe the audio.|What did I say?|Write down what you hear.|What do you hear?|Please transcribe.|What was said?|Transcribe this recording.|]")
    ask = "<|audio|>" + ask if r.random() < 0.85 or not ask else ask + "<|audio|>"
    steps = [("text", text)]
    if think:
        steps.insert(0, ("thought", "I listen and write down the words."))
    return {"system": None, "tools": [], "think": think, "turns": [("user", ask), ("model", steps)]}
