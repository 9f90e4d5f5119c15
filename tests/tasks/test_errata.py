"""Tests of `errata.jsonl`, the file of a benchmark's known errors."""

from __future__ import annotations

import json
import re
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.tasks.benchmark import ERRATA_FILE, Erratum, read_errata
from helm_longctx.tasks.registry import BENCHMARKS

ROW = {
    "task": "nq",
    "instance": "nq-3",
    "what": "the year is wrong",
    "source": "https://h/1",
    "since": "2026-02-27",
}


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """Write a package with the file, and return its name."""
    name = f"errata_{abs(hash((str(folder), text)))}"
    (folder / name).mkdir()
    (folder / name / "__init__.py").touch()
    (folder / name / ERRATA_FILE).write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop(name, None)
    return name


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line names an instance or a rule, and can name a length."""
    rule = {**ROW, "rule": "own_parent", "length": "128k"}
    del rule["instance"]
    text = "\n".join(map(json.dumps, (ROW, rule))) + "\n"
    one, other = read_errata(package(tmp_path, monkeypatch, text))
    assert one == Erratum(
        "nq", "the year is wrong", "https://h/1", date(2026, 2, 27), instance="nq-3"
    )
    assert one.concerns("nq-3", 8192, ())
    assert not one.concerns("nq-4", 8192, ("nq-3",))
    assert other.concerns("nq-9", 131072, ("own_parent",))
    assert not other.concerns("nq-9", 8192, ("own_parent",))
    assert not other.concerns("own_parent", 131072, ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rule": "x"}, "it must have either an instance or a rule"),
        ({"instance": ""}, "it must have either an instance or a rule"),
        ({"source": ""}, "task, what and source must be texts"),
        ({"what": 5}, "task, what and source must be texts"),
        ({"since": "February"}, "Invalid isoformat string"),
        ({"length": "9x"}, "length='9x' is invalid"),
        ({"reason": "y"}, "reason is unknown; the names are instance, length"),
    ],
)
def test_a_malformed_line(
    change: dict[str, object],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error names the number of the line and what is wrong."""
    text = f"{json.dumps(ROW)}\n{json.dumps({**ROW, **change})}\n"
    with pytest.raises(
        ValueError, match=rf"errata\.jsonl: line 2: .*{re.escape(told)}"
    ):
        read_errata(package(tmp_path, monkeypatch, text))


@given(st.text(max_size=50).filter(str.strip))
def test_any_text_is_an_erratum_or_one_error(text: str) -> None:
    """Any line is an erratum, or ends in an error that names the file and the line."""
    from helm_longctx.tasks.benchmark import _parse

    with pytest.raises(ValueError, match=r"errata\.jsonl: line 7: "):
        _parse(7, text)


def test_errata_of_benchmarks_are_about_their_tasks() -> None:
    """Each known error of a benchmark is of one of its tasks, has a source with an address, and is not in the future."""
    errata = [
        (benchmark, erratum)
        for benchmark in BENCHMARKS
        for erratum in benchmark.errata()
    ]
    assert {benchmark.name for benchmark, _ in errata} >= {"graphwalks", "mrcr"}
    for benchmark, erratum in errata:
        tasks = {
            task.name
            for other in BENCHMARKS
            if other.errata == benchmark.errata
            for task in other.tasks
        }
        assert erratum.task in tasks
        assert erratum.source.startswith("https://")
        assert erratum.since <= date.today()
