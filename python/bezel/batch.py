"""Many requests at once: their answers are generated in passes that they share."""
from __future__ import annotations

import contextlib
import ctypes as c
import queue
import threading
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import _structs as s
from ._library import lib
from ._native import Native
from ._turn import Answer, Request, Turn
from .chat import check_diffusion, check_settings, completion_of, make_request, run_turn
from .errors import BadRequest, BezelError, error_of
from .model import as_messages
from .session import int_array, random_seed

if TYPE_CHECKING:
    from .model import Model

_AHEAD = 4  # requests that wait for a slot


class BatchError(NamedTuple):
    """in place of an answer, with errors="return" """

    error: BezelError


class _Running(NamedTuple):
    number: int
    turn: Turn
    answer: Answer


class _Task(NamedTuple):
    number: int
    request: Request


_Result = Tuple[int, Any]


class _Worker:
    """Steps the batch. A thread of its own, because the callback must never be interrupted by Ctrl-C: an exception in a
    callback is lost, and a token with it."""

    def __init__(self, model: "Model", native: Native) -> None:
        self.thread = threading.Thread(target=self._run, name="bezel-batch", daemon=True)
        self._model, self._native = model, native
        self.tasks: "queue.SimpleQueue[Optional[_Task]]" = queue.SimpleQueue()
        self.results: "queue.SimpleQueue[_Result]" = queue.SimpleQueue()
        self.stop = threading.Event()
        self._running: Dict[int, _Running] = {}
        self._events: List[Tuple[int, int, int, Optional[BezelError]]] = []

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as e:  # reported for all that wait: the batch can only be closed
            self.results.put((-1, e))
        finally:
            with self._native.lock:
                for slot, one in self._running.items():
                    if not self._native.closed:
                        lib.bz_batch_stop(self._native.pointer, slot)
                    one.turn.native.close()

    def _work(self) -> None:
        callback = s.BatchFunction(self._on_event)
        waiting: Optional[_Task] = None
        while not self.stop.is_set():
            while not self.stop.is_set():
                if waiting is None:
                    try:
                        waiting = self.tasks.get(block=not self._running)
                    except queue.Empty:
                        break
                    if waiting is None:
                        return
                with self._native.lock:
                    free = lib.bz_batch_has_free(self._native.pointer)
                if not free:
                    break
                self._start(waiting)
                waiting = None
            if self._running and not self.stop.is_set():
                self._native.call("bz_batch_step", callback, None)
                self._take_events()

    def _start(self, task: _Task) -> None:
        turn = None
        try:
            turn = Turn(self._model.native, task.request)
            if turn.media_count or turn.options.log_probs:
                turn.native.close()
                self._answer_alone(task)
                return
            check_diffusion(self._model, turn.options)
            options, prompt = turn.options, turn.prompt()
            if not turn.has_seed:
                options.sampling.seed = random_seed()
            slot, answer = c.c_uint32(), Answer()
            answer.prompt_tokens = len(prompt)
            self._native.call("bz_batch_start", int_array(prompt), len(prompt), c.byref(options), c.byref(slot))
            self._running[slot.value] = _Running(task.number, turn, answer)
        except BezelError as e:
            if turn:
                turn.native.close()
            self.results.put((task.number, e))

    def _answer_alone(self, task: _Task) -> None:
        """images, sound and log-probabilities need a session"""
        answer = Answer()
        with contextlib.closing(run_turn(self._model, task.request, answer, 0, None)) as run:
            for _ in run:
                if self.stop.is_set():
                    return
        self.results.put((task.number, answer))

    def _on_event(self, _: Any, event: Any) -> None:
        e = event[0]
        error = error_of(lib.bz_status_name(e.error.code).decode(), e.error.text.decode("utf-8", "replace")) if e.error.code else None
        self._events.append((e.slot, e.token, e.finish, error))

    def _take_events(self) -> None:
        events, self._events = self._events, []
        for slot, token, finish, error in events:
            one = self._running.get(slot)
            if one is None:  # its answer ended before its tokens did
                continue
            try:
                done = self._feed(slot, one, token, finish, error)
            except BezelError as e:
                error, done = e, True
                self._stop_slot(slot)
            if done:
                one.turn.native.close()
                del self._running[slot]
                self.results.put((one.number, error or one.answer))

    def _feed(self, slot: int, one: _Running, token: int, finish: int, error: Optional[BezelError]) -> bool:
        """-> whether the answer has ended"""
        if error:
            return True
        if token >= 0:
            one.answer.generated += 1
            self._push(one, token)
        if finish == s.FINISH_NONE and not one.turn.ended:
            return False
        if finish == s.FINISH_NONE:
            self._stop_slot(slot)
        if not one.turn.ended:
            self._push(one, -1)
        one.answer.finish = one.turn.finish(finish)
        one.answer.cached_tokens = lib.bz_batch_slot_reused(self._native.pointer, slot)
        return True

    def _push(self, one: _Running, token: int) -> None:
        for part in one.turn.push(token):
            one.answer.add(part)

    def _stop_slot(self, slot: int) -> None:
        with self._native.lock:
            lib.bz_batch_stop(self._native.pointer, slot)


