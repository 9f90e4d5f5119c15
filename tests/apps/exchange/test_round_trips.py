"""Tests that exported files have the same statistics when they are imported, and that missing parts are named."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_longctx.apps.exchange.answers import resolve_entry
from helm_longctx.apps.exchange.command import EXPORTERS, export_suite
from helm_longctx.apps.exchange.export import answers, scores
from helm_longctx.apps.exchange.importing import find_readers, import_files
from helm_longctx.results.boards import read_suite
from helm_longctx.results.reading import read_results
from helm_longctx.results.suite import write_reference
from helm_longctx.tasks.metric_names import MEASURED
from helm_longctx.tasks.outputs import Output
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.support.outputs import write, write_suite

ENTRIES = (
    "helmet_rag:task=nq,length=8k",
    "helmet_rerank:task=msmarco,length=8k",
    "lv_eval:dataset=factrecall_en,length=16k",
    "ruler:task=vt,length=4k,repeats=2",
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=30)
QRELS = st.dictionaries(
    st.text("0123456789", min_size=1, max_size=2),
    st.integers(0, 3),
    min_size=1,
    max_size=4,
)


@st.composite
def outputs(draw: st.DrawFn, entry: str) -> list[Output]:
    """Draw answers to an entry's task, of which some are missing."""
    task = resolve_entry(BENCHMARKS, entry).tasks[0]
    records = st.fixed_dictionaries(
        {name: QRELS for name in task.record_shapes if name == "qrels"}
    )
    repeats = 2 if "repeats" in entry else 1
    answers = []
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
            answers.append(
                Output(
                    f"q{number}",
                    text,
                    **shared,
                    repeat=repeat,
                    error="" if text is not None else "timeout",
                )
            )
    return answers


def statistics(suite: Path) -> dict[tuple[str, str, str], tuple[float | None, ...]]:
    """Return every statistic of the suite with its interval and number of failures."""
    return {
        (row.entry, row.task, row.metric): (
            row.score,
            row.low,
            row.high,
            row.instances,
            row.failed,
        )
        for row in scores(read_suite(suite, BENCHMARKS))
    }


