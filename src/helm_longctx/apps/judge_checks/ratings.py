"""Reads ratings of answers by judges and people, and saves and reads the verdicts of checks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from helm_longctx._version import VERSION
from helm_longctx.data.jsonl import JsonLines
from helm_longctx.documents.document import read_csv
from helm_longctx.errors import InputError, shorten
from helm_longctx.judging.check_items import Check
from helm_longctx.runs.files import INSTANCE_STATS, STATES, reading
from helm_longctx.runs.records import read_records
from helm_longctx.tasks.statistic_names import read_statistic
from helm_longctx.writing import write_output

if TYPE_CHECKING:
    import pandas as pd

HUMAN = "human"
JUDGE = "judge"
_MEAN = "mean"

_COLUMNS = ("run", "id", "instance", "repeat", "rater")

_ANSWER = ["run", "id", "repeat"]


class _Rating(NamedTuple):
    """A number that a rater gave to an answer.

    Args:
        run: the run's name, or empty if a label file has no such column.
        repeat: the number of the repeat, from 1.
    """

    run: str
    id: str
    repeat: int
    rater: str
    metric: str
    value: float


def read_ratings(path: Path, rater: str) -> pd.DataFrame:
    """Read the ratings of a HELM run, of a suite's runs, or of a label file: a row for each rating.

    Args:
        path: a run's folder, a suite's folder, or a file: CSV if the name ends in `.csv`, otherwise JSON lines. A file
            has `id` (or `instance`, as in `answers.csv`), optionally `run`, `repeat` and `rater`, and a column for each
            metric. Empty values and values that are not numbers are skipped.
        rater: the rater of rows without `rater`.

    Raises:
        InputError: there are no ratings, or a file is damaged.
    """
    import pandas as pd

    ratings: list[_Rating] = []
    if path.is_dir():
        # The path is a run's folder, or a suite with the folders of runs.
        for folder in (path, *sorted(path.glob("*"))):
            if (folder / INSTANCE_STATS).is_file():
                ratings += _run_ratings(folder)
    else:
        for number, row in enumerate(_rows(path), 1):
            instance = row.get("id", row.get("instance"))
            if instance in (None, ""):
                raise InputError(
                    f"{path}: row {number} has no id; it has {shorten(', '.join(map(str, row)))}"
                )
            run = str(row.get("run") or "")
            repeat = int(_number(row.get("repeat")) or 1)
            name = str(row.get("rater") or rater)
            for metric, text in row.items():
                value = _number(text)
                if metric not in _COLUMNS and value is not None:
                    ratings.append(
                        _Rating(run, str(instance), repeat, name, metric, value)
                    )
    if not ratings:
        raise InputError(
            f"{path} has no ratings: no finished run with a judge, and no file with a"
            " column of numbers"
        )
    return pd.DataFrame(ratings, columns=_Rating._fields)


def rating_tables(
    judged: pd.DataFrame,
    labels: pd.DataFrame | None,
) -> tuple[dict[str, pd.DataFrame], int]:
    """Align ratings of the same answers.

    Returns:
        A table for each shared metric, with a column for each rater, a row for each answer and NaN for no rating, and
        the number of labelled answers that were not judged. The mean of several judges is a separate metric.

    Raises:
        InputError: there is nothing to compare, or a rater rated an answer twice.
    """
    import pandas as pd

    # A mean over several judges must not count as another judge.
    several = set(judged.loc[judged["rater"] != JUDGE, "metric"])
    means = (judged["rater"] == JUDGE) & judged["metric"].isin(several)
    judged = judged.assign(
        metric=judged["metric"].where(~means, judged["metric"] + f", {_MEAN}")
    )
    if labels is None:
        shared = []
        for metric, rows in judged.groupby("metric", sort=False):
            if rows["rater"].nunique() > 1:
                shared.append(metric)
        if not shared:
            raise InputError(
                "labels are missing, and there is only one judge, so there is nothing to compare"
            )
        return {
            metric: _table(judged[judged["metric"] == metric], _ANSWER)
            for metric in shared
        }, 0
    has_runs = (labels["run"] != "").any()
    keys = _ANSWER if has_runs else _ANSWER[1:]
    if not has_runs and judged["run"].nunique() > 1:
        raise InputError(
            "labels have no column run, and more than one run is judged; add the"
            " column, or name one run"
        )
    # A label is compared with each judge and with the mean of several judges.
    labels = pd.concat([labels, labels.assign(metric=labels["metric"] + f", {_MEAN}")])
    shared = []
    for metric in judged["metric"].unique():
        if metric in set(labels["metric"]):
            shared.append(metric)
    if not shared:
        raise InputError(
            "labels have none of the judged metrics; add a column"
            f" {', '.join(judged['metric'].unique())}"
        )
    labels = labels[labels["metric"].isin(shared)]
    is_judged = pd.MultiIndex.from_frame(labels[keys]).isin(
        pd.MultiIndex.from_frame(judged[keys])
    )
    if not is_judged.any():
        raise InputError(
            "no labelled answer was judged; ids of judged answers look like"
            f" {shorten(judged['id'].iloc[0])}"
        )
    both = pd.concat([judged, labels[is_judged]])
    tables = {}
    for metric in shared:
        tables[metric] = _table(both[both["metric"] == metric], keys)
    return tables, labels[~is_judged].drop_duplicates(keys).shape[0]


def _table(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    twice = rows[rows.duplicated([*keys, "rater"])]
    if len(twice):
        first = twice.iloc[0]
        raise InputError(
            f"{first['rater']} rated {shorten(first['id'])} twice by {first['metric']};"
            " keep one rating"
        )
    return rows.pivot(
        index=keys,
        columns="rater",
        values="value",
    )


def _run_ratings(run: Path) -> Iterator[_Rating]:
    """Yield the judged scores of each answer, and the numbers in judges' verdicts."""
    for record in read_records(run):
        if record.is_perturbed:
            continue
        instance = record.instance
        repeat = record.repeat + 1
        for name, value in record.values.items():
            # Scores of a jury's judges are named `judge_score:JUDGE`, the mean over them `judge_score`.
            named = read_statistic(name)
            if named.is_judged:
                yield _Rating(
                    run.name,
                    instance,
                    repeat,
                    named.judge or JUDGE,
                    named.metric,
                    value,
                )
        with reading(run / STATES):
            for judge, name, value in _list_grades(record.notes):
                yield _Rating(run.name, instance, repeat, judge, name, value)


