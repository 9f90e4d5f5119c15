"""LongProc's evaluators have these properties for any output."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.common.object_spec import parse_object_spec
from hypothesis import given
from hypothesis import strategies as st

import helm_longctx.plugin  # noqa: F401  # registers the run entries
from helm_longctx.benchmarks.longproc import countdown, tasks, travel
from helm_longctx.cli.records import score
from helm_longctx.errors import InputError
from helm_longctx.run_settings import SANDBOX
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.sandbox import ProgramResult

OPERANDS = st.one_of(
    st.integers(-40, 40).map(str),
    st.sampled_from(
        [
            "05",
            "00",
            "1_0",
            "0_0",
            "1__0",
            "- 5",
            "+5",
            "0x1",
            "1.5",
            "",
            "3 ",
            "\t3",
            "１",
            "1e1",
            "(4)",
        ]
    ),
)
RESULTS = st.one_of(
    st.integers(-80, 400).map(str), st.sampled_from(["", "x", " 3", "3.0", "1_0", "٣"])
)


@st.composite
def equations(draw: st.DrawFn) -> str:
    """Return lines that are equations or look like equations; half of the plain ones hold."""
    left = f"{draw(OPERANDS)}{draw(st.sampled_from([' ', '']))}{draw(st.sampled_from('+-*/'))} {draw(OPERANDS)}"
    result = draw(RESULTS)
    if draw(st.booleans()):
        result = str(evaluated(left)).removesuffix(".0")
    return f"{left} = {result}{draw(st.sampled_from(['', ' ', ' = 3', '.']))}"


def evaluated(left: str) -> object:
    try:
        return eval(left)  # digits, signs and brackets alone
    except (SyntaxError, ZeroDivisionError, TypeError):
        return None


def official_equation(line: str) -> bool | None:
    """Return whether an equation holds by the official rule, or None if the rule raises."""
    sides = line.strip().split("=")
    value = evaluated(sides[0])
    sign = next((sign for sign in "+-*/" if sign in sides[0]), "")
    if len(sides) != 2:
        return False
    if value is None:
        return None
    try:
        a, b = sides[0].split(sign)
        return value == int(sides[1]) and isinstance(int(a) + int(b), int)
    except ValueError:
        return False


@given(equations())
def test_equations(line: str) -> None:
    """An equation holds if Python's value of its left side is the right one; a side that Python cannot evaluate is
    wrong."""
    assert (countdown.read_equation(line) is not None) == bool(official_equation(line))


@given(st.lists(st.integers(0, 60), min_size=4, max_size=4), st.integers(0, 100))
def test_demonstrations_are_solutions(numbers: list[int], target: int) -> None:
    """Every demonstration's solution is right, is the text of its tag, and scores 1 as an output, unlike its first
    half."""
    try:
        solution, text = countdown.demonstrate(numbers, target)
    except ValueError:
        return
    assert countdown.is_solution(numbers, target, "\n".join(solution))
    assert tasks.extract_tag(text, "Solution") == "\n".join(solution)
    item = {"nums": numbers, "target": target, "reference_output": text}
    assert tasks.score_countdown({"prediction": text, "item": item})["accuracy"] == 1
    half = text[: len(text) // 2]
    assert tasks.score_countdown({"prediction": half, "item": item})["accuracy"] == 0


CELLS = st.text(st.sampled_from("aB1 the\t\n\"'\r,é€\x00"), max_size=60)


@given(CELLS, CELLS)
def test_tables(output: str, reference: str) -> None:
    """The scores of any text are between 0 and 1, and the reference itself is right or has no table."""
    record = {"prediction": output, "item": {"reference_output": reference}}
    assert all(0 <= value <= 1 for value in tasks.score_html_to_tsv(record).values())
    own = tasks.score_html_to_tsv(
        {"prediction": reference, "item": {"reference_output": reference}}
    )
    assert set(own.values()) in ({0.0}, {1.0}) or "```" in reference


@given(st.text(st.sampled_from("ab-\n \u2028\x0b'\u2019"), max_size=40))
def test_beliefs(text: str) -> None:
    """A text is right as its own reference, also if it has no beliefs."""
    assert (
        tasks.score_tom_tracking(
            {"prediction": text, "item": {"reference_output": text}}
        )["accuracy"]
        == 1
    )


@given(st.text(st.sampled_from("<Route>/ab\n"), max_size=40))
def test_tags(text: str) -> None:
    """A tag's text has no white space around it."""
    content = tasks.extract_tag(text, "Route")
    assert content is None or content == content.strip()


