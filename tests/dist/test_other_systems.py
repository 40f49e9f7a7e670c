#!/usr/bin/env python3
"""The archives for Windows and macOS: what is in them, what their programs load; the one for Windows answers, and pulls a model, under Wine.

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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import answers  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402
from registry import Registry  # noqa: E402

FOLDER, PROGRAM = sys.argv[1], os.path.abspath(sys.argv[2])
# Part of every Windows 10.
WINDOWS = re.compile(r"(advapi32|bcrypt|crypt32|kernel32|msvcrt|shell32|ws2_32|user32|api-ms-win-[\w-]+)\.dll", re.I)
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


def wine(box, folder, *arguments, **more):
    """in a home of its own, without a display; -> stdout"""
    environment = {**os.environ, "WINEPREFIX": box + "/wine", "WINEDEBUG": "-all", "DISPLAY": "", "HOME": box, **more}
    p = subprocess.run(["/usr/lib/wine/wine64", f"{folder}/bin/bezel.exe", *arguments], capture_output=True, env=environment, stdin=subprocess.DEVNULL)
    need(p.returncode == 0, p.stderr.decode("utf-8", "replace")[-1000:])
    return p.stdout.decode().replace("\r\n", "\n")


def windows_answer(folder, box):
    same(wine(box, folder, *answers.ASK), answers.here(PROGRAM, *answers.ASK), "the answer")
    look = [*answers.SEE, "--image", answers.IMAGE]
    same(wine(box, folder, *look), answers.here(PROGRAM, *look), "the answer about a picture")


def windows_pulls(folder, box):
    """a model from a registry into an empty store, and an answer of it"""
    store = {"OLLAMA_MODELS": "Z:" + (box + "/store").replace("/", "\\")}
    with open("models/pebble.gguf", "rb") as f, Registry() as registry:
        registry.add("ns/m:t", [("model", f.read())])
        name = f"{registry.host}/ns/m:t"
        wine(box, folder, "pull", name, **store)
        same(wine(box, folder, *(name if a == "pebble" else a for a in answers.ASK), **store), answers.here(PROGRAM, *answers.ASK), "the answer")


def stop_wine(box):
    subprocess.run(["/usr/lib/wine/wineserver64", "-k", "-w"], env={**os.environ, "WINEPREFIX": box + "/wine"}, capture_output=True)


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
    same(sorted(loaded), ["/usr/lib/libSystem.B.dylib", "/usr/lib/libcurl.4.dylib"], "what it loads")


with tempfile.TemporaryDirectory(prefix="bezel-systems-") as folder:
    state = {}
    case("windows: unpacks", lambda: state.update(folder=unpack_windows(folder)))
    if state:
        case("windows: what it loads", windows_libraries, state["folder"])
        case("windows: an answer under Wine", windows_answer, state["folder"], folder)
        case("windows: pulls a model under Wine", windows_pulls, state["folder"], folder)
        stop_wine(folder)
    case("macos, arm64: what it loads", macos, "arm64", CPU_ARM64, folder)
    case("macos, x86_64: what it loads", macos, "x86_64", CPU_X86_64, folder)
sys.exit(finish())
