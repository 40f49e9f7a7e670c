"""Loads the shared library and declares its functions."""
from __future__ import annotations

import ctypes as c
import os
import sys
from typing import Any, Dict, Tuple

from . import _structs as s
from .errors import BezelError, error_of

_P = s.Pointer
_OUT = c.POINTER(_P)
_ERR = c.POINTER(s.Error)
_size, _u32, _u64, _i32, _int, _bool, _text = c.c_size_t, c.c_uint32, c.c_uint64, c.c_int32, c.c_int, c.c_bool, c.c_char_p


def _to(struct: Any) -> Any:
    return c.POINTER(struct)


# name: (result, arguments)
_FUNCTIONS: Dict[str, Tuple[Any, ...]] = {
    "bz_version": (_text,),
    "bz_status_name": (_text, _int),
    "bz_free": (None, _P),
    "bz_job_step": (_int, _P, _to(s.Need)),
    "bz_job_free": (None, _P),
    "bz_job_finish": (_int, _P),
    "bz_job_media": (_P, _P),
    "bz_job_vectors": (s.Floats, _P, _to(_size), _to(_u32)),
    "bz_job_vector_tokens": (_to(_u32), _P, _to(_size)),
    "bz_model_open_file": (_int, _OUT, _text, _text, _to(s.OpenOptions), _ERR),
    "bz_model_free": (None, _P),
    "bz_model_get_info": (_int, _P, _to(s.ModelInfo), _ERR),
    "bz_model_takes": (_bool, _P, _int),
    "bz_tokenize": (c.c_int64, _P, _text, _size, _bool, _bool, s.Int32s, _size, _ERR),
    "bz_token_piece": (_P, _P, _i32, _to(_size)),
    "bz_token_ends": (_bool, _P, _i32),
    "bz_text_push": (_size, _to(s.TextStream), _P, _i32, _bool, c.c_char * s.TEXT_MAX),
    "bz_session_new": (_int, _OUT, _P, _to(s.SessionOptions), _ERR),
    "bz_session_free": (None, _P),
    "bz_session_save": (_int, _P, _text, _ERR),
    "bz_session_load": (_int, _P, _text, _ERR),
    "bz_session_fork": (_int, _OUT, _P, _ERR),
    "bz_session_prefill": (_int, _P, s.Int32s, _size, _to(s.PrefillOptions), _OUT, _ERR),
    "bz_session_generate": (_int, _P, _to(s.GenerateOptions), _OUT, _ERR),
    "bz_session_get_stats": (s.SessionStats, _P),
    "bz_session_logits": (s.Floats, _P),
    "bz_turn_new_media": (_int, _OUT, _P, _text, _size, _ERR),
    "bz_turn_free": (None, _P),
    "bz_turn_media": (_size, _P),
    "bz_turn_media_source": (_int, _P, _size, _to(_P), _to(_size)),
    "bz_turn_attach": (_int, _P, _size, _P, _ERR),
    "bz_turn_prefill": (_int, _P, _P, _OUT, _ERR),
    "bz_turn_prompt": (s.Int32s, _P, _to(_size), _to(_u32)),
    "bz_turn_options": (_to(s.GenerateOptions), _P, _to(_bool)),
    "bz_turn_push": (_int, _P, _i32, _ERR),
    "bz_turn_next": (_int, _P, _to(_P), _to(_size)),
    "bz_turn_finish": (_int, _P, _int),
    "bz_grammar_new": (_int, _OUT, _int, _text, _size, _ERR),
    "bz_grammar_free": (None, _P),
    "bz_encoder_new": (_int, _OUT, _P, _to(s.EncoderOptions), _ERR),
    "bz_encoder_free": (None, _P),
    "bz_encode_image": (_int, _P, _P, _u32, _u32, _OUT, _ERR),
    "bz_encode_audio": (_int, _P, _P, _size, _u32, _OUT, _ERR),
    "bz_encode_frame": (_int, _P, _P, _u32, _u32, _OUT, _ERR),
    "bz_image_check": (_int, _u32, _u32, _ERR),
    "bz_video_choose": (_u32, _to(_u64), _u32, _u64),
    "bz_video_new": (_int, _OUT, _OUT, _to(c.c_double), _u32, _ERR),
    "bz_wav_read": (_int, _to(s.Sound), _text, _size, _ERR),
    "bz_media_free": (None, _P),
    "bz_batch_new": (_int, _OUT, _P, _to(s.BatchOptions), _ERR),
    "bz_batch_free": (None, _P),
    "bz_batch_start": (_int, _P, s.Int32s, _size, _to(s.GenerateOptions), _to(_u32), _ERR),
    "bz_batch_stop": (None, _P, _u32),
    "bz_batch_step": (_int, _P, s.BatchFunction, _P, _ERR),
    "bz_batch_has_free": (_bool, _P),
    "bz_batch_slot_reused": (_u32, _P, _u32),
    "bz_embedder_new": (_int, _OUT, _P, _to(s.EmbedderOptions), _ERR),
    "bz_embedder_free": (None, _P),
    "bz_embedder_longest": (_u32, _P),
    "bz_embed_texts": (_int, _P, _to(s.EmbedInput), _size, _to(s.EmbedOptions), _OUT, _ERR),
    "bz_debug_gpu_open": (_int, _OUT, _ERR),
    "bz_debug_gpu_close": (None, _P),
    "bz_debug_gpu_get_info": (s.GPUInfo, _P),
}


def _names() -> Tuple[str, ...]:
    return {"darwin": ("libbezel.dylib",), "win32": ("bezel.dll", "libbezel.dll")}.get(sys.platform, ("libbezel.so",))


def _find() -> str:
    chosen = os.environ.get("BEZEL_LIBRARY")
    if chosen:
        return chosen
    here = os.path.dirname(os.path.abspath(__file__))
    for name in _names():
        if os.path.exists(os.path.join(here, name)):
            return os.path.join(here, name)
    raise BezelError(f"The package has no {_names()[0]}, as in a checkout that was not built: run 'make wheel' there and install the wheel, "
                     "or set BEZEL_LIBRARY to the path of the library.", "not_found")


def _load() -> Any:
    path = _find()
    try:
        library = c.CDLL(path)
    except OSError as e:
        raise BezelError(f"The library {path} cannot be loaded: {e}.", "bad_file") from None
    library.bz_version.restype = _text
    version: str = library.bz_version().decode()
    if version.split(".")[:2] != s.VERSION.split(".")[:2]:
        raise BezelError(f"{path} is version {version}; this package needs {s.VERSION}. Install a package and a library of the same version.",
                         "bad_file")
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib: Any = _load()
FUNCTIONS = _FUNCTIONS


def version() -> str:
    return str(lib.bz_version().decode())


def check(status: int, err: s.Error) -> None:
    """raises what a function of the library reported"""
    if status != 0:
        raise error_of(lib.bz_status_name(err.code or status).decode(), err.text.decode("utf-8", "replace"))


def call(name: str, *arguments: Any) -> None:
    """calls a function whose last argument is a bz_error, and raises it"""
    err = s.Error()
    check(getattr(lib, name)(*arguments, c.byref(err)), err)


def create(name: str, *arguments: Any) -> int:
    """the same, for a function whose first argument receives a new object; -> its address"""
    out = s.Pointer()
    call(name, c.byref(out), *arguments)
    return out.value or 0
