#!/usr/bin/env python3
"""Compares the speed of Bezel and llama.cpp on the same file and threads, alternating.

  compare_speed.py MODEL --peer FOLDER [--threads 1,2] [--work pp512,tg64,...] [--runs 5] [--kernels NAME]
                   [--bezel build/bezel] [--json]

FOLDER holds llama-bench and llama-batched-bench. Work: ppN reads a prompt of N tokens, tgN generates N
tokens after 16, tgN@D after a prompt of D tokens, seqM@N generates N tokens in M sequences together.

For each piece of work, tokens/s of both (median of the runs), their ratio (median, smallest and largest
of the pairs that ran one after the other), and the processor time per token, whose ratio depends less
on other work on the machine: the time of a run less that of a run with an eighth of the tokens (llama-bench
reads every prompt twice, once to warm up). The roof is what the machine allows in this run, and the share of it
that Bezel reached, medians of the runs: a pass takes at least its bytes of weights over the bandwidth that `bezel
bench` measured, and at least its multiplications over the peak that `bench_peak` measured, each weight in the format
that the kernels multiply it in. Keys, values and attention are not counted; sequences are taken to use as
many experts as one.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = 16
CHUNK = 512  # rows of a pass of a prompt


def parse_work(text):
    """(kind, tokens, depth or sequences)"""
    head, _, tail = text.partition("@")
    if head.startswith("seq"):
        return "seq", int(tail or 32), int(head[3:])
    if head[:2] not in ("pp", "tg"):
        raise SystemExit(f"'{text}' is neither ppN, tgN, tgN@D nor seqM@N.")
    return head[:2], int(head[2:]), int(tail or 0)


def run(cmd):
    """Output and processor seconds of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run(cmd, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode:
        raise SystemExit(f"{' '.join(cmd)}: exit {p.returncode}\n{p.stderr[-2000:]}")
    return p.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Roof:
    """The least time of a pass of a model: its weights are read once, and multiplied once per row."""

    def __init__(self, a):
        show = [a.bezel, "show", a.model, "--json"]
        facts, plan = json.loads(run(show)[0]), json.loads(run([*show, "--plan"])[0])
        self.peaks = os.path.join(os.path.dirname(a.bezel), "bench", "bench_peak")
        per_byte = {t["type"]: t["values"] / t["bytes"] for t in facts["types"]}
        self.values, self.head = {}, {}  # multiplied for every row; for rows with logits
        for step in plan["plan"]:
            if step["op"] in ("linear", "expert_linear"):
                counts = self.head if step["out"] == [[1, facts["model"]["vocabulary"]]] else self.values
                counts[step["type"]] = counts.get(step["type"], 0) + step["weight_bytes"] * per_byte[step["type"]]

    def rate(self, kind, rows, info):
        """Tokens/s of passes of that many rows; of a prompt only the last has logits."""
        if not info.get("memory_bytes_per_s") or not os.path.exists(self.peaks):
            return None
        out, _ = run([self.peaks, info["kernels"], str(info["threads"])])
        peak = {name: float(rate) * 1e9 for name, rate in (line.split() for line in out.splitlines())}
        if not peak:
            return None
        seconds = 0
        for counts, times in ((self.values, rows), (self.head, 1 if kind == "pp" else rows)):
            for name, n in counts.items():
                own = name.lower() if name in ("F32", "F16", "BF16") else "int8"
                seconds += 2 * n * times / peak.get(own, peak["f32"])
        return rows / max(seconds, info["weight_bytes_per_token"] / info["memory_bytes_per_s"])


class Bezel:
    def __init__(self, a):
        self.a = a

    def once(self, kind, tokens, extra, threads):
        base = [self.a.bezel, "bench", self.a.model, "--device", "cpu", "--threads", str(threads), "--repeat", "1", "--json"]
        base += ["--kernels", self.a.kernels] if self.a.kernels else []
        if kind == "pp":
            cmd = [*base, "-p", str(tokens), "-n", "0"]
        else:
            cmd = [*base, "-p", str(extra if kind == "tg" and extra else PROMPT), "-n", str(tokens)]
            cmd += ["--sequences", str(extra)] if kind == "seq" else []
        out, seconds = run(cmd)
        r = json.loads(out)
        if kind == "seq":  # which does not report the machine
            r |= json.loads(run([*base, "-p", "1", "-n", "0"])[0]) | r
        return r["prefill" if kind == "pp" else "decode"]["best"], seconds, r


class Peer:
    def __init__(self, a):
        self.a = a

    def once(self, kind, tokens, extra, threads):
        common = ["-m", self.a.model, "-t", str(threads)]
        if kind == "seq":
            out, seconds = run([os.path.join(self.a.peer, "llama-batched-bench"), *common, "-npp", str(PROMPT), "-ntg", str(tokens),
                                "-npl", str(extra), "-c", str(extra * (PROMPT + tokens + 8)), "--output-format", "jsonl"])
            line = re.findall(r'\{".*?\}', out)[-1]  # a warning can be on the same line
            return json.loads(line)["speed_tg"], seconds, None
        shape = ["-p", str(tokens), "-n", "0"] if kind == "pp" else ["-p", "0", "-n", str(tokens), "-d", str(extra or PROMPT)]
        out, seconds = run([os.path.join(self.a.peer, "llama-bench"), *common, *shape, "-r", "1", "-o", "jsonl"])
        return json.loads(out.strip().splitlines()[-1])["samples_ts"][0], seconds, None


def compare(a, text, threads, programs, roof):
    kind, tokens, extra = parse_work(text)
    few = max(1, tokens // 8)
    rows = {"pp": min(tokens, CHUNK), "tg": 1, "seq": extra}[kind]
    rates, per_token, roofs, shares = [[], []], [[], []], [], []
    for _ in range(a.runs):
        for i, program in enumerate(programs):
            rate, seconds, r = program.once(kind, tokens, extra, threads)
            _, less, _ = program.once(kind, few, extra, threads)
            rates[i].append(rate)
            times = 2 if kind == "pp" and r is None else 1
            per_token[i].append((max(seconds - less, 1e-9) / (tokens - few) if tokens > few else seconds / tokens) / times)
            highest = roof.rate(kind, rows, r) if r else None
            if highest:
                roofs.append(highest)
                shares.append(rate / highest)
    ratios = sorted(x / y for x, y in zip(*rates))
    times = sorted(y / x for x, y in zip(*per_token))
    result = {"work": text, "threads": threads, "bezel": statistics.median(rates[0]), "peer": statistics.median(rates[1]),
              "ratio": statistics.median(ratios), "ratio_range": [ratios[0], ratios[-1]],
              "cpu_ratio": statistics.median(times), "cpu_ratio_range": [times[0], times[-1]]}
    if roofs:
        result["roof"], result["roof_share"] = statistics.median(roofs), statistics.median(shares)
    return result


def show(r):
    roof = f"{r['roof']:8.2f} {100 * r['roof_share']:4.0f} %" if "roof" in r else ""
    print(f"{r['work']:>10} {r['threads']:>7} {r['bezel']:9.2f} {r['peer']:9.2f}   {r['ratio']:5.2f} "
          f"({r['ratio_range'][0]:.2f} .. {r['ratio_range'][1]:.2f})   {r['cpu_ratio']:5.2f} "
          f"({r['cpu_ratio_range'][0]:.2f} .. {r['cpu_ratio_range'][1]:.2f})   {roof}", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--peer", required=True)
    ap.add_argument("--bezel", default=os.path.join(HERE, "..", "build", "bezel"))
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--work", default="pp512,tg64,tg32@4096,seq8@32,seq16@32")
    ap.add_argument("--runs", type=int, default=5)
    ap.add_argument("--kernels")
    ap.add_argument("--json", action="store_true", help="one JSON object per line")
    a = ap.parse_args()
    if not os.path.exists(os.path.join(a.peer, "llama-bench")):
        sys.exit(f"There is no llama-bench in {a.peer}.")
    programs, roof = (Bezel(a), Peer(a)), Roof(a)
    if not a.json:
        print(f"{'work':>10} {'threads':>7} {'bezel':>9} {'peer':>9}   {'ratio (range)':21} {'processor time':21} {'roof':>8}")
    for threads in (int(t) for t in a.threads.split(",")):
        for text in a.work.split(","):
            r = compare(a, text, threads, programs, roof)
            print(json.dumps(r), flush=True) if a.json else show(r)


if __name__ == "__main__":
    main()
