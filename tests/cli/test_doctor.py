#!/usr/bin/env python3
"""doctor, as text and as JSON.

    test_doctor.py PROGRAM MODELS

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


def doctor(*args, code=0, **env):
    """without a GPU: a test of the GPU is elsewhere"""
    p = subprocess.run([BEZEL, "doctor", *args], capture_output=True, text=True, timeout=120,
                       env={**os.environ, "BEZEL_WEBGPU_LIB": "/nowhere/libwebgpu.so", **env})
    need(p.returncode == code, f"ended with {p.returncode}: {p.stderr}")
    return p.stdout, p.stderr


def as_text():
    out, err = doctor()
    need(err == "", err)
    need(out.startswith("bezel "), out)
    for pattern in (r"^  processor  \S", r"^  cores +\d+ usable$", r"^  features +\S", r"^  kernels +(amx|avx512bf16|avx512|avxvnni|avx2|i8mm|dotprod|neon|plain)$", r"^  memory +[\d.]+ GB",
                    r"^  bandwidth +[\d.]+ GB/s", r"^  store +\S", r"^  disk +[\d.]+ .?B free in ", r"^  gpu +none: ", r"^  editing +\S"):
        need(re.search(pattern, out, re.M), f"{pattern}: {out}")


def as_json():
    got = json.loads(doctor("--json")[0])
    need(got["cores"] >= 1 and got["cores"] <= (os.cpu_count() or 1), str(got))
    need(got["kernels"] in ("amx", "avx512bf16", "avx512", "avxvnni", "avx2", "i8mm", "dotprod", "neon", "plain"), str(got))
    need(got["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), str(got))
    need(0 < got["memory_available_bytes"] <= got["memory_bytes"], str(got))
    need(1e8 < got["memory_bytes_per_s"] < 1e13, str(got))
    need(got["gpu"]["adapter"] is None and "/nowhere" in got["gpu"]["reason"], str(got))
    need(got["disk_free_bytes"] > 0 and got["version"].count(".") == 2, str(got))


def stores():
    with tempfile.TemporaryDirectory() as d:
        need("no Ollama store" in doctor(OLLAMA_MODELS=os.path.join(d, "none"))[0], "a store that is not there")
        tag = os.path.join(d, "manifests", "registry.ollama.ai", "library", "gemma4", "e2b")
        os.makedirs(os.path.dirname(tag))
        with open(tag, "w") as f:
            f.write("{}")
        out, _ = doctor(OLLAMA_MODELS=d)
        need(f"store      {d}\n" in out and "models     1;" in out, out)
        got = json.loads(doctor("--json", OLLAMA_MODELS=d)[0])
        need(got["stores"] == [dict(path=d, state="found")] and got["models"] == 1 and got["disk"] == d, str(got))


def usage():
    need("Usage: bezel doctor" in doctor("--help")[0], "no help")
    doctor("x", code=2)
    doctor("--fast", code=2)


def main():
    for name, run in (("doctor as text", as_text), ("doctor as JSON", as_json), ("doctor and stores", stores), ("doctor: usage", usage)):
        case(name, run)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
