"""Answers in OpenAI's shapes. Every object has attributes and can be read like a dict: answer.choices[0] is answer["choices"][0]."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, Iterator, List, Optional


class Shape:
    """What the dataclasses below share."""

    def to_dict(self) -> Dict[str, Any]:
        """as OpenAI's API writes it: without fields that are not in this answer"""
        found: Dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not None or not field.metadata.get("optional"):
                found[field.name] = _plain(value)
        return found

    # The name that pydantic's models, and so the openai package's, have for it.
    def model_dump(self) -> Dict[str, Any]:
        return self.to_dict()

    def __getitem__(self, key: str) -> Any:
        if key not in self.keys():
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key) if key in self.keys() else default

    def keys(self) -> List[str]:
        return [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


def _plain(value: Any) -> Any:
    if isinstance(value, Shape):
        return value.to_dict()
    return [_plain(v) for v in value] if isinstance(value, list) else value


def optional() -> Any:
    """a field that is left out of to_dict() while it is None"""
    return dataclasses.field(default=None, metadata={"optional": True})


@dataclasses.dataclass
class Function(Shape):
    name: str
    arguments: str


@dataclasses.dataclass
class ToolCall(Shape):
    id: str
    function: Function
    type: str = "function"


@dataclasses.dataclass
class ToolCallDelta(Shape):
    index: int
    id: str
    function: Function
    type: str = "function"


@dataclasses.dataclass
class TopLogprob(Shape):
    token: str
    logprob: float
    bytes: Optional[List[int]]


@dataclasses.dataclass
class TokenLogprob(Shape):
    token: str
    logprob: float
    bytes: Optional[List[int]]
    top_logprobs: List[TopLogprob]


@dataclasses.dataclass
class ChoiceLogprobs(Shape):
    content: List[TokenLogprob]


@dataclasses.dataclass
class Message(Shape):
    content: Optional[str]
    role: str = "assistant"
    refusal: Optional[str] = None
    reasoning_content: Optional[str] = optional()
    tool_calls: Optional[List[ToolCall]] = optional()
    parsed: Any = optional()


@dataclasses.dataclass
class Choice(Shape):
    index: int
    message: Message
    finish_reason: str
    logprobs: Optional[ChoiceLogprobs] = None


@dataclasses.dataclass
class PromptTokensDetails(Shape):
    cached_tokens: int


@dataclasses.dataclass
class Usage(Shape):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


@dataclasses.dataclass
class ChatCompletion(Shape):
    id: str
    created: int
    model: str
    choices: List[Choice]
    usage: Usage
    object: str = "chat.completion"


@dataclasses.dataclass
class Delta(Shape):
    role: Optional[str] = optional()
    content: Optional[str] = optional()
    reasoning_content: Optional[str] = optional()
    tool_calls: Optional[List[ToolCallDelta]] = optional()


@dataclasses.dataclass
class ChunkChoice(Shape):
    index: int
    delta: Delta
    finish_reason: Optional[str] = None
    logprobs: Optional[ChoiceLogprobs] = None


@dataclasses.dataclass
class ChatCompletionChunk(Shape):
    id: str
    created: int
    model: str
    choices: List[ChunkChoice]
    usage: Optional[Usage] = optional()
    object: str = "chat.completion.chunk"


@dataclasses.dataclass
class CompletionLogprobs(Shape):
    tokens: List[str]
    token_logprobs: List[float]
    top_logprobs: List[Dict[str, float]]
    text_offset: List[int]


@dataclasses.dataclass
class CompletionChoice(Shape):
    index: int
    text: str
    finish_reason: Optional[str]
    logprobs: Optional[CompletionLogprobs] = None


@dataclasses.dataclass
class Completion(Shape):
    id: str
    created: int
    model: str
    choices: List[CompletionChoice]
    usage: Optional[Usage] = optional()
    object: str = "text_completion"


@dataclasses.dataclass
class Embedding(Shape):
    index: int
    embedding: Any  # list of floats, or base64 if that was asked for
    object: str = "embedding"


@dataclasses.dataclass
class EmbeddingUsage(Shape):
    prompt_tokens: int
    total_tokens: int


@dataclasses.dataclass
class Embeddings(Shape):
    data: List[Embedding]
    model: str
    usage: EmbeddingUsage
    object: str = "list"


@dataclasses.dataclass
class ModelCard(Shape):
    id: str
    created: int
    owned_by: str = "bezel"
    object: str = "model"


@dataclasses.dataclass
class ModelList(Shape):
    data: List[ModelCard]
    object: str = "list"
