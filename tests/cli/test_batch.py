#!/usr/bin/env python3
"""run --prompts: many prompts, kills, shards, bad lines.

    test_batch.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402
from progress import PATIENCE, wait_until  # noqa: E402

import scripted

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TINY, BASE = (os.path.join(MODELS, m + ".gguf") for m in ("tiny-e-q4_k_m", "nano-e-f32"))
top = tempfile.mkdtemp(prefix="bezel-batch-")
QUICK = bool(os.environ.get("BEZEL_QUICK"))  # a slow build: the same cases, less of each
ENV = {**os.environ, "OLLAMA_MODELS": os.path.join(top, "none")}


def path(name):
    return os.path.join(top, name)


def write(name, lines):
    with open(path(name), "w", encoding="utf-8") as f:
        f.writelines((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    return path(name)


def read(name):
    with open(path(name), "rb") as f:
        return f.read()


def bezel(*args, code=0, stdin=b""):
    threads = [] if "--threads" in args else ["--threads", "1"]   # small models on a busy machine are faster so
    p = subprocess.run([BEZEL, "run", *args, *threads], capture_output=True, input=stdin, timeout=PATIENCE, env=ENV)
    need(p.returncode == code, f"'bezel run {' '.join(args)}' ended with {p.returncode}: {p.stderr.decode()}")
    return p.stdout.decode(), p.stderr.decode()


def records(text):
    return [json.loads(line) for line in text.splitlines()]


SYSTEM = "You are a helpful assistant who answers in one sentence and never lies about the weather."
QUESTIONS = [dict(prompt=f"Question number {i}: what is {i} times {i + 1}?", id=f"q{i}") for i in range(16 if QUICK else 48)]
N = len(QUESTIONS)
for i, q in enumerate(QUESTIONS):           # short and long ones, so that they end at different times
    q["options"] = dict(num_predict=4 + (i * 7) % (12 if QUICK else 40))


def answers():
    write("in", QUESTIONS)
    out, err = bezel(TINY, "--prompts", path("in"), "--system", SYSTEM)
    got = records(out)
    same([r["line"] for r in got], list(range(1, N + 1)), "line numbers")
    same([r["id"] for r in got], [q["id"] for q in QUESTIONS], "ids")
    for r, q in zip(got, QUESTIONS):
        made, most = r["usage"]["completion_tokens"], q["options"]["num_predict"]
        need(r["finish"] == "end" and made <= most or r["finish"] == "length" and made == most, f"{r['id']} has {made} of {most} tokens: {r['finish']}")
    need(f"{N} answered" in err and "tokens/s" in err, err)
    same(bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "-q")[1], "", "stderr with -q")
    bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path("whole"))
    same(read("whole").decode(), out, "the file")
    with open(path("in"), "rb") as f:
        same(bezel(TINY, "--prompts", "-", "--system", SYSTEM, stdin=f.read())[0], out, "from standard input")


def one_by_one():
    """together or alone, an answer is the same"""
    write("few", QUESTIONS[:8 if QUICK else 12])
    one = bezel(TINY, "--prompts", path("few"), "--system", SYSTEM, "--parallel", "1")[0]
    for args in (["--parallel", "8"], ["--parallel", "3", "--threads", "2"], ["--chunk", "7"]):
        same(bezel(TINY, "--prompts", path("few"), "--system", SYSTEM, *args)[0], one, f"with {args}")
    for r, q in list(zip(records(one), QUESTIONS))[:2 if QUICK else 6]:
        alone, _ = bezel(TINY, q["prompt"], "--system", SYSTEM, "--seed", str(r["seed"]), "-n", str(q["options"]["num_predict"]), "--json")
        alone = [json.loads(x) for x in alone.splitlines()]
        same("".join(e["text"] for e in alone if e["type"] in ("text", "broken_tool_call")), r["text"], f"{r['id']} by itself")
        same(alone[-1]["usage"]["prompt_tokens"], r["usage"]["prompt_tokens"], "tokens of the prompt")


def reuse():
    _, err = bezel(TINY, "--prompts", path("few"), "--system", SYSTEM, "-v", "--parallel", "2")
    reused = int(err.split(" prompt tokens reused")[0].split()[-1])
    total = sum(r["usage"]["prompt_tokens"] for r in records(bezel(TINY, "--prompts", path("few"), "--system", SYSTEM)[0]))
    need(reused > total // 2, f"{reused} of {total} tokens were reused")


def seeds():
    write("same", [dict(prompt="x")] * 3 + [dict(prompt="x", seed=9)] * 2)
    got = records(bezel(TINY, "--prompts", path("same"), "-n", "20")[0])
    need(len({r["text"] for r in got[:3]}) == 3, "one prompt on three lines has one answer")
    same(got[3]["text"], got[4]["text"], "two lines with one seed")
    other = records(bezel(TINY, "--prompts", path("same"), "-n", "20", "--seed", "5")[0])
    need(got[0]["text"] != other[0]["text"], "--seed changes nothing")
    same(got[3]["text"], other[3]["text"], "a line's own seed")


def bad_lines():
    write("bad", ['{"prompt": "hi", "id": 1}', "no JSON at all", "[1, 2]", '{"id": "x"}', '{"prompt": "a", "messages": []}',
                  '{"prompt": 7}', "", "   ", '{"prompt": "a", "options": {"temprature": 1}}', '{"prompt": "a", "options": {"top_p": 7}}',
                  '{"messages": [{"role": "martian", "content": "x"}]}', '{"prompt": "a", "stop": [1]}', '{"id": [1], "prompt": "a"}',
                  json.dumps(dict(prompt="word " * 2000)), '{"prompt": "a", "options": {"num_ctx": 99, "num_thread": 3}, "model": "m"}',
                  '{"prompt": "a", "response_format": {"type": "yaml"}}', '{"prompt": "a", "n": 2}', '{"prompt": "a", "logprobs": true}',
                  '{"prompt": "a", "temperature": "hot"}', '{"prompt": "a", "functions": []}'])
    out, err = bezel(TINY, "--prompts", path("bad"), "-n", "3", code=1)
    got = {r["line"]: r for r in records(out)}
    same(sorted(got), [1, 2, 3, 4, 5, 6] + list(range(9, 21)), "lines")
    same(sorted(n for n, r in got.items() if "error" not in r), [1, 15], "good lines")
    same([got[n]["error"]["code"] for n in (2, 3, 9, 14)], ["bad_request"] * 3 + ["context_full"], "codes")
    same(got[4]["id"], "x", "the id of a bad line")
    for n, word in ((16, "response_format"), (17, "n is 1"), (18, "logprobs"), (19, "temperature"), (20, "functions")):
        need(word in got[n]["error"]["message"], str(got[n]))
    need('Unknown option "temprature".' == got[9]["error"]["message"], str(got[9]))
    need("2 answered, 16 failed" in err, err)
    for _ in range(2):  # also when all results are there already
        _, err = bezel(TINY, "--prompts", path("bad"), "-n", "3", "--out", path("bad_out"), code=1)
        need("16 failed" in err, err)


def structure():
    """thinking, tool calls, stop strings"""
    call = scripted.write(path("call.gguf"), BASE, ["<|channel>", "thought", "\n\n", "Hm", "<channel|>", "One moment.", "<|tool_call>",
                                                     "call:weather{city:", '<|"|>', "Paris", "}", "<tool_call|>"])
    tools = [dict(type="function", function=dict(name="weather", parameters=dict(type="object", properties=dict(city=dict(type="string")))))]
    ask = dict(messages=[dict(role="user", content="Weather?")], tools=tools)
    write("calls", [ask, dict(ask, think=False), dict(ask, stop="moment"), dict(ask, system="Be kind."), dict(ask, reasoning_effort="none")])
    got = records(bezel(call, "--prompts", path("calls"))[0])
    same(got[0]["tool_calls"], [dict(function=dict(name="weather", arguments=dict(city="Paris")))], "the call")
    same([got[0]["text"], got[0]["thinking"], got[0]["finish"]], ["One moment.", "\nHm", "end"], "text, thinking, finish")
    need("thinking" not in got[1] and "thinking" not in got[4], "thinking though the line says no")
    same([got[2]["text"], got[2]["finish"], got[2].get("tool_calls")], ["One ", "stop", None], "a stop string")
    need(got[3]["usage"]["prompt_tokens"] > got[0]["usage"]["prompt_tokens"], "no system prompt")


def kills():
    """kill -9 at random moments; the file ends as if nothing had happened"""
    args = [BEZEL, "run", TINY, "--prompts", path("in"), "--system", SYSTEM, "-q", "--threads", "1", "--out", path("killed")]
    want = read("whole")
    rng = random.Random(4)
    start = time.time()
    subprocess.run([*args[:-1], path("timing")], env=ENV, check=True)
    once = time.time() - start
    left = None                       # how the file was left to the next run
    for i in range(6 if QUICK else 20):
        p = subprocess.Popen(args, env=ENV, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * once * 0.6)
        p.send_signal(signal.SIGKILL)
        p.wait()
        if os.path.exists(path("killed")):
            got = read("killed")
            if got == left:           # this one had not come to look at it
                continue
            need(want.startswith(got[:got.rfind(b"\n") + 1]), f"after kill {i + 1} the file is not a beginning of the whole")
            if i % 2 == 0 and len(got) > 200:        # and a power failure in the middle of a line
                with open(path("killed"), "r+b") as f:
                    f.truncate(len(got) - rng.randrange(1, 120))
            elif got:                 # or one that leaves zeros where the next line was to be
                with open(path("killed"), "ab") as f:
                    f.write(b"\0" * rng.randrange(1, 50))
            if got == want:
                with open(path("killed"), "r+b") as f:
                    f.truncate(0)
            left = read("killed")
    subprocess.run(args, env=ENV, check=True)
    need(read("killed") == want, "the file differs from that of one run")


def torn():
    """a file cut anywhere, or with an incomplete last line, is completed"""
    want = read("whole")
    args = [BEZEL, "run", TINY, "--prompts", path("in"), "--system", SYSTEM, "-q", "--threads", "1", "--out", path("torn")]
    ends = [i + 1 for i, c in enumerate(want) if c == 10]
    for data in (want[:3], want[:ends[0] - 1], want[:ends[0]], want[:ends[-2] + 40], want[:ends[-3]] + b"{}", want[:-1]):
        with open(path("torn"), "wb") as f:
            f.write(data)
        subprocess.run(args, env=ENV, check=True, timeout=PATIENCE)
        need(read("torn") == want, f"{len(data)} bytes did not become whole")
    with open(path("torn"), "wb") as f:
        f.write(want[:-5])
    _, err = bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path("torn"))
    need("an incomplete last line of" in err and "was dropped" in err, err)


def damaged():
    """a damaged line with results after it is refused, and nothing is lost"""
    want = read("whole")
    ends = [i + 1 for i, c in enumerate(want) if c == 10]
    for bad in (b"\0" * 30 + b"\n", b'{"line":3,"key":\n', b"\n", b"[]\n"):
        data = want[:ends[1]] + bad + want[ends[2]:]
        with open(path("damaged"), "wb") as f:
            f.write(data)
        _, err = bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path("damaged"), code=1)
        need("is damaged: line 3 is not a result. Nothing was changed" in err, err)
        need(read("damaged") == data, "the file was changed")


def interrupted():
    p = subprocess.Popen([BEZEL, "run", TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path("int"), "--threads", "1"],
                         env=ENV, stderr=subprocess.PIPE)
    wait_until(lambda: os.path.exists(path("int")) and os.path.getsize(path("int")) >= 300, "result of 300 bytes")
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=PATIENCE)[1].decode()
    if p.returncode != 0:                            # a fast machine may have been done
        same(p.returncode, 130, "the status")
        need("the same command continues from here" in err, err)
    bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path("int"))
    need(read("int") == read("whole"), "the file differs")
    _, err = bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path("int"))
    need(f"0 answered, {N} already had results" in err, err)


def shards():
    parts = []
    for i in range(1, 4):
        number = f"{i % 3}/3"  # 0 is the last
        bezel(TINY, "--prompts", path("in"), "--system", SYSTEM, "--out", path(f"part{i}"), "--shard", number)
        parts += read(f"part{i}").splitlines()
        same([r["line"] for r in records(read(f"part{i}").decode())], list(range(i, N + 1, 3)), f"lines of shard {i}")
    parts.sort(key=lambda r: json.loads(r)["line"])
    same(b"\n".join(parts) + b"\n", read("whole"), "the shards together")
    for bad in "0/0", "4/3", "3", "a/b", "1/2/3":
        bezel(TINY, "--prompts", path("in"), "--shard", bad, code=2)


def strangers():
    """files that are not ours, or not of these prompts, stay as they are"""
    for name, text in (("notes", b"my notes\n"), ("list", b'{"a": 1}\n'), ("other", read("whole")), ("in", read("in"))):
        with open(path(name), "wb") as f:
            f.write(text)
        args = ["--prompts", path("few") if name == "other" else path("in"), "--out", path(name)]
        _, err = bezel(TINY, *args, "--system", "Another.", code=2)
        need("has results of other prompts" in err, err)
        need(read(name) == text, f"{name} was changed")
    _, err = bezel(TINY, "--prompts", path("few"), "--system", SYSTEM, "--out", path("whole"), code=2)
    need("more lines than there are prompts" in err, err)
    _, err = bezel(TINY, "--prompts", path("nothing"), code=2)
    need("Cannot read" in err, err)
    bezel(TINY, "--prompts", path("in"), "--out", "/nowhere/at/all", code=1)
    bezel(TINY, "x", "--prompts", path("in"), code=2)
    bezel(TINY, "--prompts", path("in"), "--parallel", "65", code=2)
    with open(path("empty"), "w"):
        pass
    same(bezel(TINY, "--prompts", path("empty"))[0], "", "no prompts, no answers")


def has_lock(pid):
    with open("/proc/locks", encoding="utf-8") as f:
        return any(line.split()[4] == str(pid) for line in f if "->" not in line)


def locked():
    loop = scripted.write(path("loop.gguf"), BASE, ["one", " two"], loop=0, context=100000)
    write("one", [dict(prompt="x")])
    p = subprocess.Popen([BEZEL, "run", loop, "--prompts", path("one"), "--out", path("lock")], env=ENV, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: has_lock(p.pid), "lock")
        _, err = bezel(loop, "--prompts", path("one"), "--out", path("lock"), code=2)
        need("Another run is writing" in err, err)
    finally:
        p.kill()
        p.wait()


def main():
    for name, run in (("many prompts", answers), ("parallel and one by one", one_by_one), ("shared prefixes", reuse), ("a seed per line", seeds),
                      ("bad lines", bad_lines), ("thinking, calls and stops", structure), ("killed at random times", kills), ("truncated results", torn), ("damaged files", damaged), ("Ctrl-C", interrupted),
                      ("shards", shards), ("files of other programs", strangers), ("two runs, one file", locked)):
        case(name, run)
    shutil.rmtree(top)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
