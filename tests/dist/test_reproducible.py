#!/usr/bin/env python3
"""A release is made again, from its own source archive in another folder and without a compiler cache: the same bytes.

  test_reproducible.py FOLDER PROGRAM     what `make dist` made, and the program of the build tree

Packages of registries and the archives of build/static are those of this checkout. SYSTEMS in the environment: as for make dist.
"""
import glob
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import clean_root  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# What setup.sh installed. Folders, so that nothing of this checkout is written: make finds links complete.
INSTALLED = ("node", "static", "zig", "web/node_modules", "web/installed.json", "web/package.json", "web/package-lock.json")


def sums(folder):
    with open(f"{folder}/SHA256SUMS", encoding="utf-8") as f:
        return dict(reversed(line.split()) for line in f)


def complete():
    listed = sums(FOLDER)
    same(sorted(listed), sorted(os.path.basename(f) for f in glob.glob(f"{FOLDER}/*") if not f.endswith("SHA256SUMS")), "the files in the list")
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=FOLDER, check=True)


def unpack(box):
    [source] = glob.glob(f"{FOLDER}/bezel-*-source.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(box)
    top = os.path.join(box, os.path.basename(source)[:-len("-source.tar.gz")])
    need(not os.path.exists(top + "/build"), "the sources have a build folder")
    os.makedirs(top + "/build/web")
    for name in INSTALLED:
        if os.path.exists(f"build/{name}"):
            os.symlink(os.path.abspath(f"build/{name}"), f"{top}/build/{name}")
    return top


def again(top):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "SOURCE_DATE_EPOCH"))}
    p = subprocess.run(["make", "-s", "dist"], cwd=top, env={**environment, "CCACHE_DISABLE": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    need(p.returncode == 0, p.stdout[-1500:])


def installs(top, box):
    """`make install` of the source archive, in a root with the libraries that the Debian package declares"""
    root = os.path.join(box, "root")
    [deb] = glob.glob(f"{FOLDER}/bezel_*.deb")
    depends = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
    clean_root.debian(root, [g for g in clean_root.names(depends) if not g[0].startswith("bezel")])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    p = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "install", f"DESTDIR={root}"], cwd=top, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    need(p.returncode == 0, p.stdout[-1500:])
    answers.answers(root, "/usr/local/bin/bezel", PROGRAM)
    answers.serves(root, "/usr/local/bin/bezel")


def same_bytes(top, systems):
    first, second = sums(FOLDER), sums(top + "/build/dist")
    if not systems:
        same(sorted(second), sorted(first), "the files")
    differ = sorted(f for f in second if first.get(f) != second[f])
    same(differ, [], "files that differ")


with tempfile.TemporaryDirectory(prefix="a-folder-with-another-name-") as folder:
    os.chmod(folder, 0o755)
    state = {}
    case("the list of checksums is complete and right", complete)
    case("the source archive has the sources only", lambda: state.update(top=unpack(folder)))
    if state:
        case("make dist in another folder", again, state["top"])
        case("the same bytes", same_bytes, state["top"], os.environ.get("SYSTEMS"))
        case("make install of the source archive: an answer, and the page", installs, state["top"], folder)
sys.exit(finish())
