"""A program as users write it: mypy --strict must accept it, and every type that it states must be the package's."""
from __future__ import annotations

from typing import List, Optional

import numpy

import bezel


def answer(model: bezel.Model, question: str) -> Optional[str]:
    return bezel.Client(model).chat.completions.create(messages=[{"role": "user", "content": question}], temperature=0).choices[0].message.content


def pieces(model: bezel.Model, question: str) -> List[str]:
    with model.stream(question, max_tokens=5) as stream:
        return [chunk.choices[0].delta.content or "" for chunk in stream]


def chunks(client: bezel.Client) -> bezel.ChatStream:
    return client.chat.completions.create(messages="Hi", stream=True)


def likeliest(model: bezel.Model, tokens: List[int]) -> int:
    logits: numpy.ndarray[object, numpy.dtype[numpy.float32]] = model.logits(tokens)
    return int(numpy.argmax(logits[-1]))


def words(model: bezel.Model) -> List[str]:
    with model.session(context=256) as session:
        session.prefill(model.tokenize("Once"))
        return [token.text for token in session.generate(max_tokens=4)]


def code(error: bezel.BezelError) -> str:
    return error.code
