"""The effective-context file of `export`: scores by length, and which lengths are effective for sure."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from helm_longctx.apps.exchange.command import export_suite
from helm_longctx.errors import InputError
from helm_longctx.results.effective_context import effective_context_schema
from helm_longctx.tasks.outputs import Output
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.outputs import write

RIGHT_BY_LENGTH = {"4k": 40, "8k": 40, "16k": 33, "32k": 8}
"""The number of right answers of 40 at each length."""


def write_answers(suite: Path, label: str, right: int) -> None:
    """Write a run of 40 answers, and at 8k one that failed."""
    answers = []
    for number in range(40):
        text = "value" if number < right else "other"
        answers.append(Output(f"q{number}", text, ["value"]))
    if label == "8k":
        answers.append(Output("q40", None, ["value"], error="timeout"))
    write(suite, f"helmet_recall:task=json_kv,length={label}", answers)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Return the file of a model whose scores fall, and that fails once at 8k."""
    folder = tmp_path_factory.mktemp("export")
    for label, right in RIGHT_BY_LENGTH.items():
        write_answers(folder / "runs/a", label, right)
    ((path, rows),) = export_suite(
        "effective-context", folder / "runs/a", BENCHMARKS, folder
    )
    assert rows == len(RIGHT_BY_LENGTH)
    return json.loads(path.read_text())


def test_lengths_are_decided_by_their_intervals(content: dict) -> None:
    """A length is effective or lost only if both ends of the intervals say so; failures are counted."""
    (task,) = content["tasks"]
    assert task["task"] == "helmet/json_kv"
    assert task["effective_tokens"] == 8192
    decided = {row["length"]: row["is_effective"] for row in task["lengths"]}
    assert decided == {4096: True, 8192: True, 16384: None, 32768: False}
    assert [row["failed"] for row in task["lengths"]] == [0, 1, 0, 0]
    assert [row["questions"] for row in task["lengths"]] == [40, 40, 40, 40]
    assert content["certificate"] is None


def test_the_file_follows_its_schema(content: dict) -> None:
    """The file is valid by the published schema, which refuses a field that it does not know."""
    schema = json.loads(effective_context_schema())
    jsonschema.validate(content, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "window": 1}, schema)


def test_a_suite_without_lengths_is_refused(tmp_path: Path) -> None:
    """A suite that has no benchmark with lengths gives no file."""
    write(tmp_path / "runs/a", "aa_lcr", [Output("q0", "x", ["x"])])
    with pytest.raises(InputError, match="no score of a benchmark with lengths"):
        list(
            export_suite("effective-context", tmp_path / "runs/a", BENCHMARKS, tmp_path)
        )
