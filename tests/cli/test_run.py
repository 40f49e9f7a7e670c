#!/usr/bin/env python3
"""run as scripts use it: streams, options, events, reproducibility.

    test_run.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402
from progress import PATIENCE, wait_until, writes_to_full_pipe  # noqa: E402

import fake_store
import scripted

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BASE = os.path.join(MODELS, "nano-e-f32.gguf")
TINY = os.path.join(MODELS, "tiny-e-q4_k_m.gguf")
PEBBLE, DRAFTER = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", name)
                   for name in ("pebble.gguf", "pebble-drafter.gguf"))
folder = tempfile.mkdtemp(prefix="bezel-run-")
# Nothing of the person who runs this: no store, no history, no colors.
ENV = {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")},
       "OLLAMA_MODELS": os.path.join(folder, "none"), "XDG_STATE_HOME": folder}


def bezel(*args, code=0, stdin="", env=None):
    """stdout and stderr of a run that must end with this code"""
    p = subprocess.run([BEZEL, *args], capture_output=True, input=stdin.encode(), timeout=PATIENCE, env={**ENV, **(env or {})})
    out, err = p.stdout.decode(), p.stderr.decode()  # both are UTF-8, always
    need(p.returncode == code, f"'bezel {' '.join(args)}' ended with {p.returncode}: {err.strip()}")
    return out, err


def run(model, *args, **more):
    """one thread, unless the case is about threads: small models on a busy machine are faster so"""
    return bezel("run", model, *([] if "--threads" in args else ["--threads", "1"]), *args, **more)


def events(model, *args, **more):
    out, err = run(model, *args, "--json", **more)
    same(err, "", "stderr")
    return [json.loads(line) for line in out.splitlines()]


def text_of(list_of_events, kind="text"):
    return "".join(e["text"] for e in list_of_events if e["type"] == kind)


def model(name, script, **more):
    return scripted.write(os.path.join(folder, name + ".gguf"), BASE, script, **more)


SKY = model("sky", ["The", " sky", " is", " blue", "."])
THINK = model("think", ["<|channel>", "thought", "\n\n", "Hm", ", ", "<0xE2>", "<0x9C>", "<0x93>", "<channel|>",
                        "The", " sky", " is", " blue", "."])
CALL = model("call", ["One moment.", "<|tool_call>", "call:weather{city:", '<|"|>', "Paris", "}", "<tool_call|>"])
BROKEN = model("broken", ["<|tool_call>", "no call at all", "<tool_call|>", "Sorry."])
LOOP = model("loop", ["one", " two", " three", " four\n"], loop=0, context=100000)
BYTES = model("bytes", ["A", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "B", "<0x1B>", "[31m", "C"])


def plain():
    out, err = run(SKY, "Why?")
    same(out, "The sky is blue.\n", "the answer")
    same(err, "", "stderr")
    same(run(SKY, stdin="Why?")[0], out, "the answer to a pipe")
    same(run(SKY, "-", stdin="Why?")[0], out, "the answer to -")
    same(run(SKY, "--", "Why?")[0], out, "the answer after --")


def beside_a_prompt():
    """text that is piped in is appended; there is none on a terminal or /dev/null"""
    def prompt_tokens(*args, stdin=""):
        return events(SKY, *args, stdin=stdin)[-1]["usage"]["prompt_tokens"]

    alone, both = prompt_tokens("Summarize:"), prompt_tokens("Summarize:", stdin="a letter\n")
    need(both > alone, f"{both} tokens with the text, {alone} without")
    same(prompt_tokens("Summarize:\n\na letter\n"), both, "as one prompt")
    same(prompt_tokens("-", stdin="Summarize:\n\na letter\n"), both, "as one text")
    path = os.path.join(folder, "letter.txt")
    with open(path, "w") as f:
        f.write("a letter\n")
    for source, want in ((path, both), (os.devnull, alone)):
        with open(source) as f:
            p = subprocess.run([BEZEL, "run", SKY, "Summarize:", "--json", "--threads", "1"], stdin=f, capture_output=True, env=ENV, timeout=PATIENCE)
        same(json.loads(p.stdout.splitlines()[-1])["usage"]["prompt_tokens"], want, source)
    p = subprocess.run([BEZEL, "run", SKY, "Why?", "--threads", "1"], stdin=None, close_fds=True, preexec_fn=lambda: os.close(0),
                       capture_output=True, env=ENV, timeout=PATIENCE)
    same(p.stdout, b"The sky is blue.\n", "with standard input closed")


def sessions():
    """a conversation over several commands; what is computed of it stays beside it"""
    path = os.path.join(folder, "talk.json")
    model = scripted.write(os.path.join(folder, "talk.gguf"), BASE, ["The", " sky", " is", " blue", "."], context=4096)
    first = events(model, "Why is it so, and since when?", "--session", path, "--no-think")[-1]["usage"]
    same([os.stat(p).st_mode & 0o777 for p in (path, path + ".state")], [0o600, 0o600], "modes")
    again = events(model, "And then?", "--session", path, "--no-think")[-1]["usage"]
    need(again["reused_tokens"] >= first["prompt_tokens"] - 1, f"{first}, then {again}")
    with open(path) as f:
        same([m["content"] for m in json.load(f)["messages"]], ["Why is it so, and since when?", "The sky is blue.", "And then?", "The sky is blue."],
             "the conversation")
    with open(path + ".state", "r+b") as f:
        f.seek(200)
        f.write(b"damaged")
    out, err = run(model, "And now?", "--session", path, "--no-think")
    same(out, "The sky is blue.\n", "an answer all the same")
    need("it is damaged or cut off. The conversation is read again." in err, err)
    need(run(model, "And now?", "--session", path, "--no-think")[1] == "", "the state is whole again")
    err = run(model, "And now?", "--session", path, "--no-think", "--kv", "q4")[1]
    need("was saved with keys and values in f16, this session keeps them in q4" in err, err)
    need(run(model, "And now?", "--session", path, "--no-think", "--kv", "q4")[1] == "", "it is of that type now")
    err = run(TINY, "x", "--session", path, "-n", "1")[1]
    need("was saved with another model, or with other adapters or scales. The conversation is read again." in err, err)
    with open(path, "w") as f:
        f.write("mine")
    err = run(model, "x", "--session", path, code=2)[1]
    need("not a saved chat" in err and open(path).read() == "mine", err)
    need("--prompts" in run(model, "--prompts", path, "--session", path, code=2)[1], "--prompts")


def long_conversations():
    """the oldest turns go, a tool's call with its results, the pinned ones stay, and all stay in the file"""
    path = os.path.join(folder, "long.json")
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "First."}, {"role": "assistant", "content": "Pinned."}]
    for i in range(12):
        turns += [{"role": "user", "content": f"Question {i}: why is that so?"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"i": i}}}]},
                  {"role": "tool", "tool_name": "look", "content": "found"}, {"role": "assistant", "content": "It is so because it is."}]
    saved = {"model": "x", "pinned": 3, "messages": turns}

    def ask(*args, **more):
        with open(path, "w") as f:
            json.dump(saved, f)
        return run(SKY, "And why this?", "--session", path, "--no-think", "-c", "512", *args, **more)

    out, err = ask("--json")
    done = json.loads(out.splitlines()[-1])
    left_out = done["context_shift"]["left_out"]
    need(left_out % 4 == 0 and 4 <= left_out < 48 and done["usage"]["prompt_tokens"] <= 384, f"{done}")
    need("no longer sees the oldest turns" in err, err)
    with open(path) as f:
        same(len(json.load(f)["messages"]), len(turns) + 2, "messages in the file")
    need("the context holds 512" in ask("--context-shift", "off", code=1)[1], "--context-shift off")
    same(ask("--context-shift", "on", "-q"), ("The sky is blue.\n", ""), "--quiet")
    need("'--context-shift' does not work" in run(SKY, "--prompts", path, "--context-shift", "on", code=2)[1], "--prompts")


