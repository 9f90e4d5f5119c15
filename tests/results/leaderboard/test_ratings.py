"""Tests of tables that combine the ratings of runs and files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apps.judge_checks.ratings import (
    HUMAN,
    JUDGE,
    rating_tables,
    read_ratings,
)
from helm_longctx.documents.document import write_csv
from helm_longctx.errors import InputError


def lines(name: str, *rows: Mapping[str, Any]) -> Path:
    """Write a file of JSON lines, and return its path."""
    Path(name).write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return Path(name)


def make_run(
    folder: str, scores: Mapping[str, float], verdicts: Iterable[Mapping[str, Any]]
) -> Path:
    """Write a run in HELM's files with the scores of instance `i0` and judges' verdicts on `i0`, `i1`, …, and return its folder."""
    Path(folder).mkdir(parents=True)
    stats = [
        {"name": {"name": name, "split": "test"}, "count": 1, "mean": value}
        for name, value in scores.items()
    ]
    per_instance = [{"instance_id": "i0", "train_trial_index": 0, "stats": stats}]
    states = [
        {
            "instance": {"id": f"i{n}"},
            "request": {"prompt": "long"},
            "annotations": {"jury": {"verdicts": said}},
        }
        for n, said in enumerate(verdicts)
    ]
    Path(folder, "per_instance_stats.json").write_text(json.dumps(per_instance))
    Path(folder, "scenario_state.json").write_text(
        json.dumps({"request_states": states}, indent=2)
    )
    return Path(folder)


def verdict(correctness: float) -> dict[str, Any]:
    return {"answer": {"fluency": 1, "correctness": correctness}}


def test_a_runs_ratings() -> None:
    """A run has judged scores by judge, and verdicts by judge; other statistics and missing verdicts are no ratings."""
    scores = {
        "judge_score": 0.5,
        "judge_score:a": 1.0,
        "judge_score:b": 0.0,
        "f1": 0.3,
        "judge_failed": 0.0,
    }
    run = make_run(
        "runs/r",
        scores,
        [{"a": verdict(3), "b": verdict(0)}, {"a": verdict(2), "b": {"answer": None}}],
    )
    tables, unknown = rating_tables(read_ratings(run, JUDGE), None)
    assert unknown == 0
    assert list(tables) == ["judge_score", "fluency", "correctness"]
    assert tables["judge_score"].loc[("r", "i0", 1)].to_dict() == {"a": 1.0, "b": 0.0}
    second = tables["correctness"].loc[("r", "i1", 1)]
    assert second["a"] == 2
    assert math.isnan(second["b"])
    labels = read_ratings(lines("l.jsonl", {"id": "i0", "judge_score": 1}), HUMAN)
    tables, _ = rating_tables(read_ratings(run, JUDGE), labels)
    assert {metric: list(table) for metric, table in tables.items()} == {
        "judge_score, mean": [HUMAN, JUDGE],
        "judge_score": ["a", "b", HUMAN],
    }


def test_a_suites_runs_are_told_apart() -> None:
    """Labels need the column `run` if they are about a suite with several runs."""
    for name, value in (("r", 0.0), ("q", 1.0)):
        make_run(f"s/{name}", {"judge_score": value}, [{"a": verdict(3 * value)}])
    judged = read_ratings(Path("s"), JUDGE)
    labels = [
        {"run": "r", "id": "i0", "correctness": 1},
        {"run": "q", "id": "i0", "correctness": 2},
    ]
    tables, unknown = rating_tables(
        judged, read_ratings(lines("l.jsonl", *labels), HUMAN)
    )
    assert unknown == 0
    assert tables["correctness"].to_dict() == {
        "a": {("r", "i0", 1): 0, ("q", "i0", 1): 3},
        HUMAN: {("r", "i0", 1): 1, ("q", "i0", 1): 2},
    }
    with pytest.raises(InputError, match="labels have no column run"):
        rating_tables(
            judged,
            read_ratings(lines("m.jsonl", {"id": "i0", "correctness": 1}), HUMAN),
        )


def test_repeats_are_told_apart() -> None:
    """Each answer to a question that is asked several times has its own ratings."""
    run = make_run("runs/r", {}, [{"a": verdict(3)}, {"a": verdict(1)}])
    path = run / "scenario_state.json"
    path.write_text(
        path.read_text()
        .replace('"id": "i1"', '"id": "i0"')
        .replace('"request"', '"train_trial_index": 1,\n"request"', 1)
    )
    labels = [
        {"id": "i0", "repeat": repeat, "correctness": repeat} for repeat in (1, 2)
    ]
    tables, unknown = rating_tables(
        read_ratings(run, JUDGE), read_ratings(lines("l.jsonl", *labels), HUMAN)
    )
    assert unknown == 0
    assert tables["correctness"].to_dict() == {
        "a": {("i0", 1): 1, ("i0", 2): 3},
        HUMAN: {("i0", 1): 1, ("i0", 2): 2},
    }


def test_labels_as_csv() -> None:
    """Labels are read from CSV as spreadsheets write it: with a byte order mark, quoted text, and empty cells without a rating."""
    text = '\ufeffinstance,rater,correctness,answer\n7,eva,3,"a ""b"", c"\n8,eva,,x\n7,jan,2,y\n9,jan,1,z\n'
    Path("l.csv").write_text(text, encoding="utf-8")
    judged = read_ratings(
        lines("j.jsonl", *({"id": str(n), "correctness": 1} for n in range(9))), JUDGE
    )
    tables, unknown = rating_tables(judged, read_ratings(Path("l.csv"), HUMAN))
    assert unknown == 1
    table = tables["correctness"]
    assert table.loc[("7", 1)].to_dict() == {"eva": 3, "jan": 2, JUDGE: 1}
    assert table["eva"].count() == table["jan"].count() == 1


def test_ids_of_an_exported_table() -> None:
    """An id that `export` quoted, because a spreadsheet would compute it, matches the same id without quotes."""
    write_csv(Path("l.csv"), ["id", "correctness"], [("=7", 3), ("-1", 2)])
    judged = read_ratings(
        lines(
            "j.jsonl", {"id": "=7", "correctness": 1}, {"id": "-1", "correctness": 1}
        ),
        JUDGE,
    )
    tables, unknown = rating_tables(judged, read_ratings(Path("l.csv"), HUMAN))
    assert unknown == 0
    assert tables["correctness"][HUMAN].to_dict() == {("=7", 1): 3, ("-1", 1): 2}


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.floats(allow_nan=False, allow_infinity=False),
        min_size=1,
    )
)
def test_files_are_read_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, float]
) -> None:
    """Ratings keep any id and any number of a file."""
    path = tmp_path_factory.mktemp("ratings") / "r.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": key, "m": value}) + "\n" for key, value in values.items()
        )
    )
    read = read_ratings(path, JUDGE)
    assert dict(zip(read["id"], read["value"], strict=True)) == values


def test_what_cannot_be_compared() -> None:
    """Each mistake that makes ratings incomparable is told in one line."""
    judged = read_ratings(lines("j.jsonl", {"id": "a", "judge_score": 1}), JUDGE)
    for labels, message in (
        (
            [{"id": "a", "grade": 1}],
            "labels have none of the judged metrics; add a column judge_score",
        ),
        (
            [{"id": "b", "judge_score": 1}],
            "no labelled answer was judged; ids of judged answers look like 'a'",
        ),
        (
            [{"id": "a", "judge_score": 1}] * 2,
            "human rated 'a' twice by judge_score; keep one rating",
        ),
    ):
        with pytest.raises(InputError, match=message):
            rating_tables(judged, read_ratings(lines("l.jsonl", *labels), HUMAN))
    with pytest.raises(
        InputError, match="labels are missing, and there is only one judge"
    ):
        rating_tables(judged, None)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.jsonl", None, "none.jsonl: No such file"),
        ("none.csv", None, "none.csv: .*No such file"),
        ("a.jsonl", '{"score": 1}\n', "a.jsonl: row 1 has no id"),
        ("a.csv", "id,score\n,1\n", "a.csv: row 1 has no id"),
        ("a.jsonl", '{"id": "x", "score": null}\n', "a.jsonl has no ratings"),
        ("a.csv", "id,score\nx,good\n", "a.csv has no ratings"),
        ("a.csv", "id,score\nx,inf\n", "a.csv has no ratings"),
        (
            "runs/per_instance_stats.json",
            "[{}]",
            r"runs/per_instance_stats\.json cannot be read .KeyError.; repeat that run",
        ),
        (
            "runs/per_instance_stats.json",
            "[",
            r"runs/per_instance_stats\.json cannot be read .JSONDecodeError.; repeat that run",
        ),
        (
            "runs/per_instance_stats.json",
            "[]",
            r"runs/scenario_state\.json cannot be read .FileNotFoundError.",
        ),
        (
            "runs/nothing.json",
            "[]",
            "runs has no ratings: no finished run with a judge",
        ),
    ],
)
def test_files_that_are_none(name: str, text: str | None, message: str) -> None:
    """An error names a file or folder that holds no ratings."""
    if text is not None:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    if name.endswith("per_instance_stats.json") and text != "[]":
        state = {"instance": {"id": "i0"}, "request": {"prompt": "long"}}
        states = json.dumps({"request_states": [state]}, indent=2)
        Path(name).with_name("scenario_state.json").write_text(states)
    path = Path(name).parent if "/" in name else Path(name)
    with pytest.raises(InputError, match=message):
        read_ratings(path, HUMAN)
