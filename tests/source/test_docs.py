"""The documents follow the tree: every path they quote exists, and DESIGN.md's table of folders is the one that
test_layers.py checks."""
import ast
import glob
import os
import re
import sys

DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md"))]
failed = False


def case(name, problems):
    global failed
    for p in problems:
        print("  " + p)
    print(("FAIL " if problems else "ok ") + name)
    failed |= bool(problems)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def missing_paths(document):
    """paths with a folder of this tree in front that do not exist; build/ is made, NAME and X are placeholders"""
    folders = "|".join(sorted(f for f in os.listdir(".") if os.path.isdir(f) and f not in ("build", ".git")))
    for quoted in re.findall(r"`([^`\n]+)`", read(document)):
        for word in re.findall(rf"(?<![\w/.-])(?:{folders})/[\w./*-]*[\w*/]", quoted):
            if not re.search(r"NAME|JOB|_X\b", word) and not glob.glob(word):
                yield word


def include_rules():
    """MAY and PROGRAM of test_layers.py: folder -> the folders that it may include from, besides include/"""
    names = {}
    for node in ast.parse(read("tests/source/test_layers.py")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in ("ENGINE", "MAY", "PROGRAM"):
            exec(compile(ast.Module([node], []), "test_layers.py", "exec"), names)
    return {**{"src/" + f: rule for f, rule in names["MAY"].items()}, **names["PROGRAM"]}


for d in DOCUMENTS:
    case(f"{d} quotes paths that exist", sorted(set(missing_paths(d))))

table = {}
for folder, included in re.findall(r"^\| `((?:src/)?\w+)` \|.*\| ([^|]*) \|$", read("docs/DESIGN.md"), re.M):
    table[folder] = set(re.findall(r"\w+", included)) - {"include"} | {os.path.basename(folder)}
rules = include_rules()
case("DESIGN.md lists the folders that test_layers.py knows", sorted(set(table) ^ set(rules)))
case("DESIGN.md has the include rules of test_layers.py",
     [f"{f}: {sorted(table[f])}, not {sorted(rules[f])}" for f in sorted(set(table) & set(rules)) if table[f] != rules[f]])
sys.exit(failed)
