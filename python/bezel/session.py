"""One sequence of tokens with its caches."""
from __future__ import annotations

import ctypes as c
import os
import secrets
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from . import _structs as s
from ._library import lib
from ._native import Job, Native
from ._turn import Grammar
from .errors import BadRequest, MissingPackage

if TYPE_CHECKING:
    import numpy

    from .model import Model

    FloatArray = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


class Token(NamedTuple):
    id: int
    text: str  # to show now; whole characters, so it may be of earlier tokens or empty
    logprob: Optional[float]
    top: Dict[int, float]  # log-probabilities by token


class SessionStats(NamedTuple):
    position: int  # tokens held
    prefilled: int
    reused: int
    generated: int
    cache_bytes: int


def numpy_module() -> Any:
    try:
        import numpy
    except ImportError:
        raise MissingPackage("Arrays need the package numpy: install it (pip install numpy).") from None
    return numpy


def int_array(ids: Sequence[int]) -> Any:
    try:
        return (c.c_int32 * len(ids))(*ids)
    except TypeError:
        raise BadRequest("Tokens are a list of whole numbers.") from None


def random_seed() -> int:
    return secrets.randbits(63)


class Session:
    """Made by Model.session(). One thread at a time computes; another may close it."""

    def __init__(self, model: "Model", native: Native) -> None:
        self.model = model
        self.native = native
        self._job: Optional[Job] = None
        self._finalizer = weakref.finalize(self, native.close)
        # What it holds after its last job, to find the session that can reuse most of a prompt.
        self.tokens: List[int] = []

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._finalizer()

    @property
    def closed(self) -> bool:
        return self.native.closed

    # ---- jobs ---------------------------------------------------------------------------

    def start(self, name: str, *arguments: Any) -> Job:
        """a job of this session, which has one at a time"""
        if self._job and not self._job.closed:
            raise BadRequest("An answer of this session is still being generated; read it to its end or close it first.")
        self._job = Job(self.native, name, *arguments)
        return self._job

    def prefill(self, tokens: Sequence[int]) -> None:
        """makes the session hold exactly these tokens; a prefix that it holds already is not computed again"""
        self._prefill(tokens, s.LOGITS_LAST)

    def _prefill(self, tokens: Sequence[int], logits: int) -> List[Any]:
        rows: List[Any] = []
        options = s.PrefillOptions(logits=logits)
        job = self.start("bz_session_prefill", int_array(tokens), len(tokens), c.byref(options))
        try:
            for event in job.events():
                if event.kind == s.EVENT_LOGITS:
                    rows.append(self._rows(event.logits, event.rows))
        finally:
            job.close()
        self.tokens = list(tokens)
        return rows

    def _rows(self, pointer: Any, rows: int) -> Any:
        return numpy_module().ctypeslib.as_array(pointer, (rows, self.model.vocab)).copy()

    def prefill_logits(self, tokens: Sequence[int]) -> "FloatArray":
        """prefill, with the logits after every token that was computed: [tokens][vocabulary]; for a new session"""
        numpy = numpy_module()
        if self.stats.position:
            raise BadRequest("prefill_logits needs a new session: one that holds tokens would not compute them again.")
        if not len(tokens):
            raise BadRequest("prefill_logits needs at least one token.")
        found: "FloatArray" = numpy.concatenate(self._prefill(tokens, s.LOGITS_ALL))
        return found

    @property
    def logits(self) -> "FloatArray":
        """after the last token held: [vocabulary]"""
        numpy = numpy_module()
        with self.native.lock:
            pointer = lib.bz_session_logits(self.native.pointer)
            if not pointer:
                raise BadRequest("There are no logits: prefill tokens first (on a GPU they are there after a prefill, not after generating).")
            found: "FloatArray" = numpy.ctypeslib.as_array(pointer, (self.model.vocab,)).copy()
            return found

    def generate(self, *, max_tokens: int = 0, temperature: Optional[float] = None, top_k: int = 0, top_p: float = 0, min_p: float = 0,
                 repetition: float = 0, presence: float = 0, frequency: float = 0, seed: Optional[int] = None, ignore_end: bool = False,
                 stop: Sequence[str] = (), logprobs: bool = False, top_logprobs: int = 0, grammar: Optional[Grammar] = None,
                 draft: Optional[str] = None) -> Iterator[Token]:
        """tokens after those held, as they come. Zero and None: what the file recommends. draft "lookup" guesses
        tokens ahead from the text so far, "model" with the model's drafter, which is the default where there is one; "off" does not"""
        drafts = {None: s.DRAFT_DEFAULT, "off": s.DRAFT_OFF, "lookup": s.DRAFT_LOOKUP, "model": s.DRAFT_MODEL}
        if draft not in drafts:
            raise BadRequest(f"draft is 'model', 'lookup' or 'off', not '{draft}'.")
        sampling = s.Sampling(temperature=0 if temperature is None else temperature if temperature > 0 else -1, top_k=top_k, top_p=top_p,
                              min_p=min_p, repetition=repetition, presence=presence, frequency=frequency,
                              seed=random_seed() if seed is None else seed)
        options = s.GenerateOptions(max_tokens=max_tokens, ignore_end=ignore_end, log_probs=logprobs or top_logprobs > 0,
                                    top_log_probs=top_logprobs, sampling=sampling,
                                    draft=drafts[draft])
        if stop:
            texts = [text.encode() for text in ([stop] if isinstance(stop, str) else stop)]
            options.stop = (c.c_char_p * len(texts))(*texts)
            options.n_stop = len(texts)
        if grammar:
            options.grammar = grammar.native.pointer
        job = self.start("bz_session_generate", c.byref(options))
        return self._tokens(job, logprobs or top_logprobs > 0)

    def _tokens(self, job: Job, logprobs: bool) -> Iterator[Token]:
        try:
            for event in job.events():
                if event.kind == s.EVENT_TOKEN:
                    self.tokens.append(event.token)
                    yield Token(event.token, event_text(event), float(event.log_prob) if logprobs else None,
                                {event.top[i].token: float(event.top[i].log_prob) for i in range(event.n_top)})
        finally:
            job.close()

    # ---- state --------------------------------------------------------------------------

    @property
    def stats(self) -> SessionStats:
        with self.native.lock:
            stats = lib.bz_session_get_stats(self.native.pointer)
        return SessionStats(stats.position, stats.prefilled, stats.reused, stats.generated, stats.cache_bytes)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """writes what the session holds to a file that only its owner can read"""
        self.native.call("bz_session_save", os.fsencode(path))

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """takes over what a session of the same model saved"""
        self.native.call("bz_session_load", os.fsencode(path))
        self.tokens = []

    def fork(self) -> "Session":
        """another session that holds the same and continues on its own"""
        pointer = self.native.create("bz_session_fork")
        fork = Session(self.model, Native("session", pointer, lib.bz_session_free, self.model.native))
        fork.tokens = list(self.tokens)
        return fork


def event_text(event: s.Event) -> str:
    return c.string_at(event.text, event.text_len).decode("utf-8", "replace") if event.text_len else ""
