"""Tests of a second call: it asks again, or goes on with the journal of a call that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

import helm_longctx as lc
from helm_longctx.runs.files import MODEL
from helm_longctx.runs.journal import NAME
from tests.evaluation.calls import call, look_up

KILLED = """
import os, signal
import helm_longctx as lc
from tests.evaluation.calls import call

def answer(prompt):
    if prompt.id == "json_kv-3":
        os.kill(os.getpid(), signal.SIGKILL)
    return "of the first process"

call(answer, num_samples=5)
"""


def test_a_second_call_asks_again() -> None:
    """A second call asks again, because a function's code may have changed; nothing comes from the request cache."""
    asked: list[str] = []

    def answer(prompt: lc.Prompt) -> str:
        asked.append(prompt.id)
        return f"call {len(asked) // 5}"

    assert set(call(answer).answers.answer) == {"call 0"}
    asked.append("")
    result = call(answer)
    assert set(result.answers.answer) == {"call 1"}
    assert len(asked) == 9
    # A complete run is kept by `resume`.
    assert set(call(answer, resume=True).answers.answer) == {"call 1"}
    assert len(asked) == 9


def test_a_killed_process_is_continued(caplog: pytest.LogCaptureFixture) -> None:
    """A call in another process goes on with the answers of a killed one, and says how many they are."""
    root = str(Path(__file__).parents[2])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": root}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    asked: list[str] = []

    def answer(prompt: lc.Prompt) -> str:
        asked.append(prompt.id)
        return "of the second process"

    answer.__qualname__ = "answer"  # as in the first process
    result = call(answer, num_samples=5, resume=True, quiet=False)
    assert asked == ["json_kv-3", "json_kv-4"]
    assert (
        list(result.answers.answer) == ["of the first process"] * 3 + ["of the second process"] * 2
    )
    assert "goes on with 3 answers of an earlier call" in caplog.text


def test_an_interrupted_call_says_how_to_continue() -> None:
    """An error in the middle of a run says where the answers are and how to go on with them."""
    broken = True

    def answer(prompt: lc.Prompt) -> str | None:
        return None if broken and prompt.id == "json_kv-2" else "x"

    with pytest.raises(
        lc.InputError,
        match=rf"2 answers are kept in .*{NAME}; call evaluate again with resume=True to",
    ):
        call(answer)
    broken = False
    assert set(call(answer, resume=True).answers.answer) == {"x"}


def test_the_identity_is_kept() -> None:
    """What identifies a model stands in the run's folder, and another model does not go on with its answers."""
    result = call(look_up, name="mine")
    (path,) = result.suite.glob(f"*/{MODEL}")
    identity = orjson.loads(path.read_bytes())
    assert identity["class"] == "builtins.function"
    assert identity["qualname"] == "look_up"
    assert {"helm-longctx", "transformers"} <= set(identity["packages"])
    with pytest.raises(
        lc.InputError,
        match=r"resume=True: the earlier call had another model \(qualname: look_up, now",
    ):
        call(lambda prompt: "", name="mine", resume=True)


def test_a_refused_call_keeps_earlier_results() -> None:
    """A call that is refused before a question is asked removes nothing."""
    result = call(look_up)
    with pytest.raises(lc.InputError, match="judges"):
        call(look_up, judge=["none", "auto"])
    assert (result.suite / result.results[0].run.path.name / "stats.json").is_file()
