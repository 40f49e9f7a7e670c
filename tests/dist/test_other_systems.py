#!/usr/bin/env python3
"""The archives for Windows and macOS: what is in them, what their programs load, and an answer of the one for Windows under Wine.

  test_other_systems.py FOLDER PROGRAM     the folder with the archives, and the program of the build tree
"""
import glob
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, PROGRAM = sys.argv[1], os.path.abspath(sys.argv[2])
# Part of every Windows 10.
WINDOWS = re.compile(r"(advapi32|bcrypt|kernel32|msvcrt|shell32|ws2_32|user32|api-ms-win-[\w-]+)\.dll", re.I)
LOAD_DYLIB, CPU_ARM64, CPU_X86_64 = 0xC, 0x100000C, 0x1000007


def one(pattern):
    found = glob.glob(f"{FOLDER}/{pattern}")
    need(len(found) == 1, f"{len(found)} files {pattern} in {FOLDER}; run make dist")
    return found[0]


def documents(folder):
    for f in ("share/doc/bezel/LICENSE", "share/doc/bezel/THIRD-PARTY.txt", "share/bezel/web/index.html", "share/bezel/web/builtin/pebble.gguf"):
        need(os.path.getsize(os.path.join(folder, f)) > 500, f)


def unpack_windows(box):
    path = one("bezel-*-windows-x86_64.zip")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(box)
    folder = os.path.join(box, os.path.basename(path)[:-len(".zip")])
    documents(folder)
    return folder


def windows_libraries(folder):
    out = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", f"{folder}/bin/bezel.exe"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"DLL Name: (\S+)", out)
    need(names, "it loads nothing?")
    same([n for n in names if not WINDOWS.fullmatch(n)], [], "libraries that not every Windows has")


def windows_answer(folder, box):
    """in a home of its own, without a display"""
    environment = {**os.environ, "WINEPREFIX": box + "/wine", "WINEDEBUG": "-all", "DISPLAY": "", "HOME": box}
    try:
        p = subprocess.run(["/usr/lib/wine/wine64", f"{folder}/bin/bezel.exe", *answers.ASK], capture_output=True, env=environment)
        need(p.returncode == 0, p.stderr.decode("utf-8", "replace")[-1000:])
        same(p.stdout.decode().replace("\r\n", "\n"), answers.here(PROGRAM, *answers.ASK), "the answer")
    finally:
        subprocess.run(["/usr/lib/wine/wineserver64", "-k", "-w"], env=environment, capture_output=True)


def macos(arch, cpu, box):
    path = one(f"bezel-*-macos-{arch}.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(box)
    folder = os.path.join(box, os.path.basename(path)[:-len(".tar.gz")])
    documents(folder)
    with open(f"{folder}/bin/bezel", "rb") as f:
        data = f.read()
    magic, kind, _, _, commands = struct.unpack_from("<IIIII", data)
    same((magic, kind), (0xFEEDFACF, cpu), "the header of Mach-O")
    at, loaded = 32, []
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == LOAD_DYLIB:
            start = at + struct.unpack_from("<I", data, at + 8)[0]
            loaded.append(data[start:data.index(b"\0", start)].decode())
        at += size
    need(loaded and not [n for n in loaded if not n.startswith(("/usr/lib/", "/System/Library/"))], f"it loads {loaded}")


with tempfile.TemporaryDirectory(prefix="bezel-systems-") as folder:
    state = {}
    case("windows: unpacks", lambda: state.update(folder=unpack_windows(folder)))
    if state:
        case("windows: what it loads", windows_libraries, state["folder"])
        case("windows: an answer under Wine", windows_answer, state["folder"], folder)
    case("macos, arm64: what it loads", macos, "arm64", CPU_ARM64, folder)
    case("macos, x86_64: what it loads", macos, "x86_64", CPU_X86_64, folder)
sys.exit(finish())
