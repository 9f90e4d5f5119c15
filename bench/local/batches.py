"""Measures how fast a small real model answers questions of 2k tokens: in batches with shared contexts read once, one
question at a time, and in lm-evaluation-harness.

    python -m bench.local.batches --questions 20                  # ours alone
    python -m bench.local.batches --lm-eval /path/to/python       # also lm-evaluation-harness, in its environment
    python -m bench.local.batches --differences bfloat16          # only counts what batches change

The model is `local/smollm2-135m-instruct` in float32 on two threads. `shared` has five questions for each context, and
`apart` one. Each program answers in a process of its own. Seconds are processor time, so that other work of the machine
matters little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from bench.local.checkpoints import write_questions

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.model import Generation, LocalRequest
from helm_longctx.models.local.packaged import SMOLLM2, find_model
from helm_longctx.models.local.weights import Weights

TOKENS = 2000
ANSWER = 16
PER_CONTEXT = 5
BATCH = 16

LM_EVAL = """
import json, sys, time
import torch
torch.set_num_threads(2)
sys.modules["torchvision"] = None
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
path, way, tokens, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
model = HFLM(pretrained=path, dtype="float32", device="cpu", batch_size=batch, max_length=8192)
settings = {"until": [], "max_gen_toks": tokens, "do_sample": False}
texts = json.load(sys.stdin)
asked = [Instance("generate_until", {}, (text, settings), number) for number, text in enumerate(texts)]
start, wall = time.process_time(), time.time()
answers = model.generate_until(asked, disable_tqdm=True)
print(json.dumps([time.process_time() - start, time.time() - wall, len(answers)]))
"""


class Timed(NamedTuple):
    """Args: seconds of processor time, seconds by the clock, and the tokens of each answer, or their number."""

    processor_seconds: float
    seconds: float
    answers: Any


def answer_prompts(path: str, prompts: list[str], has_batches: bool) -> Timed:
    """Answer prompts with our client, in batches of `BATCH` or one at a time."""
    import torch
    from transformers import AutoTokenizer

    torch.set_num_threads(2)
    ignore_broken_torchvision()
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = Weights.find(path, None, "float32", None).load()
    requests = [
        LocalRequest(
            prompt=tokenizer(text)["input_ids"],
            max_tokens=ANSWER,
            stop_ids=frozenset(),
            is_finished=None,
            chunk_size=2048,
            reuse_prefix=False,
        )
        for text in prompts
    ]
    # What happens only once does not count.
    model.generate(replace(requests[0], prompt=requests[0].prompt[:64], max_tokens=2))
    start = time.process_time()
    begin = time.time()
    generations: list[Generation | Exception] = []
    if has_batches:
        for first in range(0, len(requests), BATCH):
            generations += model.generate_all(requests[first : first + BATCH], BATCH)
    else:
        generations += [model.generate(request) for request in requests]
    seconds = time.time() - begin
    answers = []
    for generation in generations:
        if isinstance(generation, Exception):
            raise generation
        answers.append(list(generation.tokens))
    return Timed(
        processor_seconds=time.process_time() - start,
        seconds=seconds,
        answers=answers,
    )


def answer_in_process(path: str, prompts: list[str], has_batches: bool) -> Timed:
    """Answer prompts with our client in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(answer_prompts, path, prompts, has_batches).result()


def answer_with_lm_eval(python: str, path: str, prompts: list[str]) -> Timed:
    """Answer prompts with lm-evaluation-harness, by the Python of its environment."""
    command = [python, "-c", LM_EVAL, path, "", str(ANSWER), str(BATCH)]
    done = subprocess.run(
        command, input=json.dumps(prompts), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return Timed(*json.loads(done.stdout.splitlines()[-1]))


def make_prompts(path: str, questions: int, per_context: int) -> list[str]:
    """Return prompts of parts of this repository's pages, each with a question."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    pages = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))
    ids = tokenizer("\n\n".join(page.read_text() for page in pages))["input_ids"]
    prompts = []
    for number in range(questions):
        start = number // per_context * 997 % (len(ids) - TOKENS)
        about = tokenizer.decode(ids[start + 100 + 40 * (number % per_context) :][:12])
        prompts.append(
            f"{tokenizer.decode(ids[start : start + TOKENS])}\n\nQuestion: What is said of {about}?\nAnswer:"
        )
    return prompts


def count_differences(path: str, dtype: str, questions: int) -> None:
    """Print how many answers and scores of short questions differ between batches of 1 and of `BATCH`."""
    import helm_longctx as lc

    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        write_questions(Path("questions"), questions // 2)
        entry = (
            "any_jsonl:path=questions,length=4k,style=completion,num_output_tokens=6"
        )
        one, many = (
            lc.evaluate(
                {"path": path, "dtype": dtype},
                entry,
                suite=f"batch-{size}",
                batch_size=size,
            ).answers
            for size in (1, BATCH)
        )
    both = one.merge(many, on="instance", suffixes=("", "_many"))
    texts, scores = (
        (both[column] != both[f"{column}_many"]).sum() for column in ("answer", "score")
    )
    right = both["score"].mean()
    print(
        f"{dtype}: of {len(both)} answers {texts} differ, of their scores {scores}; {right:.1%} are right"
    )


def main() -> None:
    """Print the seconds of each program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument(
        "--lm-eval", metavar="PYTHON", help="a Python that has lm-evaluation-harness"
    )
    parser.add_argument("--kinds", default="shared,apart")
    parser.add_argument(
        "--differences", metavar="DTYPE", help="a type of numbers, such as bfloat16"
    )
    options = parser.parse_args()
    ignore_broken_torchvision()
    path = find_model(SMOLLM2)
    if options.differences:
        count_differences(path, options.differences, options.questions)
        return
    for kind in options.kinds.split(","):
        per_context = PER_CONTEXT if kind == "shared" else 1
        prompts = make_prompts(path, options.questions, per_context)
        single = answer_in_process(path, prompts, has_batches=False)
        print_times(kind, "one at a time", single)
        batched = answer_in_process(path, prompts, has_batches=True)
        print_times(kind, "batches", batched)
        if options.lm_eval:
            peer = answer_with_lm_eval(options.lm_eval, path, prompts)
            print_times(kind, "lm-evaluation-harness", peer)
        pairs = zip(single.answers, batched.answers, strict=True)
        same = sum(one == other for one, other in pairs)
        print(
            f"{kind:7} {same} of {options.questions} answers have the same tokens",
            flush=True,
        )


def print_times(kind: str, name: str, timed: Timed) -> None:
    """Print a line with the seconds of a program."""
    print(
        f"{kind:7} {name:22} {timed.processor_seconds:8.1f} s of processor time, {timed.seconds:8.1f} s by the clock",
        flush=True,
    )


if __name__ == "__main__":
    main()
