"""Tests that follow docs/adding-a-dataset.md as an author does, in a copy of the repository."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.extending.guide import Guide, apply_edit, copy_repository, run_in_copy

GUIDE = Guide("adding-a-dataset.md")
ROWS = 400
CHECKS = (
    "tests/test_contract.py",
    "tests/test_docs.py",
    "tests/models/test_forms.py",
    "tests/benchmarks/helmet/test_coverage.py",
)
CHOSEN = "(not run_specs and not prompts and not scores and not megabyte) or ag_news or published"
"""All contract tests but those that only look at the rows of other tasks."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a copy of the repository with the guide's edits."""
    folder = tmp_path_factory.mktemp("copy")
    copy_repository(folder)
    for edit in GUIDE.edits:
        apply_edit(edit, folder)
    run_in_copy(
        folder, sys.executable, "docs/make_reference.py"
    )  # `make reference` of the guide
    return folder


def test_contract_tests_pass_with_the_new_row(copy: Path) -> None:
    """The contract and documentation tests pass after the guide's edits, so the edits are all that is needed."""
    options = ("-q", "-p", "no:cacheprovider", "-k", CHOSEN)
    assert "passed" in run_in_copy(
        copy, sys.executable, "-m", "pytest", *options, *CHECKS
    )


def test_the_new_task_runs_by_name_and_enters_no_mean(
    copy: Path, tmp_path: Path
) -> None:
    """The guide's command prints a prompt of the new task, and the category still runs only its published tasks."""
    folder = tmp_path / "hub/fancyzhx__ag_news"
    folder.mkdir(parents=True)
    rows = "".join(
        json.dumps({"text": f"News {number}.", "label": number % 4}) + "\n"
        for number in range(ROWS)
    )
    for name in ("train.jsonl", "test.jsonl"):
        (folder / name).write_text(rows)
    (folder / "features.json").write_text(
        json.dumps({"label": ["World", "Sports", "Business", "Sci/Tech"]})
    )
    command = next(
        line for line in GUIDE.script.splitlines() if line.startswith("helm-longctx")
    )
    line = json.loads(
        run_in_copy(copy, *command.split(), HELM_LONGCTX_DATA=str(tmp_path))
    )
    assert line["task"] == "ag_news"
    assert line["prompt"].count("\nlabel:") == 61
    code = (
        "from helm_longctx.tasks.registry import BENCHMARKS; from helm_longctx.tasks.entry import parse_entry;"
        "print(*(task.name for task in parse_entry(BENCHMARKS, 'helmet_icl:length=4k').tasks))"
    )
    assert run_in_copy(copy, sys.executable, "-c", code).split() == [
        "trec_coarse",
        "trec_fine",
        "banking77",
        "clinic150",
        "nlu",
    ]
