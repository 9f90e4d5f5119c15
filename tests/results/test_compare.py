"""Comparisons of models on a suite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helm_longctx.errors import InputError
from helm_longctx.report.compare import Item, Table
from helm_longctx.report.results import Result, interval_of
from helm_longctx.runs.scores import InstanceScore

DEPTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def result(
    model: str, task: str, score: Callable[[int, float], float], questions: int = 30, length: int = 8192
) -> Result:
    """A model's scores on questions at six depths."""
    rows = tuple(
        InstanceScore(
            f"run-{model}",
            model,
            "helmet_rag",
            task,
            length,
            "full",
            f"{task}-{6 * question + place}",
            0,
            score(question, depth),
            f"{task}: {question}",
            depth,
            "",
            None,
            "",
            {},
        )
        for question in range(questions)
        for place, depth in enumerate(DEPTHS)
    )
    return Result("helmet", "rag", task, model, length, "full", interval_of(rows), rows=rows)


def test_a_clear_difference() -> None:
    """It is found on everything, by task and by depth, and the instances behind it are named."""
    results = [
        result("a/good", "nq", lambda question, depth: 1.0),
        result("a/bad", "nq", lambda question, depth: float(question % 2 or depth == 0)),
        result("a/good", "popqa", lambda question, depth: 0.5),
        result("a/bad", "popqa", lambda question, depth: 0.5),
    ]
    table = Table(results, ["a/good", "a/bad"])
    pairings = {(each.by, each.part): each for each in table.pairings()}
    everything = pairings["all", ""]
    assert everything.comparison.effect.mean == pytest.approx((0.5 * 5 / 6) / 2)
    assert everything.better == "a/good"
    assert (everything.comparison.wins, everything.comparison.losses, everything.comparison.ties) == (75, 0, 285)
    assert pairings["task", "popqa"].better == ""
    assert pairings["depth", "0 %"].comparison.effect.mean == 0
    assert pairings["depth", "100 %"].comparison.effect.mean == pytest.approx(0.25)
    assert pairings["length", "8k"].comparison == everything.comparison
    first, *_ = differences = table.differences("a/good", "a/bad", 3, "http://host")
    assert (first.item, first.one, first.other) == (Item("helmet_rag", "nq", 8192, "full", "nq-1"), 1, 0)
    assert first.links[1] == "http://host/#/runs/run-a%2Fbad?instance=nq-1"
    assert len(differences) == 3


def test_copies_of_a_question_prove_nothing() -> None:
    """Three of three questions won at all depths are 18 instances, and still a tie."""
    results = [
        result("a/one", "nq", lambda question, depth: 1.0, questions=3),
        result("a/two", "nq", lambda question, depth: 0.0, questions=3),
    ]
    (pairing,) = (each for each in Table(results, ["a/one", "a/two"]).pairings() if each.by == "all")
    assert pairing.comparison.p_value == 0.125
    assert pairing.better == ""


def test_three_models() -> None:
    """Best first; two that do not differ share their ranks' interval; p-values are adjusted for three pairs."""
    random = np.random.default_rng(0)
    noise = {name: random.random(60) for name in "xyz"}
    results = [
        result(
            f"a/{name}", task, lambda question, depth, name=name: min(1, noise[name][question] + 0.5 * (name == "x"))
        )
        for name in "xyz"
        for task in ("nq", "popqa")
    ]
    table = Table(results, ["a/z", "a/x", "a/y"])
    best, *others = table.standings()
    assert (best.model, best.rank.rank, best.rank.high, best.kemeny, best.borda) == ("a/x", 1, 1, 1, 2)
    assert all((other.rank.low, other.rank.high) == (2, 3) for other in others)
    assert best.profile[0] == 1
    assert best.profile[-1] == 0
    pairs = [each for each in table.pairings() if each.by == "all"]
    assert len(pairs) == 3
    assert sorted(each.better for each in pairs) == ["", "a/x", "a/x"]
    assert all(each.adjusted >= each.comparison.p_value for each in pairs)


def test_models_without_anything_in_common() -> None:
    """One line says so."""
    results = [
        result("a/one", "nq", lambda question, depth: 1.0),
        result("a/two", "popqa", lambda question, depth: 1.0),
    ]
    with pytest.raises(InputError, match="a/one, a/two have no scored instance in common"):
        Table(results, ["a/one", "a/two"])
    with pytest.raises(InputError, match=r"model='a/tow' has no scored instance.*did you mean a/two"):
        Table(results, ["a/one", "a/tow"])
