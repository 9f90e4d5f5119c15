"""The tables of an estimate: requests, tokens and costs of runs, and the differences that they detect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.results.statistics.level import SIGNIFICANCE_TEXT
from helm_longctx.tasks.lengths import length_label

if TYPE_CHECKING:
    from helm_longctx.runner.estimate import Estimate
    from helm_longctx.runner.planning import DetectionPlan, Spreads, TaskKey

_COUNTS = ("requests", "prompt tokens", "output tokens", "judge calls", "disk")
_DOLLARS = ("cost", "cached", "batch", "both", "most")

# The model is the table's title, so it need not stand in every row.
_MODEL_IN_RUN = re.compile(",?model(_deployment)?=[^,]*")


def print_estimates(estimates: Sequence[Estimate], advice: str) -> None:
    """Print a table for each deployment, and the assumptions behind the figures, if there are estimates."""
    if not estimates:
        return
    for deployment in dict.fromkeys(estimate.deployment for estimate in estimates):
        of_model = []
        for estimate in estimates:
            if estimate.deployment == deployment:
                of_model.append(estimate)
        # A model without a price has no columns of dollars, so that there is room for the names of the runs.
        columns: tuple[str, ...] = _COUNTS
        if any(estimate.dollars.typical is not None for estimate in of_model):
            columns += _DOLLARS
        rows = []
        for estimate in of_model:
            name = _MODEL_IN_RUN.sub("", estimate.run)
            rows.append([name, *_cells([estimate])[: len(columns)]])
        if len(of_model) > 1:
            rows.append(["all", *_cells(of_model)[: len(columns)]])
        print_table(text_table(deployment, ("run", *columns), rows, right=columns))
    tokenizers = sorted(
        {
            estimate.prompt_tokens.counted_by or "an estimate from the text"
            for estimate in estimates
        }
    )
    print(
        f"Prompt tokens: counted by {', '.join(tokenizers)}. Output tokens: from 1.5"
        " times the longest reference, or the length that a task requires, to the"
        " limit."
    )
    sources = sorted(
        {estimate.dollars.source or f"not known: {advice}" for estimate in estimates}
    )
    are_known = any(estimate.dollars.typical is not None for estimate in estimates)
    most = (
        " The column most assumes answers at the limit; the other columns assume typical answers."
        * are_known
    )
    print(f"Prices: {', '.join(sources)}.{most}")
    if judges := [
        estimate.dollars.judges for estimate in estimates if estimate.judge_tokens.calls
    ]:
        known = []
        for dollars in judges:
            if dollars is not None:
                known.append(dollars)
        if len(known) == len(judges):
            price = f"${sum(known):,.2f}"
        else:
            price = "of unknown price"
        print(
            f"Judges: {sum(estimate.judge_tokens.prompt for estimate in estimates):,}"
            f" prompt tokens, {price}."
        )
    if minutes := [
        estimate.minutes for estimate in estimates if estimate.minutes is not None
    ]:
        print(f"Time: {sum(minutes):,.0f} minutes at the given rates.")


def print_plans(
    plans: Sequence[DetectionPlan],
    known: Mapping[TaskKey, Spreads],
    detect: float | None,
) -> None:
    """Print which difference of two models each task detects, and which sample a wanted difference needs."""
    from helm_longctx.results.statistics.power import POWER  # numpy is slow to import

    for deployment in dict.fromkeys(plan.deployment for plan in plans):
        print_table(
            _plan_table(
                [plan for plan in plans if plan.deployment == deployment], known, detect
            )
        )
    sources = ", ".join(sorted({plan.source for plan in plans}))
    print(
        f"Detected: with {100 * POWER:g} % power at {SIGNIFICANCE_TEXT}, for one"
        f" comparison of two models. Variances: {sources}."
    )


def _plan_table(
    plans: Sequence[DetectionPlan],
    known: Mapping[TaskKey, Spreads],
    detect: float | None,
) -> Table:
    from helm_longctx.runner.planning import detectable_overall

    wanted = (f"for {detect:g} points", "cost") if detect else ()
    numbers = ("questions", "clusters", "other questions", "same questions", *wanted)
    rows = []
    for plan in plans:
        sample = plan.sample
        if sample.length is None:
            length = ""
        else:
            length = length_label(sample.length)
        row = [
            ":".join(filter(None, (sample.entry, sample.task, length))),
            *(
                f"{sample.questions:,}",
                f"{sample.clusters:,}",
                _points(plan.unpaired),
                _points(plan.paired),
            ),
        ]
        if wanted:
            if plan.dollars is None:
                price = "unknown"
            else:
                price = _format("dollars", plan.dollars)
            row += [f"{plan.needed:,}", price] if plan.needed else ["", ""]
        rows.append(row)
    if len(plans) > 1:
        rows.append(
            [
                "mean of all tasks",
                "",
                "",
                *map(_points, detectable_overall(plans, known)),
                *[""] * len(wanted),
            ]
        )
    title = "Smallest difference from another model that is detected, in points"
    return text_table(title, ("task", *numbers), rows, right=numbers)


def _points(difference: float | None) -> str:
    if difference is None:
        return "unknown"
    if difference >= 1:
        return "none"
    return f"{100 * difference:.1f}"


def _cells(estimates: Sequence[Estimate]) -> list[str]:
    def total(name: str) -> str:
        values = [attrgetter(name)(estimate) for estimate in estimates]
        # One unknown price makes the sum unknown.
        if None in values:
            return "unknown"
        return _format(name, sum(values))

    tokens = f"{total('output_tokens.typical')} to {total('output_tokens.most')}"
    counts = (
        total("requests"),
        total("prompt_tokens.total"),
        tokens,
        total("judge_tokens.calls"),
        total("disk_bytes"),
    )
    prices = ("typical", "cached", "batch", "batch_cached", "most")
    return [*counts, *(total(f"dollars.{name}") for name in prices)]


def _format(name: str, value: float) -> str:
    if name.startswith("dollars"):
        return f"${value:,.2f}"
    if name == "disk_bytes":
        return f"{value / 1e6:,.1f} MB"
    return f"{value:,}"
