#!/usr/bin/env python3
"""Structured output: more than 200 schemas, whose documents are accepted and whose random texts fit; answers of Pebble that
follow schemas, grammars and tools.

    test_structured.py PROGRAM MODELS

The texts are checked with the package jsonschema, which tools/setup.sh installs (clients).
"""
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), *(os.path.join(ROOT, "build", "clients", "python", "lib", d, "site-packages")
                                                         for d in (f"python3.{sys.version_info.minor}",))]
from cases import case, finish, need, same  # noqa: E402
import random_schemas  # noqa: E402
from schemas import document, schemas  # noqa: E402
import jsonschema  # noqa: E402

PROGRAM = sys.argv[1]
TOOL = os.path.join(os.path.dirname(PROGRAM), "tests", "test_grammar")
PEBBLE = os.path.join(ROOT, "models", "pebble.gguf")
ALL = schemas()
QUICK = os.environ.get("BEZEL_QUICK")
WALKS = 3 if QUICK else 20


def validator(schema):
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def run(command, text=""):
    p = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p.stdout.decode(), p.stderr.decode(), p.returncode


def accepted():
    lines, documents = [], 0
    for name, schema in ALL:
        draw, texts = random.Random(name), []
        for style in ({}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4}):
            value = document(schema, schema, draw)
            validator(schema).validate(value)
            texts.append(json.dumps(value, ensure_ascii=False, **style))
        documents += len(texts)
        lines.append(json.dumps([schema, texts]))
    said = run([TOOL, "accept"], "\n".join(lines) + "\n")[0].splitlines()
    bad = [ALL[int(s.split()[0])][0] for s in said if not s.endswith(" y")]
    need(len(ALL) >= 200 and len(said) == documents and not bad, f"{len(said)} of {documents}; refused: {bad[:5]}")


def walked():
    out, _, code = run([TOOL, "walk", str(WALKS), "7"], "".join(json.dumps(schema) + "\n" for _, schema in ALL))
    same(code, 0, "the exit status")
    validators, count = [validator(schema) for _, schema in ALL], 0
    for line in out.split("\n")[:-1]:
        number, text = line.split(" ", 1)
        need(not text.startswith("!"), line)
        wrong = next(validators[int(number)].iter_errors(json.loads(text)), None)
        need(wrong is None, f"{ALL[int(number)]}: {text}: {wrong}")
        count += 1
    need(count > 0.9 * WALKS * len(ALL), f"only {count} texts")


def judged():
    draw, count = random.Random(20), 1000 if QUICK else 6000
    chosen = [random_schemas.schema(draw) for _ in range(count)]
    written = [list(random_schemas.texts(value)) for value in random_schemas.DOCUMENTS]
    flat = [text for one in written for text in one]
    said = {}
    for line in run([TOOL, "accept"], "".join(json.dumps([schema, flat]) + "\n" for schema in chosen))[0].splitlines():
        number, what = line.split(" ", 1)
        said.setdefault(int(number), []).append(what)
    compiled = 0
    for i, schema in enumerate(chosen):
        valid = [jsonschema.Draft202012Validator(schema).is_valid(value) for value in random_schemas.DOCUMENTS]
        if said[i][0].startswith("!"):
            need("No text fits" not in said[i][0] or not any(valid), f"{json.dumps(schema)}: {said[i][0]}")
            continue
        compiled += 1
        answers_of = iter(said[i])
        accepts = ["y" in [next(answers_of) for _ in one] for one in written]
        same(accepts, valid, json.dumps(schema))
    need(compiled > 0.65 * count, f"{compiled} of {count} are obeyed")


