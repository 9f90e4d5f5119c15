"""Tests that scores of generated questions are never taken for scores of the benchmark's own questions."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from helm_longctx.data.root import DataRoot
from helm_longctx.results.boards import read_suite
from helm_longctx.results.comparison import _compare_means
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.commands import Command

PROTOCOL = "helmet recall 8k"
FETCH = "helm-longctx fetch helmet_recall:length=8k"
REASON = "generated questions, not the benchmark's own"
GENERATOR = "the generator of helm-longctx"
ONE_RUN = ("--model", "longctx/lexical", "--suite", "s", "--quiet")
GENERATED_LOGS = {
    ("agentlongbench", f"generated_{form}_{kind}")
    for form in ("c", "v")
    for kind in (
        "count_frequency_tool",
        "find_duplicates_tool",
        "find_target_offsets_tool",
        "count_correctness_env",
        "count_frequency_env",
        "find_round_largest_value_env",
        "weighted_summation_env",
        "intersection",
    )
}

GENERATED_TASKS = {
    ("helmet", name)
    for name in (
        "json_kv",
        "ruler_niah_s_1",
        "ruler_niah_s_2",
        "ruler_niah_s_3",
        *(
            "ruler_niah_mk_1",
            "ruler_niah_mk_2",
            "ruler_niah_mk_3",
            "ruler_niah_mq",
            "ruler_niah_mv",
        ),
        "ruler_cwe",
        "ruler_fwe",
        "ruler_vt",
        "ruler_qa_1",
        "ruler_qa_2",
    )
}
GENERATED_TASKS |= {
    ("graphwalks", name) for name in ("bfs", "parents", "bfs_same_size")
}
GENERATED_TASKS |= GENERATED_LOGS


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in an empty folder, where no official file is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(MIRROR, raising=False)


def make_suite(command: Command) -> None:
    """Run a model on generated questions of HELMET and of GraphWalks."""
    tasks = "helmet_recall:num_samples=6,graphwalks:num_samples=2"
    assert command("run", "--tasks", tasks, "--length", "8k", *ONE_RUN) == 0, (
        command.err
    )


def test_the_tasks_with_generated_questions() -> None:
    """A table says which tasks can ask questions that this package makes in place of the benchmark's own."""
    tasks = [
        (benchmark.name, task) for benchmark in BENCHMARKS for task in benchmark.tasks
    ]
    assert {
        (name, task.name) for name, task in tasks if task.generated != "never"
    } == GENERATED_TASKS


@pytest.mark.parametrize(
    "entry",
    ["helmet_recall:length=8k,num_samples=1", "graphwalks:length=8k,num_samples=1"],
)
def test_a_task_knows_whether_its_questions_are_generated(
    entry: str, tmp_path: Path
) -> None:
    """What a task says before a run is what the source of its examples says."""
    checked = parse_entry(BENCHMARKS, entry)
    root = DataRoot(tmp_path, mirror=True)
    for task in checked.tasks:
        assert task.is_generated(checked.settings.length, root)
        (example,) = load_examples(task, checked.settings, root)
        assert example.source == "generated"


def test_questions_that_the_official_code_draws_are_the_benchmarks_own(
    tmp_path: Path,
) -> None:
    """Our own benchmark and symbolic problems by the official algorithm are not marked as generated."""
    for entry in ("fresh_text:length=4k", "gsm_infinite:task=symbolic,length=0k"):
        checked = parse_entry(BENCHMARKS, f"{entry},num_samples=1")
        root = DataRoot(tmp_path, mirror=True)
        sources = {
            example.source
            for task in checked.tasks
            for example in load_examples(task, checked.settings, root)
        }
        assert sources == {"official"}


def test_reproduce_asks_before_it_generates(command: Command) -> None:
    """Without official files a protocol is refused before a request, and the line says how to get them."""
    assert command("reproduce", PROTOCOL, *ONE_RUN) == 2
    assert "cannot compare: generated questions" in command.err
    assert f"`{FETCH}`" in command.err
    assert "--generated" in command.err
    assert not Path("benchmark_output/runs/s").exists()
    assert command(
        "reproduce", "lv-eval 16k", *ONE_RUN, "--dry-run", "--generated"
    ) in (0, 2)
    assert "generated questions" not in command.err


def test_reproduce_on_generated_questions_never_agrees(command: Command) -> None:
    """With --generated a protocol runs, and neither the run nor a later comparison agrees with a published number."""
    few = ("--argument", "num_samples=6")
    for published in ([], ["--published", "GPT-4o-08"]):
        assert (
            command("reproduce", PROTOCOL, *ONE_RUN, *few, "--generated", *published)
            == 0
        )
        told = f"longctx/lexical: cannot compare: generated questions; get the benchmark's own with `{FETCH}`."
        assert told in command.out
        assert "agrees" not in command.out.lower()
    assert (
        command("reproduce", PROTOCOL, "--suite", "s", "--published", "GPT-4o-08") == 0
    )
    assert told in command.out
    assert "agrees" not in command.out.lower()
    # A whole release has a verdict for each number.
    assert command("reproduce", "GPT-4o-08", "--suite", "s") == 0
    assert "cannot compare: generated questions" in command.out
    assert "agrees" not in command.out.lower()


