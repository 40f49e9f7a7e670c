"""The structs of include/*.h for ctypes. tests/lib/test_python.py compares them with a C compiler's."""
from __future__ import annotations

import ctypes as c
from typing import Any, ClassVar, List, Type

EVENT_KINDS = ("PROGRESS", "TOKEN", "LOGITS", "RELOAD", "CANVAS", "STEP")
EVENT_PROGRESS, EVENT_TOKEN, EVENT_LOGITS, EVENT_RELOAD, EVENT_CANVAS, EVENT_STEP = range(6)
JOB_AGAIN, JOB_NEED_BYTES, JOB_NEED_GPU, JOB_EVENT, JOB_DONE, JOB_ERROR = range(6)
FINISH_NONE, FINISH_END, FINISH_STOP, FINISH_LENGTH, FINISH_CONTEXT = range(5)
MEDIA_IMAGE, MEDIA_AUDIO, MEDIA_VIDEO = range(3)
LOGITS_LAST, LOGITS_ALL = range(2)
GRAMMAR_JSON, GRAMMAR_SCHEMA, GRAMMAR_GBNF, GRAMMAR_REGEX, GRAMMAR_CHOICES = range(5)
DRAFT_DEFAULT, DRAFT_OFF, DRAFT_LOOKUP, DRAFT_MODEL = range(4)
PART_NOTHING, PART_THINKING, PART_ANSWER, PART_CALL_BEGIN, PART_CALL, PART_BROKEN_CALL, PART_END = range(7)
MAX_READS = 16
TEXT_MAX = 1024
BATCH_MAX_SLOTS = 64
VIDEO_FRAMES = 32
VIDEO_MAX_FRAMES = 1024
VERSION = "0.1.0"

# Pointers to things that only the library looks into.
Pointer = c.c_void_p
Int32s = c.POINTER(c.c_int32)
Floats = c.POINTER(c.c_float)


class Struct(c.Structure):
    """Sets `size`, where the struct has one, as every caller of the library has to."""

    c_name: ClassVar[str]

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if self._fields_[0][0] == "size":
            setattr(self, "size", c.sizeof(self))


class Error(Struct):
    c_name = "bz_error"
    _fields_ = [("code", c.c_int), ("text", c.c_char * 320)]


class Read(Struct):
    c_name = "bz_read"
    _fields_ = [("file", c.c_uint32), ("offset", c.c_uint64), ("length", c.c_uint64), ("to", Pointer), ("buffer", c.c_uint32),
                ("buffer_offset", c.c_uint64)]


class TokenProb(Struct):
    c_name = "bz_token_prob"
    _fields_ = [("token", c.c_int32), ("log_prob", c.c_float)]


class Event(Struct):
    c_name = "bz_event"
    _fields_ = [("kind", c.c_int), ("done", c.c_uint64), ("total", c.c_uint64), ("token", c.c_int32), ("text", Pointer),
                ("text_len", c.c_size_t), ("log_prob", c.c_float), ("top", c.POINTER(TokenProb)), ("n_top", c.c_uint32),
                ("logits", Floats), ("position", c.c_uint32), ("rows", c.c_uint32)]


class Need(Struct):
    c_name = "bz_need"
    _fields_ = [("n_reads", c.c_uint32), ("reads", Read * MAX_READS), ("event", Event), ("error", Error)]


ReadFunction = c.CFUNCTYPE(c.c_int, Pointer, c.POINTER(Read))
EventFunction = c.CFUNCTYPE(c.c_int, Pointer, c.POINTER(Event))


class Host(Struct):
    c_name = "bz_host"
    _fields_ = [("size", c.c_size_t), ("read", ReadFunction), ("event", EventFunction), ("user", Pointer)]


class OpenOptions(Struct):
    c_name = "bz_open_options"
    _fields_ = [("size", c.c_size_t), ("device", c.c_char_p), ("ple", c.c_char_p), ("gpu_memory", c.c_uint64), ("headers_only", c.c_bool),
                ("host", c.POINTER(Host)), ("draft", c.c_char_p)]


