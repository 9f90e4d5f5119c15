"""Tests of the page "Score and cost", on runs of scripted models with known costs and losses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helm_longctx.apps.costs.sections import (
    Costs,
    cost_sections,
    find_accuracies,
    find_costs,
    find_frontier,
    find_points,
    find_unsure,
)
from helm_longctx.apps.report.build import write_instance_pages
from helm_longctx.documents.document import Report
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, read_suite
from helm_longctx.results.comparison import find_differences
from helm_longctx.results.statistics.comparison import Decision
from helm_longctx.results.statistics.level import ABOUT_SCORES
from helm_longctx.run_settings import PRICES
from helm_longctx.tasks.loading import grow
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example
from tests.runner import making
from tests.runner.scripted_runs import BASE, MODEL, serving
from tests.support import scripted
from tests.support.simulations import place_on_frontier


def make_board(folder: Path, *methods: str, loss: float = 0.0) -> Board:
    """Ask by several methods, and return the board of the suite."""
    keep = scripted.lose(loss, seed=1)
    with serving(lambda prompt: scripted.answer(prompt, keep)):
        for method in methods:
            making.make_run(folder, BASE + method + MODEL, cache=False)
    (board,) = read_suite(
        folder / "benchmark_output/runs/s", BENCHMARKS, keep_answers=True
    ).boards
    return board


@pytest.fixture(autouse=True)
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set prices of the scripted model, and a wait of a millisecond before failed requests are sent again."""
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.001")
    (tmp_path / "prices.yaml").write_text(
        json.dumps({"corp/scripted": {"input": 100, "output": 1000}})
    )
    monkeypatch.setenv(PRICES, str(tmp_path / "prices.yaml"))


def test_costs_stand_beside_scores(tmp_path: Path) -> None:
    """A method that loses everything early is cheap and wrong, a whole one costs more; a wasteful one is beaten."""
    board = make_board(
        tmp_path,
        "plain",
        "compact,turn=1000,threshold=2000,kept=50",
        "refine,part=1000,notes=4000",
        loss=1.0,
    )
    (length,) = board.lengths
    costs = {
        cost.score.model.partition(" (")[2] or "plain": cost
        for cost in find_costs(board, length, "json_kv")
    }
    plain, compact, refine = (
        next(cost for name, cost in costs.items() if name.startswith(start))
        for start in ("plain", "method=compact", "method=refine")
    )
    assert plain.requests == 1
    assert compact.compactions == compact.requests - 1 >= 2
    assert (
        plain.score.interval.mean
        == refine.score.interval.mean
        == 1
        > compact.score.interval.mean
    )
    assert refine.tokens is not None
    assert plain.tokens is not None
    assert refine.tokens > plain.tokens
    assert compact.retained_tokens is not None
    frontier = find_frontier([*costs.values()], lambda method_cost: method_cost.tokens)
    assert plain in frontier
    assert refine not in frontier
    assert compact.dollars
    # With four questions, a row that is dearer and better can be so by chance.
    prices = {compact.score.model: 1.0, plain.score.model: 2.0, refine.score.model: 3.0}
    rows = [plain, compact, refine]

    def price(costs: Costs) -> float | None:
        return prices[costs.score.model]

    best = find_frontier(rows, price)
    assert best == [plain, compact]
    differences = find_differences(board, "json_kv", length)
    assert find_unsure(best, rows, price, differences) == [plain]
    pair = (plain.score.model, compact.score.model)
    surely = Decision(
        replace(differences[pair].comparison, p_value=0.001), adjusted=0.001
    )
    assert find_unsure(best, rows, price, {**differences, pair: surely}) == []
    (section,) = cost_sections(board)
    titles = [block.title for block in section.blocks]  # type: ignore[union-attr]
    assert titles[:3] == [
        "Score and cost of a question: JSON KV",
        "Score and tokens",
        "Score and dollars",
    ]
    assert "Gains of methods over plain prompts" in titles
    assert any(title.startswith("Score by how often") for title in titles)
    compacted = find_accuracies(compact.score.task_results[0].answers)
    assert [row.score for row in compacted] == [
        1.0 if row.times == 0 else 0.0 for row in compacted
    ]
    assert sum(row.n for row in compacted) == 4
    # Evidence early in the stream is compacted more often.
    assert max(compacted[-1].depths) < min(compacted[0].depths)
    sizes, accuracies = (
        next(block for block in section.blocks if block.name.endswith(end))
        for end in ("-retained", "-compacted")
    )
    assert sizes.header == ["Model", "Compactions", "Retained tokens"]  # type: ignore[union-attr]
    assert accuracies.header[:4] == ["Model", "Times compacted", "Answers", "Score"]  # type: ignore[union-attr]


