#!/usr/bin/env python3
"""The JSON Schema Test Suite, draft 2020-12: of every schema that is not refused, each valid instance is accepted byte by byte and
each invalid one is not.

    test_schema_suite.py PROGRAM MODELS

tools/setup.sh (clients) gets the suite. An instance has many texts: names in any order, 1 as 1.0. A valid one must be accepted
in one of them, since answers have one order; an invalid one in none.
"""
import collections
import glob
import itertools
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from cases import case, finish, need, same  # noqa: E402

TOOL = os.path.join(os.path.dirname(sys.argv[1]), "tests", "test_grammar")
SUITE = os.path.join(ROOT, "build", "clients", "suite", "draft2020-12")
MAX_TEXTS = 20000

# Schemas that are refused, by what the refusal says. A reason that goes away, or comes, must be noted here.
REFUSED = {
    "only references into the schema itself": 45, "No text fits the grammar": 10, "the format [a-z-]+ is not supported": 9, "minProperties above the number of required": 2,
    "is not supported in what must not hold": 3, "contains is supported once": 2, "unevaluatedItems is not supported beside contains": 1,
    "uniqueItems is supported for items of an enum": 1, "uniqueItems is not supported beside prefixItems": 2, "multipleOf is supported for 1 to 1000": 1,
    r"Unicode properties \(\\p\) are not supported": 4}
COMPILED = 358

# Valid instances that answers never are, and why.
NARROWER = {
    # "format" says what is written, here as in OpenAI's and llama.cpp's reading; for the suite it says nothing by default.
    ("format.json", "annotation by default"): 16,
    # Texts of a format that few readers take, or that need more than the text to be checked.
    ("optional/format/date-time.json", "leap second"): 2, ("optional/format/date-time.json", "case-insensitive"): 1,
    ("optional/format/time.json", "leap second"): 6, ("optional/format/time.json", "case-insensitive"): 1,
    ("optional/format/email.json", "quoted string"): 3, ("optional/format/email.json", "address-literal"): 2,
    ("optional/format/hostname.json", "punycoded"): 1, ("optional/format/hostname.json", "maximum label length"): 1,
    ("optional/format/ipv6.json", "mixed format|a long valid ipv6"): 4,
    # An answer follows one alternative of anyOf; what only another one mentions is not mentioned.
    ("unevaluatedProperties.json", "when two match"): 1,
    # Numbers with a bound or multipleOf have no exponent.
    ("optional/float-overflow.json", "valid if optional overflow"): 1,
    # $schema is not looked at: keywords mean what they mean in draft 2020-12.
    ("vocabulary.json", "no validation"): 1}


def orders(value, point):
    """all orders of the names in a value"""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for parts in itertools.product(*[list(orders(value[name], point)) for name in names]):
                yield "{" + ", ".join(f"{json.dumps(n, ensure_ascii=False)}: {p}" for n, p in zip(names, parts)) + "}"
    elif isinstance(value, list):
        for parts in itertools.product(*[list(orders(item, point)) for item in value]):
            yield "[" + ", ".join(parts) + "]"
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value) and abs(value) < 1e300:
        yield f"{int(value)}.0" if point else str(int(value))
    else:
        yield json.dumps(value, ensure_ascii=False)


def texts(value):
    """all ways to write a value"""
    return dict.fromkeys(itertools.chain(orders(value, False), orders(value, True)))


def groups():
    for pattern in ("*.json", "optional/*.json", "optional/format/*.json"):
        for path in sorted(glob.glob(os.path.join(SUITE, pattern))):
            with open(path, encoding="utf-8") as f:
                for group in json.load(f):
                    yield os.path.relpath(path, SUITE), group


def run_all():
    """-> [(file, group, refusal or [(test, accepted)])]"""
    everything, lines = list(groups()), []
    written = [[list(itertools.islice(texts(t["data"]), MAX_TEXTS)) for t in g["tests"]] for _, g in everything]
    for (_, g), instances in zip(everything, written):
        lines.append(json.dumps([g["schema"], [x for one in instances for x in one]]))
    p = subprocess.run([TOOL, "accept"], input="\n".join(lines).encode() + b"\n", stdout=subprocess.PIPE, check=True)
    said = collections.defaultdict(list)
    for line in p.stdout.decode("utf-8", "replace").splitlines():
        number, what = line.split(" ", 1)
        said[int(number)].append(what)
    out = []
    for i, ((file, g), instances) in enumerate(zip(everything, written)):
        if said[i] and said[i][0].startswith("!"):
            out.append((file, g, said[i][0][1:]))
            continue
        same(len(said[i]), sum(len(one) for one in instances), f"texts of {file}, {g['description']}")
        need(all(len(one) < MAX_TEXTS for one in instances), f"too many texts: {file}, {g['description']}")
        answers = iter(said[i])
        out.append((file, g, [(t, "y" in list(itertools.islice(answers, len(one)))) for t, one in zip(g["tests"], instances)]))
    return out


RESULTS = run_all()


def refused():
    counts, unknown = collections.Counter(), []
    for file, g, got in RESULTS:
        if isinstance(got, str):
            reasons = [r for r in REFUSED if re.search(r, got)]
            counts.update(reasons)
            unknown += [] if len(reasons) == 1 else [f"{file}, {g['description']}: {got}"]
    same(unknown, [], "other reasons")
    same(dict(counts), REFUSED, "the reasons")
    same(sum(not isinstance(got, str) for _, _, got in RESULTS), COMPILED, "schemas that are obeyed")


def invalid():
    bad = [f"{file}, {g['description']}, {t['description']}: {json.dumps(t['data'])}" for file, g, got in RESULTS if not isinstance(got, str)
           for t, accepted in got if accepted and not t["valid"]]
    same(bad, [], "accepted")


def valid():
    counts, bad, good = collections.Counter(), [], 0
    for file, g, got in RESULTS:
        for t, accepted in got if not isinstance(got, str) else ():
            if t["valid"] and not accepted:
                known = [k for k in NARROWER if k[0] == file and re.search(k[1], t["description"])]
                counts.update(known)
                bad += [] if known else [f"{file}, {g['description']}, {t['description']}: {json.dumps(t['data'])}"]
            good += t["valid"] and accepted
    same(bad, [], "not accepted")
    same(dict(counts), NARROWER, "those that are known")
    need(good > 600, f"{good} instances accepted")


for name, check in (("schemas that are refused", refused), ("invalid instances", invalid), ("valid instances", valid)):
    case("schema suite: " + name, check)
sys.exit(finish())
