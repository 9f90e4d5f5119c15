"""Prompts, scores and the judge's requests equal the official code's on the same data (golden_makers/loogle.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.loogle import BENCHMARK
from helm_longctx.benchmarks.loogle.tasks import CLOZE, ROWS, SIMILARITY, SUMMARY
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.loogle.fabricate import build_loogle, judged, records, rows
from tests.support.fabricate_words import write
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


@pytest.mark.parametrize("name", ROWS)
def test_prompts(name: str, tmp_path: Path) -> None:
    """The prompts of all questions, their budgets and the reference answers are the official ones."""
    task = BENCHMARK.task(name)
    root = DataRoot(build_loogle(tmp_path), mirror=True)
    found = []
    for example in load_examples(task, Settings(None), root):
        (reference,) = example.references
        answer = json.loads(reference) if name == CLOZE else reference
        found.append(
            [
                task.prompt(example).messages[0]["content"],
                task.output_tokens(Settings(None)),
                answer,
            ]
        )
    assert digest(map(json.dumps, found)) == GOLDEN["prompts"][name]


def test_scores() -> None:
    """Every score is the official one, digit for digit."""
    for (name, _, answer, output), official in zip(
        records(), GOLDEN["scores"], strict=True
    ):
        reference = json.dumps(answer) if name == CLOZE else answer
        scores = BENCHMARK.task(name).score(
            {"prediction": output, "references": [reference]}
        )
        names = (
            ("exact_masks", "partial_masks", "masks") if name == CLOZE else SIMILARITY
        )
        assert [scores[name] for name in names] == official, (name, answer, output)


def test_judge() -> None:
    """The judge gets the official texts with the official settings, and its replies are read as in the official code."""
    asked = []
    verdicts = []
    for name, question, answer, output, reply in judged():
        own = BENCHMARK.task(name).judgement
        assert own is not None
        record = {"question": question, "references": [answer], "prediction": output}
        prompt = own.prompts(record)
        asked.append(json.dumps([*filter(None, [own.system]), prompt]))
        verdicts.append(own.read(reply, record).get("judge_score"))
        assert [own.temperature, own.top_p, own.max_tokens] == GOLDEN["settings"]
    assert digest(asked) == GOLDEN["judge"]
    for (name, *_), verdict, official in zip(
        judged(), verdicts, GOLDEN["verdicts"], strict=True
    ):
        # A grade out of the range that the prompt names is no verdict here.
        in_range = (
            official is not None and 0 <= int(official) <= 100
            if name == SUMMARY
            else official in ("True", "False")
        )
        assert verdict == (
            (int(official) / 100 if name == SUMMARY else official == "True")
            if in_range
            else None
        )


def test_errors_and_groups(tmp_path: Path) -> None:
    """Questions on a text are a group, and a row of another form ends in one line."""
    task = BENCHMARK.task("longdep_qa")
    root = DataRoot(build_loogle(tmp_path), mirror=True)
    examples = list(load_examples(task, Settings(None), root))
    assert [example.group for example in examples] == [
        group
        for row in range(0, len(examples), 5)
        for group in [examples[row].group] * 5
    ]
    (path,) = task.paths(None)
    for faulty, message in (
        ({"context": "x", "question": "y"}, "column 'input' must be str, found nothing; its columns are 'context', 'question'"),
        ({**rows("longdep_qa")[0], "qa_pairs": "[{'Q': 1}]"}, "row 1 of .*: column 'qa_pairs' must be a list of objects"),
    ):  # fmt: skip
        write(tmp_path / path, [faulty])
        with pytest.raises(InputError, match=message):
            list(load_examples(task, Settings(None), root))


def test_code_in_an_answer_is_not_run(tmp_path: Path) -> None:
    """An answer that is a Python call is wrong, and the call is not made."""
    target = tmp_path / "x"
    scores = BENCHMARK.task(CLOZE).score(
        {
            "prediction": f"dict([('<mask-0>', open({str(target)!r}, 'w').name)])",
            "references": ['{"<mask-0>": "x"}'],
        }
    )
    assert scores["exact_match"] == 0
    assert not target.exists()
