#!/usr/bin/env python3
"""Packs a folder as a zip file, under its name, the same bytes whenever its files are the same.

  zip.py FOLDER FILE.zip     SOURCE_DATE_EPOCH is the time of all files
"""
import os
import sys
import time
import zipfile

FIRST_TIME = 315532800                                 # 1980-01-01, the earliest that a zip file can have
STORED = (".gguf", ".br", ".gz", ".png")               # they do not get smaller

folder, out = sys.argv[1:]
when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), FIRST_TIME))[:6]
top = os.path.dirname(os.path.abspath(folder))
with zipfile.ZipFile(out + ".tmp", "w", compresslevel=9) as archive:
    for path in sorted(os.path.join(f, n) for f, _, names in os.walk(os.path.abspath(folder)) for n in names):
        entry = zipfile.ZipInfo(os.path.relpath(path, top), when)
        entry.create_system = 3
        entry.external_attr = (0o100755 if path.endswith(".exe") else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_STORED if path.endswith(STORED) else zipfile.ZIP_DEFLATED
        with open(path, "rb") as f:
            archive.writestr(entry, f.read())
os.replace(out + ".tmp", out)
