"""Tests of every HELMET category from `helm-run` to its table, with fabricated data, both baselines and a judge."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from tests.e2e.commands import helm_run, write_ready
from tests.support.leaderboards import stats, table
from tests.support.programs import run
from tests.support.servers.llm import serve

JUDGE = "vllm/llama-3.1-8b-instruct"
RUNS = (
    "helmet_rag:length=8k,num_samples=4",
    "helmet_rag:length=8k,num_samples=4,context=none",
    "helmet_rerank:length=8k,num_samples=4",
    "helmet_longqa:length=8k,num_samples=4",
    "helmet_summ:length=8k,num_samples=3",
    "helmet_ruler:length=8k,num_samples=3",
    "helmet_niah:length=4k,num_samples=3",
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory, mirror: DataRoot) -> Path:
    """Make and summarize all runs in a folder."""
    folder = tmp_path_factory.mktemp("categories")
    entries = [
        f"{entry},model=longctx/{model}"
        for entry in RUNS
        for model in ("lexical", "null")
    ]
    entries.append(
        "helmet_cite:length=8k,num_samples=3,judge=none,model=longctx/lexical"
    )
    made = helm_run(folder, *entries, HELM_LONGCTX_DATA=str(mirror.path))
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=folder)
    assert summarized.returncode == 0, summarized.stderr
    assert "HELMET closed book" in summarized.stdout
    told = [
        line
        for line in summarized.stdout.splitlines()
        if "LongQA 8k: no score (narrativeqa)" in line
    ]
    assert [line.split(": ")[1] for line in told] == [
        "HELMET, longctx/lexical",
        "HELMET, longctx/null",
    ]
    return folder


def test_questions_are_asked_at_all_depths(suite: Path) -> None:
    """Each question is asked at all depths (24 requests for four questions, 12 for hotpotqa), and the depths are reported."""
    statistics = stats(
        suite, "helmet_rag:length=8k,num_samples=4,model=longctx_lexical"
    )
    assert {
        task: statistics["num_instances", task]
        for task in ("nq", "triviaqa", "hotpotqa", "popqa")
    } == {
        "nq": 24,
        "triviaqa": 24,
        "hotpotqa": 12,
        "popqa": 24,
    }
    assert {
        ("longctx_score_at_depth_0", "popqa"),
        ("longctx_score_at_depth_100", "popqa"),
    } <= set(statistics)


def test_closed_book_is_a_table_of_its_own(suite: Path) -> None:
    """Closed-book runs have their own group, and do not change the means of the other runs."""
    open_book, closed = (
        table(suite, f"helmet{name}_rag", "Score") for name in ("", "_closed")
    )
    assert set(open_book) == set(closed) == {"Lexical baseline", "Null baseline"}
    runs = {
        name: stats(
            suite, f"helmet_rag:length=8k,num_samples=4{name},model=longctx_lexical"
        )
        for name in ("", ",context=none")
    }
    for shown, name in ((open_book, ""), (closed, ",context=none")):
        mean = (
            sum(
                runs[name]["longctx_score", t]
                for t in ("nq", "triviaqa", "hotpotqa", "popqa")
            )
            / 4
        )
        assert next(iter(shown["Lexical baseline"].values())) == pytest.approx(mean)
    assert ("longctx_score_at_depth_0", "popqa") not in runs[",context=none"]
    state = json.loads(
        (
            suite
            / "benchmark_output/runs/s/helmet_rag:length=8k,num_samples=4,context=none,model=longctx_null/scenario_state.json"
        ).read_text()
    )
    assert all(
        "\n\n\n\nQuestion: " in s["request"]["prompt"] for s in state["request_states"]
    )


def test_judged_scores_are_absent_without_a_judge(suite: Path) -> None:
    """Without a judge, scores that need none are present, and the headline is absent instead of zero."""
    summ = stats(suite, "helmet_summ:length=8k,num_samples=3,model=longctx_lexical")
    assert ("rougeL_f1", "infbench_sum") in summ
    assert ("longctx_score", "infbench_sum") not in summ
    longqa = stats(suite, "helmet_longqa:length=8k,num_samples=4,model=longctx_lexical")
    assert ("longctx_score", "infbench_qa") in longqa
    assert ("longctx_score", "narrativeqa") not in longqa
    cite = stats(
        suite, "helmet_cite:length=8k,num_samples=3,judge=none,model=longctx_lexical"
    )
    assert ("str_em", "asqa") in cite
    assert ("qampari_rec_top5", "qampari") in cite
    assert not {"longctx_score", "citation_rec", "judge_failed"} & {
        name for name, _ in cite
    }


def test_ranking_and_ruler(suite: Path) -> None:
    """Re-ranking has the metrics of the official code, and RULER has thirteen columns."""
    rerank = stats(suite, "helmet_rerank:length=8k,num_samples=4,model=longctx_lexical")
    assert rerank["longctx_score", "msmarco"] == rerank["NDCG@10", "msmarco"]
    assert ("NDCG@20", "msmarco") not in rerank
    assert ("MAP@10", "msmarco") in rerank
    tasks = {
        task
        for name, task in stats(
            suite, "helmet_ruler:length=8k,num_samples=3,model=longctx_null"
        )
        if task
    }
    assert len(tasks) == 13
    niah = table(suite, "helmet_niah", "Score")
    assert set(niah) == {"Lexical baseline", "Null baseline"}


def test_citations_judged_by_a_deployment(tmp_path: Path, mirror: DataRoot) -> None:
    """Citations that a deployment judges have names of their own, failures are counted, and documents are found again.

    `rejudge` reads the documents in the output folder that it gets.
    """

    def answer(prompt: str) -> str:
        return "1" if zlib.crc32(prompt.encode()) % 12 else "maybe"

    with serve(answer) as server:
        write_ready(tmp_path / "models", server.openai)
        entry = (
            f"helmet_cite:length=8k,num_samples=5,judge={JUDGE},model=longctx/lexical"
        )
        arguments = (
            "--run-entries",
            entry,
            "--suite",
            "s",
            "-m",
            99,
            "--local-path",
            "models",
        )
        made = run(
            "helm-run",
            *arguments,
            folder=tmp_path,
            HELM_LONGCTX_DATA=str(mirror.path),
        )
        shutil.copytree(tmp_path / "benchmark_output/runs", tmp_path / "moved/runs")
        (tmp_path / "moved/scenarios").mkdir()
        (tmp_path / "moved/scenarios/helm_longctx").symlink_to(mirror.path)
        again = ("rejudge", "-o", "moved", "--suite", "s", "--local-path", "models")
        judged = run("helm-longctx", *again, folder=tmp_path)
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
        assert judged.returncode == 0, judged.stderr
    assert {call.path for call in server.calls} == {"/v1/chat/completions"}
    (name,) = (path.name for path in (tmp_path / "moved/runs/s").glob("helmet_cite*"))
    first, second = (
        tmp_path / folder / "runs/s" / name / "stats.json"
        for folder in ("benchmark_output", "moved")
    )
    assert second.read_text() == first.read_text()
    (folder,) = (tmp_path / "benchmark_output/runs/s").glob("helmet_cite*")
    statistics = stats(tmp_path, folder.name)
    for task in ("asqa", "qampari"):
        assert 0 < statistics["judge_failed", task] < 1
        assert ("longctx_score", task) not in statistics
        assert ("citation_rec", task) not in statistics
        assert 0 <= statistics["judge_citation_rec", task] <= 1
    states = json.loads((folder / "scenario_state.json").read_text())["request_states"]
    assert {state["annotations"]["citations"]["judge"] for state in states} == {JUDGE}


def test_thinking_is_not_scored(tmp_path: Path) -> None:
    """Reasoning is cut off before scoring, and the model gets tokens for it beyond the task's budget."""
    from helm_longctx.models.baselines import lexical

    with serve(
        lambda prompt: f"<think>Is it 3?\nNo.</think>\n{lexical.answer(prompt)}"
    ) as server:
        write_ready(tmp_path / "models", server.openai)
        entry = f"helmet_recall:task=json_kv,length=4k,num_samples=3,thinking_tokens=1000,model={JUDGE}"
        made = run(
            "helm-run",
            "--run-entries",
            entry,
            "--suite",
            "s",
            "-m",
            9,
            "--local-path",
            "models",
            folder=tmp_path,
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    assert {body["max_tokens"] for body in server.bodies} == {1100}
    (folder,) = (tmp_path / "benchmark_output/runs/s").glob("helmet_recall*")
    statistics = stats(tmp_path, folder.name)
    assert statistics["exact_match", "json_kv"] == 1.0
