"""The Python wheel as users meet it: built, inspected, installed without a network, and used.

  test_python.py BUILD MODELS

Programs of tests/python run in three Pythons: one that has only the wheel, that of build/python (numpy, Pillow, soundfile), and
that of build/clients (openai). With BEZEL_QUICK not the arm64 wheel and not the GPU.
"""
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import wave
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
sys.path.insert(0, os.path.join(ROOT, "python"))
import cases  # noqa: E402
import platform_tag  # noqa: E402
from cases import case, finish, need, same  # noqa: E402

BUILD, MODELS = sys.argv[1], sys.argv[2]
QUICK = bool(os.environ.get("BEZEL_QUICK"))
TOOLS = os.path.join(ROOT, "build", "python", "bin")
EMBEDDINGS = os.path.join(ROOT, "build", "golden", "embedding", "model.gguf")
LAYOUT = os.path.join(ROOT, "tests", "python", "layout.py")


def must(*command, **settings):
    """stdout of a command that has to succeed"""
    p = subprocess.run(command, capture_output=True, text=True, **settings)
    need(p.returncode == 0, f"{' '.join(command)}: status {p.returncode}: {(p.stdout + p.stderr)[-1500:]}")
    return p.stdout


def make(*arguments, **env):
    # A parent make's job server is not for us.
    flags = " ".join(w for w in os.environ.get("MAKEFLAGS", "").split() if not re.match(r"-j|--jobserver", w))
    return must("make", "-s", *arguments, env={**os.environ, **env, "MAKEFLAGS": flags}).split()[-1]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def run_cases(python, name, *arguments, wrap=(), **env):
    """a program of tests/python, whose cases count as ours"""
    p = subprocess.run([*wrap, python, "-X", "dev", "-W", "error", f"tests/python/{name}.py", *arguments], capture_output=True, text=True, env={**os.environ, **env})
    sys.stdout.write(p.stdout)
    sys.stdout.flush()
    cases.failures += sum(line.startswith("FAIL ") for line in p.stdout.splitlines())
    case(f"{name} ends well", lambda: need(p.returncode == 0 and "ok " in p.stdout, f"status {p.returncode}: {p.stderr[-800:]}"))


# ---- the file -----------------------------------------------------------------------


def reproducible(wheel):
    """a second wheel, built at another time, is the same unless SOURCE_DATE_EPOCH says otherwise"""
    first = read(wheel)
    make("wheel", f"B={BUILD}", SOURCE_DATE_EPOCH="1700000000")
    with zipfile.ZipFile(wheel) as z:
        same({entry.date_time for entry in z.infolist()}, {(2023, 11, 14, 22, 13, 20)}, "the times in the file")
    same(make("wheel", f"B={BUILD}"), wheel, "the second wheel")
    need(read(wheel) == first, "the same input made other bytes")


