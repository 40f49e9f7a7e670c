"""Models that say what a test wants: Gemma 4's architecture, with weights that know one text.

Attention, FFN and per-layer embeddings add nothing, so the state is the last token's embedding; the
tokens of the text have embeddings of their own, and the output matrix leads from each to the next. The
first follows the end of every prompt, "<|turn>model\\n". A token may come once only: it decides what
follows it.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import numpy as np  # noqa: E402

import gguf_io  # noqa: E402

FIRST_SPARE, LAST_SPARE = 168, 237  # tokens of HTML tags, which no test needs: they take the texts of the script


def write(path, base, script, loop=None, context=None):
    """script: texts. Those that the vocabulary has (markers, "<0xE2>") are those tokens, others get one.
    loop: the number of the text that follows the last; without it the end of the turn does."""
    r = gguf_io.Reader(base)
    tokens = list(r.kv["tokenizer.ggml.tokens"])
    spare = iter(range(FIRST_SPARE, LAST_SPARE + 1))
    chain = [tokens.index("\n")]
    for text in script:
        if text in tokens and text not in ("\n",):
            chain.append(tokens.index(text))
        else:
            chain.append(next(spare))
            tokens[chain[-1]] = text.replace(" ", "\u2581")
    chain.append(tokens.index("<turn|>") if loop is None else chain[1 + loop])
    links = list(zip(chain, chain[1:]))
    width = r.kv["gemma4.embedding_length"]
    assert len({a for a, _ in links}) == len(links) <= width, "a token twice, or too many"

    embd, norm = r.get("token_embd.weight").copy(), r.get("output_norm.weight")
    output = np.zeros_like(embd)
    for k, (a, b) in enumerate(links):
        embd[a] = 0
        embd[a][k] = 1
        output[b][k] = 100 * np.sign(norm[k])
    w = gguf_io.Writer()
    for key, value in r.kv.items():
        value = tokens if key == "tokenizer.ggml.tokens" else value
        value = context if context and key == "gemma4.context_length" else value
        w.kv.append((key, *r.kv_types[key], value))
    for name, (typ, ne, raw) in r.tensors.items():
        data = raw.tobytes()
        if name.endswith(("attn_output.weight", "ffn_down.weight", ".proj.weight")):
            data = bytes(len(data))
        elif name == "token_embd.weight":
            data = embd.astype(np.float32).tobytes()
        w.tensor(name, typ, ne, lambda data=data: [data])
    w.tensor("output.weight", "f32", [width, len(tokens)], lambda: [output.astype(np.float32).tobytes()])
    w.save(path)
    return path


def with_call(path, models):
    """always answers with a thought, a text and a call of look_up"""
    return write(path, os.path.join(models, "nano-e-f32.gguf"),
                 ["<|channel>", "thought", "\n\n", "Hm", "<channel|>", "One moment.", "<|tool_call>", "call:look_up{word:", '<|"|>', "fox", "}", "<tool_call|>"])
