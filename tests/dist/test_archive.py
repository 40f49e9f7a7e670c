#!/usr/bin/env python3
"""The archives for Linux, unpacked in roots that have nothing else, or nothing but glibc.

  test_archive.py FOLDER PROGRAM     the folder with the archives, and the program of the build tree

Quick: the static one for this machine. In full: all of them, every decoder, and those for arm64 under qemu.
"""
import glob
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import clean_root  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, PROGRAM = sys.argv[1], os.path.abspath(sys.argv[2])
FULL = not os.environ.get("BEZEL_QUICK")
GLIBC = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEWEST = (2, 34)  # Debian 12, Ubuntu 22.04, RHEL 9


def unpack(kind, into):
    """-> the folder of the archive's program, seen from `into`"""
    found = glob.glob(f"{FOLDER}/bezel-*-linux-{kind}.tar.gz")
    need(len(found) == 1, f"{len(found)} archives {kind} in {FOLDER}; run make dist")
    with tarfile.open(found[0]) as archive:
        top = {m.name.split("/")[0] for m in archive.getmembers()}
        strange = [m.name for m in archive.getmembers() if m.uid or m.gid or m.issym() or m.name.startswith("/")]
        need(top == {os.path.basename(found[0])[:-len(".tar.gz")]} and not strange, f"{top} {strange}")
        archive.extractall(into)
    return f"/{top.pop()}"


def elf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def needs_nothing(program):
    need("INTERP" not in elf(program, "-l") and "(NEEDED)" not in elf(program, "-d"), "it needs a loader or libraries")
    need("Position-Independent Executable" in elf(program, "-h") or "DYN" in elf(program, "-h"), "it is not position-independent")


def needs_glibc(program):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", elf(program, "-d")))
    same(sorted(needed - GLIBC), [], "libraries besides glibc's")
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"@GLIBC_([\d.]+)", elf(program, "--dyn-syms"))}
    need(versions and max(versions) <= NEWEST, f"it needs glibc {max(versions)}")
    need("BIND_NOW" in elf(program, "-d") or "NOW" in elf(program, "-d"), "symbols are bound late")


def has_documents(root, folder):
    doc = f"{root}{folder}/share/doc/bezel"
    with open(f"{doc}/THIRD-PARTY.txt", encoding="utf-8", errors="replace") as f:
        text = f.read()
    for name in ("libjpeg62-turbo-dev", "libsndfile", "mpg123", "curl", "libssl-dev", "libc6", "GNU LESSER GENERAL PUBLIC LICENSE", "Apache License"):
        need(name in text, f"THIRD-PARTY.txt does not have {name}")
    for f in (f"{doc}/LICENSE", f"{doc}/README.md", f"{root}{folder}/share/man/man1/bezel.1", f"{root}{folder}/share/bezel/web/third-party.txt"):
        need(os.path.getsize(f) > 500, f)


def finds_names(root, program):
    """from /etc/hosts, without a library of the machine's, whatever nsswitch.conf says"""
    os.makedirs(root + "/etc", exist_ok=True)
    for name, text in (("hosts", "127.0.0.1 nearby\n"), ("nsswitch.conf", "hosts: mymachines mdns4_minimal [NOTFOUND=return] resolve\n")):
        with open(f"{root}/etc/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    _, err = clean_root.run(root, program, "pull", "--insecure", "http://nearby:9/a/b", code=1)
    need("resolve" not in err.lower() and "nearby" in err, err)
    _, err = clean_root.run(root, program, "pull", "--insecure", "http://unknown.invalid:9/a/b", code=1)
    need("resolve" in err.lower() or "unknown.invalid" in err, err)


def loads_no_library(root, program):
    _, err = clean_root.run(root, program, "run", "pebble", "Hello", "--device", "gpu", code=4)
    need("statically" in err, err)


def native(box, kind, check, media, full):
    root = clean_root.empty(os.path.join(box, kind))
    state = {}
    case(f"{kind}: unpacks", lambda: state.update(folder=unpack(kind, root)))
    if "folder" not in state:
        return
    program = state["folder"] + "/bin/bezel"
    case(f"{kind}: what it needs", check, root + program)
    if check is needs_glibc:
        for f in sorted(GLIBC - {"ld-linux-aarch64.so.1"}):
            os.makedirs(root + "/lib64", exist_ok=True)
            subprocess.run(["cp", "-L", f"/lib/x86_64-linux-gnu/{f}", root + "/lib64/"], check=True)
        os.symlink("lib64", root + "/lib")
    case(f"{kind}: licences and documents", has_documents, root, state["folder"])
    case(f"{kind}: an answer", answers.answers, root, program, PROGRAM)
    for name, option in answers.media_files(root + "/media", media):
        case(f"{kind}: reads {name}", answers.decodes, root, program, PROGRAM, name, option)
    if check is needs_nothing:
        case(f"{kind}: finds names without libraries", finds_names, root, program)
        case(f"{kind}: says why it has no GPU", loads_no_library, root, program)
    if full:
        case(f"{kind}: serves on a root that is read-only", lambda: answers.serves(root, program, read_only=True))


def emulated(box, kind, check, library):
    """an answer under qemu, which has no root of its own"""
    root = clean_root.empty(os.path.join(box, kind))
    state = {}
    case(f"{kind}: unpacks", lambda: state.update(folder=unpack(kind, root)))
    if "folder" not in state:
        return
    program = root + state["folder"] + "/bin/bezel"
    case(f"{kind}: what it needs", check, program)
    case(f"{kind}: licences and documents", has_documents, root, state["folder"])
    [(name, option)] = answers.media_files(root + "/media", False)[1:]

    def answer():
        for ask, *more in ((answers.ASK,), (answers.SEE, option, f"{root}/media/{name}")):
            p = subprocess.run(["qemu-aarch64", *library, program, *ask, *more, "--sandbox", "off"], capture_output=True, text=True)
            need(p.returncode == 0 and len(p.stdout) > 5, p.stdout + p.stderr)
    case(f"{kind}: an answer, and one about sound", answer)


def main(box):
    native(box, "x86_64-static", needs_nothing, FULL, True)
    if FULL:
        native(box, "x86_64", needs_glibc, True, True)
        emulated(box, "arm64-static", needs_nothing, [])
        emulated(box, "arm64", needs_glibc, ["-L", "/usr/aarch64-linux-gnu"])


with tempfile.TemporaryDirectory(prefix="bezel-archive-") as folder:
    os.chmod(folder, 0o755)
    main(folder)
sys.exit(finish())
