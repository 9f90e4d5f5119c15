"""An object with `reset`, `feed` and `ask` gets each piece of a conversation once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import helm_longctx as lc
from helm_longctx.data.root import ENVIRONMENT
from helm_longctx.models.conversations import Conversation, is_conversation
from tests.benchmarks.scbench.fabricate import build_scbench
from tests.evaluation.calls import call


class Memory:
    """Keeps what it reads, and answers with the value of the last key that the question names."""

    def __init__(self) -> None:
        self.read = ""
        self.resets = 0
        self.fed_characters = 0
        self.asked: list[str] = []

    def reset(self) -> None:
        """Forget everything."""
        self.read = ""
        self.resets += 1

    def feed(self, text: str, role: str) -> None:
        """Keep a piece."""
        assert role in ("user", "assistant", "system")
        self.read += text
        self.fed_characters += len(text)

    def ask(self, text: str, prompt: lc.Prompt) -> str:
        """Return the value of the key."""
        self.asked.append(text)
        whole = self.read + text
        key = text.rpartition("Key: ")[2].partition("\n")[0].strip(' "')
        match = re.search(rf'"{re.escape(key)}": "([^"]+)"', whole)
        return match[1] if match else ""


def make_prompt(contents: list[str], rest: int | None = None) -> lc.Prompt:
    """Return a conversation whose last message ends with a question of `rest` characters."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[number % 2], "content": content}
        for number, content in enumerate(contents)
    ]
    return lc.Prompt(contents[-1], messages, 10, (), "q", rest=rest)


@given(
    st.lists(
        st.tuples(st.lists(st.text(max_size=6), min_size=1, max_size=5), st.booleans()),
        max_size=6,
    )
)
def test_the_object_has_read_the_prompt_whatever_came_before(
    prompts: list[tuple[list[str], bool]],
) -> None:
    """What was fed since the reset, with the question, is always the whole conversation, in order."""
    memory = Memory()
    conversation = Conversation(memory)
    for contents, has_context in prompts:
        rest = len(contents[-1]) // 2 if has_context else None
        conversation(make_prompt(contents, rest))
        assert memory.read + memory.asked[-1] == "".join(contents)


def test_a_context_is_fed_once() -> None:
    """Questions about one context, and the turns after it, feed only what is new."""
    memory = Memory()
    conversation = Conversation(memory)
    context = "c" * 1000
    for question in ("q1", "q2", "q3"):
        conversation(make_prompt([f"{context}{question}"], rest=2))
    assert (memory.resets, memory.fed_characters) == (1, 1000)
    conversation(make_prompt([f"{context}q3", "official", "q4"]))
    assert (memory.resets, memory.fed_characters) == (1, 1000 + len("q3official"))
    assert memory.asked == ["q1", "q2", "q3", "q4"]
    conversation(make_prompt(["other q5"], rest=2))
    assert memory.resets == 2


def test_an_error_ends_the_conversation() -> None:
    """After an error of the object, everything is fed again."""
    memory = Memory()
    conversation = Conversation(memory)
    conversation(make_prompt(["context q1"], rest=2))
    memory.ask = None  # type: ignore[method-assign, assignment]
    with pytest.raises(TypeError):
        conversation(make_prompt(["context q2"], rest=2))
    del memory.ask
    conversation(make_prompt(["context q3"], rest=2))
    assert memory.resets == 2
    assert memory.read == "context "


def test_turns_of_scbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCBench's turns feed each context once, and the answers are scored as those of a function."""
    monkeypatch.setenv(ENVIRONMENT, str(build_scbench(tmp_path / "data")))
    memory = Memory()
    result = call(
        memory, "scbench_multi_turn:task=kv", None, output_path=tmp_path / "out"
    )
    contexts = memory.resets
    assert len(memory.asked) > contexts
    longest = max(map(len, memory.asked))
    assert longest < memory.fed_characters / contexts
    assert set(result.scores.model) == {"python/Memory"}


def test_what_is_a_conversation() -> None:
    """An object needs all three methods, and takes no batches."""
    assert is_conversation(Memory())
    assert not is_conversation(len)
    with pytest.raises(lc.InputError, match="a conversation has one state"):
        call(Memory(), batch_size=4)
