"""Groups of training runs: which models are runs of one recipe, and whether recipes differ by more than their runs.

A group is a name with patterns of models, such as `recipe-a=ckpt/a-seed*`. All runs are compared on the questions that
each of them answered. Failures may not decide: a difference counts only if it also holds with failures as wrong and as
right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import (
    format_amount,
    format_ends,
    format_p,
    format_percent,
    format_share,
    format_signed_percent,
)
from helm_longctx.errors import InputError, bad_argument, list_choices, shorten
from helm_longctx.results.boards import Board
from helm_longctx.results.comparison import SharedTable
from helm_longctx.results.statistics.comparison import FAILURES_DECIDE, holm
from helm_longctx.results.statistics.intervals import Floats, group_codes
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.run_noise import (
    RecipeComparison,
    RunNoise,
    assume_noise,
    compare_recipes,
    estimate_noise,
    is_decided,
)
from helm_longctx.tasks.steps import find_step
from helm_longctx.writing import replace_file

GROUPS_FILE = "run_groups.json"
"""The groups of a configuration, in the folder of its suite."""

UNKNOWN_NOISE = "cannot tell: the noise between runs is unknown"

_FAILURES_AS = (None, 0.0, 1.0)
"""What a question without an answer counts as: not at all, as wrong, and as right."""


@dataclass(frozen=True)
class RunGroup:
    """The runs of one recipe.

    Args:
        models: the runs, in the order of the suite.
    """

    name: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class GroupPairing:
    """Two recipes compared.

    Args:
        answered: the comparison on the questions that all runs answered.
        with_failures: the same with failures as wrong and as right. Empty if none failed.
        adjusted: the least certain p-value of these, adjusted by Holm's method for all pairs. NaN if it is not known.
    """

    one: str
    other: str
    answered: RecipeComparison
    with_failures: tuple[RecipeComparison, ...]
    adjusted: float

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or why it cannot be told."""
        if not self.answered.is_known:
            return UNKNOWN_NOISE
        signs = set()
        for comparison in (self.answered, *self.with_failures):
            signs.add(comparison.difference > 0)
        if is_decided(self.adjusted) and len(signs) == 1:
            return "better" if self.answered.difference > 0 else "worse"
        if self.with_failures and is_decided(self.answered.p_value):
            return FAILURES_DECIDE
        return "cannot tell"

    @property
    def decisive_p_value(self) -> float:
        """The least certain p-value, also with failures as wrong and as right. NaN if it is not known."""
        p_values = [self.answered.p_value]
        p_values += [comparison.p_value for comparison in self.with_failures]
        return float(np.max(p_values))


def adjust_pairings(pairings: Sequence[GroupPairing]) -> list[GroupPairing]:
    """Return pairings that are decided together, with their p-values adjusted by Holm's method."""
    p_values = holm([pairing.decisive_p_value for pairing in pairings])
    return [
        replace(pairing, adjusted=p_value)
        for pairing, p_value in zip(pairings, p_values, strict=True)
    ]


@dataclass(frozen=True)
class GroupTable:
    """Recipes on the questions of a suite.

    Args:
        noise: the noise between runs. None if it is unknown.
        source: where the noise is from, in words.
        means: the mean of each run, by recipe.
        questions: the number of questions that all runs answered.
        unanswered: the number of those that one of them did not answer.
    """

    groups: tuple[RunGroup, ...]
    noise: RunNoise | None
    source: str
    means: Mapping[str, Floats]
    questions: int
    unanswered: int
    pairings: tuple[GroupPairing, ...]


