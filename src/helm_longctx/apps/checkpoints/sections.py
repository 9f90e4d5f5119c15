"""The page and the command with the scores of trainings over their steps, and how these scores change."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from helm_longctx.apps.checkpoints.recipes import (
    RecipeCurve,
    compare_recipes_over_steps,
    curve_to_json,
    make_recipe_table,
)
from helm_longctx.config.shared import JsonPath, OutputPath, SuiteOption, check_folder
from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    interval_cell,
    number_cell,
    text_columns,
)
from helm_longctx.documents.numbers import MARK, format_percent, format_signed_percent
from helm_longctx.documents.plots import curves
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError
from helm_longctx.results.boards import OVERALL, Board, label, read_suite
from helm_longctx.results.cells import plot_row, score_cell
from helm_longctx.results.comparison import (
    Pairing,
    SharedTable,
    find_failure_share,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.run_groups import parse_groups, read_groups, read_groups_of
from helm_longctx.results.statistics.comparison import (
    FAILURES_DECIDE,
    compare_intervals,
    mix_failures,
)
from helm_longctx.results.statistics.intervals import Floats, Interval, normal_quantile
from helm_longctx.results.statistics.level import LEVEL_TEXT, SIGNIFICANCE
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.steps import find_step
from helm_longctx.writing import write_json

SPAN = 3
"""Of so many last steps the first and the last are compared, to say whether scores still rise."""


@dataclass(frozen=True)
class _Curve:
    """The scores of a part of a benchmark over the steps of a training.

    Args:
        family: the name that the checkpoints share, with a star in the place of the step.
        part: the task or the part of the benchmark.
        length: the length, or None for a benchmark without lengths.
        scores: the score of each step, in the order of the steps.
        floor_result: the best score that needs no understanding, or None if no floor was run.
        trend: the comparison of the last step with an earlier one on the same questions, or None if there is none.
    """

    family: str
    part: str
    length: int | None
    scores: Mapping[int, Result]
    floor_result: Result | None
    trend: Pairing | None

    @property
    def floor(self) -> float | None:
        """The score of the floor, or None if no floor was run."""
        if self.floor_result:
            return self.floor_result.interval.mean
        return None

    @property
    def start(self) -> int | None:
        """The step from which on all scores are surely above the floor, or None without such a step or a floor's run.

        Questions need not fail at random, so those of the steps count as wrong here, and those of the floor as right.
        """
        if self.floor_result is None:
            return None
        steps = list(self.scores)
        intervals = self._score_intervals(0.0)
        floor = _count_failures(self.floor_result, 1.0)
        start = None
        for number in range(len(steps), 0, -1):
            if not is_above_floor(intervals[:number], floor):
                break
            start = steps[number - 1]
        return start

    def _score_intervals(self, failure: float) -> list[Interval]:
        """Return the score of each step if the questions without an answer have this score."""
        return [_count_failures(result, failure) for result in self.scores.values()]

    @property
    def trend_steps(self) -> tuple[int, int]:
        """The steps that the trend compares."""
        last = list(self.scores)[-SPAN:]
        return last[0], last[-1]

    @property
    def direction(self) -> str:
        """Whether the score still rises at the end: `rises`, `falls` or `cannot tell`; empty without a comparison."""
        if self.trend is None:
            return ""
        comparison = self.trend.comparison
        means = [result.interval.mean for result in self.scores.values()]
        direction = _find_direction(means, comparison.effect)
        if direction == _NO_DIRECTION or not self._has_failures:
            return direction
        # As everywhere, a difference must also hold with failures as wrong and as right answers.
        failures = comparison.failures
        for failure in (0.0, 1.0):
            effect = comparison.effect
            if failures is not None:
                effect = (failures.as_right if failure else failures.as_wrong).effect
            means = [score.mean for score in self._score_intervals(failure)]
            if _find_direction(means, effect) != direction:
                return FAILURES_DECIDE
        return direction

    @property
    def _has_failures(self) -> bool:
        return any(find_failure_share(result) for result in self.scores.values())


_NO_DIRECTION = "cannot tell"


def _find_direction(means: Sequence[float], effect: Interval) -> str:
    """Return whether scores rise or fall, or that it cannot be told.

    Args:
        means: the score of each step.
        effect: the change of the last steps.
    """
    error = (effect.high - effect.low) / (2 * normal_quantile())
    change, p_value = find_trend(means, SampledChange(effect.mean, error))
    if math.isnan(p_value) or p_value >= level_of_step(len(means)):
        return _NO_DIRECTION
    return "rises" if change > 0 else "falls"


def _count_failures(result: Result, failure: float) -> Interval:
    """Return a score in which the questions without an answer have a given score."""
    return mix_failures(result.interval, find_failure_share(result), failure)


_TYPICAL_NOISE = 0.02
"""Standard deviation of a checkpoint's score besides that of its questions, until the steps show it."""

