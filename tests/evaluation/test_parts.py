"""Tests of the context and the question of prompts, over all benchmarks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import helm_longctx as lc
from helm_longctx.benchmarks.mrcr import tasks as mrcr
from helm_longctx.run_settings import MIRROR
from tests.evaluation.calls import call
from tests.golden_makers.model_answers import build
from tests.models.answers.entries import ENTRIES
from tests.support.commands import Command

WITHOUT = ("graphwalks", "longbench_write", "longproc", "mrcr", "oneruler")
"""Starts of the entries whose prompts have no context apart from a question."""

NO_ROWS = ("helmet_longqa:task=infbench", "helmet_summ:task=infbench")
"""Starts of entries whose fabricated rows are of another benchmark."""

ASKED = [entry for entry in ENTRIES if not entry.startswith(NO_ROWS)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a mirror with the data of all benchmarks."""
    counter = mrcr.o200k_counter
    yield build(tmp_path_factory.mktemp("data")).path
    vars(mrcr)["o200k_counter"] = counter


@pytest.mark.parametrize("entry", ASKED)
def test_prompts_have_parts(
    entry: str, data: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both styles, the parts of a prompt make the prompt, byte for byte, or the task has none."""
    monkeypatch.setenv(MIRROR, str(data))
    for style in ("chat", "completion"):
        assert (
            command("prompts", entry, "--limit", 2, "--style", style, "--parts") == 0
        ), command.err
        for row in command.rows:
            if entry.startswith(WITHOUT):
                assert row["context"] is row["question"] is None
            else:
                assert row["context"] + row["question"] == row["prompt"]
                assert len(row["context"]) > 0
        assert command("prompts", entry, "--limit", 1) == 0
        assert "context" not in command.rows[0]


@pytest.mark.long
def test_functions_get_parts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions get the same parts of the prompts of all benchmarks, and an error of those that have none."""
    monkeypatch.setenv(MIRROR, str(data))
    seen: list[bool] = []

    def take_apart(prompt: lc.Prompt) -> str:
        if prompt.rest is None:
            with pytest.raises(
                lc.InputError, match="has no context apart from its question; use text"
            ):
                prompt.context  # noqa: B018
        else:
            assert prompt.context + prompt.question == prompt.text
        seen.append(prompt.rest is not None)
        return ""

    for is_apart in (True, False):
        entries = [entry for entry in ASKED if entry.startswith(WITHOUT) != is_apart]
        result = call(take_apart, entries, None, num_samples=None, judge="none")
        assert len(seen) > 100
        assert len(result.answers) > 100
        assert set(seen) == {is_apart}
        seen.clear()


def test_a_task_without_lengths(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that have no lengths need none, and their prompts have no length."""
    monkeypatch.setenv(MIRROR, str(data))
    lengths = []

    def keep(prompt: lc.Prompt) -> str:
        lengths.append(prompt.length)
        return ""

    call(keep, "longbench:task=narrativeqa", None, num_samples=2)
    assert lengths == [None, None]


def test_questions_about_one_context_follow_each_other(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions about one context come one after another, although the data mixes them and the contexts are short."""
    monkeypatch.setenv(MIRROR, str(data))
    contexts: list[str] = []

    def keep(prompt: lc.Prompt) -> str:
        contexts.append(prompt.context)
        return ""

    call(
        keep,
        f"any_jsonl:path={write_mixed(Path('questions.jsonl')).parent}",
        "4k",
        num_samples=None,
        arguments={"count_with": "longctx/words"},
    )
    changes = sum(one != other for one, other in itertools.pairwise(contexts))
    assert len(contexts) == 9
    assert len(set(contexts)) == 3
    assert changes == 2


def test_a_cut_prompt_has_parts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of a prompt that was cut to the window make the text that is sent."""
    monkeypatch.setenv(MIRROR, str(data))
    prompts: list[lc.Prompt] = []

    def keep(prompt: lc.Prompt) -> str:
        prompts.append(prompt)
        return ""

    for context in ("16k", 1000):
        call(
            keep,
            "helmet_longqa:task=narrativeqa",
            "4k",
            num_samples=1,
            tokenizer="longctx/words",
            context=context,
        )
    first, second = prompts
    assert len(second.text) < len(first.text)
    assert second.context + second.question == second.text
    assert second.question == first.question


def write_mixed(path: Path) -> Path:
    """Write nine questions about three documents, in an order that mixes these."""
    rows = [
        {"id": f"{number}", "context": f"Document {number % 3}. It is about rivers.", "question": f"What is {number}?",
         "answers": ["a river"]}
        for number in range(9)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.resolve()
