"""Makes a gate by log-probabilities: asks both deployments about the same texts or for answers, and decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import orjson

from helm_longctx.apps.gate.distributions import Asked, Way
from helm_longctx.apps.gate.divergences import (
    FIRST_LOOKS,
    QUESTIONS,
    QUESTIONS_OF_ANY,
    DivergenceDecision,
    answers_table,
    count_twice,
    decide,
    decision_json,
    describe_sample,
    explain,
    explain_differences,
    parts_table,
)
from helm_longctx.apps.gate.folder import GateFolder
from helm_longctx.apps.gate.gate import read_looks
from helm_longctx.apps.gate.kinds import find_main_kind
from helm_longctx.apps.gate.teacher_forcing import (
    TextComparison,
    cost_of_question,
    find_way,
    make_arms,
    read_points,
    read_questions,
)
from helm_longctx.config.plan import make_plan, make_runner
from helm_longctx.config.schema import RunConfig
from helm_longctx.config.settings import make_settings
from helm_longctx.config.shared import fill_registries
from helm_longctx.documents.terminal import print_table
from helm_longctx.results.statistics.comparison import next_looks
from helm_longctx.results.statistics.noninferiority import Verdict
from helm_longctx.tasks.token_estimate import estimate_tokens
from helm_longctx.writing import replace_file


def compare_distributions(
    models: tuple[str, str],
    configs: Sequence[RunConfig],
    most: int | None,
    power: float,
    margin: float,
    prints: TextIO,
) -> int:
    """Compare the distributions of both sides, and return the exit status.

    Args:
        models: the names of both deployments.
        most: the number of questions of each run, if the user gives it.
        power: the wanted probability with which a difference is found.
        margin: the largest mean divergence that is accepted, in nats.
    """
    config = configs[0]
    folder = GateFolder(config.output_path, config.suite)
    kept = folder.path / "logprobs.jsonl"
    if most is None:
        most = QUESTIONS if margin else QUESTIONS_OF_ANY
    with replace(make_settings(config), draws_samples=True).use():
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            plans = []
            for config_of_side in configs:
                plans.append(make_plan(config_of_side))
            runner = make_runner(config)
            way = find_way(models)
            runs = []
            for spec in plans[0].specs:
                runs.append(list(read_questions(runner, spec, most, way)))
        asked = []
        for run in runs:
            asked += run
        lengths = max(len({question.length for question in asked}), 1)
        earlier = read_points(kept)
        print(describe_sample(asked, margin, power, way, earlier))
        dollars = _price_questions(asked, models, way, margin, lengths)
        if dollars:
            print(f"They cost about ${dollars:.4f}.")
        if config.dry_run:
            return 0
        with redirect_stdout(prints):
            sides, found_way = make_arms(runner, models, way)
        if found_way is not way:
            way = found_way
            print("One of them reads no given texts, so answers are compared:")
            print(describe_sample(asked, margin, power, way, earlier))
        comparison = TextComparison(
            sides, models, kept, margin, way, config.limits.max_cost
        )
        path = folder.path / "logprobs.json"
        compared = {
            "base": models[0],
            "candidate": models[1],
            "max_divergence": margin,
        }
        looks = read_looks(path, compared) or ()
        with redirect_stdout(prints):
            decision = _ask_until_worse(comparison, runs, margin, looks, lengths)
    _show_distributions(comparison, decision, models, looks, path)
    return int(decision.verdict)


def _price_questions(
    asked: Sequence[Asked],
    models: tuple[str, str],
    way: Way,
    margin: float,
    lengths: int,
) -> float:
    """Return what the questions cost on both sides, in dollars; 0 without prices."""
    twice = count_twice(lengths) * lengths
    dollars = 0.0
    for number, question in enumerate(asked):
        is_twice = not margin or number < twice
        tokens = estimate_tokens(question.text)
        dollars += cost_of_question(tokens, models, way, is_twice)
    return dollars


def _show_distributions(
    comparison: TextComparison,
    decision: DivergenceDecision,
    models: tuple[str, str],
    looks: Iterable[int],
    path: Path,
) -> None:
    """Write the JSON file, and print the result.

    Args:
        looks: the numbers of questions at the looks of earlier commands.
    """
    kind = find_main_kind(comparison.points) if decision.differences else None
    results = decision_json(decision, comparison.requests)
    results |= {
        "base": models[0],
        "candidate": models[1],
        "looks": sorted({*looks, *decision.looks}),
        "kind": kind and kind._asdict(),
    }
    replace_file(path, orjson.dumps(results, option=orjson.OPT_INDENT_2))
    print(
        f"{models[1]} (candidate) against {models[0]} (base): distributions at the same tokens"
    )
    print_table(parts_table(decision, comparison.way))
    if decision.answers:
        print_table(answers_table(decision))
    if decision.differences:
        print(explain_differences(decision), kind.text if kind else "")
    print(
        f"{explain(decision)} It took {comparison.requests} requests.\nThe"
        f" results: {path}"
    )


def _ask_until_worse(
    comparison: TextComparison,
    runs: Sequence[Sequence[Asked]],
    margin: float,
    earlier: Sequence[int],
    lengths: int,
) -> DivergenceDecision:
    """Ask the questions of all runs, and stop before the last one if the candidate is certainly worse.

    Args:
        earlier: the numbers of questions at the looks of earlier commands.
        lengths: the number of lengths.
    """
    most = max(map(len, runs), default=0)
    sizes = [*(size for size in FIRST_LOOKS if size < most), most]
    done = 0
    known = set(earlier)
    for size in sizes:
        further: list[Asked] = []
        for run in runs:
            further += run[done:size]
        comparison.ask(further, lengths)
        done = size
        asked = sum(min(size, len(run)) for run in runs)
        looks = next_looks(known, asked)
        known.add(asked)
        decision = decide(comparison.points, comparison.written, margin, looks)
        if decision.verdict is Verdict.WORSE:
            break
    return decision
