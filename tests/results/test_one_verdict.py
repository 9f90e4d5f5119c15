"""Tests that `compare` and the report have the same verdicts and ranks, and the scores of the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.comparison.sections import comparison_sections
from helm_longctx.apps.report.leaderboard import leaderboard_sections
from helm_longctx.cli.main import main
from helm_longctx.documents.document import Figure, HeadlineAnswer, Table
from helm_longctx.results.boards import Board, label, read_suite
from helm_longctx.results.cells import score_tables
from helm_longctx.results.comparison import (
    by_instance,
    describe_best,
    describe_pair,
    find_differences,
)
from helm_longctx.results.statistics.comparison import FAILURES_DECIDE
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_run, write_suite
from tests.support.leaderboards import summarize_suite


def compare_models(output: Path, models: Iterable[str]) -> Any:
    """Call `compare`, and return its JSON."""
    arguments = [
        "compare",
        "--suite",
        "s",
        "-o",
        str(output),
        "--json",
        str(output / "compare.json"),
        *models,
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["helm-longctx", *arguments])
        with pytest.raises(SystemExit, match="0"):
            main()
    return json.loads((output / "compare.json").read_bytes())


def answers_of_report(board: Board) -> dict[str, HeadlineAnswer]:
    """Return the headline of each length."""
    sections = leaderboard_sections(board)
    return {
        section.choice: block
        for section in sections
        for block in section.blocks
        if isinstance(block, HeadlineAnswer)
    }


def named_verdicts(certainty: str, models: Iterable[str]) -> dict[str, str]:
    """Return the verdict of the headline about each of some models that it names: a tie, or that failures decide."""
    sentences = certainty.split(". ")
    starts = {
        "Statistical tie with": "tie",
        FAILURES_DECIDE.capitalize(): FAILURES_DECIDE,
    }
    verdicts = {}
    for sentence in sentences:
        for start, verdict in starts.items():
            if sentence.startswith(start):
                named = sentence.partition(" (")[0]
                verdicts |= {model: verdict for model in models if model in named}
    return verdicts


@pytest.mark.parametrize(
    "skills",
    [
        {"a/strong": 0.9, "a/weak": 0.5},
        {"a/strong": 0.7, "a/weak": 0.66},
        {"a/strong": 0.9, "a/same": 0.9, "a/weak": 0.3},
        {f"a/{position}": 0.9 - 0.06 * position for position in range(6)},
    ],
)
def test_verdicts_agree_in_every_place(
    skills: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`compare` and the report, beside 63 published models, say of each pair and length the same: better, worse or tied."""
    write_suite(
        tmp_path / "runs/s",
        [f"helmet_recall:length={length}" for length in ("8k", "32k")],
        skills,
        instances=20,
    )
    content = compare_models(tmp_path, skills)
    printed = " ".join(capsys.readouterr().out.split())
    (board,) = read_suite(tmp_path / "runs/s", BENCHMARKS, published=True).boards
    answers = answers_of_report(board)
    for length in (8192, 32768):
        differences = find_differences(board, "helmet_recall", length)
        pairs = [
            pairing
            for pairing in content["pairings"]
            if (pairing["by"], pairing["part"]) == ("length", label(length))
        ]
        assert len(pairs) == len(skills) * (len(skills) - 1) / 2
        for pairing in pairs:
            pair = pairing["one"], pairing["other"]
            decision = differences[pair]
            winner = (
                pair[decision.comparison.effect.mean < 0]
                if decision.is_different
                else ""
            )
            assert (pairing["better"], pairing["verdict"]) == (winner, decision.verdict)
            assert pairing["adjusted"] == pytest.approx(decision.adjusted)
        best, *others = (
            ranked_model.model
            for ranked_model in board.ranking(length, "helmet_recall")
            if not ranked_model.is_published
        )
        answer = answers[label(length)]
        assert answer.verdict.startswith(
            f"{best} has the highest score in Recall of your models: "
        )
        assert answer.certainty.startswith(describe_best(best, others, differences))
        verdicts = {other: differences[best, other].verdict for other in others}
        assert named_verdicts(answer.certainty, others) == {
            other: verdict for other, verdict in verdicts.items() if verdict != "better"
        }
        assert answer.is_sure == (set(verdicts.values()) == {"better"})
        assert ("It is better than" in answer.certainty) == (
            "better" in verdicts.values()
        )
        verdict = describe_pair(best, others[0], differences[best, others[0]])
        sentence = (
            verdict
            if len(skills) == 2
            else f"{best} has the highest mean. {describe_best(best, [ShownModel(skill) for skill in skills if skill != best], differences)}"
        )
        assert f"At {label(length)} {sentence}" in printed


