#!/usr/bin/env python3
"""Fuzzes each target for a while, from its stored corpus and from what earlier runs found.

  run.py SECONDS TARGET...

After those in C, the targets of tests/web/fuzz_targets.ts run in Node, where edges are not counted. Logs are in build/fuzz/TARGET.log. Prints a table of executions and edges at the end, and exits with 1 if a
target crashed, leaked, ran out of memory or hung: the input is then in build/fuzz/, named by its SHA-1.
"""
import os
import re
import subprocess
import sys


def last(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(target, seconds):
    """-> executions, edges, exit status"""
    found, log = f"build/fuzz/corpus/{target}", f"build/fuzz/{target}.log"
    os.makedirs(found, exist_ok=True)
    command = [f"build/fuzz/fuzz/fuzz_{target}", f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
               "-artifact_prefix=build/fuzz/", "-print_final_stats=1", found, f"tests/fuzz/corpus/{target}"]
    with open(log, "wb") as f:
        status = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    executions = last(r"stat::number_of_executed_units: (\d+)", text)
    if status == 0 and not executions:                 # it ended without having run
        status = -1
    if status != 0:
        print("\n".join(text.splitlines()[-60:]))
    return executions, last(r"\bcov: (\d+)", text), status


def fuzz_in_node(seconds):
    """-> (target, executions, edges, exit status) of each target in JavaScript"""
    log = "build/fuzz/node.log"
    command = ["sh", "tools/gpu-env.sh", "node", "build/web/js/tests/web/fuzz.js", str(seconds)]
    with open(log, "wb") as f:
        status = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    found = re.findall(r"^(\w+) (\d+)$", text, re.M)
    if status != 0 or not found:
        print("\n".join(text.splitlines()[-60:]))
    return [(name, int(n), 0, status) for name, n in found] or [("node", 0, 0, 1)]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    seconds, targets = int(sys.argv[1]), sys.argv[2:]
    results = []
    for target in targets:
        print(f"fuzzing {target} for {seconds} s", flush=True)
        results.append((target, *fuzz(target, seconds)))
    print(f"fuzzing in Node for {seconds} s per target", flush=True)
    results += fuzz_in_node(seconds)
    print(f"\n{'target':12}{'executions':>12}{'edges':>8}")
    for target, executions, edges, status in results:
        print(f"{target:12}{executions:12}{edges:8}  {'ok' if status == 0 else 'FAILED, see build/fuzz/'}")
    print(f"{'all':12}{sum(r[1] for r in results):12}")
    return int(any(r[-1] for r in results))


if __name__ == "__main__":
    sys.exit(main())
