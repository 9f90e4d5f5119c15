"""Tests of `evaluate` with functions: what they get, what becomes of their answers and errors, and what is shown."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import helm_longctx as lc
from helm_longctx.evaluation.result import EvaluationResult
from helm_longctx.models.objects import OBJECTS
from helm_longctx.results.run_groups import UNKNOWN_NOISE
from tests.evaluation.calls import TASK, call, look_up
from tests.support.commands import Command

RUN = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=python_"


def nothing(prompt: lc.Prompt) -> str:
    """Return the same wrong answer to every prompt."""
    return "I do not know."


def files(folder: str, name: str) -> list[Path]:
    return sorted(Path(folder).glob(f"runs/evaluate/*/{name}"))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> EvaluationResult:
    """Return the result of a function that answers right and one that does not."""
    folder = tmp_path_factory.mktemp("both")
    return call(
        [look_up, nothing],
        num_samples=12,
        output_path=folder / "out",
        local_path=folder / "env",
    )


def test_tables(both: EvaluationResult) -> None:
    """A result has its scores and its answers as tables."""
    scores = both.scores.set_index(["model", "task"])
    assert list(both.scores) == [
        *(
            "model",
            "benchmark",
            "task",
            "length",
            "metric",
            "score",
            "low",
            "high",
            "n",
            "mark",
            "reason",
        )
    ]
    row = scores.loc["python/look_up", "json_kv"]
    assert (row.benchmark, row.length, row.score, row.n, row.mark) == (
        "helmet",
        8192,
        1.0,
        12,
        "†",
    )
    assert row.low < 1
    assert "12 of the benchmark's 100 examples" in row.reason
    assert scores.loc["python/nothing", "json_kv"].score == 0
    answers = both.answers
    assert list(answers.model) == ["python/look_up"] * 12 + ["python/nothing"] * 12
    assert set(answers.answer[12:]) == {"I do not know."}
    assert (answers.seconds > 0).all()
    assert answers.depth.notna().all()
    assert (answers.length == "8k").all()
    assert {
        "instance",
        "question",
        "references",
        "score",
        "tokens",
        "failure",
        "finish_reason",
    } <= set(answers)


def test_the_table_of_run(both: EvaluationResult, command: Command) -> None:
    """A result shows the table that `helm-longctx run` prints, in a terminal and in a notebook."""
    options = ("--suite", "evaluate", "--output-path", both.suite.parents[1])
    assert command("summarize", *options) == 0, command.err
    rows = [
        line for line in repr(both).splitlines() if "100.0" in line or "0.0 †" in line
    ]
    assert [
        name in row for name, row in zip(("look_up", "nothing"), rows, strict=True)
    ] == [
        True,
        True,
    ]
    assert set(rows) <= set(command.out.splitlines())
    assert "look_up" in both._repr_html_()
    assert "100.0" in both._repr_html_()


def test_other_commands_show_the_suite(
    both: EvaluationResult, command: Command
) -> None:
    """HELM's leaderboard, the report and `compare` show the models."""
    options = ("--suite", "evaluate", "--output-path", both.suite.parents[1])
    assert command("summarize", *options) == 0, command.err
    table = json.loads((both.suite / "groups" / "helmet_recall_8k.json").read_text())[0]
    assert [row[0]["value"] for row in table["rows"]] == [
        "python/look_up",
        "python/nothing",
    ]
    assert command("compare", "python/look_up", "python/nothing", *options) == 0, (
        command.err
    )
    assert re.search(
        r"python/look_up.*python/nothing|python/nothing.*python/look_up",
        command.out,
        re.DOTALL,
    )
    page = both.report()
    assert page.is_file()
    assert "python/look_up" in page.read_text(encoding="utf-8")


def test_comparison(both: EvaluationResult, tmp_path: Path) -> None:
    """Models of one result, and of two results, are compared on the same questions."""
    row = both.compare().set_index("part").loc["json_kv"]
    assert (row.one, row.other, row.difference, row.n) == (
        "python/look_up",
        "python/nothing",
        1,
        12,
    )
    assert row.low > 0
    assert row.better == "python/look_up"
    one, other = (
        call(function, num_samples=12, output_path=tmp_path / function.__name__)
        for function in (look_up, nothing)
    )
    assert one.compare(other).equals(both.compare())
    groups = {"own": ["python/look_up"], "none": ["python/nothing"]}
    (pair,) = one.compare_groups(groups, other).itertuples()
    assert pair.verdict == UNKNOWN_NOISE
    (pair,) = both.compare_groups(groups, run_noise=6).itertuples()
    assert (pair.one, pair.difference, pair.verdict) == ("own", 1, "better")
    with pytest.raises(
        lc.InputError,
        match=r"both results have the model 'python/look_up'; give one of them a name=",
    ):
        one.compare(both)