_FEWEST_STEPS = 6
"""From so many steps on, the noise is estimated from neighbours."""


class SampledChange(NamedTuple):
    """The change from an earlier step to the last one, with its standard error over questions."""

    change: float
    error: float


def level_of_step(number: int) -> float:
    """Return the level of the look at a checkpoint, so that somebody who looks after each errs in about 5 % at most.

    Args:
        number: the number of checkpoints until then.
    """
    return SIGNIFICANCE / math.log2(max(number, 2)) ** 2


def is_above_floor(scores: Sequence[Interval], floor: Interval) -> bool:
    """Return whether the newest score is above the floor, although somebody looks at each checkpoint.

    Each look is at a new score, so the levels of all looks have the sum `SIGNIFICANCE`. A score has the noise of its
    training besides the error of its questions: `_TYPICAL_NOISE`, or more if its neighbours show more.

    Args:
        scores: the scores of all checkpoints until then.
    """
    newest = scores[-1]
    quantile = normal_quantile()
    noise = max(_TYPICAL_NOISE, find_neighbour_noise(scores) or 0.0)
    with_noise = Interval(
        mean=newest.mean,
        low=newest.mean - math.hypot(newest.mean - newest.low, quantile * noise),
        high=newest.mean + math.hypot(newest.high - newest.mean, quantile * noise),
        n=newest.n,
    )
    comparison = compare_intervals(with_noise, floor)
    # The p-value is two-sided, and only scores above the floor count.
    level = 2 * SIGNIFICANCE / (len(scores) * (len(scores) + 1))
    return comparison.effect.mean > 0 and comparison.p_value < level


def find_neighbour_noise(scores: Sequence[Interval]) -> float | None:
    """Return the standard deviation between neighbouring checkpoints besides that of their questions, 0 to 1.

    It is a lower bound of the noise between runs of one recipe, because neighbours share most of their training. None
    with fewer than `_FEWEST_STEPS`.
    """
    if len(scores) < _FEWEST_STEPS:
        return None
    newest = scores[-1]
    sampled = ((newest.high - newest.low) / (2 * normal_quantile())) ** 2
    variance = _find_variance(np.array([score.mean for score in scores]))
    return math.sqrt(max(variance - sampled, 0.0))


def _find_variance(means: Floats) -> float:
    """Return the variance of the scores of checkpoints around a smooth curve.

    The second differences of noise with the variance v have the variance 6 v, and a straight trend has none.
    """
    return float((np.diff(means, 2) ** 2).mean()) / 6


