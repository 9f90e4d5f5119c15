"""Tests of the leaderboard's page: the answer, the order of rows, floors, marks and missing values."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from helm_longctx.apps.report.leaderboard import first_models, leaderboard_sections
from helm_longctx.documents.document import Cell, Figure, HeadlineAnswer, Section, Table
from helm_longctx.results.boards import OVERALL, Board, make_boards, published_boards
from helm_longctx.results.comparison import find_differences
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.registry import find_benchmark

K = 1024
MakeBoard = Callable[..., Board]


def blocks_of(section: Section) -> tuple[HeadlineAnswer, Table]:
    """Return the answer and the leaderboard of a section."""
    answer = next(
        block for block in section.blocks if isinstance(block, HeadlineAnswer)
    )
    return answer, next(block for block in section.blocks if isinstance(block, Table))


def rows_by_model(table: Table) -> dict[str, dict[str, Cell]]:
    """Return the cells of each row by title, by model."""
    return {
        row[1].text: dict(zip(table.header, row, strict=True)) for row in table.rows
    }


def test_overall_is_the_mean_of_the_columns(published: Board) -> None:
    """The overall score is the mean of the columns, and its interval is narrower than the columns' intervals."""
    model = "published/GPT-4o-08"
    overall = published.score(model, OVERALL, 128 * K)
    columns = [
        published.scores[model, part, 128 * K, "full"] for part in published.columns
    ]  # type: ignore[index]
    assert overall is not None
    assert overall.interval.mean == pytest.approx(
        fmean(column.interval.mean for column in columns)
    )
    assert overall.interval.low < overall.interval.mean < overall.interval.high
    assert overall.interval.high - overall.interval.low < min(
        column.interval.high - column.interval.low
        for column in columns
        if column.interval.mean < 0.6
    )
    lacking = [
        model
        for model in published.models
        if not published.score(model, published.columns[0], 128 * K)
    ]
    assert lacking
    assert all(published.score(model, OVERALL, 128 * K) is None for model in lacking)


def test_published_results_open_at_the_longest_common_length(published: Board) -> None:
    """Published results open at 128k, where nearly all models have a score, and no two published models are compared."""
    first, *others = leaderboard_sections(published)
    assert first.choice == "128k"
    assert [section.choice for section in others] == ["64k", "32k", "16k", "8k"]
    answer, table = blocks_of(first)
    assert find_differences(published, OVERALL, 128 * K) == {}
    assert answer.verdict.startswith(
        "GPT-4o-08 has the highest overall score of the published models: 64.8 (95 % inter"
    )
    assert (
        answer.certainty
        == "Published scores are not compared with each other, because only means are known."
    )
    assert not answer.is_sure
    assert all(row["Rank"].detail == "" for row in rows_by_model(table).values())
    assert answer.note.startswith("Only means were published.")
    scores = [
        row["Average"].value
        for row in rows_by_model(table).values()
        if row["Average"].value is not None
    ]
    assert scores == sorted(scores, reverse=True)


def test_published_means_have_the_interval_of_the_smallest_sample() -> None:
    """The mean of a table that mixes protocols has the interval of the smallest sample, because nobody knows its real one."""
    (board,) = published_boards([find_benchmark("ada_leval")])
    counts = {
        cell_key.length: result.interval.n
        for cell_key, result in board.scores.items()
        if cell_key.part == "stackselect"
    }
    assert (counts[16 * K], counts[32 * K]) == (200, 50)


def test_the_first_view_is_about_the_users_models(mixed: Board) -> None:
    """The first view is about a length that was run, with own rows first and highlighted, and published rows after them."""
    first = leaderboard_sections(mixed)[0]
    assert first.choice == "32k"
    answer, table = blocks_of(first)
    assert answer.verdict.startswith(
        "acme/one has the highest score in Recall of your models: "
    )
    assert "GPT-4o" not in answer.verdict
    # One task of four was run, and of published models only the means of four are known.
    assert "65 published models have no rank beside yours" in answer.note
    assert {
        row[0].text for kind, rows in table.bodies if kind == "other" for row in rows
    } == {"–"}
    assert [(kind, len(rows)) for kind, rows in table.bodies][:2] == [
        ("own", 2),
        ("floor", 1),
    ]
    assert [row[1].text for row in table.rows[:3]] == [
        "acme/one",
        "acme/two",
        "longctx/null",
    ]
    (plot,) = (block for block in first.blocks if isinstance(block, Figure))
    assert [row["model"] for row in plot.rows][:2] == ["acme/one", "acme/two"]
    assert not any(row["kind"] == "published" for row in plot.rows)
    shown = first_models(mixed)
    assert [model for model, is_shown in shown.items() if is_shown][:2] == [
        "acme/one",
        "acme/two",
    ]
    assert sum(shown.values()) == 6


