"""Tests of comparisons of models on a suite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helm_longctx.errors import InputError
from helm_longctx.results.boards import make_boards
from helm_longctx.results.comparison import (
    PairedInstance,
    SharedTable,
    add_reverses,
    task_weights,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import FAILURES_DECIDE, compare_pairs
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.boards import make_entry_boards
from tests.support.results import result


def compare(results: list[Result], models: list[str]) -> SharedTable:
    return SharedTable(make_boards(results, BENCHMARKS), models)


def test_a_clear_difference() -> None:
    """A clear difference is found on everything, by task and by depth, and the instances that cause it are named."""
    results = [
        result("a/good", "nq", lambda question, depth: 1.0),
        result(
            "a/bad", "nq", lambda question, depth: float(question % 2 or depth == 0)
        ),
        result("a/good", "popqa", lambda question, depth: 0.5),
        result("a/bad", "popqa", lambda question, depth: 0.5),
    ]
    table = compare(results, ["a/good", "a/bad"])
    pairings = {(pairing.by, pairing.part): pairing for pairing in table.pairings()}
    everything = pairings["all", ""]
    assert everything.comparison.effect.mean == pytest.approx((0.5 * 5 / 6) / 2)
    assert everything.better == "a/good"
    assert (
        everything.comparison.wins,
        everything.comparison.losses,
        everything.comparison.ties,
    ) == (75, 0, 285)
    assert pairings["task", "popqa"].better == ""
    assert pairings["depth", "0 %"].comparison.effect.mean == 0
    assert pairings["depth", "100 %"].comparison.effect.mean == pytest.approx(0.25)
    assert pairings["length", "8k"].comparison == everything.comparison
    first, *_ = contrasts = table.contrasts("a/good", "a/bad", 3, "http://host")
    assert (first.item, first.one, first.other) == (
        PairedInstance("helmet_rag", "nq", 8192, "full", "nq-1"),
        1,
        0,
    )
    assert first.links[1] == "http://host/#/runs/run-a%2Fbad?instance=nq-1"
    assert len(contrasts) == 3


def test_contrasts_have_the_largest_differences_first() -> None:
    """Wins and losses come in turn, each with the largest difference first, and the rest of the longer list follows."""
    gaps = [0.0, 0.25, -0.5, 1.0, 0.75, -0.25, 0.5]
    results = [
        result("a/one", "nq", lambda question, depth: max(gaps[question], 0.0), 7),
        result("a/two", "nq", lambda question, depth: max(-gaps[question], 0.0), 7),
    ]
    for made in results:
        kept = [answer for answer in made.answers if answer.depth == 0]
        results[results.index(made)] = replace(made, answers=tuple(kept))
    table = compare(results, ["a/one", "a/two"])
    contrasts = table.contrasts("a/one", "a/two", 99, "")
    differences = [contrast.one - contrast.other for contrast in contrasts]
    assert differences == [1.0, -0.5, 0.75, -0.25, 0.5, 0.25]
    assert [contrast.item.instance for contrast in contrasts[:2]] == ["nq-18", "nq-12"]
    reverse = table.contrasts("a/two", "a/one", 4, "")
    differences = [contrast.one - contrast.other for contrast in reverse]
    assert differences == [0.5, -1.0, 0.25, -0.75]


@pytest.mark.parametrize(
    ("lengths", "starts"),
    [
        ((8192,), ["a/two"]),
        (
            (8192, 16384),
            ["a/two", "At 8k a/one", "At 16k a/two"],
        ),
    ],
)
def test_sentences_on_two_models(lengths: tuple[int, ...], starts: list[str]) -> None:
    """With several lengths, a sentence on each follows the one on everything, shortest length first, about its own best model."""
    results = []
    for length in reversed(lengths):
        is_reversed = length == 8192 and len(lengths) > 1
        first = 0.6 if is_reversed else 0.0
        results += [
            result("a/one", "nq", lambda question, depth, won=first: won, 30, length),
            result("a/two", "nq", lambda question, depth: 0.5, 30, length),
        ]
    table = compare(results, ["a/one", "a/two"])
    pairings = table.pairings()
    sentences = list(table.describe(pairings, table.standings(pairings)))
    assert len(sentences) == len(starts)
    for sentence, start in zip(sentences, starts, strict=True):
        assert sentence.startswith(start), sentences


def test_copies_of_a_question_prove_nothing() -> None:
    """Three questions won of three are a tie, although they are 18 instances at six depths."""
    results = [
        result("a/one", "nq", lambda question, depth: 1.0, questions=3),
        result("a/two", "nq", lambda question, depth: 0.0, questions=3),
    ]
    (pairing,) = (
        pairing
        for pairing in compare(results, ["a/one", "a/two"]).pairings()
        if pairing.by == "all"
    )
    assert pairing.comparison.p_value == pytest.approx(
        compare_pairs([1] * 3, [0] * 3).p_value
    )
    assert pairing.better == ""


def test_three_models() -> None:
    """The best of three models is first, models that do not differ share their ranks' interval, and p-values are adjusted."""
    random = np.random.default_rng(0)
    noise = {name: random.random(60) for name in "xyz"}
    results = [
        result(
            f"a/{name}",
            task,
            lambda question, depth, name=name: min(
                1, noise[name][question] + 0.5 * (name == "x")
            ),
        )
        for name in "xyz"
        for task in ("nq", "popqa")
    ]
    table = compare(results, ["a/z", "a/x", "a/y"])
    best, *others = table.standings(table.pairings())
    assert (best.model, best.rank.rank, best.rank.high) == ("a/x", 1, 1)
    assert all((other.rank.low, other.rank.high) == (2, 3) for other in others)
    pairs = [pairing for pairing in table.pairings() if pairing.by == "all"]
    assert len(pairs) == 3
    assert sorted(pair.better for pair in pairs) == ["", "a/x", "a/x"]
    assert all(pair.decision.adjusted >= pair.comparison.p_value for pair in pairs)


