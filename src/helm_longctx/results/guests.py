"""The scores of HELM's other scenarios in a suite: the user's own tasks, beside which ours run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.documents.document import Cell, Column, Table, text_columns
from helm_longctx.documents.numbers import DASH
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.suite import find_chosen_schema
from helm_longctx.tasks.run_names import read_run_name

_WITHOUT_METRIC = (
    f"{DASH}: the scenario names no main metric. A schema can name it:"
    " helm-longctx summarize --schema-path FILE"
)


class _Score(NamedTuple):
    """The main statistic of a run.

    Args:
        task: the run's name without its model.
        metric: the statistic's name; empty if HELM names none.
        interval: mean and number of instances; None without the statistic.
    """

    task: str
    model: str
    metric: str
    interval: Interval | None


def guest_table(folder: Path, results: Sequence[Result]) -> Table | None:
    """Return a table of the scores of a suite's other scenarios; None if the suite has none.

    The score is the statistic that the schema of the last `summarize` calls the main one, or else the scenario.
    """
    scores = sorted(_read_scores(folder, results))
    if not scores:
        return None
    rows = []
    for score in scores:
        # Statistics of other scenarios are no percentages: a judge's go from 1 to 5.
        mean = Cell(DASH)
        count = Cell(DASH)
        if score.interval:
            mean = Cell(f"{score.interval.mean:.3f}", score.interval.mean)
            count = Cell(str(score.interval.n), score.interval.n)
        texts = [Cell(score.task), Cell(score.model), Cell(score.metric or DASH)]
        rows.append([*texts, mean, count])
    columns = [
        *text_columns("task", "model", "metric"),
        Column("score"),
        Column("instances"),
    ]
    about = ""
    if not all(score.metric for score in scores):
        about = _WITHOUT_METRIC
    return Table("other_scenarios", "Other scenarios of HELM", columns, rows, about)


def _read_scores(folder: Path, results: Sequence[Result]) -> Iterator[_Score]:
    guests = [result for result in results if result.run and not result.benchmark]
    if not guests:
        return
    chosen = _main_metrics(find_chosen_schema(folder))
    seen = set()
    for result in guests:
        run = result.run
        assert run is not None
        if run.path in seen:
            continue
        seen.add(run.path)
        groups = run.spec.get("groups", ())
        named = []
        for group in groups:
            if group in chosen:
                named.append(chosen[group])
        metric = named[0] if named else _metric_of_scenario(run.spec)
        statistic = result.statistics.get(metric)
        yield _Score(
            task=str(read_run_name(run.path.name).before_model()),
            model=result.model,
            metric=metric,
            interval=statistic.interval if statistic else None,
        )


def _main_metrics(schema: Path | None) -> dict[str, str]:
    """Return the main statistic of each group of a schema that names one."""
    if schema is None or not schema.is_file():
        return {}
    from helm_longctx.results.leaderboard.schema import read_helm_schema

    metrics = {}
    for group in read_helm_schema(schema).get("run_groups", ()):
        name = (group.get("environment") or {}).get("main_name")
        if name and not str(name).startswith("${"):
            metrics[group["name"]] = str(name)
    return metrics


def _metric_of_scenario(spec: dict[str, Any] | Any) -> str:
    """Return the main statistic that a scenario names; empty if it names none or cannot be made here."""
    from helm.benchmark.scenarios.scenario import ScenarioSpec, create_scenario

    scenario = spec["scenario_spec"]
    try:
        made = create_scenario(
            ScenarioSpec(scenario["class_name"], scenario.get("args", {}))
        )
        return made.get_metadata().main_metric or ""
    except Exception:  # the user's code, packages that are missing here, or no metadata
        return ""