@pytest.mark.parametrize("entry", ENTRIES)
@given(data=st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_tables(entry: str, data: st.DataObject) -> None:
    """CSV and Parquet tables give back all statistics of a run, including failures."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "runs/a", entry, data.draw(outputs(entry)))
        for format in ("csv", "parquet"):
            list(export_suite(format, folder / "runs/a", BENCHMARKS, folder / format))
            import_files(
                [folder / format / f"answers.{format}"],
                folder / "runs" / format,
                BENCHMARKS,
            )
            assert statistics(folder / "runs" / format) == statistics(folder / "runs/a")


STARTS = st.sampled_from(
    ["", "'", "=", "'=", "''=", "+", "-1", "@", "\t=", "\r", "\n-", " ="]
)
FORMULAS = st.builds(
    str.__add__,
    STARTS,
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9),
)


@given(texts=st.lists(FORMULAS, min_size=1, max_size=5))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_texts_of_tables(texts: list[str]) -> None:
    """Answers come back from tables unchanged, even if a spreadsheet would compute them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        runs = [
            Output(f"={n}", text, [f"{text}x"], record={"question": text})
            for n, text in enumerate(texts)
        ]
        write(folder / "runs/a", ENTRIES[0], runs)
        for format in ("csv", "parquet"):
            list(export_suite(format, folder / "runs/a", BENCHMARKS, folder / format))
            import_files(
                [folder / format / f"answers.{format}"],
                folder / "runs" / format,
                BENCHMARKS,
            )
            read_back, expected = (
                [
                    row._replace(run="", model="")
                    for row in answers(
                        read_suite(suite, BENCHMARKS).results, BENCHMARKS
                    )
                ]
                for suite in (folder / "runs" / format, folder / "runs/a")
            )
            assert read_back == expected
            assert [row.answer for row in read_back] == texts


def test_tables_of_others_are_not_unquoted(tmp_path: Path) -> None:
    """A quotation mark is removed only from our own tables."""
    path = tmp_path / "answers.csv"
    path.write_text("task,length,references,answer\nnq,8k,x,'-x'\n")
    (run,) = find_readers(BENCHMARKS)["csv"].read(path, "")
    assert [output.prediction for output in run.outputs] == ["'-x'"]


@pytest.mark.parametrize("entry", ENTRIES)
@given(data=st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_lm_eval(entry: str, data: st.DataObject) -> None:
    """Samples of lm-evaluation-harness have all answers but no failed requests, because the harness has no such thing."""
    answers = data.draw(outputs(entry))
    answered = [answer for answer in answers if answer.prediction is not None]
    if not answered:
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "runs/a", entry, answers)
        list(export_suite("lm-eval", folder / "runs/a", BENCHMARKS, folder / "out"))
        import_files([folder / "out"], folder / "runs/b", BENCHMARKS)
        write(folder / "runs/c", entry, answered)
        assert statistics(folder / "runs/b") == statistics(folder / "runs/c")


def test_lm_eval_keeps_models_apart(tmp_path: Path) -> None:
    """Models whose names give the same folder in the harness keep their own answers."""
    means = {"some/a:b": 1.0, "some/a__b": 0.0, "Some/a__b": 0.5}
    for model, mean in means.items():
        answers = [
            Output(f"q{n}", "Paris" if n < 2 * mean else "Rome", ["Paris"])
            for n in range(2)
        ]
        write(tmp_path / "runs/a", ENTRIES[0], answers, model)
    list(export_suite("lm-eval", tmp_path / "runs/a", BENCHMARKS, tmp_path / "out"))
    import_files([tmp_path / "out"], tmp_path / "runs/b", BENCHMARKS)
    published_means = {
        result.model: result.interval.mean
        for result in read_results(tmp_path / "runs/b", BENCHMARKS)
    }
    assert published_means == means
    assert len({path.name.casefold() for path in (tmp_path / "out").iterdir()}) == len(
        means
    )


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a suite of two tasks: a third of the requests of the first failed, and all of the second."""
    return write_suite(tmp_path)


def exported(suite: Path, format: str) -> list[Path]:
    """Export the suite, and return the files."""
    return [
        path
        for path, _ in export_suite(format, suite, BENCHMARKS, suite.parent / format)
    ]


def test_no_format_scores_a_failure_as_zero(suite: Path) -> None:
    """Means are over answers only, failures are counted, and a task without any answer has no score."""
    assert read_results(suite, BENCHMARKS)[0].interval.mean == 0.5
    results = json.loads(
        next(
            path
            for path in exported(suite, "lm-eval")
            if path.name.startswith("results")
        ).read_text()
    )
    assert results["results"]["helmet_nq_8k"]["longctx_score,none"] == 0.5
    assert results["results"]["helmet_nq_8k"][
        "substring_exact_match_stderr,none"
    ] == pytest.approx(0.5)
    assert results["n-samples"]["helmet_nq_8k"] == {"original": 3, "effective": 2}
    assert "longctx_score,none" not in results["results"]["helmet_popqa_8k"]
    assert results["n-samples"]["helmet_popqa_8k"] == {"original": 1, "effective": 0}
    text = exported(suite, "markdown")[0].read_text()
    assert all(part in text for part in ("50.0 † (", ", 1 failed)", "| – (1 failed) |"))
    latex = exported(suite, "latex")[0].read_text()
    assert all(
        part in latex for part in ("1 failed", "\\toprule", "50.0 \\dag{} {\\tiny (")
    )
    rows = [
        line.split(",")
        for line in (exported(suite, "csv")[-1]).read_text("utf-8-sig").splitlines()
    ]
    wide = dict(zip(rows[0], rows[1], strict=True))
    assert (wide["nq"], wide["nq_failed"], wide["popqa"], wide["popqa_failed"]) == (
        "0.5",
        "1",
        "",
        "1",
    )


def test_every_eval_ever(suite: Path) -> None:
    """The validator of Every Eval Ever accepts all files, with the semantic checks of its data set."""
    validation = pytest.importorskip("every_eval_ever.validator.validation_core")
    files = {
        path.relative_to(suite.parent / "every-eval-ever"): path
        for path in exported(suite, "every-eval-ever")
    }
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
    log = json.loads(
        next(path for path in files.values() if path.suffix == ".json").read_text()
    )
    first = log["evaluation_results"][0]
    assert first["score_details"]["score"] == 0.5
    assert first["score_details"]["details"]["requests_without_answer"] == "1"
    assert first["score_details"]["uncertainty"]["confidence_interval"]["lower"] < 0.5
    assert log["detailed_evaluation_results"]["total_rows"] == 2


def test_formats_are_as_many_as_documented() -> None:
    """The page on results names every format of export."""
    page = (Path(__file__).parents[3] / "docs/results.md").read_text()
    assert all(f"`{name}`" in page for name in EXPORTERS)


def test_an_export_that_is_imported_doubles_nothing(tmp_path: Path) -> None:
    """Scores of imported answers are not added a second time, and published rows stay published rows."""
    suite = tmp_path / "runs/a"
    write(
        suite,
        ENTRIES[0],
        [
            Output(f"q{n}", "Paris" if n else None, ["Paris"], error="timeout")
            for n in range(3)
        ],
    )
    write_reference(find_benchmark("helmet"), suite, ["GPT-4o-08*"], 8192)
    list(export_suite("csv", suite, BENCHMARKS, tmp_path / "one"))
    imported = import_files([tmp_path / "one"], tmp_path / "runs/b", BENCHMARKS)
    assert (len(imported.runs), imported.scores, imported.left_out) == (
        1,
        {"helmet": 34},
        1,
    )
    list(export_suite("csv", tmp_path / "runs/b", BENCHMARKS, tmp_path / "two"))
    for name in ("scores.csv", "averages.csv", "wide_helmet.csv"):
        assert _scores_of(tmp_path / "one" / name) == _scores_of(
            tmp_path / "two" / name
        )


def _scores_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table without the statistics of how answers were obtained."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row.get("metric") not in ("request_cached", *MEASURED)
        ]
    return sorted(rows, key=lambda row: str(list(row.values())))


def test_a_score_without_answers_is_marked(tmp_path: Path) -> None:
    """A score that is imported without its answers has a mark with its reason."""
    suite = tmp_path / "runs/a"
    write(suite, ENTRIES[0], [Output("q0", "Paris", ["Paris"])])
    list(export_suite("csv", suite, BENCHMARKS, tmp_path / "out"))
    import_files([tmp_path / "out/scores.csv"], tmp_path / "runs/b", BENCHMARKS)
    (result,) = read_results(tmp_path / "runs/b", BENCHMARKS)
    assert (result.model, [caveat.code for caveat in result.caveats]) == (
        "published/some/model",
        ["imported:nq=scores.csv"],
    )


def test_lv_evals_own_tables(tmp_path: Path) -> None:
    """The tables of scores are those that LV-Eval's own code writes for the same predictions, byte for byte."""
    suite = tmp_path / "runs/mine"
    wrong = Output("q1", "Rome", ["Paris"])
    for length, given_answers in (
        ("16k", [Output("q0", "Paris", ["Paris"]), wrong]),
        ("128k", [wrong]),
    ):
        own = f"lv_eval:dataset=multifieldqa_en_mixup,length={length}"
        write(suite, own, given_answers)
    right = [Output("q0", "Paris", ["Paris"])]
    write(suite, "lv_eval:dataset=hotpotwikiqa_mixup,length=32k", right)
    files = dict(export_suite("official", suite, BENCHMARKS, tmp_path / "out"))
    table, wide = sorted(files, key=lambda path: path.suffix, reverse=True)
    # What evaluation.py at 63e7ae9 writes.
    assert table.read_text() == (
        '{\n    "hotpotwikiqa_mixup_32k": 100.0,\n    "multifieldqa_en_mixup_16k": 50.0,\n'
        '    "multifieldqa_en_mixup_128k": 0.0\n}'
    )
    assert wide.read_text() == (
        "dataset_name,32k,16k,128k\nhotpotwikiqa_mixup,100.0,,\nmultifieldqa_en_mixup,,50.0,0.0\n"
    )
    assert table.parent.name == "eval_result"
