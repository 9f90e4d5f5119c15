"""Tests of what scores hide: answers that were cut, and questions with known errors."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apps.report.build import write_report
from helm_longctx.results.boards import Board, read_suite
from helm_longctx.results.cells import (
    bounds,
    find_wide_bounds,
    notes,
    score_tables,
    without_errors,
)
from helm_longctx.results.reading import (
    CUT,
    WITHOUT_ERRORS,
    Statistic,
    read_results,
    replace_cut_scores,
    without_ends,
)
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.runs.scores import Score, mean_over_questions
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.apps.report.suites import write_run
from tests.support.leaderboards import summarize_suite
from tests.support.scores import make_score

PARENTS = "graphwalks:task=openai_parents,length=128k,model=a/b"
RECALL = "helmet_recall:length=8k,model=a/b"


def row(instance: int, repeat: int, score: float | None, is_cut: bool) -> Score:
    return make_score(
        score,
        f"task-{instance}",
        repeat=repeat,
        group=f"group {instance}",
        values={"output_truncated": float(is_cut)},
    )


rows = st.lists(
    st.tuples(
        st.integers(0, 5), st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]), st.booleans()
    ),
    min_size=1,
    max_size=20,
).map(
    lambda answers: [
        row(instance, repeat, *rest) for repeat, (instance, *rest) in enumerate(answers)
    ]
)


@given(rows)
def test_bounds_contain_the_score(answers: list[Score]) -> None:
    """The score is between the bounds, and the bounds are those of a mean over questions of the replaced scores."""
    score = mean_over_questions(answers)
    wrong, left_out, best = (
        mean_over_questions(replace_cut_scores(answers, value))
        for value in (0.0, None, 1.0)
    )
    having = [answer for answer in answers if answer.score is not None]
    if not having:
        assert all(map(math.isnan, (score, wrong, left_out, best)))
        return
    assert wrong <= score + 1e-12
    assert score <= best + 1e-12

    def mean(value: float) -> float:
        questions: dict[str, list[float]] = {}
        for result in having:
            questions.setdefault(result.instance, []).append(
                value if result.values["output_truncated"] else result.score or 0
            )
        return fmean(map(fmean, questions.values()))

    assert (wrong, best) == pytest.approx((mean(0.0), mean(1.0)))
    assert math.isnan(left_out) == all(
        result.values["output_truncated"] for result in having
    )
    assert math.isnan(left_out) or 0 <= left_out <= 1


def board_of(
    tmp_path: Path, *entries: str, instances: int = 30, flaws: bool = True
) -> Board:
    suite = tmp_path / "runs/s"
    for entry in entries:
        write_run(suite, entry, "a/b", 0.5, instances, "", flaws=flaws)
    return read_suite(suite, BENCHMARKS).boards[0]


def test_bounds_of_a_mean_are_means_of_bounds(tmp_path: Path) -> None:
    """A category's bounds are the means of its tasks' bounds; published scores have none."""
    board = board_of(tmp_path, RECALL)
    (category,) = board.categories
    limits = bounds(category)
    parts = [bounds(part) for part in category.parts]
    assert limits
    assert len(parts) == 4
    for name in ("wrong", "left_out", "best", "share"):
        assert getattr(limits, name) == pytest.approx(
            fmean(getattr(part, name) for part in parts)
        )
    assert limits.wrong <= category.interval.mean <= limits.best
    published = (
        read_suite(tmp_path / "runs/s", BENCHMARKS, published=True)
        .boards[0]
        .results.values()
    )
    assert [bounds(row) for row in published if row.is_published][:3] == [None] * 3


def test_runs_without_cut_answers_have_narrow_bounds(tmp_path: Path) -> None:
    """If nothing was cut, the bounds are the score; and of runs that did not count cut answers they are not known."""
    board = board_of(tmp_path, RECALL, flaws=False)
    assert all(bounds(task) is None for task in board.tasks)
    assert not any("Cut answers" in line for line in notes([board]))


def test_bounds_within_the_interval_are_not_shown(tmp_path: Path) -> None:
    """Bounds are shown only if one of them is outside the interval of the score."""
    shown = {}
    for instances in (4, 300):
        board = board_of(tmp_path / str(instances), RECALL, instances=instances)
        for task in board.tasks:
            limits = bounds(task)
            assert limits
            is_wide = (
                limits.wrong < task.interval.low or limits.best > task.interval.high
            )
            assert find_wide_bounds(task) == (limits if is_wide else None)
        lines = [
            line
            for line in notes([board])
            if line.startswith("Cut answers: HELMET, a/b, ")
        ]
        shown[instances] = len(lines)
    assert shown[4] < shown[300]
    assert all(
        re.search(r": \d+\.?\d* % of the answers are cut: \d", line) for line in lines
    )


@pytest.mark.usefixtures("empty_pictures")
def test_scores_without_known_errors_stand_beside_the_published_ones(
    tmp_path: Path,
) -> None:
    """The printed table, HELM's pages and the report have both scores, and the report lists the questions."""
    board = board_of(tmp_path, PARENTS, instances=20)
    (result,) = board.tasks
    wrong = {f"openai_parents-{number}" for number in range(0, 20, 5)}
    assert set(result.errata) == wrong
    right = without_errors(result)
    assert right
    scores = [
        answer.score
        for answer in result.answers
        if answer.instance not in wrong and answer.score is not None
    ]
    assert (right.mean, right.n) == (pytest.approx(fmean(scores)), len(scores))
    (table,) = score_tables([board])
    assert table.header[1:] == [
        f"OpenAI's Parents\nn={result.interval.n}",
        f"OpenAI's Parents without\nknown errors, n={right.n}",
    ]
    assert table.rows[0][2].line.startswith(f"{100 * right.mean:.1f} (")
    assert (
        "Known errors: GraphWalks, OpenAI's Parents: 4 questions, which the report lists"
        in list(notes([board]))
    )
    summarize_suite("s", tmp_path)
    pages = "".join(
        path.read_text() for path in (tmp_path / "runs/s/groups").glob("*.json")
    )
    assert (
        f"{100 * right.mean:.1f} without questions with known errors (n = {right.n})"
        in pages
    )
    index = write_report(
        tmp_path / "runs/s",
        [find_benchmark("graphwalks")],
        tmp_path / "r",
        "markdown",
        published=False,
        server="",
    )
    text = index.read_text().replace("\\", "")
    for instance in wrong:
        assert (
            f"{instance} | the expected parents contain the node itself | 2026-02-27 | https://hugging"
            in text
        )
    assert "openai_parents-1 |" not in text
    assert "Scores without known errors" in text


