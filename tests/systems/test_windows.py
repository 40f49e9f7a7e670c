#!/usr/bin/env python3
"""The Windows build under Wine: unit programs, and the program with files, pipes and sockets.

    test_windows.py BEZEL_EXE NATIVE_BEZEL DECODE_FILES_EXE DECODE_FILES WRITE_PICTURES UNIT_EXE...

Wine keeps its files in build/wine. Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import windows_media  # noqa: E402
from cases import case, finish, need, same  # noqa: E402

WINE = "/usr/lib/wine/wine64"
EXE, NATIVE, *DECODERS = map(os.path.abspath, sys.argv[1:6])
UNITS = sys.argv[6:]
PREFIX = os.path.abspath("build/wine")
WORK = tempfile.mkdtemp(prefix="bezel-windows-")
ENV = {**os.environ, "WINEPREFIX": PREFIX, "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=", "HOME": WORK,
       "BEZEL_DEVICE": "cpu", "LANG": "C.UTF-8"}
GREEDY = ("--temperature", "0", "--no-think", "--max-tokens", "12", "-q")


def wine(*command, text=None, env=None):
    return subprocess.run([WINE, *command], input=text, capture_output=True, encoding="utf-8", timeout=600, cwd=WORK,
                          env={**ENV, **(env or {})}, **({} if text is not None else {"stdin": subprocess.DEVNULL}))


def bezel(*args, **how):
    return wine(EXE, *args, **how)


def unit(path):
    r = wine(os.path.abspath(path), env={"BEZEL_GOLDEN": os.path.abspath("build/golden"), "BEZEL_MODELS": os.path.abspath("build/models")})
    failed = [line for line in r.stdout.splitlines() if not line.startswith("ok ")]
    need(r.returncode == 0 and "ok " in r.stdout, f"code {r.returncode}: {failed[:5]} {r.stderr[:300]}")


def version():
    same(bezel("--version").stdout, subprocess.run([NATIVE, "--version"], capture_output=True, text=True).stdout, "the version")


def names_in_unicode():
    """the command line, file names and output in UTF-8, and the answer of the native program"""
    model = os.path.join(WORK, "größe-模型.gguf")
    shutil.copy("models/pebble.gguf", model)
    want = subprocess.run([NATIVE, "run", model, "Wo wächst der Käse?", *GREEDY], capture_output=True, encoding="utf-8", cwd=WORK,
                          stdin=subprocess.DEVNULL)
    got = bezel("run", model, "Wo wächst der Käse?", *GREEDY)
    same((got.returncode, got.stdout), (0, want.stdout), "the answer")
    lost = bezel("show", "fehlt-ß.gguf")
    need(lost.returncode == 3 and "fehlt-ß.gguf" in lost.stderr, f"{lost.returncode} {lost.stderr}")


def standard_input():
    same(bezel("run", "pebble", "-", *GREEDY, text="What is fire?").stdout, bezel("run", "pebble", "What is fire?", *GREEDY).stdout,
         "the answer to a prompt from a pipe")


def many_prompts():
    """a file of results is locked, continued, and cut after an incomplete line"""
    with open(os.path.join(WORK, "in.jsonl"), "w", encoding="utf-8") as f:
        f.write('{"prompt":"What is fire?"}\n{"prompt":"Was ist Käse?"}\n')
    command = ("run", "pebble", "--prompts", "in.jsonl", "--out", "out.jsonl", "--parallel", "1", *GREEDY)
    need(bezel(*command).returncode == 0, "the run failed")
    with open(os.path.join(WORK, "out.jsonl"), "rb") as f:
        whole = f.read()
    same(len(whole.splitlines()), 2, "the number of results")
    need(b"\r" not in whole, "line ends are not plain")
    with open(os.path.join(WORK, "out.jsonl"), "wb") as f:
        f.write(whole[:-20])
    need(bezel(*command).returncode == 0, "the run was not continued")
    with open(os.path.join(WORK, "out.jsonl"), "rb") as f:
        again = f.read()
    same([json.loads(x)["text"] for x in again.splitlines()], [json.loads(x)["text"] for x in whole.splitlines()], "the results")


def store():
    """names of a store whose folder is written with backslashes"""
    root = os.path.join(WORK, "store", "models")
    os.makedirs(os.path.join(root, "manifests"))
    listed = bezel("list", "--json", env={"OLLAMA_MODELS": "Z:" + root.replace("/", "\\")})
    same(json.loads(listed.stdout)["models"], [], "the list of models")
    gone = bezel("rm", "nothing", env={"OLLAMA_MODELS": "Z:" + root.replace("/", "\\")})
    need(gone.returncode == 3 and "nothing" in gone.stderr, f"{gone.returncode} {gone.stderr}")


def what_is_missing():
    facts = json.loads(bezel("doctor", "--json").stdout)
    same((facts["sandbox"], facts["downloads"]), (False, False), "sandbox and downloads")
    need(facts["memory_bytes"] > 1 << 30 and facts["cores"] >= 1 and facts["disk_free_bytes"] > 0, f"{facts}")
    refused = bezel("run", "pebble", "x", "--sandbox", "on")
    need(refused.returncode == 4 and "only Linux has a sandbox" in refused.stderr, f"{refused.returncode} {refused.stderr}")
    pulled = bezel("pull", "gemma4:e2b")
    need(pulled.returncode != 0 and "cannot pull" in pulled.stderr, f"{pulled.returncode} {pulled.stderr}")
    gpu = bezel("run", "pebble", "x", "--device", "gpu")
    need(gpu.returncode != 0 and "WebGPU library" in gpu.stderr, f"{gpu.returncode} {gpu.stderr}")


def server():
    """files, an answer as a stream, and the client of 'ps', through Winsock"""
    page = os.path.join(WORK, "page")
    os.makedirs(os.path.join(page, "sub"))
    with open(os.path.join(page, "index.html"), "w", encoding="utf-8") as f:
        f.write("<p>the page</p>")
    p = subprocess.Popen([WINE, EXE, "serve", "--port", "0", "--dir", page], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         stdin=subprocess.DEVNULL, env=ENV, cwd=WORK)
    try:
        address = re.search(rb"http://127\.0\.0\.1:(\d+)/", p.stdout.readline())
        need(address, "the server printed no address")
        url = address.group().decode()
        get = urllib.request.Request(url, headers={"Accept": "text/html"})
        same(urllib.request.urlopen(get, timeout=300).read(), b"<p>the page</p>", "the page")
        for path in ("index.html.", "sub/../index.html", "INDEX~1.HTM", "index.html::$DATA", "..%5cin.jsonl"):
            try:
                got = urllib.request.urlopen(urllib.request.Request(url + path, headers={"Accept": "text/html"}), timeout=300)
                need(got.url == url + "index.html", f"{path} was served as {got.url}")
            except urllib.error.HTTPError as e:
                need(e.code in (400, 404), f"{path}: {e.code}")
        body = json.dumps({"model": "pebble", "max_tokens": 8, "temperature": 0, "stream": True,
                           "messages": [{"role": "user", "content": "What is fire?"}]}).encode()
        ask = urllib.request.Request(url + "v1/chat/completions", body, {"Content-Type": "application/json"})
        need(b"data: [DONE]" in urllib.request.urlopen(ask, timeout=300).read(), "the stream has no end")
        ps = bezel("ps", "--port", address.group(1).decode())
        need("pebble" in ps.stdout, f"{ps.stdout} {ps.stderr}")
    finally:
        p.kill()
        p.wait()


try:
    case("the version is that of the native program", version)
    for path in UNITS:
        case(f"unit {os.path.basename(path)}", unit, path)
    case("file names, arguments and answers in Unicode", names_in_unicode)
    case("a prompt from standard input", standard_input)
    case("files of prompts and results", many_prompts)
    case("a store of models", store)
    case("what is missing is said", what_is_missing)
    windows_media.cases(os.path.join(WORK, "media"), WINE, ENV, bezel, NATIVE, *DECODERS)
    case("the server", server)
finally:
    subprocess.run(["/usr/lib/wine/wineserver64", "-k"], env=ENV, check=False)
    subprocess.run(["/usr/lib/wine/wineserver64", "-w"], env=ENV, check=False)
    shutil.rmtree(WORK, ignore_errors=True)
sys.exit(finish())
