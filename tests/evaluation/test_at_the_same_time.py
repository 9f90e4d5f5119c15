"""Tests of calls at the same time: threads, processes, nested calls, notebooks and interruptions change nothing global."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark import model_deployment_registry as deployments
from helm.benchmark import model_metadata_registry as models
from helm.benchmark import tokenizer_config_registry as tokenizers
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)

import helm_longctx as lc
from helm_longctx.evaluation import turns
from helm_longctx.models.objects import OBJECTS, Function, Prompt, is_asked
from tests.evaluation.calls import call, look_up
from tests.evaluation.interrupted import (
    interrupt_calls,
    keep_a_late_answer,
    run_function,
    score_one_question,
)
from tests.support.programs import start_function


def list_variables() -> dict[str, str]:
    """Return the environment without what OpenMP sets when torch is imported."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith("KMP_")
    }


def test_threads() -> None:
    """Eight threads with the same and with different names get their results, and standard output stays as it is."""
    before = sys.stdout, sys.stderr, list_variables()
    outcomes: list[Any] = []

    def work(name: str) -> None:
        outcomes.append(
            call(look_up, name=name, num_samples=1, lengths="4k").scores.score[0]
        )

    threads = [
        threading.Thread(target=work, args=(f"model-{n % 4}",)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [1.0] * 8
    assert (sys.stdout, sys.stderr, list_variables()) == before
    assert not sys.stdout.closed
    assert not OBJECTS


def test_processes(tmp_path: Path) -> None:
    """Of four processes, those that make the same run get its score, or say in one line that another one makes it."""
    outputs = [tmp_path / f"{number}.txt" for number in range(4)]
    programs = [
        start_function(score_one_question, name, folder=tmp_path, output=output)
        for name, output in zip("aabb", outputs, strict=True)
    ]
    assert [program.wait(300) for program in programs] == [0] * 4
    ends = [output.read_text().strip() for output in outputs]
    assert {end for end in ends if "is in use by process" not in end} == {"1.0"}
    assert all("\n" not in end for end in ends)


@pytest.mark.parametrize("kind", ["plain", "async", "batches"])
def test_a_nested_call(kind: str) -> None:
    """A call inside of a function that is asked is refused in one line, and the outer call goes on."""
    errors: list[str] = []

    def answer(prompt: Any) -> Any:
        with pytest.raises(lc.InputError) as error:
            call(look_up, name="inner")
        errors.append(str(error.value))
        return (
            [look_up(message) for message in prompt]
            if kind == "batches"
            else look_up(prompt)
        )

    async def answer_later(prompt: lc.Prompt) -> str:
        return str(await asyncio.to_thread(answer, prompt))

    function = answer_later if kind == "async" else answer
    size = 2 if kind == "batches" else None
    result = call(function, name="inner", num_samples=1, lengths="4k", batch_size=size)
    assert result.scores.score[0] == 1
    assert errors == [
        "evaluate: a function that a call of evaluate asks cannot call evaluate itself; call it afterwards"
    ]


def run_in_thread(work: Callable[[], None]) -> None:
    """Run work in a thread, and wait for its end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def run_in_two_threads(work: Callable[[], None]) -> None:
    """Run work in a thread that another one waits for."""
    run_in_thread(lambda: run_in_thread(work))


def run_in_pool(work: Callable[[], None]) -> None:
    """Run work in a pool, and wait for its result."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def wait_for_pool(work: Callable[[], None]) -> None:
    """Run work in a pool, and wait for its futures."""
    with ThreadPoolExecutor(1) as pool:
        wait([pool.submit(work)])


def read_as_completed(work: Callable[[], None]) -> None:
    """Run work in a pool, and read its futures as they are completed."""
    with ThreadPoolExecutor(1) as pool:
        assert len([*as_completed([pool.submit(work)])]) == 1


@pytest.mark.parametrize(
    "run",
    [run_in_thread, run_in_two_threads, run_in_pool, wait_for_pool, read_as_completed],
)
def test_a_nested_call_in_a_thread(
    run: Callable[[Callable[[], None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call in a thread that an asked function waits for is refused, and does not wait for ever."""
    monkeypatch.setattr(turns, "_PAUSE", 0.05)
    errors: list[str] = []

    def work() -> None:
        with pytest.raises(lc.InputError) as error:
            call(look_up, name="inner")
        errors.append(str(error.value))

    def answer(prompt: lc.Prompt) -> str:
        run(work)
        return look_up(prompt)

    assert call(answer, name="outer", num_samples=1, lengths="4k").scores.score[0] == 1
    assert errors == [
        "evaluate: a function that a call of evaluate asks cannot call evaluate itself; call it afterwards"
    ]


def test_a_call_in_a_thread_that_nothing_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call in a thread that an asked function starts and does not wait for works when the first call has ended."""
    monkeypatch.setattr(turns, "_PAUSE", 0.05)
    scores: list[float] = []
    threads: list[threading.Thread] = []

    def work() -> None:
        scores.append(
            call(look_up, name="inner", num_samples=1, lengths="4k").scores.score[0]
        )

    def answer(prompt: lc.Prompt) -> str:
        threads.append(threading.Thread(target=work))
        threads[0].start()
        time.sleep(0.3)
        return look_up(prompt)

    assert call(answer, name="outer", num_samples=1, lengths="4k").scores.score[0] == 1
    threads[0].join()
    assert scores == [1.0]


def test_registries_stay(tmp_path: Path) -> None:
    """HELM's registries have the same entries after a call, also if it fails, and what the program registered itself."""
    register_model_deployment(ModelDeployment("own/model", ClientSpec("own.Client")))
    names = (
        models.MODEL_NAME_TO_MODEL_METADATA,
        deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
        tokenizers.TOKENIZER_NAME_TO_CONFIG,
    )
    lists = (
        models.ALL_MODELS_METADATA,
        deployments.ALL_MODEL_DEPLOYMENTS,
        tokenizers.ALL_TOKENIZER_CONFIGS,
    )

    def fail(prompt: lc.Prompt) -> str:
        raise KeyboardInterrupt

    before = [[*entries] for entries in (*names, *lists)]
    result = call(look_up, name="mine", num_samples=1, lengths="4k")
    assert [[*entries] for entries in (*names, *lists)] == before
    assert result.scores.model[0] == "python/mine"
    assert result.report().is_file()
    with pytest.raises(KeyboardInterrupt):
        call(fail, name="mine", num_samples=1, lengths="4k")
    assert [[*entries] for entries in (*names, *lists)] == before
    del deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT["own/model"]
    deployments.ALL_MODEL_DEPLOYMENTS.pop()


@pytest.mark.parametrize("end", ["answer", "error", "await", "await error"])
def test_a_question_ends(end: str) -> None:
    """However a question ends, its thread and tasks that it has started can call `evaluate` afterwards."""
    copies: list[contextvars.Context] = []

    def work() -> str:
        assert is_asked()
        copies.append(
            contextvars.copy_context()
        )  # as a task or `asyncio.to_thread` has one
        if end.endswith("error"):
            raise ValueError
        return "text"

    async def work_later() -> str:
        return work()

    function = Function(
        lambda prompt: work_later() if end.startswith("await") else work()
    )
    try:
        function(Prompt(text="Question", messages=[], max_tokens=1, stop=[], id="1"))
    except ValueError:
        assert end.endswith("error")
    finally:
        function.close()
    assert not is_asked()
    (copy,) = copies
    assert not copy.run(is_asked)


def test_a_running_loop() -> None:
    """A call works in a running event loop, as in a notebook, which then goes on."""

    async def cell() -> float:
        score = call(look_up, num_samples=1, lengths="4k").scores.score[0]
        await asyncio.sleep(0)
        return float(score)

    assert asyncio.run(cell()) == 1.0


def test_limits_change_no_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A limit in dollars holds in a call, and the environment has none while it works."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("python/mine: {input: 1, output: 1}\n")
    seen: list[dict[str, str]] = []

    def answer(prompt: lc.Prompt) -> str:
        seen.append(dict(os.environ))
        return look_up(prompt)

    before = dict(os.environ)
    options: dict[str, Any] = {"name": "mine", "lengths": "4k", "prices": prices}
    call(answer, max_cost=100.0, num_samples=1, **options)
    assert seen == [before]
    with pytest.raises(lc.InputError, match=r"MAX_COST=0\.0001 allows"):
        call(answer, max_cost=0.0001, **options)
    assert dict(os.environ) == before


def test_interruptions() -> None:
    """Ctrl-C and SIGTERM at random moments raise an exception in the caller; nothing is lost, and all is restored."""
    status, output, errors = run_function(interrupt_calls, 7, 3)
    assert status == 0, errors[-2000:]
    assert int(output) == 3


def test_a_late_answer_is_kept() -> None:
    """An answer that comes after an interruption, while the journal is closed, is in the journal."""
    status, output, errors = run_function(keep_a_late_answer)
    assert status == 0, errors[-2000:]
    assert output.split() == ["2", "3"], errors[-2000:]


def test_the_handler_of_the_caller_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that handles SIGTERM itself gets it, and the call goes on."""
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))

    def answer(prompt: lc.Prompt) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return look_up(prompt)

    try:
        assert call(answer, num_samples=1, lengths="4k").scores.score[0] == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]
