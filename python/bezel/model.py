"""An opened model, and what can be asked of it."""
from __future__ import annotations

import ctypes as c
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _structs as s
from ._library import create, lib
from ._native import Job, Native
from .errors import Aborted, BadRequest, BezelError, NotFound
from .media import Encoder
from .session import Session, int_array, numpy_module

if TYPE_CHECKING:
    from .batch import Batch
    from .chat import ChatStream
    from .session import FloatArray
    from .shapes import ChatCompletion

Progress = Callable[[int, int], None]
PEBBLE = "pebble"


class ModelInfo(NamedTuple):
    name: str
    architecture: str
    file_type: str
    bytes: int
    parameters: int
    layers: int
    width: int
    vocab: int
    context: int
    window: int
    experts: int
    experts_used: int
    canvas: int  # 0: not a diffusion model
    embedding: int  # 0: the model writes text


def _choose_device(wanted: str) -> Tuple[str, str]:
    """-> the device to open, and why"""
    if wanted in ("cpu", "gpu"):
        return wanted, "chosen"
    if wanted != "auto":
        raise BadRequest(f"'{wanted}' is not a device; use auto, cpu or gpu.")
    try:
        gpu = create("bz_debug_gpu_open")
    except BezelError as e:
        return "cpu", str(e)
    info = lib.bz_debug_gpu_get_info(gpu)
    lib.bz_debug_gpu_close(gpu)
    name = info.adapter.decode("utf-8", "replace")
    return ("cpu", f"The GPU {name} is emulated on the CPU.") if info.kind == b"cpu" else ("gpu", name)


def pebble() -> str:
    """the path of the tiny model that comes with the package"""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "pebble.gguf")