def spellings_of_ollama():
    same(run(THINK, "Why?", "--hidethinking", "--nowordwrap", "--verbose")[0], "The sky is blue.\n", "--hidethinking")
    on, off = (events(THINK, "Why?", *o)[-1]["usage"]["prompt_tokens"] for o in (["--think=high"], ["--think=false"]))
    same([on, off], [events(THINK, "Why?", o)[-1]["usage"]["prompt_tokens"] for o in ("--think", "--no-think")], "--think with a value")
    for args, words in ((["--keepalive", "5m"], "bezel serve --keep-alive"), (["--insecure"], "bezel pull --insecure"),
                        (["--truncate"], "embeddings"), (["--think=maybe"], "true, false, low, medium or high"),
                        (["--think=true", "--think=false"], "cannot be used together")):
        out, err = run(SKY, "Why?", *args, code=2)
        need(words in err and not out, f"{args}: {err}")
    need("unknown option '--keepalive'" in bezel("show", SKY, "--keepalive", code=2)[1], "of run only")


def thinking():
    out, err = run(THINK, "Why?")
    same([out, err], ["The sky is blue.\n", ""], "piped")
    out, err = run(THINK, "Why?", "--show-thinking")
    same(out, "The sky is blue.\n", "stdout with --show-thinking")
    same(err, "Thinking...\n\nHm, \u2713\n...done thinking.\n\n", "stderr with --show-thinking")
    _, err = run(THINK, "Why?", "--show-thinking", env={"CLICOLOR_FORCE": "1"})
    need(err.startswith("\x1b[2mThinking...") and err.endswith("\x1b[0m\n\n"), f"CLICOLOR_FORCE: {err!r}")
    _, err = run(THINK, "Why?", "--show-thinking", env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"})
    need("\x1b" not in err, f"NO_COLOR: {err!r}")
    _, err = run(THINK, "Why?", "--show-thinking", "--no-color", env={"CLICOLOR_FORCE": "1"})
    need("\x1b" not in err, f"--no-color: {err!r}")
    out, err = run(THINK, "Why?", "--hide-thinking", "--think")
    same([out, err], ["The sky is blue.\n", ""], "hidden")
    # Without thinking the prompt is shorter: no system turn with <|think|>. What is thought all the same is dropped.
    on, off = (events(THINK, "Why?", *o)[-1]["usage"]["prompt_tokens"] for o in ([], ["--no-think"]))
    need(off < on, f"{off} tokens without thinking, {on} with it")
    same(text_of(events(THINK, "Why?", "--no-think"), "thinking"), "", "thinking with --no-think")


def as_events():
    e = events(THINK, "Why?", "--seed", "7")
    same([x["type"] for x in e], ["thinking"] * 3 + ["text"] * 5 + ["done"], "types")
    same(text_of(e, "thinking"), "\nHm, \u2713", "thinking")
    same(text_of(e), "The sky is blue.", "text")
    done = e[-1]
    same([done["model"], done["finish"], done["seed"]], ["think.gguf", "end", 7], "the last event")
    same([done["usage"]["completion_tokens"], done["usage"]["reused_tokens"]], [15, 0], "usage")
    need(all(done["timings"][k] >= 0 for k in ("load_s", "prompt_s", "generate_s", "prompt_tokens_per_s", "generate_tokens_per_s")),
         str(done["timings"]))
    e = events(CALL, "Weather?")
    same(e[:2], [dict(type="text", text="One moment."),
                 dict(type="tool_call", name="weather", arguments=dict(city="Paris"))], "events of a call")
    e = events(BROKEN, "Weather?")
    same(e[0], dict(type="broken_tool_call", text="no call at all"), "a broken call")
    same(text_of(e), "Sorry.", "text after a broken call")
    out, err = run(CALL, "Weather?")
    same(out, "One moment.\n", "stdout of a call")
    need('{"name":"weather","arguments":{"city":"Paris"}}' in err, err)


def characters():
    """a character of four tokens comes whole; a pipe gets all bytes as they are"""
    e = events(BYTES, "x")
    same(text_of(e), "A\U0001F600B\x1b[31mC", "text")
    need(any(x.get("text") == "\U0001F600" for x in e), "not in one event")
    same(run(BYTES, "x")[0], "A\U0001F600B\x1b[31mC\n", "stdout")


def control_tokens():
    for m in THINK, CALL, BROKEN:
        out, err = run(m, "x", "--show-thinking")
        need("<|" not in out + err and "|>" not in out + err, out + err)


def stops():
    same(run(SKY, "x", "--stop", "is")[0], "The sky \n", "--stop is")
    same(run(SKY, "x", "--stop", "sky is")[0], "The \n", "a stop string of two tokens")
    same(run(SKY, "x", "--stop", "nothing", "--stop", "blu")[0], "The sky is \n", "the second stop string")
    same(run(SKY, "x", "--stop", "blue?")[0], "The sky is blue.\n", "held back and let go")
    done = events(SKY, "x", "--stop", "is")[-1]
    same(done["finish"], "stop", "finish")
    limit = str(done["usage"]["completion_tokens"])
    same(events(SKY, "x", "--stop", "is", "-n", limit)[-1]["finish"], "stop", "a stop string in the last token of the limit")
    same(text_of(events(THINK, "x", "--stop", "Hm")), "The sky is blue.", "a stop string in a thought")
    same(text_of(events(CALL, "x", "--stop", "moment.?")), "One moment.", "held back before a call")
    run(SKY, "x", "--stop", "", code=2)


def lengths():
    e = events(SKY, "x", "-n", "2")
    same([text_of(e), e[-1]["finish"], e[-1]["usage"]["completion_tokens"]], ["The sky", "length", 2], "-n 2")
    e = events(LOOP, "x", "-c", "60")
    need(e[-1]["finish"] == "context" and sum(e[-1]["usage"][k] for k in ("prompt_tokens", "completion_tokens")) == 60, str(e[-1]))
    _, err = run(SKY, "word " * 600, code=1)
    need("the context holds 512" in err, err)
    out, _ = run(SKY, "word " * 600, "--json", code=1)
    same(json.loads(out)["code"], "context_full", "the error event")
    _, err = run(SKY, "x", "-c", "1000", code=2)
    need("goes up to 512" in err, err)


def seeds():
    one, two, other = (run(TINY, "x", "-n", "40", "--seed", s)[0] for s in ("5", "5", "6"))
    need(one == two, "the same seed, another answer")
    need(one != other, "another seed, the same answer")
    a, b = (events(TINY, "x", "-n", "40") for _ in range(2))
    need(a[-1]["seed"] != b[-1]["seed"] and text_of(a) != text_of(b), "without a seed twice the same")
    again = events(TINY, "x", "-n", "40", "--seed", str(a[-1]["seed"]))
    same(text_of(again), text_of(a), "the answer of a seed that was told")
    same(run(TINY, "x", "-n", "40", "--seed", "18446744073709551615", "--threads", "2")[0],
         run(TINY, "x", "-n", "40", "--seed", "18446744073709551615", "--threads", "1", "--chunk", "3")[0], "threads and chunks")
    greedy = run(TINY, "x", "-n", "40", "--temp", "0")[0]
    same(run(TINY, "x", "-n", "40", "--top-k", "1", "--seed", "3")[0], greedy, "--top-k 1")
    same(run(TINY, "x", "-n", "40", "--temp", "0", "--repeat-penalty", "1")[0], greedy, "a penalty of 1")
    need(run(TINY, "x", "-n", "40", "--temp", "0", "--frequency-penalty", "5")[0] != greedy, "no effect of a penalty")
    same(run(TINY, "x", "-n", "40", "--temp", "0", "--frequency-penalty", "5", "--repeat-last-n", "0")[0], greedy,
         "a penalty that looks at nothing")


def drafts():
    """guessed tokens change how an answer comes, not what it says"""
    want = run(LOOP, "x", "-n", "60")[0]
    out, err = run(LOOP, "x", "-n", "60", "--draft", "lookup", "-v")
    same(out, want, "the answer")
    guesses = [line for line in err.splitlines() if line.startswith("drafts:")]
    need(guesses and "guessed tokens were right" in guesses[0], err)
    right, of = int(guesses[0].split()[1]), int(guesses[0].split()[3])
    need(0 < right <= of <= 59, guesses[0])
    out, err = run(LOOP, "x", "-n", "60", "--draft", "off", "-v")
    need(out == want and "drafts:" not in err, "off")
    need("magic: No such file" in run(LOOP, "x", "--draft", "magic", code=3)[1], "a file that is not there")
    need("--prompts" in run(LOOP, "--prompts", "-", "--draft", "lookup", code=2)[1], "a file of prompts")


def drafters():
    """a small model that guesses for the large one: named, or the layer of a store's model"""
    def story(model, *args, **more):
        out, err = run(model, "Tell me a story about a fox.", "--temp", "0", "-v", *args, **more)
        lines = [line.split() for line in err.splitlines() if line.startswith("drafts:")]
        return out, int(lines[0][1]) if lines else 0, err
    want = story(PEBBLE)[0]
    out, right, err = story(PEBBLE, "--draft", DRAFTER)
    need(out == want and right > 0, f"{right} {err}")
    need("another model" in run(LOOP, "x", "--draft", DRAFTER, code=1)[1], "the drafter of another model")
    need("two text models" in run(LOOP, "x", "--draft", SKY, code=2)[1], "a model as drafter")
    with open(DRAFTER, "rb") as f:
        drafter = f.read()
    with tempfile.TemporaryDirectory() as top:
        env = {"OLLAMA_MODELS": top}
        fake_store.add(top, "pebble:fast", PEBBLE, draft=drafter)
        fake_store.add(top, "loop:fast", LOOP, draft=drafter)
        out, right, err = story("pebble:fast", env=env)
        need(out == want and right > 0, f"{right} {err}")
        out, right, err = story("pebble:fast", "--draft", "off", env=env)
        same([out, right], [want, 0], "off")
        out, err = run("loop:fast", "x", "-n", "12", env=env)
        same(out, run(LOOP, "x", "-n", "12")[0], "a drafter that does not fit")
        need("the drafter of loop:fast is not used" in err and "another model" in err, err)
    report = json.loads(bezel("bench", PEBBLE, "--draft", DRAFTER, "-n", "16", "--repeat", "1", "--json")[0])
    need(len(report["round_ms"]) == 8 and min(report["round_ms"]) > 0 and report["same_text"], str(report))


def bad_values():
    for args in (["--temp", "x"], ["--temp", "-1"], ["--top-p", "1.5"], ["--top-k", "2.5"], ["--min-p", "nan"], ["--seed", "-7"],
                 ["-n", "-3"], ["--think", "--no-think"], ["--show-thinking", "--hide-thinking"], ["--out", "f"],
                 ["--shard", "1/2"], ["--device", "toaster"], ["--repeat-penalty", "0"], ["--kv", "q5"]):
        out, err = run(SKY, "x", *args, code=2)
        need(out == "" and err.startswith("bezel"), f"{args}: {out!r} {err!r}")
    _, err = run(SKY, "two", "words", code=2)
    need("quotes" in err, err)


def system():
    e = [events(SKY, "x", "--no-think", *o)[-1]["usage"]["prompt_tokens"] for o in ([], ["--system", "Be brief."])]
    need(e[1] > e[0], f"{e} tokens of the prompts")


def store():
    """the system prompt and params of a store's model, and the request that wins over them"""
    import hashlib
    root = os.path.join(folder, "store")
    os.makedirs(os.path.join(root, "blobs"), exist_ok=True)

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(root, "blobs", "sha256-" + digest), "wb") as f:
            f.write(data)
        return dict(digest="sha256:" + digest, size=len(data))

    def add(tag, *layers, parser="gemma4"):
        path = os.path.join(root, "manifests", "registry.ollama.ai", "library", "gem", tag)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        config = json.dumps(dict(model_format="gguf", model_family="gemma4", parser=parser)).encode()
        with open(path, "w") as f:
            json.dump(dict(schemaVersion=2, config=blob(config),
                           layers=[dict(mediaType="application/vnd.ollama.image." + k, **blob(d)) for k, d in layers]), f)

    with open(TINY, "rb") as f:
        tiny = f.read()
    with open(THINK, "rb") as f:
        think = f.read()
    params = json.dumps(dict(temperature=0, num_predict=9, seed=4, stop=["zzz"])).encode()
    add("params", ("model", tiny), ("params", params), ("system", b"You are terse."))
    add("plain", ("model", tiny))
    add("quiet", ("model", think), parser="gemma4-no-thinking")
    here = {"OLLAMA_MODELS": root}
    done = events("gem:params", "x", env=here)[-1]
    same([done["model"], done["finish"], done["usage"]["completion_tokens"], done["seed"]], ["gem:params", "length", 9, 4], "params")
    text = text_of(events("gem:params", "x", env=here))
    same(text, text_of(events("gem:plain", "x", "--temp", "0", "-n", "9", "--system", "You are terse.", env=here)), "the answer")
    same(events("gem:params", "x", "-n", "3", "--seed", "1", env=here)[-1]["usage"]["completion_tokens"], 3, "-n over params")
    need(text_of(events("gem:params", "x", "--temp", "1.5", "--seed", "1", env=here)) != text, "--temp over params")
    same(text_of(events("gem:quiet", "x", env=here), "thinking"), "", "thinking of a parser that has none")
    need(text_of(events("gem:quiet", "x", "--think", env=here), "thinking"), "no thinking with --think")


