#!/usr/bin/env python3
"""Builds the Python wheel from a shared library; the same input makes the same bytes.

  build_wheel.py --library build/libbezel.so.0.1.0 --out build/wheel [--strip strip] [--model models/pebble.gguf]

`make wheel` calls it. The tag says what the library needs (platform_tag.py). Times in the file are SOURCE_DATE_EPOCH, or 1980.
No other tool is needed to build it, and no compiler to install it.
"""
import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import zipfile

import platform_tag

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
FIRST_TIME = 315532800                                 # 1980-01-01, the earliest that a zip file can have
REQUIRES_PYTHON = ">=3.9"


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def version():
    header = read(ROOT, "include", "bezel.h").decode()
    return ".".join(re.search(rf"#define BZ_VERSION_{word} (\d+)", header).group(1) for word in ("MAJOR", "MINOR", "PATCH"))


def stripped(path, strip):
    """the library without what only a debugger reads"""
    if not strip:
        return read(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "library")
        shutil.copyfile(path, copy)
        subprocess.run([*strip.split(), "--strip-unneeded", copy], check=True)
        return read(copy)


def metadata():
    return f"""Metadata-Version: 2.4
Name: bezel
Version: {version()}
Summary: Runs Google's Gemma 4 models from GGUF files
License-Expression: {license_name()}
License-File: LICENSE
Requires-Python: {REQUIRES_PYTHON}
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
Provides-Extra: media
Requires-Dist: numpy; extra == "media"
Requires-Dist: Pillow; extra == "media"
Requires-Dist: soundfile; extra == "media"
Requires-Dist: av; extra == "media"
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

""".encode() + read(ROOT, "docs", "PYTHON.md")


def license_name():
    first = read(ROOT, "LICENSE").decode().strip().splitlines()[0]
    names = {"MIT License": "MIT", "Apache License": "Apache-2.0"}
    if first not in names:
        raise SystemExit(f"LICENSE begins with '{first}', which has no SPDX name here.")
    return names[first]


def write_wheel(path, files, info):
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_TIME)), FIRST_TIME)
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, data):
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            # Quantized weights do not get smaller.
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".gguf") else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, data)
        for name, data in files:
            add(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
        add(f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode())


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--library", required=True, help="the shared library")
    ap.add_argument("--out", required=True, help="the folder for the wheel")
    ap.add_argument("--strip", help="the program that strips the library")
    ap.add_argument("--model", help="the model 'pebble'; none: the wheel has no model")
    a = ap.parse_args()
    tag, library = platform_tag.of(a.library)
    info = f"bezel-{version()}.dist-info"
    files = [(f"bezel/{os.path.basename(p)}", read(p)) for p in sorted(glob.glob(os.path.join(HERE, "bezel", "*.py")))]
    files += [("bezel/py.typed", b""), (f"bezel/{library}", stripped(a.library, a.strip))]
    if a.model:
        files.append(("bezel/models/pebble.gguf", read(a.model)))
    wheel = f"Wheel-Version: 1.0\nGenerator: bezel ({version()})\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    files += [(f"{info}/METADATA", metadata()), (f"{info}/WHEEL", wheel.encode()), (f"{info}/licenses/LICENSE", read(ROOT, "LICENSE"))]
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, f"bezel-{version()}-py3-none-{tag}.whl")
    write_wheel(path + ".tmp", files, info)
    os.replace(path + ".tmp", path)
    print(path)


if __name__ == "__main__":
    main()
