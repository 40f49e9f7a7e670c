"""Picture files for comparisons of decoders: kinds of PNG and GIF, written here, and damaged files."""
import random
import struct
import subprocess
import zlib

W, H = 37, 23
GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(name, body=b""):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def sample(x, y, channel, depth):
    """a value of `depth` bits that depends on all of its bits"""
    return (x * 1103 + y * 7919 + channel * 14009 + x * y * 31) * 2654435761 >> 7 & (1 << depth) - 1


def rows(columns, lines, kind, depth, most):
    """rows of a PNG, each after the byte of its filter, which is none"""
    out = b""
    for y in lines:
        bits = "".join(f"{min(sample(x, y, c, depth), most):0{depth}b}" for x in columns for c in range(CHANNELS[kind]))
        bits += "0" * (-len(bits) % 8)
        out += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    return out


def png(kind, depth, interlaced=False, transparent=b"", colors=0, extra=b"", size=(W, H)):
    most = colors - 1 if kind == PALETTE else (1 << depth) - 1
    if interlaced:
        data = b"".join(rows(range(x, W, dx), range(y, H, dy), kind, depth, most) for x, y, dx, dy in PASSES if x < W and y < H)
    else:
        data = rows(range(W), range(H), kind, depth, most)
    palette = bytes(sample(i, 5, 1, 8) for i in range(3 * colors))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", *size, depth, kind, 0, 0, int(interlaced))) + extra
            + (chunk(b"PLTE", palette) if palette else b"") + (chunk(b"tRNS", transparent) if transparent else b"")
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND"))


def pngs():
    """-> name: file"""
    exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0"
    described = (chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"sRGB", b"\0") + chunk(b"pHYs", bytes(9))
                 + chunk(b"tEXt", b"Comment\0text") + chunk(b"eXIf", exif))
    made = {f"gray-{d}.png": png(GRAY, d) for d in (1, 2, 4, 8, 16)}
    made.update({f"palette-{d}.png": png(PALETTE, d, colors=n) for d, n in ((1, 2), (2, 4), (4, 13), (8, 200))})
    made.update({f"{name}-{d}.png": png(kind, d) for name, kind in (("gray-alpha", GRAY_ALPHA), ("rgb", RGB), ("rgb-alpha", RGB_ALPHA)) for d in (8, 16)})
    made["palette-alpha.png"] = png(PALETTE, 8, colors=100, transparent=bytes(range(0, 255, 4)))
    made["gray-transparent.png"] = png(GRAY, 4, transparent=struct.pack(">H", 3))
    made["gray-transparent-16.png"] = png(GRAY, 16, transparent=struct.pack(">H", sample(2, 3, 0, 16)))
    made["rgb-transparent.png"] = png(RGB, 8, transparent=struct.pack(">3H", *(sample(4, 5, c, 8) for c in range(3))))
    made["interlaced.png"] = png(RGB, 8, interlaced=True)
    made["interlaced-2.png"] = png(GRAY, 2, interlaced=True)
    made["described.png"] = png(RGB, 8, extra=described)
    return made


def gif_codes(indexes, bits):
    """LZW codes in blocks; the table is emptied so often that codes keep their length"""
    clear, length = 1 << bits, bits + 1
    every = max(1, (1 << bits) - 3)
    codes = [c for i in range(0, len(indexes), every) for c in [clear, *indexes[i:i + every]]] + [clear + 1]
    number = sum(code << length * i for i, code in enumerate(codes))
    data = number.to_bytes((length * len(codes) + 7) // 8, "little")
    return bytes([bits]) + b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b"\0"


def gif_frame(bits, box=(0, 0, W, H), interlaced=False, own_colors=0, transparent=None, values=None, seed=0):
    left, top, w, h = box
    lines = list(range(h))
    if interlaced:
        lines = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, h, step)]
    indexes = [sample(x, y, seed, values or bits) for y in lines for x in range(w)]
    control = b"" if transparent is None else bytes([0x21, 0xF9, 4, 1, 0, 0, transparent, 0])
    palette = bytes(sample(i, 9, 2, 8) for i in range(3 << own_colors)) if own_colors else b""
    flags = (0x80 | own_colors - 1 if own_colors else 0) | (0x40 if interlaced else 0)
    return control + b"," + struct.pack("<4HB", left, top, w, h, flags) + palette + gif_codes(indexes, max(2, values or bits))