class ModelInfo(Struct):
    c_name = "bz_model_info"
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("architecture", c.c_char_p), ("file_type", c.c_char_p), ("bytes", c.c_uint64),
                ("parameters", c.c_uint64), ("layers", c.c_uint32), ("width", c.c_uint32), ("vocab", c.c_uint32), ("context", c.c_uint32),
                ("window", c.c_uint32), ("experts", c.c_uint32), ("experts_used", c.c_uint32), ("canvas", c.c_uint32),
                ("embedding", c.c_uint32)]


class TextStream(Struct):
    c_name = "bz_text_stream"
    _fields_ = [("state", c.c_uint8 * 16)]


class SessionOptions(Struct):
    c_name = "bz_session_options"
    _fields_ = [("size", c.c_size_t), ("context", c.c_uint32), ("chunk", c.c_uint32), ("threads", c.c_uint), ("kernels", c.c_char_p),
                ("no_fuse", c.c_bool), ("exact", c.c_bool), ("snapshots", c.c_uint32), ("kv", c.c_char_p)]


class PrefillOptions(Struct):
    c_name = "bz_prefill_options"
    _fields_ = [("size", c.c_size_t), ("snapshot_at", c.c_uint32), ("logits", c.c_int)]


class Bias(Struct):
    c_name = "bz_bias"
    _fields_ = [("token", c.c_int32), ("bias", c.c_float)]


class Sampling(Struct):
    c_name = "bz_sampling"
    _fields_ = [("greedy", c.c_bool), ("temperature", c.c_float), ("top_k", c.c_int32), ("top_p", c.c_float), ("min_p", c.c_float),
                ("repetition", c.c_float), ("presence", c.c_float), ("frequency", c.c_float), ("window", c.c_int32), ("seed", c.c_uint64),
                ("bias", c.POINTER(Bias)), ("n_bias", c.c_size_t)]


class GenerateOptions(Struct):
    c_name = "bz_generate_options"
    _fields_ = [("size", c.c_size_t), ("max_tokens", c.c_uint32), ("ignore_end", c.c_bool), ("show_control", c.c_bool), ("log_probs", c.c_bool),
                ("top_log_probs", c.c_uint32), ("sampling", Sampling), ("stop_ids", Int32s), ("n_stop_ids", c.c_size_t),
                ("stop", c.POINTER(c.c_char_p)), ("n_stop", c.c_size_t), ("grammar", Pointer), ("draft", c.c_int), ("drafts", c.c_uint32)]


class SessionStats(Struct):
    c_name = "bz_session_stats"
    _fields_ = [("position", c.c_uint32), ("prefilled", c.c_uint64), ("reused", c.c_uint64), ("generated", c.c_uint64), ("restores", c.c_uint64),
                ("cache_bytes", c.c_uint64), ("ple_hits", c.c_uint64), ("ple_misses", c.c_uint64)]


class BatchOptions(Struct):
    c_name = "bz_batch_options"
    _fields_ = [("size", c.c_size_t), ("slots", c.c_uint32), ("context", c.c_uint32), ("chunk", c.c_uint32), ("threads", c.c_uint),
                ("kernels", c.c_char_p), ("exact", c.c_bool), ("no_fuse", c.c_bool), ("kv", c.c_char_p)]


class BatchEvent(Struct):
    c_name = "bz_batch_event"
    _fields_ = [("slot", c.c_uint32), ("token", c.c_int32), ("finish", c.c_int), ("error", Error)]


BatchFunction = c.CFUNCTYPE(None, Pointer, c.POINTER(BatchEvent))


class EmbedderOptions(Struct):
    c_name = "bz_embedder_options"
    _fields_ = [("size", c.c_size_t), ("threads", c.c_uint), ("kernels", c.c_char_p), ("no_fuse", c.c_bool), ("exact", c.c_bool)]


class EmbedInput(Struct):
    c_name = "bz_embed_input"
    _fields_ = [("text", c.c_char_p), ("len", c.c_size_t), ("ids", Int32s), ("n_ids", c.c_size_t)]


class EmbedOptions(Struct):
    c_name = "bz_embed_options"
    _fields_ = [("size", c.c_size_t), ("dimensions", c.c_uint32), ("truncate", c.c_bool), ("task", c.c_char_p), ("title", c.c_char_p)]


class EncoderOptions(Struct):
    c_name = "bz_encoder_options"
    _fields_ = [("size", c.c_size_t), ("budget", c.c_uint32), ("keep", c.c_uint32), ("threads", c.c_uint), ("kernels", c.c_char_p),
                ("exact", c.c_bool), ("frame_budget", c.c_size_t)]


