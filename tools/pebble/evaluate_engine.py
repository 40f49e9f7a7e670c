"""Scores images and speech with the engine: evaluate_engine.py BEZEL MODEL [IMAGES CLIPS [OPTION...]]

Sends the images and phrases of evaluate_media.py to `bezel run --image` and `--audio`, greedily; further options, such as --device gpu,
are passed to the program. Needs Pillow and the speech synthesiser (speech.py), no PyTorch.
"""
import os
import subprocess
import sys
import tempfile
import wave

import numpy as np
from PIL import Image

import media_cases


def ask(program, kind, path, conv, *options):
    question = conv["turns"][0][1].replace("<|image|>", "").replace("<|audio|>", "")
    command = [*program, question or " ", f"--{kind}", path, "--temp", "0", "-q", "-n", "120", "--hide-thinking", "--think" if conv["think"] else "--no-think", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main():
    bezel, model, n_pictures, n_clips, *options = [*sys.argv[1:], "150", "100"][:4] + sys.argv[5:]
    program = [bezel, "run", model]
    with tempfile.TemporaryDirectory() as folder:
        for budget in (70, 280):
            n = int(n_pictures) if budget == 70 else int(n_pictures) // 3
            score, path = {}, os.path.join(folder, "a.png")
            for picture, conv in media_cases.pictures(n, budget):
                Image.fromarray(picture).save(path)
                answer = conv["turns"][1][1][-1][1]
                s = score.setdefault(media_cases.kind_of(answer), [0, 0])
                s[0] += ask(program, "image", path, conv, "--image-tokens", str(budget), *options) == answer
                s[1] += 1
            good, total = (sum(x[k] for x in score.values()) for k in (0, 1))
            print(f"pictures, budget {budget}: {good} of {total} answers right, {100 * good / total:.1f} %;", ", ".join(f"{k} {a}/{b}" for k, (a, b) in sorted(score.items())), flush=True)
        for new in (False, True):
            words = errors = whole = 0
            for x, text, conv in media_cases.clips(int(n_clips), new):
                path = os.path.join(folder, "a.wav")
                with wave.open(path, "wb") as f:
                    f.setnchannels(1)
                    f.setsampwidth(2)
                    f.setframerate(16000)
                    f.writeframes(np.clip(np.round(x * 32767), -32768, 32767).astype("<i2").tobytes())
                e = media_cases.word_errors(text.split(), ask(program, "audio", path, conv, *options).split())
                words, errors, whole = words + len(text.split()), errors + e, whole + (e == 0)
            print(f"speech, {'new' if new else 'known'} voices, new phrases: word accuracy {100 * (1 - errors / words):.1f} %, {whole} of {n_clips} phrases whole", flush=True)


if __name__ == "__main__":
    main()