def test_equal_rows_are_on_the_frontier_with_a_question_mark() -> None:
    """A dearer row that is as good by its true score has no question mark by chance in at most 5 % of samples.

    A row that is 30 points better has none in most samples. `python -m bench.decisions methods` has more rounds.
    """
    random = np.random.default_rng(3)
    rounds = 200
    on_frontier = 0
    wrong = 0
    count = 0
    for _ in range(rounds):
        level = random.random((4, 100))
        equal = place_on_frontier((level[:3] < 0.6).astype(float))
        on_frontier += bool(equal.dearer)
        wrong += bool(equal.sure)
        better = place_on_frontier((level[[0, 3]] < [[0.5], [0.8]]).astype(float))
        count += better.sure == [1]
    assert on_frontier > 0.4 * rounds
    assert wrong <= 0.05 * rounds
    assert count > 0.8 * rounds


def test_steps_are_on_the_page_of_an_instance(tmp_path: Path) -> None:
    """The page of instances has a fold for each request, with its tokens, seconds and dollars."""
    board = make_board(tmp_path, "map_reduce,part=1000")
    report = Report(
        title="Suite", suite="s", made="today", about=ABOUT_SCORES, pages=[]
    )
    (page,) = write_instance_pages(report, [board], tmp_path / "site", "")
    text = (page.with_suffix("") / "0.js").read_text()
    assert '"facts":"map · ' in text.replace('": "', '":"')
    assert " tokens · " in text
    assert " s · $" in text


def test_a_growing_context(tmp_path: Path) -> None:
    """A question is asked after each part of its context; it is answered when its evidence has come, and not before."""
    board = make_board(
        tmp_path,
        "plain,stream=2000",
        "compact,turn=1000,threshold=2000,kept=4000,stream=2000",
    )
    (length,) = board.lengths
    length_costs = find_costs(board, length, "json_kv")
    assert len(length_costs) == 2
    for costs in length_costs:
        known = find_points(costs.score.task_results[0].answers)
        assert [row.tokens for row in known] == [
            2000 * number for number in range(1, len(known) + 1)
        ]
        assert len(known) > 2
        assert {row.after for row in known} <= {1.0, None}
        assert {row.before for row in known} == {0.0, None}
        assert known[-1].before is None
        assert {
            caveat.detail for caveat in costs.score.caveats if caveat.kind == "stream"
        } == {"2000"}
    (section,) = cost_sections(board)
    # A stream asks about beginnings, too, so it is cheap without being better than anything.
    assert [block.kind for block in section.blocks] == ["table"] * len(section.blocks)
    assert "Frontier" not in section.blocks[0].header  # type: ignore[union-attr]
    assert section.blocks[-1].title == "What is known after each part of the stream"  # type: ignore[union-attr]


def test_too_many_points() -> None:
    """A number of tokens that makes too many points is refused before anything is sent."""
    example = Example(
        "one", {"context": "word " * 10_000, "question": "?"}, ["x"], "generated"
    )
    with pytest.raises(
        InputError,
        match=r"stream=100 asks one at 1\d\d points of its context; at most 64 are allowed",
    ):
        list(grow(example, 100))
