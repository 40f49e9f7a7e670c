#!/usr/bin/env python3
"""Vectors of texts from the server, in OpenAI's and Ollama's form.  test_api_embed.py PROGRAM MODELS"""
import array
import base64
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(os.environ.get("BEZEL_GOLDEN", "build/golden"), "embedding", "text.gguf")
CHAT = os.path.join(MODELS, "nano-e-f32.gguf")
TEXTS = ["the water", "", "near the house"]


def printed(*args):
    r = subprocess.run([BEZEL, "embed", MODEL, *args], capture_output=True, timeout=300)
    need(r.returncode == 0, r.stderr)
    return [json.loads(x) for x in r.stdout.splitlines()]


def near(a, b, what):
    need(len(a) == len(b) and max(abs(x - y) for x, y in zip(a, b)) < 1e-6, what)


def openai(s):
    want = printed(*TEXTS)
    got = s.post("/v1/embeddings", {"model": "text", "input": TEXTS})
    same([got["object"], got["model"], len(got["data"])], ["list", "text", 3], "the answer")
    for i, x in enumerate(got["data"]):
        same([x["object"], x["index"]], ["embedding", i], "an item")
        near(x["embedding"], want[i]["embedding"], f"text {i}")
    total = sum(x["tokens"] for x in want)
    same(got["usage"], {"prompt_tokens": total, "total_tokens": total}, "usage")
    coded = s.post("/v1/embeddings", {"model": "text", "input": TEXTS[0], "encoding_format": "base64"})["data"][0]["embedding"]
    values = array.array("f")
    values.frombytes(base64.b64decode(coded, validate=True))
    near(values, want[0]["embedding"], "base64")
    cut = s.post("/v1/embeddings", {"model": "text", "input": [TEXTS[0]], "dimensions": 16})["data"][0]["embedding"]
    near(cut, printed(TEXTS[0], "--dimensions", "16")[0]["embedding"], "cut")
    ids = s.post("/tokenize", {"model": "text", "content": TEXTS[0], "add_special": True})["tokens"] + [1]
    for tokens in (ids, [ids]):
        near(s.post("/v1/embeddings", {"model": "text", "input": tokens})["data"][0]["embedding"], want[0]["embedding"], "tokens")


def ollama(s):
    want = printed(*TEXTS)
    got = s.post("/api/embed", {"model": "text", "input": TEXTS})
    for i, x in enumerate(got["embeddings"]):
        near(x, want[i]["embedding"], f"text {i}")
    need(got["model"] == "text" and got["prompt_eval_count"] == sum(x["tokens"] for x in want) and got["total_duration"] > 0, str(got)[-200:])
    near(s.post("/api/embed", {"model": "text", "input": TEXTS[2]})["embeddings"][0], want[2]["embedding"], "one text")
    near(s.post("/api/embeddings", {"model": "text", "prompt": TEXTS[2]})["embedding"], want[2]["embedding"], "the older form")
    same(s.post("/api/embed", {"model": "text", "input": []})["embeddings"], [], "no text")
    same(s.post("/api/embed", {"model": "text"})["embeddings"], [], "a request that loads")
    same(s.post("/api/embeddings", {"model": "text"})["embedding"], [], "the same in the older form")
    same(len(s.post("/api/embed", {"model": "text", "input": "x", "dimensions": 9999})["embeddings"][0]), 64, "dimensions beyond the model's")
    same(s.post("/api/embed", {"model": "text", "input": "water " * 3000})["prompt_eval_count"], 2048, "a text that was cut")
    e = s.expect(400, "POST", "/api/embed", {"model": "text", "input": "water " * 3000, "truncate": False})
    same(e["error"], "the input length exceeds the context length", "Ollama's words")
    same(s.post("/api/show", {"model": "text"})["capabilities"], ["embedding"], "capabilities")


def refused(s):
    for body, words in (({}, "input has no text"), ({"input": []}, "input has no text"), ({"input": 3}, "input is a text"), ({"input": [["a"]]}, "input is a text"),
                        ({"input": [1, "a"]}, "list that is not one of tokens"), ({"input": [2, 832, 1]}, "token 832"),
                        ({"input": "x", "dimensions": 0}, "dimensions is at least 1"), ({"input": "x", "dimensions": 65}, "Vectors of 65 numbers"),
                        ({"input": "x", "encoding_format": "hex"}, "encoding_format"), ({"input": "water " * 3000}, "the model reads at most 2048")):
        error = s.expect(400, "POST", "/v1/embeddings", {"model": "text", **body})["error"]
        need(words in error["message"], f"{body}: {error}")
    for body, words in (({"input": [3]}, "input is a text or a list of texts"), ({"input": "x", "truncate": "no"}, "truncate"), ({"input": "x", "dimensions": -1}, "dimensions")):
        need(words in s.expect(400, "POST", "/api/embed", {"model": "text", **body})["error"], str(body))
    s.expect(404, "POST", "/v1/embeddings", {"model": "none", "input": "x"})
    chat = {"model": "nano-e-f32", "input": "x"}
    need("writes text and computes no vectors" in s.expect(400, "POST", "/v1/embeddings", chat)["error"]["message"], "a chat model")
    need("writes text and computes no vectors" in s.expect(400, "POST", "/api/embed", chat)["error"], "a chat model")
    messages = [{"role": "user", "content": "hi"}]
    for path, body in (("/v1/chat/completions", {"messages": messages}), ("/v1/completions", {"prompt": "x"}), ("/api/chat", {"messages": messages}),
                       ("/api/generate", {"prompt": "x"})):
        error = s.expect(400, "POST", path, {"model": "text", "stream": False, **body})["error"]
        need("computes vectors of texts and writes none" in (error if isinstance(error, str) else error["message"]), f"{path}: {error}")
    near(s.post("/api/embed", {"model": "text", "input": TEXTS[0]})["embeddings"][0], printed(TEXTS[0])[0]["embedding"], "after refusals")


def together(s):
    """requests at the same time, beside a chat; one that is given up"""
    want, got, words = printed(*TEXTS), {}, []

    def ask(i):
        got[i] = s.post("/v1/embeddings", {"model": "text", "input": [TEXTS[i % 3]] * (1 + i)})["data"][-1]["embedding"]

    def chat():
        words.append(s.post("/v1/chat/completions", {"model": "nano-e-f32", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20})["usage"]["completion_tokens"])
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)] + [threading.Thread(target=chat)]
    given_up = threading.Thread(target=lambda: s.open("POST", "/v1/embeddings", {"model": "text", "input": ["near the house " * 50] * 50}).connection.close())
    for t in [*threads, given_up]:
        t.start()
    for t in [*threads, given_up]:
        t.join()
    for i in range(12):
        near(got[i], want[i % 3]["embedding"], f"request {i}")
    need(words and words[0] > 0, "no answer beside the vectors")


with Serving(BEZEL, CHAT, "--model", MODEL) as server:
    case("OpenAI's form", openai, server)
    case("Ollama's forms", ollama, server)
    case("what is refused", refused, server)
    case("many requests", together, server)
    case("the server ends well", lambda: same(server.end()[0] in (0, -15, 143), True, "the exit code"))
sys.exit(finish())
