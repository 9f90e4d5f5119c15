"""The argument `scorer` selects the authors' scorer of 2024-06 or of 2024-08, wherever answers are scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.infinite_bench.tasks import INFINITE_BENCH
from helm_longctx.errors import InputError
from helm_longctx.helm.scenario import to_instance
from helm_longctx.results.comparability import Caveat, task_caveats
from helm_longctx.results.reading import published_results
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.tasks.task import Example, Settings
from tests.support.commands import Command

ANSWERS = [
    ("longdialogue_qa", ["GREY OWL"], "GREY OWL", 1, 0),
    ("longdialogue_qa_eng", ["CAPTAIN ANN REED", "REED"], "REED", 1, 0),
    ("longdialogue_qa_eng", ["ANN"], "Bob", 0, 0),
    ("longbook_choice_eng", ["Ann", "B"], "(B)", 1, 0),
    ("longbook_choice_eng", ["Ann", "B"], "Answer: B", 1, 0),
    ("longbook_choice_eng", ["Ann", "B"], "B", 1, 1),
    ("code_debug", ["run.func", "B"], "(B)", 1, 0),
    ("code_debug", ["run.func", "B"], "B", 1, 0),
    ("code_debug", ["run.func", "B"], "Is it B? I do", 0, 0),
    ("passkey", ["12345"], "12345", 1, 1),
]
"""Task, references and answer, and the answer's scores in 2024-08 and 2024-06."""


@pytest.mark.parametrize(
    "entry", ["infinite_bench", "infinite_bench_base", "infinite_bench_claude"]
)
@pytest.mark.parametrize(
    ("scorer", "column"), [("", 3), ("2024-08", 3), ("2024-06", 4)]
)
def test_the_command_scores_with_the_scorer(
    entry: str,
    scorer: str,
    column: int,
    tmp_path: Path,
    command: Command,
) -> None:
    """`helm-longctx score` takes the argument, and takes the later scorer without it."""
    for row in ANSWERS:
        task, references, prediction = row[:3]
        records = tmp_path / "records.jsonl"
        records.write_text(
            json.dumps({"prediction": prediction, "references": references}) + "\n"
        )
        text = f"{entry}:task={task}" + (f",scorer={scorer}" if scorer else "")
        assert command("score", text, "--records", str(records)) == 0
        assert command.rows[0]["longctx_score"] == row[column], (task, prediction)


def test_other_values_in_records_are_refused() -> None:
    """An unknown scorer in a record is refused in one line."""
    task = INFINITE_BENCH.task("passkey")
    with pytest.raises(InputError, match="row 1: scorer='x' is invalid"):
        task.check_record(
            {"prediction": "", "references": ["1"], "scorer": "x"}, "row 1"
        )


def test_a_short_name_makes_the_same_run() -> None:
    """A task's short name stands for the usual one, which is in the run's name."""
    entry = parse_entry(
        BENCHMARKS, "infinite_bench:task=longdialogue_qa,scorer=2024-06"
    )
    assert entry.description == "infinite_bench:task=longdialogue_qa_eng,scorer=2024-06"


def test_an_instance_names_the_scorer() -> None:
    """The scorer of the run entry travels with the instance to the metric."""
    task = INFINITE_BENCH.task("passkey")
    example = Example("passkey-0", {"context": "a", "input": "b"}, ["1"], "hub")
    records = [
        Sample.from_json(
            to_instance(
                INFINITE_BENCH, task, Settings(None, scorer=scorer), example, 6
            ).extra_data
        ).record
        for scorer in ("", "2024-06")
    ]
    assert records == [{}, {"scorer": "2024-06"}]


def test_scores_of_the_earlier_scorer_are_marked() -> None:
    """Runs and published scores of the earlier scorer have a mark and are paired with each other, where it matters."""
    entry = {"entry": "infinite_bench", "revision": "x", "scorer": "2024-06"}
    asked = read_entry({"scenario_spec": {"args": entry}})
    assert asked
    marked = {
        task.name: list(task_caveats(task, asked, {}))
        for task in INFINITE_BENCH.categories[0].tasks
    }
    changed = {"longbook_choice_eng", "longdialogue_qa_eng", "code_debug"}
    for name, caveats in marked.items():
        assert caveats == (
            [Caveat("scorer", name, "2024-06")] if name in changed else []
        )
    for result in published_results(INFINITE_BENCH):
        assert result.conditions == (
            ("scorer=2024-06",) if result.task in changed else ()
        )


@pytest.mark.parametrize("references", [[], [""], ["[]"], ["x"]])
def test_calculations_without_a_usable_reference_have_no_score(
    references: list[str],
) -> None:
    """Without a reference, or with one that is no list of numbers, Math.Calc has no score and no error."""
    record = {"prediction": "1 2", "references": references}
    assert INFINITE_BENCH.task("math_calc").score(record) == {}
