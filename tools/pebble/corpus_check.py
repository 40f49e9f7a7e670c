"""Train the tokenizer and print a few conversations and statistics: corpus_check.py OUT.json [N]"""
import collections
import random
import sys

import chat_format
import text_data
import tokenizer
import words


def corpus_counts(n, seed):
    r, counts = random.Random(seed), collections.Counter()
    for _ in range(n):
        for part in tokenizer.SPECIAL.split(chat_format.text(text_data.conversation(r))):
            counts.update(tokenizer.chunks(part))
    import gemma4_vocab
    for x in gemma4_vocab.WORDS:                       # common words the grammars lack
        counts[("▁" + x)] += 8
        counts[x] += 2
    for x in words.SPOKEN + words.COLORS + words.ANIMALS + words.OBJECTS:
        for y in x.split():
            counts["▁" + y] += 30
            counts[y] += 10
    for a in text_data.SYLLABLES:
        for b in text_data.SYLLABLES:
            counts["▁" + a.capitalize() + b] += 2
    return counts


if __name__ == "__main__":
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 30000
    tokens, merges = tokenizer.build(corpus_counts(n, "tokenizer"))
    tokenizer.save(sys.argv[1], tokens, merges)
    t = tokenizer.Tokenizer(sys.argv[1])
    r, lengths, learn = random.Random(5), [], 0
    for _ in range(5000):
        ids, own = t.encode_segments(chat_format.segments(text_data.conversation(r)))
        lengths.append(len(ids))
        learn += sum(own)
    lengths.sort()
    print("tokens", len(t.tokens), "merges", len(merges), "spare", sum(x.startswith("<spare") for x in t.tokens))
    print("length: mean", sum(lengths) / 5000, "median", lengths[2500], "95%", lengths[4750], "max", lengths[-1], "learned", learn / sum(lengths))