def test_means_without_known_errors(tmp_path: Path) -> None:
    """A mean without known errors is of the tasks without these questions and of the other tasks as they are."""
    board = board_of(tmp_path, "mrcr:length=8k,model=a/b", instances=20)
    (category,) = board.categories
    corrected_result = without_errors(category)
    parts = [without_errors(part) for part in category.parts]
    assert corrected_result
    assert corrected_result.mean == pytest.approx(
        fmean(part.mean for part in parts if part)
    )
    assert without_errors(board_of(tmp_path / "other", RECALL).categories[0]) is None


def test_a_mean_of_one_score_is_not_shown_again(tmp_path: Path) -> None:
    """Of a run of one task, the bounds are shown once, although the mean of the category is the same score."""
    board = board_of(
        tmp_path, "helmet_recall:task=json_kv,length=8k,model=a/b", instances=300
    )
    (line,) = (line for line in notes([board]) if line.startswith("Cut answers"))
    assert line.startswith("Cut answers: HELMET, a/b, JSON KV 8k: ")


def test_answers_are_not_needed(tmp_path: Path) -> None:
    """Results without the scores of answers have the same bounds and scores without known errors."""
    board_of(tmp_path, PARENTS)
    every, lean = (
        read_results(tmp_path / "runs/s", BENCHMARKS, keep) for keep in (True, False)
    )
    assert [bounds(result) for result in every] == [bounds(result) for result in lean]
    assert [without_errors(result) for result in every] == [
        without_errors(result) for result in lean
    ]


def test_bounds_of_a_mean_need_those_of_all_parts(tmp_path: Path) -> None:
    """A mean of which one part does not know its cut answers has no bounds; a part without a score does not count."""
    category = board_of(tmp_path, RECALL).categories[0]
    known = [
        replace(
            part, statistics={**part.statistics, CUT: Statistic(Interval(0.0, 0, 0, 3))}
        )
        for part in category.parts
    ]
    assert bounds(replace(category, parts=tuple(known))) is not None
    unknown = replace(known[0], statistics={})
    assert bounds(replace(category, parts=(unknown, *known[1:]))) is None
    none = replace(unknown, interval=without_ends(math.nan))
    assert bounds(replace(category, parts=(none, *known[1:]))) == bounds(
        replace(category, parts=tuple(known[1:]))
    )


def test_a_mean_without_errors_takes_the_other_parts_as_they_are(
    tmp_path: Path,
) -> None:
    """Parts without known errors keep their scores, a part whose questions all have errors makes it unknown, and no error none."""
    category = board_of(tmp_path, RECALL).categories[0]
    parts = [
        replace(part, interval=Interval(0.5, 0.4, 0.6, 10), statistics={})
        for part in category.parts
    ]
    assert without_errors(replace(category, parts=tuple(parts))) is None
    right = replace(
        parts[0], statistics={WITHOUT_ERRORS: Statistic(Interval(0.9, 0.8, 1.0, 8))}
    )
    corrected_result = without_errors(replace(category, parts=(right, *parts[1:])))
    assert corrected_result is not None
    assert corrected_result.mean == pytest.approx(
        (0.9 + 0.5 * (len(parts) - 1)) / len(parts)
    )
    nothing = replace(
        right, statistics={WITHOUT_ERRORS: Statistic(without_ends(math.nan))}
    )
    assert without_errors(nothing) is None
    assert without_errors(replace(category, parts=(nothing, *parts[1:]))) is None
    others = without_errors(
        replace(
            category,
            parts=(replace(nothing, interval=without_ends(math.nan)), *parts[1:]),
        )
    )
    assert others is not None
    assert (others.mean, others.n) == (0.5, 10 * (len(parts) - 1))
