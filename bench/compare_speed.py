#!/usr/bin/env python3
"""Compares the speed of Bezel and llama.cpp on the same file and threads, alternating.

  compare_speed.py MODEL --peer FOLDER [--threads 1,2] [--work pp512,tg64,...] [--runs 5] [--kernels NAME]
                   [--bezel build/bezel] [--json]

FOLDER holds llama-bench and llama-batched-bench. Work: ppN reads a prompt of N tokens, tgN generates N
tokens after 16, tgN@D after a prompt of D tokens, seqM@N generates N tokens in M sequences together.

For each piece of work, tokens/s of both (median of the runs), their ratio (median, smallest and largest
of the pairs that ran one after the other), and the processor time per token, whose ratio depends less
on other work on the machine: the time of a run less that of a run with an eighth of the tokens. Answers
also have the memory roof: bytes of weights per token over the bandwidth that `bezel bench` measured.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = 16


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


class Bezel:
    def __init__(self, a):
        self.a = a

    def once(self, kind, tokens, extra, threads):
        cmd = [self.a.bezel, "bench", self.a.model, "--device", "cpu", "--threads", str(threads), "--repeat", "1", "--json"]
        cmd += ["--kernels", self.a.kernels] if self.a.kernels else []
        if kind == "pp":
            cmd += ["-p", str(tokens), "-n", "0"]
        else:
            cmd += ["-p", str(extra if kind == "tg" and extra else PROMPT), "-n", str(tokens)]
            cmd += ["--sequences", str(extra)] if kind == "seq" else []
        out, seconds = run(cmd)
        r = json.loads(out)
        return r["prefill" if kind == "pp" else "decode"]["best"], seconds, r


class Peer:
    def __init__(self, a):
        self.a = a

    def once(self, kind, tokens, extra, threads):
        common = ["-m", self.a.model, "-t", str(threads)]
        if kind == "seq":
            out, seconds = run([os.path.join(self.a.peer, "llama-batched-bench"), *common, "-npp", str(PROMPT), "-ntg", str(tokens),
                                "-npl", str(extra), "-c", str(extra * (PROMPT + tokens + 8)), "--output-format", "jsonl"])
            line = [x for x in out.splitlines() if x.startswith("{")][-1]
            return json.loads(line)["speed_tg"], seconds, None
        shape = ["-p", str(tokens), "-n", "0"] if kind == "pp" else ["-p", "0", "-n", str(tokens), "-d", str(extra or PROMPT)]
        out, seconds = run([os.path.join(self.a.peer, "llama-bench"), *common, *shape, "-r", "1", "-o", "jsonl"])
        return json.loads(out.strip().splitlines()[-1])["samples_ts"][0], seconds, None


def compare(a, text, threads, programs):
    kind, tokens, extra = parse_work(text)
    few = max(1, tokens // 8)
    rates, per_token, info = [[], []], [[], []], None
    for _ in range(a.runs):
        for i, program in enumerate(programs):
            rate, seconds, r = program.once(kind, tokens, extra, threads)
            _, less, _ = program.once(kind, few, extra, threads)
            rates[i].append(rate)
            per_token[i].append(max(seconds - less, 1e-9) / (tokens - few) if tokens > few else seconds / tokens)
            info = r or info
    ratios = sorted(x / y for x, y in zip(*rates))
    times = sorted(y / x for x, y in zip(*per_token))
    result = {"work": text, "threads": threads, "bezel": statistics.median(rates[0]), "peer": statistics.median(rates[1]),
              "ratio": statistics.median(ratios), "ratio_range": [ratios[0], ratios[-1]],
              "cpu_ratio": statistics.median(times), "cpu_ratio_range": [times[0], times[-1]]}
    if kind == "tg" and info.get("memory_bytes_per_s"):
        result["roof"] = info["memory_bytes_per_s"] / info["weight_bytes_per_token"]
    return result


def show(r):
    roof = f"{r['roof']:8.2f} {100 * r['bezel'] / r['roof']:4.0f} %" if "roof" in r else ""
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
    programs = Bezel(a), Peer(a)
    if not a.json:
        print(f"{'work':>10} {'threads':>7} {'bezel':>9} {'peer':>9}   {'ratio (range)':21} {'processor time':21} {'roof':>8}")
    for threads in (int(t) for t in a.threads.split(",")):
        for text in a.work.split(","):
            r = compare(a, text, threads, programs)
            print(json.dumps(r), flush=True) if a.json else show(r)


if __name__ == "__main__":
    main()
