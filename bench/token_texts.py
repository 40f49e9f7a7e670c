#!/usr/bin/env python3
"""The texts of a vocabulary for bench_grammar, from a tokenizer.json of Gemma's kind.

    token_texts.py TOKENIZER.json OUT
"""
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    tokenizer = json.load(f)
texts = {number: text for text, number in tokenizer["model"]["vocab"].items()}
control = {t["id"] for t in tokenizer["added_tokens"] if t.get("special")}
with open(sys.argv[2], "wb") as f:
    for number in range(max(texts) + 1):
        text = texts.get(number, "")
        said = bytes([int(text[3:5], 16)]) if re.fullmatch("<0x[0-9A-F]{2}>", text) else text.replace("\u2581", " ").encode()
        said = b"" if number in control else said
        f.write(len(said).to_bytes(2, "little") + said)