def test_missing_values_are_empty_in_files(mixed: Board) -> None:
    """Missing scores and ranks are empty in files, and scores are between 0 and 1."""
    _, table = blocks_of(leaderboard_sections(mixed)[0])
    lines = [dict(zip(table.header, row, strict=True)) for row in table.plain_rows()]
    own = next(line for line in lines if line["Model"] == "acme/one")
    assert (own["Average"], own["RAG"]) == ("", "")
    assert 0 < float(own["Recall"]) <= 1
    assert next(line for line in lines if line["Model"] == "longctx/null")["Rank"] == ""
    assert all(
        line[name] == "" or 0 <= float(line[name]) <= 1
        for line in lines
        for name in ("Average", "Recall", "RAG")
    )


@pytest.mark.parametrize("task", ["", ",metric=f1", ",metric=rubric"])
def test_own_questions_have_scores_with_every_metric(
    board_of: MakeBoard, task: str
) -> None:
    """Each task of own questions, also a variant or a judged one, has a column, and the folder's last part is the title."""
    board = board_of(
        [f"any_jsonl:path=data/bills,length=8k{task}"],
        {"acme/one": 0.9, "acme/two": 0.2},
    )
    assert board.title == "Own questions bills"
    answer, table = blocks_of(leaderboard_sections(board)[0])
    assert len(table.header) == 3
    assert all(row[2].value is not None for row in table.rows)
    assert "acme/one has the highest score in " in answer.verdict


def test_modes_are_columns_and_not_averaged(board_of: MakeBoard) -> None:
    """The modes of LongBench v2 are columns without a mean, because they ask the same questions in different conditions."""
    board = board_of(
        [f"longbench_v2:mode={mode}" for mode in ("0shot", "cot", "no_context")],
        {"acme/one": 0.9},
    )
    _, table = blocks_of(leaderboard_sections(board)[0])
    assert table.header == [
        "Rank",
        "Model",
        "Zero-shot",
        "With CoT",
        "Without the text",
    ]


def test_parts_in_no_mean_have_columns_and_tasks_have_rows(board_of: MakeBoard) -> None:
    """RULER has a column although it is in no mean, and each task has a row."""
    board = board_of(
        ["helmet_ruler:length=8k", "helmet_recall:length=8k"],
        {"acme/one": 0.9, "acme/two": 0.3},
    )
    _, _, table, tasks = leaderboard_sections(board)[0].blocks
    assert isinstance(table, Table)
    assert isinstance(tasks, Table)
    assert table.header == ["Rank", "Model", "Recall", "RULER"]
    assert "In no mean: RULER." in table.about
    names = [
        task.title
        for entry in ("helmet_recall", "helmet_ruler")
        for task in board.benchmark.entries[entry].tasks
    ]
    assert {row[0].text for row in tasks.rows} == set(names)
    assert {row[3].value for row in tasks.rows} <= {10, 11, 12}


@pytest.mark.parametrize("published", [False, True])
def test_one_model_is_not_called_the_best(board_of: MakeBoard, published: bool) -> None:
    """A single model has no rank and no certainty, and is not called the best."""
    board = board_of(
        ["helmet_recall:task=json_kv,length=8k"], {"acme/one": 0.9}, published
    )
    answer, _ = blocks_of(leaderboard_sections(board)[0])
    assert answer.verdict.startswith("acme/one has a score of ")
    assert answer.question == "How good is the model at 8k?"
    assert not answer.is_sure
    assert answer.certainty == ""


def test_certainty_is_that_of_the_adjusted_comparisons(
    own: Board, board_of: MakeBoard, published: Board
) -> None:
    """The answer names the models that the adjusted test finds tied with the best, or gives the largest adjusted p-value."""
    answer, _ = blocks_of(leaderboard_sections(own)[0])
    best, second, third = (ranked_model.model for ranked_model in own.ranking(16 * K))
    differences = find_differences(own, OVERALL, 16 * K)
    assert [differences[best, other].is_different for other in (second, third)] == [
        False,
        True,
    ]
    assert (
        answer.certainty
        == f"Statistical tie with {second}. It is better than 1 of the models."
    )
    assert not answer.is_sure
    board = board_of(["lv_eval:length=16k"], {"acme/one": 0.9, "acme/two": 0.1})
    answer, _ = blocks_of(leaderboard_sections(board)[0])
    adjusted = find_differences(board, OVERALL, 16 * K)["acme/one", "acme/two"].adjusted
    assert answer.certainty == "It is better than all others (adjusted p {}).".format(
        "< 0.001" if adjusted < 0.001 else f"= {adjusted:.3f}"
    )
    assert answer.is_sure
    answers = [
        blocks_of(section)[0]
        for table in (own, board, published)
        for section in leaderboard_sections(table)
    ]
    assert not any(
        "sure" in f"{answer.verdict} {answer.certainty}" for answer in answers
    )


