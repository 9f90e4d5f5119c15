"""RULER v2's rows are downloaded and read, and the metrics accept every output."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from helm_longctx.benchmarks.ruler2 import tasks
from helm_longctx.benchmarks.ruler2.tasks import (
    HOTPOTQA,
    MMLU,
    RULER2,
    read_hotpotqa,
    read_mmlu,
    write_ordinal,
)
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.ruler.fabricate import counter
from tests.benchmarks.ruler2.fabricate import (
    TASKS,
    build_ruler2,
    hotpotqa_rows,
    mmlu_rows,
)
from tests.data.hub_server import Hub, point_at, serve

WORDS = st.lists(st.sampled_from("abcd"), max_size=70)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_ruler2(tmp_path_factory.mktemp("ruler2")), mirror=True)


def _load(name: str, root: DataRoot, count: int = 4) -> list[Example]:
    settings = Settings(6000, num_samples=count, counter=counter("byte_level"))
    return list(load_examples(RULER2.task(name), settings, root))


def test_the_data_sets_are_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: DataRoot
) -> None:
    """The parquet files of both data sets are fetched from a server in the hub's form, and read like a mirror."""
    repos = {}
    sources = []
    for source, rows in ((MMLU, mmlu_rows()), (HOTPOTQA, hotpotqa_rows())):
        files = {}
        for split in source.splits:
            buffer = io.BytesIO()
            parquet.write_table(pa.Table.from_pylist(rows[split]), buffer)
            files[f"{source.config}/{split}/0000.parquet"] = buffer.getvalue()
        repos[source.name] = files
        sources.append(
            replace(source, splits={split: len(rows[split]) for split in source.splits})
        )
    data = DataRoot(tmp_path / "data", mirror=False)
    with serve(Hub(repos)) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        ensure(sources, data, "fetch them")
    assert read_mmlu(data) == read_mmlu(root)
    assert read_hotpotqa(data) == read_hotpotqa(root)


def test_a_tokenizer_is_needed(root: DataRoot) -> None:
    """Without a tokenizer, the error says which argument is missing."""
    with pytest.raises(InputError, match="qa_hard: count_with is missing"):
        list(load_examples(RULER2.task("qa_hard"), Settings(6000), root))


def test_samples_fill_the_length_and_know_where_the_evidence_is(root: DataRoot) -> None:
    """No prompt is longer than the length, and a single piece of evidence has a depth."""
    count = counter("byte_level")
    single = {
        "mk_niah_basic",
        "mk_niah_easy",
        "mk_niah_medium",
        "mk_niah_hard",
        "qa_basic",
    }
    for name in TASKS:
        task = RULER2.task(name)
        examples = _load(name, root, 2)
        lengths = [count(task.prompt(example).text("chat")) for example in examples]
        assert 4800 < max(lengths) <= 6000, (name, lengths)
        assert [example.depth is not None for example in examples] == [
            name in single
        ] * 2


def test_tasks_share_questions_of_hotpotqa(root: DataRoot) -> None:
    """The four tasks of documents ask the same questions, which are clusters; other samples are independent."""
    groups = {
        name: [example.group for example in _load(name, root)]
        for name in ("qa_basic", "qa_hard")
    }
    assert len({*groups["qa_basic"]}) == 4
    assert groups["qa_basic"] == groups["qa_hard"]
    assert {example.group for example in _load("mv_niah_easy", root)} == {""}


def test_the_lexical_baseline_copies(root: DataRoot) -> None:
    """The baseline copies every question and finds every text, so the prompts have the right answers."""
    copied = {
        "mk_niah_easy",
        "mv_niah_easy",
        "mv_niah_medium",
        "mv_niah_hard",
        "qa_basic",
    }
    for name in (*copied, "mk_niah_hard", "qa_easy"):
        task = RULER2.task(name)
        for example in _load(name, root):
            answer = task.baseline.kind(task.prompt(example).messages)
            score = task.scores(
                {"prediction": answer, "references": example.references}
            )["longctx_score"]
            assert score == 1 or name not in copied, (name, answer, example.references)
        assert (
            task.baseline.kind(
                [{"role": "user", "content": "Question 1: a\n\nPlease copy it."}]
            )
            is None
        )


@given(WORDS, WORDS)
def test_edits_are_counted(words: list[str], reference: list[str]) -> None:
    """The number of edits is the one that the usual table gives."""
    row = list(range(len(reference) + 1))
    for number, word in enumerate(words, 1):
        before = row
        row = [number]
        for position, other in enumerate(reference):
            row.append(
                min(
                    before[position] + (word != other),
                    before[position + 1] + 1,
                    row[position] + 1,
                )
            )
    assert tasks.count_edits(words, reference) == row[-1]


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_any_output_is_scored(output: str, references: list[str]) -> None:
    """Every output gets a score from 0 to 1, whatever is in it and in the references."""
    record = {"prediction": output, "references": references}
    for name in ("mk_niah_basic", "mk_niah_hard", "mv_niah_medium", "qa_hard"):
        (score,) = RULER2.task(name).score(record).values()
        assert 0 <= score <= 1


def test_ordinals() -> None:
    """Numbers get the endings of English."""
    assert [write_ordinal(number) for number in (1, 2, 3, 4, 21, 102)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "21st",
        "102nd",
    ]
    assert [write_ordinal(number) for number in (11, 12, 13, 111)] == [
        "11th",
        "12th",
        "13th",
        "111th",
    ]


def test_edits_of_long_outputs() -> None:
    """In an output of 20,000 words that has all words of a reference in their order, the others are the edits."""
    words = random.Random(1).choices("abcdefgh", k=20_000)
    assert tasks.count_edits(words, words[5:20_000:70]) == 20_000 - len(
        words[5:20_000:70]
    )
