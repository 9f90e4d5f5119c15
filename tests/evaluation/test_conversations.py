"""An object with `reset`, `feed` and `ask` gets each piece of a conversation once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import helm_longctx as lc
from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.conversations import Conversation, is_conversation
from helm_longctx.run_settings import MIRROR
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
    monkeypatch.setenv(MIRROR, str(build_scbench(tmp_path / "data")))
    memory = Memory()
    result = call(
        memory, "scbench_multi_turn:task=kv", None, output_path=tmp_path / "out"
    )
    contexts = memory.resets
    assert len(memory.asked) > contexts
    longest = max(map(len, memory.asked))
    assert longest < memory.fed_characters / contexts
    assert set(result.scores.model) == {"python/Memory"}


class CachedModel:
    """A small model of bytes that keeps its cache between the pieces of a conversation.

    Attributes:
        tokens: how many tokens went through the model.
        resets: how many conversations began.
    """

    def __init__(self) -> None:
        import torch

        ignore_broken_torchvision()
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=256,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=1 << 16,
            initializer_range=0.5,
        )
        # Pieces of other sizes add up in another order: single precision could change an answer.
        self._model = LlamaForCausalLM(config).double().eval()
        self.tokens = 0
        self.resets = 0
        self.reset()

    def reset(self) -> None:
        """Begin with an empty cache."""
        from transformers import DynamicCache

        self._cache = DynamicCache()
        self.resets += 1

    def feed(self, text: str, role: str) -> None:
        """Add a piece to the cache."""
        self._next = self._read(list(text.encode()))

    def _read(self, ids: list[int]) -> tuple[int, float]:
        """Add tokens to the cache, and return the most likely next one, with its logit."""
        import torch

        self.tokens += len(ids)
        with torch.no_grad():
            for start in range(0, len(ids), 1024):
                output = self._model(
                    torch.tensor([ids[start : start + 1024]]),
                    past_key_values=self._cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
        logit, token = output.logits[0, -1].max(dim=-1)
        return int(token), float(logit)

    def ask(self, text: str, prompt: lc.Prompt) -> str:
        """Answer, and take the question and the answer out of the cache again.

        The question of SCBench's first turn was fed with the context, so its text is empty.
        """
        length = self._cache.get_seq_length()
        token, logit = self._read(list(text.encode())) if text else self._next
        words = []
        for _ in range(3):
            # The logit follows from all that was read; the tokens of a random model may not.
            words.append(f"{token} {logit:.6f}")
            token, logit = self._read([token])
        self._cache.crop(length - self._cache.get_seq_length())
        return " ".join(words)

    def answer_anew(self, prompt: lc.Prompt) -> str:
        """Answer a prompt that is read from its beginning."""
        self.reset()
        *before, last = [str(message["content"]) for message in prompt.messages]
        for text in before:
            self.feed(text, "")
        return self.ask(last, prompt)


def test_a_cache_is_kept_between_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real model whose cache is kept over SCBench's turns answers as one that reads everything again each time."""
    pytest.importorskip("torch")
    monkeypatch.setenv(MIRROR, str(build_scbench(tmp_path / "data")))
    entry = "scbench_multi_turn:task=kv"
    answers = []
    tokens = []
    for name in ("kept", "anew"):
        model = CachedModel()
        asked = model if name == "kept" else model.answer_anew
        result = call(asked, entry, None, output_path=tmp_path / name, num_samples=2)
        answers.append(list(result.answers.answer))
        tokens.append(model.tokens)
    assert answers[0] == answers[1]
    assert len(set(answers[0])) == 2
    assert 3 * tokens[0] < 2 * tokens[1]


def test_what_is_a_conversation() -> None:
    """An object needs all three methods, and takes no batches."""
    assert is_conversation(Memory())
    assert not is_conversation(len)
    with pytest.raises(lc.InputError, match="a conversation has one state"):
        call(Memory(), batch_size=4)