def test_a_mean_over_other_tasks_has_no_rank_in_any_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model with the easiest of four tasks is not above one with all four; on that task both are compared."""
    suite = tmp_path / "runs/s"
    write_run(suite, "helmet_recall:length=8k,model=a/whole", "a/whole", 0.8, 30, "")
    write_run(suite, "helmet_recall:length=8k,model=a/second", "a/second", 0.6, 30, "")
    write_run(
        suite,
        "helmet_recall:task=json_kv,length=8k,model=a/part",
        "a/part",
        1.5,
        30,
        "",
    )
    (board,) = read_suite(suite, BENCHMARKS, published=True).boards
    part, *_ = board.without_rank(8192, "helmet_recall")
    assert part.model == "a/part"
    assert part.interval.mean > max(
        ranked_model.interval.mean
        for ranked_model in board.ranking(8192, "helmet_recall")
        if not ranked_model.is_published
    )
    differences = find_differences(board, "helmet_recall", 8192)
    comparison = differences["a/part", "a/whole"].comparison
    both = [board.score(model, "json_kv", 8192) for model in ("a/part", "a/whole")]
    shared = [by_instance(side.answers if side else ()) for side in both]
    assert comparison.wins + comparison.losses + comparison.ties == len(
        shared[0].keys() & shared[1].keys()
    )
    # The published models have scores of the same task.
    assert any(
        one == "a/part" and other.startswith("published/") for one, other in differences
    )
    answer = answers_of_report(board)["8k"]
    assert answer.verdict.startswith(
        "a/whole has the highest score in Recall of your models: "
    )
    assert (
        "a/part has no rank, because its mean is over other tasks (JSON KV); on the tasks that both have, a/part is "
        in answer.note
    )
    table = next(
        block
        for block in leaderboard_sections(board)[0].blocks
        if isinstance(block, Table)
    )
    assert [(row[0].text, row[1].text) for row in table.rows[2:3]] == [("–", "a/part")]
    assert [kind for kind, _ in table.bodies][:2] == ["own", "unranked"]
    ranks = comparison_sections(board)[0].blocks[1]
    assert isinstance(ranks, Figure)
    assert "a/part †" not in {row["model"] for row in ranks.rows}
    summarize_suite("s", tmp_path)
    for name in ("helmet_recall_8k", "helmet_8k"):
        rows = json.loads((suite / f"groups/{name}.json").read_text())[0]["rows"]
        assert [row[0]["value"] for row in rows][-1] == "a/part"
        # HELM's page sorts the texts, in which a space comes before digits.
        assert max(rows, key=lambda row: row[1]["value"])[0]["value"] == "a/whole"
    printed = next(score_tables([board]))
    assert [row[0].text for row in printed.rows][:3] == ["whole", "second", "part"]
    content = compare_models(tmp_path, ["a/part", "a/whole"])
    assert {
        pairing["part"] for pairing in content["pairings"] if pairing["by"] == "task"
    } == {"json_kv"}
    (pairing,) = (
        pairing for pairing in content["pairings"] if pairing["by"] == "length"
    )
    assert pairing["comparison"]["effect"]["mean"] == pytest.approx(
        comparison.effect.mean
    )


def test_compare_does_not_pool_benchmarks_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`compare` has a verdict for each benchmark, and one mean over all only with `--pool`."""
    for entry in (
        "helmet_recall:length=8k",
        "lv_eval:dataset=factrecall_en,length=16k",
    ):
        write_suite(
            tmp_path / "runs/s", [entry], {"a/strong": 0.9, "a/weak": 0.3}, instances=40
        )
    models = ["a/strong", "a/weak"]
    content = compare_models(tmp_path, models)
    assert {standing["benchmark"] for standing in content["standings"]} == {
        "helmet",
        "lv_eval",
    }
    printed = capsys.readouterr().out.splitlines()
    heads = [
        index
        for index, line in enumerate(printed)
        if line.endswith("instances that both models answered")
    ]
    assert [printed[head].partition(":")[0] for head in heads] == [
        "HELMET",
        "LV-Eval",
    ]
    assert all(
        printed[head + 1].startswith("a/strong is better than a/weak (+")
        for head in heads
    )
    assert {
        standing["benchmark"]
        for standing in compare_models(tmp_path, [*models, "--pool"])["standings"]
    } == {""}
    assert "HELMET and LV-Eval: " in capsys.readouterr().out


def test_compare_has_the_scores_of_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where both models answered everything, `compare` has the same means as the tables, and their differences."""
    suite = tmp_path / "runs/s"
    for model, skill in (("a/strong", 0.9), ("a/weak", 0.3)):
        for entry in (
            "helmet_recall:length=8k",
            "helmet_ruler:length=8k",
            "helmet_rag:length=8k",
        ):
            write_run(suite, f"{entry},model={model}", model, skill, 6, "")
    content = compare_models(tmp_path, ["a/strong", "a/weak"])
    (board,) = read_suite(suite, BENCHMARKS).boards
    by_task = {
        pairing["part"]: pairing["comparison"]["effect"]
        for pairing in content["pairings"]
        if pairing["by"] == "task"
    }
    shared = 0
    for task, effect in by_task.items():
        one, other = (
            board.score(model, task, 8192) for model in ("a/strong", "a/weak")
        )
        if one and other and one.interval.n == other.interval.n == effect["n"]:
            assert effect["mean"] == pytest.approx(
                one.interval.mean - other.interval.mean
            )
            shared += 1
    assert shared > 3
    assert (
        "Not in the means, because the benchmark leaves them out: ruler_niah_s_1"
        in capsys.readouterr().out
    )
