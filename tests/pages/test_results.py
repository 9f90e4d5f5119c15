"""What the report says of scores, and of differences between models."""

from __future__ import annotations

from statistics import fmean

import pytest

from helm_longctx.benchmarks import find_benchmark
from helm_longctx.pages.comparison import _profiles, comparison_sections
from helm_longctx.pages.differences import find_differences, rank_range
from helm_longctx.pages.document import Answer, Figure, Table
from helm_longctx.pages.leaderboard import leaderboard_sections
from helm_longctx.pages.lengths import depth_sections, length_sections
from helm_longctx.pages.results import FLOORS, OVERALL, Board, Place, read_boards
from helm_longctx.pages.tasks import task_sections
from tests.pages.suites import write_suite

K = 1024


@pytest.fixture(scope="module")
def published() -> Board:
    """HELMET's published results."""
    (board,) = read_boards(None, [find_benchmark("helmet")], published=True)
    return board


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Two models and a baseline in all of LV-Eval."""
    suite = tmp_path_factory.mktemp("own")
    skills = {"acme/one": 0.9, "acme/same": 0.88, "acme/two": 0.3, "longctx/null": 0.05}
    write_suite(suite, ["lv_eval:length=16k"], skills, instances=6)
    (board,) = read_boards(suite, [find_benchmark("lv_eval")], published=False)
    return board


def test_overall_is_the_mean_of_the_columns(published: Board) -> None:
    """It is absent where a column is; its interval contains it and is narrower than a column's."""
    model = "published/GPT-4o-08"
    overall = published.score(model, OVERALL, 128 * K)
    columns = [published.results[Place(model, part, 128 * K)] for part in published.columns]
    assert overall is not None
    assert overall.interval.mean == pytest.approx(fmean(column.interval.mean for column in columns))
    assert overall.interval.low < overall.interval.mean < overall.interval.high
    assert overall.interval.high - overall.interval.low < min(
        column.interval.high - column.interval.low for column in columns if column.interval.mean < 0.6
    )
    lacking = [
        model for model in published.models if Place(model, published.columns[0], 128 * K) not in published.results
    ]
    assert lacking
    assert all(published.score(model, OVERALL, 128 * K) is None for model in lacking)


def test_the_first_leaderboard_is_the_longest_common_length(published: Board) -> None:
    """At 128k nearly all models have an overall score."""
    first, *others = leaderboard_sections(published)
    assert first.choice == "128k"
    assert [section.choice for section in others] == ["64k", "32k", "16k", "8k"]
    answer, plot, table = first.blocks
    assert isinstance(answer, Answer)
    assert answer.verdict.startswith("GPT-4o-08 has the highest overall score: 64.7 (95 % interval ")
    assert answer.certainty == "That is not sure: Gemini-1.5-Pro cannot be told apart from it at the 5 % level."
    assert answer.note.startswith("Only means were published.")
    assert isinstance(table, Table)
    scores = [row[2].sort for row in table.rows if row[2].text != "–"]
    assert scores == sorted(scores, reverse=True)
    assert isinstance(plot, Figure)
    assert len(plot.rows) == 12


def test_published_means_have_the_interval_of_the_smallest_sample() -> None:
    """A table that mixes protocols does not say which sample a mean is of."""
    (board,) = read_boards(None, [find_benchmark("ada_leval")], published=True)
    counts = {place.length: result.interval.n for place, result in board.results.items() if place.part == "stackselect"}
    assert (counts[16 * K], counts[32 * K]) == (200, 50)


def test_models_without_scores_have_no_profile(published: Board) -> None:
    """Neither a line nor a figure, and no warning of a mean of nothing."""
    models = published.models[:2]
    assert _profiles(published, models, 3, "name") is None
    known = _profiles(published, models, 128 * K, "name")
    assert known is not None
    assert all(row["share"] == row["share"] for row in known.rows)


