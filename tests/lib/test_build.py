"""Optional libraries: `make` says which ones are missing, and picks one up when it is installed.

  test_build.py BUILD MODELS

A library is hidden by a broken header of the same name in a folder that the compiler searches first. The program is
built in a folder of its own, from the library in BUILD.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]
JPEG = b"\xff\xd8\xff\xe0 not really"
failed = False


def case(name, problem):
    global failed
    if problem:
        print("  " + problem)
    print(("FAIL " if problem else "ok ") + name, flush=True)
    failed |= bool(problem)


def run(*command, code=0, **env):
    """stdout and stderr together"""
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **env})
    if p.returncode != code:
        raise SystemExit(f"FAIL {' '.join(command)}: status {p.returncode}\n{p.stdout[-2000:]}")
    return p.stdout


def main(box):
    headers, build, picture = (os.path.join(box, name) for name in ("include", "build", "picture.jpg"))
    os.mkdir(headers)
    with open(picture, "wb") as f:
        f.write(JPEG)

    def hide(*names):
        shutil.rmtree(headers)
        for folder in "webp", "curl", "libswscale":
            os.makedirs(os.path.join(headers, folder))
        for name in names:
            with open(os.path.join(headers, name), "w", encoding="utf-8") as f:
                f.write("#error hidden by test_build.py\n")

    def make(*targets):
        """what it built, and its lines about what is missing"""
        # A parent make's job server is not for us.
        flags = " ".join(w for w in os.environ.get("MAKEFLAGS", "").split() if not re.match(r"-j|--jobserver", w))
        out = run("make", f"-j{os.cpu_count()}", f"B={build}", f"CFLAGS=-O0 -I{headers}", "CC=cc", "LDFLAGS=",
                  f"LIBBEZEL={BUILD}/libbezel.a", *targets, MAKEFLAGS=flags)
        return re.findall(r"^  (?:CC|LD) (.*)$", out, re.M), re.findall(r"^without.*$", out, re.M)

    def read_jpeg():
        return run(f"{build}/bezel", "encode", "models/pebble.gguf", "--image", picture, "-o", f"{box}/out.f32", "-q", code=1)

    def edits():
        return json.loads(run(f"{build}/bezel", "doctor", "--json", BEZEL_WEBGPU_LIB="/nonexistent"))["line_editing"]

    sentence = "This build cannot read JPEG: install libjpeg62-turbo-dev and run make again."

    hide("jpeglib.h", "gif_lib.h", "histedit.h", "curl/curl.h", "libswscale/swscale.h")
    _, lines = make()
    want = ["without JPEG, GIF, video, line editing, pulling models: install libjpeg62-turbo-dev libgif-dev "
            "libavformat-dev libswscale-dev libedit-dev libcurl4-openssl-dev and run make again"]
    case("a build without five libraries says so in one line", "" if lines == want else str(lines))
    text = run(f"{build}/bezel", "pull", "gemma4:e2b", code=4)
    case("pull names its package", "" if "cannot pull models: install libcurl4-openssl-dev and run make again." in text else text)
    text = read_jpeg()
    case("the program names the package", "" if sentence in text else text)
    text = run(f"{build}/bezel", "encode", "models/pebble.gguf", "--video", picture, "-o", f"{box}/out.f32", "-q", code=1)
    case("and those for video", "" if "cannot read video: install libavformat-dev libswscale-dev and" in text else text)
    case("no line editing", "" if edits() is None else "there is")
    built, lines = make()
    case("make again builds nothing and says the same", "" if not built and lines == want else f"{built} {lines}")

    hide("gif_lib.h")
    built, lines = make()
    want = ["without GIF: install libgif-dev and run make again"]
    case("a library that was installed is no longer named", "" if lines == want else str(lines))
    text = read_jpeg()
    case("and is used", "" if "damaged" in text else text)
    case("line editing is there", "" if edits() == "libedit" else "it is not")
    text = run(f"{build}/bezel", "pull", "a/b/c/d", code=2)
    case("pull is there", "" if "not a valid model name" in text else text)
    case("only what depends on libraries is built again", "" if len(built) <= 10 else str(built))

    hide()
    case("with all of them nothing is printed", " ".join(make()[1]))
    hide("jpeglib.h", "png.h", "webp/demux.h", "gif_lib.h", "sndfile.h")
    make("all", f"{build}/tests/test_decode")
    text = read_jpeg()
    case("a library that was removed is no longer used", "" if sentence in text else text)
    text = run(f"{build}/tests/test_decode")
    case("every format that is missing is refused with its package", "" if text.count("not in this build") == 5 else text)


with tempfile.TemporaryDirectory(prefix="bezel-build-") as folder:
    main(folder)
sys.exit(failed)
