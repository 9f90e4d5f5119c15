"""Problems, prompts and scores equal the official code's (golden_makers/gsm_infinite.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.gsm_infinite import BENCHMARK, tasks
from helm_longctx.benchmarks.gsm_infinite.tasks import JUDGEMENT, score_number
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.gsm_infinite.fabricate import (
    CASES,
    SEEDS,
    build_gsm_infinite,
    extractions,
    numbers,
    rows,
)
from tests.support.fabricate_words import write
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SYMBOLIC, MEDIUM, HARD = BENCHMARK.tasks


def draw(root: Path, **given: int) -> list[Example]:
    """Return the examples of the symbolic task with the given settings."""
    return list(load_examples(SYMBOLIC, Settings(**given), DataRoot(root, mirror=True)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES)
def test_symbolic_problems(case: str, seed: int, tmp_path: Path) -> None:
    """Every prompt, value and list of variables is the one that the official script writes with the same seed."""
    length, most, each = CASES[case]
    found = []
    for example in draw(tmp_path, length=length, seed=seed, num_samples=most * each):
        prompt = SYMBOLIC.prompt(example).messages[0]["content"]
        found.append(
            json.dumps(
                [
                    int(example.id.split("-")[0]),
                    prompt,
                    example.record["value"],
                    example.references,
                ]
            )
        )
    assert len(found) == most * each
    assert digest(found) == GOLDEN["drawn"][f"{case} {seed}"]


def test_selection(tmp_path: Path) -> None:
    """Of each kind of medium problem, the official number is asked in the official order."""
    root = DataRoot(build_gsm_infinite(tmp_path), mirror=True)
    found = list(load_examples(MEDIUM, Settings(8192), root))
    asked = [each for each in found if int(each.id.split("-")[0]) < 5]
    assert (
        digest(json.dumps([dict(turn) for turn in each.messages]) for each in asked)
        == GOLDEN["selected"]
    )
    few = list(load_examples(HARD, Settings(0, num_samples=40), root))
    assert {int(each.id.split("-")[0]) for each in few} >= set(range(2, 22))


def test_scores() -> None:
    """Every score of an odd output is the official one; where the official code fails, there is one, too."""
    scores = [
        score_number({"prediction": output, "references": [str(number)]})["accuracy"]
        for output, number in numbers()
    ]
    pairs = [
        (score, official)
        for score, official in zip(scores, GOLDEN["scores"], strict=True)
        if official is not None
    ]
    assert len(pairs) > 2000
    assert [score for score, _ in pairs] == [official for _, official in pairs]
    assert {0, 1} <= set(GOLDEN["scores"])


def test_extraction() -> None:
    """The extractor gets the official prompt, and the variables of its reply are compared as in the official code."""
    prompts = []
    verdicts = []
    for output, value, variables, reply in extractions():
        record = {"prediction": output, "value": value, "references": variables}
        prompts.append(JUDGEMENT.prompts(record))
        verdicts.append(JUDGEMENT.read(reply, record)["judge_score"])
        scores = SYMBOLIC.score(
            {**record, "prediction": f"x\n{reply}\n", "judge": reply}
        )
        assert scores == {
            "judge_score": verdicts[-1],
            "last_line_accuracy": verdicts[-1],
        }
    assert digest(map(str, prompts)) == GOLDEN["extraction"]
    assert verdicts == GOLDEN["verdicts"]


def test_lengths(tmp_path: Path) -> None:
    """Problems without noise have only their own variables, and longer ones as many statements as the official script."""
    (short, *_) = draw(tmp_path, length=0, num_samples=50)
    assert short.fields["context"].count("assign") == 1
    (long, *_) = draw(tmp_path, length=131072, num_samples=10)
    # The noise is a tree of its own, whose root has no statement.
    assert long.fields["context"].count("assign") == int(
        tasks.official_tokens(131072) * 828 / 9668
    )
    assert [
        SYMBOLIC.official_sample(Settings(length))
        for length in (0, 8192, 5000, 9_000_000)
    ] == [
        5000,
        3000,
        1000,
        1000,
    ]
    assert [tasks.official_tokens(length) for length in (8192, 1 << 20, 5000)] == [
        8000,
        1_024_000,
        5000,
    ]


def test_faulty_row(tmp_path: Path) -> None:
    """A solution without a number ends in one line."""
    build_gsm_infinite(tmp_path)
    (path, *_) = MEDIUM.paths(8192)
    faulty = [{**row, "solution": "Answer: many."} for row in rows("ops_2")]
    write(tmp_path / path, faulty)
    with pytest.raises(
        InputError, match=r"row 1 of .*ops_2.jsonl: column 'solution' has no number"
    ):
        list(load_examples(MEDIUM, Settings(8192), DataRoot(tmp_path, mirror=True)))


def test_baselines(tmp_path: Path) -> None:
    """The baselines answer their own problems, and no others."""
    (example, *_) = draw(tmp_path, length=0, num_samples=50)
    assert SYMBOLIC.baseline
    assert MEDIUM.baseline
    assert callable(SYMBOLIC.baseline.kind)
    assert callable(MEDIUM.baseline.kind)
    answer = SYMBOLIC.baseline.kind(SYMBOLIC.prompt(example).messages)
    assert answer == f"The variables are {example.references[0]}."
    assert SYMBOLIC.baseline.kind([{"role": "user", "content": "x"}]) is None
    assert (
        MEDIUM.baseline.kind([{"role": "user", "content": "1 and 2. Solution:"}])
        == "Answer: 2."
    )
