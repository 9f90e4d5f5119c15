"""What judges and people said of the same answers: scores and verdicts of runs and files of labels, side by side."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ijson
import orjson

from helm_longctx.errors import InputError, shorten
from helm_longctx.report.files import reading
from helm_longctx.sources.jsonl import JsonLines

if TYPE_CHECKING:
    import pandas as pd

HUMAN, JUDGE, MEAN = "human", "judge", "mean"

_COLUMNS = ("run", "id", "instance", "rater")


class Rating(NamedTuple):
    """A number that somebody gave an answer; `run` is empty where a file does not say it."""

    run: str
    id: str
    rater: str
    metric: str
    value: float


def read_ratings(path: Path, rater: str) -> pd.DataFrame:
    """Ratings of a HELM run, of a suite's runs, or of a file, a row each.

    Args:
        path: a folder that helm-run wrote or one with such folders; else JSON lines, or CSV if its name ends so, with
            `id` (or `instance`, as `helm-longctx export` writes it), maybe `run` and `rater`, and a column for each
            metric. What is empty or no number is no rating.
        rater: who rated what a file does not say it of.

    Raises:
        InputError: there are none, or a file is not what it should be.
    """
    import pandas as pd

    if path.is_dir():
        folders = [path, *sorted(path.glob("*"))]
        found = [
            each for folder in folders if (folder / "per_instance_stats.json").is_file() for each in _of_run(folder)
        ]
    else:
        found = list(_of_file(path, rater))
    if not found:
        raise InputError(f"{path} has no ratings: no finished run with a judge, and no file with a column of numbers")
    return pd.DataFrame(found, columns=Rating._fields)


def rating_tables(judged: pd.DataFrame, labels: pd.DataFrame | None) -> tuple[dict[str, pd.DataFrame], int]:
    """Ratings side by side.

    Args:
        judged: from `read_ratings`.
        labels: too; None to compare judges with each other.

    Returns:
        For each metric that labels and judges share a column a rater and a row an answer, NaN where there is no rating;
        and the number of labels that are of no judged answer. The mean of several judges is a metric of its own.

    Raises:
        InputError: there is nothing to compare, or an answer was rated twice by one rater.
    """
    import pandas as pd

    judged = _means_apart(judged)
    if labels is None:
        shared = [metric for metric, rows in judged.groupby("metric", sort=False) if rows["rater"].nunique() > 1]
        if not shared:
            raise InputError("labels are missing: there is but one judge, and nobody to compare it with")
        return {metric: _table(judged[judged["metric"] == metric], ["run", "id"]) for metric in shared}, 0
    keys = ["run", "id"] if (labels["run"] != "").any() else ["id"]
    if keys == ["id"] and judged["run"].nunique() > 1:
        raise InputError("labels lack the column run, and more than one run is judged; add it, or name one run")
    labels = pd.concat([labels, labels.assign(metric=labels["metric"] + f", {MEAN}")])
    shared = [metric for metric in judged["metric"].unique() if metric in set(labels["metric"])]
    if not shared:
        raise InputError(f"labels have none of the judged metrics; allowed: {', '.join(judged['metric'].unique())}")
    labels = labels[labels["metric"].isin(shared)]
    known = pd.MultiIndex.from_frame(labels[keys]).isin(pd.MultiIndex.from_frame(judged[keys]))
    if not known.any():
        raise InputError(
            f"labels have no answer that was judged; ids there are such as {shorten(judged['id'].iloc[0])}"
        )
    both = pd.concat([judged, labels[known]])
    tables = {metric: _table(both[both["metric"] == metric], keys) for metric in shared}
    return tables, labels[~known].drop_duplicates(keys).shape[0]


def _means_apart(judged: pd.DataFrame) -> pd.DataFrame:
    """Where judges are named, what is nobody's is their mean: no rater beside them."""
    several = set(judged.loc[judged["rater"] != JUDGE, "metric"])
    means = (judged["rater"] == JUDGE) & judged["metric"].isin(several)
    return judged.assign(metric=judged["metric"].where(~means, judged["metric"] + f", {MEAN}"))


def _table(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    twice = rows[rows.duplicated([*keys, "rater"])]
    if len(twice):
        first = twice.iloc[0]
        raise InputError(f"{first['rater']} rated {shorten(first['id'])} twice by {first['metric']}; keep one rating")
    return rows.pivot(index=keys, columns="rater", values="value")


def _of_run(folder: Path) -> Iterator[Rating]:
    """The judged scores of each instance, and the numbers of judges' verdicts."""
    with reading(folder):
        for instance in orjson.loads((folder / "per_instance_stats.json").read_bytes()):
            for stat in instance["stats"]:
                metric, _, judge = stat["name"]["name"].partition(":")
                if metric.startswith("judge_"):
                    yield Rating(folder.name, instance["instance_id"], judge or JUDGE, metric, stat["mean"])
        with (folder / "scenario_state.json").open("rb") as file:
            # One at a time: each holds its prompt.
            for state in ijson.items(file, "request_states.item", use_float=True):
                for judge, metric, value in _verdicts(state.get("annotations") or {}):
                    yield Rating(folder.name, state["instance"]["id"], judge, metric, value)


def _verdicts(annotations: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Judge, name and number, of annotations that name judges."""
    for note in annotations.values():
        for judge, parts in note.get("verdicts", {}).items():
            for verdict in parts.values():
                yield from ((judge, name, value) for name, value in (verdict or {}).items())


def _of_file(path: Path, rater: str) -> Iterator[Rating]:
    for number, row in enumerate(_rows(path), 1):
        instance = row.get("id", row.get("instance"))
        if instance in (None, ""):
            raise InputError(f"{path}: row {number} has no id; it has {shorten(', '.join(map(str, row)))}")
        for metric, text in row.items():
            value = _number(text)
            if metric not in _COLUMNS and value is not None:
                yield Rating(str(row.get("run") or ""), str(instance), str(row.get("rater") or rater), metric, value)


def _rows(path: Path) -> Iterable[Mapping[str, Any]]:
    if path.suffix.lower() != ".csv":
        return JsonLines(path, {})
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from error


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
