"""OOLONG's rows are downloaded and read, and questions on one text are a cluster."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from helm_longctx.benchmarks.oolong import tasks
from helm_longctx.benchmarks.oolong.data import REAL, SYNTH, find_synth_rows
from helm_longctx.benchmarks.oolong.tasks import OOLONG
from helm_longctx.data.fetch import ensure
from helm_longctx.data.hub import HubRows
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.results.cells import score_cell
from helm_longctx.results.reading import published_results
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.oolong.fabricate import build_oolong, real_rows, synth_rows
from tests.data.hub_server import Hub, point_at, serve
from tests.support.fabricate import write

KINDS = ("LABEL", "NUMERIC", "DATE", "USER", "COMPARISON", "MONTH_YEAR")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_oolong(tmp_path_factory.mktemp("oolong")), mirror=True)


def _hub_files() -> dict[str, dict[str, bytes]]:
    """Return the repositories in the form of the hub: parquet files with all lengths mixed, and a file of JSON lines."""
    kept = [
        row for length in (8192, 1024, 131072) for row in (synth_rows(length) * 8)[:400]
    ]
    files = {
        "data/validation-00000-of-00001.parquet": b"not read",
        "README.md": b"a card",
    }
    for number in range(3):
        buffer = io.BytesIO()
        parquet.write_table(
            pa.Table.from_pylist(kept[number::3]), buffer, row_group_size=50
        )
        files[f"data/test-{number:05d}-of-00003.parquet"] = buffer.getvalue()
    lines = "".join(json.dumps(row) + "\n" for row in real_rows()).encode()
    return {
        SYNTH: files,
        REAL: {"dnd/test.jsonl": lines, "dnd/validation.jsonl": b"not read"},
    }


def test_rows_are_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rows of a length are taken from the files of a server in the hub's form; files for others are cached."""
    data = DataRoot(tmp_path / "data", mirror=False)
    with serve(Hub(_hub_files())) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        for name, length in (
            ("agnews", 8192),
            ("agnews_labels", 1024),
            ("dnd", 131072),
        ):
            task = OOLONG.task(name)
            ensure(task.sources(length), data, "fetch it")
            examples = list(load_examples(task, Settings(length), data))
            assert len({example.fields["context"] for example in examples}) == 1
            assert all(
                ("|| Label:" in example.fields["context"]) == ("labels" in name)
                for example in examples
            )
        downloads = [
            request
            for request in hub.requests
            if request.startswith("GET") and "/resolve/" in request
        ]
        assert len(downloads) == 4
        assert all(
            find_synth_rows(1, "test", "x").commit in download
            for download in downloads
            if SYNTH in download
        )
        with pytest.raises(
            InputError, match="0 rows, expected 400: it is not the release"
        ):
            ensure(OOLONG.task("agnews").sources(4096), data, "fetch it")


