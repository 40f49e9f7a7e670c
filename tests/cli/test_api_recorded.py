#!/usr/bin/env python3
"""Every endpoint of serve answers as recorded in tests/clients/exchanges.json.

    test_api_recorded.py PROGRAM MODELS [--record]

--record writes what the server answers now; look at the difference before committing it.
"""
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import exchanges  # noqa: E402
import scripted  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PEBBLE = os.path.join(HERE, "..", "..", "models", "pebble.gguf")


def play(s, e):
    now = exchanges.recorded(*exchanges.ask(s, e))
    for key, value in now.items():
        same(value, e["recorded"][key], f"{key} of {e['method']} {e['path']}")


def every_endpoint(all_of_them):
    """what docs/API.md names has an exchange"""
    with open(os.path.join(HERE, "..", "..", "docs", "API.md"), encoding="utf-8") as f:
        paths = set(re.findall(r"\$BEZEL(/[\w/-]*)", f.read()))
    missing = paths - {e["path"] for e in all_of_them}
    need(not missing, f"no exchange with {sorted(missing)}")


def main():
    all_of_them = exchanges.load()
    with tempfile.TemporaryDirectory() as top, Serving(BEZEL, PEBBLE, scripted.with_call(os.path.join(top, "call.gguf"), MODELS)) as s:
        if sys.argv[3:] == ["--record"]:
            for e in all_of_them:
                e["recorded"] = exchanges.recorded(*exchanges.ask(s, e))
            with open(exchanges.PATH, "w", encoding="utf-8") as f:
                f.write("[\n" + ",\n".join(json.dumps(e, ensure_ascii=False) for e in all_of_them) + "\n]\n")
        case("recorded: every endpoint", every_endpoint, all_of_them)
        for e in all_of_them:
            case("recorded: " + e["name"], play, s, e)
        code, err = s.end()
        case("recorded: the end", lambda: same((code, err), (0, ""), "exit code and messages"))
    return finish()


sys.exit(main())
