"""chat.completions.create: answers in OpenAI's form, whole or in chunks."""
from __future__ import annotations

import contextlib
import ctypes as c
import secrets
import time
from typing import TYPE_CHECKING, Any, Dict, Generator, Iterator, List, Literal, Optional, Tuple, Union, overload

from . import _structs as s
from ._library import lib
from ._turn import Answer, Part, Request, Turn, log_prob_of
from .errors import BadRequest
from .model import as_messages, attach_media
from .session import Session, random_seed
from .shapes import (ChatCompletion, ChatCompletionChunk, Choice, ChoiceLogprobs, ChunkChoice, Delta, PromptTokensDetails, TokenLogprob, ToolCallDelta,
                     Usage)

if TYPE_CHECKING:
    from .model import Model

# Settings that the library obeys, or refuses with a sentence. The library does not look at keys it does not know, so that a
# misspelled one would be ignored: any other is a TypeError here.
SETTINGS = frozenset((
    "temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "max_completion_tokens", "num_predict", "logprobs", "top_logprobs",
    "logit_bias", "presence_penalty", "frequency_penalty", "repetition_penalty", "repeat_penalty", "repeat_last_n", "tools", "tool_choice",
    "parallel_tool_calls", "response_format", "format", "grammar", "regex", "choices", "think", "enable_thinking", "reasoning_effort", "reasoning",
    "chat_template_kwargs", "preserve_thinking", "add_generation_prompt", "continue_final_message", "options", "modalities", "verbosity", "audio",
    "functions", "function_call", "prediction", "web_search_options", "store", "system"))
# Settings of a service, which change nothing here.
WITHOUT_EFFECT = frozenset(("user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"))
MAX_ANSWERS = 32


def check_settings(settings: Dict[str, Any]) -> Dict[str, Any]:
    """-> those of the library, with what openai's client puts into extra_body"""
    given = {**settings, **(settings.get("extra_body") or {})}
    given.pop("extra_body", None)
    unknown = sorted(set(given) - SETTINGS - WITHOUT_EFFECT)
    if unknown:
        raise TypeError(f"'{unknown[0]}' is not a setting of a request; the settings are {', '.join(sorted(SETTINGS))}.")
    return {key: value for key, value in given.items() if key in SETTINGS and value is not None}


def make_request(messages: Any, settings: Dict[str, Any]) -> Request:
    """messages: dicts, or messages of earlier answers"""
    if not isinstance(messages, (list, tuple)) or not messages:
        raise BadRequest("messages is a list of at least one message.")
    plain = [m.model_dump() if hasattr(m, "model_dump") else m for m in messages]
    return Request({**settings, "messages": plain})


def check_diffusion(model: "Model", options: s.GenerateOptions) -> None:
    p = options.sampling
    changes = (p.greedy or p.temperature != 0 or p.top_k > 0 or 0 < p.top_p < 1 or p.min_p > 0 or p.repetition not in (0, 1) or p.presence != 0
               or p.frequency != 0 or p.n_bias or options.log_probs)
    if model.info.canvas and changes:
        raise BadRequest("temperature, top_p, penalties, logprobs and the like do not apply to a diffusion model, which draws tokens by a schedule of "
                         "its own; leave them out.")


def answer_parts(model: "Model", session: Session, turn: Turn, answer: Answer, seed: int) -> Generator[Tuple[List[Part], List[TokenLogprob]], None, None]:
    """runs a turn whose media are attached; what each token adds"""
    check_diffusion(model, turn.options)
    prompt = turn.prompt()
    before = session.stats.reused
    job = session.start("bz_turn_prefill", turn.native.pointer)
    try:
        job.run()
    finally:
        job.close()
    session.tokens = prompt
    answer.prompt_tokens, answer.cached_tokens = len(prompt), session.stats.reused - before
    options = turn.options
    options.sampling.seed = seed
    job = session.start("bz_session_generate", c.byref(options))
    try:
        for event in job.events():
            if event.kind != s.EVENT_TOKEN:
                continue
            token = event.token
            answer.generated += 1
            session.tokens.append(token)
            probs = [log_prob_of(model.native.pointer, event)] if options.log_probs and not _ends(model, token) else []
            answer.log_probs += probs
            parts = turn.push(token)
            for part in parts:
                answer.add(part)
            yield parts, probs
            if turn.ended:
                break
        finish = job.finish
    finally:
        job.close()
    if not turn.ended:
        parts = turn.push(-1)
        for part in parts:
            answer.add(part)
        yield parts, []
    answer.finish = turn.finish(finish)


def _ends(model: "Model", token: int) -> bool:
    return bool(lib.bz_token_ends(model.native.pointer, token))


def run_turn(model: "Model", request: Request, answer: Answer, number: int,
             session: Optional[Session]) -> Generator[Tuple[List[Part], List[TokenLogprob]], None, None]:
    """answer `number` to a request, in a session of the model unless one is given"""
    with Turn(model.native, request) as turn:
        attach_media(model, turn)
        seed = turn.options.sampling.seed + number if turn.has_seed else random_seed()
        own = session or model.take_session(turn.prompt())
        try:
            yield from answer_parts(model, own, turn, answer, seed)
        finally:
            if not session:
                model.give_session(own)


def usage_of(answers: List[Answer]) -> Usage:
    prompt, generated = answers[0].prompt_tokens, sum(a.generated for a in answers)
    return Usage(prompt, generated, prompt + generated, PromptTokensDetails(answers[0].cached_tokens))


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(12)


