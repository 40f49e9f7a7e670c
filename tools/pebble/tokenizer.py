"""Pebble's vocabulary: trains it, tokenizes with it, writes tokenizer.json.

Byte-pair encoding over characters with "▁" for a space, byte fallback, digits one by one, as in
Gemma 4; the first 494 ids are Gemma 4's own (specials, runs of newlines and spaces, tags, bytes).
No merge crosses the boundary between letters, digits, punctuation and spaces, so that tokenizing word
by word (with a cache of words) produces the same ids as merging over the whole text.
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gemma4_vocab as g4   # noqa: E402

SIZE = 4096
CHUNK = re.compile(r"▁?[A-Za-z]+|\d|▁?[^A-Za-z0-9▁\n\s]+|\n+|▁+|.", re.S)
SPECIAL = re.compile("(" + "|".join(re.escape(t) for t in sorted(
    list(g4.SPECIAL.values()) + list(g4.MEDIA.values()), key=len, reverse=True)) + ")")
EXTRA = "éüöä°’“”—…€×÷–"


def chunks(text):
    return CHUNK.findall(text.replace(" ", "▁"))


def train(counts, n_merges):
    """counts: {chunk: how often} -> merges, most frequent first; ties by text, so always the same"""
    words = [(list(w), c) for w, c in sorted(counts.items()) if len(w) > 1 and not w.startswith("\n") and w.strip("▁")]
    where, pairs = collections.defaultdict(set), collections.Counter()
    for i, (s, c) in enumerate(words):
        for p in zip(s, s[1:]):
            pairs[p] += c
            where[p].add(i)
    merges, have = [], set()
    while len(merges) < n_merges and pairs:
        best = max(pairs.items(), key=lambda x: (x[1], x[0][0] + x[0][1], x[0]))
        pair, n = best
        if n <= 0:
            break
        new = pair[0] + pair[1]
        if new not in have:
            have.add(new)
        merges.append(pair)
        for i in list(where[pair]):
            s, c = words[i]
            for p in zip(s, s[1:]):
                pairs[p] -= c
            k, out = 0, []
            while k < len(s):
                if k + 1 < len(s) and (s[k], s[k + 1]) == pair:
                    out.append(new)
                    k += 2
                else:
                    out.append(s[k])
                    k += 1
            words[i] = (out, c)
            for p in zip(out, out[1:]):
                pairs[p] += c
                where[p].add(i)
        pairs.pop(pair, None)
    return merges


def build(counts):
    """-> tokens (list), merges (list of pairs)"""
    head, _, _ = g4.build(1024)
    tokens = list(head[:494])
    media = list(g4.MEDIA.values())
    chars = ["▁"] + [chr(c) for c in range(33, 127)] + ["\t"] + list(EXTRA)
    room = SIZE - 494 - len(chars) - len(media)
    runs = [("\n" * i, "\n") for i in range(1, 31)] + [("▁" * i, "▁") for i in range(1, 31)]
    taken = set(tokens) | set(chars)
    trained, pieces = train(counts, room + 200), []
    merges = list(runs)
    for a, b in trained:
        if len(pieces) < room:
            if a + b not in taken:
                taken.add(a + b)
                pieces.append(a + b)
            merges.append((a, b))
    while len(pieces) < room:                          # the corpus is too small for this many pieces
        pieces.append(f"<spare{len(pieces)}>")
    tokens += pieces + chars + media
    assert len(tokens) == SIZE and len(set(tokens)) == SIZE, (len(tokens), len(set(tokens)))
    return tokens, merges


def save(path, tokens, merges):
    special = list(g4.SPECIAL.values()) + list(g4.MEDIA.values())
    ids = {t: i for i, t in enumerate(tokens)}
    json.dump({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": ids[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for t in sorted(special, key=ids.get)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": ids, "merges": [list(m) for m in merges]},
    }, open(path, "w"), ensure_ascii=False, indent=0)


class Tokenizer:
    def __init__(self, path):
        model = json.load(open(path))["model"]
        self.ids = model["vocab"]
        self.rank = {tuple(m): i for i, m in enumerate(model["merges"])}
        self.tokens = [None] * len(self.ids)
        for t, i in self.ids.items():
            self.tokens[i] = t
        self.memory = {}

    def _chunk(self, chunk):
        s = list(chunk)
        while len(s) > 1:
            ranks = [self.rank.get(p, 1 << 30) for p in zip(s, s[1:])]
            low = min(ranks)
            if low == 1 << 30:
                break
            k = ranks.index(low)
            s[k:k + 2] = [s[k] + s[k + 1]]
        out = []
        for t in s:
            if t in self.ids:
                out.append(self.ids[t])
            else:
                out += [self.ids[f"<0x{b:02X}>"] for b in t.encode()]
        return out

    def encode_plain(self, text):
        out, memory = [], self.memory
        for c in chunks(text):
            got = memory.get(c)
            if got is None:
                got = self._chunk(c)
                if len(memory) < 200000:
                    memory[c] = got
            out += got
        return out

    def encode(self, text):
        """specials in the text become special tokens"""
        out = []
        for i, part in enumerate(SPECIAL.split(text)):
            if i % 2:
                out.append(self.ids[part])
            elif part:
                out += self.encode_plain(part)
        return out

    def encode_segments(self, segments):
        """-> ids, learn (same length)"""
        ids, learn = [], []
        for text, own in segments:
            part = self.encode(text)
            ids += part
            learn += [own] * len(part)
        return ids, learn

    def decode(self, ids):
        data = b""
        for i in ids:
            t = self.tokens[i]
            data += bytes([int(t[3:5], 16)]) if re.fullmatch(r"<0x[0-9A-F]{2}>", t) else t.replace("▁", " ").encode()
        return data.decode("utf-8", "replace")
