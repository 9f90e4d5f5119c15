"""Tests that models are compared only on scores by the same judge and on the same prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.gate.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.apps.gate.gate import GateQuestion, read_gate
from helm_longctx.apps.pooling.sections import pool_boards
from helm_longctx.apps.report.leaderboard import leaderboard_sections
from helm_longctx.cli.main import main
from helm_longctx.documents.document import HeadlineAnswer
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, read_suite
from helm_longctx.results.comparison import SharedTable, find_differences
from helm_longctx.results.methods import find_gains
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_run

SKILLS = {"a/one": 0.9, "a/two": 0.4}
LONGQA = "helmet_longqa:length=8k"


def read_boards(
    suite: Path, runs: Mapping[str, str], published: bool = False
) -> list[Board]:
    """Write the runs of each model, and read the boards.

    Args:
        runs: the entries of each model, joined by spaces.
    """
    for model, entries in runs.items():
        for entry in entries.split():
            write_run(suite, f"{entry},model={model}", model, SKILLS[model], 40, "")
    return list(read_suite(suite, BENCHMARKS, published=published).boards)


def by(judge: str, entry: str = LONGQA) -> str:
    return f"{entry},judge={judge}"


def compare(output: Path, *arguments: str) -> Any:
    """Call `compare`, and return its JSON."""
    path = output / "compare.json"
    given = [
        "compare",
        "--suite",
        "s",
        "-o",
        str(output),
        "--json",
        str(path),
        *arguments,
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["helm-longctx", *given])
        with pytest.raises(SystemExit, match="0"):
            main()
    return json.loads(path.read_bytes())


def test_answers_that_other_judges_scored_are_not_a_pair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task that one judge scored for one model and another judge for the other is not compared, and a line says why."""
    runs = {"a/one": by("longctx/lexical"), "a/two": LONGQA}
    (board,) = read_boards(tmp_path / "runs/s", runs)
    content = compare(tmp_path, "a/one", "a/two")
    tasks = {
        pairing["part"] for pairing in content["pairings"] if pairing["by"] == "task"
    }
    assert tasks
    assert "narrativeqa" not in tasks
    (line,) = content["not_compared"]
    assert line.startswith(
        "narrativeqa cannot be compared: a/one is judged by longctx/lexical; a/two is judged by openai/gpt-4o-2024-05-13; "
        "judge all with one judge (helm-longctx rejudge"
    )
    assert line in capsys.readouterr().out
    assert find_differences(board, "narrativeqa", 8192) == {}


def test_a_task_that_only_other_judges_scored_is_refused(tmp_path: Path) -> None:
    """If no task of two models has a judge in common, one line of an error says so."""
    entry = "helmet_longqa:task=narrativeqa,length=8k"
    boards = read_boards(
        tmp_path, {"a/one": by("longctx/lexical", entry), "a/two": entry}
    )
    with pytest.raises(
        InputError,
        match=r"no scored instance in common; narrativeqa cannot be compared: a/one is judg",
    ):
        SharedTable(boards, ["a/one", "a/two"])


def test_the_judge_in_common_pairs(tmp_path: Path) -> None:
    """A model with two judges is compared with another model by the judge that both have, not by the official one."""
    entry = "helmet_longqa:task=narrativeqa,length=8k"
    both = f"{entry} {by('longctx/lexical', entry)}"
    boards = read_boards(
        tmp_path, {"a/one": both, "a/two": by("longctx/lexical", entry)}
    )
    table = SharedTable(boards, ["a/one", "a/two"])
    assert table.refusals == []
    for model in table.models:
        answers = table.answers_of(model, 0)
        assert answers
        assert all("judge=longctx_lexical" in row.run for row in answers)


def test_no_rank_is_over_scores_of_several_judges(tmp_path: Path) -> None:
    """The report ranks the models of one judge; a model of another judge has no rank, and a sentence names its judge."""
    runs = {"a/one": by("longctx/lexical"), "a/two": LONGQA}
    (board,) = read_boards(tmp_path, runs, published=True)
    ranked = board.ranking(8192, "helmet_longqa")
    assert len({ranked_model.judges for ranked_model in ranked}) == 1
    assert {
        ranked_model.model for ranked_model in ranked if not ranked_model.is_published
    } == {"a/two"}
    assert [
        row.model
        for row in board.without_rank(8192, "helmet_longqa")
        if not row.is_published
    ] == ["a/one"]
    notes = [
        block.note
        for block in leaderboard_sections(board)[0].blocks
        if isinstance(block, HeadlineAnswer)
    ]
    assert "a/one has no rank, because it is judged by " in notes[0]
    assert "longctx/lexical" in notes[0]


def test_the_pooled_ranking_has_no_pairs_of_several_judges(tmp_path: Path) -> None:
    """The pooled ranking counts no instance as shared if different judges scored the answers of both models."""
    entry = "helmet_longqa:task=narrativeqa,length=8k"
    boards = read_boards(
        tmp_path, {"a/one": by("longctx/lexical", entry), "a/two": entry}
    )
    assert pool_boards(boards) is None


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("seed=7", "a/one seed=7; a/two has the default prompts"),
        ("shots=0", "a/one shots=0; a/two has the default"),
    ],
)
def test_other_prompts_with_equal_names_are_not_a_pair(
    argument: str, reason: str, tmp_path: Path
) -> None:
    """Instances of another seed, or with other demonstrations, have equal names but are not the same prompts."""
    entry = "helmet_recall:task=json_kv,length=8k"
    boards = read_boards(tmp_path, {"a/one": f"{entry},{argument}", "a/two": entry})
    with pytest.raises(InputError, match=f"json_kv cannot be compared: {reason}"):
        SharedTable(boards, ["a/one", "a/two"])


def test_a_default_that_an_entry_names_is_no_other_condition(tmp_path: Path) -> None:
    """An entry that names the default seed is compared with an entry that does not."""
    entry = "helmet_recall:task=json_kv,length=8k"
    boards = read_boards(tmp_path, {"a/one": f"{entry},seed=42", "a/two": entry})
    assert SharedTable(boards, ["a/one", "a/two"]).refusals == []


def test_a_method_is_compared_with_plain_prompts_by_one_judge(tmp_path: Path) -> None:
    """`compare --methods` leaves out a task that another judge scored with the method, and says so."""
    runs = {"a/one": f"{LONGQA} {by('longctx/lexical')},method=retrieve"}
    (gain,) = find_gains(read_boards(tmp_path, runs))
    (line,) = gain.not_compared
    assert line.startswith("narrativeqa cannot be compared: a/one (method=retrieve")
    assert 0 < gain.costs.questions <= 80


def test_a_gate_does_not_compare_judges(tmp_path: Path) -> None:
    """A gate whose arms were scored by different judges, such as after `rejudge`, ends in a line with the judges."""
    folder = GateFolder(tmp_path, "g")
    names = []
    for arm, entry in ((BASE, LONGQA), (CANDIDATE, by("longctx/lexical"))):
        names.append(
            write_run(
                folder.suite_folder(arm), f"{entry},model=a/one", "a/one", 0.5, 12, ""
            ).name
        )
    folder.write_first_half(names[0], [])
    question = GateQuestion("a/one", "a/one", 0.05, 0.8, [(names[0], names[1])])
    with pytest.raises(
        InputError,
        match=r"gate: narrativeqa cannot be compared: base is judged by openai/gpt-4o",
    ):
        read_gate(folder, question, BENCHMARKS)
