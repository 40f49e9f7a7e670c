#!/usr/bin/env python3
"""Fuzzes each target for a while, from its stored corpus and from what earlier runs found.

  run.py SECONDS RUNS JOBS TARGET...

A target ends after SECONDS, or after RUNS executions if RUNS is not 0; JOBS processes share its corpus and its
executions. The target "node" is all of tests/web/fuzz_targets.ts, in one process of Node, where edges are not counted.
Logs are in build/fuzz/TARGET.N.log. Prints a table of executions, edges and seconds of CPU time at the end, and exits
with 1 if a target crashed, leaked, ran out of memory or hung: the input is then in build/fuzz/, named by its SHA-1.
"""
import collections
import os
import re
import subprocess
import sys


Result = collections.namedtuple("Result", "target executions edges cpu status")


INTERRUPTED = 72                                       # libFuzzer's exit status after Ctrl-C: nothing was found


def last(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(command, target, jobs=1):
    """-> the first exit status that is not 0, seconds of CPU time, what each process wrote"""
    before = os.times()
    # A small quarantine of freed memory, so that many processes fit into memory.
    env = {"ASAN_OPTIONS": "quarantine_size_mb=64", **os.environ}
    logs = [f"build/fuzz/{target}.{i}.log" for i in range(jobs)]
    running = []
    for log in logs:
        with open(log, "wb") as f:
            running.append(subprocess.Popen(command, stdout=f, stderr=subprocess.STDOUT, env=env))
    statuses = [0 if p.wait() == INTERRUPTED else p.returncode for p in running]
    after = os.times()
    texts = []
    for log, status in zip(logs, statuses):
        with open(log, encoding="utf-8", errors="replace") as f:
            texts.append(f.read())
        if status != 0:
            print("\n".join(texts[-1].splitlines()[-60:]))
    return next(filter(None, statuses), 0), after.children_user + after.children_system - before.children_user - before.children_system, texts


def fuzz(target, seconds, runs, jobs):
    found = f"build/fuzz/corpus/{target}"
    os.makedirs(found, exist_ok=True)
    limit = [f"-runs={(runs + jobs - 1) // jobs}"] if runs else []
    # By the clock: a busy machine stops a process for seconds, and a large image takes one.
    patience = os.environ.get("FUZZ_TIMEOUT", "60")
    status, cpu, texts = run([f"build/fuzz/fuzz/fuzz_{target}", f"-max_total_time={seconds}", *limit, f"-timeout={patience}", "-rss_limit_mb=2048",
                              "-artifact_prefix=build/fuzz/", "-print_final_stats=1", found, f"tests/fuzz/corpus/{target}"], target, jobs)
    executions = [last(r"stat::number_of_executed_units: (\d+)", text) for text in texts]
    if status == 0 and not all(executions):            # one ended without having run
        status = -1
    return [Result(target, sum(executions), max(last(r"\bcov: (\d+)", text) for text in texts), cpu, status)]


def fuzz_in_node(seconds, runs):
    """a result for each target in JavaScript"""
    status, cpu, texts = run(["sh", "tools/gpu-env.sh", "node", "build/web/js/tests/web/fuzz.js", str(seconds), str(runs)], "node")
    found = re.findall(r"^(\w+) (\d+) ([\d.]+)$", texts[0], re.M)
    return [Result(name, int(n), 0, float(s), status) for name, n, s in found] or [Result("node", 0, 0, cpu, 1)]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    (seconds, runs, jobs), targets = map(int, sys.argv[1:4]), sys.argv[4:]
    results = []
    for target in targets:
        print(f"fuzzing {target} for {seconds} s" + (f" or {runs} executions" if runs else ""), flush=True)
        results += fuzz_in_node(seconds, runs) if target == "node" else fuzz(target, seconds, runs, jobs)
    print(f"\n{'target':12}{'executions':>12}{'edges':>8}{'CPU s':>8}")
    for r in results:
        print(f"{r.target:12}{r.executions:12}{r.edges:8}{r.cpu:8.0f}  {'ok' if r.status == 0 else 'FAILED, see build/fuzz/'}")
    print(f"{'all':12}{sum(r.executions for r in results):12}{'':8}{sum(r.cpu for r in results):8.0f}")
    return int(any(r.status for r in results))


if __name__ == "__main__":
    sys.exit(main())
