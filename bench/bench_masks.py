#!/usr/bin/env python3
"""Masks of Bezel, llguidance and xgrammar over the same vocabulary, schemas and documents, in one run: for every schema the
three take turns, in an order that rotates.

    bench_masks.py build/bench/bench_grammar TOKENS PAIRS [--every N] [--without NAME] [--limit SECONDS]

TOKENS: of token_texts.py. PAIRS: of tests/support/schemas.py. Needs numpy and the packages llguidance and xgrammar of PyPI; of
xgrammar's requirements only apache-tvm-ffi, as torch and transformers are not used for masks on a CPU. Times are CPU time of
one thread; what measuring nothing takes is printed, too. --every: one schema in N, as xgrammar needs minutes for all of them.
--limit: a schema that one of them compiled for longer is noted.
"""
import argparse
import json
import subprocess
import sys
import time
from unittest.mock import MagicMock

import tvm_ffi  # noqa: F401  before torch is replaced, which it would use
for module in ("torch", "torch.utils", "torch.utils.cpp_extension", "transformers", "triton", "triton.language"):
    sys.modules.setdefault(module, MagicMock())
import llguidance  # noqa: E402
import llguidance.numpy  # noqa: E402
import numpy as np  # noqa: E402
import xgrammar  # noqa: E402

END = 1


def read_tokens(path):
    with open(path, "rb") as f:
        data = f.read()
    texts, at = [], 0
    while at < len(data):
        n = int.from_bytes(data[at:at + 2], "little")
        texts.append(data[at + 2:at + 2 + n])
        at += 2 + n
    return texts


class Cutter:
    """the longest tokens of a text, as bench_grammar cuts it"""

    def __init__(self, texts):
        self.ids = {}
        for number, text in enumerate(texts):
            if text:
                self.ids.setdefault(text, number)
        self.longest = max(map(len, self.ids))

    def __call__(self, text):
        data, at, out = text.encode() if isinstance(text, str) else text, 0, []
        while at < len(data):
            n = next(n for n in range(min(self.longest, len(data) - at), 0, -1) if data[at:at + n] in self.ids)
            out.append(self.ids[data[at:at + n]])
            at += n
        return out


def timed(call, *args):
    start = time.thread_time_ns()
    got = call(*args)
    return got, (time.thread_time_ns() - start) / 1000


def allowed(bits, token):
    return int(bits[0, token // 32]) >> (token % 32) & 1


class Bezel:
    name = "Bezel"

    def __init__(self, program, tokens):
        self.process = subprocess.Popen([program, tokens, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(self.process.stdout.readline().strip(), file=sys.stderr)

    def run(self, schema, documents, _):
        self.process.stdin.write(json.dumps([schema, documents]) + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        good = words[0] != "!"
        numbers = [float(w) for w in words[not good:]]
        return good, numbers[0], numbers[1:]


class Guidance:
    name = "llguidance"

    def __init__(self, texts, cut):
        class Tokenizer:
            eos_token_id, bos_token_id, tokens = END, 2, texts
            special_token_ids = [i for i, text in enumerate(texts) if not text]

            def __call__(self, text):
                return cut(text)
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
        self.bits = llguidance.numpy.allocate_token_bitmask(1, len(texts))

    def run(self, schema, documents, tokens):
        text, masks, compile_us = json.dumps(schema), [], None
        for ids in tokens:
            matcher, us = timed(lambda: llguidance.LLMatcher(self.tokenizer, llguidance.LLMatcher.grammar_from_json_schema(text, defaults={"whitespace_flexible": True})))
            compile_us = us if compile_us is None else compile_us
            if matcher.is_error():
                return False, compile_us, []
            for token in [*ids, END]:
                masks.append(timed(llguidance.numpy.fill_next_token_bitmask, matcher, self.bits, 0)[1])
                if not allowed(self.bits, token) or (token != END and not matcher.consume_token(token)):
                    return False, compile_us, masks
        return True, compile_us, masks


class XGrammar:
    name = "xgrammar"

    def __init__(self, texts):
        info = xgrammar.TokenizerInfo(texts, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(texts), stop_token_ids=[END])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bits = np.full((1, (len(texts) + 31) // 32), -1, dtype=np.int32)

    def run(self, schema, documents, tokens):
        try:
            grammar, compile_us = timed(lambda: self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True))
        except Exception as e:  # noqa: BLE001  refused
            print("xgrammar:", str(e)[:100], file=sys.stderr)
            return False, 0.0, []
        masks = []
        for ids in tokens:
            matcher = xgrammar.GrammarMatcher(grammar)
            for token in [*ids, END]:
                needed, us = timed(matcher.fill_next_token_bitmask, self.bits)
                masks.append(us)
                if needed and not allowed(self.bits, token):
                    return False, compile_us, masks
                matcher.accept_token(token)
        return True, compile_us, masks


def line(name, values, unit=1.0):
    v = np.sort(np.array(values)) / unit
    return f"{name}: median {v[len(v) // 2]:.2f}  90% {v[len(v) * 9 // 10]:.1f}  99% {v[len(v) * 99 // 100]:.1f}  most {v[-1]:.0f}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("tokens")
    p.add_argument("pairs")
    p.add_argument("--every", type=int, default=6)
    p.add_argument("--without", default="")
    p.add_argument("--limit", type=float, default=60)
    o = p.parse_args()
    texts = read_tokens(o.tokens)
    cut = Cutter(texts)
    engines = [Bezel(o.program, o.tokens), Guidance(texts, cut)] + ([] if o.without == "xgrammar" else [XGrammar(texts)])
    empty = [timed(lambda: None)[1] for _ in range(2000)]
    print(line("measuring nothing, us", empty), file=sys.stderr)
    compiled, masks, failed = ({e.name: [] for e in engines} for _ in range(3))
    with open(o.pairs, encoding="utf-8") as f:
        pairs = [json.loads(text) for text in f][::o.every]
    for i, (schema, documents) in enumerate(pairs):
        tokens = [cut(d) for d in documents]
        for k in range(len(engines)):
            e = engines[(i + k) % len(engines)]
            good, compile_us, times = e.run(schema, documents, tokens)
            if good:
                compiled[e.name].append(compile_us)
                masks[e.name] += times
            else:
                failed[e.name].append(i)
            if compile_us > o.limit * 1e6:
                print(f"{e.name}: {compile_us / 1e6:.0f} s for schema {i}", file=sys.stderr)
    for e in engines:
        print(f"{e.name}: {len(compiled[e.name])} of {len(pairs)} schemas, {len(masks[e.name])} masks; refused, or a document not accepted: {failed[e.name]}")
        print("  " + line("masks, us", masks[e.name]))
        print("  " + line("schemas, ms", compiled[e.name], 1000))


main()