def _list_grades(notes: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield the judge, the name and the value of each number in judges' verdicts."""
    for note in notes.values():
        for judge, parts in note.get("verdicts", {}).items():
            for verdict in parts.values():
                for name, value in (verdict or {}).items():
                    yield judge, name, value


def _rows(path: Path) -> Iterable[Mapping[str, Any]]:
    if path.suffix.lower() == ".csv":
        return read_csv(path)
    return JsonLines(path, {})


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


COLUMNS = (
    "judge",
    "repeat",
    "id",
    "task",
    "kind",
    "like",
    "place",
    "state",
    "verdict",
    "right",
    "score",
    "expected_score",
    "error",
)
"""The columns of `observe`."""


def digest_checks(checks: Sequence[Check]) -> str:
    """Compute the SHA-256 of the requests and the expected verdicts.

    Judges can only be compared on the same set with the same rubrics.
    """
    digest = hashlib.sha256()
    for check in checks:
        prompts = {}
        for part, request in check.requests.items():
            prompts[part] = request.prompt
        digest.update(
            orjson.dumps(
                [check.item.id, prompts, check.item.expected],
                option=orjson.OPT_SORT_KEYS,
            )
        )
    return digest.hexdigest()


class Results(NamedTuple):
    """The verdicts of a check.

    Args:
        origin: the file, or the judges that were asked, for errors.
        rows: rows from `observe`.
    """

    origin: str
    digest: str
    rows: pd.DataFrame


def save(path: Path, results: Results, report: Mapping[str, Any]) -> None:
    """Write the verdicts and a report of their statistics as JSON."""
    rows = results.rows
    content = {
        "checks": results.digest,
        "package": VERSION,
        "saved": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **report,
        # JSON has no NaN; the type object is needed because a column of numbers would turn None back into NaN.
        "verdicts": rows.astype(object).where(rows.notna(), None).to_dict("records"),
    }
    write_output(
        path,
        orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY),
    )


def load(path: Path) -> Results:
    """Read results that `save` wrote. Raises an `InputError` if the file cannot be read or has another format."""
    import pandas as pd

    try:
        content = orjson.loads(path.read_bytes())
        digest = str(content["checks"])
        rows = pd.DataFrame(content["verdicts"])
        rows = rows[[*COLUMNS]].astype({"score": float, "expected_score": float})
    except OSError as error:
        raise InputError(
            f"compare={str(path)!r} cannot be read: {error.strerror}"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"compare={str(path)!r} was not saved by judge-check --save ({type(error).__name__})"
        ) from error
    return Results(str(path), digest, rows)


def merge(several: Sequence[Results]) -> Results:
    """Put results together, so that their judges can be compared.

    Raises:
        InputError: the judges were asked about other answers or by other rubrics, or two results have the same judge.
    """
    import pandas as pd

    first, *others = several
    origins = dict.fromkeys(first.rows["judge"], first.origin)
    for results in others:
        if results.digest != first.digest:
            raise InputError(
                f"{first.origin} and {results.origin} are checks of different answers"
                " or by different rubrics; save one of them again"
            )
        for judge in dict.fromkeys(results.rows["judge"]):
            if judge in origins:
                raise InputError(
                    f"judge {judge} is in {origins[judge]} and in {results.origin};"
                    " leave one of them out"
                )
            origins[judge] = results.origin
    rows = pd.concat([results.rows for results in several], ignore_index=True)
    return Results(first.origin, first.digest, rows)
