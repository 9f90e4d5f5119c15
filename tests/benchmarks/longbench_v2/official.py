"""Requests, letters and tables of the official code (golden_makers/longbench_v2.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean

from helm_longctx.benchmarks.longbench_v2 import BENCHMARK
from helm_longctx.benchmarks.longbench_v2.tasks import BY_CLASS, find_letter
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.prompt import FollowUp
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import MetricValues, Settings
from tests.benchmarks.longbench_v2.fabricate import (
    LIMITS,
    SEEDS,
    answer,
    build_longbench_v2,
    fingerprint,
    tokenizer,
)
from tests.support.golden_cases import Comparison, GoldenCases, join_comparisons
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
MODES = ("0shot", "cot", "no_context")
TABLE = ("accuracy", *BY_CLASS)


def format_mean(values: list[float]) -> str:
    """Return a mean in percent, as the official script writes it."""
    return str(round(100 * fmean(values), 1))


def ask(case: str, mode: str, seed: int) -> Callable[[DataRoot], dict[str, object]]:
    """Return a function that sends each question as the adapter and the runner do.

    It returns the requests, the letters in the answers, and the columns of the table with the first number of the
    table that compensates for guesses.
    """
    task = BENCHMARK.task(mode)
    settings = Settings(None)
    budget = task.output_tokens(settings)
    temperature = task.variant(settings).temperature

    def compute(root: DataRoot) -> dict[str, object]:
        folder = DataRoot(root / str(seed), mirror=True)
        build_longbench_v2(folder, seed)
        window = LIMITS[case] + max(RESERVED, budget + CHAT_BUFFER)
        truncator = Truncator(window, lambda: tokenizer(case.split()[0]))
        requests: list[str] = []
        letters: list[str | None] = []
        scores: list[MetricValues] = []
        was_cut = False
        for example in load_examples(task, settings, folder):
            instance = to_instance(BENCHMARK, task, settings, example, budget)
            sample = Sample.from_json(instance.extra_data)
            fitted = truncator.fit(instance.input.text, sample, budget, "chat")
            was_cut = was_cut or fitted.cut
            requests.append(fingerprint("user", fitted.prompt, temperature, budget))
            reply = answer(fitted.prompt)
            if sample.follow_up:
                second = FollowUp(**sample.follow_up)
                prompt = second.prompt(reply)
                reply = answer(prompt)
                requests.append(
                    fingerprint("user", prompt, temperature, second.max_tokens)
                )
            letters.append(find_letter(reply))
            record = {
                **example.record,
                "prediction": reply,
                "references": example.references,
            }
            scores.append(task.scores(record))
        assert was_cut == (mode != "no_context" and "99999" not in case)
        table = []
        for name in TABLE:
            table.append(format_mean([own[name] for own in scores if name in own]))
        compensated = [own["accuracy_compensated"] for own in scores]
        return {
            "asked": requests,
            "pred": letters,
            "table": table,
            "compensated": format_mean(compensated),
        }

    return compute


def compare_modes() -> Iterator[Comparison]:
    """Yield the questions in all modes with several tokenizers, limits and seeds."""
    for case in LIMITS:
        for mode in MODES:
            for seed in SEEDS:
                name = f"{case} {mode} {seed}"
                golden = GOLDEN[name]
                official = {
                    "asked": golden["asked"],
                    "pred": golden["pred"],
                    "table": golden["tables"][0],
                    "compensated": golden["tables"][1][0],
                }
                yield Comparison(name, ask(case, mode, seed), official)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longbench_v2,
    comparisons=join_comparisons(compare_modes(), words=3),
)
