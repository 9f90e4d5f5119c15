"""The published scores are those that HELMET's authors printed, by task and by category."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.tables import read_csv
from helm_longctx.errors import InputError
from helm_longctx.results.boards import category_results, published_boards
from helm_longctx.results.reading import published_results, read_results
from helm_longctx.results.suite import add_rows, read_reference_rows, write_reference
from helm_longctx.tasks.lengths import STANDARD, parse_length
from helm_longctx.tasks.publications import Published

TASKS = 31
"""Number of tasks with published scores; 21 are in the averaged categories."""

CATEGORIES = 8

SHARED = 3
"""Number of tasks of recall that RULER has, too."""


PRINTED = Path(__file__).parent / "published_categories.csv"
"""The results table of HELMET's project page (princeton-nlp.github.io/HELMET), with one decimal."""


def test_all_cells_are_there() -> None:
    """There are 59 models at 128k and 65 at each other length, of which six have no scores of tasks; each of the others
    has a score of each task."""
    rows = HELMET.published()
    assert {row.category for row in rows} == {
        category.name for category in HELMET.categories
    } - {"niah"}
    for label in ("8k", "16k", "32k", "64k", "128k"):
        at_length = [row for row in rows if row.length == STANDARD[label]]
        counts = Counter(
            "" in row.scores for row in at_length if row.category == "recall"
        )
        assert counts == ({False: 59} if label == "128k" else {False: 59, True: 6})
        for row in at_length:
            (names,) = (
                {task.name for task in category.tasks}
                for category in HELMET.categories
                if category.name == row.category
            )
            assert row.scores.keys() in ({""}, names)
    assert all(0 <= score <= 1 for row in rows for score in row.scores.values())


FIGURE = """
Qwen2.5-7B-Inst-1M 8k 96.9 67.7 70.8 36.2 71.3 28.8 22.9
Qwen2.5-7B-Inst-1M 16k 98.5 68.3 69.2 17.9 57.4 36.7 25.0
Qwen2.5-7B-Inst-1M 32k 94.1 64.9 57.2 8.6 45.9 37.9 27.5
Qwen2.5-7B-Inst-1M 64k 92.8 64.0 49.4 9.6 32.1 36.5 27.9
Qwen2.5-14B-Inst-1M 8k 100.0 72.2 79.8 41.9 74.3 31.0 27.3
Qwen2.5-14B-Inst-1M 16k 99.9 70.8 84.7 35.4 57.9 38.1 32.1
Qwen2.5-14B-Inst-1M 32k 99.4 68.9 88.2 32.9 49.9 39.7 34.3
Qwen2.5-14B-Inst-1M 64k 99.2 66.0 89.6 28.2 38.0 44.1 35.3
"""
"""Cells of static/images/results_length_main.png at aaab7dc (gh-pages) that the table lacks, in the table's columns."""


def test_categories_are_means_of_tasks() -> None:
    """The means over tasks equal all 2,009 category cells that the page prints of the models that have tasks, to the last
    digit, and 56 more of a figure."""
    means = {
        (
            category_result.model.removeprefix("published/"),
            category_result.entry.removeprefix("helmet_"),
            category_result.length,
        ): category_result.interval.mean
        for category_result in category_results(published_results(HELMET), HELMET)
    }
    cells = 0
    printed = list(read_csv(PRINTED, ["model", "length"]))
    printed += [
        dict(zip(printed[0], line.split(), strict=True))
        for line in FIGURE.strip().splitlines()
    ]
    for row in printed:
        for name in list(row)[2:]:
            mean = 100 * means[row["model"], name, parse_length(row["length"])]
            # The means have six decimals, so that one that ends in 5 can be printed as either neighbour.
            assert mean == pytest.approx(float(row[name]), abs=0.05 + 2e-6)
            cells += not row["model"].startswith(("Gemma-3", "Llama-4"))
    assert cells == 2009 + 56


