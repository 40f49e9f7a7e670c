"""The installed package on a GPU. Run by tests/lib/test_python.py on the adapter of tools/gpu-env.sh."""
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

import bezel  # noqa: E402


def answers():
    seen = []
    with bezel.Model("pebble", device="gpu", on_progress=lambda done, total: seen.append((done, total))) as model:
        need(seen and seen[-1][0] == seen[-1][1] > 10 ** 6, str(seen))
        answer = model.chat("My name is Tom. What is my name?", temperature=0)
        need("Tom" in answer.choices[0].message.content, str(answer))


def automatic():
    with bezel.Model("pebble") as model:
        need(model.device == "gpu" or "emulated" in model.device_reason, f"{model.device}: {model.device_reason}")


def broken_progress():
    def fail(done, total):
        raise RuntimeError("mine")
    try:
        bezel.Model("pebble", device="gpu", on_progress=fail)
    except RuntimeError as e:
        return same(str(e), "mine", "the error")
    raise AssertionError("the error of on_progress was lost")


def interrupted():
    handled = threading.Event()

    def on_signal(*_):
        handled.set()
        raise KeyboardInterrupt

    def on_progress(*_):
        os.kill(os.getpid(), signal.SIGINT)
        handled.wait()
    signal.signal(signal.SIGINT, on_signal)
    try:
        bezel.Model("pebble", device="gpu", on_progress=on_progress)
    except KeyboardInterrupt:
        return need(handled.is_set(), "another interrupt")
    raise AssertionError("opening was not interrupted")


for check in (answers, automatic, broken_progress, interrupted):
    case(f"python on a GPU: {check.__name__}", check)
sys.exit(finish())
