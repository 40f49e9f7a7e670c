"""The library as a stranger meets it: installed, found by pkg-config, linked both ways, removed again.

  test_install.py BUILD MODELS
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, MODELS = sys.argv[1], os.path.abspath(sys.argv[2])
MODEL = os.path.join(MODELS, "nano-e-f32.gguf")
PEBBLE = os.path.abspath("models/pebble.gguf")
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
failed = False


def case(name, problems):
    global failed
    for p in problems:
        print("  " + p)
    print(("FAIL " if problems else "ok ") + name + (": " + problems[0].strip().splitlines()[0][:200] if problems else ""), flush=True)
    failed |= bool(problems)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def run(command, env=None, cwd=None):
    """status, stdout, stderr"""
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}, cwd=cwd)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def must(command, env=None, cwd=None):
    """problems, stdout: for commands that have to succeed"""
    code, out, err = run(command, env, cwd)
    return ([] if code == 0 else [f"{' '.join(command)}: status {code}: {err.strip()[-800:]}"]), out


def make(*arguments):
    # A parent make's job server is not for us.
    flags = " ".join(w for w in os.environ.get("MAKEFLAGS", "").split() if not re.match(r"-j|--jobserver", w))
    return must(["make", "-s", f"B={BUILD}", *arguments], {"MAKEFLAGS": flags})


def tree(root):
    """everything below root that is not a folder"""
    found = set()
    for folder, _, names in os.walk(root):
        found |= {os.path.relpath(os.path.join(folder, n), root) for n in names}
    return found


header = read("include/bezel.h")
version = ".".join(re.search(rf"#define BZ_VERSION_{w} (\d+)", header).group(1) for w in ("MAJOR", "MINOR", "PATCH"))
# Before 1.0 the minor version may break programs, so that the SONAME carries it.
so, soname = f"libbezel.so.{version}", "libbezel.so." + ".".join(version.split(".")[:2 if version.startswith("0.") else 1])
completion = [f for p in ("cli/bezel.bash", "docs/bezel.bash", "docs/*/bezel.bash") for f in glob.glob(p)]


def expected(lib="lib", include="include", man="share/man"):
    files = {"bin/bezel", f"{lib}/libbezel.a", f"{lib}/{so}", f"{lib}/{soname}", f"{lib}/libbezel.so",
             f"{lib}/pkgconfig/bezel.pc", "lib/systemd/system/bezel.service", "lib/systemd/system/bezel.socket", "share/doc/bezel/LICENSE", "share/doc/bezel/CHANGELOG.md"}
    files |= {f"{include}/" + os.path.basename(f) for f in glob.glob("include/*.h")}
    for section in "13":
        files |= {f"{man}/man{section}/" + os.path.basename(f) for f in glob.glob(f"docs/man/*.{section}")}
    files |= {"share/doc/bezel/" + os.path.basename(f) for f in glob.glob("docs/*.md") + glob.glob("README.md")}
    files |= {"share/doc/bezel/clients/" + os.path.basename(f) for f in glob.glob("docs/clients/*.md")}
    page = {"share/bezel/web/" + f for f in tree("build/web/app") - {"ready"}}
    files |= page or {"share/bezel/" + f for f in glob.glob("models/*.gguf")}
    files |= {"share/doc/bezel/" + f for f in glob.glob("examples/*.c") + ["examples/Makefile"]}
    return files | ({"share/bash-completion/completions/bezel"} if completion else set())


def compare(want, got):
    return [f"missing: {f}" for f in sorted(want - got)] + [f"too much: {f}" for f in sorted(got - want)]


def main(box):
    # ---- what is installed, and where --------------------------------------------------
    dest, prefix = os.path.join(box, "dest dir"), "/opt/bezel"
    root = dest + prefix
    problems, _ = make("install", f"DESTDIR={dest}", f"PREFIX={prefix}")
    case("make install", problems)
    if problems:
        return
    case("exactly the expected files are installed", compare(expected(), tree(root)))
    case("nothing outside the prefix", compare({prefix[1:] + "/" + f for f in expected()}, tree(dest)))
    case("modes", [f"{f}: {os.stat(f'{root}/{f}').st_mode & 0o777:o}" for f in sorted(expected())
                   if os.stat(f"{root}/{f}").st_mode & 0o777 != (0o755 if f == "bin/bezel" else 0o644)])
    case("links of the shared library", [f"{a} -> {os.readlink(f'{root}/lib/{a}')}" for a, b in
                                         ((soname, so), ("libbezel.so", soname)) if os.readlink(f"{root}/lib/{a}") != b])
    problems, out = must([f"{root}/bin/bezel", "--version"])
    case("the installed program runs", problems or ([] if out == f"bezel {version}\n" else [out]))

    if shutil.which("systemd-analyze"):
        unit = f"{root}/lib/systemd/system/bezel.service"
        found = f"{dest}/etc/systemd/system"               # where systemd looks, unlike the prefix
        shutil.copytree(os.path.dirname(unit), found)
        problems, _ = must(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={dest}", f"{found}/bezel.service"])
        case("the service's unit is valid", problems)
        shutil.rmtree(f"{dest}/etc")
        problems, out = must(["systemd-analyze", "security", "--offline=true", "--threshold=20", unit])
        case("the service is confined", problems or ([] if "Overall exposure level" in out else [out[-300:]]))

    # ---- the shared library -------------------------------------------------------------
    problems, out = must(["readelf", "-d", f"{root}/lib/{so}"])
    needed = re.findall(r"NEEDED.*\[(.*)\]", out)
    strange = [n for n in needed if not re.match(r"lib(m|c|pthread)\.so|ld-linux", n)]
    case("SONAME", problems or ([] if f"[{soname}]" in out else [out]))
    case("needs libc and libm only", problems or [f"needs {n}" for n in strange] or ([] if needed else ["needs nothing?"]))
    code, out, err = run(["tests/abi/check", f"{root}/lib/{so}", f"{root}/lib/libbezel.a"])
    sys.stdout.write(out + err)  # it reports its own cases
    global failed
    failed |= code != 0

    # ---- pkg-config --------------------------------------------------------------------
    # What a user has after a real installation: the paths of the .pc file are true.
    home = os.path.join(box, "home")
    shutil.copytree(root, home, symlinks=True)
    pc = f"{home}/lib/pkgconfig/bezel.pc"
    with open(pc, encoding="utf-8") as f:
        text = f.read()
    case("bezel.pc names the prefix once", [] if text.count(prefix) == 1 and f"prefix={prefix}\n" in text and box not in text else [text])
    case("bezel.pc has the version", must(["pkg-config", f"--exact-version={version}", "bezel"],
                                          {"PKG_CONFIG_PATH": os.path.dirname(pc)})[0])
    with open(pc, "w", encoding="utf-8") as f:
        f.write(text.replace(f"prefix={prefix}", f"prefix={home}"))
    env = {"PKG_CONFIG_PATH": os.path.dirname(pc), "LC_ALL": "C"}
    flags = run(["pkg-config", "--cflags", "--libs", "bezel"], env)[1].split()
    case("pkg-config, shared", [] if flags == [f"-I{home}/include", f"-L{home}/lib", "-lbezel"] else [" ".join(flags)])
    static = run(["pkg-config", "--static", "--libs", "bezel"], env)[1].split()
    case("pkg-config, static", [] if set(static) == {f"-L{home}/lib", "-lbezel", "-lm", "-pthread"} else [" ".join(static)])

    # ---- the examples ---------------------------------------------------------------------
    shared_env = {**env, "LD_LIBRARY_PATH": f"{home}/lib"}
    prompts = ["Hello world", "one two three"]
    texts = {}
    picture = os.path.join(box, "red.ppm")
    with open(picture, "wb") as f:
        f.write(b"P6 96 96 255\n" + b"".join(b"\xdc\x1e\x1e" if (x - 48) ** 2 + (y - 48) ** 2 < 1000 else b"\xff\xff\xff"
                                            for y in range(96) for x in range(96)))
    for kind in ("shared", "static"):
        work = os.path.join(box, kind)
        shutil.copytree(f"{home}/share/doc/bezel/examples", work)
        options = ["CFLAGS=-O2 " + " ".join(STRICT)] + (["STATIC=1"] if kind == "static" else [])
        problems, _ = must(["make", "-s", *options], {**env, "MAKEFLAGS": ""}, work)
        case(f"examples build without a warning, {kind}", problems)
        if problems:
            continue
        linked = run(["readelf", "-d", f"{work}/complete"])[1]
        uses = f"[{soname}]" in linked
        case(f"complete is linked {kind}", [] if uses == (kind == "shared") else [linked])
        got, problems = [], []
        for p in prompts:
            more, out = must([f"{work}/complete", MODEL, p, "24"], shared_env)
            problems += more or ([] if len(out) > 4 and out.endswith("\n") else [f"{p}: {out!r}"])
            got.append(out[:-1])
        case(f"complete writes text, {kind}", problems)
        problems, out = must([f"{work}/embed_jobs", MODEL, "24", *prompts], shared_env)
        case(f"embed_jobs writes two texts, {kind}", problems)
        # A cancelled answer may lack a character that its last token left open.
        spoken = re.match(r"1: (.*)\n2: (.*)\n\Z", out, re.S)
        whole = spoken and all(t and g.startswith(t) and len(g) - len(t) <= 1 for t, g in zip(spoken.groups(), got))
        case(f"two sessions in turn answer as each does alone, {kind}", [] if whole else [f"{out!r} is not {got!r}"])
        drawn = [run([f"{work}/complete", MODEL, prompts[0], "24", s], shared_env)[1] for s in ("1", "1", "2")]
        case(f"a seed decides what is drawn, {kind}", [] if drawn[0] == drawn[1] and drawn[1] != drawn[2] else drawn)
        code, out, err = run([f"{work}/complete", f"{box}/none.gguf", "x"], shared_env)
        case(f"a missing file, {kind}", [] if code == 1 and not out and "(not_found)" in err else [f"{code}: {out}{err}"])
        code, out, err = run([f"{work}/embed_jobs", f"{home}/include/bezel.h", "3", "a", "b"], shared_env)
        case(f"a file that is not a model, {kind}", [] if code == 1 and not out and "bezel.h: " in err else [f"{code}: {out}{err}"])
        talk = subprocess.run([f"{work}/chat", PEBBLE], input=b"My name is Tom.\nWhat is my name?\n", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, **shared_env})
        spoken = talk.stdout.decode("utf-8", "replace").splitlines()
        case(f"chat continues the conversation, {kind}", [] if talk.returncode == 0 and len(spoken) == 2 and "Tom" in spoken[1]
             else [f"{talk.returncode}: {talk.stdout!r} {talk.stderr!r}"])
        problems, out = must([f"{work}/see", PEBBLE, picture, "What is \"this\"?"], shared_env)
        case(f"see describes an image, {kind}", problems or ([] if "red circle" in out else [out]))
        code, out, err = run([f"{work}/see", MODEL, picture, "x"], shared_env)
        case(f"a model without vision, {kind}", [] if code == 1 and not out and "(unsupported_model)" in err else [f"{code}: {out}{err}"])
        code, out, err = run([f"{work}/see", PEBBLE, PEBBLE, "x"], shared_env)
        case(f"a file that is not an image, {kind}", [] if code == 1 and not out and "(bad_file)" in err else [f"{code}: {out}{err}"])
        texts[kind] = got
    case("shared and static say the same", [] if len(texts) == 2 and texts["shared"] == texts["static"] else [str(texts)])
    code, out, err = run([os.path.join(box, "shared", "complete"), MODEL, "x"], {**env, "LD_LIBRARY_PATH": ""})
    case("the shared program asks for its SONAME", [] if code == 127 and soname in err else [f"{code}: {err}"])

    # A program may have functions of its own with names we use inside.
    clash = os.path.join(box, "clash.c")
    archive = run(["nm", "-g", "--defined-only", f"{BUILD}/libbezel.a"])[1]
    inside = sorted(set(re.findall(r" T (\w+)", archive)) - set(read("tests/abi/bezel.symbols").split()))
    with open(clash, "w", encoding="utf-8") as f:
        f.write("#include <bezel.h>\n#include <stdio.h>\n#include <stdlib.h>\n")
        f.writelines(f"void {n}(void);\nvoid {n}(void)\n{{\n    abort();\n}}\n" for n in inside)
        f.write('int main(int argc, char **argv)\n{\n    bz_model *m = NULL;\n    bz_session *s = NULL;\n'
                '    bz_error e = {0};\n    if (argc != 2 || bz_model_open_file(&m, argv[1], NULL, NULL, &e) ||\n'
                '        bz_session_new(&s, m, NULL, &e)) {\n        puts(e.text);\n        return 1;\n    }\n'
                '    bz_session_free(s);\n    bz_model_free(m);\n    return 0;\n}\n')
    for kind in ("shared", "static"):
        libs = flags if kind == "shared" else [flags[0], *static, "-static"]
        problems, _ = must(["cc", *STRICT, "-o", f"{clash}.{kind}", clash, *libs], env)
        problems = problems or must([f"{clash}.{kind}", MODEL], shared_env)[0]
        case(f"a program's own names do not clash with {len(inside)} of ours, {kind}",
             problems if len(inside) > 100 else [f"only {len(inside)} names"])

    # ---- the manual ---------------------------------------------------------------------------
    page = read("docs/man/bezel.3")
    section3 = "".join(read(p) for p in sorted(glob.glob("docs/man/*.3")))
    pages = sorted(glob.glob("docs/man/*.[13]"))
    for p in pages:
        code, out, err = run(["groff", "-mandoc", "-ww", "-z", "-Tutf8", p])
        case(f"{p} formats without a warning", [] if code == 0 and not out + err else [out + err])
    declared = set()
    plain = re.sub(r"/\*.*?\*/", "", re.sub(r"^#.*", "", "".join(read(h) for h in sorted(glob.glob("include/*.h"))), flags=re.M), flags=re.S)
    for d in re.findall(r"BZ_API ([^;]*);", plain):
        declared.add(re.sub(r"\s+", "", d))
    shown = set()
    for ret, name, args in re.findall(r'^\.Ft (.*)\n\.Fo (\w+)\n((?:\.Fa .*\n)*)\.Fc$', section3, re.M):
        args = ",".join(a.strip('"') for a in re.findall(r"^\.Fa (.*)$", args, re.M))
        shown.add(re.sub(r"\s+", "", f"{ret.strip(chr(34))}{name}({args})"))
    case("the manual shows the functions as the headers declare them", compare(declared, shown))
    explained = set(re.findall(r"^\.Fn (bz_\w+)", section3, re.M))
    case("the manual explains every function", compare(set(read("tests/abi/bezel.symbols").split()), explained))
    example = re.search(r"^\.Sh EXAMPLES.*?^\.Bd -literal\n(.*?)^\.Ed$", page, re.S | re.M).group(1).replace("\\e", "\\")
    source = os.path.join(box, "manual.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(example)
    problems, _ = must(["cc", *STRICT, "-o", f"{box}/manual", source, *flags], env)
    case("the manual's example compiles", problems)
    if not problems:
        problems, out = must([f"{box}/manual", MODEL, prompts[0]], shared_env)
        whole = out.startswith(texts.get("shared", ["?"])[0].rstrip("\ufffd"))
        case("the manual's example runs", problems or ([] if whole else [repr(out)]))

    # ---- uninstalling ---------------------------------------------------------------------------
    keep = f"{root}/lib/other.so"
    with open(keep, "w", encoding="utf-8"):
        pass
    problems, _ = make("uninstall", f"DESTDIR={dest}", f"PREFIX={prefix}")
    case("make uninstall removes its files and no others", problems or compare({"lib/other.so"}, tree(root)))
    left = [d for d, _, _ in os.walk(root) if "bezel" in os.path.relpath(d, root)]
    case("no folder is left", left)

    # ---- other folders, as distributions use them ----------------------------------------------------
    dest = os.path.join(box, "distribution")
    where = [f"DESTDIR={dest}", "PREFIX=/usr", "LIBDIR=/usr/lib/some-linux", "INCLUDEDIR=/usr/include/bz", "MANDIR=/usr/man"]
    problems, _ = make("install", *where)
    case("LIBDIR, INCLUDEDIR and MANDIR", problems or
         compare(expected("lib/some-linux", "include/bz", "man"), tree(dest + "/usr")))
    if not problems:
        out = run(["pkg-config", "--cflags", "--libs", "bezel"], {
            "PKG_CONFIG_PATH": f"{dest}/usr/lib/some-linux/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": dest})[1].split()
        case("bezel.pc follows them", [] if out == [f"-I{dest}/usr/include/bz", f"-L{dest}/usr/lib/some-linux", "-lbezel"]
             else [" ".join(out)])
        problems, _ = make("uninstall", *where)
        case("and uninstalling does too", problems or compare(set(), tree(dest)))


with tempfile.TemporaryDirectory(prefix="bezel-install-") as folder:
    main(folder)
sys.exit(failed)
