#!/usr/bin/env python3
"""A file of prompts, answered on all machines of a Ray cluster with Ray Data.

  pip install "ray[data]" bezel-*.whl
  ray_batch.py MODEL.gguf prompts.jsonl answers/ --workers 8 --threads 8

Every line of the file is an object with "prompt", and optionally "id" and "max_tokens". The answers are JSON files in the folder: the columns of the
prompt, and "answer", "finish", "tokens" and "error". A worker that dies is replaced, and Ray runs again what it had not handed over: every
prompt has one answer. The path of the model must be there on every machine.
"""
import argparse
from typing import Any, Dict, List, Optional

import bezel


class Answerer:
    """A worker: one model, and answers that share passes."""

    def __init__(self, model: str, threads: int = 0, slots: int = 16, context: int = 0, **settings: Any) -> None:
        self._model = bezel.Model(model, threads=threads, context=context)
        self._batch = self._model.batch(slots)
        self._settings = settings

    def __call__(self, rows: Dict[str, Any]) -> Dict[str, Any]:
        requests: List[Dict[str, Any]] = [{"prompt": str(prompt)} for prompt in rows["prompt"]]
        for request, limit in zip(requests, rows.get("max_tokens", ())):
            if limit is not None and limit == limit:  # NaN: this prompt has none
                request["max_tokens"] = int(limit)
        texts: List[Optional[str]] = []
        finishes, tokens, errors = [], [], []
        # A prompt that fails has an error as its answer: it would fail again, and must not end the others.
        for found in self._batch.answers(requests, errors="return", **self._settings):
            failed = isinstance(found, bezel.BatchError)
            texts.append(None if failed else found.choices[0].message.content)
            finishes.append("error" if failed else found.choices[0].finish_reason)
            tokens.append(0 if failed else found.usage.completion_tokens)
            errors.append(str(found.error) if failed else None)
        return {**rows, "answer": texts, "finish": finishes, "tokens": tokens, "error": errors}


def answered(prompts: Any, model: str, workers: int, threads: int, rows: int, answerer: Any = Answerer, **settings: Any) -> Any:
    """a dataset with the answers; lazily, as Ray Data does everything"""
    import ray.data

    return prompts.map_batches(answerer, fn_constructor_args=(model,), fn_constructor_kwargs={"threads": threads, **settings},
                               compute=ray.data.ActorPoolStrategy(size=workers), num_cpus=threads, batch_size=rows)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("prompts")
    ap.add_argument("answers")
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--threads", type=int, default=1, help="of each worker, which Ray reserves for it")
    ap.add_argument("--slots", type=int, default=16, help="answers at the same time in a worker")
    ap.add_argument("--rows", type=int, default=256, help="prompts handed to a worker at once; as many are run again after a failure")
    ap.add_argument("--context", type=int, default=0)
    ap.add_argument("--temperature", type=float)
    ap.add_argument("--seed", type=int)
    a = ap.parse_args()
    import ray.data

    settings = {key: value for key, value in (("temperature", a.temperature), ("seed", a.seed)) if value is not None}
    # Reading and writing reserve no processor: workers that have them all would wait for their prompts forever.
    light = {"num_cpus": 0}
    prompts = ray.data.read_json(a.prompts, lines=True, ray_remote_args=light)
    answers = answered(prompts, a.model, a.workers, a.threads, a.rows, slots=a.slots, context=a.context, **settings)
    answers.write_json(a.answers, ray_remote_args=light)


if __name__ == "__main__":
    main()
