"""completions.create: text that goes on from a text, without a chat."""
from __future__ import annotations

import contextlib
import ctypes as c
import time
from typing import TYPE_CHECKING, Any, Generator, Iterator, List, Optional, Union

from . import _structs as s
from ._turn import Request, Turn, log_prob_of
from .chat import MAX_ANSWERS, check_diffusion, check_settings, new_id
from .errors import BadRequest
from .session import Session, event_text, random_seed
from .shapes import Completion, CompletionChoice, CompletionLogprobs, PromptTokensDetails, Usage

if TYPE_CHECKING:
    from .model import Model

_CHAT_ONLY = ("tools", "tool_choice", "parallel_tool_calls", "think", "enable_thinking", "reasoning_effort", "reasoning", "chat_template_kwargs",
              "preserve_thinking", "add_generation_prompt", "continue_final_message", "system")
_FINISHES = {s.FINISH_END: "stop", s.FINISH_STOP: "stop", s.FINISH_LENGTH: "length", s.FINISH_CONTEXT: "length"}


class _Text:
    """One answer as it grows."""

    def __init__(self) -> None:
        self.text = ""
        self.prompt_tokens = self.cached_tokens = self.generated = 0
        self.finish: Optional[str] = None
        self.probs: Optional[CompletionLogprobs] = None

    def add_probs(self, model: int, event: s.Event) -> None:
        own = log_prob_of(model, event)
        self.probs = self.probs or CompletionLogprobs([], [], [], [])
        self.probs.tokens.append(own.token)
        self.probs.token_logprobs.append(own.logprob)
        self.probs.top_logprobs.append({t.token: t.logprob for t in own.top_logprobs})
        self.probs.text_offset.append(len(self.text))


def _usage(answers: List[_Text]) -> Usage:
    prompt, generated = answers[0].prompt_tokens, sum(a.generated for a in answers)
    return Usage(prompt, generated, prompt + generated, PromptTokensDetails(answers[0].cached_tokens))


class CompletionStream:
    """Pieces of a text, as they come; close it to end the answer early."""

    def __init__(self, pieces: Generator[Completion, None, None]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[Completion]:
        return self

    def __next__(self) -> Completion:
        return next(self._pieces)

    def __enter__(self) -> "CompletionStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pieces.close()


class TextCompletions:
    def __init__(self, model: "Model") -> None:
        self._model = model

    def create(self, *, prompt: Any, model: Optional[str] = None, stream: bool = False, n: Optional[int] = None, logprobs: Optional[int] = None,
               echo: bool = False, session: Optional[Session] = None, **settings: Any) -> Union[Completion, CompletionStream]:
        """prompt: a text, in which texts of control tokens are those tokens, or a list of tokens. logprobs: how many likely tokens"""
        for key in _CHAT_ONLY:
            if settings.get(key) is not None:
                raise BadRequest(f"{key} belongs to a chat; a completion has a prompt only.")
        count = 1 if n is None else n
        if not isinstance(count, int) or not 1 <= count <= MAX_ANSWERS:
            raise BadRequest(f"n is a number of answers from 1 to {MAX_ANSWERS}.")
        given = check_settings(settings)
        stop = given.pop("stop", None)
        if logprobs is not None:
            given.update(logprobs=True, top_logprobs=logprobs)
        ids = self._model.tokenize(prompt, specials=True) if isinstance(prompt, str) else list(prompt)
        if not ids:
            raise BadRequest("prompt has no tokens.")
        # The library reads settings as those of a chat; nothing else of this turn is used.
        turn = Turn(self._model.native, Request({**given, "messages": [{"role": "user", "content": ""}]}))
        pieces = self._run(turn, ids, _stop_list(stop), count, session)
        if stream:
            return CompletionStream(self._stream(pieces, model or self._model.name, prompt if echo and isinstance(prompt, str) else ""))
        answers: List[_Text] = []
        for answers, _, _ in pieces:
            pass
        before = (prompt if isinstance(prompt, str) else self._model.detokenize(ids)) if echo else ""
        choices = [CompletionChoice(i, before + a.text, a.finish, a.probs) for i, a in enumerate(answers)]
        return Completion(new_id("cmpl-"), int(time.time()), model or self._model.name, choices, _usage(answers))

    def _run(self, turn: Turn, ids: List[int], stop: List[bytes], count: int, session: Optional[Session]) -> Generator[Any, None, None]:
        """-> all answers so far, the number of the one that grew, and by what; the text None: it has ended"""
        answers: List[_Text] = []
        with turn:
            options = turn.options
            check_diffusion(self._model, options)
            base = options.sampling.seed if turn.has_seed else None
            if stop:
                options.stop = (c.c_char_p * len(stop))(*stop)
                options.n_stop = len(stop)
            for number in range(count):
                options.sampling.seed = random_seed() if base is None else base + number
                answer = _Text()
                answers.append(answer)
                own = session or self._model.take_session(ids)
                try:
                    for text in self._one(own, options, ids, answer):
                        yield answers, number, text
                finally:
                    if not session:
                        self._model.give_session(own)
                yield answers, number, None

    def _one(self, session: Session, options: s.GenerateOptions, ids: List[int], answer: _Text) -> Iterator[str]:
        before = session.stats.reused
        session.prefill(ids)
        answer.prompt_tokens, answer.cached_tokens = len(ids), session.stats.reused - before
        job = session.start("bz_session_generate", c.byref(options))
        try:
            for event in job.events():
                if event.kind != s.EVENT_TOKEN:
                    continue
                answer.generated += 1
                session.tokens.append(event.token)
                if options.log_probs:
                    answer.add_probs(self._model.native.pointer, event)
                text = event_text(event)
                answer.text += text
                if text:
                    yield text
            answer.finish = _FINISHES.get(job.finish, "length")
        finally:
            job.close()

    def _stream(self, pieces: Generator[Any, None, None], name: str, echo: str) -> Generator[Completion, None, None]:
        id_, created = new_id("cmpl-"), int(time.time())
        begun = -1
        with contextlib.closing(pieces):
            for answers, number, text in pieces:
                if echo and number != begun:
                    yield Completion(id_, created, name, [CompletionChoice(number, echo, None)])
                begun = number
                yield Completion(id_, created, name, [CompletionChoice(number, text or "", None if text else answers[number].finish)])


def _stop_list(stop: Any) -> List[bytes]:
    texts = [stop] if isinstance(stop, str) else list(stop or ())
    if not all(isinstance(t, str) and t and "\0" not in t for t in texts):
        raise BadRequest("stop is a text, or a list of texts, that are not empty and have no zero bytes.")
    return [t.encode() for t in texts]
