#!/usr/bin/env python3
"""Tests of the program (tests/cli) with the Windows build, under Wine.

    test_windows_cli.py BEZEL_EXE MODELS TEST...

Wine keeps its files in build/wine-cli, so that the end of another test does not end this one's programs. A case of SKIPPED asks for what Windows
does not have; if it passes after all, that is a failure of this list.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need  # noqa: E402

WINE = "/usr/lib/wine/wine64"
EXE, MODELS, TESTS = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
SKIPPED = {
    "test_api": {"api: --device auto": "the system has another text for a library that is missing", "api: the end": "a signal ends Wine, not the program"},
    "test_api_recorded": {"recorded: the end": "a signal ends Wine, not the program"},
    "test_doctor": {"doctor as JSON": "Wine counts the memory in another way than sysconf"},
    "test_search": {"search: files that are skipped": "Wine shows a link as the file"},
    "test_run": {"text piped in beside a prompt": "a program cannot be started without a standard input",
                 "a session in a file": "files have no modes"},
}


def one(test, program, env):
    p = subprocess.run([sys.executable, f"tests/cli/{test}.py", program, MODELS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                       stdin=subprocess.DEVNULL)
    results = re.findall(r"^(ok|FAIL) (.*)$", p.stdout, re.M)
    need(results, f"no case: {p.stdout[-800:]}")
    skipped = SKIPPED.get(test, {})
    for kind, text in results:
        name = next((n for n in skipped if text.startswith(n)), None)
        if name:
            case(f"{test}: not on Windows: {name}", need, kind == "FAIL", f"it passes, although {skipped[name]}")
        else:
            case(f"{test}: {text}" if kind == "ok" else f"{test}: {text.split(' ')[0]}", need, kind == "ok", text)


def main():
    with tempfile.TemporaryDirectory(prefix="bezel-windows-cli-") as work:
        program = os.path.join(work, "bezel")
        with open(program, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec {WINE} "{EXE}" "$@"\n')
        os.chmod(program, 0o755)
        env = {**os.environ, "WINEPREFIX": os.path.abspath("build/wine-cli"), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=", "HOME": work,
               "BEZEL_DEVICE": "cpu", "LANG": "C.UTF-8", "BEZEL_QUICK": "1"}
        try:
            for test in TESTS:
                one(test, program, env)
        finally:
            for how in ("-k", "-w"):
                subprocess.run(["/usr/lib/wine/wineserver64", how], env=env, check=False)
    return finish()


sys.exit(main())
