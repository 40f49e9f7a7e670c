"""A client in the shape of the openai package's, over a model in this process."""
from __future__ import annotations

import base64
import ctypes as c
import os
import time
from typing import TYPE_CHECKING, Any, List, Optional, Union

from .chat import Chat
from .completion import TextCompletions
from .errors import BadRequest, NotFound
from .model import Model
from .shapes import Embedding, Embeddings, EmbeddingUsage, ModelCard, ModelList

if TYPE_CHECKING:
    from types import TracebackType


class _Embeddings:
    def __init__(self, model: Model) -> None:
        self._model = model

    def create(self, *, input: Any, model: Optional[str] = None, dimensions: Optional[int] = None, encoding_format: Optional[str] = None,
               user: Optional[str] = None, task: Optional[str] = None, title: Optional[str] = None) -> Embeddings:
        if encoding_format not in (None, "float", "base64"):
            raise BadRequest(f"encoding_format is float or base64, not '{encoding_format}'.")
        one = isinstance(input, str) or (isinstance(input, (list, tuple)) and bool(input) and isinstance(input[0], int))
        texts = [input] if one else list(input)

        def take(vectors: Any, n: int, width: int, counts: List[int]) -> Embeddings:
            def vector(i: int) -> Any:
                if encoding_format == "base64":
                    return base64.b64encode(c.string_at(c.addressof(vectors.contents) + 4 * i * width, 4 * width)).decode()
                return vectors[i * width:(i + 1) * width]
            total = sum(counts)
            return Embeddings([Embedding(i, vector(i)) for i in range(n)], model or self._model.name, EmbeddingUsage(total, total))
        found: Embeddings = self._model.embed_job(texts, dimensions or 0, False, task, title, take)
        return found


class _Models:
    def __init__(self, model: Model) -> None:
        self._card = ModelCard(model.name, int(time.time()))

    def list(self) -> ModelList:
        return ModelList([self._card])

    def retrieve(self, model: str) -> ModelCard:
        if model != self._card.id:
            raise NotFound(f"There is no model '{model}'; this client has '{self._card.id}'.")
        return self._card


class Client:
    """chat.completions, completions, embeddings and models, as `openai.OpenAI` has them. model: a path, or an opened Model,
    which stays the caller's. Other settings are those of Model."""

    def __init__(self, model: Union[Model, str, "os.PathLike[str]"], **settings: Any) -> None:
        if isinstance(model, Model) and settings:
            raise TypeError(f"'{next(iter(settings))}' is a setting of opening a model, and this one is open.")
        self._owns = not isinstance(model, Model)
        self.model = model if isinstance(model, Model) else Model(model, **settings)
        self.chat = Chat(self.model)
        self.completions = TextCompletions(self.model)
        self.embeddings = _Embeddings(self.model)
        self.models = _Models(self.model)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Optional["TracebackType"]) -> None:
        self.close()

    def close(self) -> None:
        if self._owns:
            self.model.close()
