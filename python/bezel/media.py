"""Images, sound and video of a request: Python objects, files and data: URLs, decoded to pixels and samples.

PPM and WAV need nothing else; other image formats need Pillow, other sound formats soundfile, video files av."""
from __future__ import annotations

import base64
import binascii
import ctypes as c
import io
import os
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _structs as s
from ._library import call, create, lib
from ._native import Job, Native
from .errors import BadFile, BadRequest, BezelError, MissingPackage, NotFound

if TYPE_CHECKING:
    from .model import Model

PathLike = Union["os.PathLike[str]"]


class Pixels(NamedTuple):
    rgb: bytes  # [height][width][3]
    width: int
    height: int


class Samples(NamedTuple):
    pcm: Any  # [frames] floats in [-1, 1], mono; anything with the buffer interface, of C floats
    rate: int


class Video:
    """Frames (images in any form that image_url takes) with their times in seconds."""

    def __init__(self, frames: Sequence[Any], seconds: Sequence[float]) -> None:
        if len(frames) != len(seconds) or not frames:
            raise BadRequest(f"A video has as many times as frames, and at least one; there are {len(frames)} frames and {len(seconds)} times.")
        self.frames = list(frames)
        self.seconds = [float(t) for t in seconds]


# ---- sources ------------------------------------------------------------------------


def _read_text(text: str, what: str) -> bytes:
    """a data: URL, or base64 as in input_audio"""
    if text.startswith(("http:", "https:")):
        raise BadRequest(f"{text[:100]} cannot be used: Bezel does not access the network. Download it and pass its bytes.")
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise BadRequest(f"{head[:60]} is not a base64 data: URL, which is the only kind that can be read.")
    elif len(text) < 64 or text.startswith("file:") or os.path.exists(text):
        raise BadRequest(f"'{text[:100]}' is a text, not {what}. Pass pathlib.Path(...) for a file, its bytes, or a data: URL: "
                         "texts never name files, so that messages from outside cannot read them.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(f"{what} is not valid base64: it has a wrong character or is cut off.") from None


def _file_bytes(source: Any, what: str) -> Optional[bytes]:
    """the bytes of a file, or None for a Python object of another kind"""
    if isinstance(source, str):
        return _read_text(source, what)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, os.PathLike):
        try:
            with open(source, "rb") as f:
                return f.read()
        except FileNotFoundError:
            raise NotFound(f"There is no file {os.fspath(source)}.") from None
        except OSError as e:
            raise BadFile(f"{os.fspath(source)} cannot be read: {e.strerror}.") from None
    return None


# ---- images -------------------------------------------------------------------------


def _ppm_numbers(data: bytes) -> Tuple[List[int], int]:
    """three numbers after the mark of a PPM, and where its pixels begin"""
    found: List[int] = []
    at = 2
    while len(found) < 3:
        while at < len(data) and data[at:at + 1].isspace():
            at += 1
        if data[at:at + 1] == b"#":
            end = data.find(b"\n", at)
            at = len(data) if end < 0 else end
            continue
        first = at
        while at < len(data) and at - first < 10 and data[at:at + 1].isdigit():
            at += 1
        if first == at:
            raise BadFile("The PPM image is damaged: its size is not readable.")
        found.append(int(data[first:at]))
    return found, at + 1


def _read_ppm(data: bytes) -> Pixels:
    (width, height, top), at = _ppm_numbers(data)
    if top != 255:
        raise BadFile(f"The PPM image has values up to {top}; only 255 can be read. Save it with 8 bits per color.")
    call("bz_image_check", width, height)
    rgb = data[at:at + 3 * width * height]
    if len(rgb) != 3 * width * height:
        raise BadFile(f"The PPM image is cut off: {width} x {height} pixels need {3 * width * height} bytes, there are {len(rgb)}.")
    return Pixels(rgb, width, height)


