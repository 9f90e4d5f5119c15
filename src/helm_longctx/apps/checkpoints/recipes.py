"""Recipes over their steps: several trainings of each, compared at every step that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import format_p, format_percent, format_share
from helm_longctx.errors import InputError, shorten
from helm_longctx.results.boards import Board, label
from helm_longctx.results.run_groups import (
    GroupPairing,
    RunGroup,
    adjust_pairings,
    compare_groups,
    describe_group_difference,
    match_groups,
    pairing_to_json,
)

_HEADS = (
    "step",
    "difference",
    "runs",
    "means in %",
    "in points",
    "adjusted p",
    "variance from runs",
    "verdict",
)

_ABOUT = (
    "Each training of a recipe is a run. At each step, the trainings of two recipes are compared over runs and questions;"
    " p-values are adjusted for all rows of the table. With one training of a recipe the noise between runs is unknown,"
    " and nothing is decided: the noise between neighbouring steps is only a lower bound."
)


@dataclass(frozen=True)
class RecipeStep:
    """Two recipes at a step.

    Args:
        means: the mean of each recipe, over its trainings.
        noise: the standard deviation between trainings of one recipe, 0 to 1. None if it is unknown.
    """

    step: int
    pairing: GroupPairing
    means: tuple[float, float]
    noise: float | None


@dataclass(frozen=True)
class RecipeCurve:
    """Recipes over their steps, on the questions of a length.

    Args:
        rows: the steps in order, with all pairs of recipes.
        skipped: the steps that some trainings lack.
    """

    length: int | None
    rows: Sequence[RecipeStep]
    skipped: Sequence[int]


def compare_recipes_over_steps(
    board: Board,
    trainings: Mapping[str, Mapping[int, str]],
    patterns: Mapping[str, Sequence[str]],
    run_noise: str | None = None,
) -> list[RecipeCurve]:
    """Compare recipes at each step and length of a benchmark.

    Args:
        trainings: the models of each training, by step.
        patterns: the patterns of each recipe, as `compare --group` has them.
        run_noise: as for `compare_groups`.

    Returns:
        A curve for each length at which all trainings answered the same questions at a step.

    Raises:
        InputError: a pattern matches no step of a training, a training is in two recipes, or there is one recipe.
    """
    models = [model for steps in trainings.values() for model in steps.values()]
    recipes = {}
    for group in match_groups(patterns, models):
        recipes[group.name] = _find_trainings(group, trainings)
    every_training = []
    for of_recipe in recipes.values():
        every_training += of_recipe
    every_step = set[int]()
    for training in every_training:
        every_step.update(training)
    shared = set()
    for step in every_step:
        if all(step in training for training in every_training):
            shared.add(step)
    skipped = sorted(every_step - shared)
    curves = []
    for length in board.lengths:
        rows: list[RecipeStep] = []
        for step in sorted(shared):
            rows += _compare_at(board, recipes, step, length, run_noise)
        if rows:
            curves.append(
                RecipeCurve(
                    length=length,
                    rows=_adjust(rows),
                    skipped=skipped,
                )
            )
    return curves


def _find_trainings(
    group: RunGroup,
    trainings: Mapping[str, Mapping[int, str]],
) -> list[Mapping[int, str]]:
    """Return the trainings of which a group has steps.

    Raises:
        InputError: the group has some steps of a training, and not all.
    """
    members = set(group.models)
    of_group = []
    for family, steps in trainings.items():
        own = members.intersection(steps.values())
        if not own:
            continue
        if len(own) < len(steps):
            raise InputError(
                f"group {shorten(group.name)}: it has some steps of {shorten(family)}, and"
                " others not; give a pattern for all steps"
            )
        of_group.append(steps)
    return of_group


def _compare_at(
    board: Board,
    recipes: Mapping[str, Sequence[Mapping[int, str]]],
    step: int,
    length: int | None,
    run_noise: str | None,
) -> list[RecipeStep]:
    groups = []
    for name, of_recipe in recipes.items():
        models = tuple(steps[step] for steps in of_recipe)
        groups.append(RunGroup(name=name, models=models))
    scored = {result.model for result in board.tasks if length in (None, result.length)}
    if not all(scored.issuperset(group.models) for group in groups):
        return []
    table = compare_groups([board], groups, length, run_noise)
    rows = []
    for pairing in table.pairings:
        means = (
            float(table.means[pairing.one].mean()),
            float(table.means[pairing.other].mean()),
        )
        rows.append(
            RecipeStep(
                step=step,
                pairing=pairing,
                means=means,
                noise=table.noise.deviation if table.noise else None,
            )
        )
    return rows


def _adjust(rows: Sequence[RecipeStep]) -> list[RecipeStep]:
    """Return rows whose p-values are adjusted for all of them."""
    pairings = adjust_pairings([row.pairing for row in rows])
    adjusted = []
    for row, pairing in zip(rows, pairings, strict=True):
        adjusted.append(replace(row, pairing=pairing))
    return adjusted


def make_recipe_table(board: Board, curve: RecipeCurve) -> Table:
    """Return the table of a length."""
    rows = []
    for row in curve.rows:
        pairing = row.pairing
        answered = pairing.answered
        is_known = answered.is_known
        one, other = row.means
        rows.append(
            [
                str(row.step),
                f"{pairing.one} − {pairing.other}",
                f"{answered.runs[0]} and {answered.runs[1]}",
                f"{format_percent(one)} and {format_percent(other)}",
                describe_group_difference(answered),
                format_p(pairing.adjusted) if is_known else "–",
                format_share(answered.run_share) if is_known else "–",
                pairing.verdict,
            ]
        )
    about = _ABOUT
    if curve.skipped:
        steps = ", ".join(map(str, curve.skipped))
        about += f" Some trainings lack these steps, which are left out: {steps}."
    at = f" at {label(curve.length)}" if curve.length is not None else ""
    table = text_table(f"{board.title}: recipes over steps{at}", _HEADS, rows, about)
    name = f"checkpoints-{board.file_name}-recipes-{curve.length or 'all'}"
    return replace(table, name=name)


def curve_to_json(board: Board, curve: RecipeCurve) -> list[dict[str, Any]]:
    """Return the rows for programs. Scores are from 0 to 1."""
    rows = []
    for row in curve.rows:
        rows.append(
            {
                "benchmark": board.name,
                "length": curve.length,
                "step": row.step,
                "means": list(row.means),
                "run_noise": row.noise,
                **pairing_to_json(row.pairing),
            }
        )
    return rows
