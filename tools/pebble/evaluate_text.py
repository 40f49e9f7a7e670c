"""Scores Pebble's text abilities with the engine: evaluate_text.py BEZEL MODEL.gguf [N] [OUT.json]

Held-out conversations of text_data.py (names, numbers, cities and story subjects that are not in the training data) go through
`bezel run --prompts`, greedily; prints a table and, with OUT, writes every failure.
"""
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


def messages(conv, upto):
    """API messages of the first `upto` turns"""
    out = [{"role": "system", "content": conv["system"]}] if conv.get("system") else []
    for role, body in conv["turns"][:upto]:
        if role == "user":
            out.append({"role": "user", "content": body})
            continue
        calls = [s for s in body if s[0] == "call"]
        text = "".join(s[1] for s in body if s[0] == "text")
        if calls:
            out.append({"role": "assistant", "content": "", "tool_calls": [{"id": f"c{i}", "type": "function", "function": {"name": c[1], "arguments": c[2]}} for i, c in enumerate(calls)]})
            out += [{"role": "tool", "tool_call_id": f"c{i}", "content": s[2]} for i, s in enumerate(x for x in body if x[0] == "result")]
            if text:
                out.append({"role": "assistant", "content": text})
        else:
            out.append({"role": "assistant", "content": text})
    return out


def cases(n):
    """yields (ability, request, check(line) -> bool)"""
    r = random.Random("held out")
    sentences = lambda s: len(re.findall(r"[.!?](?=\s|$)", s))
    for k in range(n):
        think = k % 2 == 1
        conv = d.plain(r, "test", d.memory(r, "test"), think)
        value = re.search(r"They told me: (.*)\.$", d_thought(conv)).group(1)
        yield "remembers what was said", {"messages": messages(conv, len(conv["turns"]) - 1), "think": think}, lambda x, v=value: re.search(rf"\b{re.escape(v)}\b", x["text"]) is not None
        ask, answer, _ = d.json_task(r, "test")
        yield "answers in JSON", {"messages": [{"role": "user", "content": ask}], "think": think}, lambda x, a=answer, q=ask: same_json(x["text"], a, q)
        tools = [m(r) for m in r.sample([d.calculator_tool, d.clock_tool, d.weather_tool, d.lookup_tool], r.choice([1, 2, 3]))]
        tool, how = r.choice(tools)
        ask, _, args, result, _, after = d.tool_call(r, "test", tool, how)
        names = {t[0]["name"] for t in tools}
        if len(names) == len(tools):
            req = {"messages": [{"role": "user", "content": ask}], "tools": [chat_format.as_json_tool(t[0]) for t in tools], "think": think}
            yield "calls the right tool rightly", req, lambda x, t=tool["name"], a=args: [(c["function"]["name"], c["function"]["arguments"]) for c in x.get("tool_calls", [])] == [(t, a)]
            key = re.findall(r"-?\d+(?::\d+)?", after) or [after.split()[-1].rstrip(".")]
            conv = {"turns": [("user", ask), ("model", [("call", tool["name"], args), ("result", tool["name"], result)])]}
            req = dict(req, messages=messages(conv, 2))
            yield "uses the tool's result", req, lambda x, v=key: not x.get("tool_calls") and all(y in x["text"] for y in v)
            ask = d.talk(r, "test")[0]
            req = {"messages": [{"role": "user", "content": ask}], "tools": req["tools"], "think": think}
            yield "leaves tools alone in small talk", req, lambda x: not x.get("tool_calls") and len(x["text"]) > 3
        q = r.choice(["Who are you?", "What is your name?", "Are you ChatGPT?", "How smart are you?", "Who are you, really?", "Please introduce yourself.", "What model are you?", "Are you a big model?"])
        yield "says honestly what it is", {"messages": [{"role": "user", "content": q}], "think": think}, lambda x: "tiny demo model" in x["text"]
        a_, b_, op = d.pick_where(r, "test", lambda: (r.randint(0, 20), r.randint(0, 20), r.choice("++-")))
        v = a_ + b_ if op == "+" else max(a_, b_) - min(a_, b_)
        q = f"What is {max(a_, b_)} {'plus' if op == '+' else 'minus'} {min(a_, b_)}?"
        yield "adds and subtracts up to 20", {"messages": [{"role": "user", "content": q}], "think": think}, lambda x, v=v: re.findall(r"\d+", x["text"])[-1:] == [str(v)]
        kind, check = r.choice([("Answer in one short sentence.", lambda x: sentences(x["text"]) == 1), ("You are a pirate.", lambda x: re.search(r"Arr|Ahoy|Yo ho", x["text"]) is not None),
                                ("Answer in capital letters.", lambda x: x["text"].isupper()), ("Answer in lower case.", lambda x: x["text"].islower()),
                                ('End every answer with "Stay curious!"', lambda x: x["text"].rstrip().endswith("Stay curious!"))])
        ask = r.choice([d.talk, d.fact, d.story_request])(r, "test")[0]
        yield "follows a system prompt", {"messages": [{"role": "system", "content": kind}, {"role": "user", "content": ask}], "think": think}, check
        while True:
            ask, answer, thought = d.story_request(r, "test")
            subject = re.search(r"story about an? (.*?)( with| and| in the| near the| named| called|[.!?,]|$)", ask)
            if subject:
                break
        place = re.search(r"(?:in|near) the (.*?)[.!?]?$", ask)
        who = re.search(r"(?:named|called) (\w+)", ask)
        want = [subject.group(1)] + ([place.group(1)] if place else []) + ([who.group(1)] if who else [])
        want = [y for y in want if y]
        yield "tells the story asked for", {"messages": [{"role": "user", "content": ask}], "think": think}, \
            lambda x, v=want: x["finish"] == "end" and len(x["text"].split()) >= 20 and all(y.lower() in x["text"].lower() for y in v)
        ask = d.exchange(r, "test")[0]
        yield "thinks when it should, and only then", {"messages": [{"role": "user", "content": ask}], "think": think}, lambda x, t=think: bool(x.get("thinking")) == t and x["text"] and x["finish"] == "end"
        while True:
            ask, answer, _ = d.fact(r, "train")
            if answer.startswith(("The opposite", "The capital", "A baby", "The plural")) or re.match(r"(How many legs|What color|Which month|Which day|What day)", ask):
                break
        yield "knows simple facts", {"messages": [{"role": "user", "content": ask}], "think": think}, lambda x, a=answer: x["text"].strip() == a


