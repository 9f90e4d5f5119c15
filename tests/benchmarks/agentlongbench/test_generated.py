"""Generated logs: a reader of the messages alone finds each right answer, and a log fills its length."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from helm_longctx.benchmarks.agentlongbench.generated import WEIGHTS
from helm_longctx.benchmarks.agentlongbench.tasks import AGENTLONGBENCH, KINDS
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.prompt import Message, message_text
from helm_longctx.tasks.task import Example, Settings
from helm_longctx.tasks.token_estimate import estimate_tokens

LENGTH = 32768


def draw(category: str, kind: str, seed: int = 1, number: int = 3) -> list[Example]:
    """Draw questions of a kind."""
    task = AGENTLONGBENCH.task(f"{category}_{kind}")
    settings = Settings(LENGTH, seed=seed, num_samples=number)
    return [*task.load(task, settings, DataRoot.find("."))]


class Reader:
    """Reads a log from its messages, apart from the program that made it.

    Attributes:
        feedback: (section, value, word) of each item by round.
        lists: the lists of candidates by round.
        guesses: the guess by round.
    """

    def __init__(self, messages: list[Message]):
        self.feedback: dict[int, list[tuple[str, str, str]]] = {}
        self.lists: dict[int, list[list[str]]] = {}
        self.guesses: dict[int, str] = {}
        waiting: list[list[str]] = []
        for message in messages[1:-1]:
            if message["role"] == "tool":
                waiting = self._read_lists(json.loads(message["content"]))
            if message["role"] != "user":
                continue
            header = re.match(r"Round (\d+): Guess (\w+)", message["content"])
            if header:
                number = int(header[1])
                self.guesses[number] = header[2]
                self.lists[number] = waiting
                self.feedback[number] = self._read_items(message["content"])

    @staticmethod
    def _read_lists(result: dict[str, Any]) -> list[list[str]]:
        if "intersection" in result:
            return [result["intersection"]]
        return [part["candidates"] for part in result["per_section"]]

    @staticmethod
    def _read_items(text: str) -> list[tuple[str, str, str]]:
        items = []
        for section, rest in re.findall(r"  - (\w+): (.*)", text):
            for value, word in re.findall(r"(\w+) \(([\w ]+)\)", rest):
                items.append((section, value, word))
        return items

    def count_correct(self, number: int) -> Counter[str]:
        """Count the correct items of a round by section."""
        counts: Counter[str] = Counter()
        for section, _, word in self.feedback[number]:
            counts[section] += word == "correct"
        return counts

    def score(self, number: int) -> int:
        """Weigh the correct items of a round."""
        counts = self.count_correct(number)
        return sum(WEIGHTS[section] * count for section, count in counts.items())

    def answer(self, kind: str, question: str) -> Any:
        """Answer a question."""
        rounds = [int(number) for number in re.findall(r"round (\d+)", question)]
        named = re.findall(r"\b\d{4}\b", question)
        if kind == "count_frequency_tool":
            return sum(names.count(named[0]) for names in self.lists[rounds[0]])
        if kind == "find_duplicates_tool":
            return all(
                any(named[0] in names for names in self.lists[number])
                for number in rounds
            )
        if kind == "find_target_offsets_tool":
            names = self.lists[rounds[0]][0]
            position = names.index(named[0])
            return names[position + 1 : position + 3]
        if kind == "count_correctness_env":
            return self.count_correct(rounds[0]).total()
        if kind == "count_frequency_env":
            (value,) = re.findall(r"\ba\dv\d+\b", question)
            values = [item[1] for items in self.feedback.values() for item in items]
            return values.count(value)
        if kind == "find_round_largest_value_env":
            sizes = {}
            for number, items in self.feedback.items():
                sizes[number] = next(int(v) for name, v, _ in items if name == "attr_2")
            return max(sizes, key=lambda number: (sizes[number], -number))
        if kind == "weighted_summation_env":
            return abs(self.score(rounds[0]) - self.score(rounds[1]))
        if rounds:
            return sorted(set.intersection(*map(set, self.lists[rounds[0]])))
        lists = [names for own in self.lists.values() for names in own]
        (hidden,) = set.intersection(*map(set, lists))
        return hidden


@pytest.mark.parametrize("category", ["generated_c", "generated_v"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_follows_from_the_messages(category: str, kind: str) -> None:
    """A reader that sees only the messages gives the right answer, and the scorer takes it for right."""
    task = AGENTLONGBENCH.task(f"{category}_{kind}")
    for example in draw(category, kind):
        messages = [*example.messages]
        answer = Reader(messages).answer(kind, messages[-1]["content"])
        assert answer == example.record["answer"]
        text = " and ".join(answer) if isinstance(answer, list) else str(answer)
        record = {"prediction": f"<answer>{text}</answer>", **example.record}
        scores = task.score({**record, "references": example.references})
        assert [*scores.values()] == [1.0]


def test_logs_fill_their_length() -> None:
    """A log has 85 to 100 % of its length by the estimate, and verbose logs have fewer rounds than concise ones."""
    rounds = {}
    for category in ("generated_c", "generated_v"):
        (example,) = draw(category, "intersection", number=1)
        text = "\n".join(map(message_text, example.messages))
        assert 0.85 * LENGTH < estimate_tokens(text) < LENGTH
        rounds[category] = text.count("\nRound ")
    assert rounds["generated_c"] > 1.5 * rounds["generated_v"]


def test_logs_depend_on_the_seed_alone() -> None:
    """The same seed gives the same log to all kinds of questions, and another seed another log."""
    (first,) = draw("generated_c", "count_frequency_env", number=1)
    (second,) = draw("generated_c", "intersection", number=1)
    (other,) = draw("generated_c", "intersection", seed=2, number=1)
    assert first.messages[1:-1] == second.messages[1:-1]
    assert first.group == second.group
    assert second.messages[1:-1] != other.messages[1:-1]


def test_yes_and_no_are_both_right() -> None:
    """Questions on duplicates have both answers, and counts in lists are not always 0 or 1."""
    duplicates = draw("generated_v", "find_duplicates_tool", number=12)
    assert {example.record["answer"] for example in duplicates} == {True, False}
    counts = draw("generated_v", "count_frequency_tool", number=12)
    assert max(example.record["answer"] for example in counts) > 1
