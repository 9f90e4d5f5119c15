"""Computes what benchmarks at five lengths cost for many models.

    python -m bench.scale [--benchmarks NAME …] [--models 60] [--input 2] [--output 8] [--tokens-per-minute 2000000]

The figures come from the tables of tasks, without any data. They are an upper limit: each prompt fills its length, and
each answer fills its budget. `helm-longctx estimate` makes the prompts of a model's runs and counts their tokens.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from typing import NamedTuple

from helm_longctx.runner.estimate import RESULT_BYTES, TOKEN_BYTES
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Settings, Task

LENGTHS = (8192, 16384, 32768, 65536, 131072)
NAMES = ("aa_lcr", "helmet", "longbench_v2", "longproc", "lv_eval", "mrcr", "ruler")
"""Benchmarks by default. The tables do not have the numbers of questions of `mrcr_v2` and `any_jsonl`."""

TOKENS_OF_WORD = 1.4
"""Tokens for each word of LV-Eval's texts, half of which are Chinese."""

NO_LENGTH = 100_000
"""Approximate tokens of a prompt of a benchmark without lengths; AA-LCR's prompts have about as many."""

STORED = 0.15
"""Approximate bytes on disk for each byte of prompts; `python -m bench.runs.files` measures 0.05 to 0.62."""


class Row(NamedTuple):
    """What a benchmark costs for one model at one length."""

    benchmark: str
    length: str
    requests: int
    prompt_tokens: int
    output_tokens: int

    @property
    def disk_bytes(self) -> int:
        """Size of the runs' files."""
        return int(
            RESULT_BYTES * self.requests + STORED * TOKEN_BYTES * self.prompt_tokens
        )


def rows(names: Collection[str]) -> Iterator[Row]:
    """Yield a row for each of the named benchmarks at each length that it has."""
    for benchmark in (benchmark for benchmark in BENCHMARKS if benchmark.name in names):
        for length in LENGTHS if benchmark.axis else (None,):
            tasks = [
                task
                for category in benchmark.categories
                for task in category.tasks
                if _is_there(benchmark, task, length)
            ]
            requests = {
                task.name: task.sample(Settings(length)) * task.depths * task.repeats
                for task in tasks
            }
            prompt = length or NO_LENGTH
            if benchmark.axis and "word" in benchmark.axis.unit:
                prompt = int(prompt * TOKENS_OF_WORD)
            output = sum(
                requests[task.name] * task.output_tokens(Settings(length))
                for task in tasks
            )
            total = sum(requests.values())
            if total:
                yield Row(
                    benchmark.name,
                    length_label(length) if length else "-",
                    total,
                    total * prompt,
                    output,
                )


def _is_there(benchmark: Benchmark, task: Task, length: int | None) -> bool:
    return task.exists_at(length) and (
        length is None or length in benchmark.lengths or task.any_length
    )


def main() -> None:
    """Print a row for each benchmark and length, and the totals of all models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--benchmarks",
        nargs="+",
        choices=[benchmark.name for benchmark in BENCHMARKS],
        default=NAMES,
    )
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument(
        "--input", type=float, default=2.0, help="dollars for a million prompt tokens"
    )
    parser.add_argument(
        "--output", type=float, default=8.0, help="dollars for a million output tokens"
    )
    parser.add_argument(
        "--tokens-per-minute", type=float, default=2e6, help="of each model's endpoint"
    )
    args = parser.parse_args()
    print(
        "| benchmark | length | requests | prompt tokens | most output tokens | disk |\n|---|---|---|---|---|---|"
    )
    total = Row("all", "", 0, 0, 0)
    for row in rows(args.benchmarks):
        _print(row)
        total = Row(
            "all", "", *(a + b for a, b in zip(total[2:], row[2:], strict=True))
        )
    _print(total)
    dollars = (
        total.prompt_tokens * args.input + total.output_tokens * args.output
    ) / 1e6
    hours = (total.prompt_tokens + total.output_tokens) / args.tokens_per_minute / 60
    print(
        f"\n{args.models} models: {args.models * total.requests:,} requests,"
        f" {args.models * total.prompt_tokens / 1e9:,.0f} billion prompt tokens,"
        f" {args.models * total.disk_bytes / 1e9:,.0f} GB, {args.models * dollars:,.0f} dollars;"
        f" {hours:,.0f} hours if all models are asked at a time, {args.models * hours:,.0f} one after the other"
    )


def _print(row: Row) -> None:
    print(
        f"| {row.benchmark} | {row.length} | {row.requests:,} | {row.prompt_tokens / 1e6:,.0f} M |"
        f" {row.output_tokens / 1e6:,.1f} M | {row.disk_bytes / 1e9:,.2f} GB |"
    )


if __name__ == "__main__":
    main()
