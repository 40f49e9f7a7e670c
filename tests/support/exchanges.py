"""Recorded exchanges with the server: tests/clients/exchanges.json has a request each, the status and type of the answer,
and the answer with what varies replaced by its type.

The server must have two models: pebble, and `call`, which writes a thought, a text and a tool call (tests/cli/scripted.py).
"""
import json
import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients", "exchanges.json")

# What differs from run to run, or between processors: times, ids, generated texts and their probabilities.
VARIES = {"id", "call_id", "item_id", "created", "created_at", "completed_at", "modified_at", "expires_at", "digest", "version", "system_fingerprint", "build_info",
          "size", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "cached_tokens", "prompt_eval_count",
          "content", "text", "delta", "response", "thinking", "reasoning_content", "prompt", "token", "bytes", "logprob", "token_logprobs", "text_offset",
          "tokens", "context", "sequence_number", "output_index", "content_index", "obfuscation"}
# Long, and described by one of its elements.
LONG = {"model_info", "tensors", "template", "top_logprobs"}


def kind(value):
    if isinstance(value, list):
        return [kind(value[0])] if value else []
    if isinstance(value, dict):
        return {k: kind(v) for k, v in list(value.items())[:2]}
    return f"<{'bool' if isinstance(value, bool) else 'number' if isinstance(value, (int, float)) else type(value).__name__}>"


def without_repeats(items):
    """of equal ones in a row the first: the length of an answer in tokens and characters varies"""
    return [x for i, x in enumerate(items) if i == 0 or x != items[i - 1]]


def normal(value, key=None):
    """what is the same in every run"""
    if key in LONG and value is not None or key in VARIES and not isinstance(value, dict) and not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return kind(value)
    if isinstance(value, dict):
        return {k: normal(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return without_repeats([normal(v) for v in value])
    return value


def objects(kind_of_body, text):
    """the JSON values of an answer: one, a line each, or an event each"""
    if kind_of_body == "text/event-stream":
        parts = [line[len("data: "):] for line in text.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(p) if p != "[DONE]" else p for p in parts]
    if kind_of_body == "application/x-ndjson":
        return [json.loads(line) for line in text.splitlines()]
    return [json.loads(text)]


def ask(server, exchange):
    """plays the request -> status, content type without parameters, bytes"""
    status, headers, text = server.ask(exchange["method"], exchange["path"], exchange.get("body"))
    return status, headers["Content-Type"].split(";")[0], text


def recorded(status, content_type, text):
    """an answer as it is kept"""
    if content_type == "text/plain":  # of metrics the names
        return {"status": status, "type": content_type, "answer": [line.split(" ")[0] if not line.startswith("#") else line for line in text.decode().splitlines()]}
    return {"status": status, "type": content_type, "answer": without_repeats([normal(x) for x in objects(content_type, text)])}


def load():
    with open(PATH, encoding="utf-8") as f:
        return json.load(f)
