"""LongGenBench's texts without entries or replies, the judge's requests, and the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longgenbench import BENCHMARK
from helm_longctx.benchmarks.longgenbench.judge import CheckAnnotator
from helm_longctx.benchmarks.longgenbench.tasks import (
    FILES,
    judge_prompts,
    write_entries,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longgenbench.fabricate import build_longgenbench, rows
from tests.data.pinned import fetch_fabricated

(TASK,) = BENCHMARK.tasks
LENGTH = min(FILES)
RECORD = {
    "prefix": "#*# Week 1:", "type": "Week", "number": 4, "checks_once": {"1": "a", "3": "b"}, "checks_range": {},
    "checks_periodic": {"2": "c", "4": "d"}, "references": [], "prediction": " x\n#*# Week 2: {y}\n#*# Week 3: z",
}  # fmt: skip


def score(**changes: Any) -> dict[str, float]:
    return TASK.scores({**RECORD, **changes})


def load(root: Path) -> list[Example]:
    return list(load_examples(TASK, Settings(LENGTH), DataRoot(root, mirror=True)))


def test_files_from_a_server(tmp_path: Path) -> None:
    """The official files are downloaded from a server, checked and loaded."""
    files = [*FILES.values()]
    assert all(
        "/mozhu621/LongGenBench/62c0e869219c225671a0b8f50217b0cd836b882b/Dataset/"
        in file.url
        for file in files
    )
    root = fetch_fabricated(
        files, build_longgenbench(tmp_path / "made"), tmp_path / "cache"
    )
    assert [example.fields["input"] for example in load(root.path)] == [
        row["prompt"] for row in rows(LENGTH)
    ]


def test_scores() -> None:
    """The scores follow from four checks, of which three are made and two are met."""
    scored = score(judge={"once 1": "Yes.", "once 3": "no", "periodic 2": "yes"})
    assert scored == {
        "completion_rate": 0.75,
        "checks_made": 0.75,
        "judge_stic_2": 0.5,
        "judge_stic_1": pytest.approx(2 / 3),
        "judge_accuracy_once": 0.5,
        "judge_accuracy_periodic": 1,
        "longctx_score": 0.5,
    }
    assert (
        score(
            average_checks=2,
            judge={"once 1": "Yes.", "once 3": "no", "periodic 2": "yes"},
        )["longctx_score"]
        == 1
    )


def test_a_missing_reply_is_no_zero() -> None:
    """A judge with a missing reply gives no score, and another judge's replies still count."""
    whole = {"once 1": "yes", "once 3": "yes", "periodic 2": "yes"}
    part = {"once 1": "yes", "once 3": None}
    for replies in (None, part, {**whole, "once 3": ""}, "yes"):
        assert score(judge=replies).keys() == {"completion_rate", "checks_made"}
    scored = score(jury={"replies": {"a/b": whole, "c/d": part}})
    assert (scored["longctx_score"], scored["judge_stic_2:a/b"]) == (0.75, 0.75)
    assert score(jury={"replies": {"c/d": part}})["judge_stic_2_strict"] == 0


def test_a_text_without_entries_to_ask_about() -> None:
    """A text without entries meets no check if there is a judge, and has no score without a judge."""
    for asked in ({"judge": {}}, {"jury": {"replies": {"a/b": {}}}}):
        scored = score(prediction="#*# No.", **asked)
        assert (scored["longctx_score"], scored["completion_rate"]) == (0, 0)
        assert "judge_stic_1" not in scored
    for asked in ({}, {"jury": {}}):
        assert "longctx_score" not in score(prediction="#*# No.", **asked)


@pytest.mark.parametrize(
    "name",
    ["prefix", "type", "number", "checks_once", "checks_range", "checks_periodic"],
)
def test_a_record_without_a_column(name: str) -> None:
    """A record without a column has no scores."""
    assert score(**{name: None}, judge={}) == {}


def test_odd_numbers() -> None:
    """A number that Python does not convert is skipped, and digits other than 0 to 9 are read."""
    prompts = judge_prompts(
        {
            **RECORD,
            "prediction": f"#*# Week {'1' * 5000}: x\n#*# Week ٣: y\n#*# Week 03: z",
        }
    )
    assert prompts == {"once 3": "Context:  Week ٣: y\n### Instruction: Does this context include the b?"
                                 " Please answer with 'yes' or 'no' only."}  # fmt: skip


def test_the_judge_is_asked_as_officially() -> None:
    """The judge gets the official request once for each check, and any reply is read."""
    annotator = CheckAnnotator.__new__(CheckAnnotator)
    requests = annotator.questions("texts", RECORD)
    assert list(requests) == ["once 1", "once 3", "periodic 2"]
    request = requests["periodic 2"]
    assert request.prompt.startswith(
        "Context:  Week 2: {y}\n### Instruction: Does this context include the c?"
    )
    assert (request.temperature, request.top_p, request.max_tokens) == (0.95, 0.95, 50)
    assert (request.seed, request.readings) == (42, 1)
    assert [request.parse(reply) for reply in ("YES", "eyes", "maybe")] == [
        {"met": 1},
        {"met": 1},
        {"met": 0},
    ]
    typical = write_entries(RECORD, 400)
    assert len(annotator.questions("texts", {**RECORD, "prediction": typical})) == 4
    assert len(typical.split()) == pytest.approx(400, rel=0.05)


def test_headings_alone(tmp_path: Path) -> None:
    """The lexical baseline writes all entries, and does not answer a prompt of another kind."""
    baseline = BENCHMARK.task("texts").baseline.kind
    assert callable(baseline)
    for example in load(build_longgenbench(tmp_path)):
        text = baseline([{"role": "user", "content": example.fields["input"]}])
        assert (
            TASK.scores({**example.record, "prediction": text, "references": []})[
                "completion_rate"
            ]
            == 1
        )
    assert baseline([{"role": "user", "content": "#*# Week 1:\nWrite."}]) is None


def test_published_results() -> None:
    """The published scores are 21 rows of 13 models at two levels."""
    rows = BENCHMARK.published()
    assert len(rows) == 21
    assert len({row.model for row in rows}) == 13
    assert {row.length for row in rows} == set(FILES)
    assert all(0 < row.scores[""] < 0.3 for row in rows)