def contents(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        metadata = z.read(next(n for n in names if n.endswith("METADATA"))).decode()
    need(len(names) == len(set(names)) and "bezel/py.typed" in names and "bezel/libbezel.so" in names and "bezel/models/pebble.gguf" in names, str(names))
    need("\nRequires-Dist: numpy; extra" in metadata and not re.search(r"^Requires-Dist: [^;]*$", metadata, re.M), "it requires packages")
    need(all(not n.endswith(".pyc") for n in names), str(names))


def honest(wheel, machine):
    text = " ".join(must(f"{TOOLS}/auditwheel", "show", wheel).split())
    tag = re.search(r"-(manylinux_\w+)\.whl$", wheel).group(1)
    need(tag.endswith(machine), tag)
    need(f'consistent with the following platform tag: "{tag}"' in text, text)


def other_platforms():
    """tags of files made by hand: a Mach-O for macOS 12.3 on arm64, and a PE for x64"""
    with tempfile.TemporaryDirectory() as folder:
        def tag(data):
            path = os.path.join(folder, "library")
            with open(path, "wb") as f:
                f.write(data)
            return platform_tag.of(path)
        build = struct.pack("<6I", 0x32, 24, 1, 12 << 16 | 3 << 8, 0, 0)
        segment = struct.pack("<2I16x", 0x19, 24)
        mach = b"\xcf\xfa\xed\xfe" + struct.pack("<7I", 0x0100000C, 0, 6, 2, 48, 0, 0) + segment + build
        same(tag(mach), ("macosx_12_0_arm64", "libbezel.dylib"), "macOS")
        same(tag(b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<H", 0x8664)), ("win_amd64", "bezel.dll"), "Windows")
        for bad in (b"#!/bin/sh\n", mach[:-24] + segment):
            try:
                tag(bad)
            except SystemExit:
                continue
            raise AssertionError("a file without a platform has a tag")


# ---- the border to C ------------------------------------------------------------------


def layouts(python):
    """sizes, offsets and constants of the package, as the C compiler has them"""
    with tempfile.TemporaryDirectory() as folder:
        source = must(python, LAYOUT, "c")
        with open(f"{folder}/layout.c", "w", encoding="utf-8") as f:
            f.write(source)
        want = must(python, LAYOUT, "values").splitlines()
        need(len(want) > 150, f"only {len(want)} lines")
        for compiler, wrap in (("cc", ()), *((("aarch64-linux-gnu-gcc", ("qemu-aarch64",)),) if not QUICK else ())):
            must(compiler, "-static", "-std=c11", "-Iinclude", "-o", f"{folder}/layout", f"{folder}/layout.c")
            same(must(*wrap, f"{folder}/layout").splitlines(), want, f"the layout of {compiler}")
    functions = set(must(python, LAYOUT, "functions").split())
    with open("tests/abi/bezel.symbols", encoding="utf-8") as f:
        need(not functions - set(f.read().split()), "functions that the library does not export")


def prototypes(python):
    """how many arguments each function has, from the headers"""
    declared = {}
    for name in os.listdir("include"):
        text = re.sub(r"/\*.*?\*/", "", read(f"include/{name}").decode(), flags=re.S)
        for function, arguments in re.findall(r"BZ_API [^;(]*?(\w+)\(([^;]*)\);", text):
            declared[function] = 0 if arguments.strip() == "void" else arguments.count(",") + 1
    lines = [line.split() for line in must(python, LAYOUT, "arguments").splitlines()]
    same([(name, int(n)) for name, n in lines], [(name, declared.get(name)) for name, _ in lines], "the numbers of arguments")


# ---- other machines ---------------------------------------------------------------------


def arm64():
    wheel = make("wheel-arm64")
    honest(wheel, "aarch64")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as z:
            z.extract("bezel/libbezel.so", folder)
            z.extract("bezel/models/pebble.gguf", folder)
        # The examples' program, linked with the library out of the wheel.
        os.symlink("libbezel.so", f"{folder}/bezel/libbezel.so.0.1")
        must("aarch64-linux-gnu-gcc", "-Iinclude", "-o", f"{folder}/complete", "examples/complete.c", f"{folder}/bezel/libbezel.so", "-Wl,-rpath-link,.")
        out = must("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={folder}/bezel", f"{folder}/complete",
                   f"{folder}/bezel/models/pebble.gguf", "Once upon a time", "8")
        need(len(out.split()) > 3, out)


def examples_run(python, notebook):
    """every code cell, in order, in one program; what they print is what the notebook shows"""
    out = must(python, "-X", "dev", "-W", "error", "tests/python/run_notebook.py", notebook)
    need(out.startswith("ok "), out)


def media_files(folder):
    picture, sound = f"{folder}/red.ppm", f"{folder}/tone.wav"
    with open(picture, "wb") as f:
        f.write(b"P6 96 96 255\n" + b"".join(b"\xdc\x1e\x1e" if (x - 48) ** 2 + (y - 48) ** 2 < 1000 else b"\xff\xff\xff"
                                            for y in range(96) for x in range(96)))
    with wave.open(sound, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(16000)
        w.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(i * 440 * 2 * math.pi / 16000))) for i in range(24000)))
    return picture, sound


def main():
    os.chdir(ROOT)
    wheel = make("wheel", f"B={BUILD}")
    with tempfile.TemporaryDirectory(prefix="bezel-python-") as box:
        picture, sound = media_files(box)
        bare = f"{box}/venv/bin/python"
        must("/usr/bin/python3", "-m", "venv", "--without-pip", f"{box}/venv")
        case("the wheel installs without a network", lambda: must(f"{TOOLS}/pip", "--disable-pip-version-check", "--python", bare, "install", "-q",
                                                                  "--no-index", wheel))
        site = must(bare, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        case("the wheel has what it needs", contents, wheel)
        case("the wheel's tag is honest", honest, wheel, "x86_64")
        case("tags of other platforms", other_platforms)
        case("the wheel is reproducible", reproducible, wheel)
        case("structs and constants are those of C", layouts, bare)
        case("functions have as many arguments as in C", prototypes, bare)
        case("mypy accepts the package and a program", lambda: must(
            f"{TOOLS}/mypy", "--strict", "--python-version", "3.11", "--cache-dir", "build/python/mypy", "python/bezel", "tests/python/typed.py",
            env={**os.environ, "MYPYPATH": "python"}))
        run_cases(bare, "check_api", picture, sound)
        run_cases(f"{TOOLS}/python", "check_arrays", picture, sound, EMBEDDINGS, PYTHONPATH=site)
        run_cases("build/clients/python/bin/python", "check_shapes", EMBEDDINGS, PYTHONPATH=site)
        case("the notebook prints what it shows", examples_run, bare, "docs/python.ipynb")
        if not QUICK:
            case("the wheel for arm64", arm64)
            run_cases(bare, "check_gpu", wrap=("sh", "tools/gpu-env.sh"))
    return finish()


sys.exit(main())
