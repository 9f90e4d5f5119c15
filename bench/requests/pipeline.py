"""Measures the whole way to a score: asking, scoring and writing, against the bare official package, which only asks.

    python -m bench.requests.pipeline [--questions 2050] [--threads 32] [--after 0.05] [--turns 3] [--json FILE]

A server in a separate process answers each request after a fixed time. "Bare" is `openai.OpenAI` in a thread pool.
"Ours" is a run of our runner on own questions with prompts of 4k tokens, from the first request until the run's files
are written. Both send prompts of the same length with the same number of threads, in turn. The first round does not
count. The script prints medians over the other rounds, of the elapsed time and of this process's processor time.

Client and server share the machine, so compare only the ratio, and the milliseconds of one run. If the machine does
other work, the processor time says more.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.requests.clients import OURS, bare, local_server, make_prompt, register
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.common.object_spec import parse_object_spec

import helm_longctx.plugin  # noqa: F401  # our run entries
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.runner import Strategy, runner_arguments
from helm_longctx.runner.spool import store_prompts

CHARACTERS = 16_000
"""Characters of a prompt of about 4k tokens."""


class Moment(NamedTuple):
    """A moment on the clock of the wall and on that of the processor, in seconds, or the time between two moments."""

    elapsed: float
    processor: float

    @staticmethod
    def now() -> Moment:
        """Return the present moment."""
        return Moment(time.perf_counter(), time.process_time())

    def __sub__(self, other: Moment) -> Moment:
        return Moment(self.elapsed - other.elapsed, self.processor - other.processor)


class Timed(Strategy):
    """Records when a run starts to ask, when it has all answers, and when its files are written."""

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Make a run."""
        with runner.prepare(spec) as run:
            store_prompts(run.path, run.requests, run.order())
            self.began = Moment.now()
            answers = run.ask()
            self.answered = Moment.now()
            runner.write(run, answers)
            self.written = Moment.now()


def write_questions(folder: Path, count: int) -> None:
    """Write questions with a context each, whose answer is what the server says."""
    rows = (
        {
            "context": make_prompt(number, CHARACTERS),
            "question": "How is it?",
            "answers": ["fine", "not so bad"],
        }
        for number in range(count)
    )
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )


def run_questions(folder: Path, questions: Path, threads: int) -> dict[str, Moment]:
    """Return the time of each part of a run."""
    entry = f"any_jsonl:path={questions},length=8k,count_with=longctx/words,model=bench/m,model_deployment={OURS}"
    specs = construct_run_specs(parse_object_spec(entry))
    arguments = runner_arguments(
        folder, "s", folder / "prod_env", threads, exit_on_error=True
    )
    timed = Timed()
    runner = LongContextRunner(**arguments, strategy=timed)
    runner.logs_scores = False
    runner.run_all(specs)
    return {
        "ask": timed.answered - timed.began,
        "score and write": timed.written - timed.answered,
        "whole": timed.written - timed.began,
    }


def measure(
    address: str, questions: int, threads: int, turns: int
) -> dict[str, Moment]:
    """Return the median times of the bare package, and of each part of our run."""
    prompts = [make_prompt(number, CHARACTERS) for number in range(questions)]
    rounds = []
    for _ in range(turns + 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "questions").mkdir()
            write_questions(folder / "questions", questions)
            start = time.process_time()
            elapsed = bare(address, folder, prompts, threads)
            taken = {"bare": Moment(elapsed, time.process_time() - start)}
            rounds.append(taken | run_questions(folder, folder / "questions", threads))
    return {
        name: Moment(
            *(
                statistics.median(times)
                for times in zip(
                    *(moments[name] for moments in rounds[1:]), strict=True
                )
            )
        )
        for name in rounds[0]
    }


def main() -> None:
    """Print the seconds of each part, the ratio, and the milliseconds of an instance after its answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=2050)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument(
        "--after", type=float, default=0.05, help="seconds until an answer"
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    os.environ["TQDM_DISABLE"] = "1"
    with local_server() as address:
        url = f"{address}/{round(args.after * 1000)}/v1/"
        register(url)
        times = measure(url, args.questions, args.threads, args.turns)
    ratios = [
        bare / whole for bare, whole in zip(times["bare"], times["whole"], strict=True)
    ]
    after = [1000 * seconds / args.questions for seconds in times["score and write"]]
    for name, (elapsed, processor) in times.items():
        print(f"{name:16} {elapsed:6.2f} s, {processor:6.2f} s of the processor")
    print(
        f"The run has {ratios[0]:.2f} of the bare package's pace ({ratios[1]:.2f} in processor time)."
    )
    print(
        f"Scores and files take {after[0]:.2f} ms an instance ({after[1]:.2f} ms of the processor)."
    )
    if args.json:
        seconds = {name: moment.elapsed for name, moment in times.items()}
        args.json.write_text(
            json.dumps({**seconds, "ratio": ratios[0], "ms after": after[0]}) + "\n"
        )


if __name__ == "__main__":
    main()
