"""Compares methods with plain prompts: the gain on the same questions, and what a question and a point cost."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.results.boards import Board
from helm_longctx.results.comparison import SharedTable
from helm_longctx.results.statistics.comparison import (
    Comparison,
    compare_parts,
    decide_all,
)
from helm_longctx.runs.shown_models import PLAIN_PROMPTS, AskedMethod, ShownModel


@dataclass(frozen=True)
class _Costs:
    """The score of a model on questions, and what these cost.

    Args:
        score: the mean score, 0 to 1, with the weights of the overall score.
        tokens: mean number of tokens of prompt and output of a question, all its requests included, by the provider's
            count, or None if the provider did not count.
        tokens_per_point, dollars_per_point: of all questions for each point of the score, 0 to 100, or None if that is not
            known.
    """

    questions: int
    score: float
    tokens: float | None
    dollars: float | None

    tokens_per_point: float | None
    dollars_per_point: float | None


@dataclass(frozen=True)
class Gain:
    """A method compared with plain prompts on the questions that a model answered with both.

    Args:
        comparison: the score with the method minus the score with plain prompts.
        adjusted: the p-value that is adjusted by Holm's method over the model's methods.
        verdict: whether the method is `better` or `worse`, there is a `tie`, or failures decide; see `Decision.verdict`.
        not_compared: why other tasks of both are not compared; see `SharedTable.refusals`.
    """

    model: ShownModel
    method: AskedMethod
    comparison: Comparison
    adjusted: float
    costs: _Costs
    plain: _Costs
    not_compared: tuple[str, ...]
    verdict: str = ""


def find_gains(
    boards: Iterable[Board],
    models: Sequence[str] = (),
    length: int | None = None,
) -> list[Gain]:
    """Compare each method with the plain prompts of the same model, or raise an `InputError` if one lacks them."""
    boards = list(boards)
    # The shown name of each model by its name without methods and by the method.
    every: dict[ShownModel, dict[AskedMethod, ShownModel]] = defaultdict(dict)
    for board in boards:
        for result in board.tasks:
            if result.run and result.answers:
                model = result.model
                every[model.without_method][model.setup.method] = model
    runs = {}
    for model, names in every.items():
        if PLAIN_PROMPTS in names and len(names) > 1:
            runs[model] = names
    for name in models:
        if name not in runs:
            choices = list_choices(name, runs) or "no model of the suite has both"
            raise InputError(
                f"compare: model={shorten(name)} has no runs with and without a method; {choices}"
            )
    if not runs:
        raise InputError(
            "compare: --methods is given, but no model of the suite has runs with and"
            " without a method; run the same entries with method=retrieve, for example"
        )
    gains = []
    for model, names in runs.items():
        if models and model not in models:
            continue
        of_model = []
        plain = names[PLAIN_PROMPTS]
        for method, name in names.items():
            if method:
                table = SharedTable(boards, (name, plain), length)
                comparison = compare_parts(
                    table.pair_scores(name, plain, table.weighted_indices)
                )
                indices = table.keep_answered(table.weighted_indices)
                gain = Gain(
                    model=model,
                    method=method,
                    comparison=comparison,
                    adjusted=math.nan,
                    costs=_measure_costs(table, name, indices),
                    plain=_measure_costs(table, plain, indices),
                    not_compared=tuple(table.refusals),
                )
                of_model.append(gain)
        decisions = decide_all([gain.comparison for gain in of_model])
        for gain, decision in zip(of_model, decisions, strict=True):
            gains.append(
                replace(gain, adjusted=decision.adjusted, verdict=decision.verdict)
            )
    return gains


def _measure_costs(
    table: SharedTable,
    model: ShownModel,
    indices: Sequence[int],
) -> _Costs:
    def mean(*names: str) -> float | None:
        """Return the mean over questions of the means over repeats of a sum of statistics, or None if one is missing."""
        means = []
        for index in indices:
            sums = []
            for answer in table.answers_of(model, index):
                if any(answer.values.get(name) is None for name in names):
                    return None
                sums.append(sum(answer.values[name] for name in names))
            means.append(fmean(sums))
        return fmean(means)

    parts = table.pair_scores(model, model, indices)
    score = sum(
        part.weight * float(np.mean(np.asarray(part.a, dtype=float))) for part in parts
    )

    def divide(amount: float | None) -> float | None:
        """Return an amount of all questions for each point of the score."""
        if amount is None or score <= 0:
            return None
        return len(indices) * amount / (100 * score)

    tokens = mean("billed_prompt_tokens", "output_tokens")
    dollars = mean("cost")
    return _Costs(
        questions=len(indices),
        score=score,
        tokens=tokens,
        dollars=dollars,
        tokens_per_point=divide(tokens),
        dollars_per_point=divide(dollars),
    )