def test_models_without_anything_in_common() -> None:
    """One line says that models have no scored instance in common."""
    results = [
        result("a/one", "nq", lambda question, depth: 1.0),
        result("a/two", "popqa", lambda question, depth: 1.0),
    ]
    with pytest.raises(
        InputError, match="a/one, a/two have no scored instance in common"
    ):
        compare(results, ["a/one", "a/two"])
    with pytest.raises(
        InputError, match=r"model='a/tow' has no scored instance.*did you mean a/two"
    ):
        compare(results, ["a/one", "a/tow"])


def test_lengths_and_depths_are_in_order() -> None:
    """Lengths and depths are in the order of their numbers, although the suite has a longer length and a later depth first."""
    results = [
        replace(made, answers=tuple(reversed(made.answers)))
        for length in (16384, 8192)
        for made in (
            result("a/one", "nq", lambda question, depth: 1.0, length=length),
            result("a/two", "nq", lambda question, depth: 0.0, length=length),
        )
    ]
    parts = [
        (pairing.by, pairing.part)
        for pairing in compare(results, ["a/one", "a/two"]).pairings()
    ]
    assert [part for by, part in parts if by == "length"] == ["8k", "16k"]
    assert [part for by, part in parts if by == "depth"] == [
        "0 %",
        "20 %",
        "40 %",
        "60 %",
        "80 %",
        "100 %",
    ]