def test_what_a_function_gets() -> None:
    """A prompt has its texts, limits and facts, and its parts make the text."""
    prompts: list[lc.Prompt] = []

    def keep(prompt: lc.Prompt) -> str:
        prompts.append(prompt)
        return ""

    call(keep)
    prompt = prompts[0]
    assert (
        prompt.context + prompt.question
        == prompt.text
        == prompt.messages[-1]["content"]
    )
    assert len(prompt.context) > 1000 > len(prompt.question) > 0
    assert (prompt.id, prompt.task, prompt.length, prompt.max_tokens) == (
        "json_kv-0",
        "json_kv",
        8192,
        100,
    )
    assert prompt.depth is not None
    assert 0 <= prompt.depth <= 1
    assert len(prompts) == 4
    assert not prompt.is_chat


def test_names_and_lists() -> None:
    """A model has the name of its function or the one that is given. Two of one name need names."""
    assert set(call([nothing, look_up], name=["one", "mine/two"]).answers.model) == {
        "python/one",
        "mine/two",
    }
    assert set(call(lambda prompt: "x").answers.model) == {"python/lambda"}
    assert set(call(nothing, name="50 % of KV").answers.model) == {"python/50-of-KV"}
    with pytest.raises(
        lc.InputError,
        match="two models have the name 'python/nothing'; give name= with one name for",
    ):
        call([nothing, nothing])
    with pytest.raises(
        lc.InputError, match="name='a' is invalid; give one for each model"
    ):
        call([nothing, look_up], name="a")
    with pytest.raises(
        lc.InputError,
        match="name='openai/gpt2' is invalid; give a name that no model of HELM",
    ):
        call(nothing, name="openai/gpt2")


def test_async_functions_in_a_running_loop() -> None:
    """An async function is called in one loop, for several prompts at once, also where a loop runs already."""
    loops = set()
    now = [0]
    most = [0]

    async def slow(prompt: lc.Prompt) -> str:
        loops.add(asyncio.get_running_loop())
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.2)
        now[0] -= 1
        return prompt.id

    async def run() -> EvaluationResult:
        return call(slow, num_samples=8)

    result = asyncio.run(run())
    assert list(result.answers.answer) == list(result.answers.instance)
    assert len(loops) == 1
    assert most[0] == 4
    assert set(call(lambda prompt: slow(prompt), num_samples=2).answers.answer) == {
        "json_kv-0",
        "json_kv-1",
    }


def test_batches() -> None:
    """With `batch_size` a function gets lists, of which the first has one prompt and later ones are full."""
    sizes = []

    def answer(prompts: list[lc.Prompt]) -> list[str]:
        sizes.append(len(prompts))
        return [prompt.id for prompt in prompts]

    result = call(answer, batch_size=3, num_samples=8)
    assert list(result.answers.answer) == list(result.answers.instance)
    assert sizes[0] == 1
    assert sum(sizes) == 8
    assert max(sizes) == 3

    async def answer_later(prompts: list[lc.Prompt]) -> list[str]:
        return answer(prompts)

    assert list(call(answer_later, batch_size=2).answers.answer) == [
        f"json_kv-{number}" for number in range(4)
    ]