def test_a_task_has_the_official_metrics_and_sample() -> None:
    """A published score of a task has its official sample size, and one of several metrics has each of them."""
    results_by_task = {
        published_result.task: published_result
        for published_result in published_results(HELMET)
        if (published_result.model, published_result.length)
        == ("published/GPT-4o-08", STANDARD["128k"])
    }
    assert {
        name: result.interval.n
        for name, result in results_by_task.items()
        if result.interval.n != 100
    } == dict.fromkeys(
        ("trec_coarse", "trec_fine", "banking77", "clinic150", "nlu"), 500
    )
    assert results_by_task["asqa"].interval.mean == pytest.approx(
        (0.444666667 + 0.655 + 0.643630952) / 3, abs=1e-8
    )
    assert results_by_task["asqa"].statistics["citation_rec"].interval.mean == 0.655
    assert (
        results_by_task["qampari"].statistics["qampari_rec_top5"].interval.mean == 0.262
    )
    assert (
        results_by_task["nq"].statistics["substring_exact_match"].interval
        == results_by_task["nq"].interval
    )
    assert results_by_task["narrativeqa"].judges


STEPS = {"niah_mq": 25, "cwe": 10, "fwe": 100 / 3, "vt": 20, "qa_1": 100, "qa_2": 100}
"""The share of a question in percent that an answer can have; all other tasks of RULER have 100 or 25."""


def test_ruler_scores_are_those_of_hundred_answers() -> None:
    """A score of RULER is a mean over 100 answers, each of which is right in a part of its words. Gemini's answers can be
    fewer, because some requests were refused, and so are those of GPT-4o mini in one task."""
    rows = [row for row in HELMET.published() if row.category == "ruler"]
    fewer = Counter[str]()
    cells = 0
    for row in rows:
        for task, score in row.scores.items():
            name = task.removeprefix("ruler_")
            if name in {"niah_mk_2", "niah_mk_3", "niah_mv"}:
                continue  # the main table's, which has means of two runs
            step = STEPS.get(name, 100)
            counts = [
                n
                for n in range(100, 50, -1)
                if abs((x := 100 * score * n / step) - round(x)) < n * 1e-6
            ]
            assert counts, (row.model, row.length, task, score)
            fewer[row.model] += counts[0] < 100
            cells += 1
    assert cells == 59 * 5 * 10
    assert +fewer == {"Gemini-1.5-Pro": 37, "Gemini-1.5-Flash": 21, "GPT-4o-mini": 1}


def test_ruler_is_in_no_mean() -> None:
    """RULER's tasks have the published sample and are in no mean of HELMET; their mean over 13 tasks is the category's."""
    (board,) = published_boards([HELMET])
    model_and_length = ("published/GPT-4", STANDARD["128k"])
    categories = {
        category.entry: category
        for category in board.categories
        if (category.model, category.length) == model_and_length
    }
    assert 100 * categories["helmet_ruler"].interval.mean == pytest.approx(
        77.980769, abs=1e-6
    )
    assert categories["helmet_ruler"].interval.n == 1300
    (overall,) = [
        overall
        for overall in board.overalls
        if (overall.model, overall.length) == model_and_length
    ]
    averaged = [
        result.interval.mean
        for entry, result in categories.items()
        if entry != "helmet_ruler"
    ]
    assert overall.interval.mean == pytest.approx(sum(averaged) / 7)
    assert (
        board.find("published/GPT-4", "ruler_cwe", STANDARD["128k"]).interval.n == 100
    )


def test_rouge_is_beside_the_judge() -> None:
    """Answers and summaries that a judge scores also have the ROUGE that the notebook prints, which is no headline."""
    (board,) = published_boards([HELMET])
    printed = {
        "narrativeqa": (47, 37.990878),
        "infbench_sum": (14.386268, 13.390312),
        "multi_lexsum": (42.066063, 21.427731),
    }
    for task, (score, rouge) in printed.items():
        result = board.find("published/GPT-4", task, STANDARD["8k"])
        assert 100 * result.interval.mean == pytest.approx(score)
        assert 100 * result.statistics["rougeL_f1"].interval.mean == pytest.approx(
            rouge
        )
    having = [
        task
        for task in board.tasks
        if task.task in printed and "rougeL_f1" in task.statistics
    ]
    assert len(having) == 3 * 59 * 5