def test_floors_are_lines_and_rows_apart(own: Board) -> None:
    """Floors have rows and lines of their own and no rank, and they are subtracted from scores."""
    (section,) = leaderboard_sections(own)
    _, plot, table, _ = section.blocks
    assert isinstance(table, Table)
    by_model = rows_by_model(table)
    assert by_model["longctx/null"]["Rank"].value is None
    best = by_model["acme/one"]
    floor = by_model["longctx/null"]
    assert best["Above floor"].value == pytest.approx(
        (best["Overall"].value or 0) - (floor["Overall"].value or 0)
    )
    assert isinstance(plot, Figure)
    assert [row["model"] for row in plot.rows if row["kind"] == "floor"] == ["null"]
    assert "longctx/null" not in {
        ranked_model.model for ranked_model in own.ranking(16 * K)
    }


@pytest.mark.parametrize(
    ("name", "floors"),
    [
        ("ada_leval", {"Random Guess"}),
        (
            "mrcr_v2",
            {
                "Floor: any reply of the transcript",
                "Floor: any reply to the same request",
            },
        ),
    ],
)
def test_published_floors_are_no_models(name: str, floors: set[str]) -> None:
    """Published floors, such as random guesses, have no rank and are never called the best."""
    (board,) = published_boards([find_benchmark(name)])
    for section in leaderboard_sections(board):
        answer, table = blocks_of(section)
        assert not any(floor in answer.verdict for floor in floors)
        there = {kind: {row[1].text for row in rows} for kind, rows in table.bodies}
        assert there.get("floor") == floors
        assert all(
            row[0].value is None
            for kind, rows in table.bodies
            if kind == "floor"
            for row in rows
        )
    assert {
        model.removeprefix("published/")
        for model in board.models
        if board.is_floor(model)
    } == floors


def test_answers_to_questions_alone_are_floors(board_of: Callable[..., Board]) -> None:
    """Answers of a model that sees only the question are a floor beside the model, and are not ranked."""
    asked = "helmet_rag:task=nq,length=8k"
    board = board_of([asked, f"{asked},method=question_only"], {"acme/one": 0.9})
    alone = "acme/one (method=question_only)"
    assert {model: board.is_floor(model) for model in board.models} == {
        "acme/one": False,
        alone: True,
    }
    assert [ranked_model.model for ranked_model in board.ranking(8 * K, "nq")] == [
        "acme/one"
    ]
    assert [floor.model for floor in board.floors("nq", 8 * K)] == [alone]


def test_own_floors_do_not_hide_published_models() -> None:
    """If only floors of the user have a part, models are ranked by a part that has other models."""
    ruler = find_benchmark("ruler")
    floor = Result(
        "ruler",
        "ruler",
        "qa_1",
        ShownModel("longctx/null"),
        32 * K,
        "full",
        Interval(0.1, 0.0, 0.2, 20),
    )
    (board,) = make_boards([floor], [ruler], published=True)
    assert board.main_part(32 * K) == OVERALL
    answer, _ = blocks_of(
        next(
            leaderboard_section
            for leaderboard_section in leaderboard_sections(board)
            if leaderboard_section.choice == "32k"
        )
    )
    assert "has the highest overall score of the published models" in answer.verdict


def test_closed_books_and_floors_alone_have_a_page(board_of: MakeBoard) -> None:
    """Closed-book runs and floors alone have a page with separate rows, and the answer calls no model the best."""
    entry = "helmet_rag:task=nq,length=8k"
    board = board_of([entry], {"longctx/null": 0.1})
    answer, table = blocks_of(leaderboard_sections(board)[0])
    assert answer.verdict.startswith("Only floors were run here. longctx/null has ")
    assert table.header == ["Rank", "Model", "RAG", "Above floor"]
    board = board_of([f"{entry},context=none"], {"acme/one": 0.7})
    _, table = blocks_of(leaderboard_sections(board)[0])
    assert [kind for kind, _ in table.bodies] == ["floor"]
    assert (table.rows[1][1].text, table.rows[1][1].detail) == (
        "acme/one",
        "closed book",
    )
    assert table.rows[1][2].value is not None
