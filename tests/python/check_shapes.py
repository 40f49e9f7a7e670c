"""Answers of the package against the types of the openai package, strictly. Run by tests/lib/test_python.py with the Python of
build/clients."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need  # noqa: E402
from openai.types import Completion, CreateEmbeddingResponse, Model  # noqa: E402
from openai.types.chat import ChatCompletion, ChatCompletionChunk  # noqa: E402
from pydantic import BaseModel  # noqa: E402

import bezel  # noqa: E402

KNOWN = {"reasoning_content"}                          # thinking, as from llama.cpp, vLLM and DeepSeek
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
client = bezel.Client("pebble", device="cpu", threads=1)


def unknown(value):
    """fields that the type does not have"""
    if isinstance(value, BaseModel):
        found = set(value.model_extra or ()) - KNOWN
        return found.union(*[unknown(getattr(value, name)) for name in type(value).model_fields])
    return set().union(*map(unknown, value)) if isinstance(value, list) else set()


def fits(value, kind):
    read = kind.model_validate_json(json.dumps(value.to_dict()), strict=True)
    need(not unknown(read), f"{unknown(read)} in {value}")


def chat(**settings):
    fits(client.chat.completions.create(messages="What is the weather in Paris?", max_tokens=30, **settings), ChatCompletion)
    for chunk in client.chat.completions.create(messages="What is the weather in Paris?", max_tokens=30, stream=True,
                                                stream_options={"include_usage": True}, **settings):
        fits(chunk, ChatCompletionChunk)


def completions():
    fits(client.completions.create(prompt="Once", max_tokens=5, logprobs=2), Completion)


def others():
    fits(client.models.list().data[0], Model)
    with bezel.Client(sys.argv[1], device="cpu") as embedder:
        fits(embedder.embeddings.create(input=["a", "b"]), CreateEmbeddingResponse)


def parse():
    class Weather(BaseModel):
        city: str
        degrees: int
    answer = client.chat.completions.parse(messages="x", response_format=Weather, max_tokens=200, temperature=0)
    parsed = answer.choices[0].message.parsed
    need(isinstance(parsed, Weather) or answer.choices[0].finish_reason == "length", str(answer))


def can_fail():
    answer = client.chat.completions.create(messages="Hi", max_tokens=2).to_dict()
    good = ChatCompletion.model_validate_json(json.dumps(answer), strict=True)
    need(not unknown(good), "unknown fields")
    need(unknown(ChatCompletion.model_validate_json(json.dumps({**answer, "more": 1}))) == {"more"}, "a field more was not seen")


case("python and openai: the check", can_fail)
case("python and openai: chat", chat)
case("python and openai: tools", lambda: chat(tools=TOOLS, tool_choice="required"))
case("python and openai: thinking", lambda: chat(reasoning_effort="high"))
case("python and openai: log-probabilities", lambda: chat(logprobs=True, top_logprobs=2))
for check in (completions, others, parse):
    case(f"python and openai: {check.__name__}", check)
client.close()
sys.exit(finish())
