"""What is exported and imported again has the same statistics; what a format lacks is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.formats.entries import resolve_entry
from helm_longctx.formats.exporting import EXPORTERS, export_suite
from helm_longctx.formats.importing import import_files
from helm_longctx.formats.run_folders import write_run
from helm_longctx.protocol.outputs import Output, OutputRun
from helm_longctx.report.export import scores
from helm_longctx.report.results import read_results

ENTRIES = (
    "helmet_rag:task=nq,length=8k",
    "helmet_rerank:task=msmarco,length=8k",
    "lv_eval:dataset=factrecall_en,length=16k",
    "ruler:task=vt,length=4k,repeats=2",
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=30)
QRELS = st.dictionaries(st.text("0123456789", min_size=1, max_size=2), st.integers(0, 3), min_size=1, max_size=4)


@st.composite
def outputs(draw: st.DrawFn, entry: str) -> list[Output]:
    """Answers to an entry's task, some of them missing."""
    task = resolve_entry(BENCHMARKS, entry).tasks[0]
    records = st.fixed_dictionaries({name: QRELS for name in task.record_shapes if name == "qrels"})
    repeats = 2 if "repeats" in entry else 1
    found = []
    for number in range(draw(st.integers(1, 4))):
        references = draw(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=2))
        record = {"question": draw(TEXTS), **draw(records)}
        shared: dict[str, Any] = {
            "references": references,
            "record": record,
            "group": draw(st.sampled_from(["", "a", "b"])),
        }
        for repeat in range(repeats):
            text = draw(st.none() | TEXTS | st.just(references[0]))
            found.append(
                Output(f"q{number}", text, **shared, repeat=repeat, error="" if text is not None else "timeout")
            )
    return found


def write(suite: Path, entry: str, answers: Sequence[Output]) -> None:
    """A run of answers."""
    run = OutputRun(entry, "some/model", answers, [f"file: row {n}" for n, _ in enumerate(answers)])
    write_run(suite, resolve_entry(BENCHMARKS, entry), run, "some/model")


def statistics(suite: Path) -> dict[tuple[str, str, str], tuple[float | None, ...]]:
    """Every statistic of the suite with its interval and number of failures."""
    return {
        (row.entry, row.task, row.metric): (row.score, row.low, row.high, row.instances, row.failed)
        for row in scores(suite, BENCHMARKS)
    }


@pytest.mark.parametrize("entry", ENTRIES)
@given(data=st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_tables(entry: str, data: st.DataObject) -> None:
    """CSV and Parquet have all that a run has, failures included."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "runs/a", entry, data.draw(outputs(entry)))
        for format in ("csv", "parquet"):
            list(export_suite(format, folder / "runs/a", BENCHMARKS, folder / format))
            import_files([folder / format / f"answers.{format}"], folder / "runs" / format, BENCHMARKS)
            assert statistics(folder / "runs" / format) == statistics(folder / "runs/a")


@pytest.mark.parametrize("entry", ENTRIES)
@given(data=st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_lm_eval(entry: str, data: st.DataObject) -> None:
    """Samples have all answers. The harness knows no failed requests, so these are missing."""
    answers = data.draw(outputs(entry))
    answered = [each for each in answers if each.prediction is not None]
    if not answered:
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "runs/a", entry, answers)
        list(export_suite("lm-eval", folder / "runs/a", BENCHMARKS, folder / "out"))
        import_files([folder / "out"], folder / "runs/b", BENCHMARKS)
        write(folder / "runs/c", entry, answered)
        assert statistics(folder / "runs/b") == statistics(folder / "runs/c")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two tasks; a third of the requests of one failed, and all of the other."""
    answers = [
        Output(f"q{n}", None if n == 2 else "Paris" if n else "Rome", ["Paris"], error="timeout") for n in range(3)
    ]
    write(tmp_path / "runs/mine", ENTRIES[0], answers)
    write(tmp_path / "runs/mine", "helmet_rag:task=popqa,length=8k", answers[2:])
    return tmp_path / "runs/mine"


def exported(suite: Path, format: str) -> list[Path]:
    """The files of an export."""
    return [path for path, _ in export_suite(format, suite, BENCHMARKS, suite.parent / format)]


def test_no_format_scores_a_failure_as_zero(suite: Path) -> None:
    """Means are over answers. Failures are counted; a task without any answer has no score."""
    assert read_results(suite, BENCHMARKS)[0].interval.mean == 0.5
    results = json.loads(
        next(path for path in exported(suite, "lm-eval") if path.name.startswith("results")).read_text()
    )
    assert results["results"]["helmet_nq_8k"]["longctx_score,none"] == 0.5
    assert results["results"]["helmet_nq_8k"]["substring_exact_match_stderr,none"] == pytest.approx(0.5)
    assert results["n-samples"]["helmet_nq_8k"] == {"original": 3, "effective": 2}
    assert "longctx_score,none" not in results["results"]["helmet_popqa_8k"]
    assert results["n-samples"]["helmet_popqa_8k"] == {"original": 1, "effective": 0}
    text = exported(suite, "markdown")[0].read_text()
    assert all(part in text for part in ("50.0† \\[", "\\], 1 failed", "| –, 1 failed |"))
    latex = exported(suite, "latex")[0].read_text()
    assert all(part in latex for part in ("1 failed", "\\toprule", "50.0$^\\dagger$ ["))
    rows = [line.split(",") for line in (exported(suite, "csv")[-1]).read_text("utf-8-sig").splitlines()]
    wide = dict(zip(rows[0], rows[1], strict=True))
    assert (wide["nq"], wide["nq_failed"], wide["popqa"], wide["popqa_failed"]) == ("0.5", "1", "", "1")


def test_every_eval_ever(suite: Path) -> None:
    """Its own validator accepts all files, with the semantic checks of its data set."""
    validation = pytest.importorskip("every_eval_ever.validator.validation_core")
    files = {path.relative_to(suite.parent / "every-eval-ever"): path for path in exported(suite, "every-eval-ever")}
    names = {name.as_posix(): path for name, path in files.items()}
    for name, path in names.items():
        report = validation.validate_file(
            path,
            repo_path=name,
            available_files=set(names),
            read_repo_file=lambda other: names[other].read_text(),
            run_semantic_checks=True,
        )
        assert (report.valid, report.errors, report.warnings) == (True, [], [])
    log = json.loads(next(path for path in files.values() if path.suffix == ".json").read_text())
    first = log["evaluation_results"][0]
    assert first["score_details"]["score"] == 0.5
    assert first["score_details"]["details"]["requests_without_answer"] == "1"
    assert first["score_details"]["uncertainty"]["confidence_interval"]["lower"] < 0.5
    assert log["detailed_evaluation_results"]["total_rows"] == 2


def test_formats_are_as_many_as_documented() -> None:
    """The help and the page name each."""
    page = (Path(__file__).parents[2] / "docs/formats.md").read_text()
    assert all(f"`{name}`" in page for name in EXPORTERS)