def parse_groups(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each group, from texts such as `recipe-a=ckpt/a-seed*`.

    Raises:
        InputError: a text has another form, or a name comes twice.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, patterns = text.partition("=")
        if not (name and equals and patterns):
            raise bad_argument(
                "group", "--group", text, "NAME=PATTERN, e.g. recipe-a=ckpt/a-seed*"
            )
        if name in groups:
            raise InputError(f"group: name={shorten(name)} comes twice; choose another")
        groups[name] = tuple(patterns.split(","))
    return groups


def find_groups(
    patterns: Mapping[str, Sequence[str]],
    models: Sequence[str],
) -> tuple[RunGroup, ...]:
    """Return the groups with the models that match their patterns. Each model is a run.

    Raises:
        InputError: as `match_groups`, or a group has several steps of one training.
    """
    groups = match_groups(patterns, models)
    for group in groups:
        _refuse_steps(group)
    return groups


def _refuse_steps(group: RunGroup) -> None:
    """Raise an `InputError` if a group has several steps of one training, because these are no runs of their own."""
    trainings: dict[str, str] = {}
    for model in group.models:
        step = find_step(model)
        if step is None or not step.is_named:
            continue
        if step.family in trainings:
            raise InputError(
                f"group {shorten(group.name)}: {shorten(trainings[step.family])} and"
                f" {shorten(model)} are steps of one training, not two runs; name one"
                " step, or give the groups to checkpoints"
            )
        trainings[step.family] = model


def match_groups(
    patterns: Mapping[str, Sequence[str]],
    models: Sequence[str],
) -> tuple[RunGroup, ...]:
    """Return the groups with the models that match their patterns.

    Raises:
        InputError: a pattern matches no model, a model is in two groups, or there is only one group.
    """
    owner: dict[str, str] = {}
    groups = []
    for name, of_group in patterns.items():
        members: list[str] = []
        for pattern in of_group:
            matches = [model for model in models if fnmatchcase(model, pattern)]
            if not matches:
                raise InputError(
                    f"group {shorten(name)}: no model of the suite matches {shorten(pattern)};"
                    f" {list_choices(pattern, models)}"
                )
            members += [model for model in matches if model not in members]
        for model in members:
            if model in owner:
                raise InputError(
                    f"group: {shorten(model)} is in {shorten(owner[model])} and in"
                    f" {shorten(name)}; put it into one"
                )
            owner[model] = name
        groups.append(RunGroup(name=name, models=tuple(members)))
    if len(groups) < 2:
        raise InputError("group: one group is given; give at least two")
    return tuple(groups)


def write_groups(suite: Path, patterns: Mapping[str, Sequence[str]]) -> None:
    """Keep the groups of a configuration beside the runs, where `compare` and the report find them."""
    suite.mkdir(parents=True, exist_ok=True)
    content = {}
    for name, of_group in patterns.items():
        content[name] = list(of_group)
    text = json.dumps(content, indent=1) + "\n"
    replace_file(suite / GROUPS_FILE, text.encode())


def read_groups(suite: Path) -> dict[str, tuple[str, ...]]:
    """Return the groups that a configuration gave, or none."""
    path = suite / GROUPS_FILE
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
        return {str(name): tuple(map(str, content[name])) for name in content}
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is damaged; remove it and run it again") from error


def read_groups_of(board: Board) -> dict[str, tuple[str, ...]]:
    """Return the groups that the configuration of a board's suite gave, or none."""
    suites = {result.run.path.parent for result in board.tasks if result.run}
    return read_groups(suites.pop()) if len(suites) == 1 else {}


def compare_groups(
    boards: Sequence[Board],
    groups: Sequence[RunGroup],
    length: int | None = None,
    run_noise: str | None = None,
) -> GroupTable:
    """Compare recipes on the questions that all of their runs share.

    Args:
        length: only this length. None for all.
        run_noise: an assumption in place of the estimate: the standard deviation between runs in points, or the name of
            the group whose runs give it.

    Raises:
        InputError: the runs share no question, or `run_noise` is neither a number nor a group with two runs.
    """
    models = [model for group in groups for model in group.models]
    table = SharedTable(boards, models, length)
    tables = []
    for failure in _FAILURES_AS:
        if failure is None or table.has_failures:
            tables.append(_ScoreTable.read(table, groups, failure))
    noise, source = _find_noise(tables[0], groups, run_noise)
    comparisons: dict[tuple[str, str], list[RecipeComparison]] = {}
    for scores in tables:
        of_scores = noise
        if noise is not None and run_noise is None:
            of_scores = scores.estimate(scores.by_group.values())
        for one, other in combinations(scores.by_group, 2):
            comparison = compare_recipes(
                scores.by_group[one],
                scores.by_group[other],
                scores.weights,
                scores.codes,
                of_scores,
            )
            comparisons.setdefault((one, other), []).append(comparison)
    pairings = []
    for (one, other), (answered, *with_failures) in comparisons.items():
        pairings.append(
            GroupPairing(
                one=one,
                other=other,
                answered=answered,
                with_failures=tuple(with_failures),
                adjusted=math.nan,
            )
        )
    return GroupTable(
        groups=tuple(groups),
        noise=noise,
        source=source,
        means={
            name: scores @ tables[0].weights
            for name, scores in tables[0].by_group.items()
        },
        questions=len(tables[0].weights),
        unanswered=len(table.weighted_indices) - len(tables[0].weights),
        pairings=tuple(adjust_pairings(pairings)),
    )


@dataclass(frozen=True)
class _ScoreTable:
    """The scores of all runs.

    Args:
        by_group: shape (runs, questions) for each recipe.
        weights: shape (questions,), with the sum 1.
        codes: shape (questions,): the number of each question's cluster.
    """

    by_group: Mapping[str, Floats]
    weights: Floats
    codes: NDArray[np.intp]

    @classmethod
    def read(
        cls,
        table: SharedTable,
        groups: Sequence[RunGroup],
        failure: float | None,
    ) -> _ScoreTable:
        """Return the scores with a value for questions without an answer. Without a value they are left out."""
        by_group = {}
        weights: Floats = np.empty(0)
        clusters: Sequence[object] = []
        for group in groups:
            rows = []
            for model in group.models:
                scores, weights, clusters = table.scores_of_run(model, failure)
                rows.append(scores)
            by_group[group.name] = np.array(rows)
        return cls(by_group, weights, group_codes(clusters, len(weights)))

    def estimate(self, recipes: Iterable[Floats]) -> RunNoise | None:
        """Estimate the noise between runs of some recipes."""
        return estimate_noise(list(recipes), self.weights, self.codes)


def _find_noise(
    scores: _ScoreTable,
    groups: Sequence[RunGroup],
    run_noise: str | None,
) -> tuple[RunNoise | None, str]:
    """Return the noise between runs, and where it is from."""
    if run_noise is None:
        single = []
        for group in groups:
            if len(group.models) == 1:
                single.append(group.name)
        if single:
            return None, (
                f"unknown, because there is one run of {', '.join(single)}; give more runs,"
                " or assume it by --run-noise"
            )
        return scores.estimate(scores.by_group.values()), "estimated from all runs"
    if run_noise in scores.by_group:
        noise = scores.estimate([scores.by_group[run_noise]])
        if noise is None:
            raise InputError(
                f"compare: --run-noise={run_noise}: this group has one run; name one with several"
            )
        return noise, f"assumed to be that of {run_noise}"
    try:
        points = float(run_noise)
    except ValueError:
        points = -1.0
    if not 0 <= points <= 100:
        allowed = f"points from 0 to 100, or a group: {', '.join(scores.by_group)}"
        raise bad_argument("compare", "--run-noise", run_noise, allowed)
    return assume_noise(points / 100), f"assumed to be {format_amount(points)} points"


def describe_noise(table: GroupTable) -> str:
    """Say how large the noise between runs is, and where that is from."""
    if table.noise is None:
        return f"The noise between runs is {table.source}."
    return (
        f"Runs of one recipe differ by {format_percent(table.noise.deviation)} points"
        f" (standard deviation; {table.source})."
    )


def group_tables(table: GroupTable, name: str) -> list[Table]:
    """Return the tables for pages and the terminal: the recipes, and their differences."""
    recipes = []
    for group in table.groups:
        means = table.means[group.name]
        spread = f"{format_percent(float(means.min()))} to {format_percent(float(means.max()))}"
        recipes.append(
            [group.name, str(len(means)), format_percent(float(means.mean())), spread]
        )
    about = (
        f"{table.questions} questions that all runs answered. {describe_noise(table)}"
    )
    if table.unanswered:
        about += f" {table.unanswered} further questions failed in a run."
    rows = []
    for pairing in table.pairings:
        answered = pairing.answered
        rows.append(
            [
                f"{pairing.one} − {pairing.other}",
                describe_group_difference(answered),
                format_p(pairing.adjusted) if answered.is_known else "–",
                format_share(answered.run_share) if answered.is_known else "–",
                format_percent(answered.smallest) if answered.is_known else "–",
                _describe_need(answered),
                pairing.verdict,
            ]
        )
    columns = ("recipe", "runs", "mean in %", "runs from to")
    heads = (
        "difference",
        f"in points ({LEVEL_TEXT})",
        "adjusted p",
        "variance from runs",
        "smallest visible",
        "decided with",
        "verdict",
    )
    overview = text_table("Recipes", columns, recipes)
    differences = text_table("Differences of recipes", heads, rows, about)
    return [
        replace(overview, name=f"{name}-recipes"),
        replace(differences, name=f"{name}-pairs"),
    ]


def describe_group_difference(comparison: RecipeComparison) -> str:
    """Return a difference in points, with its interval if the noise between runs is known."""
    difference = format_signed_percent(comparison.difference)
    if not comparison.is_known:
        return difference
    return f"{difference} ({format_ends(comparison, format_signed_percent)})"


def _describe_need(comparison: RecipeComparison) -> str:
    """Say how many runs or questions would decide a difference of this size."""
    if not comparison.is_known or comparison.low > 0 or comparison.high < 0:
        return "–"
    needs = []
    if comparison.needed_runs:
        needs.append(f"{comparison.needed_runs} runs each")
    if comparison.needed_questions:
        needs.append(f"{comparison.needed_questions} questions")
    return " or ".join(needs) or "more runs and questions"


def pairing_to_json(pairing: GroupPairing) -> dict[str, Any]:
    """Return a pairing for programs. Scores are from 0 to 1."""
    answered = pairing.answered
    return {
        "one": pairing.one,
        "other": pairing.other,
        "difference": answered.difference,
        "low": answered.low,
        "high": answered.high,
        "p": answered.p_value,
        "adjusted_p": pairing.adjusted,
        "runs": list(answered.runs),
        "run_share": answered.run_share if answered.is_known else None,
        "smallest": answered.smallest,
        "needed_runs": answered.needed_runs,
        "needed_questions": answered.needed_questions,
        "verdict": pairing.verdict,
    }


def to_json(table: GroupTable) -> dict[str, Any]:
    """Return the groups for programs. Scores are from 0 to 1."""
    return {
        "groups": [
            {
                "name": group.name,
                "models": list(group.models),
                "means": table.means[group.name].tolist(),
            }
            for group in table.groups
        ],
        "run_noise": table.noise.deviation if table.noise else None,
        "run_noise_source": table.source,
        "questions": table.questions,
        "unanswered": table.unanswered,
        "pairings": [pairing_to_json(pairing) for pairing in table.pairings],
    }