def timings():
    out, err = run(SKY, "x", "-v")
    same(out, "The sky is blue.\n", "stdout")
    for label in "total duration:", "load duration:", "prompt eval count:", "prompt eval rate:", "eval count:", "eval rate:":
        need(label in err, err)
    need(err.count("tokens/s") == 2 and "6 tokens\n" in err, err)


def interrupted():
    """also while the program waits for a slow reader: no text is lost, and nothing is on stderr"""
    for slow_reader in False, True:
        p = subprocess.Popen([BEZEL, "run", LOOP, "x", "--no-think", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, bufsize=0, pipesize=4096)
        first = p.stdout.read(1)
        if slow_reader:
            wait_until(lambda: writes_to_full_pipe(p.pid), "full pipe")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        same([p.returncode, err], [130, b""], "Ctrl-C")
        lines = (first + out).decode().splitlines(keepends=True)
        need(lines[-1].endswith("\n") and set(lines[:-1]) <= {"one two three four\n"}, f"torn: {lines[-3:]}")
    p = subprocess.Popen([BEZEL, "run", LOOP, "x", "--json", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
    p.stdout.read(20)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=PATIENCE)
    same([p.returncode, json.loads(out.splitlines()[-1])["finish"]], [130, "interrupted"], "Ctrl-C with --json")


def closed_pipe():
    p = subprocess.Popen([BEZEL, "run", LOOP, "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
    p.stdout.read(20)
    p.stdout.close()
    same([p.wait(timeout=PATIENCE), p.stderr.read()], [-signal.SIGPIPE, b""], "a closed pipe")
    p.stderr.close()
    with open("/dev/full", "wb") as full:
        r = subprocess.run([BEZEL, "run", SKY, "x"], stdout=full, stderr=subprocess.PIPE, env=ENV, timeout=PATIENCE)
    same(r.returncode, 1, "a full disk")
    need(b"cannot write" in r.stderr, str(r.stderr))


def main():
    started = time.time()
    for name, what in (("run answers on stdout", plain), ("text piped in beside a prompt", beside_a_prompt), ("a session in a file", sessions), ("a conversation that is too long", long_conversations), ("Ollama's spellings", spellings_of_ollama), ("thinking", thinking), ("events", as_events), ("whole characters", characters),
                       ("control tokens are not shown", control_tokens), ("stop strings", stops), ("lengths", lengths),
                       ("seeds and sampling", seeds), ("drafts", drafts), ("drafters", drafters), ("bad values", bad_values), ("system prompt", system),
                       ("parameters of a store's model", store), ("timings", timings), ("Ctrl-C", interrupted), ("closed pipes", closed_pipe)):
        case(name, what)
    if os.environ.get("BEZEL_SHOW"):
        print(f"{time.time() - started:.1f} s")
    import shutil
    shutil.rmtree(folder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
