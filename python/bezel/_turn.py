"""One request: its prompt, and tokens of its answer as parts."""
from __future__ import annotations

import ctypes as c
import json
import secrets
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _structs as s
from ._library import call, lib
from ._native import Native
from .errors import BadRequest
from .shapes import Function, Message, TokenLogprob, ToolCall, TopLogprob



class Part(NamedTuple):
    kind: int
    text: str


class Request:
    """A request as JSON, and the Python objects (images and so on) that it refers to."""

    def __init__(self, request: Dict[str, Any]) -> None:
        self.objects: List[Any] = []
        # Stands in the JSON for an object of Python, with its number; messages from outside cannot name it.
        self._mark = f"object:{secrets.token_hex(8)}:"
        try:
            self.json = json.dumps(request, default=self._keep, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise BadRequest("The request has half of a surrogate pair, which is not text.") from None
        except (TypeError, ValueError) as e:  # a key that is not a text, a cycle
            raise BadRequest(f"The request cannot be written as JSON: {e}.") from None

    def _keep(self, value: Any) -> str:
        self.objects.append(value)
        return f"{self._mark}{len(self.objects) - 1}"

    def source(self, text: str) -> Any:
        return self.objects[int(text[len(self._mark):])] if text.startswith(self._mark) else text


class Turn:
    def __init__(self, model: Native, request: Request) -> None:
        self.model = model
        self.request = request
        self.native = Native("turn", model.create("bz_turn_new_media", request.json, len(request.json)), lib.bz_turn_free, model)
        used = [id(self.media_source(i)[1]) for i in range(self.media_count)]
        for value in request.objects:
            if id(value) not in used:
                self.native.close()
                raise BadRequest(f"The request has a {type(value).__name__} where no image, sound or video is expected.")
        self.ended = False
        has_seed = c.c_bool()
        self.options = s.GenerateOptions.from_buffer_copy(lib.bz_turn_options(self.native.pointer, c.byref(has_seed)).contents)
        self.has_seed: bool = has_seed.value

    def __enter__(self) -> "Turn":
        return self

    def __exit__(self, *_: object) -> None:
        self.native.close()

    @property
    def media_count(self) -> int:
        return int(lib.bz_turn_media(self.native.pointer))

    def media_source(self, i: int) -> Tuple[int, Any]:
        text, n = s.Pointer(), c.c_size_t()
        kind = lib.bz_turn_media_source(self.native.pointer, i, c.byref(text), c.byref(n))
        return kind, self.request.source(_text_at(text, n))

    def attach(self, i: int, media: int) -> None:
        self.native.call("bz_turn_attach", i, media)

    def prompt(self) -> List[int]:
        n, snapshot = c.c_size_t(), c.c_uint32()
        ids = lib.bz_turn_prompt(self.native.pointer, c.byref(n), c.byref(snapshot))
        return ids[:n.value] if n.value else []

    def push(self, token: int) -> List[Part]:
        """the parts that a token completes; -1: the answer has ended"""
        self.native.call("bz_turn_push", token)
        parts: List[Part] = []
        text, n = s.Pointer(), c.c_size_t()
        while True:
            kind = lib.bz_turn_next(self.native.pointer, c.byref(text), c.byref(n))
            if kind == s.PART_NOTHING:
                return parts
            if kind == s.PART_END:
                self.ended = True
            else:
                parts.append(Part(kind, _text_at(text, n)))

    def finish(self, generated: int) -> int:
        return int(lib.bz_turn_finish(self.native.pointer, generated))


def _text_at(text: Any, n: Any) -> str:
    return c.string_at(text, n.value).decode("utf-8", "replace") if n.value else ""


class Answer:
    """Gathers the parts of one answer."""

    def __init__(self) -> None:
        self.content: List[str] = []
        self.thinking: List[str] = []
        self.calls: List[ToolCall] = []
        self.log_probs: List[TokenLogprob] = []
        self.prompt_tokens = self.cached_tokens = self.generated = 0
        self.finish = s.FINISH_NONE

    def add(self, part: Part) -> None:
        if part.kind == s.PART_THINKING:
            self.thinking.append(part.text)
        elif part.kind in (s.PART_ANSWER, s.PART_BROKEN_CALL):
            self.content.append(part.text)
        elif part.kind == s.PART_CALL:
            call_ = json.loads(part.text)
            arguments = json.dumps(call_["arguments"], ensure_ascii=False)
            self.calls.append(ToolCall(f"call_{len(self.calls)}", Function(call_["name"], arguments)))

    @property
    def finish_reason(self) -> str:
        if self.finish in (s.FINISH_LENGTH, s.FINISH_CONTEXT):
            return "length"
        return "tool_calls" if self.calls else "stop"

    def message(self) -> Message:
        text = "".join(self.content)
        return Message(content=text if text or not self.calls else None, reasoning_content="".join(self.thinking) or None,
                       tool_calls=self.calls or None)


def token_text(model: int, token: int) -> bytes:
    """bytes of a token: a part of a character for a byte token"""
    n = c.c_size_t()
    piece = lib.bz_token_piece(model, token, c.byref(n))
    text = c.string_at(piece, n.value) if piece and n.value else b""
    if len(text) == 6 and text.startswith(b"<0x"):
        return bytes([int(text[3:5], 16)])
    return text.replace("\u2581".encode(), b" ")  # the vocabulary's spelling of a blank


def log_prob_of(model: int, event: s.Event) -> TokenLogprob:
    def one(token: int, value: float) -> TopLogprob:
        text = token_text(model, token)
        return TopLogprob(text.decode("utf-8", "replace"), float(value), list(text))
    own = one(event.token, event.log_prob)
    top = [one(event.top[i].token, event.top[i].log_prob) for i in range(event.n_top)]
    return TokenLogprob(own.token, own.logprob, own.bytes, top)


class Grammar:
    """What an answer may be; see docs/STRUCTURED.md. Give one of the arguments."""

    def __init__(self, *, gbnf: Optional[str] = None, schema: Any = None, regex: Optional[str] = None, choices: Optional[List[str]] = None,
                 json_object: bool = False) -> None:
        given = [(s.GRAMMAR_GBNF, gbnf), (s.GRAMMAR_SCHEMA, None if schema is None else json.dumps(schema)), (s.GRAMMAR_REGEX, regex),
                 (s.GRAMMAR_CHOICES, None if choices is None else json.dumps(choices)), (s.GRAMMAR_JSON, "" if json_object else None)]
        chosen = [(kind, text) for kind, text in given if text is not None]
        if len(chosen) != 1:
            raise BadRequest(f"A grammar is made of one of gbnf, schema, regex, choices and json_object; {len(chosen)} are given.")
        kind, text = chosen[0]
        data = (text or "").encode()
        out = s.Pointer()
        call("bz_grammar_new", c.byref(out), kind, data, len(data))
        self.native = Native("grammar", out.value or 0, lib.bz_grammar_free)

    def close(self) -> None:
        self.native.close()