def test_tasks_replace_their_category(tmp_path: Path) -> None:
    """A suite whose rows of an earlier version have scores of categories gets those of tasks instead."""
    cell_key = ("ProLong", "recall", STANDARD["8k"])
    add_rows(HELMET, tmp_path, [Published(*cell_key, {"": 0.99})])
    write_reference(HELMET, tmp_path, ["ProLong"], STANDARD["8k"])
    (row,) = [
        reference_row
        for reference_row in read_reference_rows(tmp_path, HELMET)
        if reference_row.category == "recall"
    ]
    assert row.scores == {
        "json_kv": 1.0,
        "ruler_niah_mk_2": 1.0,
        "ruler_niah_mk_3": 1.0,
        "ruler_niah_mv": 0.9775,
    }


def test_each_model_has_its_properties() -> None:
    """Each published model has its properties once; 58 models are from Table 15, and seven are only on the project
    page."""
    models = HELMET.models()
    assert models.keys() == {row.model for row in HELMET.published()}
    assert Counter(model.source for model in models.values()) == {
        "Table 15": 58,
        "project page": 7,
    }
    assert sum(model.instruct for model in models.values()) == 39
    assert sum(model.window is not None for model in models.values()) == len(models)
    assert {model.active for model in models.values() if "/" in model.parameters} == {
        12,
        14,
    }


@pytest.mark.parametrize(
    ("length", "printed"), [("8k", 65.5), ("32k", 66.2), ("128k", 64.8)]
)
def test_averages(length: str, printed: float) -> None:
    """The mean over categories is the printed average."""
    (overall,) = [
        overall
        for overall in published_boards([HELMET])[0].overalls
        if (overall.model, overall.length) == ("published/GPT-4o-08", STANDARD[length])
    ]
    assert 100 * overall.interval.mean == pytest.approx(printed, abs=0.05)


def test_some_are_written(tmp_path: Path) -> None:
    """Models are chosen by pattern and length, and no row is added twice."""
    for _ in range(2):
        assert (
            write_reference(HELMET, tmp_path, ["gpt-4o-*", "ProLong"], STANDARD["128k"])
            == 4 * CATEGORIES
        )
    results = read_results(tmp_path, [HELMET])
    assert len(results) == 4 * (TASKS + SHARED)
    assert write_reference(HELMET, tmp_path, ["ProLong"], STANDARD["8k"]) == CATEGORIES
    assert len(read_results(tmp_path, [HELMET])) == 5 * (TASKS + SHARED)
    (rerank,) = [
        result
        for result in results
        if (result.entry, result.model) == ("helmet_rerank", "published/GPT-4o-08")
    ]
    assert (rerank.task, rerank.length) == ("msmarco", STANDARD["128k"])
    assert rerank.interval.mean == pytest.approx(0.50040683)
    assert rerank.statistics.keys() == {
        "longctx_score",
        "msmarco_score",
        "NDCG@10",
        "published",
    }
    with pytest.raises(InputError, match=r"model='GPT-9'; choose from GPT-4, "):
        write_reference(HELMET, tmp_path, ["GPT-9"])


def test_published_results_cost_one_folder(tmp_path: Path) -> None:
    """The published results are one run of HELM without groups, whose page names the source."""
    write_reference(HELMET, tmp_path)
    (run,) = tmp_path.iterdir()
    spec, scenario = (
        orjson.loads((run / f"{name}.json").read_bytes())
        for name in ("run_spec", "scenario")
    )
    assert (run.name, spec["name"], spec["groups"]) == (
        "published_helmet",
        "published_helmet",
        [],
    )
    assert HELMET.url in scenario["description"]
