#!/usr/bin/env python3
"""The Debian packages, installed with dpkg in a root that has what they declare and nothing else.

  test_deb.py FOLDER PROGRAM     the folder with the packages, and the program of the build tree

In full it also runs lintian and every decoder, and installs the library's packages beside a compiler.
"""
import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import clean_root  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, PROGRAM = sys.argv[1], os.path.abspath(sys.argv[2])
FULL = not os.environ.get("BEZEL_QUICK")
NAMES = ("bezel", "bezel-data", "libbezel0.1", "libbezel-dev")


def version():
    with open("include/bezel.h", encoding="utf-8") as f:
        header = f.read()
    return ".".join(re.search(rf"#define BZ_VERSION_{w} (\d+)", header).group(1) for w in ("MAJOR", "MINOR", "PATCH"))


def files_of(deb):
    p = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE, check=True)
    listing = subprocess.run(["tar", "-t"], input=p.stdout, stdout=subprocess.PIPE, check=True).stdout.decode()
    return {f[1:] for f in listing.splitlines() if not f.endswith("/")}


def agrees_with_install(debs, box):
    """what `make install` installs, and Debian's own files"""
    dest = os.path.join(box, "make-install")
    flags = " ".join(w for w in os.environ.get("MAKEFLAGS", "").split() if not re.match(r"-j|--jobserver", w))
    subprocess.run(["make", "-s", "install", f"DESTDIR={dest}", "PREFIX=/usr", "LIBDIR=/usr/lib/x86_64-linux-gnu", "UNITDIR=/lib/systemd/system"],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MAKEFLAGS": flags})
    want = {"/" + f for f in clean_root.tree(dest)} - {"/usr/share/doc/bezel/LICENSE"}  # in copyright
    got = set()
    for deb in debs.values():
        got |= files_of(deb)
    got = {re.sub(r"^(/usr/share/man/.*)\.gz$", r"\1", f) for f in got}
    own = {f"/usr/share/doc/{n}/{f}" for n in NAMES for f in ("copyright", "changelog.gz", "changelog.Debian.gz")}
    own |= {f for f in got if f.startswith("/usr/share/lintian/")}
    same(sorted(got - own - want), [], "what only the packages have")
    same(sorted(want - got), [], "what only make install has")


def control(debs):
    for name, deb in debs.items():
        fields = clean_root.paragraphs(subprocess.run(["dpkg-deb", "-f", deb], capture_output=True, text=True, check=True).stdout)[0][0]
        need(fields["Version"].startswith(version() + "-"), f"{name} has version {fields['Version']}; the header says {version()}")
    with open("debian/changelog", encoding="utf-8") as f:
        need(f.read().startswith(f"bezel ({version()}-"), "debian/changelog has another version")


def wanted(debs, *which):
    groups = []
    for name in which:
        depends = subprocess.run(["dpkg-deb", "-f", debs[name], "Depends"], capture_output=True, text=True, check=True).stdout
        groups += [g for g in clean_root.names(depends) if g[0] not in NAMES]
    return groups


def installs(root, debs, found):
    need("libsndfile1" in found and "gcc" not in found and "libavformat59" not in found, f"the root has {sorted(found)}")
    before = clean_root.tree(root)
    os.makedirs(root + "/debs")
    for name in ("bezel", "bezel-data"):
        os.link(debs[name], f"{root}/debs/{name}.deb") if same_device(debs[name], root) else subprocess.run(["cp", debs[name], f"{root}/debs/{name}.deb"], check=True)
    clean_root.run(root, "dpkg", "-i", "/debs/bezel-data.deb", "/debs/bezel.deb", as_root=True)
    return before


def same_device(a, b):
    return os.stat(a).st_dev == os.stat(b).st_dev


def refuses_without_what_it_needs(root, debs):
    """the test of the test: with a dependency less, dpkg does not install it"""
    clean_root.debian(root, [g for g in wanted(debs, "bezel") if g[0] != "libgif7"])
    os.makedirs(root + "/debs")
    subprocess.run(["cp", debs["bezel"], debs["bezel-data"], root + "/debs/"], check=True)
    files = ["/debs/" + os.path.basename(debs[n]) for n in ("bezel-data", "bezel")]
    _, err = clean_root.run(root, "dpkg", "-i", *files, as_root=True, code=1)
    need("libgif7" in err, err)


def removes(root, before):
    clean_root.run(root, "dpkg", "--purge", "bezel", "bezel-data", as_root=True)
    left = {f for f in clean_root.tree(root) - before if not re.match(r"debs/|tmp/|media/|(var/(lib/dpkg|log|cache)|etc/ld\.so\.cache)", f)}
    same(sorted(left), [], "what is left")


def units(root):
    with open(root + "/lib/systemd/system/bezel.service", encoding="utf-8") as f:
        need("ExecStart=/usr/bin/bezel serve" in f.read(), "the service does not name the program")
    need(not os.path.exists(root + "/etc/systemd/system/sockets.target.wants/bezel.socket"), "the server is enabled")


def lintian(debs):
    p = subprocess.run(["lintian", "--allow-root", "--no-user-dirs", *debs.values()], capture_output=True, text=True)
    found = [line for line in p.stdout.splitlines() if re.match(r"[EW]: ", line)]
    need(p.returncode == 0 and not found, f"status {p.returncode}: {found} {p.stderr}")


def develops(debs, root):
    """dpkg installs both packages beside Debian's compiler, and nothing else; an example is built and run there"""
    need("gcc" in clean_root.debian(root, [["gcc"], ["libc6-dev"], ["pkg-config"], *wanted(debs, "libbezel0.1", "libbezel-dev")]), "no compiler")
    os.makedirs(root + "/debs")
    subprocess.run(["cp", debs["libbezel0.1"], debs["libbezel-dev"], "models/pebble.gguf", root + "/debs/"], check=True)
    files = ["/debs/" + os.path.basename(debs[n]) for n in ("libbezel0.1", "libbezel-dev")]
    clean_root.run(root, "dpkg", "-i", *files, as_root=True)
    build = "gcc -o /tmp/complete /usr/share/doc/bezel/examples/complete.c $(pkg-config --cflags --libs bezel)"
    clean_root.run(root, "sh", "-c", build)
    out, _ = clean_root.run(root, "/tmp/complete", "/debs/pebble.gguf", "Once", "8")
    need(len(out) > 5, out)
    linked = subprocess.run(["readelf", "-d", root + "/tmp/complete"], capture_output=True, text=True).stdout
    need("libbezel.so.0.1" in linked, linked)


def changelog(root):
    with gzip.open(root + "/usr/share/doc/bezel/changelog.gz", "rt") as f:
        need(version() in f.read(), "the changelog does not have this version")


def main(box):
    debs = {}
    for name in NAMES:
        found = glob.glob(f"{FOLDER}/{name}_*.deb")
        need(len(found) == 1, f"{len(found)} packages {name} in {FOLDER}; run make dist")
        debs[name] = os.path.abspath(found[0])
    case("versions are those of the header", control, debs)
    case("the packages have what make install installs", agrees_with_install, debs, box)
    root = os.path.join(box, "root")
    state = {}
    case("dpkg installs the program in a root with what it declares", lambda: state.update(
        before=installs(root, debs, clean_root.debian(root, wanted(debs, "bezel", "bezel-data")))))
    case("an answer", answers.answers, root, "/usr/bin/bezel", PROGRAM)
    for name, kind in answers.media_files(root + "/media", FULL):
        case(f"reads {name}", answers.decodes, root, "/usr/bin/bezel", PROGRAM, name, kind)
    case("the server has the page", answers.serves, root, "/usr/bin/bezel")
    case("units", units, root)
    case("the changelog", changelog, root)
    case("dpkg removes all of it", lambda: removes(root, state["before"]))
    if FULL:
        case("dpkg refuses without a dependency", refuses_without_what_it_needs, os.path.join(box, "poor"), debs)
        case("lintian is content", lintian, debs)
        case("the library's packages: an example is built and runs", develops, debs, os.path.join(box, "dev"))


with tempfile.TemporaryDirectory(prefix="bezel-deb-") as folder:
    os.chmod(folder, 0o755)
    main(folder)
sys.exit(finish())
