#!/usr/bin/env python3
"""The program as scripts use it: streams, exit codes, results.  test_verbs.py PROGRAM MODELS"""
import array
import os
import subprocess
import sys
import tempfile

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NANO = os.path.join(MODELS, "nano-e-f32.gguf")
failed = False


def run(*args, stdin=b"", env=None):
    return subprocess.run([BEZEL, *args], input=stdin, capture_output=True, timeout=300, env={**os.environ, **(env or {})})


def case(name, *conditions):
    global failed
    bad = [str(i) for i, c in enumerate(conditions) if not c]
    print(f"FAIL {name}: condition {', '.join(bad)}" if bad else f"ok {name}")
    failed |= bool(bad)


def floats(path):
    a = array.array("f")
    with open(path, "rb") as f:
        a.frombytes(f.read())
    return a


r = run("--version")
case("--version", r.returncode == 0, r.stdout.startswith(b"bezel 0."), not r.stderr)
r = run("--help")
case("--help", r.returncode == 0, b"bezel run" in r.stdout, not r.stderr)
r = run()
case("no verb is a usage error on stderr", r.returncode == 2, not r.stdout, b"bezel run" in r.stderr)
r = run("frobnicate")
case("an unknown verb", r.returncode == 2, b"unknown verb 'frobnicate'" in r.stderr)
r = run("push", "gemma4:e2b")
case("a verb of another program", r.returncode == 2, b"unknown verb 'push'" in r.stderr, b"ollama push" in r.stderr)
for verb in ("run", "serve", "ps", "stop", "pull", "cp", "rm", "list", "show", "bench", "doctor", "verify", "tokenize", "logits", "encode", "diffuse", "embed"):
    r = run(verb, "--help")
    case(f"help {verb}", run("help", verb).stdout == r.stdout)
    case(f"{verb} --help", r.returncode == 0, r.stdout.startswith(b"Usage: bezel " + verb.encode()), not r.stderr)
    r = run(verb, "--no-such-option")
    case(f"{verb} refuses an unknown option", r.returncode == 2, b"unknown option '--no-such-option'" in r.stderr, not r.stdout)

for args in (["--version"], ["--help"], ["help", "run"], ["tokenize", NANO, "hi"], ["tokenize", "--json", NANO, "hi"], ["show", NANO], ["show", "--json", NANO],
             ["list"], ["doctor"], ["run", NANO, "hi", "-n", "30", "--seed", "1"], ["run", NANO, "hi", "-n", "1", "--json"]):
    with open("/dev/full", "wb") as full:
        r = subprocess.run([BEZEL, *args], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=60)
    case(f"{args[0]} to a full disk fails", r.returncode == 1, b"cannot write to standard output" in r.stderr)

max_threads = 4 * len(os.sched_getaffinity(0))
r = run("logits", NANO, "-t", "2", "-o", "/dev/null", "--threads", "99999")
case("threads are limited to four per processor", r.returncode == 0,
     f"using {max_threads} threads, four per processor, instead of 99999".encode() in r.stderr)
r = run("logits", NANO, "-t", "2", "-o", "/dev/null", "--threads", str(max_threads))
case("as many threads as allowed", r.returncode == 0, b"threads" not in r.stderr)

r = run("run", "no-such-file.gguf", "hi")
case("a missing model exits with 3", r.returncode == 3, b"no-such-file.gguf" in r.stderr, not r.stdout)
with tempfile.TemporaryDirectory() as d:
    broken = os.path.join(d, "broken.gguf")
    with open(NANO, "rb") as f:
        data = f.read()
    with open(broken, "wb") as f:
        f.write(data[:len(data) // 2])
    r = run("run", broken, "hi")
    case("a truncated model exits with 1 and one sentence", r.returncode == 1, not r.stdout, r.stderr.count(b"\n") == 1,
         b"cut off" in r.stderr)
    r = run("logits", NANO, "-t", "2", "-o", os.path.join(d, "x"), "--device", "gpu", env={"BEZEL_WEBGPU_LIB": os.path.join(d, "none.so")})
    case("a missing device exits with 4", r.returncode == 4, b"GPU" in r.stderr)

    one, two, fast = (os.path.join(d, n) for n in ("one.f32", "two.f32", "fast.f32"))
    ids = "2,500,501,502,503,504,505,506,507,508,509,510"
    r = run("logits", NANO, "-t", ids, "-o", one)
    case("logits writes one row per token", r.returncode == 0, os.path.getsize(one) == 12 * 640 * 4, not r.stdout, not r.stderr)
    run("logits", NANO, "-t", ids, "-o", two, "--chunk", "5", "--threads", "1")
    case("chunk and threads change nothing", open(one, "rb").read() == open(two, "rb").read())
    run("logits", NANO, "-t", ids, "-o", fast, "--fast")
    a, b = floats(one), floats(fast)
    difference = max(abs(x - y) for x, y in zip(a, b))
    case("--fast is near but not equal", 0 < difference < 1)
    listed = os.path.join(d, "ids.txt")
    with open(listed, "w") as f:
        f.write(ids.replace(",", "\n") + "\n")
    run("logits", NANO, "-t", "@" + listed, "-o", two)
    case("ids from a file", open(one, "rb").read() == open(two, "rb").read())
    for bad, why in (("2,x", b"'x' is not a token id"), ("2,640", b"not in the vocabulary"), ("", b"no tokens")):
        r = run("logits", NANO, "-t", bad, "-o", two)
        case(f"logits refuses -t '{bad}'", r.returncode == 2, why in r.stderr)
    r = run("logits", NANO, "-t", "2", "-o", os.path.join(d, "no", "such", "folder"))
    case("logits reports when it cannot write", r.returncode == 1, b"cannot write" in r.stderr)

r = run("tokenize", NANO, "the people of the world")
case("tokenize prints ids", r.returncode == 0, r.stdout.startswith(b"2,"), not r.stderr)
plain = r.stdout
r = run("tokenize", NANO, stdin=b"the people of the world")
case("tokenize reads standard input", r.stdout == plain)
r = run("tokenize", NANO, "--no-bos", "the people of the world")
case("tokenize --no-bos", b"2," + r.stdout == plain)
r = run("tokenize", NANO, "--special", "<|turn>user")
s = run("tokenize", NANO, "<|turn>user")
case("tokenize --special", r.stdout.startswith(b"2,105,"), b"105" not in s.stdout)
r = run("tokenize", NANO, "--json", 'a "b"\n')
try:
    import json
    pieces = json.loads(r.stdout)
except ValueError:
    pieces = []
case("tokenize --json", len(pieces) > 3, pieces and pieces[0] == {"id": 2, "piece": "<bos>"})

for verb in ("show", "tokenize", "bench"):            # run has Pebble: test_pebble.py
    r = run(verb)
    case(f"{verb} without a model", r.returncode == 2, b"no model given" in r.stderr, b"bezel list" in r.stderr, not r.stdout)

# What is said is drawn at random; the likeliest tokens are not.
r = run("run", NANO, "hello", "-n", "12", "--temp", "0")
again = run("run", NANO, "-n", "12", "--temp", "0", stdin=b"hello")
case("run answers on stdout only", r.returncode == 0, len(r.stdout) > 1, not r.stderr)
case("the prompt may come through a pipe", r.stdout == again.stdout)
r = run("run", NANO, "hello", "-n", "12", "--temp", "0", "-v")
case("run -v reports timings on stderr", r.stdout == again.stdout, b"tokens/s" in r.stderr)
r = run("run", NANO, "hello " * 600)
case("a prompt longer than the context", r.returncode == 1, b"the context holds" in r.stderr)
sys.exit(failed)