@pytest.mark.usefixtures("empty_pictures")
def test_every_place_says_that_questions_are_generated(command: Command) -> None:
    """Each table, page and export marks the scores with the reason, and names our generator as the source."""
    make_suite(command)
    assert f"{REASON} (json_kv" in command.out
    assert f"{FETCH} graphwalks:task=openai_bfs,length=128k" in command.out
    assert command("summarize", "--suite", "s", "--json") == 0, command.err
    assert all(REASON in row["notes"] for row in json.loads(command.out))
    folder = Path("benchmark_output/runs/s")
    tags = [
        json.loads(path.read_text())["tags"] for path in folder.glob("*/scenario.json")
    ]
    assert all(any(REASON in tag for tag in caveats) for caveats in tags)
    tables = [
        path.read_text() for path in folder.glob("groups/json/helmet_recall_8k*.json")
    ]
    assert any(REASON in text for text in tables)
    assert (
        command("report", "--suite", "s", "--to", "report", "--format", "markdown") == 0
    )
    assert REASON in Path("report/report.md").read_text()
    for form in ("markdown", "latex"):
        assert command("export", "--suite", "s", "--format", form, "--to", form) == 0, (
            command.err
        )
        (path,) = Path(form).iterdir()
        assert any(mark in path.read_text() for mark in ("†", r"\dag{}"))
        assert REASON in path.read_text()


def test_every_export_says_where_questions_come_from(command: Command) -> None:
    """Files for programs name our generator as the source of the questions, and never the benchmark's data set."""
    make_suite(command)
    for form in ("csv", "lm-eval", "every-eval-ever", "eval-results"):
        assert command("export", "--suite", "s", "--format", form, "--to", form) == 0, (
            command.err
        )
    with Path("csv/scores.csv").open(newline="") as file:
        scores = list(csv.DictReader(file))
    with Path("csv/averages.csv").open(newline="") as file:
        averages = list(csv.DictReader(file))
    assert all(row["questions"].startswith(GENERATOR) for row in (*scores, *averages))
    assert all("generated:" in row["caveats"] for row in scores)
    with Path("csv/answers.csv").open(newline="") as file:
        assert {row["source"] for row in csv.DictReader(file)} == {"generated"}
    (path,) = Path("lm-eval").rglob("results_*.json")
    configs = json.loads(path.read_text())["configs"].values()
    assert all(config["dataset_path"].startswith(GENERATOR) for config in configs)
    assert all(REASON in str(config["metadata"]) for config in configs)
    logs = [
        json.loads(path.read_text()) for path in Path("every-eval-ever").rglob("*.json")
    ]
    results = [result for log in logs for result in log["evaluation_results"]]
    assert all(result["source_data"]["source_type"] == "other" for result in results)
    assert all(GENERATOR in str(result["source_data"]) for result in results)
    assert all(REASON in str(result["score_details"]) for result in results)
    paths = list(Path("eval-results").rglob("*.yaml"))
    rows = [row for path in paths for row in yaml.safe_load(path.read_text())]
    assert rows
    assert {row["dataset"]["id"] for row in rows} == {"helm-longctx/generated"}
    assert all(REASON in row["notes"] and GENERATOR in row["notes"] for row in rows)


def test_an_import_of_an_export_keeps_the_mark(command: Command) -> None:
    """Answers to generated questions stay marked when an exported file is read again."""
    make_suite(command)
    for form, pattern in (("csv", "answers.csv"), ("lm-eval", "**/samples_*.jsonl")):
        assert command("export", "--suite", "s", "--format", form, "--to", form) == 0, (
            command.err
        )
        files = list(Path(form).glob(pattern))
        assert command("import", *files, "--suite", form) == 0, command.err
        suite = read_suite(Path("benchmark_output/runs", form), BENCHMARKS)
        assert suite.results
        assert all(result.is_generated for result in suite.results)


def test_a_floor_of_other_questions_is_no_floor(command: Command) -> None:
    """Scores of generated questions neither rank with published ones nor are above a floor of other questions."""
    tasks = "helmet_recall:num_samples=6"
    both = ("--model", "longctx/null", *ONE_RUN)
    assert command("run", "--tasks", tasks, "--length", "8k", *both) == 0, command.err
    suite = read_suite(Path("benchmark_output/runs/s"), BENCHMARKS, published=True)
    (board,) = [board for board in suite.boards if board.benchmark.name == "helmet"]
    own = board.score("longctx/lexical", "helmet_recall", 8192)
    published = board.score("published/GPT-4o-08", "helmet_recall", 8192)
    assert own
    assert published
    tasks = board.tasks_of("helmet_recall", 8192)
    assert _compare_means(board, own, published, tasks) is None
    assert _compare_means(board, replace(own, caveats=()), published, tasks)
    assert board.floor_below(own) == own.interval.mean
    assert board.floor_below(published) is None
    assert (
        len(
            {
                ranked_model.is_generated
                for ranked_model in board.ranking(8192, "helmet_recall")
            }
        )
        == 1
    )