def test_a_damaged_file_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A parquet file that cannot be read is named in the error, and so is one without the column."""
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"other": [1]}), buffer)
    for content in (b"PAR1 nonsense", buffer.getvalue()):
        with serve(Hub({"a/b": {"x.parquet": content}})) as hub:
            point_at(monkeypatch, hub.url, tmp_path / str(len(content)))
            source = HubRows(
                "a/b", "c" * 40, "x", "hub/x.jsonl", "length", 1, ("length",)
            )
            with pytest.raises(
                InputError, match=r"blobs/\w+ cannot be read \(\w+\); delete it"
            ):
                source.ensure(DataRoot(tmp_path, mirror=False), "fetch it")


def test_questions_on_one_text_are_a_cluster(root: DataRoot) -> None:
    """Questions on the same text share a group, and questions with the same official id have names of their own."""
    for name, length in (("agnews", 8192), ("dnd", 65536)):
        examples = list(load_examples(OOLONG.task(name), Settings(length), root))
        assert len({example.group for example in examples}) == 1
        assert len({example.id for example in examples}) == len(examples)
        assert any(example.id.endswith("-2") for example in examples)


def test_several_right_labels_are_an_erratum(tmp_path: Path) -> None:
    """If several labels are right, the first one is expected as in the official code, and the error is known."""
    task = OOLONG.task("agnews")
    rows = [
        synth_rows(8192)[0] | {"answer": answer}
        for answer in ("['ham', 'spam']", "['ham']")
    ]
    write(tmp_path / task.paths(8192)[0], rows)
    tie, single = load_examples(task, Settings(8192), DataRoot(tmp_path, mirror=True))
    assert (tie.references, tie.errata, single.errata) == (
        ["ham"],
        ("several_answers",),
        (),
    )
    assert {erratum.task for erratum in OOLONG.errata()} == {
        task.name for task in OOLONG.tasks
    } - {
        "dnd",
        "user_pairs",
    }


def test_an_incomplete_date_is_wrong_on_every_day() -> None:
    """A date without a year, month or day is wrong, and does not take what it lacks from the day of scoring."""
    gold = "2023-01-05 00:00:00"
    assert tasks.is_date("Jan 5, 2023", gold)
    assert not any(
        tasks.is_date(text, gold)
        for text in ("January 2023", "2023", "5 January", "Thursday")
    )


def test_published_scores() -> None:
    """Published scores are of 400 questions; those of transcripts have no interval, since their number is not known."""
    results = {
        (
            published_result.model,
            published_result.task,
            published_result.length,
        ): published_result
        for published_result in published_results(OOLONG)
    }
    assert len(results) == 9 * (5 + 3)
    synth = results["published/GPT-5", "", 8192]
    real = results["published/GPT-5", "dnd", 65536]
    assert 0.8 < synth.interval.low < synth.interval.mean == 0.8556
    assert (score_cell(synth).line, score_cell(real).line) == (
        "85.6 (81.8–88.7)",
        "58.7",
    )
    cells = score_cell(synth, None), score_cell(real, None)
    assert [cell.note for cell in cells] == [
        "n = 400",
        "the number of questions is not known",
    ]


def test_the_lexical_baseline_counts(root: DataRoot) -> None:
    """The baseline is right about users and dates, about everything that it counts if labels are given, and needs
    lines of the benchmark."""
    for suffix, names in (
        ("", {"USER", "DATE"}),
        ("_labels", {*KINDS} - {"MONTH_YEAR"}),
    ):
        task = OOLONG.task(f"imdb{suffix}")
        for protocol in ("paper", "api"):
            settings = Settings(8192, protocol=protocol)  # type: ignore[arg-type]
            for example in load_examples(task, settings, root):
                answer = task.baseline.kind(task.prompt(example).messages)
                record = {
                    **example.record,
                    "prediction": answer,
                    "references": example.references,
                }
                if example.record["answer_type"].rpartition(".")[2] in names:
                    assert task.score(record)["exact"] == 1, (
                        example.fields["question"],
                        answer,
                    )
    dnd = OOLONG.task("dnd")
    (example, *_) = load_examples(dnd, Settings(65536 * 3), root)
    assert dnd.baseline.kind(dnd.prompt(example).messages) == "\\boxed{3}"
    for task in (OOLONG.task("agnews"), dnd):
        assert (
            task.baseline.kind(
                [
                    {
                        "role": "user",
                        "content": "Give your final answer in the form 'Label: x'",
                    }
                ]
            )
            is None
        )


@given(st.text(), st.text(), st.sampled_from([*KINDS, ""]))
def test_any_output_is_scored(output: str, reference: str, kind: str) -> None:
    """Every output gets both scores from 0 to 1, whatever is in it and in the reference."""
    record = {
        "prediction": output,
        "references": [reference],
        "answer_type": f"ANSWER_TYPE.{kind}",
    }
    for credit in (tasks.credit_synth, tasks.credit_real):
        scores = tasks.score(record, credit)
        assert scores.keys() == {"credit", "exact"}
        assert 0 <= scores["credit"] <= 1