def find_trend(means: Sequence[float], last: SampledChange) -> tuple[float, float]:
    """Return the change over the last half of the steps, and its two-sided p-value.

    Scores of checkpoints differ by more than their questions do, because training is noisy. The differences of
    neighbours show how much. Second differences are correlated, so n of them count as n / 1.94. The change is the slope
    of a straight line.

    Args:
        means: shape (steps,): the score of each step.
        last: the change of the last steps. It is used alone until there are `_FEWEST_STEPS`.
    """
    from scipy.stats import norm, t

    values = np.asarray(means, dtype=float)
    if len(values) < _FEWEST_STEPS:
        error = math.hypot(last.error, math.sqrt(2) * _TYPICAL_NOISE)
        return last.change, 2 * float(norm.sf(abs(last.change) / error))
    variance = max(_find_variance(values), last.error**2 / 2)
    half = values[-(len(values) // 2) :]
    steps = np.arange(len(half)) - (len(half) - 1) / 2
    slope = float(steps @ half / (steps @ steps))
    error = math.sqrt(variance / float(steps @ steps))
    p_value = 2 * float(t.sf(abs(slope) / max(error, 1e-12), (len(values) - 2) / 1.94))
    return slope * (len(half) - 1), p_value


def _find_trainings(board: Board) -> Mapping[str, Mapping[int, str]]:
    """Return the models of each training, by step."""
    trainings: dict[str, dict[int, str]] = defaultdict(dict)
    for result in board.tasks:
        given = result.run.model_facts.get("step") if result.run else None
        if (
            result.has_score
            and not result.is_published
            and (step := find_step(result.model, given))
        ):
            trainings[step.family][step.number] = result.model
    return trainings


def _find_curves(board: Board) -> Iterator[_Curve]:
    """Yield a curve for each training, length, and task or mean of tasks for which several of its steps have scores."""
    for family, models in _find_trainings(board).items():
        for length in board.lengths:
            tasks = []
            for task in board.benchmark.tasks:
                if any(
                    board.score(model, task.name, length) for model in models.values()
                ):
                    tasks.append(task.name)
            means = []
            for part in board.parts_at(length):
                if len({*board.tasks_of(part, length)} & {*tasks}) > 1:
                    means.append(part)
            for part in (*means, *tasks):
                scores_by_step = {}
                for number in sorted(models):
                    scores_by_step[number] = board.score(models[number], part, length)
                scores = {
                    number: score for number, score in scores_by_step.items() if score
                }
                if len(scores) > 1:
                    last = list(scores.values())[-SPAN:]
                    try:
                        pairings = SharedTable(
                            [board], [last[-1].model, last[0].model], length
                        ).pairings()
                    except InputError:
                        pairings = []  # they share no question, or their answers were not kept
                    # Of means only the overall one is compared.
                    pairing_key = ("all", "") if part == OVERALL else ("task", part)
                    trend = next(
                        (
                            pairing
                            for pairing in pairings
                            if (pairing.by, pairing.part) == pairing_key
                        ),
                        None,
                    )
                    yield _Curve(
                        family=family,
                        part=part,
                        length=length,
                        scores=scores,
                        floor_result=board.floor_result_below(last[-1]),
                        trend=trend,
                    )


_ABOUT = (
    "The score at the first and at the last step, and the step from which on each"
    " score is above the floor. The floor is the best score that needs no"
    " understanding, such as the score of longctx/null and longctx/lexical; its own"
    " error counts, and without a floor's run nothing is said. Questions without an"
    " answer count as wrong at a step, and as right at the floor. The change is from"
    f" the first to the last of the last {SPAN} steps, on the questions that both"
    " answered. Whether scores rise or fall is tested over the last half of the steps,"
    " with the noise between neighbours, and with all looks at earlier steps in mind."
)


def checkpoint_sections(board: Board) -> list[Section]:
    """Return the sections of the report's page: each training with several steps, and recipes over their steps."""
    return _training_sections(board) + _recipe_sections(board)


def _training_sections(board: Board) -> list[Section]:
    """Return a section for each training with several steps: curves, and when scores leave the floor and still rise."""
    families: dict[str, list[_Curve]] = defaultdict(list)
    for curve in _find_curves(board):
        families[curve.family].append(curve)
    columns = [
        *text_columns("Task", "Length"),
        Column("Steps"),
        Column("First"),
        Column("Last"),
        Column("Floor"),
        Column("Above the floor from"),
        Column("Change", "Of the last steps, in points."),
        Column("At the end", is_number=False),
        Column(
            "Noise, at least",
            "Standard deviation between neighbouring steps besides that of their"
            " questions, in points. Runs of one recipe differ by at least as much;"
            " see compare --group.",
        ),
    ]
    sections = []
    for number, (family, of_family) in enumerate(families.items()):
        name = f"checkpoints-{board.file_name}-{number}"
        rows = [_row(board, curve) for curve in of_family]
        table = Table(
            f"{name}-table", f"{board.title}: steps of {family}", columns, rows, _ABOUT
        )
        blocks: list[Block] = [_draw_curves(board, name, family, of_family), table]
        sections.append(Section(name, f"Scores over the steps of {family}", blocks))
    return sections


def _recipe_sections(board: Board) -> list[Section]:
    """Return the comparison of recipes, if the suite's configuration has groups of training runs."""
    patterns = read_groups_of(board)
    if not patterns:
        return []
    try:
        curves = compare_recipes_over_steps(board, _find_trainings(board), patterns)
    except InputError:  # some trainings of the groups have no steps yet
        return []
    tables = [make_recipe_table(board, curve) for curve in curves]
    if not tables:
        return []
    name = f"checkpoints-{board.file_name}-recipes"
    return [Section(name, "Recipes over their steps", tables)]


def _draw_curves(
    board: Board,
    name: str,
    family: str,
    own_curves: Sequence[_Curve],
) -> Figure:
    steps = sorted({step for curve in own_curves for step in curve.scores})
    # Each length is a curve, in the place of a model.
    rows = []
    for curve in own_curves:
        for step, result in curve.scores.items():
            rows.append(
                {
                    **plot_row(
                        board, result, part=board.titles[curve.part], step=str(step)
                    ),
                    "model": board.titles[curve.part]
                    if curve.length is None
                    else label(curve.length),
                }
            )
    parts = list(dict.fromkeys(board.titles[curve.part] for curve in own_curves))
    spec = curves(parts, list(map(str, steps)), "step", over="step")
    about = (
        f"A curve for each length; vertical lines are {LEVEL_TEXT} intervals."
        f" {MARK} marks scores that are not comparable."
    )
    return Figure(
        f"{name}-curves", f"Score over the steps of {family}", about, spec, rows
    )


def _row(board: Board, curve: _Curve) -> list[Cell]:
    first, *_, last = curve.scores.values()
    start = curve.start
    change = curve.trend and curve.trend.comparison.effect
    earlier, latest = curve.trend_steps
    return [
        Cell(board.titles[curve.part]),
        Cell(label(curve.length)),
        Cell(f"{min(curve.scores)} to {max(curve.scores)}", len(curve.scores)),
        score_cell(first),
        score_cell(last),
        number_cell(curve.floor, note="no floor was run"),
        number_cell(
            start, str, note="no step" if curve.floor_result else "no floor was run"
        ),
        interval_cell(change, format_signed_percent)
        if change
        else number_cell(None, note="no question in common"),
        Cell(f"{curve.direction} ({earlier} to {latest})" if curve.direction else ""),
        number_cell(
            find_neighbour_noise([score.interval for score in curve.scores.values()]),
            format_percent,
            note=f"fewer than {_FEWEST_STEPS} steps",
        ),
    ]


def checkpoints(
    suite: SuiteOption,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare recipes at each step by their trainings: NAME=PATTERN of"
            " models, e.g. recipe-a=ckpt/a-seed*. Repeat it."
        ),
    ] = None,
    run_noise: Annotated[
        str | None,
        typer.Option(
            help="Assumed standard deviation between trainings of a recipe, in points,"
            " or the group whose trainings give it."
        ),
    ] = None,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Show the scores of trainings over their steps, from when they are above the floor, and whether they still rise.

    The step is the number in a model's name (step-1000, checkpoint-500, global_step20, run-1000), or the one that its
    run configuration gives. With --group, recipes are compared at each step by several trainings of each, over
    trainings and questions.
    """
    check_folder("json", json_path)
    folder = suite_folder(output_path, suite)
    patterns = parse_groups(group or ()) or read_groups(folder)
    if run_noise is not None and not patterns:
        raise InputError(
            f"checkpoints: --run-noise={run_noise} needs groups; give --group"
        )
    boards = read_suite(folder, BENCHMARKS).boards
    sections = []
    for board in boards:
        sections.extend(_training_sections(board))
    if not sections:
        raise InputError(
            f"checkpoints: suite={suite!r} has no two steps of a training; name models"
            " as checkpoints/step-1000"
        )
    recipes = _find_recipes(boards, patterns, run_noise) if patterns else []
    for section in sections:
        print_blocks(section.blocks)
    for board, curve in recipes:
        print_blocks([make_recipe_table(board, curve)])
    if json_path:
        content = {"curves": _curves_json(boards), "recipes": _recipes_json(recipes)}
        write_json(json_path, content)


def _curves_json(boards: Sequence[Board]) -> list[dict[str, Any]]:
    rows = []
    for board in boards:
        for curve in _find_curves(board):
            scores = {
                step: vars(result.interval) for step, result in curve.scores.items()
            }
            rows.append(
                {
                    "benchmark": board.name,
                    "training": curve.family,
                    "part": curve.part,
                    "length": curve.length,
                    "scores": scores,
                    "floor": curve.floor,
                    "above_floor_from": curve.start,
                    "direction": curve.direction,
                }
            )
    return rows


def _recipes_json(
    recipes: Sequence[tuple[Board, RecipeCurve]],
) -> list[dict[str, Any]]:
    rows = []
    for board, curve in recipes:
        rows += curve_to_json(board, curve)
    return rows


def _find_recipes(
    boards: Sequence[Board],
    patterns: Mapping[str, Sequence[str]],
    run_noise: str | None,
) -> list[tuple[Board, RecipeCurve]]:
    """Return recipes over their steps in each benchmark that has trainings.

    Raises:
        InputError: there is no step that all trainings of the recipes have.
    """
    recipes = []
    for board in boards:
        trainings = _find_trainings(board)
        if not trainings:
            continue
        curves = compare_recipes_over_steps(board, trainings, patterns, run_noise)
        recipes += [(board, curve) for curve in curves]
    if not recipes:
        raise InputError(
            "checkpoints: the trainings of the groups have no step in common; run the"
            " same steps of each"
        )
    return recipes