def answers():
    names = ("person", "sentiment", "weather", "verdict", "tuple", "one shape", "enum 0", "integer 0 120", "format date")
    chosen = [(n, s) for n, s in ALL if n in (names[1:5] if QUICK else names)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            for k, (name, schema) in enumerate(chosen):
                f.write(json.dumps({"id": name, "prompt": "Tell me about a fox.", "seed": k, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}) + "\n")
            f.write(json.dumps({"id": "choice", "prompt": "Yes or no?", "choices": ["yes", "no"]}) + "\n")
            f.write(json.dumps({"id": "regex", "prompt": "A code.", "regex": "[A-Z]{3}-[0-9]{2,4}", "think": False}) + "\n")
            f.write(json.dumps({"id": "any", "prompt": "A fox."}) + "\n")
        out, err, code = run([PROGRAM, "run", PEBBLE, "--prompts", path, "--format", "json", "-n", "700", "--threads", "2"])
    same(code, 0, err)
    got = {r["id"]: r for r in map(json.loads, out.splitlines())}
    same(len(got), len(chosen) + 3, "lines")
    for name, schema in chosen:
        if got[name]["finish"] == "end":
            validator(schema).validate(json.loads(got[name]["text"]))
    need(sum(r["finish"] == "end" for r in got.values()) > (3 if QUICK else 8), str({n: r["finish"] for n, r in got.items()}))
    need(got["choice"]["text"] in ("yes", "no") and got["regex"]["text"][3] == "-", f"{got['choice']} {got['regex']}")
    need(got["any"]["finish"] != "end" or isinstance(json.loads(got["any"]["text"]), dict), str(got["any"]))


def tools():
    function = {"type": "function", "function": {"name": "weather", "strict": True, "parameters": dict(ALL)["weather"]}}
    line = {"prompt": "What is the weather like?", "tools": [function], "tool_choice": "required", "parallel_tool_calls": False, "think": False, "seed": 5}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")
            f.write(json.dumps({**line, "tool_choice": {"type": "function", "function": {"name": "none"}}}) + "\n")
        out, err, _ = run([PROGRAM, "run", PEBBLE, "--prompts", path, "-n", "300"])
    first, second = map(json.loads, out.splitlines())
    need(first["finish"] != "end" or len(first["tool_calls"]) == 1, str(first))
    for call in first.get("tool_calls", []):
        given = call["function"]["arguments"]
        same(call["function"]["name"], "weather", "the tool")
        validator(dict(ALL)["weather"]).validate(json.loads(given) if isinstance(given, str) else given)
    need("no tool named none" in second["error"]["message"], str(second))


def program():
    with tempfile.TemporaryDirectory() as folder:
        def write(name, text):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
            return os.path.join(folder, name)
        schema = dict(ALL)["sentiment"]
        out, err, code = run([PROGRAM, "run", PEBBLE, "I like it.", "--format", write("s.json", json.dumps(schema)), "-q", "-n", "300", "--seed", "1"])
        same(code, 0, err)
        validator(schema).validate(json.loads(out))
        out, _, _ = run([PROGRAM, "run", PEBBLE, "Is it?", "--grammar", write("g.gbnf", 'root ::= "yes" | "no, " [a-z]{3,9} "."'), "-q", "--seed", "2", "--no-think"])
        need(out.strip() == "yes" or (out.startswith("no, ") and out.strip().endswith(".")), out)
        for arguments, word in ((["--format", write("b.json", '{"not": {"format": "date"}}')], "#/not/format"), (["--grammar", write("b.gbnf", "root ::= x")], "no rule named x"), (["--format", "none.json"], "none.json"),
                                (["--format", "json", "--grammar", "x"], "together"), (["--format", "json", "--ignore-end"], "--ignore-end")):
            _, err, code = run([PROGRAM, "run", PEBBLE, "x", *arguments])
            need(code == 2 and word in err, f"{arguments}: {code} {err}")
        _, err, code = run([PROGRAM, "run", os.path.join(ROOT, "models", "pebble-diffusion.gguf"), "x", "--format", "json"])
        need(code and "diffusion model" in err, err)


case("documents of more than 200 schemas are accepted", accepted)
case("random texts of the schemas fit them", walked)
case("random schemas accept the documents that fit them and no others", judged)
case("answers of a batch follow schemas, choices and patterns", answers)
case("forced tool calls fit their parameters", tools)
case("--format and --grammar", program)
sys.exit(finish())
