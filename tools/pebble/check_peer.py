"""Compares greedy text of the F32 export with llama.cpp: check_peer.py BEZEL PEER_LOGITS MODEL-F32.gguf

PEER_LOGITS is a program on top of libllama that takes `-t IDS -g N` and prints "greedy: ids". Every id it chose must be
the most probable one of `bezel logits` at that position, for 64 tokens on 10 prompts; otherwise the difference is printed.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

import tokenizer

PROMPTS = ["Tell me a story about a bear.", "Write a story about a robot in the desert.", "Hello, how are you?", "What can you do?",
           "What is the capital of Norway?", "Name five animals.", "Tell me a bedtime story about a star and a golden key.",
           "Why is the sky blue?", "Count from 3 to 12.", "Who made you?"]


def main():
    bezel, peer, model = sys.argv[1:4]
    t = tokenizer.Tokenizer(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json"))
    same = other = 0
    with tempfile.TemporaryDirectory() as folder:
        for p in PROMPTS:
            ids = t.encode(f"<bos><|turn>user\n{p}<turn|>\n<|turn>model\n")
            out = subprocess.run([peer, model, "-t", ",".join(map(str, ids)), "-g", "64"], capture_output=True, text=True, check=True).stdout
            theirs = [int(x) for x in out.split("greedy:")[1].split()[0].split(",")]
            rows = os.path.join(folder, "rows")
            subprocess.run([bezel, "logits", model, "-t", ",".join(map(str, ids + theirs)), "-o", rows], check=True)
            z = np.fromfile(rows, np.float32).reshape(len(ids) + len(theirs), -1)
            for k, want in enumerate(theirs):
                row = z[len(ids) - 1 + k]
                if int(row.argmax()) == want:
                    same += 1
                else:
                    other += 1
                    print(f"{p!r}, token {k}: ours {int(row.argmax())}, theirs {want}, gap {row.max() - row[want]:.5f}")
    print(f"{same} of {same + other} tokens equal")
    sys.exit(other > 0)


if __name__ == "__main__":
    main()
