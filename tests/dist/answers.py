"""What the program of an artefact has to do in its clean root: the same for every artefact."""
import http.client
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import need, same  # noqa: E402
from progress import PATIENCE  # noqa: E402

import clean_root  # noqa: E402

ASK = ["run", "pebble", "Who are you?", "--temp", "0", "--no-think", "-q", "--threads", "1"]
SEE = ["run", "pebble", "What is this?", "--temp", "0", "--no-think", "-q", "--threads", "1"]


def here(program, *args):
    """what the program of the build tree says"""
    args = ["models/pebble.gguf" if a == "pebble" else a for a in args]
    p = subprocess.run([program, *args], capture_output=True, text=True, timeout=PATIENCE)
    need(p.returncode == 0, p.stderr)
    return p.stdout


def answers(root, program, reference, **how):
    """a prompt, without a network, to the last byte as in the build tree"""
    out, _ = clean_root.run(root, program, *ASK, **how)
    same(out, here(reference, *ASK), "the answer")
    need("Pebble" in out, out)


SOUND = "web/app/samples/speech.wav"
IMAGE = "web/app/samples/shapes.png"


def media_files(folder, full):
    """files of the formats that decoders are linked for: name, kind"""
    os.makedirs(folder, exist_ok=True)
    made = [("a.png", "--image", IMAGE), ("a.flac", "--audio", SOUND)]
    if full:
        made += [("a.jpg", "--image", IMAGE), ("a.webp", "--image", IMAGE), ("a.gif", "--image", IMAGE),
                 ("a.ogg", "--audio", SOUND), ("a.opus", "--audio", SOUND), ("a.mp3", "--audio", SOUND)]
    for name, _, source in made:
        subprocess.run(["ffmpeg", "-loglevel", "error", "-y", "-i", source, os.path.join(folder, name)], check=True)
    return [(name, kind) for name, kind, _ in made]


def decodes(root, program, reference, name, kind):
    """a file in the folder /media of the root: the same text as in the build tree"""
    out, _ = clean_root.run(root, program, *SEE, kind, f"/media/{name}")
    same(out, here(reference, *SEE, kind, f"{root}/media/{name}"), f"the answer about {name}")


def serves(root, program, *command, check=("ps", "--health"), **how):
    """the page, health, and a health check from inside"""
    command = command or ("serve", "--port", "0")
    p = subprocess.Popen(clean_root.inside(root, program, *command, network=True, **how),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_root.ENVIRONMENT)
    try:
        line = p.stdout.readline()
        m = re.match(r"http://\S+:(\d+)/ ", line)
        need(m, f"no address: {line!r} {p.stderr.read() if not line else ''}")
        for path, text in (("/", b"<!doctype html>"), ("/health", b'"ok"'), ("/builtin/pebble.gguf", b"GGUF")):
            c = http.client.HTTPConnection("127.0.0.1", int(m.group(1)), timeout=PATIENCE)
            c.request("GET", path, headers={"Accept": "text/html" if path == "/" else "*/*"})
            r = c.getresponse()
            got = r.read()
            need(r.status == 200 and text in got[:2000].lower() + got[:4], f"{path}: {r.status} {got[:200]!r}")
            c.close()
        out, _ = clean_root.run(root, program, *check, "--port", m.group(1), network=True, **how)
        same(out, '{"status":"ok"}\n', "what the health check prints")
    finally:
        # unshare waits for the server, its only child, and ends with the same status
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="utf-8") as f:
            for child in f.read().split():
                os.kill(int(child), signal.SIGTERM)
        _, err = p.communicate(timeout=PATIENCE)
    same(p.returncode, 0, f"the status at SIGTERM ({err})")