def completion_of(model: str, answers: List[Answer]) -> ChatCompletion:
    choices = [Choice(i, a.message(), a.finish_reason, ChoiceLogprobs(a.log_probs) if a.log_probs else None) for i, a in enumerate(answers)]
    return ChatCompletion(new_id("chatcmpl-"), int(time.time()), model, choices, usage_of(answers))


class ChatStream:
    """Chunks of an answer, as they come. Close it, or leave its `with` block, to end the answer early."""

    def __init__(self, chunks: Generator[ChatCompletionChunk, None, None]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[ChatCompletionChunk]:
        return self

    def __next__(self) -> ChatCompletionChunk:
        return next(self._chunks)

    def __enter__(self) -> "ChatStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._chunks.close()


class Completions:
    def __init__(self, model: "Model") -> None:
        self._model = model

    @overload
    def create(self, *, messages: Any, model: Optional[str] = None, stream: Literal[False] = False, stream_options: Optional[Dict[str, Any]] = None,
               n: Optional[int] = None, session: Optional[Session] = None, **settings: Any) -> ChatCompletion: ...

    @overload
    def create(self, *, messages: Any, stream: Literal[True], model: Optional[str] = None, stream_options: Optional[Dict[str, Any]] = None,
               n: Optional[int] = None, session: Optional[Session] = None, **settings: Any) -> ChatStream: ...

    def create(self, *, messages: Any, model: Optional[str] = None, stream: Optional[bool] = False,
               stream_options: Optional[Dict[str, Any]] = None, n: Optional[int] = None, session: Optional[Session] = None,
               **settings: Any) -> Union[ChatCompletion, ChatStream]:
        """`model` is what the answer says its model is, as there is one. session: one that the caller owns"""
        count = 1 if n is None else n
        if not isinstance(count, int) or not 1 <= count <= MAX_ANSWERS:
            raise BadRequest(f"n is a number of answers from 1 to {MAX_ANSWERS}.")
        if stream_options and not stream:
            raise BadRequest("stream_options needs stream=True.")
        request = make_request(as_messages(messages), check_settings(settings))
        name = model or self._model.name
        if stream:
            # What is wrong with the request is raised here, not by the first chunk.
            Turn(self._model.native, request).native.close()
            return ChatStream(self._stream(request, name, count, bool((stream_options or {}).get("include_usage")), session))
        answers = [Answer() for _ in range(count)]
        for number, answer in enumerate(answers):
            for _ in run_turn(self._model, request, answer, number, session):
                pass
        return completion_of(name, answers)

    def parse(self, *, messages: Any, response_format: Any, **settings: Any) -> ChatCompletion:
        """response_format: a class of pydantic; `message.parsed` is an object of it"""
        schema = getattr(response_format, "model_json_schema", None)
        if schema is None:
            raise BadRequest("parse needs a pydantic model as response_format; pass other formats to create.")
        form = {"type": "json_schema", "json_schema": {"name": response_format.__name__, "schema": schema(), "strict": True}}
        if settings.pop("stream", None):
            raise BadRequest("parse reads whole answers; use create with stream=True and read the text yourself.")
        answer: ChatCompletion = self.create(messages=messages, response_format=form, **settings)
        for choice in answer.choices:
            if choice.finish_reason == "stop" and choice.message.content:
                choice.message.parsed = response_format.model_validate_json(choice.message.content)
        return answer

    def _stream(self, request: Request, model: str, count: int, include_usage: bool, session: Optional[Session]) -> Generator[ChatCompletionChunk, None, None]:
        id_, created = new_id("chatcmpl-"), int(time.time())

        def chunk(index: int, delta: Delta, finish: Optional[str] = None, probs: Optional[List[TokenLogprob]] = None) -> ChatCompletionChunk:
            return ChatCompletionChunk(id_, created, model, [ChunkChoice(index, delta, finish, ChoiceLogprobs(probs) if probs else None)])

        answers = [Answer() for _ in range(count)]
        for number, answer in enumerate(answers):
            yield chunk(number, Delta(role="assistant", content=""))
            waiting: List[TokenLogprob] = []  # of tokens whose text is held back
            calls = 0
            with contextlib.closing(run_turn(self._model, request, answer, number, session)) as run:
                for parts, probs in run:
                    waiting += probs
                    for part in parts:
                        delta = _delta_of(part, answer, calls)
                        calls += part.kind == s.PART_CALL
                        if delta:
                            yield chunk(number, delta, None, waiting)
                            waiting = []
            yield chunk(number, Delta(), answer.finish_reason, waiting)
        if include_usage:
            yield ChatCompletionChunk(id_, created, model, [], usage_of(answers))


def _delta_of(part: Part, answer: Answer, calls: int) -> Optional[Delta]:
    """calls: how many of the answer's were sent before"""
    if part.kind == s.PART_THINKING:
        return Delta(reasoning_content=part.text)
    if part.kind in (s.PART_ANSWER, s.PART_BROKEN_CALL):
        return Delta(content=part.text)
    if part.kind == s.PART_CALL:
        return Delta(tool_calls=[ToolCallDelta(calls, answer.calls[calls].id, answer.calls[calls].function)])
    return None


class Chat:
    def __init__(self, model: "Model") -> None:
        self.completions = Completions(model)
