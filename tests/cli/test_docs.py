#!/usr/bin/env python3
"""The manual and the completion know what the program knows.

    test_docs.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
VERBS = ("run", "serve", "ps", "stop", "pull", "list", "show", "cp", "rm", "bench", "doctor", "verify", "tokenize", "logits", "diffuse", "encode", "embed", "search", "setup-gpu")


def bezel(*args):
    return subprocess.run([BEZEL, *args], capture_output=True, text=True, timeout=60)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def options_of_help(verb):
    return set(re.findall(r"--[a-z][a-z-]*", bezel(verb, "--help").stdout))


def manual():
    """every option of every verb stands in the verb's part of the manual, and none else"""
    page = read("docs", "man", "bezel.1")
    verbs = page[page.index(".Sh VERBS"):page.index(".Sh CHAT")]
    parts = {}
    for title, text in re.findall(r"^\.Ss ([\w-]+).*\n((?:(?!\.Ss).*\n)*)", verbs, re.M):
        parts[title] = parts.get(title, "") + text
    need(set(parts) == set(VERBS), f"the manual has {sorted(parts)}")
    for verb in VERBS:
        told = {"-" + o for o in re.findall(r"Fl (-[a-z][a-z-]*)", parts[verb])}
        known = options_of_help(verb) - {"--help"}
        need(known <= told, f"{verb}: not in the manual: {sorted(known - told)}")
        need(told <= known, f"{verb}: not in its help: {sorted(told - known)}")


def accepted():
    """what the help names is no unknown option"""
    for verb in VERBS:
        for option in options_of_help(verb):
            # else serve would serve, and run answer, and not end
            r = bezel(verb, *(["/nowhere"] if verb == "run" else []), option, *(["--dir", "/nowhere"] if verb == "serve" else []))
            need("unknown option" not in r.stderr, f"{verb} {option}: {r.stderr}")


def settings():
    names = re.findall(r'\{"(\w+)", "', read("cli", "settings.c"))
    page = read("docs", "man", "bezel.1")
    need(len(names) == 11, str(names))
    for name in names:
        need(re.search(rf"^\.Cm .*\b{name}\b", page, re.M), f"{name} is not in the manual")


def kernels():
    """every table of kernels is named wherever `--kernels` is explained, in one order"""
    tables = sorted(re.findall(r'KERNEL_TABLE\(\w+, "(\w+)"', read("src", "cpu", "kernels_avx2.c") + read("src", "cpu", "kernels_neon.c")) + ["plain"])
    help_texts = {f"{verb} --help": m.group(1) for verb in VERBS for m in re.finditer(r"--kernels NAME +(.*)", bezel(verb, "--help").stdout)}
    headers = {h: re.search(r"kernels; /\* (.*?);", " ".join(read("include", h).split())).group(1) for h in os.listdir(os.path.join(ROOT, "include"))
               if "*kernels;" in read("include", h).replace("\n", "").replace(" ", "")}
    explained = {**help_texts, **headers, "manual": re.search(r"Fl -kernels Ar name\n((?:\.Ql.*\n|or\n)+)", read("docs", "man", "bezel.1")).group(1),
                 "completion": re.search(r'--kernels\) _bezel_words "(.*?)"', read("cli", "bezel.bash")).group(1)}
    need(len(help_texts) == 6 and len(headers) == 4, str(explained))
    orders = {where: re.findall(r"\b(?!Ql|or|cpu)\w+", text) for where, text in explained.items()}
    for where, names in orders.items():
        need(sorted(names) == tables, f"{where} names {names}, not {tables}")
    need(len(set(map(tuple, orders.values()))) == 1, str(orders))


def help_is_short():
    r = bezel("--help")
    need(len(r.stdout.splitlines()) <= 30 and all(len(x) <= 100 for x in r.stdout.splitlines()), r.stdout)
    for verb in VERBS:
        need(re.search(rf"^  {verb} ", r.stdout, re.M), f"{verb} is not in the help")
        wide = [x for x in bezel(verb, "--help").stdout.splitlines() if len(x) > 100]
        need(not wide, f"{verb} --help: {wide}")


def complete(line, cwd, store):
    script = f'''source {os.path.join(ROOT, "cli", "bezel.bash")}
COMP_LINE="$1" COMP_POINT=${{#1}}
_bezel
printf '%s\\n' "${{COMPREPLY[@]}}"'''
    r = subprocess.run(["bash", "-c", script, "bash", line], capture_output=True, text=True, cwd=cwd, timeout=60,
                       env={**os.environ, "OLLAMA_MODELS": store, "PATH": os.path.dirname(BEZEL) + ":" + os.environ["PATH"]})
    need(r.stderr == "", r.stderr)
    return sorted(x for x in r.stdout.split("\n") if x)


def completion():
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(os.path.join(d, "models"))
        for name in "one.gguf", "two words.gguf", "three.txt", "in.jsonl":
            open(os.path.join(d, name), "w").close()
        store = os.path.join(d, "store")
        for tag in "e2b", "e4b":
            path = os.path.join(store, "manifests", "registry.ollama.ai", "library", "gemma4", tag)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                json.dump({}, f)
        for line, want in (("bezel sh", ["show"]), ("bezel d", ["diffuse", "doctor"]), ("bezel --v", ["--version"]),
                           ("bezel run ", ["gemma4:e2b", "gemma4:e4b", "models", "one.gguf", "store", "two words.gguf"]),
                           ("bezel run gemma4:e2", ["e2b"]), ("bezel show o", ["one.gguf"]), ("bezel show --wgsl linear_s", ["linear_short", "linear_short_any"]),
                           ("bezel run x --no-", ["--no-animation", "--no-color", "--no-fuse", "--no-think", "--no-wrap"]), ("bezel list --", ["--json"]),
                           ("bezel run x --device g", ["gpu"]), ("bezel run x --prompts in", ["in.jsonl"]), ("bezel run x --seed ", []),
                           ("bezel list ", []), ("bezel rm gemma4:e2", ["e2b"]), ("bezel stop gemma4:e2", ["e2b"]), ("bezel ps ", []), ("bezel cp gemma4:e4", ["e4b"]), ("bezel pull --ins", ["--insecure"]), ("bezel pull --retries ", []), ("bezel serve o", ["one.gguf"]), ("bezel serve --model o", ["one.gguf"]), ("bezel serve --dir m", ["models"]),
                           ("bezel search m", ["models"]), ("bezel search models --re", ["--rebuild"]), ("bezel serve --port ", []), ("bezel serve --op", ["--open"])):
            got = complete(line, d, store)
            need(got == want, f"'{line}' gives {got}")


def main():
    for name, run in (("the manual has every option", manual), ("every option of the help", accepted), ("settings in the manual", settings), ("kernels", kernels),
                      ("help is short", help_is_short), ("completion", completion)):
        case(name, run)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
