"""Instructions that not every x86-64 processor has are in the files of kernels that are chosen at run time, and nowhere else
in the library.

  test_instructions.py BUILD MODELS
"""
import platform
import re
import subprocess
import sys

BUILD = sys.argv[1]
# Registers that tell, and the names of objects that may use them.
WIDE = {"ymm": r"_(avx2|avxvnni|avx512\w*|amx)\.o", "zmm": r"_(avx512\w*|amx)\.o", "tmm": r"_amx\.o"}
TILES = {"ldtilecfg", "tilerelease", "tilezero", "tileloadd", "tilestored", "tdpbssd"}
failed = False


def case(name, problem):
    global failed
    if problem:
        print("  " + problem)
    print(("FAIL " if problem else "ok ") + name, flush=True)
    failed |= bool(problem)


users, of_tiles = {register: set() for register in WIDE}, set()
with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", f"{BUILD}/libbezel.a"], stdout=subprocess.PIPE, text=True) as p:
    for line in p.stdout:
        if m := re.match(r"(\S+\.o): +file format", line):
            member = m.group(1)
        elif m := re.search(r"%(ymm|zmm|tmm)\d", line):
            users[m.group(1)].add(member)
        if m := re.search(r"\t(%s)\b" % "|".join(TILES), line):
            of_tiles.add(m.group(1))
case("the library could be disassembled", "" if p.returncode == 0 else f"status {p.returncode}")
on_x86 = platform.machine() == "x86_64"
for register, name in WIDE.items():
    others = sorted(o for o in users[register] if not re.search(name + "$", o))
    case(f"which objects use {register}", str(others) if others or on_x86 != bool(users[register]) else "")
case("the products for AMX consist of tile instructions", "" if of_tiles == (TILES if on_x86 else set()) else str(of_tiles))
sys.exit(failed)