class Sound(Struct):
    c_name = "bz_sound"
    _fields_ = [("pcm", Floats), ("frames", c.c_size_t), ("rate", c.c_uint32), ("cut", c.c_bool)]


class GPUInfo(Struct):
    c_name = "bz_debug_gpu_info"
    _fields_ = [("adapter", c.c_char * 128), ("kind", c.c_char * 32), ("library", c.c_char * 512), ("max_buffer", c.c_uint64), ("max_binding", c.c_uint64),
                ("max_storage_buffers", c.c_uint32), ("max_workgroup_storage", c.c_uint32), ("max_invocations", c.c_uint32),
                ("max_workgroups", c.c_uint32), ("min_storage_offset", c.c_uint32), ("subgroup_min", c.c_uint32), ("subgroup_max", c.c_uint32),
                ("f16", c.c_bool), ("subgroups", c.c_bool), ("packed_dot", c.c_bool), ("timestamps", c.c_bool), ("matrices", c.c_bool)]


STRUCTS: List[Type[Struct]] = [Error, Read, TokenProb, Event, Need, Host, OpenOptions, ModelInfo, TextStream, SessionOptions, PrefillOptions,
                               Bias, Sampling, GenerateOptions, SessionStats, BatchOptions, BatchEvent, EmbedderOptions, EmbedInput,
                               EmbedOptions, EncoderOptions, Sound, GPUInfo]

# Values that C has under these names, for the same comparison.
CONSTANTS = {
    **{f"BZ_EVENT_{name}": number for number, name in enumerate(EVENT_KINDS)},
    "BZ_JOB_AGAIN": JOB_AGAIN, "BZ_JOB_NEED_BYTES": JOB_NEED_BYTES, "BZ_JOB_NEED_GPU": JOB_NEED_GPU, "BZ_JOB_EVENT": JOB_EVENT,
    "BZ_JOB_DONE": JOB_DONE, "BZ_JOB_ERROR": JOB_ERROR,
    "BZ_FINISH_NONE": FINISH_NONE, "BZ_FINISH_END": FINISH_END, "BZ_FINISH_STOP": FINISH_STOP, "BZ_FINISH_LENGTH": FINISH_LENGTH,
    "BZ_FINISH_CONTEXT": FINISH_CONTEXT,
    "BZ_MEDIA_IMAGE": MEDIA_IMAGE, "BZ_MEDIA_AUDIO": MEDIA_AUDIO, "BZ_MEDIA_VIDEO": MEDIA_VIDEO,
    "BZ_LOGITS_LAST": LOGITS_LAST, "BZ_LOGITS_ALL": LOGITS_ALL,
    "BZ_GRAMMAR_JSON": GRAMMAR_JSON, "BZ_GRAMMAR_SCHEMA": GRAMMAR_SCHEMA, "BZ_GRAMMAR_GBNF": GRAMMAR_GBNF, "BZ_GRAMMAR_REGEX": GRAMMAR_REGEX,
    "BZ_GRAMMAR_CHOICES": GRAMMAR_CHOICES,
    "BZ_DRAFT_DEFAULT": DRAFT_DEFAULT, "BZ_DRAFT_OFF": DRAFT_OFF, "BZ_DRAFT_LOOKUP": DRAFT_LOOKUP, "BZ_DRAFT_MODEL": DRAFT_MODEL,
    "BZ_TURN_NOTHING": PART_NOTHING, "BZ_TURN_THINKING": PART_THINKING, "BZ_TURN_ANSWER": PART_ANSWER, "BZ_TURN_CALL_BEGIN": PART_CALL_BEGIN,
    "BZ_TURN_CALL": PART_CALL, "BZ_TURN_BROKEN_CALL": PART_BROKEN_CALL, "BZ_TURN_END": PART_END,
    "BZ_MAX_READS": MAX_READS, "BZ_TEXT_MAX": TEXT_MAX, "BZ_BATCH_MAX_SLOTS": BATCH_MAX_SLOTS,
    "BZ_VIDEO_FRAMES": VIDEO_FRAMES, "BZ_VIDEO_MAX_FRAMES": VIDEO_MAX_FRAMES,
}
