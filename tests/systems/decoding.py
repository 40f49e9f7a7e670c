"""Runs decode_files, here or under Wine, and reads what it wrote."""
import array
import os
import subprocess


def decode(folder, names, *command, out="decoded", extra=(), env=None):
    """-> for each name ("image", width, height, pixels), ("sound", frames, rate, cut, samples) or ("failed", sentence)"""
    with open(os.path.join(folder, "list"), "w", encoding="utf-8") as f:
        f.writelines(name + "\n" for name in names)
    p = subprocess.run([*command, "list", out, *extra], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, env=env, timeout=600, check=False)
    with open(os.path.join(folder, out), "rb") as f:
        data = f.read()
    results, at = [], 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].decode().split(" ")
        at = end + 1
        if words[0] == "image":
            w, h = int(words[1]), int(words[2])
            results.append(("image", w, h, data[at:at + w * h * 3]))
            at += w * h * 3
        elif words[0] == "sound":
            n = int(words[1])
            results.append(("sound", n, int(words[2]), words[3] == "1", array.array("f", data[at:at + 4 * n])))
            at += 4 * n
        else:
            results.append(("failed", " ".join(words[1:])))
    if p.returncode != 0 or len(results) != len(names):
        raise AssertionError(f"status {p.returncode} after {len(results)} of {len(names)} files, at {names[len(results):][:1]}: {p.stderr[-500:]}")
    return results


def furthest(a, b):
    """the largest difference of two pictures of a size"""
    return max(map(lambda x, y: abs(x - y), a[3], b[3]), default=0)
