"""Roots of file systems with nothing but what an artefact brings or declares, and programs that run in them.

A root is a folder; a program sees it as / through chroot, in name spaces of its own: without a network unless it asks for one, with
its own processes. As root it runs as an ordinary user; without root a user name space makes the folder accessible, and
the caller is the ordinary user."""
import os
import re
import shutil
import subprocess

NOBODY = "65534:65534"
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
# Without a package's documents nothing behaves differently.
SKIPPED = re.compile(r"/usr/(share/(doc|man|locale|info|lintian)|lib/locale)/")

ENTER = """set -e
root=$1; how=$2; who=$3; shift 3
if [ -d "$root/dev" ]; then mount --rbind /dev "$root/dev"; fi
if [ -d "$root/proc" ]; then mount -t proc proc "$root/proc"; fi
case $how in *ro*) mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"
    if [ -d "$root/tmp" ]; then mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"; fi
    mount --rbind /dev "$root/dev"; mount -t proc proc "$root/proc" ;; esac
case $how in *user*) exec chroot --userspec="$who" "$root" "$@" ;; esac
exec chroot "$root" "$@"
"""


def inside(root, *command, network=False, read_only=False, as_root=False, user=NOBODY):
    """the command line that runs `command` in `root`"""
    how = "+".join((["ro"] if read_only else []) + (["user"] if os.geteuid() == 0 and not as_root else []))
    spaces = ["--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
    spaces += [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *spaces, "sh", "-c", ENTER, "enter", root, how, user, *command]


def run(root, *command, code=0, stdin="", env=None, **how):
    """stdout and stderr of a command that has to end with `code`"""
    p = subprocess.run(inside(root, *command, **how), input=stdin, capture_output=True, text=True, timeout=600,
                       env={**ENVIRONMENT, **(env or {})})
    if p.returncode != code:
        raise AssertionError(f"{' '.join(command)}: status {p.returncode}: {(p.stdout + p.stderr)[-1500:]}")
    return p.stdout, p.stderr


def empty(root):
    """what every Linux has: /proc, /dev and a folder for temporary files"""
    for folder in ("proc", "dev", "tmp"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    return root


def put(root, path):
    """a file of this machine, at the same path"""
    to = root + path
    os.makedirs(os.path.dirname(to), exist_ok=True)
    if os.path.lexists(to):
        return
    if os.path.islink(path):
        os.symlink(os.readlink(path), to)
    elif os.path.isdir(path):
        os.makedirs(to, exist_ok=True)
    elif os.path.isfile(path):
        shutil.copy2(path, to)


# ---- a root of Debian packages --------------------------------------------------------


def paragraphs(text):
    """Debian's control format as a list of (fields, text)"""
    found = []
    for part in re.split(r"\n\n+", text.strip()):
        fields, last = {}, None
        for line in part.splitlines():
            if line[:1] in " \t" and last:
                fields[last] += "\n" + line
            elif ":" in line:
                last, value = line.split(":", 1)
                fields[last] = value.strip()
        found.append((fields, part))
    return found


def names(relations):
    """"a (>= 1) | b, c:any" as [[a, b], [c]]"""
    return [[re.sub(r"[\s:(].*", "", one.strip()) for one in group.split("|")] for group in relations.split(",") if group.strip()]


def installed():
    """the packages of this machine by name, and the names that they provide"""
    with open("/var/lib/dpkg/status", encoding="utf-8") as f:
        status = paragraphs(f.read())
    native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    packages, provided = {}, {}
    for fields, text in status:
        if fields.get("Status") == "install ok installed" and fields["Architecture"] in (native, "all"):
            packages[fields["Package"]] = (fields, text)
            for group in names(fields.get("Provides", "")):
                provided.setdefault(group[0], fields["Package"])
    return packages, provided


def closure(wanted):
    """The essential packages, and those that `wanted` (groups of names) need in turn. A name that is not installed here cannot be
    copied: it is left out, and dpkg then refuses what depends on it."""
    packages, provided = installed()
    found = {}
    todo = [[name] for name, (fields, _) in packages.items() if fields.get("Essential") == "yes"] + list(wanted)
    while todo:
        name = next((packages.get(n) and n or provided.get(n) for n in todo.pop() if n in packages or n in provided), None)
        if name and name not in found:
            found[name] = packages[name]
            fields = packages[name][0]
            todo += names(fields.get("Depends", "")) + names(fields.get("Pre-Depends", ""))
    return found


def debian(root, wanted):
    """A root with the essential packages of Debian and `wanted`, as dpkg left them; -> their names."""
    found = closure(wanted)
    empty(root)
    for link in ("bin", "sbin", "lib", "lib64"):          # /usr is merged
        if os.path.islink("/" + link):
            os.makedirs(f"{root}/usr/{link}", exist_ok=True)
            os.symlink(os.readlink("/" + link), f"{root}/{link}")
    info = root + "/var/lib/dpkg/info"
    os.makedirs(info)
    os.makedirs(root + "/var/lib/dpkg/updates")
    os.makedirs(root + "/etc")
    for name, (fields, _) in found.items():
        own = name + (":" + fields["Architecture"] if fields.get("Multi-Arch") == "same" else "")
        for f in os.listdir("/var/lib/dpkg/info"):
            if f.startswith(own + "."):
                shutil.copy2("/var/lib/dpkg/info/" + f, info)
        with open(f"/var/lib/dpkg/info/{own}.list", encoding="utf-8") as f:
            for path in f.read().splitlines():
                if path != "/." and not SKIPPED.search(path + "/"):
                    put(root, path)
    with open(root + "/var/lib/dpkg/status", "w", encoding="utf-8") as f:
        f.write("\n\n".join(text for _, text in found.values()) + "\n\n")
    for name, line in (("passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n"), ("group", "root:x:0:\n")):
        with open(f"{root}/etc/{name}", "w", encoding="utf-8") as f:
            f.write(line)
    return set(found)


def tree(root):
    """all below root that is not a folder"""
    return {os.path.relpath(os.path.join(folder, n), root) for folder, _, files in os.walk(root) for n in files}
