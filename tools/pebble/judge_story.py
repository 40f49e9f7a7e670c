"""Scores stories.

  told(text, want, ended)   evaluate_text.py's test: an end, at least 20 words, everything that was requested
  perfect(text)             text_data.py's grammar can produce the whole story: its sentences in order, one hero,
                            one friend, one object, the same pronouns throughout

  judge_story.py BEZEL MODEL [N] [--device gpu]: both, over N held-out requests, and the steps per canvas
"""
import argparse
import collections
import functools
import json
import os
import random
import re
import subprocess
import tempfile

import chat_format
import diffusion_data
import text_data as d
import tokenizer
import words as w

ENDS = (1, 50, 106)


def request(r):
    """-> a held-out request for a story, the words that must be in it"""
    while True:
        ask = d.story_request(r, "test")[0]
        subject = re.search(r"story about an? (.*?)( with| and| in the| near the| named| called|[.!?,]|$)", ask)
        if subject:
            break
    place = re.search(r"(?:in|near) the (.*?)(?:, please)?[.!?]?$", ask)
    who = re.search(r"(?:named|called) (\w+)", ask)
    want = [subject.group(1)] + ([place.group(1)] if place else []) + ([who.group(1)] if who else [])
    return ask, [x for x in want if x]


def prompt(ask):
    return chat_format.text({"turns": [("user", ask)]}, True)


def told(text, want, ended):
    return ended and len(text.split()) >= 20 and all(x.lower() in text.lower() for x in want)


# ---- the grammar as regular expressions ---------------------------------------------------------

NAME, WORD = r"[A-Z][A-Za-z]*", r"[a-z][a-z -]*?"
FREE = {"N": NAME, "F": NAME, "adj": r"[a-z]+", "kind": WORD, "friend": WORD, "place": r"[a-z' -]+?", "place2": r"[a-z' -]+?",
        "thing": WORD, "food": WORD, "game": r"[a-z' -]+?"}
SETS = {"machine": d.MACHINES, "noise": ["tap, tap, tap", "boom", "scratch, scratch", "creak", "hoo, hoo"],
        "moral": list(w.MORALS), "fear": list(w.FEARS), "lesson": list(w.FEARS.values())}


def pattern(parts, pronouns):
    """template -> regular expression; a slot's first place binds it, later ones repeat it"""
    bound, out = set(), []

    def slot(name):
        if name in ("akind", "afriend", "athing"):
            return "an? " + (slot("adj") + " " + slot("kind") if name == "akind" else slot(name[1:]))
        if name.lower() in pronouns:
            x = pronouns[name.lower()]
            return d.cap(x) if name[0].isupper() else x
        if name in bound:
            return f"(?P={name})"
        bound.add(name)
        inside = "|".join(map(re.escape, SETS[name])) if name in SETS else FREE[name]
        return f"(?P<{name}>{inside})"

    def one(text):
        got = []
        for x in re.split(r"(\{\w+\}|\[[^\[\]]*\])", text):
            if x.startswith("{"):
                got.append(slot(x[1:-1]))
            elif x.startswith("["):
                got.append("(?:" + "|".join(map(re.escape, x[1:-1].split("|"))) + ")")
            else:
                got.append(re.escape(x))
        return "".join(got)
    for x in parts:
        if isinstance(x, list):                        # one of several, or nothing where "" is among them
            some = [one(y) for y in x if y]
            out.append("(?:" + r"\s+" + "(?:" + "|".join(some) + "))" + ("?" if "" in x else ""))
        else:
            out.append((r"\s+" if out else "") + one(x))
    return "".join(out)


@functools.cache
def grammar():
    made = []
    for plot, body in d.PLOTS.items():
        for opening in d.OPENINGS:
            for they, them, their in (("she", "her", "her"), ("he", "him", "his")):
                p = {"they": they, "them": them, "their": their}
                short = body if plot in ("sound", "wish") else body[:1] + body[-2:]
                ends = [x for x in d.ENDINGS]
                made.append(re.compile(pattern([opening, d.MOODS] + body + [ends], p)))
                made.append(re.compile(pattern([opening] + short + [ends], p)))
    return made


def perfect(text):
    return any(x.fullmatch(text.strip()) for x in grammar())


# ---- with the engine ------------------------------------------------------------------------

def write(bezel, model, tok, ask, seed, more):
    """-> text, whether it ended, steps of each canvas; as `bezel run --seed --no-think` writes it"""
    ids = tok.encode(diffusion_data.prompt_text({}, prompt(ask)))
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:
        cmd = [bezel, "diffuse", model, "-t", ",".join(map(str, ids)), "--seed", str(seed), "-n", "256", "--fast", "--trace", f.name, *more]
        got = subprocess.run(cmd, capture_output=True, text=True, check=True)
        steps = collections.Counter(json.loads(x)["canvas"] for x in f)
    said = [int(x) for x in got.stdout.split(",")]
    return tok.decode([i for i in said if i not in ENDS]), said[-1] in ENDS, list(steps.values())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("bezel")
    ap.add_argument("model")
    ap.add_argument("n", type=int, nargs="?", default=100)
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--out", help="JSON of everything that was written")
    a = ap.parse_args()
    r, tok = random.Random("held out stories"), tokenizer.Tokenizer(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json"))
    made, steps = [], []
    for i in range(a.n):
        ask, want = request(r)
        text, ended, taken = write(a.bezel, a.model, tok, ask, i + 1, ["--device", a.device])
        made.append({"ask": ask, "text": text, "ended": ended, "told": told(text, want, ended), "perfect": perfect(text), "steps": taken})
        steps += taken
    for label, key in (("ends inside a canvas", "ended"), ("tells the story asked for", "told"), ("by the grammar, word for word", "perfect")):
        k = sum(x[key] for x in made)
        print(f"{label:32} {k:4} of {a.n}  {100 * k / a.n:5.1f} %")
    print(f"{'steps a canvas':32} {sum(steps) / len(steps):.1f} over {len(steps)} canvases, most {max(steps)}")
    if a.out:
        json.dump(made, open(a.out, "w"), indent=1)


if __name__ == "__main__":
    main()
