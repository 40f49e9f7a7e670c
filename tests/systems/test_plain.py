#!/usr/bin/env python3
"""Pictures as they are rewritten for decoders of a system (cli/media/plain.h): read by libraries, they are what the libraries read in the
files themselves, and damaged files are refused.

    test_plain.py DECODE_FILES WRITE_PICTURES

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import pictures  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
from decoding import decode  # noqa: E402

DECODE, WRITE = map(os.path.abspath, sys.argv[1:3])


def write(folder, files):
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    return list(files)


def both(folder, names):
    return zip(names, decode(folder, names, DECODE), decode(folder, names, DECODE, extra=["plain"]))


def whole(folder, names):
    """pixel by pixel; none of them fails"""
    for name, there, plain in both(folder, names):
        need(there[0] == "image", f"{name}: {there}")
        same(plain[:3], there[:3], name)
        need(plain == there, f"{name} has other pixels")


def described(folder):
    """the size of turned pictures, so that orientations are known to be read"""
    got = dict(zip(("turned.jpg", "described.png"), decode(folder, ["turned.jpg", "described.png"], DECODE, extra=["plain"])))
    same(got["turned.jpg"][1:3], (43, 61), "the size of a picture on its side")
    same(got["described.png"][1:3], (pictures.H, pictures.W), "the size of a PNG on its side")


def cut_off(folder, kinds):
    """every beginning of a file is refused"""
    for name, data in kinds:
        for i, part in enumerate(pictures.cut(data)):
            names = write(folder, {f"cut-{i}-{name}": part})
            got = decode(folder, names, DECODE, extra=["plain"])[0]
            # What follows the first frame of a GIF or WebP is not needed.
            if got[0] == "image" and name in ("frames.gif", "ffmpeg.gif", "ffmpeg.webp", "plain.gif"):
                same(got, decode(folder, [name], DECODE)[0], names[0])
            else:
                need(got[0] == "failed" and got[1].endswith("."), f"{names[0]}: {got[:3]}")


def flipped(folder, kinds):
    """a file with wrong bits has the same pixels on both ways, or fails on one of them"""
    files = {f"flip-{i}-{name}": data for name, whole in kinds for i, data in enumerate(pictures.flipped(whole, 40, name))}
    agree = 0
    for name, there, plain in both(folder, write(folder, files)):
        if there[0] == plain[0] == "image":
            need(there == plain, f"{name} has other pixels")
            agree += 1
    need(agree >= len(files) // 10, f"only {agree} of {len(files)} are pictures at all")


def large(folder):
    for name, got in zip(pictures.huge(), decode(folder, write(folder, pictures.huge()), DECODE, extra=["plain"])):
        need(got[0] == "failed" and "the limit is 67 megapixels" in got[1], f"{name}: {got}")


with tempfile.TemporaryDirectory(prefix="bezel-plain-") as work:
    subprocess.run([WRITE, work], check=True)
    written = sorted(os.listdir(work))
    names = written + pictures.converted(work) + write(work, pictures.pngs()) + write(work, pictures.gifs())
    sample = []
    for n in names:
        if n in ("color.jpg", "progressive.jpg", "rgb-8.png", "palette-alpha.png", "plain.gif", "frames.gif", "ffmpeg.gif", "lossy-alpha.webp",
                 "lossless-alpha.webp", "ffmpeg.webp"):
            with open(os.path.join(work, n), "rb") as f:
                sample.append((n, f.read()))
    for ending in (".jpg", ".png", ".gif", ".webp"):
        case(f"{ending[1:]}: the same pixels", whole, work, [n for n in names if n.endswith(ending)])
    case("orientations", described, work)
    case("files that are cut off", cut_off, work, sample)
    case("files with wrong bits", flipped, work, sample)
    case("pictures that are too large", large, work)
sys.exit(finish())
