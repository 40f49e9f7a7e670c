"""Owners of the library's objects: closed once, children first, never while another thread is in a call."""
from __future__ import annotations

import ctypes as c
import threading
import time
from typing import Any, Callable, Iterator, List, Optional

from . import _structs as s
from ._library import lib
from .errors import BezelError, Closed, error_of


class Native:
    """One object of the library. A child (the session of a model, the job of a session) is freed before its parent, and
    the parent cannot be collected before the child. `lock` is held during calls."""

    def __init__(self, what: str, pointer: int, free: Callable[[int], None], parent: Optional["Native"] = None,
                 shares_lock: bool = False) -> None:
        self.what = what
        self._pointer: Optional[int] = pointer
        self._free = free
        self._parent = parent
        self._children: List[Native] = []
        # A job and its session are one timeline.
        self.lock: threading.RLock = parent.lock if parent and shares_lock else threading.RLock()
        if parent:
            with parent.lock:
                if parent.closed:
                    free(pointer)
                    raise Closed(f"The {parent.what} is closed.")
                parent._children.append(self)

    @property
    def closed(self) -> bool:
        return self._pointer is None

    @property
    def pointer(self) -> int:
        """for a call, with the lock held if another thread may close it"""
        if self._pointer is None:
            raise Closed(f"The {self.what} is closed.")
        return self._pointer

    def close(self) -> None:
        for child in list(self._children):
            child.close()
        with self.lock:
            pointer, self._pointer = self._pointer, None
            if pointer is not None:
                self._free(pointer)
        if self._parent and self in self._parent._children:
            self._parent._children.remove(self)

    def call(self, name: str, *arguments: Any) -> None:
        """a function of this object that reports errors"""
        err = s.Error()
        with self.lock:
            status = getattr(lib, name)(self.pointer, *arguments, c.byref(err))
        if status != 0:
            raise error_of(lib.bz_status_name(err.code or status).decode(), err.text.decode("utf-8", "replace"))

    def create(self, name: str, *arguments: Any) -> int:
        """a function whose first argument receives an object made from this one"""
        err, out = s.Error(), s.Pointer()
        with self.lock:
            status = getattr(lib, name)(c.byref(out), self.pointer, *arguments, c.byref(err))
        if status != 0:
            raise error_of(lib.bz_status_name(err.code or status).decode(), err.text.decode("utf-8", "replace"))
        return out.value or 0


class Job(Native):
    """Steps of about 10 ms, between which Python can raise KeyboardInterrupt, end the job, or let other threads work."""

    def __init__(self, parent: Native, start: str, *arguments: Any) -> None:
        err, out = s.Error(), s.Pointer()
        with parent.lock:
            status = getattr(lib, start)(parent.pointer, *arguments, c.byref(out), c.byref(err))
            if status != 0:
                raise error_of(lib.bz_status_name(err.code or status).decode(), err.text.decode("utf-8", "replace"))
            super().__init__("job", out.value or 0, lib.bz_job_free, parent, shares_lock=True)

    def events(self) -> Iterator[s.Event]:
        """until it is done; an event is valid until the next one is taken"""
        need = s.Need()
        waiting = 0.0
        while True:
            with self.lock:
                progress = lib.bz_job_step(self.pointer, c.byref(need))
            if progress == s.JOB_EVENT:
                yield need.event
            elif progress == s.JOB_DONE:
                return
            elif progress == s.JOB_ERROR:
                raise error_of(lib.bz_status_name(need.error.code).decode(), need.error.text.decode("utf-8", "replace"))
            elif progress == s.JOB_NEED_BYTES:
                raise BezelError("The library asked for bytes of a file that it has mapped.", "bad_file")
            if progress != s.JOB_NEED_GPU:
                waiting = 0.0
                continue
            # A wait that has lasted longer is looked at less often, from 20 to 200 microseconds.
            now = time.monotonic()
            waiting = waiting or now
            time.sleep(min(max((now - waiting) / 64, 20e-6), 200e-6))

    def run(self, on_event: Optional[Callable[[s.Event], None]] = None) -> None:
        for event in self.events():
            if on_event:
                on_event(event)

    @property
    def finish(self) -> int:
        with self.lock:
            return int(lib.bz_job_finish(self.pointer))