class Model:
    """Opens a GGUF file, or "pebble", the tiny model that comes with the package.

    mmproj: the file of the vision and audio encoders of a model in two files. drafter: the file of its drafter, which makes
    answers faster. device: "auto" takes the GPU if there is one
    that is not emulated and the model opens there, else the CPU; `device` and `device_reason` say what it was. context:
    tokens of a conversation (0: the model's limit, at most 32,768). threads: 0 is one per processor. sessions: answers that
    can be open at the same time. kv: how keys and values are kept, "f16", "q8" or "q4". on_progress(done, total) is called with bytes while they are copied to a GPU.

    Threads may share a model. Close it (`with Model(...) as model`) to free its memory at once."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, mmproj: Union[str, "os.PathLike[str]", None] = None,
                 drafter: Union[str, "os.PathLike[str]", None] = None, device: str = "auto", context: int = 0, threads: int = 0, sessions: int = 4, exact: bool = False, kv: Optional[str] = None, ple: Optional[str] = None, gpu_memory: int = 0,
                 image_tokens: int = 0, frame_tokens: int = 0, video_frames: int = s.VIDEO_FRAMES,
                 on_progress: Optional[Progress] = None) -> None:
        if sessions < 1:
            raise BadRequest(f"A model has at least 1 session, not {sessions}.")
        self.path = pebble() if path == PEBBLE else os.fspath(path)
        if path == PEBBLE and not os.path.exists(self.path):
            raise NotFound("This package was made without the model pebble; give the path of a GGUF file.")
        self.context, self.threads, self.exact, self.kv = context, threads, exact, kv.encode() if kv else None
        self._media_sizes = (image_tokens, frame_tokens, video_frames)
        self.device, self.device_reason = _choose_device(device)
        options = s.OpenOptions(device=self.device.encode(), ple=ple.encode() if ple else None, gpu_memory=gpu_memory,
                                draft=os.fsencode(drafter) if drafter else None)
        try:
            pointer = self._open(options, mmproj, on_progress)
        except (Aborted, KeyboardInterrupt):
            raise
        except BezelError as e:
            if device != "auto" or self.device == "cpu" or e.code in ("bad_file", "not_found", "bad_request", "unsupported_model"):
                raise
            self.device, self.device_reason = "cpu", str(e)
            options.device = b"cpu"
            pointer = self._open(options, mmproj, on_progress)
        self.native = Native("model", pointer, lib.bz_model_free)
        self._finalizer = weakref.finalize(self, self.native.close)
        self.info = self._read_info()
        self.vocab = self.info.vocab
        self.name = os.path.splitext(os.path.basename(self.path))[0]
        self._pool = _Sessions(sessions)
        self._making = threading.Lock()  # of the encoder and the embedder, when they are first needed
        self._encoder: Optional[Encoder] = None
        self._embedder: Optional[Native] = None

    def _open(self, options: s.OpenOptions, mmproj: Union[str, "os.PathLike[str]", None], on_progress: Optional[Progress]) -> int:
        """in a thread: signals are handled in the main thread, which waits meanwhile and ends the work after Ctrl-C"""
        stop = threading.Event()
        failure: List[BaseException] = []
        opened: List[int] = []

        def on_event(_: Any, event: Any) -> int:
            try:
                if on_progress and event[0].kind == s.EVENT_PROGRESS:
                    on_progress(event[0].done, event[0].total)
            except BaseException as e:
                failure.append(e)
                return 1
            return int(stop.is_set())

        host = s.Host(event=s.EventFunction(on_event))
        options.host = c.pointer(host)

        def work() -> None:
            try:
                opened.append(create("bz_model_open_file", os.fsencode(self.path), os.fsencode(mmproj) if mmproj else None, c.byref(options)))
            except BaseException as e:
                failure.append(e)

        thread = threading.Thread(target=work, name="bezel-open", daemon=True)
        thread.start()
        try:
            thread.join()
        except BaseException:
            stop.set()
            thread.join()
            for pointer in opened:
                lib.bz_model_free(pointer)
            raise
        if failure:
            raise failure[0]
        return opened[0]

    def _read_info(self) -> ModelInfo:
        info = s.ModelInfo()
        self.native.call("bz_model_get_info", c.byref(info))
        values = [getattr(info, name) for name in ModelInfo._fields]
        return ModelInfo._make(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values)

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """frees the model, and its sessions and batches first; waits for a step (10 ms) of other threads"""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return self.native.closed

    def takes(self, kind: str) -> bool:
        """whether requests may have this: image, audio or video"""
        kinds = {"image": s.MEDIA_IMAGE, "audio": s.MEDIA_AUDIO, "video": s.MEDIA_VIDEO}
        if kind not in kinds:
            raise BadRequest(f"'{kind}' is not a kind of media; use image, audio or video.")
        return bool(lib.bz_model_takes(self.native.pointer, kinds[kind]))

    # ---- tokens -------------------------------------------------------------------------

    def tokenize(self, text: str, *, bos: bool = True, specials: bool = False) -> List[int]:
        """specials: texts of control tokens become those tokens; never for text from outside"""
        data, err = text.encode("utf-8"), s.Error()
        ids = (c.c_int32 * (len(data) + 2))()
        n = lib.bz_tokenize(self.native.pointer, data, len(data), specials, bos, ids, len(ids), c.byref(err))
        if n > len(ids):
            ids = (c.c_int32 * n)()
            n = lib.bz_tokenize(self.native.pointer, data, len(data), specials, bos, ids, n, c.byref(err))
        if n < 0:
            raise BadRequest(err.text.decode("utf-8", "replace"))
        return ids[:n]

    def detokenize(self, tokens: Sequence[int], *, specials: bool = False) -> str:
        stream, out = s.TextStream(), c.create_string_buffer(s.TEXT_MAX)
        found = b""
        for token in [*tokens, -1]:
            if token != -1 and not 0 <= token < self.vocab:
                raise BadRequest(f"{token} is not a token of this model, whose tokens are from 0 to {self.vocab - 1}.")
            n = lib.bz_text_push(c.byref(stream), self.native.pointer, token, specials, out)
            found += out.raw[:n]
        return found.decode("utf-8", "replace")

    # ---- sessions -----------------------------------------------------------------------

    def session(self, *, context: int = 0, threads: int = 0, exact: Optional[bool] = None, snapshots: int = 0) -> Session:
        """a sequence of tokens of its own; 0 and None are the model's settings"""
        options = s.SessionOptions(context=context or self.context, threads=threads or self.threads,
                                   exact=self.exact if exact is None else exact, snapshots=snapshots, kv=self.kv)
        return Session(self, Native("session", self.native.create("bz_session_new", c.byref(options)), lib.bz_session_free, self.native))

    def take_session(self, tokens: Sequence[int]) -> Session:
        """one of the model's own, preferably one that holds the beginning of these tokens; give it back after the answer"""
        return self._pool.take(self, tokens)

    def give_session(self, session: Session) -> None:
        self._pool.give(session)

    def logits(self, tokens: Sequence[int], *, exact: Optional[bool] = None) -> "FloatArray":
        """after every token: [tokens][vocabulary]"""
        numpy_module()
        with self.session(context=max(len(tokens) + 1, 2), exact=exact) as session:
            return session.prefill_logits(tokens)

    # ---- answers ------------------------------------------------------------------------

    def chat(self, messages: Any, **settings: Any) -> "ChatCompletion":
        """answers messages in OpenAI's form (a text is one message of the user). Settings are those of OpenAI's API, and grammar,
        regex, choices, think, top_k ...; docs/PYTHON.md lists them"""
        from .chat import Chat

        answer: "ChatCompletion" = Chat(self).completions.create(messages=as_messages(messages), **settings)
        return answer

    def stream(self, messages: Any, **settings: Any) -> "ChatStream":
        """the same in chunks, as they come"""
        from .chat import Chat

        stream: "ChatStream" = Chat(self).completions.create(messages=as_messages(messages), stream=True, **settings)
        return stream

    def batch(self, slots: int = 4, *, context: int = 0) -> "Batch":
        """many requests at once; see Batch"""
        from .batch import Batch

        return Batch(self, slots, context)

    def answer_all(self, requests: Iterable[Any], *, slots: int = 4, context: int = 0, ordered: bool = True, errors: str = "raise",
                   **settings: Any) -> Iterator[Any]:
        """answers many requests (texts, lists of messages, or dicts) in passes that they share; see Batch.answers"""
        with self.batch(slots, context=context) as batch:
            yield from batch.answers(requests, ordered=ordered, errors=errors, **settings)

    def encode(self, kind: int, source: Any) -> Any:
        with self._making:
            if self._encoder is None:
                self._encoder = Encoder(self, *self._media_sizes)
        return self._encoder.encode(kind, source)

    # ---- embeddings ---------------------------------------------------------------------

    def embed_job(self, texts: Sequence[Any], dimensions: int, truncate: bool, task: Optional[str], title: Optional[str],
                  take: Callable[[Any, int, int, List[int]], Any]) -> Any:
        """runs `take` (vectors, how many, numbers of each, tokens of each) on vectors that are valid during that call"""
        with self._making:
            if self._embedder is None:
                options = s.EmbedderOptions(threads=self.threads, exact=self.exact)
                pointer = self.native.create("bz_embedder_new", c.byref(options))
                self._embedder = Native("embedder", pointer, lib.bz_embedder_free, self.native)
        inputs = (s.EmbedInput * max(len(texts), 1))()
        for i, text in enumerate(texts):
            if isinstance(text, str):
                data = text.encode()
                inputs[i].text, inputs[i].len = data, len(data)
            else:
                inputs[i].ids, inputs[i].n_ids = int_array(text), len(text)
        options_ = s.EmbedOptions(dimensions=dimensions, truncate=truncate, task=task.encode() if task else None,
                                  title=title.encode() if title else None)
        with self._embedder.lock:
            job = Job(self._embedder, "bz_embed_texts", inputs, len(texts), c.byref(options_))
            try:
                job.run()
                n, width, n_counts = c.c_size_t(), c.c_uint32(), c.c_size_t()
                vectors = lib.bz_job_vectors(job.pointer, c.byref(n), c.byref(width))
                counts = lib.bz_job_vector_tokens(job.pointer, c.byref(n_counts))
                return take(vectors, n.value, width.value, counts[:n_counts.value] if n_counts.value else [])
            finally:
                job.close()

    def embed(self, texts: Sequence[Any], *, dimensions: int = 0, truncate: bool = False, task: Optional[str] = None,
              title: Optional[str] = None) -> List[List[float]]:
        """a vector of length 1 for each text (or list of tokens). task: "query", "document" ... puts the model's words for it before
        every text; title: of the documents"""
        def take(vectors: Any, n: int, width: int, _: List[int]) -> List[List[float]]:
            return [vectors[i * width:(i + 1) * width] for i in range(n)]
        found: List[List[float]] = self.embed_job(texts, dimensions, truncate, task, title, take)
        return found

    def vectors(self, texts: Sequence[Any], *, dimensions: int = 0, truncate: bool = False, task: Optional[str] = None,
                title: Optional[str] = None) -> "FloatArray":
        """the same as an array: [texts][dimensions]"""
        numpy = numpy_module()

        def take(vectors: Any, n: int, width: int, _: List[int]) -> Any:
            return numpy.ctypeslib.as_array(vectors, (n, width)).copy()
        found: "FloatArray" = self.embed_job(texts, dimensions, truncate, task, title, take)
        return found


