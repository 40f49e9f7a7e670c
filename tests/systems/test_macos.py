#!/usr/bin/env python3
"""Programs for macOS, cross-compiled and linked, which nothing here can run: their headers are read.

    test_macos.py ARCH=PROGRAM...     ARCH: arm64 or x86_64

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

PROCESSORS = {"arm64": 0x0100000C, "x86_64": 0x01000007}
EXECUTE, LOAD_DYLIB, BUILD_VERSION, MACOS = 2, 0xC, 0x32, 1


def read(path):
    """-> processor, kind, libraries, and the oldest system"""
    with open(path, "rb") as f:
        data = f.read()
    magic, processor, _, kind, n = struct.unpack_from("<5I", data)
    same(magic, 0xFEEDFACF, "the magic number")
    libraries, oldest, at = [], None, 32
    for _ in range(n):
        command, size = struct.unpack_from("<2I", data, at)
        if command == LOAD_DYLIB:
            start = at + struct.unpack_from("<I", data, at + 8)[0]
            libraries.append(data[start:data.index(b"\0", start)].decode())
        if command == BUILD_VERSION:
            platform, version = struct.unpack_from("<2I", data, at + 8)
            same(platform, MACOS, "the platform")
            oldest = (version >> 16, version >> 8 & 255)
        at += size
    return processor, kind, libraries, oldest, data


def program(arch, path):
    processor, kind, libraries, oldest, data = read(path)
    same((processor, kind), (PROCESSORS[arch], EXECUTE), "processor and kind")
    same(libraries, ["/usr/lib/libSystem.B.dylib"], "the libraries")
    need(oldest and oldest <= (11, 0), f"it needs macOS {oldest}")
    for text in (b"hw.optional.", b"libwebgpu_wrapper.dylib", b"bun-webgpu-darwin", b"_sysctlbyname", b"/ImageIO.framework/ImageIO",
                 b"CGImageSourceCreateWithData", b"/AudioToolbox.framework/AudioToolbox", b"ExtAudioFileRead"):
        need(text in data, f"{text} is not in it")
    for text in (b"/proc/self/exe", b"landlock", b"xdg-open"):
        need(text not in data, f"{text} of Linux is in it")


def compiler():
    with open("tools/setup.sh", encoding="utf-8") as f:
        pinned = next(line.split("=")[1].strip() for line in f if line.startswith("zig="))
    got = subprocess.run(["build/zig/zig", "version"], capture_output=True, text=True).stdout.strip()
    same(got, pinned, "the compiler's version")


case("the compiler is the pinned one", compiler)
for argument in sys.argv[1:]:
    arch, path = argument.split("=")
    case(f"a program for macOS on {arch}", program, arch, path)
sys.exit(finish())
