"""Errors of the library, as exceptions with its stable codes."""
from __future__ import annotations

from typing import Dict, Type


class BezelError(Exception):
    """One sentence that names the thing, the cause and the way out; `code` is the stable name of the kind of error."""

    code: str = "error"

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        if code:
            self.code = code


class OutOfMemory(BezelError, MemoryError):
    code = "out_of_memory"


class BadFile(BezelError):
    code = "bad_file"


class UnsupportedModel(BezelError):
    code = "unsupported_model"


class NotFound(BezelError, FileNotFoundError):
    code = "not_found"


class BadRequest(BezelError, ValueError):
    code = "bad_request"


class ContextFull(BezelError):
    code = "context_full"


class Aborted(BezelError):
    code = "aborted"


class NumericError(BezelError, ArithmeticError):
    code = "numeric"


class NoGPU(BezelError):
    """no_webgpu: no WebGPU library; no_adapter: no GPU"""

    code = "no_adapter"


class DeviceLost(BezelError):
    code = "device_lost"


class BadSchema(BadRequest):
    code = "bad_schema"


class Closed(BezelError):
    """A model, session or batch was used after it was closed."""

    code = "closed"


class MissingPackage(BezelError, ImportError):
    """An optional Python package is needed for this."""

    code = "missing_package"


_BY_CODE: Dict[str, Type[BezelError]] = {kind.code: kind for kind in (
    OutOfMemory, BadFile, UnsupportedModel, NotFound, BadRequest, ContextFull, Aborted, NumericError, NoGPU, DeviceLost, BadSchema)}
_BY_CODE["no_webgpu"] = NoGPU


def error_of(code: str, text: str) -> BezelError:
    return _BY_CODE.get(code, BezelError)(text, code)
