"""Judges of stories.

  told(text, want, ended)   evaluate_text.py's judge: an end, at least 20 words, everything that was asked for
  perfect(text)             the whole story is one that text_data.py's grammar can write: its sentences in their order,
                            one hero, one friend, one thing, one pair of pronouns throughout

  judge_story.py BEZEL MODEL [N] [--gpu]: both, over N held-out requests, and the steps per canvas
"""
import argparse
import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import chat_format
import text_data as d
import words as w


def request(r):
    """-> a held-out request for a story, the words that must be in it"""
    while True:
        ask = d.story_request(r, "test")[0]
        subject = re.search(r"story about an? (.*?)( with| and| in the| near the| named| called|[.!?,]|$)", ask)
        if subject:
            break
    place = re.search(r"(?:in|near) the (.*?)[.!?]?$", ask)
    who = re.search(r"(?:named|called) (\w+)", ask)
    want = [subject.group(1)] + ([place.group(1)] if place else []) + ([who.group(1)] if who else [])
    return ask, [x for x in want if x]


def prompt(ask):
    return chat_format.text({"turns": [("user", ask)]}, True)


def told(text, want, ended):
    return ended and len(text.split()) >= 20 and all(x.lower() in text.lower() for x in want)


# ---- the grammar, read backwards ---------------------------------------------------------

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

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("bezel")
    ap.add_argument("model")
    ap.add_argument("n", type=int, nargs="?", default=100)
    ap.add_argument("--gpu", action="store_true")
    ap.add_argument("--out", help="JSON of everything that was written")
    a = ap.parse_args()
    r = random.Random("held out stories")
    asked = [request(r) for _ in range(a.n)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for i, (ask, _) in enumerate(asked):
            f.write(json.dumps({"messages": [{"role": "user", "content": ask}], "think": False, "id": str(i), "options": {"seed": i + 1, "num_predict": 320}}) + "\n")
        f.flush()
        cmd = [a.bezel, "run", a.model, "--prompts", f.name, "-q"] + (["--gpu"] if a.gpu else [])
        out = subprocess.run(cmd, capture_output=True, text=True)
    lines = {x["id"]: x for x in map(json.loads, out.stdout.splitlines())}
    got = [lines[str(i)] for i in range(a.n)]
    good = [told(x["text"], want, x["finish"] == "end") for x, (_, want) in zip(got, asked)]
    whole = [perfect(x["text"]) for x in got]
    print(f"tells the story asked for   {sum(good):4} of {a.n}  {100 * sum(good) / a.n:5.1f} %")
    print(f"by the grammar throughout   {sum(whole):4} of {a.n}  {100 * sum(whole) / a.n:5.1f} %")
    if a.out:
        json.dump([dict(x, ask=q, told=t, perfect=p) for x, (q, _), t, p in zip(got, asked, good, whole)], open(a.out, "w"), indent=1)


if __name__ == "__main__":
    main()
