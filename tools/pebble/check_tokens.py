"""Checks that trainer and engine see the same prompts: check_tokens.py BEZEL MODEL.gguf [N]

Compares the ids of this folder's tokenizer, of `bezel tokenize` and, if installed, of Hugging Face's tokenizers on N
conversations and some unusual texts; and the number of tokens that the engine counts in N conversations given as messages, with
tools, with chat_format.py's.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import chat_format
import evaluate_text
import text_data
import tokenizer

ODD = ["Hällo wörld! ÀÉ 日本 🦙 ½  two  spaces\n\n\nthree\ttab", "a'b\"c{}[]<>^`~  x", "xylophone Quetzalcoatl 12345.678e-9", " lead", "trail ",
       "<turn|> inside", "\u2581 mark", "don't I'm you're it's", "UPPER CASE WORDS", "snake_case camelCase", "a@b.c, http://x.y/z?q=1&r=2"]


def main():
    bezel, model = sys.argv[1:3]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json")
    t, r = tokenizer.Tokenizer(path), random.Random("check")
    try:
        from tokenizers import Tokenizer
        other = Tokenizer.from_file(path)
    except ImportError:
        other = None
    bad = 0
    texts = [chat_format.text(text_data.conversation(r, s)) for s in ("train", "test") for _ in range(n // 2)] + ODD
    for x in texts:
        out = subprocess.run([bezel, "tokenize", model, "-", "--special", "--no-bos"], input=x.encode(), capture_output=True, check=True).stdout
        ids = t.encode(x)
        if [int(i) for i in out.split(b",")] != ids or (other and other.encode(x, add_special_tokens=False).ids != ids):
            bad += 1
            print("other ids:", repr(x[:100]))
    print(f"ids: {len(texts) - bad} of {len(texts)} texts the same" + ("" if other else " (Hugging Face's tokenizers are not installed)"))
    wants, lines = [], []
    for _ in range(n):
        conv = text_data.conversation(r, "test")
        last = max(i for i, x in enumerate(conv["turns"]) if x[0] == "user")
        answer = conv["turns"][last + 1][1]
        turns = conv["turns"][:last + 1]
        if any(s[0] == "result" for s in answer) and r.random() < 0.7:      # the result is there, the answer is not
            turns = turns + [("model", answer[:1 + max(i for i, s in enumerate(answer) if s[0] == "result")])]
        conv = dict(conv, turns=[(a, b if a == "user" else [s for s in b if s[0] != "thought"]) for a, b in turns])
        wants.append(len(t.encode(chat_format.text(conv, True))))
        lines.append({"messages": evaluate_text.messages(conv, len(conv["turns"])), "tools": [chat_format.as_json_tool(x) for x in conv["tools"]],
                      "think": conv["think"], "options": {"num_predict": 1}})
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write("".join(json.dumps(x) + "\n" for x in lines))
        f.flush()
        out = subprocess.run([bezel, "run", model, "--prompts", f.name, "-q"], capture_output=True, text=True).stdout
    got = [json.loads(x)["usage"]["prompt_tokens"] for x in out.splitlines()]
    same = sum(a == b for a, b in zip(got, wants))
    for a, b, x in zip(got, wants, lines):
        if a != b:
            print("counts", a, "and", b, json.dumps(x)[:300])
    print(f"prompts: {same} of {n} of the same length")
    sys.exit(bad > 0 or same < n)


if __name__ == "__main__":
    main()