def test_weights_within_a_category() -> None:
    """Categories have equal weights, tasks equal ones in their category, and tasks that a model lacks leave theirs to the others."""
    entries = (
        "helmet_recall:length=8k",
        "helmet_rag:length=8k",
        "helmet_ruler:length=8k",
    )
    (board,) = make_entry_boards(*entries)
    recall, rag = (
        [task.name for task in board.benchmark.entries[f"helmet_{name}"].tasks]
        for name in ("recall", "rag")
    )
    assert task_weights(board, [*recall, *rag], 8192) == pytest.approx(
        dict.fromkeys([*recall, *rag], 1 / 8)
    )
    two = task_weights(board, [*recall, *rag[:2]], 8192)
    assert two == pytest.approx(
        {**dict.fromkeys(recall, 1 / 8), **dict.fromkeys(rag[:2], 1 / 4)}
    )
    assert task_weights(board, [*recall, *rag], 8192, "helmet_rag") == pytest.approx(
        dict.fromkeys(rag, 1 / 4)
    )
    alone = ["ruler_vt", "ruler_cwe"]
    assert task_weights(board, [*recall, *alone], 8192) == pytest.approx(
        dict.fromkeys(recall, 1 / 4)
    )
    assert task_weights(board, alone, 8192) == pytest.approx(
        dict.fromkeys(alone, 1 / 2)
    )


def test_a_comparison_has_the_weights_of_categories() -> None:
    """A task alone in its category counts as much as both tasks of another one."""
    recall = [
        replace(
            result(model, task, lambda question, depth, won=won: won),
            entry="helmet_recall",
        )
        for model, scores in (("a/one", (1.0, 0.0)), ("a/two", (0.0, 0.0)))
        for task, won in zip(("json_kv", "ruler_niah_mk_2"), scores, strict=True)
    ]
    rag = [
        result(model, "nq", lambda question, depth, won=won: won)
        for model, won in (("a/one", 0.0), ("a/two", 1.0))
    ]
    pairings = compare([*recall, *rag], ["a/one", "a/two"]).pairings()
    effects = {
        (pairing.by, pairing.part): pairing.comparison.effect.mean
        for pairing in pairings
    }
    assert effects["all", ""] == pytest.approx((1 / 2 + 0) / 2 - 1 / 2)
    assert effects["length", "8k"] == effects["all", ""]


def test_failures_of_wrong_answers_make_no_model_better() -> None:
    """If a model fails on what it would get wrong, the text and the record say so, and none of two equal models is better."""
    results = [
        result(
            "a/answers", "nq", lambda question, depth: float(question % 2), questions=60
        ),
        result(
            "a/refuses",
            "nq",
            lambda question, depth: 1.0 if question % 2 == 0 else None,
            60,
        ),
    ]
    # The questions that both answer are those on which the first one is wrong.
    table = compare(results, ["a/answers", "a/refuses"])
    pairings = table.pairings()
    everything = pairings[0]
    failures = everything.comparison.failures
    assert failures is not None
    assert everything.comparison.effect.mean == -1
    assert (failures.asked, failures.one.share, failures.other.share) == (360, 0, 0.5)
    assert (failures.other.other_score, failures.other.other_n) == (1, 180)
    assert failures.p_value < 0.001
    assert failures.as_wrong.effect.mean == pytest.approx(0)
    assert failures.as_right.effect.mean == pytest.approx(-0.5)
    assert everything.better == ""
    assert everything.decision.verdict == FAILURES_DECIDE
    (sentence,) = table.describe(pairings, table.standings(pairings))
    assert FAILURES_DECIDE in sentence
    assert "no answer: 50.0 % of a/refuses and 0.0 % of a/answers" in sentence
    ranks = {standing.model: standing.rank for standing in table.standings(pairings)}
    assert {(rank.low, rank.high) for rank in ranks.values()} == {(1, 2)}


def test_without_failures_nothing_is_said_about_them() -> None:
    """Models that answer everything have no failures in their comparison, and its p-value decides."""
    results = [
        result("a/good", "nq", lambda question, depth: 1.0),
        result("a/bad", "nq", lambda question, depth: 0.0),
    ]
    pairing = compare(results, ["a/good", "a/bad"]).pairings()[0]
    assert pairing.comparison.failures is None
    assert pairing.comparison.decisive_p_value == pairing.comparison.p_value
    assert pairing.decision.verdict == "better"
    reverse = add_reverses({("a/good", "a/bad"): pairing.decision})["a/bad", "a/good"]
    assert reverse.verdict == "worse"