def _from_pillow(image: Any) -> Pixels:
    import PIL.Image
    import PIL.ImageOps

    call("bz_image_check", image.width, image.height)
    image = PIL.ImageOps.exif_transpose(image)
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = PIL.Image.alpha_composite(PIL.Image.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB")
    return Pixels(image.tobytes(), image.width, image.height)


def _decode_image(data: bytes) -> Pixels:
    if data[:2] == b"P6":
        return _read_ppm(data)
    try:
        import PIL.Image
    except ImportError:
        raise MissingPackage("Only PPM images can be read without the package Pillow: install it (pip install Pillow), or pass pixels, an array "
                             "of shape (height, width, 3) with bytes.") from None
    try:
        with PIL.Image.open(io.BytesIO(data)) as image:
            return _from_pillow(image)
    except BezelError:
        raise
    except Exception as e:  # Pillow raises many kinds for damaged files
        raise BadFile(f"The image cannot be read: {e}.") from None


def _from_array(source: Any) -> Pixels:
    view = memoryview(source)
    if view.format != "B" or view.ndim != 3 or view.shape is None or view.shape[2] != 3:
        raise BadRequest(f"An array of pixels has the shape (height, width, 3) and bytes (uint8); this one has the shape {view.shape} and "
                         f"values of type '{view.format}'.")
    height, width = view.shape[0], view.shape[1]
    call("bz_image_check", width, height)
    return Pixels(view.tobytes(), width, height)


def image_pixels(source: Any) -> Pixels:
    """decodes an image: bytes or a Path of a file, a data: URL, a Pillow image, an array (height, width, 3) of bytes"""
    if isinstance(source, Pixels):
        return source
    if hasattr(source, "getbands"):
        return _from_pillow(source)
    if hasattr(source, "__array_interface__"):
        return _from_array(source)
    data = _file_bytes(source, "an image")
    if data is None:
        raise BadRequest(f"An image cannot be a {type(source).__name__}: pass a Path, bytes, a Pillow image or an array of pixels.")
    return _decode_image(data)


# ---- sound --------------------------------------------------------------------------


def _read_wav(data: bytes) -> Samples:
    sound = s.Sound()
    call("bz_wav_read", c.byref(sound), data, len(data))
    try:
        pcm = (c.c_float * sound.frames)()
        c.memmove(pcm, sound.pcm, c.sizeof(pcm))
        return Samples(pcm, int(sound.rate))
    finally:
        lib.bz_free(sound.pcm)


def _mono(pcm: Any, rate: int) -> Samples:
    """an array [frames] or [frames][channels]"""
    import numpy

    values = numpy.asarray(pcm, dtype=numpy.float32)
    if values.ndim == 2:
        values = values.mean(axis=1, dtype=numpy.float32)
    if values.ndim != 1:
        raise BadRequest(f"An array of samples has the shape (samples,) or (samples, channels), not {values.shape}.")
    return Samples(numpy.ascontiguousarray(values), int(rate))


def sound_samples(source: Any) -> Samples:
    """decodes a sound: bytes or a Path of a file, a data: URL or base64, or a pair of an array of samples and their rate"""
    if isinstance(source, Samples):
        return source
    if isinstance(source, tuple) and len(source) == 2:
        return _mono(*source)
    data = _file_bytes(source, "a sound")
    if data is None:
        raise BadRequest(f"A sound cannot be a {type(source).__name__}: pass a Path, bytes, or a pair (samples, rate).")
    if data[:4] in (b"RIFF", b"RIFX", b"RF64"):
        return _read_wav(data)
    try:
        import soundfile  # type: ignore[import-untyped,unused-ignore]
    except (ImportError, OSError):
        raise MissingPackage("Only WAV sound can be read without the package soundfile: install it (pip install soundfile), or pass a pair "
                             "(samples, rate).") from None
    try:
        pcm, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except Exception as e:  # libsndfile's errors have no common kind
        raise BadFile(f"The sound cannot be read: {e}.") from None
    return _mono(pcm, rate)


# ---- video --------------------------------------------------------------------------


def _chosen(total: int, most: int) -> List[int]:
    index = (c.c_uint64 * s.VIDEO_MAX_FRAMES)()
    n = lib.bz_video_choose(index, most, total)
    return list(index[:n])


def video_frames(source: Any, most: int = s.VIDEO_FRAMES) -> Video:
    """frames of a video, evenly spread: a Video, or bytes or a Path of a file"""
    if not 1 <= most <= s.VIDEO_MAX_FRAMES:
        raise BadRequest(f"A video has from 1 to {s.VIDEO_MAX_FRAMES} frames, not {most}.")
    if isinstance(source, Video):
        keep = _chosen(len(source.frames), most)
        return Video([source.frames[i] for i in keep], [source.seconds[i] for i in keep])
    data = _file_bytes(source, "a video")
    if data is None:
        raise BadRequest(f"A video cannot be a {type(source).__name__}: pass a bezel.Video of frames and times, a Path, or bytes.")
    try:
        import av  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingPackage("Video files can be read with the package av only: install it (pip install av), or pass a bezel.Video of frames "
                             "and times.") from None
    try:
        # Counted first: frames are large, and the container's own number is a guess.
        with av.open(io.BytesIO(data), "r") as container:
            total = sum(1 for _ in container.decode(video=0))
        chosen = set(_chosen(total, most))
        with av.open(io.BytesIO(data), "r") as container:
            frames: Any = container.decode(video=0)
            taken = [(_from_pillow(frame.to_image()), float(frame.time or 0)) for i, frame in enumerate(frames) if i in chosen]
    except BezelError:
        raise
    except Exception as e:
        raise BadFile(f"The video cannot be read: {getattr(e, 'strerror', None) or e}.") from None
    return Video([pixels for pixels, _ in taken], [seconds for _, seconds in taken])


# ---- encoding -----------------------------------------------------------------------


class Media:
    """An encoded image, sound or video: rows that take the place of tokens."""

    def __init__(self, pointer: int) -> None:
        self.native = Native("media", pointer, lib.bz_media_free)

    def close(self) -> None:
        self.native.close()


class Encoder:
    """Encodes the media of a model's requests; a file that was encoded before is not encoded again."""

    def __init__(self, model: "Model", image_tokens: int, frame_tokens: int, frames: int) -> None:
        options = s.EncoderOptions(budget=image_tokens, threads=model.threads, frame_budget=frame_tokens)
        self._native = Native("encoder", model.native.create("bz_encoder_new", c.byref(options)), lib.bz_encoder_free, model.native)
        self._frames = frames

    def _job(self, name: str, *arguments: Any) -> Media:
        # Also between steps: an encoder has one job at a time.
        with self._native.lock:
            job = Job(self._native, name, *arguments)
            try:
                job.run()
                return Media(lib.bz_job_media(job.pointer))
            finally:
                job.close()

    def _image(self, function: str, source: Any) -> Media:
        pixels = image_pixels(source)
        return self._job(function, c.cast(c.c_char_p(pixels.rgb), c.c_void_p), pixels.width, pixels.height)

    def _sound(self, source: Any) -> Media:
        samples = sound_samples(source)
        view = memoryview(samples.pcm).cast("B")
        data = (c.c_char * view.nbytes).from_buffer_copy(view)
        return self._job("bz_encode_audio", c.cast(data, c.c_void_p), view.nbytes // 4, samples.rate)

    def _video(self, source: Any) -> Media:
        video = video_frames(source, self._frames)
        frames: List[Media] = []
        try:
            for frame in video.frames:
                frames.append(self._image("bz_encode_frame", frame))
            pointers = (s.Pointer * len(frames))(*[frame.native.pointer for frame in frames])
            seconds = (c.c_double * len(frames))(*video.seconds)
            return Media(create("bz_video_new", pointers, seconds, len(frames)))
        finally:
            for frame in frames:
                frame.close()

    def encode(self, kind: int, source: Any) -> Media:
        if kind == s.MEDIA_IMAGE:
            return self._image("bz_encode_image", source)
        return self._sound(source) if kind == s.MEDIA_AUDIO else self._video(source)