class Batch:
    """Made by Model.batch(). Slots are answers at the same time, up to 64; each takes the memory of a context."""

    def __init__(self, model: "Model", slots: int, context: int) -> None:
        if not 1 <= slots <= s.BATCH_MAX_SLOTS:
            raise BadRequest(f"A batch has from 1 to {s.BATCH_MAX_SLOTS} slots, not {slots}.")
        self._model, self._slots = model, slots
        options = s.BatchOptions(slots=slots, context=context or model.context, threads=model.threads, exact=model.exact, kv=model.kv)
        self._native = Native("batch", model.native.create("bz_batch_new", c.byref(options)), lib.bz_batch_free, model.native)
        self._busy = False

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._native.close()

    def answers(self, requests: Iterable[Any], *, ordered: bool = True, errors: str = "raise", **settings: Any) -> Iterator[Any]:
        """A ChatCompletion for each request: a text, a list of messages, or a dict with messages (or prompt) and settings of its own.
        Requests are taken from the iterable as slots become free. ordered=False: pairs (number, answer) as they are finished.
        errors="return": an error takes the place of its answer as a BatchError, and the others go on."""
        if errors not in ("raise", "return"):
            raise BadRequest(f"errors is 'raise' or 'return', not '{errors}'.")
        return self._answers(iter(requests), ordered, errors == "return", check_settings(settings))

    def _request(self, item: Any, settings: Dict[str, Any]) -> Request:
        if not isinstance(item, dict):
            return make_request(as_messages(item), settings)
        own = dict(item)
        prompt, messages = own.pop("prompt", None), own.pop("messages", None)
        if (prompt is None) == (messages is None):
            raise BadRequest("A request has either messages or prompt.")
        return make_request(as_messages(prompt if messages is None else messages), {**settings, **check_settings(own)})

    def _answers(self, requests: Iterator[Any], ordered: bool, returns_errors: bool, settings: Dict[str, Any]) -> Iterator[Any]:
        if self._busy:
            raise BadRequest("The batch is answering other requests; read those answers to their end or close them first.")
        worker = _Worker(self._model, self._native)
        self._busy = True
        worker.thread.start()
        try:
            for number, found in self._results(worker, requests, settings):
                if isinstance(found, BezelError) and returns_errors:
                    found = BatchError(found)
                elif isinstance(found, BaseException):
                    raise found
                else:
                    found = completion_of(self._model.name, [found])
                self._done[number] = found
                while ordered and self._next in self._done:
                    self._next += 1
                    yield self._done.pop(self._next - 1)
                if not ordered:
                    yield number, self._done.pop(number)
        finally:
            worker.stop.set()
            worker.tasks.put(None)
            worker.thread.join()
            self._busy = False

    def _results(self, worker: _Worker, requests: Iterator[Any], settings: Dict[str, Any]) -> Iterator[_Result]:
        """results as they come; feeds the worker"""
        self._done: Dict[int, Any] = {}
        self._next = 0
        given, in_work, more = 0, 0, True
        while True:
            while more and in_work < self._slots + _AHEAD:
                try:
                    item = next(requests)
                except StopIteration:
                    more = False
                    break
                number, given, in_work = given, given + 1, in_work + 1
                try:
                    worker.tasks.put(_Task(number, self._request(item, settings)))
                except BezelError as e:
                    worker.results.put((number, e))
            if in_work == 0:
                return
            result = worker.results.get()
            in_work -= 1
            yield result
