#!/usr/bin/env python3
"""bezel search: passages, what is computed again, damaged and foreign indexes, interruptions.  test_search.py PROGRAM MODELS"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GOLDEN = os.environ.get("BEZEL_GOLDEN", "build/golden")
FIRST, SECOND = (os.path.abspath(os.path.join(GOLDEN, name, "text.gguf")) for name in ("embedding", "embedding2"))
CATS = "# Cats\n\nCats eat fish.\n\n## Sleep\n\nThey sleep near the house.\n"
WATER = "The water is cold.\n\nA tree stands near the water.\n"


class Folder:
    def __init__(self, **files):
        self.top = tempfile.mkdtemp(prefix="bezel-search-")
        self.path = os.path.join(self.top, "notes")
        os.mkdir(self.path)
        self.put("cats.md", CATS)
        self.put("sub/water.txt", WATER)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top)

    def put(self, name, data):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    @property
    def index(self):
        return os.path.join(self.path, ".bezel-search", "index")

    def search(self, question, *args, model=FIRST, code=0):
        r = subprocess.run([BEZEL, "search", self.path, question, "--model", model, "--threads", "1", *args], capture_output=True, timeout=300)
        same(r.returncode, code, f"exit code; {r.stderr.decode()}")
        return r.stdout.decode(), r.stderr.decode()

    def results(self, question, *args, **more):
        out, err = self.search(question, "--json", *args, **more)
        rows = [json.loads(line) for line in out.splitlines()]
        for x in rows:
            x["file"] = os.path.relpath(x["file"], self.path)
        return rows, int((re.findall(r"(\d+) vectors computed", err) or [0])[0])


def vector(*args):
    r = subprocess.run([BEZEL, "embed", FIRST, *args], capture_output=True, timeout=300)
    return json.loads(r.stdout.splitlines()[-1])["embedding"]


def found():
    with Folder() as f:
        rows, computed = f.results("where do cats sleep?")
        same(computed, 3, "vectors")
        same(sorted((x["file"], x["line"], x["end_line"], x["text"]) for x in rows),
             [("cats.md", 1, 3, "# Cats\n\nCats eat fish."), ("cats.md", 5, 7, "## Sleep\n\nThey sleep near the house."),
              ("sub/water.txt", 1, 3, WATER.strip())], "the passages")
        need(all(a["score"] >= b["score"] for a, b in zip(rows, rows[1:])), "the best is first")
        question = vector("where do cats sleep?", "--task", "query")
        for x in rows:
            title = ["--title", "Cats"] if x["file"] == "cats.md" else []
            v = vector(x["text"], "--task", "document", *title)
            need(abs(sum(a * b for a, b in zip(question, v)) - x["score"]) < 1e-5, f"the score is that of 'embed': {x}")
        out, err = f.search("where do cats sleep?", "-k", "1")
        first = rows[0]
        lines = out.splitlines()
        same(lines[0], f"{os.path.join(f.path, first['file'])}:{first['line']}  {first['score']:.3f}", "file, line and score")
        same([x.removeprefix("    ") for x in lines[1:]], first["text"].split("\n"), "the passage")
        same(err, "", "nothing else is said")


def changes():
    with Folder() as f:
        f.results("x")
        before = os.stat(f.index).st_mtime_ns
        same(f.results("y")[1], 0, "vectors of unchanged files")
        same(os.stat(f.index).st_mtime_ns, before, "the index is not written again")
        f.put("sub/water.txt", WATER.replace("cold", "warm"))
        same(f.results("x")[1], 1, "one file has changed")
        os.rename(os.path.join(f.path, "cats.md"), os.path.join(f.path, "lions.md"))
        rows, computed = f.results("x")
        same((computed, {x["file"] for x in rows}), (0, {"lions.md", "sub/water.txt"}), "a file was moved")
        f.put("copy.md", CATS)
        rows, computed = f.results("x", "-k", "9")
        same((computed, len(rows)), (0, 5), "a copy needs no vectors")
        size = os.path.getsize(f.index)
        os.unlink(os.path.join(f.path, "sub/water.txt"))
        same(len(f.results("x")[0]), 4, "a file was removed")
        need(os.path.getsize(f.index) < size, "and its vectors")
        same(f.results("x", "--rebuild")[1], 2, "--rebuild")
        other = os.path.join(f.top, "other")
        same(f.results("x", "--index", other)[1], 2, "--index")
        need(os.path.getsize(other) == os.path.getsize(f.index), "the same in another file")


def damage():
    with Folder() as f:
        want, _ = f.results("x")
        with open(f.index, "rb") as file:
            good = file.read()
        for what, bad in (("cut", good[:-7]), ("longer", good + b"x"), ("empty", b""), ("changed", good[:300] + b"?" + good[301:]), ("text", b"hello " * 99)):
            with open(f.index, "wb") as file:
                file.write(bad)
            out, err = f.search("x", "--json")
            need("is damaged; it is made again" in err and "3 vectors computed" in err, f"{what}: {err}")
            same([json.loads(line)["score"] for line in out.splitlines()], [x["score"] for x in want], what)
            with open(f.index, "rb") as file:
                same(file.read(), good, f"{what}: the new index")
        out, err = f.search("x", model=SECOND, code=2)
        need("was made with another model; --rebuild makes it again" in err and out == "", err)
        with open(f.index, "rb") as file:
            same(file.read(), good, "a foreign index stays as it is")
        need(f.results("x", "--rebuild", model=SECOND)[1] == 3, "--rebuild with another model")


def skipped():
    with Folder() as f:
        f.put("photo.png", b"\x89PNG\r\n")
        f.put("latin.txt", "Stra\u00dfe".encode("latin-1"))
        f.put("zero.txt", b"a\0b")
        f.put(".hidden.md", "Hidden cats.")
        f.put(".git/notes.md", "More hidden cats.")
        f.put("README", "A file without an ending.")
        os.symlink("/etc/passwd", os.path.join(f.path, "link.md"))
        os.mkfifo(os.path.join(f.path, "pipe.md"))
        f.put("empty.md", "")
        for i in range(4):
            f.put(f"z{i}.pdf", b"%PDF")
        out, err = f.search("x", "-k", "99")
        same(sorted(set(re.findall(r"^\S+/notes/(\S+):\d+  ", out, re.M))), ["README", "cats.md", "sub/water.txt"], "searched files")
        same([os.path.basename(line) for line in re.findall(r"^skipped (\S+:.*)$", err, re.M)],
             ["latin.txt: not text in UTF-8", "link.md: a link", "photo.png: not text or Markdown", "pipe.md: not a plain file", "z0.pdf: not text or Markdown"], "named")
        need("skipped 4 more; --verbose names them" in err, err)
        _, err = f.search("x", "--verbose")
        same(err.count("skipped "), 9, "all are named")
        same(f.search("x", "--quiet")[1], "", "--quiet")


def long_texts():
    with Folder() as f:
        words = " ".join(f"word{i}" for i in range(600))
        f.put("long.txt", words)
        f.put("wide.txt", "\U0001f600" * 500)
        f.put("code.md", "# Code\n\n```\n# no heading\n\n" + "x = 1\n" * 20 + "```\n")
        rows, computed = f.results("x", "-k", "999")
        same(computed, len(rows), "vectors")
        text = [x for x in rows if x["file"] == "long.txt"]
        same("".join(x["text"].replace(" ", "") for x in sorted(text, key=lambda x: words.index(x["text"]))), words.replace(" ", ""), "nothing is lost")
        need(len(text) > 2, "long texts are cut")
        same(sum(len(x["text"]) for x in rows if x["file"] == "wide.txt"), 500, "characters are not cut")
        same([x["line"] for x in rows if x["file"] == "code.md"], [1], "no heading in code")


def has_open(pid, ending):
    """whether the process has a file open whose name ends so"""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}").endswith(ending):
                return True
        except FileNotFoundError:                      # closed meanwhile
            pass
    return False


def interrupted():
    """Ctrl-C: what was computed stays, and the next search goes on from there"""
    with Folder() as f:
        for i in range(24):
            f.put(f"{i:02}.txt", f"The water of {i} is cold near the house of the old man.\n" * 6)
        p = subprocess.Popen([BEZEL, "search", f.path, "x", "--model", FIRST, "--threads", "1", "--sandbox", "off"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while p.poll() is None and not has_open(p.pid, ".gguf"):
            time.sleep(0.001)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=300)
        need(p.returncode in (130, -signal.SIGINT) and out == b"", f"{p.returncode} {err}")
        rows, rest = f.results("x", "-k", "999")
        same(len(rows), len({(x["file"], x["line"]) for x in rows}), "each passage once")
        done = int((re.findall(rb"(\d+) of \d+ passages are in the index", err) or [0])[0])
        same(done + rest, len(rows), f"computed before and after; {err}")


def refused():
    with Folder() as f:
        for args, word in (((f.path,), "no question"), ((), "no folder"), ((f.path + "/none", "x"), "there is no folder"), ((f.path, "x", "-k", "0"), "from 1 to"),
                           ((os.path.join(f.path, "cats.md"), "x"), "there is no folder")):
            r = subprocess.run([BEZEL, "search", *args], capture_output=True, timeout=60)
            need(r.returncode == 2 and word in r.stderr.decode(), f"{args}: {r.stderr}")
        chat = os.path.join(MODELS, "nano-e-f32.gguf")
        need("EmbeddingGemma" in f.search("x", model=chat, code=4)[1], "a chat model")
        env = {**os.environ, "OLLAMA_MODELS": os.path.join(f.top, "none")}
        r = subprocess.run([BEZEL, "search", f.path, "x"], capture_output=True, timeout=60, env=env)
        need(r.returncode == 3 and b"bezel pull embeddinggemma" in r.stderr, r.stderr)
        os.makedirs(os.path.join(f.top, "nothing/sub"))
        r = subprocess.run([BEZEL, "search", os.path.join(f.top, "nothing"), "x", "--model", FIRST], capture_output=True, timeout=60)
        need(r.returncode != 0 and b"There is no text in" in r.stderr, r.stderr)
        shutil.rmtree(os.path.dirname(f.index), ignore_errors=True)
        os.symlink(f.top, os.path.dirname(f.index))
        need("is not a folder; '--index FILE'" in f.search("x", code=1)[1], "a link in place of the index's folder")


for name, run in (("passages with file, line and score", found), ("only what has changed is computed again", changes), ("a damaged or foreign index", damage),
                  ("files that are skipped", skipped), ("long texts", long_texts), ("an interruption", interrupted), ("what is refused", refused)):
    case("search: " + name, run)
sys.exit(finish())