@pytest.mark.parametrize("wrapped", [False, True])
def test_items(wrapped: bool) -> None:
    """A record's item may be the whole official data point, or the item in it."""
    item = {"reference_output": "From A, take a bus to B."}
    record = {
        "prediction": "<Route>From A, take a bus to B.</Route>",
        "item": {"item": item} if wrapped else item,
    }
    assert tasks.score_path_traversal(record)["accuracy"] == 1


def test_beliefs_where_none_are_expected() -> None:
    """An item without expected beliefs has no score, where the official code divides by zero."""
    assert (
        tasks.score_tom_tracking(
            {"prediction": "- x", "item": {"reference_output": "none"}}
        )
        == {}
    )


def test_code_is_not_run_unless_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program is an error unless programs may run, and an output without a program is scored."""
    monkeypatch.delenv(SANDBOX, raising=False)
    item = {"testcases": [[["1"], ["1"]]]}
    with pytest.raises(InputError, match=f"set {SANDBOX}=bubblewrap"):
        tasks.score_pseudo_to_code(
            {"prediction": "```c++\nint main() {}\n```", "item": item}
        )
    scores = tasks.score_pseudo_to_code({"prediction": "int main() {}", "item": item})
    assert scores == {"accuracy": 0, "partial_accuracy": 0, "extraction_rate": 0}


def test_runs_are_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run and a score need permission to run programs, while prompts can be read without it."""
    monkeypatch.delenv(SANDBOX, raising=False)
    entry = "longproc:task=pseudo_to_code,length=2k"
    with pytest.raises(InputError, match=f"set {SANDBOX}=bubblewrap"):
        parse_entry(BENCHMARKS, entry).check_machine()
    with pytest.raises(InputError, match=f"set {SANDBOX}=bubblewrap"):
        score(entry, tmp_path / "records.jsonl")
    assert parse_entry(BENCHMARKS, entry).tasks[0].headline == ("accuracy",)
    assert construct_run_specs(
        parse_object_spec("longproc:length=2k,model=longctx/null")
    )


@pytest.mark.parametrize("tests", [None, [[["1"]]], [[["1"], [2]]], [["1", "2"]], "x"])
def test_items_of_programs(tests: object) -> None:
    """Test cases must be pairs of lists of lines."""
    assert not tasks.EVALUATORS["pseudo_to_code"].item["testcases"](tests)
    assert tasks.EVALUATORS["pseudo_to_code"].item["testcases"]([[["1"], []]])


def test_halves_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler gets any text of a model, also half a character, which the official code cannot write to a file."""
    sent: list[bytes] = []
    monkeypatch.setattr(
        tasks,
        "run",
        lambda command, stdin, **limits: (
            sent.append(stdin) or ProgramResult(b"", b"", 1)
        ),
    )
    assert tasks.compile_program("int main() {} // \ud800") is None
    assert sent == [b"int main() {} // \xed\xa0\x80"]


def test_equations_run_no_code() -> None:
    """The text of a model is parsed and never evaluated."""
    assert countdown.read_equation("__import__('time').sleep(60) + 1 = 1") is None
    assert not countdown.is_solution([1, 2, 3, 4], 10, "9**9**9 + 1 = 1\n\n")


def test_plans_that_repeat_themselves() -> None:
    """A line of thousands of days is read in a moment."""
    start = time.process_time()
    assert travel.read_plan("Day 1 from A " * 2000) == []
    assert time.process_time() - start < 20


def test_the_baseline_follows_links_to_the_target() -> None:
    """A route ends at the city that is asked for, also if a link leads on from it."""
    problem = (
        "[PROBLEM]\nYou can travel from Ulm to Bonn by bus. You can travel from Bonn to Kiel by train."
        " You can travel from Kiel to Ulm by tram.\nNow find the route from Ulm to Kiel based on the links."
    )
    (task,) = parse_entry(BENCHMARKS, "longproc:task=path_traversal,length=2k").tasks
    kind = task.baseline.kind
    assert callable(kind)
    route = "From Ulm, take a bus to Bonn.\nFrom Bonn, take a train to Kiel."
    assert kind([{"content": problem}]) == f"<Route>\n{route}\n</Route>"