def test_a_paired_difference_is_the_difference_of_the_scores(own: Board) -> None:
    """Tasks and columns are weighted as in the overall score; counts are of instances that both answered."""
    difference = find_differences(own, OVERALL, 16 * K)["acme/one", "acme/two"]
    tasks = own.tasks_of(OVERALL, 16 * K)
    shared = [
        own.values[Place("acme/one", task, 16 * K)].keys() & own.values[Place("acme/two", task, 16 * K)].keys()
        for task in tasks
    ]
    means = [
        fmean(
            own.values[Place("acme/one", task, 16 * K)][key].score
            - own.values[Place("acme/two", task, 16 * K)][key].score
            for key in keys
        )
        for task, keys in zip(tasks, shared, strict=True)
    ]
    assert difference.effect.mean == pytest.approx(fmean(means))
    assert difference.wins + difference.losses + difference.ties == sum(map(len, shared))
    assert not difference.is_tied
    assert find_differences(own, OVERALL, 16 * K)["acme/one", "acme/same"].is_tied
    models = [model for model, _ in own.ranking(16 * K)]
    assert rank_range("acme/two", models, find_differences(own, OVERALL, 16 * K)) == (3, 3)
    assert rank_range("acme/one", models, find_differences(own, OVERALL, 16 * K)) == (1, 2)


def test_baselines_are_floors_and_no_competitors(own: Board) -> None:
    """They are lines in plots, rows without a rank, and what is subtracted."""
    (section,) = leaderboard_sections(own)
    _, plot, table = section.blocks
    assert isinstance(table, Table)
    assert table.header[-1] == "Above floor"
    by_model = {row[1].text: row for row in table.rows}
    assert by_model["longctx/null"][0].text == "–"
    best, floor = by_model["acme/one"], by_model["longctx/null"]
    assert best[-1].sort == pytest.approx((best[2].sort or 0) - (floor[2].sort or 0))
    assert isinstance(plot, Figure)
    assert [row["model"] for row in plot.rows if row["kind"] == "floor"] == ["null"]
    assert not set(FLOORS) & {model for model, _ in own.ranking(16 * K)}


def test_lengths_and_groups(published: Board) -> None:
    """Drop and effective length are of the overall score; LV-Eval's groups are means of its data sets."""
    _, table = length_sections(published)[0].blocks
    assert isinstance(table, Table)
    rows = {row[0].text: row for row in table.rows}
    row = rows["Gemini-1.5-Pro"]
    assert row[-2].sort == pytest.approx((row[1].sort or 0) - (row[5].sort or 0))
    assert row[-1].text == "128k"
    assert row[-5].sort == pytest.approx(fmean(cell.sort or 0 for cell in row[1:6]))
    (lv_eval,) = read_boards(None, [find_benchmark("lv_eval")], published=True)
    _, groups = length_sections(lv_eval)
    (figure,) = groups.blocks
    assert isinstance(figure, Figure)
    assert {row["part"] for row in figure.rows} == {"With confusing facts", "Without confusing facts"}
    assert len(figure.rows) == 2 * 10 * 5


def test_correlations_have_their_numbers(published: Board) -> None:
    """Each cell has rho, p, interval and n, and the scatter plot has a label for each pair."""
    first = task_sections(published)[0]
    heat, scatter = first.blocks
    assert isinstance(heat, Figure)
    assert isinstance(scatter, Figure)
    cell = next(row for row in heat.rows if (row["row"], row["column"]) == ("Recall", "RAG"))
    assert {"rho", "p", "low", "high", "n"} < cell.keys()
    assert cell["n"] == 59
    label = next(
        row["label"] for row in scatter.rows if (row.get("row"), row.get("column")) == ("helmet_recall", "helmet_rag")
    )
    assert label == f"rho = {cell['rho']:.2f}, p < 0.001, n = 59"


def test_comparisons(published: Board, own: Board) -> None:
    """The matrix has both directions; profiles fall from 1 to 0; without depths there is no page for them."""
    matrix, ranks, methods, profiles = comparison_sections(published)[0].blocks
    assert isinstance(matrix, Figure)
    values = {(row["row"], row["column"]): row["difference"] for row in matrix.rows}
    assert all(values[one, other] == -float(str(value)) for (other, one), value in values.items())
    assert isinstance(ranks, Figure)
    assert all(int(str(row["low"])) <= int(str(row["score"])) <= int(str(row["high"])) for row in ranks.rows)
    assert isinstance(methods, Table)
    assert methods.header == ["Model", "Mean", "Borda", "Interquartile mean", "Kemeny", "Rank"]
    assert isinstance(profiles, Figure)
    shares = [float(str(row["share"])) for row in profiles.rows if row["model"] == "GPT-4o-08"]
    assert shares == sorted(shares, reverse=True)
    assert depth_sections(published) == []
    ((figure,),) = (list(section.blocks) for section in depth_sections(own))
    assert isinstance(figure, Figure)
    assert {row["depth"] for row in figure.rows} == {f"{depth} %" for depth in (0, 20, 40, 60, 80, 100)}
