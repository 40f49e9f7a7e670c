#!/usr/bin/env python3
"""Files that a stranger made: refused with one sentence, never a crash.  test_hostile.py PROGRAM MODELS"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import gguf_io as g  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
from progress import wait_until, waits_for_writer, writes_to_full_pipe  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GOLDEN = os.path.join(MODELS, "..", "golden")


def bezel(*args):
    return subprocess.run([BEZEL, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, text=True)


def refused(model, reason, *options):
    """`show` lists what the file has and says why it does not run; `run` fails."""
    r = bezel("show", model, *options)
    same((r.returncode, r.stderr), (4, ""), "the exit code of show and its messages")
    need("Bezel does not run this: " in r.stdout and reason in " ".join(r.stdout.split()), r.stdout[-300:])
    r = bezel("run", model, "hi", *options)
    same(r.returncode, 1, f"the exit code of run ({r.stderr.strip()})")
    need(reason in r.stderr and r.stderr.count("\n") == 1, r.stderr)


def edited(source, path, keys=None, shapes=None):
    """A copy of a file with other values of keys, and tensors of other shapes, filled with zeros."""
    r = g.Reader(source)
    w = g.Writer()
    for key, value in r.kv.items():
        w.kv.append((key, *r.kv_types[key], (keys or {}).get(key, value)))
    for name, (typ, ne, raw) in r.tensors.items():
        shape = (shapes or {}).get(name)
        data = bytes(g.nbytes("f32", shape)) if shape else raw.tobytes()
        w.tensor(name, "f32" if shape else typ, shape or ne, lambda data=data: [data])
    w.save(path)
    return path


def shared_caches(folder):
    """The encoder of a diffusion model writes the keys of its last layer, which owns none here."""
    source = os.path.join(GOLDEN, "diffusion", "text.gguf")
    arch = g.Reader(source).kv["general.architecture"]
    key = f"{arch}.attention.shared_kv_layers"
    path = edited(source, os.path.join(folder, "shared.gguf"), {key: 1})
    refused(path, f"he key {key} is not 0")


def other_heads(folder):
    """Layers of a vision tower with heads of two sizes: the norm weights of one are too short for the other."""
    text, mmproj = (os.path.join(GOLDEN, "e-like", f) for f in ("text.gguf", "mmproj.gguf"))
    r = g.Reader(mmproj)
    width, heads = r.kv["clip.vision.embedding_length"], r.kv["clip.vision.attention.head_count"]
    size = 4
    need(r.tensors["v.blk.0.attn_q_norm.weight"][1][0] != size, "the tower has heads of this size")
    shapes = {f"v.blk.0.attn_{x}.weight": [width, heads * size] for x in "qkv"}
    shapes |= {f"v.blk.0.attn_{x}_norm.weight": [size] for x in "qk"}
    shapes["v.blk.0.attn_out.weight"] = [heads * size, width]
    path = edited(mmproj, os.path.join(folder, "heads.gguf"), shapes=shapes)
    refused(text, f"he vision tower's heads have 32 values in layer 1 and {size} in the layers before it", "--mmproj", path)


def not_files(folder):
    """a pipe without a writer would block its reader for ever"""
    nano, tower = os.path.join(MODELS, "nano-e-f32.gguf"), [os.path.join(GOLDEN, "e-like", f) for f in ("text.gguf", "mmproj.gguf")]
    pipe, part = (os.path.join(folder, name) for name in ("pipe.gguf", "split-00001-of-00002.gguf"))
    os.mkfifo(pipe)
    os.mkfifo(part)
    address = os.path.join(folder, "socket.gguf")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    notes = os.path.join(folder, "notes")
    os.mkdir(notes)
    with_tower = ["run", tower[0], "hi", "--mmproj", tower[1]]
    for path in (pipe, address, "/dev/null", "/dev/zero"):
        for args in (["run", path, "hi"], ["show", path], ["verify", path], ["tokenize", path, "hi"], ["run", nano, "hi", "--mmproj", path],
                     [*with_tower, "--image", path], [*with_tower, "--audio", path], [*with_tower, "--video", path],
                     ["run", nano, "hi", "--draft", path], ["verify", nano, "--draft", path], ["bench", nano, "--draft", path],
                     ["run", nano, "hi", "--lora", path], ["run", nano, "hi", "--session", path],
                     ["search", notes, "hi", "--model", os.path.join(GOLDEN, "embedding", "model.gguf"), "--index", path]):
            r = bezel(*args)
            need(r.returncode == 1 and "not a regular file" in r.stderr + r.stdout, f"{args}: {r.returncode} {r.stderr}")
    prompts = os.path.join(folder, "prompts.jsonl")
    with open(prompts, "w") as f:
        f.write('{"prompt": "hi"}\n')
    for path in (pipe, "/dev/null", "/dev/zero"):
        r = bezel("run", nano, "--prompts", prompts, "--out", path, "-n", "1")
        need(r.returncode == 2 and "is not a regular file; choose another '--out'" in r.stderr, f"results to {path}: {r.returncode} {r.stderr}")
    r = bezel("run", part, "hi")
    need(r.returncode == 1 and "is not a regular file" in r.stderr, r.stderr)
    listener.close()


NANO = os.path.join(MODELS, "nano-e-f32.gguf")


def shortened(folder, *args, stdin):
    """the model's file is cut off while an answer is computed"""
    path = shutil.copy(NANO, os.path.join(folder, "shrinks.gguf"))
    with subprocess.Popen([BEZEL, "run", path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        if stdin:
            p.stdin.write(stdin)
            p.stdin.flush()
        else:
            p.stdin.close()               # else it waits for text beside the prompt
            p.stdin = None
        p.stdout.readline()
        os.truncate(path, 5000)
        _, err = p.communicate(stdin or None, timeout=60)
    same(p.returncode, 1, f"the exit code ({err})")
    need("was shortened by another program while it was used" in err, err)


def shortened_batch(folder):
    shortened(folder, "--prompts", "-", "--parallel", "1", "-n", "3", stdin='{"prompt": "hi"}\n')


def shortened_answer(folder):
    shortened(folder, "hi", "--json", "--ignore-end", "-n", "100000", "--ctx", "512", stdin="")


def shortened_by_little(folder):
    """what is cut off the last page reads as zeros, without a signal"""
    path = shutil.copy(NANO, os.path.join(folder, "little.gguf"))
    with subprocess.Popen([BEZEL, "run", path, "hi", "--json", "--ignore-end", "-n", "100000", "--ctx", "512"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        p.stdout.readline()
        os.truncate(path, os.path.getsize(path) - 8)
        _, err = p.communicate(timeout=60)
    same(p.returncode, 1, f"the exit code ({err})")
    need("was shortened by another program while it was used" in err, err)


def shortened_drafter(folder):
    """the drafter's file is cut off, the model's is not"""
    path = shutil.copy(os.path.join(GOLDEN, "assistant", "assistant.gguf"), os.path.join(folder, "drafter.gguf"))
    with subprocess.Popen([BEZEL, "run", os.path.join(GOLDEN, "dense-like", "text.gguf"), "hi", "--draft", path, "--json", "--ignore-end", "-n", "100000"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        p.stdout.readline()
        os.truncate(path, 3000)
        _, err = p.communicate(timeout=60)
    same(p.returncode, 1, f"the exit code ({err})")
    need("drafter.gguf was shortened by another program while it was used" in err, err)


def shortened_while_shown(folder):
    """`show` and `verify` say so: what they printed may be of zeros"""
    path = os.path.join(folder, "shown.gguf")
    for args, where in ((["show", path, "--json"], "stderr"), (["verify", path, "--json"], "stdout")):
        shutil.copy(NANO, path)
        with subprocess.Popen([BEZEL, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=4096) as p:
            if args[0] == "show":
                p.stdout.read(1)  # its output does not fit into the pipe
            os.truncate(path, 100)
            out, err = p.communicate(timeout=60)
        same(p.returncode, 1, f"the exit code of {args[0]} ({err})")
        said = err if where == "stderr" else out + err
        need("was shortened by another program while it was read" in said or "verify" in args[0], said[-300:])


def sandboxed():
    """the kernel confines the program while it computes, unless it is told not to"""
    possible = bezel("show", NANO, "--sandbox", "on").returncode != 4
    for option, want in [*([([], "2")] if possible else []), (["--sandbox", "off"], "0")]:
        with subprocess.Popen([BEZEL, "run", NANO, "--prompts", "-", "--parallel", "1", "-n", "1", *option], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            p.stdin.write('{"prompt": "hi"}\n')
            p.stdin.flush()
            p.stdout.readline()
            with open(f"/proc/{p.pid}/status") as f:
                status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
            _, err = p.communicate("", timeout=60)
        same((p.returncode, status["Seccomp"]), (0, want), f"the state of seccomp with {option} ({err})")
    same(bezel("show", NANO, "--sandbox", "sometimes").returncode, 2, "the exit code of an unknown mode")
    r = subprocess.run([BEZEL, "run", NANO, "hi", "--device", "gpu", "--sandbox", "on"], env={**os.environ, "BEZEL_WEBGPU_LIB": "/nonexistent"},
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=60, text=True)
    need(r.returncode == 4 and r.stderr.startswith("bezel: '--sandbox on' is not possible"), f"a GPU that cannot be opened inside: {r.returncode} {r.stderr}")


def blocked_output():
    """Ctrl-C ends a program whose output nobody reads"""
    with subprocess.Popen([BEZEL, "run", NANO, "hi", "--json", "--ignore-end", "-n", "100000", "--seed", "3", "--threads", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pipesize=4096) as p:
        wait_until(lambda: writes_to_full_pipe(p.pid), "full pipe")
        p.send_signal(signal.SIGINT)
        same(p.wait(timeout=60), 130, "the exit code")


def pipe_without_writer(folder):
    """Ctrl-C ends a program that waits for prompts from a pipe that nobody opens"""
    path = os.path.join(folder, "prompts")
    os.mkfifo(path)

    with subprocess.Popen([BEZEL, "run", NANO, "--prompts", path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
        wait_until(lambda: waits_for_writer(p.pid), "program that waits for a writer")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
    same(p.returncode, 130, f"the exit code ({err})")


with tempfile.TemporaryDirectory() as temporary:
    case("a diffusion file whose layers share caches", shared_caches, temporary)
    case("a vision tower whose layers have heads of different sizes", other_heads, temporary)
    case("pipes, sockets and devices instead of files", not_files, temporary)
    case("a model's file that shrinks during a batch", shortened_batch, temporary)
    case("a model's file that shrinks during an answer", shortened_answer, temporary)
    case("a model's file that loses its last bytes during an answer", shortened_by_little, temporary)
    case("a drafter's file that shrinks during an answer", shortened_drafter, temporary)
    case("a model's file that shrinks while it is shown", shortened_while_shown, temporary)
    case("the program is confined", sandboxed)
    case("Ctrl-C while the output is blocked", blocked_output)
    case("Ctrl-C while a pipe has no writer", pipe_without_writer, temporary)
sys.exit(finish())
