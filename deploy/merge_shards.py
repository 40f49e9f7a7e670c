#!/usr/bin/env python3
"""Joins the results of all shards of a file of prompts, in the order of the prompts.

  merge_shards.py PART... > answers.jsonl

Every prompt must be there exactly once: with a line that is missing, double or damaged nothing is written and the status is 1. Blank
lines of the file of prompts have no result; name the file with --prompts, and they are not missed.
"""
import argparse
import heapq
import json
import sys


def records(path):
    """(number of the prompt, line) of one part; the numbers rise"""
    last = 0
    with open(path, "rb") as f:
        for at, line in enumerate(f, 1):
            try:
                number = json.loads(line)["line"] if line.endswith(b"\n") else None
            except (ValueError, KeyError, TypeError):
                number = None
            if not isinstance(number, int) or number <= last:
                raise SystemExit(f"{path}: line {at} is not a result, or not in order. Run the shard again; it continues from there.")
            last = number
            yield number, line


def expected(path):
    """numbers of the prompts"""
    if not path:
        number = 0
        while True:
            number += 1
            yield number
    with open(path, "rb") as f:
        for number, line in enumerate(f, 1):
            if line.strip():
                yield number


def merged(parts, prompts):
    wanted = expected(prompts)
    for number, line in heapq.merge(*map(records, parts)):
        want = next(wanted, None)
        if number != want:
            raise SystemExit(f"The results of prompt {want} are missing." if want and number > want else f"The results of prompt {number} are there twice, "
                             "or there is no such prompt.")
        yield line
    if prompts and (want := next(wanted, None)):
        raise SystemExit(f"The results of prompt {want} are missing.")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("part", nargs="+")
    ap.add_argument("--prompts", help="the file of prompts; without it the last results could be missing unnoticed")
    a = ap.parse_args()
    for _ in merged(a.part, a.prompts):                # all is checked before anything is written
        pass
    for line in merged(a.part, a.prompts):
        sys.stdout.buffer.write(line)


if __name__ == "__main__":
    main()