def gif(*frames, bits=5, size=(W, H), background=0, version=b"GIF89a", colors=True):
    palette = bytes(sample(i, 7, 3, 8) for i in range(3 << bits)) if colors else b""
    comment = b"" if version == b"GIF87a" else b"\x21\xFE\x05hello\0"
    return (version + struct.pack("<2H3B", *size, (0x80 if colors else 0) | bits - 1, background, 0) + palette + comment + b"".join(frames) + b";")


def gifs():
    """-> name: file"""
    return {
        "plain.gif": gif(gif_frame(5)),
        "all-colors.gif": gif(gif_frame(8), bits=8),
        "two-colors.gif": gif(gif_frame(1), bits=1),
        "old.gif": gif(gif_frame(5), version=b"GIF87a"),
        "interlaced.gif": gif(gif_frame(5, interlaced=True)),
        "own-colors.gif": gif(gif_frame(4, own_colors=4)),
        "no-colors-but-own.gif": gif(gif_frame(4, own_colors=4), colors=False),
        "transparent.gif": gif(gif_frame(4, transparent=7), bits=4),
        "smaller-frame.gif": gif(gif_frame(5, box=(5, 3, 20, 11)), background=9),
        "smaller-clear-frame.gif": gif(gif_frame(5, box=(5, 3, 20, 11), transparent=2), background=9),
        "frame-over-the-edge.gif": gif(gif_frame(5, box=(30, 20, 20, 11))),
        "frame-outside.gif": gif(gif_frame(5, box=(100, 100, 20, 11)), background=3),
        "no-canvas.gif": gif(gif_frame(5), size=(0, 0)),
        "missing-colors.gif": gif(gif_frame(3, values=5), bits=3, background=4),
        "frames.gif": gif(gif_frame(5), gif_frame(5, seed=1)),
    }


def converted(folder):
    """files of ffmpeg: other writers' ways, and animations"""
    source = ["-f", "lavfi", "-i", f"testsrc2=size={W}x{H}:rate=2:duration=1"]
    outputs = [["-frames:v", "1", "ffmpeg.jpg"], ["-frames:v", "1", "ffmpeg.png"], ["ffmpeg.gif"], ["-c:v", "libwebp_anim", "-loop", "0", "ffmpeg.webp"]]
    subprocess.run(["ffmpeg", "-loglevel", "error", "-y", *source, *(a for o in outputs for a in o)], check=True, cwd=folder)
    return [o[-1] for o in outputs]


def cut(data, pieces=6):
    """the beginnings of a file"""
    return [data[:len(data) * i // pieces] for i in range(1, pieces)] + [data[:-1]]


def flipped(data, count, seed):
    """the file with one to three other bytes"""
    chance = random.Random(seed)
    for _ in range(count):
        other = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            other[chance.randrange(3, len(other))] ^= 1 << chance.randrange(8)
        yield bytes(other)


def huge():
    """small files that state large pictures -> name: file"""
    jpeg = (b"\xff\xd8\xff\xc0\x00\x11\x08" + struct.pack(">2H", 65000, 65000) + b"\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00"
            + b"\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00" + bytes(100) + b"\xff\xd9")
    webp = b"VP8L" + struct.pack("<I", 20) + b"\x2f" + struct.pack("<I", 0x0FFFFFFF) + bytes(15)
    return {"huge.jpg": jpeg, "huge.png": png(RGB, 8, size=(50000, 50000)), "long.png": png(GRAY, 1, size=(1 << 30, 1)),
            "huge.gif": gif(gif_frame(5), size=(65535, 65535)), "huge-frame.gif": gif(gif_frame(5, box=(0, 0, 4, 4)).replace(
                struct.pack("<4H", 0, 0, 4, 4), struct.pack("<4H", 0, 0, 65535, 65535))),
            "huge.webp": b"RIFF" + struct.pack("<I", 4 + len(webp)) + b"WEBP" + webp}
