#!/usr/bin/env python3
"""The verbs on a GPU: what they measure and print, and that --no-fuse changes speed only.

    sh tools/gpu-env.sh /usr/bin/python3 tests/gpu/test_verbs.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import array
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(MODELS, "nano-e-q4_0.gguf")
MOE = os.path.join(MODELS, "nano-moe-q8_0.gguf")


def bezel(*args, code=0):
    p = subprocess.run([BEZEL, *args], capture_output=True, text=True, timeout=600)
    need(p.returncode == code, f"{args} ended with {p.returncode}: {p.stderr}")
    return p.stdout


def doctor():
    out = bezel("doctor")
    for pattern in (r"^  gpu +\S.* \((cpu|discrete|integrated|unknown)\)$",
                    r"^ +limits +buffers of [\d.]+ .?B, bindings of [\d.]+ .?B, \d+ storage buffers$",
                    r"^ +workgroups of \d+ with [\d.]+ .?B, \d+ in a dimension; offsets of \d+$",
                    r"^ +features  ( [\w-]+)+( of \d+ to \d+)?$",
                    r"^ +bandwidth  [\d.]+ GB/s; a model",
                    r"^ +dispatch +[\d.]+ us each in a chain, \d+ us round trip$"):
        need(re.search(pattern, out, re.M), f"{pattern}: {out}")
    got = json.loads(bezel("doctor", "--json"))["gpu"]
    need(got["adapter"] and got["reason"] is None, str(got))
    need(got["max_binding_bytes"] >= 128 << 20 and got["max_workgroups"] >= 65535 and got["max_storage_buffers"] >= 8, str(got))
    need(1e7 < got["bytes_per_s"] < 1e14 and 0 < got["dispatch_us"] < 1e5 and 0 < got["round_trip_us"] < 1e6, str(got))


def sandboxed():
    """a model on the GPU in the sandbox: the same answer, and every thread is confined while it computes"""
    answers = [bezel("run", MODEL, "hi", "--device", "gpu", "-n", "3", "--temp", "0", "--sandbox", mode) for mode in ("off", "on")]
    need(answers[0] == answers[1], str(answers))
    with subprocess.Popen([BEZEL, "run", MODEL, "--prompts", "-", "--device", "gpu", "--parallel", "1", "-n", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        p.stdin.write('{"prompt": "hi"}\n')
        p.stdin.flush()
        p.stdout.readline()
        modes = set()
        for thread in os.listdir(f"/proc/{p.pid}/task"):
            with open(f"/proc/{p.pid}/task/{thread}/status", encoding="utf-8") as f:
                modes.add(next(line.split()[1] for line in f if line.startswith("Seccomp:")))
        _, err = p.communicate("", timeout=600)
    need(p.returncode == 0 and modes == {"2"}, f"{p.returncode} {modes} {err}")


def bench_text():
    out = bezel("bench", MODEL, "--device", "gpu", "-p", "20", "-n", "4", "--repeat", "1")
    for pattern in (r"^bezel \S+ on gpu, \S", r"^  prefill +20 +[\d.]+ +[\d.]+  tokens/s$", r"^  decode +4 +[\d.]+ +[\d.]+  tokens/s$",
                    r"^  token +[\d.]+ dispatches in [\d.]+ submits, [\d.]+ .?B read back, [\d.]+ .?B written$",
                    r"^  limit +[\d.]+ GB/s memory bandwidth, [\d.]+ us per dispatch$",
                    r"^ +[\d.]+ tokens/s by bandwidth alone; decode reaches [\d.]+% of it$",
                    r"^  decode pass: \d+ us in kernels$", r"^  prefill pass: \d+ us in kernels$",
                    r"^    linear\w* Q4_0 +\d+ +[\d.]+ us +[\d.]+% +[\d.]+ GB/s$"):
        need(re.search(pattern, out, re.M), f"{pattern}: {out}")


def bench_json():
    args = ("bench", MODEL, "--device", "gpu", "-p", "20", "-n", "4", "--repeat", "1", "--json")
    fused, plain = json.loads(bezel(*args)), json.loads(bezel(*args, "--no-fuse"))
    for got in (fused, plain):
        need(got["device"] == "gpu" and got["adapter"], str(got))
        need(got["submits_per_token"] >= 1 and got["read_bytes_per_token"] > 0 and got["written_bytes_per_token"] > 0, str(got))
        need(got["memory_gigabytes_per_s"] > 0 and got["dispatch_us"] >= 0, str(got))
        share = got["decode"]["best"] / got["roof_tokens_per_s"]
        need(abs(got["roof_share"] - share) < 1e-3 * share + 1e-6, str(got))
        for which in ("decode_kernels", "prefill_kernels"):
            need(got[which] and all(k["dispatches"] > 0 and k["us"] > 0 for k in got[which]), str(got[which]))
        need(abs(sum(k["dispatches"] for k in got["decode_kernels"]) - got["dispatches_per_token"]) <= 4, str(got))
    need(plain["dispatches_per_token"] > fused["dispatches_per_token"], "fusing saves no dispatch")


def show():
    counts = []
    for model, *extra in ((MODEL,), (MODEL, "--no-fuse"), (MOE, "--rows", "64"), (MOE, "--rows", "64", "--no-fuse")):
        got = json.loads(bezel("show", model, "--plan", "--device", "gpu", "--json", *extra))
        steps = got["plan"]
        done = set()
        for d in got["dispatches"]:
            need(d["kernel"] and d["workgroups"][0] >= 1 and d["workgroups"][1] >= 1 and d["steps"] >= 1, str(d))
            done |= set(range(d["first_step"], d["first_step"] + d["steps"])) | set(d["later_steps"])
        missing = {steps[i]["op"] for i in range(len(steps)) if i not in done}
        need(missing <= {"cut", "rope_table"}, f"no dispatch for {missing}")  # the host makes the angles
        counts.append(len(got["dispatches"]))
        later = sum(len(d["later_steps"]) for d in got["dispatches"])
        # with few rows only by the kernels of a software adapter
        need(later == 0 if "--no-fuse" in extra else later > 0 or not extra, f"{later} steps computed before their place in {model} {extra}")
        need(all("rule" in d for d in got["dispatches"] if d["steps"] > 1 or d["later_steps"]), "a fused dispatch names no rule")
        if "--no-fuse" in extra:
            need(all(d["steps"] == 1 and "rule" not in d for d in got["dispatches"]), "fused with --no-fuse")
    need(counts[0] < counts[1] and counts[2] < counts[3], str(counts))
    text = bezel("show", MODEL, "--plan", "--device", "gpu")
    need(f"these are {counts[0]} dispatches:" in text, text[-2000:])
    need(re.search(r"^ +\d+  kv_norm +\d+ x \d+ +\d+  kv +\d+ rms_norm \+ \d+ rope \+ ", text, re.M), text[-2000:])
    need("dispatches" not in json.loads(bezel("show", MODEL, "--plan", "--json")), "without being asked")
    bezel("show", MODEL, "--device", "gpu", code=2)


def logits(model, *args):
    with tempfile.NamedTemporaryFile() as f:
        bezel("logits", model, "-t", "2,10,11,12,13,14,15,16,17,18", "-o", f.name, *args)
        return array.array("f", f.read())


def no_fuse():
    for model in (MODEL, MOE):
        cpu, fused, plain = logits(model), logits(model, "--device", "gpu"), logits(model, "--device", "gpu", "--no-fuse")
        need(len(cpu) == len(fused) == len(plain) > 0, "rows")
        for name, other in (("cpu", cpu), ("fused", fused)):
            worst = max(abs(a - b) for a, b in zip(plain, other))
            need(worst <= 2e-3, f"{model}: plain is {worst} from {name}")
        one = logits(model, "--device", "gpu", "--chunk", "1")
        worst = max(abs(a - b) for a, b in zip(one, cpu))
        need(worst <= 2e-3, f"{model}: token by token is {worst} from the CPU")


def run():
    args = ("run", MODEL, "hello", "-n", "6", "--temp", "0", "--device", "gpu", "-q")
    need(bezel(*args) == bezel(*args, "--no-fuse"), "another answer")


def together():
    """Several prompts in one pass: the answers of one at a time, and a measurement of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "prompts")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"prompt": text}) + "\n" for text in ("a", "some more", "and a third"))
        answers = [bezel("run", MODEL, "--prompts", path, "--device", "gpu", "--parallel", n, "-n", "5", "--ignore-end", "--quiet")
                   for n in ("3", "1")]
    got = [[json.loads(line) for line in answer.splitlines()] for answer in answers]
    need([len(g) for g in got] == [3, 3] and all("error" not in r and r["usage"]["completion_tokens"] == 5 for r in got[0]), str(got))
    need([r["text"] for r in got[0]] == [r["text"] for r in got[1]], f"together {got[0]}, one at a time {got[1]}")
    b = json.loads(bezel("bench", MODEL, "--device", "gpu", "--sequences", "3", "-p", "12", "-n", "2", "--repeat", "1", "--json"))
    need(b["device"] == "gpu" and b["sequences"] == 3 and b["decode"]["best"] > 0 and b["longest_wait_ms"] > 0, str(b))


def main():
    for name, test in (("gpu doctor", doctor), ("gpu bench", bench_text), ("gpu bench as JSON", bench_json),
                       ("gpu show --plan", show), ("gpu logits --no-fuse", no_fuse), ("gpu run --no-fuse", run),
                       ("gpu prompts together", together), ("gpu sandbox", sandboxed)):
        case(name, test)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
