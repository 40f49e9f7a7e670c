"""Bezel runs Google's Gemma 4 models from GGUF files, in this process.

    import bezel

    with bezel.Model("gemma-4-E2B-it-Q4_K_M.gguf") as model:
        print(model.chat("Why is the sky blue?").choices[0].message.content)

Model opens a file. Client has the shape of the openai package's client, Llama that of llama-cpp-python's class.
"""
from ._library import version as _version
from ._turn import Grammar
from .batch import Batch, BatchError
from .chat import ChatStream
from .client import Client
from .completion import CompletionStream
from .errors import (Aborted, BadFile, BadRequest, BadSchema, BezelError, Closed, ContextFull, DeviceLost, MissingPackage, NoGPU, NotFound,
                     NumericError, OutOfMemory, UnsupportedModel)
from .llama import Llama, LlamaState
from .media import Pixels, Samples, Video
from .model import Model, ModelInfo, pebble
from .session import Session, SessionStats, Token
from .shapes import ChatCompletion, ChatCompletionChunk, Completion, Embeddings, Message

__version__ = _version()
__all__ = [
    "Aborted", "BadFile", "BadRequest", "BadSchema", "Batch", "BatchError", "BezelError", "ChatCompletion", "ChatCompletionChunk", "ChatStream",
    "Client", "Closed", "Completion", "CompletionStream", "ContextFull", "DeviceLost", "Embeddings", "Grammar", "Llama", "LlamaState", "Message",
    "MissingPackage", "Model", "ModelInfo", "NoGPU", "NotFound", "NumericError", "OutOfMemory", "Pixels", "Samples", "Session", "SessionStats",
    "Token", "UnsupportedModel", "Video", "pebble"]