def test_a_function_that_raises_fails_its_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error of the function is the failure of one question, which is not asked again."""
    asked = []

    def fail(prompt: lc.Prompt) -> str:
        asked.append(prompt.id)
        if prompt.id == "json_kv-2":
            raise KeyError("no such layer")
        return look_up(prompt)

    answers = call(fail, quiet=False).answers.set_index("instance")
    assert sorted(asked) == [f"json_kv-{number}" for number in range(4)]
    failed = answers.loc["json_kv-2"]
    assert failed.error == "KeyError: 'no such layer'"
    assert (failed.failure, failed.failure_kind) == ("request_failed", "bad_request")
    assert (answers.score.drop("json_kv-2") == 1).all()
    assert "failed: 1 bad_request" in caplog.text


@pytest.mark.parametrize(
    ("returned", "batch_size", "told"),
    [
        (None, None, "the function returned None; it must return a text"),
        (
            {"text": "x"},
            None,
            "the function returned a value of type dict; it must return a text",
        ),
        (
            ["x"] * 5,
            2,
            "returned a value of type list of length 5 for a list of 1 prompts; it must return a list with a",
        ),
        ("x", 2, "the function returned a value of type str for a list of 1 prompts"),
        ([7], 2, "the function returned a value of type int; it must return a text"),
    ],
)
def test_other_returns(returned: Any, batch_size: int | None, told: str) -> None:
    """A function that returns something else than a text ends the run with an error that says what it returned."""
    with pytest.raises(lc.InputError, match=re.escape(told)):
        call(lambda prompt: returned, batch_size=batch_size)


def test_prints_of_a_function_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """What a function prints goes to standard output, and nothing of HELM does."""

    def tell(prompt: lc.Prompt) -> str:
        print("asked", prompt.id)
        return ""

    call(tell, num_samples=2)
    assert capfd.readouterr().out == "asked json_kv-0\nasked json_kv-1\n"


def test_threads_and_models_are_released() -> None:
    """After a call the process holds neither the function nor a thread of it."""
    call(nothing)
    before = threading.active_count()
    for _ in range(3):
        call(nothing, num_samples=1)
    assert OBJECTS == {}
    # A thread gets the sign to end, and nothing waits for it.
    end = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_generated_tasks_need_a_tokenizer() -> None:
    """RULER without a tokenizer names the two arguments that give one."""
    with pytest.raises(
        lc.InputError,
        match=r"has no tokenizer_name; give count_with= .*evaluate: tokenizer= with the",
    ):
        call(nothing, "ruler:task=vt")
    result = call(
        nothing,
        ["ruler:task=vt"],
        ["4k"],
        arguments={"count_with": "longctx/words"},
        num_samples=1,
    )
    assert len(result.answers) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lengths": None}, "lengths is missing, and helmet_recall has lengths"),
        ({"lengths": ["8k", "7x"]}, "evaluate: lengths[1]='7x' is invalid"),
        (
            {"tasks": "helmet_recal"},
            "evaluate: tasks[0]: 'helmet_recal' is not a run entry",
        ),
        ({"num_samples": 0}, "num_samples=0 is invalid"),
        (
            {"batch_size": 0},
            "evaluate: batch_size=0 is invalid; give a whole number from 1",
        ),
        (
            {"parallelism": 0},
            "evaluate: parallelism=0 is invalid; give a number from 1",
        ),
        (
            {"model": 3},
            "evaluate: model=3 is invalid; give the name of a deployment, an address, a folder",
        ),
        ({"model": []}, "evaluate: model=[] is invalid"),
        (
            {"model": "nobody/nothing"},
            "evaluate: models[0]: 'nobody/nothing' is not a model",
        ),
        (
            {"model": "longctx/null", "name": "a"},
            "evaluate: name='a' is invalid; give no name for the deployment",
        ),
        (
            {"model": "longctx/null", "batch_size": 4},
            "evaluate: batch_size=4 has no effect; leave it out",
        ),
        (
            {"model": "longctx/null", "tokenizer": "gpt2"},
            "evaluate: tokenizer='gpt2' has no effect; leave it out",
        ),
        (
            {"model": "http://127.0.0.1:9/v1", "batch_size": 4},
            "a server gets one prompt in a request; parallelism=",
        ),
        (
            {"model": ["longctx/null", "longctx/lexical"], "context": "8k"},
            "evaluate: context='8k' has no effect",
        ),
        (
            {"max_cost": 0.5},
            "evaluate: max_cost=0.5 needs the prices of python/nothing",
        ),
        ({"suite": "a/b"}, "evaluate: suite='a/b' is invalid"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_mistakes(changes: dict[str, Any], told: str) -> None:
    """A mistake is an `InputError` that names the argument and the value, before a question is asked."""
    asked: list[lc.Prompt] = []

    def nothing(prompt: lc.Prompt) -> str:
        asked.append(prompt)
        return ""

    with pytest.raises(lc.InputError, match=re.escape(told)):
        call(**{"model": nothing, "tasks": TASK, "lengths": "8k", **changes})
    assert asked == []


def test_price_limits(tmp_path: Path) -> None:
    """A limit in dollars holds for functions with prices."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("python/nothing: {input: 1000, output: 1000}\n")
    with pytest.raises(
        lc.InputError,
        match=r"the next request can cost \$\d+\.\d+, and .*=0.5 allows \$0.5000 more",
    ):
        call(nothing, max_cost=0.5, prices=prices)
    prices = tmp_path / "low.yaml"
    prices.write_text("python/nothing: {input: 0.001, output: 0.001}\n")
    assert len(call(nothing, max_cost=1, prices=prices).answers) == 4


def test_a_very_long_answer() -> None:
    """Of a very long answer only the start is scored, at once, and the score says so."""
    result = call(
        lambda prompt: look_up(prompt) + " x" * 5_000_000, num_samples=1, lengths="4k"
    )
    assert result.scores.score[0] == 1
    assert (
        "answers of which only the first 524,288 characters were scored"
        in (result.scores.reason[0])
    )
