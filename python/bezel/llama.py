"""Llama: the shape of llama-cpp-python's class, over a Model. Answers are dicts."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Union

from .chat import Chat
from .completion import TextCompletions
from .errors import BadRequest
from .model import Model
from .session import Session, numpy_module

if TYPE_CHECKING:
    import os

Json = Dict[str, Any]
# Settings of opening that say how llama.cpp computes; they cannot change an answer here.
_WITHOUT_EFFECT = frozenset(("verbose", "n_batch", "n_ubatch", "use_mmap", "use_mlock", "flash_attn", "offload_kqv", "main_gpu", "n_threads_batch",
                             "logits_all", "numa", "last_n_tokens_size"))


class LlamaState:
    """What save_state returns: a session of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def close(self) -> None:
        self.session.close()


class Llama:
    """model_path: a GGUF file. n_gpu_layers: 0 is the CPU, any other number a GPU, None the GPU if there is one. chat_handler and
    chat_format are refused: the format is the model's own. mmproj: its file for images and sound."""

    def __init__(self, model_path: Union[str, "os.PathLike[str]"], *, n_ctx: int = 0, n_threads: Optional[int] = None,
                 n_gpu_layers: Optional[int] = None, seed: Optional[int] = None, embedding: bool = False,
                 mmproj: Union[str, "os.PathLike[str]", None] = None, **settings: Any) -> None:
        for key, value in settings.items():
            if key not in _WITHOUT_EFFECT and value is not None:
                raise TypeError(f"Llama has no setting '{key}'; it has n_ctx, n_threads, n_gpu_layers, seed, embedding and mmproj.")
        device = "auto" if n_gpu_layers is None else "gpu" if n_gpu_layers else "cpu"
        self.model = Model(model_path, mmproj=mmproj, device=device, context=n_ctx, threads=n_threads or 0)
        if embedding and not self.model.info.embedding:
            self.model.close()
            raise BadRequest(f"{self.model.name} writes text and computes no embeddings; open EmbeddingGemma for those.")
        self.model_path = self.model.path
        self._seed = None if seed is None or seed < 0 or seed == 0xFFFFFFFF else seed
        self._chat, self._text = Chat(self.model), TextCompletions(self.model)
        self._own: Optional[Session] = None

    def __enter__(self) -> "Llama":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.model.close()

    # ---- answers ------------------------------------------------------------------------

    def _settings(self, settings: Json) -> Json:
        names = {"repeat_penalty": "repetition_penalty", "present_penalty": "presence_penalty"}
        found = {names.get(key, key): value for key, value in settings.items() if value is not None}
        # A negative or zero limit means none.
        if found.get("max_tokens", 1) <= 0:
            del found["max_tokens"]
        if self._seed is not None:
            found.setdefault("seed", self._seed)
        return found

    def create_chat_completion(self, messages: Any, *, stream: bool = False, **settings: Any) -> Union[Json, Iterator[Json]]:
        """a chat.completion, or with stream an iterator of its chunks; settings as those of OpenAI's API"""
        given = self._settings(settings)
        if stream:
            chunks = self._chat.completions.create(messages=messages, stream=True, **given)
            return (chunk.to_dict() for chunk in chunks)
        return self._chat.completions.create(messages=messages, **given).to_dict()

    def create_completion(self, prompt: Union[str, List[int]], *, max_tokens: Optional[int] = 16, stream: bool = False, echo: bool = False,
                          logprobs: Optional[int] = None, suffix: Optional[str] = None, **settings: Any) -> Union[Json, Iterator[Json]]:
        """text that goes on from the prompt; max_tokens None or 0: until it ends"""
        if suffix:
            raise BadRequest("suffix is not supported: these models write from left to right.")
        given = self._settings({**settings, "max_tokens": max_tokens})
        found = self._text.create(prompt=prompt, stream=stream, echo=echo, logprobs=logprobs, **given)
        return (piece.to_dict() for piece in found) if stream else found.to_dict()  # type: ignore[union-attr]

    def __call__(self, prompt: Union[str, List[int]], **settings: Any) -> Union[Json, Iterator[Json]]:
        return self.create_completion(prompt, **settings)

    def create_embedding(self, input: Union[str, List[str]], model: Optional[str] = None) -> Json:
        from .client import Client

        return Client(self.model).embeddings.create(input=input, model=model).to_dict()

    def embed(self, input: Union[str, List[str]], truncate: bool = True) -> Union[List[float], List[List[float]]]:
        found = self.model.embed([input] if isinstance(input, str) else input, truncate=truncate)
        return found[0] if isinstance(input, str) else found

    # ---- tokens -------------------------------------------------------------------------

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> List[int]:
        return self.model.tokenize(text.decode("utf-8"), bos=add_bos, specials=special)

    def detokenize(self, tokens: List[int], special: bool = False) -> bytes:
        return self.model.detokenize(tokens, specials=special).encode()

    def n_ctx(self) -> int:
        return self.model.context or min(self.model.info.context, 32768)

    def n_vocab(self) -> int:
        return self.model.vocab

    # ---- the model's session, token by token ----------------------------------------------

    @property
    def _session(self) -> Session:
        if self._own is None or self._own.closed:
            self._own = self.model.session()
        return self._own

    def reset(self) -> None:
        if self._own:
            self._own.close()
        self._own = None

    def eval(self, tokens: List[int]) -> None:
        """goes on with these tokens after those of the calls before"""
        self._session.prefill([*self._session.tokens, *tokens])

    @property
    def n_tokens(self) -> int:
        return self._session.stats.position

    @property
    def scores(self) -> Any:
        """logits after the last token: [1][vocabulary]"""
        return numpy_module().atleast_2d(self._session.logits)

    def save_state(self) -> LlamaState:
        return LlamaState(self._session.fork())

    def load_state(self, state: LlamaState) -> None:
        self.reset()
        self._own = state.session.fork()