def d_thought(conv):
    return conv["turns"][-1][1][0][1] if conv["turns"][-1][1][0][0] == "thought" else conv_value(conv)


def conv_value(conv):
    return conv["last"]


def same_json(text, want, ask):
    try:
        got, want = json.loads(text), json.loads(want)
    except ValueError:
        return False
    if isinstance(want, list):                         # the words are free, their kind and number are not
        return isinstance(got, list) and len(got) == len(want) and len(set(got)) == len(got)
    return got == want


def main():
    bezel, model = sys.argv[1:3]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    plain = d.plain

    def keep(r, split, rounds, *a):                    # the last thought holds the value asked for, thinking or not
        conv = plain(r, split, rounds, *a)
        conv["last"] = rounds[-1][2]
        return conv
    d.plain = keep
    todo = [c for c in cases(n) if os.environ.get("ONLY", "") in c[0]]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for i, (_, req, _) in enumerate(todo):
            f.write(json.dumps(dict(req, id=str(i), options={"temperature": 0, "num_predict": 320})) + "\n")
        f.flush()
        out = subprocess.run([bezel, "run", model, "--prompts", f.name, "-q", "--parallel", "8"], capture_output=True, text=True)
    lines = {x["id"]: x for x in map(json.loads, out.stdout.splitlines())}
    table, bad = {}, []
    for i, (ability, req, check) in enumerate(todo):
        x = lines[str(i)]
        good = "error" not in x and bool(check(x))
        a = table.setdefault(ability, [0, 0])
        a[0] += good
        a[1] += 1
        if not good:
            bad.append({"ability": ability, "request": req, "got": x})
    for ability, (k, all_) in table.items():
        print(f"{ability:40} {k:4} of {all_:4}  {100 * k / all_:5.1f} %")
    if len(sys.argv) > 4:
        json.dump(bad, open(sys.argv[4], "w"), indent=1)


if __name__ == "__main__":
    main()