def as_messages(messages: Any) -> Any:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else messages


def same_beginning(a: Sequence[int], b: Sequence[int]) -> int:
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return n


class _Sessions:
    """The sessions of a model's answers. They keep what they have computed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._idle: List[Session] = []
        self._owners: Dict[int, int] = {}  # threads that began the answers in progress, by session
        self._opening = 0

    def take(self, model: Model, tokens: Sequence[int]) -> Session:
        with self._changed:
            while not self._idle and len(self._owners) + self._opening >= self._most:
                if self._owners and all(owner == threading.get_ident() for owner in self._owners.values()) and not self._opening:
                    raise BadRequest(f"{len(self._owners)} streams of this thread are open, as many as the model has sessions: read them to their "
                                     "end or close them, or open the model with more 'sessions'.")
                self._changed.wait()
            best = max(self._idle, key=lambda session: same_beginning(session.tokens, tokens), default=None)
            fits = best is not None and (same_beginning(best.tokens, tokens) > 0 or not best.tokens)
            if best is not None and (fits or len(self._owners) + len(self._idle) + self._opening >= self._most):
                self._idle.remove(best)
                self._owners[id(best)] = threading.get_ident()
                return best
            self._opening += 1
        session = None
        try:
            session = model.session()
        finally:
            with self._changed:
                self._opening -= 1
                if session:
                    self._owners[id(session)] = threading.get_ident()
                self._changed.notify()
        return session

    def give(self, session: Session) -> None:
        with self._changed:
            self._owners.pop(id(session), None)
            if not session.closed:
                self._idle.append(session)
            self._changed.notify()


def attach_media(model: Model, turn: Any) -> None:
    """encodes and attaches the media of a turn"""
    for i in range(turn.media_count):
        kind, source = turn.media_source(i)
        media = model.encode(kind, source)
        try:
            turn.attach(i, media.native.pointer)
        finally:
            media.close()

