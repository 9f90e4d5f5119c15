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
import sys
import tempfile
from pathlib import Path

from bench.local.checkpoints import write_questions

TOKENS = 2000
ANSWER = 16
PER_CONTEXT = 5
BATCH = 16

OURS = """
import json, sys, time
import torch
from transformers import AutoTokenizer
from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.model import Job
from helm_longctx.models.local.weights import Weights
path, way, tokens, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(2)
ignore_broken_torchvision()
tokenizer = AutoTokenizer.from_pretrained(path)
model = Weights.find(path, None, "float32", None).load()
jobs = [Job(tokenizer(text)["input_ids"], tokens, frozenset(), None, 2048, False) for text in json.load(sys.stdin)]
model.generate(Job(jobs[0].prompt[:64], 2, frozenset(), None, 2048, False))
start, wall = time.process_time(), time.time()
if way == "one":
    found = [model.generate(job) for job in jobs]
else:
    parts = [jobs[first : first + batch] for first in range(0, len(jobs), batch)]
    found = [each for part in parts for each in model.generate_all(part, batch)]
print(json.dumps([time.process_time() - start, time.time() - wall, [each.tokens for each in found]]))
"""

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
    from helm_longctx.environment import ignore_broken_torchvision
    from helm_longctx.models.local.packaged import SMOLLM2, find_model

    ignore_broken_torchvision()
    path = find_model(SMOLLM2)
    if options.differences:
        count_differences(path, options.differences, options.questions)
        return
    ways = {
        "one at a time": (sys.executable, OURS, "one"),
        "batches": (sys.executable, OURS, "batches"),
    }
    if options.lm_eval:
        ways["lm-evaluation-harness"] = (options.lm_eval, LM_EVAL, "")
    for kind in options.kinds.split(","):
        prompts = json.dumps(
            make_prompts(
                path, options.questions, PER_CONTEXT if kind == "shared" else 1
            )
        )
        answers = {}
        for name, (python, code, way) in ways.items():
            command = [python, "-c", code, path, way, str(ANSWER), str(BATCH)]
            done = subprocess.run(
                command, input=prompts, capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(done.stderr[-2000:])
            seconds, wall, answers[name] = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{kind:7} {name:22} {seconds:8.1f} s of processor time, {wall:8.1f} s by the clock",
                flush=True,
            )
        same = sum(
            one == other
            for one, other in zip(
                answers["one at a time"], answers["batches"], strict=True
            )
        )
        print(
            f"{kind:7} {same} of {options.questions} answers have the same tokens",
            flush=True,
        )


if __name__ == "__main__":
    main()
