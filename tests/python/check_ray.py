"""examples/scale/ray_batch.py on two local workers, one of which is killed in the middle: every answer is there exactly once, and is
the one that the model gives without Ray. Run by tests/lib/test_scale.py with the Python of build/ray.

  check_ray.py MODEL.gguf PROMPTS
"""
import glob
import json
import os
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "scale")
sys.path[:0] = [os.path.join(HERE, "..", "support"), EXAMPLE]
# Workers, which Ray starts, import the example too.
os.environ["PYTHONPATH"] = os.pathsep.join([EXAMPLE, os.environ.get("PYTHONPATH", "")])
from cases import case, finish, need, same  # noqa: E402

import bezel  # noqa: E402
import ray  # noqa: E402
import ray_batch  # noqa: E402

MODEL, N, ROWS = sys.argv[1], int(sys.argv[2]), 100
SETTINGS = {"temperature": 0, "max_tokens": 4, "context": 256}


class Watched(ray_batch.Answerer):
    """says which process answered"""

    def __call__(self, rows):
        answers = super().__call__(rows)
        return {**answers, "worker": [os.getpid()] * len(answers["answer"])}


def text(number):
    return f"Number {number}"


def alone(numbers):
    """the same without Ray"""
    with bezel.Model(MODEL, device="cpu", threads=1, context=SETTINGS["context"]) as model:
        answers = model.answer_all([text(n) for n in numbers], slots=16, temperature=0, max_tokens=SETTINGS["max_tokens"])
        return [a.choices[0].message.content for a in answers]


def kill_one():
    prompts = ray.data.from_items([{"id": n, "prompt": text(n)} for n in range(N)])
    answers = ray_batch.answered(prompts, MODEL, workers=2, threads=1, rows=ROWS, answerer=Watched, **SETTINGS)
    rows, killed = [], None
    for batch in answers.iter_rows():
        rows.append(batch)
        if not killed and len(rows) >= N // 10:
            killed = rows[-1]["worker"]
            os.kill(killed, signal.SIGKILL)
    same(sorted(row["id"] for row in rows), list(range(N)), "the numbers of the answers")
    need(len({row["worker"] for row in rows}) >= 3, "no worker took the place of the killed one")
    need(all(row["error"] is None and row["finish"] in ("length", "stop") for row in rows), str([row for row in rows if row["error"]][:3]))
    sample = range(0, N, max(N // 50, 1))
    found = {row["id"]: row["answer"] for row in rows}
    same([found[n] for n in sample], alone(sample), "the answers")


def program():
    """the example as a program: a file of prompts to a folder of answers, one of them an error"""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/prompts.jsonl", "w", encoding="utf-8") as f:
            for n in range(30):
                more = {} if n % 2 else {"max_tokens": 2}
                f.write(json.dumps({"id": n, "prompt": "long " * 2000 if n == 7 else text(n), **more}) + "\n")
        sys.argv = ["ray_batch.py", MODEL, f"{folder}/prompts.jsonl", f"{folder}/answers", "--context", "256", "--temperature", "0", "--rows", "8"]
        ray_batch.main()
        rows = [json.loads(line) for path in glob.glob(f"{folder}/answers/*.json") for line in open(path, encoding="utf-8")]
    same(sorted(row["id"] for row in rows), list(range(30)), "the numbers of the answers")
    same([row["id"] for row in rows if row["error"]], [7], "the errors")
    need(all(row["tokens"] <= 2 for row in rows if row["id"] % 2 == 0), "max_tokens was not obeyed")


def main():
    box = tempfile.TemporaryDirectory(prefix="ray-")
    ray.init(num_cpus=2, _temp_dir=box.name, include_dashboard=False, object_store_memory=200 << 20, log_to_driver=False, logging_level="error", configure_logging=True)
    try:
        case("Ray: the example", program)
        case(f"Ray: {N} prompts, a worker killed in the middle", kill_one)
    finally:
        ray.shutdown()
        box.cleanup()
    return finish()


sys.exit(main())
