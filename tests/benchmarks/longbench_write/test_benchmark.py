"""LongBench-Write's files, the judge's requests, the baseline and the lengths for estimates are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.longbench_write import BENCHMARK
from helm_longctx.benchmarks.longbench_write.judge import QualityAnnotator
from helm_longctx.benchmarks.longbench_write.tasks import FILES, RUBRIC
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longbench_write.fabricate import (
    LENGTHS,
    build_longbench_write,
    odd_replies,
    rows,
)
from tests.data.pinned import fetch_fabricated


def load(root: Path, task: str = "requests") -> list[Example]:
    return list(
        load_examples(BENCHMARK.task(task), Settings(None), DataRoot(root, mirror=True))
    )


def test_files_from_a_server(tmp_path: Path) -> None:
    """The official files are downloaded from a server, checked and loaded."""
    files = [*FILES.values(), RUBRIC]
    assert all(
        "/THUDM/LongWriter/3fcfdff43deceb49f7936c6bf25ad88d61df0bfa/evaluation/"
        in file.url
        for file in files
    )
    root = fetch_fabricated(
        files, build_longbench_write(tmp_path / "made"), tmp_path / "cache"
    )
    for name in FILES:
        assert [example.fields["input"] for example in load(root.path, name)] == [
            row["prompt"] for row in rows(name)
        ]


def test_the_judge_is_asked_as_officially(tmp_path: Path) -> None:
    """The judge gets the official request up to five times, and without the rubric the error says how to get it."""
    example = load(build_longbench_write(tmp_path))[1]
    record = {
        **example.record,
        "question": example.fields["input"],
        "prediction": "A text.",
        "references": [],
    }
    annotator = QualityAnnotator.__new__(QualityAnnotator)
    (request,) = annotator.questions("requests", record).values()
    assert "A text." in request.prompt
    assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 1.0, 1024)
    assert (request.seed, request.readings) == (None, 5)
    verdict = request.parse(odd_replies()[0])
    assert verdict is not None
    assert verdict["judge_score"] == 0.75
    assert request.parse("5") is None
    assert annotator.digest("requests", record) != annotator.digest(
        "requests", {**record, "rubric": "Other."}
    )
    (tmp_path / RUBRIC.path).unlink()
    with pytest.raises(
        InputError,
        match=r"no longbench_write/judge.txt: get it with helm-longctx fetch longbench_write",
    ):
        annotator.questions(
            "requests", {**load(tmp_path)[1].record, "question": "", "prediction": ""}
        )


def test_a_text_of_the_right_length_alone(tmp_path: Path) -> None:
    """The lexical baseline has nearly the full length score, and does not answer a prompt without a number of words."""
    baseline = BENCHMARK.task("longwrite_ruler").baseline.kind
    assert callable(baseline)
    for prompt in (
        "Write a 3000-word essay.",
        "写一篇3000字的文章",
        "In 1999: 3000 words, not 123456789 words",
    ):
        text = baseline([{"role": "user", "content": prompt}])
        scores = BENCHMARK.task("longwrite_ruler").scores(
            {"prediction": text, "references": [], "length": 3000}
        )
        assert scores["length_score"] > 0.99
    for prompt in ("Write.", "In 1999", "3000 words " * 100):
        assert baseline([{"role": "user", "content": prompt}]) is None


def test_typical_answers_have_the_required_length(tmp_path: Path) -> None:
    """The number of tokens for estimates follows from the required length, since there are no references."""
    limits = [
        (example.answer_tokens, example.references)
        for example in load(build_longbench_write(tmp_path))
    ]
    assert limits == [(round(1.5 * length), []) for length in LENGTHS]
