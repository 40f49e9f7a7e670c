#!/usr/bin/env python3
"""serve with a model on the GPU: several clients in one batch.

    test_serve.py PROGRAM MODELS LOSES_DEVICE

LOSES_DEVICE: build/tests/gpu/lose_device.so
"""
import os
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "cli")]
from cases import case, finish, need, same  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BODY = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "temperature": 0}


def together(s):
    """clients with the same request at the same time get the same answer"""
    texts, errors = [], []

    def client():
        try:
            texts.append(s.post("/v1/chat/completions", BODY)["choices"][0]["message"]["content"])
        except Exception as e:  # noqa: B902
            errors.append(str(e))

    threads = [threading.Thread(target=client) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    need(not errors, str(errors))
    same(len(set(texts)), 1, f"answers {texts}")
    need(s.get("/api/ps")["models"][0]["size_vram"] > 0, "not on the GPU")
    for thread in os.listdir(f"/proc/{s.p.pid}/task"):
        with open(f"/proc/{s.p.pid}/task/{thread}/status", encoding="utf-8") as f:
            need("Seccomp:\t2" in f.read(), "a thread that is not confined")


def automatic():
    """a GPU that is emulated on the CPU is not used by --device auto, which says so once"""
    model = os.path.join(MODELS, "nano-e-f32.gguf")
    with tempfile.TemporaryDirectory() as folder:
        browser = os.path.join(folder, "xdg-open")  # which ends while the sandbox is tried
        with open(browser, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n")
        os.chmod(browser, 0o755)
        with Serving(BEZEL, model, "--device", "auto", "--open", env={"PATH": f"{folder}:{os.environ['PATH']}"}) as s:
            for _ in range(2):
                s.post("/v1/chat/completions", BODY)
            on_gpu = s.get("/api/ps")["models"][0]["size_vram"] > 0
            code, err = s.end()
    same((code, err.count("\n")), (0, 0 if on_gpu else 1), f"exit code and lines ({err})")
    need(on_gpu or "emulated" in err, err)


def lost():
    """the device is lost again and again while answers are computed: they are those of a device that stays"""
    options = [os.path.join(MODELS, "nano-e-f32.gguf"), "--device", "gpu", "--parallel", "2"]
    body = {**BODY, "max_tokens": 8, "logit_bias": {"1": -100, "106": -100}}
    with Serving(BEZEL, *options) as calm:
        want = calm.post("/v1/chat/completions", body)["choices"]
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as log:  # a driver may write there, inside the sandbox
        env = {"LD_PRELOAD": os.path.abspath(sys.argv[3]), "LOSE_DEVICE_AFTER": "30", "LOSE_DEVICE_LOG": log.name}
        with Serving(BEZEL, *options, env=env) as s:
            for _ in range(4):
                same(s.post("/v1/chat/completions", body)["choices"], want, "the answer")
            need(os.path.getsize(log.name) > 0, "the device was not lost")
            same(s.end(), (0, ""), "exit code and messages")


def main():
    case("--device auto", automatic)
    with Serving(BEZEL, os.path.join(MODELS, "nano-e-f32.gguf"), "--device", "gpu", "--parallel", "4", "--sandbox", "on") as s:
        case("several clients in one batch", together, s)
        code, err = s.end()
        case("the device is lost", lost)
        case("the end", lambda: same((code, err), (0, ""), "exit code and messages"))
    return finish()


sys.exit(main())
