#!/usr/bin/env python3
"""The wheels of a release. The one for this machine is installed in a root with Debian's Python and nothing else; of the others the library
answers: for arm64 under qemu, for Windows under Wine. Nothing here runs the ones for macOS: their libraries' headers are read.

  test_wheel.py FOLDER PROGRAM     the folder with the wheels, and the program of the build tree

tests/lib/test_python.py has the tests of the package itself.
"""
import glob
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import clean_root  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, PROGRAM = sys.argv[1], os.path.abspath(sys.argv[2])
PIP = os.path.abspath("build/python/bin/pip")
PATIENCE = 600
ASK = f"""import bezel
with bezel.Model("pebble", device="cpu", threads=1) as model:
    print(model.chat({answers.ASK[2]!r}, temperature=0).choices[0].message.content)
"""
MACHO, DYLIB, LOAD_DYLIB, ID_DYLIB = 0xFEEDFACF, 6, 0xC, 0xD


def wheel(platform):
    found = glob.glob(f"{FOLDER}/bezel-*-py3-none-{platform}.whl")
    need(len(found) == 1, f"{len(found)} wheels for {platform} in {FOLDER}; run make dist")
    return os.path.abspath(found[0])


def unpack(platform, folder):
    """-> the path of the library and of the model, and its name without version"""
    with zipfile.ZipFile(wheel(platform)) as z:
        need(z.testzip() is None, "the file is damaged")
        [library] = [n for n in z.namelist() if re.fullmatch(r"bezel/[^/]*\.(so|dll|dylib)", n)]
        for name in (library, "bezel/models/pebble.gguf"):
            z.extract(name, folder)
    return f"{folder}/{library}", f"{folder}/bezel/models/pebble.gguf"


def functions():
    with open("tests/abi/bezel.symbols", encoding="utf-8") as f:
        return f.read().split()


def installed(box):
    """by pip, without a network, into what Debian's packages of Python declare; used by an ordinary user without a network"""
    root = os.path.join(box, "root")
    need("python3" in clean_root.debian(root, [["python3"]]), "python3 is not installed here")
    subprocess.run([PIP, "--disable-pip-version-check", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--target", f"{root}/opt/packages",
                    wheel("manylinux_*_x86_64")], check=True, env={**os.environ, "HOME": box})
    # PATH has what finds a compiler, if the package wants one.
    out, err = clean_root.run(root, "/usr/bin/python3", "-W", "error", "-c", ASK, env={"PYTHONPATH": "/opt/packages"})
    same(out, answers.here(PROGRAM, *answers.ASK), "the answer")
    same(err, "", "stderr")


def compiled(folder, library, *compiler, suffix=""):
    """the example that continues a text, linked with the library of a wheel"""
    program = f"{folder}/complete{suffix}"
    subprocess.run([*compiler, "-Iinclude", "-o", program, "examples/complete.c", library], check=True)
    return program


def continued(*command, **how):
    p = subprocess.run(command, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, **how)
    need(p.returncode == 0, p.stderr.decode("utf-8", "replace")[-1000:])
    return p.stdout.decode().replace("\r\n", "\n")


def reference(box):
    """what the shared library of the build tree says"""
    [library] = glob.glob("build/libbezel.so.*.*.*")
    program = compiled(box, os.path.abspath(library), "cc", "-Wl,-rpath," + os.path.abspath("build"))
    os.symlink(os.path.abspath(library), f"{box}/libbezel.so.0.1")
    return continued(program, "models/pebble.gguf", "Once upon a time", "8", env={**os.environ, "LD_LIBRARY_PATH": box})


def arm64(box, want):
    library, model = unpack("manylinux_*_aarch64", f"{box}/arm64")
    os.symlink("libbezel.so", os.path.join(os.path.dirname(library), "libbezel.so.0.1"))
    program = compiled(f"{box}/arm64", library, "aarch64-linux-gnu-gcc", "-Wl,-rpath-link,.")
    # Other instructions round otherwise, and the text may take another turn.
    got = continued("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={os.path.dirname(library)}", program, model, "Once upon a time", "8")
    need(len(got.split()) >= 4, f"the text is {got!r}; here {want!r}")


def windows(box, want):
    library, model = unpack("win_amd64", f"{box}/windows")
    table = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", library], capture_output=True, text=True, check=True).stdout
    exported = re.findall(r"^\s*\[ *\d+\](?: \+base\[ *\d+\])?\s+(?:[0-9a-f]+ )?(\w+)$", table.split("[Ordinal/Name Pointer] Table")[1], re.M)
    same(sorted(exported), sorted(functions()), "the functions that it exports")
    program = compiled(f"{box}/windows", library, "x86_64-w64-mingw32-gcc-win32", "-static-libgcc", suffix=".exe")
    os.rename(library, os.path.join(os.path.dirname(program), os.path.basename(library)))   # Windows looks beside the program
    environment = {**os.environ, "WINEPREFIX": box + "/wine", "WINEDEBUG": "-all", "DISPLAY": "", "HOME": box}
    try:
        same(continued("/usr/lib/wine/wine64", program, model, "Once upon a time", "8", env=environment), want, "the text")
    finally:
        subprocess.run(["/usr/lib/wine/wineserver64", "-k", "-w"], env=environment, capture_output=True)


def macos(box, arch, cpu):
    library, _ = unpack(f"macosx_11_0_{arch}", f"{box}/{arch}")
    with open(library, "rb") as f:
        data = f.read()
    magic, processor, _, kind, commands = struct.unpack_from("<5I", data)
    same((magic, processor, kind), (MACHO, cpu, DYLIB), "the header")
    at, names = 32, {LOAD_DYLIB: [], ID_DYLIB: []}
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, at)
        if command in names:
            start = at + struct.unpack_from("<I", data, at + 8)[0]
            names[command].append(data[start:data.index(b"\0", start)].decode())
        at += size
    same(names[LOAD_DYLIB], ["/usr/lib/libSystem.B.dylib"], "what it loads")
    same(names[ID_DYLIB], ["@rpath/libbezel.dylib"], "its name")


with tempfile.TemporaryDirectory(prefix="bezel-wheel-") as folder:
    os.chmod(folder, 0o755)
    case("installed in a root with Python only: an answer", installed, folder)
    state = {}
    case("an example with the library of the build tree", lambda: state.update(want=reference(folder)))
    case("arm64: the example with the wheel's library", lambda: arm64(folder, state["want"]))
    case("windows: the example with the wheel's library, under Wine", lambda: windows(folder, state["want"]))
    case("macos, arm64: what the library is", macos, folder, "arm64", 0x100000C)
    case("macos, x86_64: what the library is", macos, folder, "x86_64", 0x1000007)
sys.exit(finish())
