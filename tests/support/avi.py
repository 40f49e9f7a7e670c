"""Writes AVI files of uncompressed frames, for tests: no codec changes their pixels."""
import struct

import numpy as np


def chunk(name, body):
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def group(name, *chunks):
    return chunk(b"LIST", name + b"".join(chunks))


def avi(frames, rate):
    """frames: [n][height][width][3] RGB bytes; rate: a fraction (numerator, denominator) of frames per second"""
    n, height, width, _ = frames.shape
    pad = -3 * width % 4
    image = [np.pad(f[::-1, :, ::-1].reshape(height, 3 * width), ((0, 0), (0, pad))).astype(np.uint8).tobytes() for f in frames]
    size = len(image[0])
    main = struct.pack("<14I", rate[1] * 1000000 // rate[0], 0, 0, 0x10, n, 0, 1, size, width, height, 0, 0, 0, 0)
    stream = b"vidsDIB " + struct.pack("<IHHIIIIIIIIHHHH", 0, 0, 0, 0, rate[1], rate[0], 0, n, size, 0xFFFFFFFF, 0, 0, 0, width, height)
    form = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, size, 0, 0, 0, 0)
    index, at = b"", 4
    for x in image:
        index += b"00db" + struct.pack("<III", 0x10, at, len(x))
        at += 8 + len(x) + len(x) % 2
    body = group(b"hdrl", chunk(b"avih", main), group(b"strl", chunk(b"strh", stream), chunk(b"strf", form))) + \
        group(b"movi", *[chunk(b"00db", x) for x in image]) + chunk(b"idx1", index)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"AVI " + body


def golden_frames(n, height, width):
    """those of the golden `video`"""
    t, y, x = np.ogrid[:n, :height, :width]
    return np.stack([np.broadcast_to(v % 256, (n, height, width)) for v in (3 * x + 5 * t, 2 * y + t, x + y + 7 * t)], -1).astype(np.uint8)
