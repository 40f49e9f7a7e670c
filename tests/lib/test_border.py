"""The program uses the library through its public headers only: linked with the shared library, which
exports nothing else, it must link and run.

  test_border.py BUILD MODELS
"""
import os
import re
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]
PROMPT = ["run", "models/pebble.gguf", "Hello", "--seed", "1", "--no-think", "-n", "24"]
failed = False


def case(name, problems):
    global failed
    for p in problems:
        print("  " + p)
    print(("FAIL " if problems else "ok ") + name, flush=True)
    failed |= bool(problems)


def run(command):
    """status, stdout, stderr"""
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def make(*arguments):
    # A parent make's job server is not for this one.
    flags = " ".join(w for w in os.environ.get("MAKEFLAGS", "").split() if not re.match(r"-j|--jobserver", w))
    p = subprocess.run(["make", "-s", f"B={BUILD}", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "MAKEFLAGS": flags})
    return p.returncode, p.stderr.decode()


shared, static = f"{BUILD}/bezel-shared", f"{BUILD}/bezel"
status, err = make(shared, static)
case("the program links with the exported functions alone", [err[-2000:]] if status else [])
if not status:
    needed = run(["readelf", "-d", shared])[1]
    case("it needs the shared library", [] if "[libbezel.so" in needed else [needed])
    case("it prints the same version", [] if run([shared, "--version"]) == run([static, "--version"]) else [str(run([shared, "--version"]))])
    want, got = run([static, *PROMPT]), run([shared, *PROMPT])
    case("it answers a prompt in the same words", [] if want[0] == 0 and want[:2] == got[:2] and want[1].strip() else [f"{want} {got}"])

    # The link would not prove anything if private functions were exported.
    with tempfile.TemporaryDirectory() as box:
        source = os.path.join(box, "private.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("void bz_gguf_free(void *);\nint main(void)\n{\n    bz_gguf_free(0);\n    return 0;\n}\n")
        library = os.path.join(BUILD, re.search(r"\[(libbezel\.so[^]]*)\]", needed).group(1))
        status, _, err = run(["cc", "-o", os.path.join(box, "private"), source, library])
        case("a program that calls a private function does not link", [] if status and "bz_gguf_free" in err else [f"{status}: {err}"])
sys.exit(failed)
