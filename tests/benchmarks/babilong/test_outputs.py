"""The tables of outputs of the official script are read, and the published scores are those of real models."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from helm_longctx.benchmarks.babilong.outputs import READER
from helm_longctx.benchmarks.babilong.tasks import BABILONG, MAIN
from helm_longctx.errors import InputError

NAME = "qa1_64k_instruction_{}_examples_{}_post_prompt_{}{}.csv"


def write_table(path: Path, *outputs: str) -> Path:
    """Write a table as the official script does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = (
            [number, "garden", output, "Where is Mary? "]
            for number, output in enumerate(outputs)
        )
        csv.writer(file).writerows([["", "target", "output", "question"], *rows])
    return path


@pytest.mark.parametrize(
    ("parts", "entry"),
    [
        (("yes", "yes", "yes", ""), "babilong:task=qa1,length=64k"),
        (
            ("yes", "no", "yes", "_chat_template_yes"),
            "babilong:task=qa1,length=64k,shots=0",
        ),
        (
            ("yes", "no", "no", "_chat_template_no_system_prompt_yes"),
            "babilong_instruction:task=qa1,length=64k",
        ),
        (("no", "no", "no", ""), "babilong_bare:task=qa1,length=64k"),
    ],
)
def test_the_name_of_a_table_gives_the_run_entry(
    tmp_path: Path, parts: tuple[str, ...], entry: str
) -> None:
    """The parts of the prompt in a table's name select the run entry, and the folders are the model's name."""
    path = write_table(
        tmp_path / "org/model" / NAME.format(*parts), "It is\nthe garden.", "", "None"
    )
    (run,) = READER.read(path, "")
    assert (run.entry, run.model) == (entry, "org/model")
    assert [output.prediction for output in run.outputs] == [
        "It is\nthe garden.",
        "",
        "",
    ]
    assert [output.id for output in run.outputs] == ["qa1-0", "qa1-1", "qa1-2"]
    assert run.outputs[0].record == {"question": "Where is Mary? "}
    assert run.outputs[1].location == f"{path}: row 2"


def test_a_further_task_belongs_to_its_own_entry(tmp_path: Path) -> None:
    """A table of qa6 to qa20 is a run of `babilong_more`."""
    path = write_table(
        tmp_path
        / "babilong_evals/gpt2"
        / NAME.format("yes", "yes", "yes", "").replace("qa1", "qa12"),
        "x",
    )
    (run,) = READER.read(path, "")
    assert (run.entry, run.model) == ("babilong_more:task=qa12,length=64k", "gpt2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("results.csv", "not a name of BABILong's tables"),
        (
            NAME.format("no", "yes", "yes", ""),
            "no run entry has these parts of the prompt",
        ),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, name: str, message: str) -> None:
    """A table with another name, or of a prompt that no entry makes, is refused."""
    with pytest.raises(InputError, match=message):
        list(READER.read(write_table(tmp_path / name, "x"), ""))


def test_published_scores() -> None:
    """The published table has over 20 models on the main tasks, and their mean at 64k is below the one at 0k."""
    rows = [row for row in BABILONG.published() if not row.category]
    assert len({row.model for row in rows}) > 20
    assert all(0 <= score <= 1 for row in rows for score in row.scores.values())
    means = []
    for length in (0, 65536):
        whole = [
            row.scores
            for row in rows
            if row.length == length and row.scores.keys() == set(MAIN)
        ]
        assert len(whole) > 10
        means.append(
            sum(sum(scores.values()) for scores in whole) / len(MAIN) / len(whole)
        )
    assert means[0] > means[1] + 0.2
