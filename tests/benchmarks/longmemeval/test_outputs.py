"""The files of answers and labels of the official scripts are read, as official paths or with a named entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longmemeval import BENCHMARK
from helm_longctx.benchmarks.longmemeval.outputs import READER
from helm_longctx.errors import InputError
from helm_longctx.run_settings import MIRROR
from tests.benchmarks.longmemeval.fabricate import build_longmemeval
from tests.support.fabricate_words import write

NAME = "longmemeval_{}.json_testlog_top{}context_{}format_useronly{}_20250101-1200none"
LABEL = {"model": "gpt-4o-2024-08-06", "label": True}
ROWS = [
    {"question_id": "q3", "hypothesis": "It is 7."},
    {"question_id": "q0_abs", "hypothesis": ""},
]


@pytest.fixture(autouse=True)
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fabricated files the mirror."""
    monkeypatch.setenv(MIRROR, str(build_longmemeval(tmp_path / "mirror")))


@pytest.mark.parametrize(
    ("parts", "reading", "entry"),
    [
        (("s_cleaned", 1000, "json", "false"), "con", "longmemeval:task=s"),
        (("oracle", 2000, "json", "false"), "direct", "longmemeval_direct:task=oracle"),
        (("m_cleaned", 1000, "nl", "false"), "con", "longmemeval_nl:task=m"),
        (("s_cleaned", 1000, "nl", "false"), "direct", "longmemeval_nl_direct:task=s"),
        (("s_cleaned", 1000, "json", "true"), "con", "longmemeval_user_only:task=s"),
    ],
)
def test_the_path_gives_the_run_entry(
    tmp_path: Path, parts: tuple[Any, ...], reading: str, entry: str
) -> None:
    """The name and the folders of a file select the run entry and the model."""
    path = tmp_path / "full-history-session/gpt-4o" / reading / NAME.format(*parts)
    write(path, ROWS)
    (run,) = READER.read(path, "")
    assert (run.entry, run.model) == (f"{entry},judge=none", "gpt-4o")
    assert [(output.id, output.prediction, output.notes) for output in run.outputs] == [
        ("q3", "It is 7.", {}),
        ("q0_abs", "", {}),
    ]


def test_labels(tmp_path: Path) -> None:
    """Labels of the official judge are scores, also by type, and a folder's labels are read instead of plain answers."""
    folder = tmp_path / "full-history-session/gpt-4o/con"
    plain = folder / NAME.format("s_cleaned", 1000, "json", "false")
    judged = plain.with_name(f"{plain.name}.eval-results-gpt-4o")
    write(plain, ROWS)
    write(
        judged,
        [
            {**ROWS[0], "autoeval_label": LABEL},
            {**ROWS[1], "autoeval_label": {**LABEL, "label": False}},
        ],
    )
    assert READER.files(tmp_path) == [judged]
    (run,) = READER.read(judged, "")
    assert run.entry == "longmemeval:task=s"
    records = [
        {"prediction": output.prediction, **output.record, **output.notes}
        for output in run.outputs
    ]
    first, second = (BENCHMARK.task("s").scores(record) for record in records)
    assert first["longctx_score"] == first["judge_score_temporal_reasoning"] == 1
    assert (
        second["longctx_score"]
        == second["judge_score_abstention"]
        == second["judge_score_single_session_user"]
        == 0
    )
    assert [output.group for output in run.outputs] == ["question q3", "question q0"]


def test_a_named_entry(tmp_path: Path) -> None:
    """With a named entry, a file of any name is read, such as the answers of a memory system."""
    write(tmp_path / "answers.jsonl", ROWS)
    (run,) = READER.read(tmp_path / "answers.jsonl", "longmemeval:task=s")
    assert (run.entry, run.model, len(run.outputs)) == ("longmemeval:task=s", "", 2)


@pytest.mark.parametrize(
    ("path", "row", "message"),
    [
        ("answers.jsonl", {}, "no run entry has the options in this path"),
        (
            f"full-history-session/m/con/{NAME.format('s_cleaned', 50, 'json', 'false')}",
            {},
            "no run entry",
        ),
        (
            f"flat-bm25-session/m/con/{NAME.format('s_cleaned', 1000, 'json', 'false')}",
            {},
            "no run entry",
        ),
        (
            f"full-history-session/m/con-separate/{NAME.format('s_cleaned', 1000, 'json', 'false')}",
            {},
            "no run entry",
        ),
        (
            f"full-history-session/m/con/{NAME.format('s_cleaned', 1000, 'nl', 'true')}",
            {},
            "no run entry",
        ),
        (
            "x/full-history-session/m/con/{}",
            {"question_id": "q99"},
            "LongMemEval has no question 'q99'",
        ),
        (
            "x/full-history-session/m/con/{}",
            {"autoeval_label": {**LABEL, "model": "gpt-4o-mini"}},
            "must be an object with",
        ),
        (
            "x/full-history-session/m/con/{}",
            {"autoeval_label": True},
            "must be an object with the model gpt-4o-2024-08-06",
        ),
        (
            "x/full-history-session/m/con/{}",
            {"hypothesis": None},
            "column 'hypothesis' must be str",
        ),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, path: str, row: dict[str, Any], message: str
) -> None:
    """Files of other options and malformed rows are refused in one line."""
    file = tmp_path / path.format(NAME.format("s_cleaned", 1000, "json", "false"))
    write(file, [{**ROWS[0], **row}])
    with pytest.raises(InputError, match=message) as caught:
        list(READER.read(file, ""))
    assert "\n" not in str(caught.value)
