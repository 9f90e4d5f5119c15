"""Draws logs without knowledge, and the eight kinds of questions about them with their right answers.

The authors' program is not published. A log has the form of their masked ones: an agent looks for a hidden entity, a tool
lists the entities that fulfil conditions, and after each guess the user says which of its properties the hidden entity
has. Entities, properties and lists are drawn anew for each seed, and nothing is downloaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from helm_longctx.tasks import Message
from helm_longctx.tasks.prompt import message_text
from helm_longctx.tasks.token_estimate import estimate_tokens

_ENTITIES = 900
_NUMERIC = "attr_2"
_LEAST = 180
_MOST = 720
"""The range of the numeric property."""

_VALUES = {"attr_1": 18, "attr_3": 9, "attr_4": 60, "attr_5": 40, "attr_6": 12}
"""The numbers of values of the other properties."""
_SEVERAL = ("attr_1", "attr_4", "attr_6")
"""The properties of which an entity can have two values."""
SECTIONS = ("attr_1", "attr_2", "attr_3", "attr_4", "attr_5", "attr_6")

WEIGHTS = {
    "attr_1": 6,
    "attr_4": 5,
    "attr_2": 4,
    "attr_5": 3,
    "attr_3": 2,
    "attr_6": 1,
}
"""The points for each correct item, as the official system message gives them."""

_BLOCK = 8
"""Number of rounds whose tokens are estimated together."""
_FEWEST_ROUNDS = 8
_CORRECT = "correct"

_Entity = Mapping[str, tuple[str, ...]]
"""The values of an entity by section. The numeric section has a single text of digits."""


class World(NamedTuple):
    """What a log is about.

    Args:
        owners: the entities with a value, by section and value, in order.
    """

    entities: Mapping[str, _Entity]
    owners: Mapping[str, Mapping[str, Sequence[str]]]
    hidden: str


@dataclass(frozen=True)
class Round:
    """A round of a log.

    Args:
        guess: the entity that is guessed.
        lists: the candidates by section; under an empty name those that fulfil all conditions. None in the first round.
        feedback: the items of the guess by section, each with what is said about it.
    """

    number: int
    guess: str
    lists: Mapping[str, Sequence[str]] | None
    feedback: Mapping[str, Sequence[tuple[str, str]]]

    @property
    def correct(self) -> Mapping[str, int]:
        """The number of correct items by section."""
        counts = {}
        for section, items in self.feedback.items():
            counts[section] = sum(said == _CORRECT for _, said in items)
        return counts


class Log(NamedTuple):
    """A log: its messages, its rounds, and the hidden entity."""

    messages: Sequence[Message]
    rounds: Sequence[Round]
    hidden: str


class LogQuestion(NamedTuple):
    """A question about a log with its right answer.

    Args:
        round: the number of the only round that it is about, if there is one.
    """

    text: str
    answer: Any
    round: int | None = None


def _draw_world(random: Random) -> World:
    names = []
    for number in random.sample(range(10_000), _ENTITIES):
        names.append(f"{number:04}")
    entities = {}
    owners: dict[str, dict[str, list[str]]] = {name: {} for name in SECTIONS}
    for name in sorted(names):
        entities[name] = _draw_entity(random)
        for section, values in entities[name].items():
            for value in values:
                owners[section].setdefault(value, []).append(name)
    return World(
        entities=entities,
        owners=owners,
        hidden=random.choice(names),
    )


def _draw_entity(random: Random) -> _Entity:
    values: dict[str, tuple[str, ...]] = {}
    for section in SECTIONS:
        if section == _NUMERIC:
            values[section] = (str(random.randint(_LEAST, _MOST)),)
            continue
        count = random.randint(1, 2) if section in _SEVERAL else 1
        drawn = random.sample(range(1, _VALUES[section] + 1), count)
        values[section] = tuple(f"a{section[-1]}v{number}" for number in drawn)
    return values


def _give_feedback(world: World, guess: str) -> dict[str, list[tuple[str, str]]]:
    hidden = world.entities[world.hidden]
    feedback = {}
    for section, values in world.entities[guess].items():
        items = []
        for value in values:
            if value in hidden[section]:
                said = _CORRECT
            elif section == _NUMERIC:
                is_low = int(value) < int(hidden[section][0])
                said = "too low" if is_low else "too high"
            else:
                said = "wrong"
            items.append((value, said))
        feedback[section] = items
    return feedback


def _draw_conditions(
    random: Random,
    world: World,
    first: str,
    is_verbose: bool,
) -> dict[str, str]:
    """Return conditions by section that the hidden entity fulfils."""
    others = [name for name in SECTIONS if name != first]
    count = random.randint(1, 2) if is_verbose else random.randint(0, 1)
    conditions = {}
    for section in sorted([first, *random.sample(others, count)]):
        value = random.choice(world.entities[world.hidden][section])
        if section == _NUMERIC:
            value = f">= {max(_LEAST, int(value) - random.randint(0, 60))}"
        conditions[section] = value
    return conditions


def _list_candidates(world: World, section: str, condition: str) -> list[str]:
    if section != _NUMERIC:
        return [*world.owners[section][condition]]
    least = int(condition.removeprefix(">= "))
    names = []
    for name, values in world.entities.items():
        if int(values[section][0]) >= least:
            names.append(name)
    return names


def _find_lists(
    world: World,
    conditions: Mapping[str, str],
    is_verbose: bool,
) -> dict[str, list[str]]:
    lists = {}
    for section, condition in conditions.items():
        lists[section] = _list_candidates(world, section, condition)
    if is_verbose:
        return lists
    common = set.intersection(*map(set, lists.values()))
    return {"": sorted(common)}


def _write_round(turn: Round, conditions: Mapping[str, str]) -> list[Message]:
    """Return the messages of a round: a call, its result, a guess, and the feedback."""
    messages: list[Message] = []
    if turn.lists is not None:
        name = f"call_{turn.number}"
        arguments = json.dumps(conditions)
        function = {"name": "find_entities", "arguments": arguments}
        call = {"id": name, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        if "" in turn.lists:
            result: Any = {"intersection": turn.lists[""]}
        else:
            result = {"per_section": []}
            for section, candidates in turn.lists.items():
                part = {"section": section, "candidates": candidates}
                result["per_section"].append(part)
        content = json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": name, "content": content})
    messages.append({"role": "assistant", "content": f"I guess {turn.guess}."})
    lines = [f"Round {turn.number}: Guess {turn.guess}", "Sections:"]
    for section, items in turn.feedback.items():
        said = ", ".join(f"{value} ({word})" for value, word in items)
        lines.append(f"  - {section}: {said}")
    lines.append("Result: not the hidden entity")
    messages.append({"role": "user", "content": "\n".join(lines)})
    return messages


def _draw_rounds(
    random: Random,
    world: World,
    is_verbose: bool,
) -> Iterator[tuple[Round, list[Message]]]:
    """Draw rounds without end. The first lists are about each section in turn."""
    names = [*world.entities]
    number = 0
    while True:
        number += 1
        conditions: dict[str, str] = {}
        lists = None
        candidates = names
        if number > 1:
            first = SECTIONS[(number - 2) % len(SECTIONS)]
            conditions = _draw_conditions(random, world, first, is_verbose)
            lists = _find_lists(world, conditions, is_verbose)
            candidates = [*next(iter(lists.values()))]
        guess = random.choice(candidates)
        if guess == world.hidden:
            guess = random.choice([name for name in names if name != world.hidden])
        feedback = _give_feedback(world, guess)
        turn = Round(
            number=number,
            guess=guess,
            lists=lists,
            feedback=feedback,
        )
        yield turn, _write_round(turn, conditions)


def draw_log(key: str, tokens: float, is_verbose: bool) -> Log:
    """Draw a log of about so many tokens, from which the hidden entity follows.

    Args:
        key: determines the log together with the other arguments.
    """
    attempt = 0
    while True:
        log = _draw_log(Random(f"{key} {attempt}"), tokens, is_verbose)
        if find_hidden(log.rounds) == {log.hidden}:
            return log
        attempt += 1


def find_hidden(rounds: Sequence[Round]) -> set[str]:
    """Return the entities that are in all lists of all rounds."""
    common: set[str] | None = None
    for turn in rounds:
        for candidates in (turn.lists or {}).values():
            common = {*candidates} if common is None else common & {*candidates}
    return common or set()


def _draw_log(random: Random, tokens: float, is_verbose: bool) -> Log:
    world = _draw_world(random)
    start = "Find the hidden entity. Say a guess in each round."
    messages: list[Message] = [{"role": "user", "content": start}]
    rounds: list[Round] = []
    drawn = _draw_rounds(random, world, is_verbose)
    while tokens > 0 or len(rounds) < _FEWEST_ROUNDS:
        block = [next(drawn) for _ in range(_BLOCK)]
        texts = []
        for _, own in block:
            texts.append("\n".join(map(message_text, own)))
        size = estimate_tokens("\n".join(texts))
        # The last block is the part of one that fills the rest.
        if size > tokens and len(rounds) >= _FEWEST_ROUNDS:
            block = block[: round(_BLOCK * tokens / size)]
        for turn, own in block:
            rounds.append(turn)
            messages += own
        tokens -= size
    return Log(
        messages=messages,
        rounds=rounds,
        hidden=world.hidden,
    )


_ROUND = "The tool result for a round is the one that stands before the message of the user that starts with its number."


def _with_lists(log: Log) -> Sequence[Round]:
    return log.rounds[1:]


def _count_frequency_tool(random: Random, log: Log) -> LogQuestion:
    turn = random.choice(_with_lists(log))
    assert turn.lists is not None
    counts: Counter[str] = Counter()
    for candidates in turn.lists.values():
        counts.update(candidates)
    other = random.choice(_with_lists(log)).guess
    asked = random.choice([random.choice(sorted(counts)), other])
    return LogQuestion(
        text=f"How many times does {asked} appear in the tool result for round {turn.number}? {_ROUND}",
        answer=counts[asked],
        round=turn.number,
    )


def _has(turn: Round, name: str) -> bool:
    return any(name in candidates for candidates in (turn.lists or {}).values())


def _find_duplicates_tool(random: Random, log: Log) -> LogQuestion:
    first, second = random.sample(_with_lists(log), 2)
    assert first.lists is not None
    candidates = [*next(iter(first.lists.values()))]
    both = [name for name in candidates if _has(second, name)]
    one = [name for name in candidates if not _has(second, name)]
    wants_both = random.random() < 0.5
    asked = random.choice((both if wants_both else one) or candidates)
    low, high = sorted((first.number, second.number))
    return LogQuestion(
        text=f"Does {asked} appear in the tool results for both round {low} and round {high}? {_ROUND}",
        answer=_has(first, asked) and _has(second, asked),
    )


def _find_target_offsets_tool(random: Random, log: Log) -> LogQuestion:
    rounds = []
    for turn in _with_lists(log):
        candidates = next(iter((turn.lists or {}).values()))
        if turn.guess in candidates[:-2]:
            rounds.append(turn)
    # Without such a round, the question is about any name of the longest list.
    turn = random.choice(rounds) if rounds else max(_with_lists(log), key=_length)
    candidates = next(iter((turn.lists or {}).values()))
    asked = turn.guess if rounds else candidates[0]
    position = candidates.index(asked)
    return LogQuestion(
        text=(
            f"Which two entities stand directly after the first {asked} in the tool result for round"
            f" {turn.number}? {_ROUND}"
        ),
        answer=[*candidates[position + 1 : position + 3]],
        round=turn.number,
    )


def _length(turn: Round) -> int:
    return len(next(iter((turn.lists or {}).values())))


def _count_correctness_env(random: Random, log: Log) -> LogQuestion:
    turn = random.choice(log.rounds)
    return LogQuestion(
        text=f"How many items does the feedback in round {turn.number} call correct?",
        answer=sum(turn.correct.values()),
        round=turn.number,
    )


def _count_frequency_env(random: Random, log: Log) -> LogQuestion:
    counts: Counter[str] = Counter()
    for turn in log.rounds:
        for section, items in turn.feedback.items():
            if section != _NUMERIC:
                counts.update(value for value, _ in items)
    asked = random.choice(sorted(counts))
    return LogQuestion(
        text=f"How many times does the value {asked} appear in the feedback of all rounds?",
        answer=counts[asked],
    )


def _find_round_largest_value_env(random: Random, log: Log) -> LogQuestion:
    values = {turn.number: int(turn.feedback[_NUMERIC][0][0]) for turn in log.rounds}
    # The first round with the largest value.
    return LogQuestion(
        text=f"Which round has the largest {_NUMERIC} in its feedback? If several have it, name the first of them.",
        answer=max(values, key=lambda number: values[number]),
    )


def _weigh(turn: Round) -> int:
    return sum(WEIGHTS[section] * count for section, count in turn.correct.items())


def _weighted_summation_env(random: Random, log: Log) -> LogQuestion:
    first, second = random.sample(log.rounds, 2)
    return LogQuestion(
        text=(
            "What is the absolute difference between the weighted scores of round"
            f" {first.number} and round {second.number}?"
        ),
        answer=abs(_weigh(first) - _weigh(second)),
    )


def _intersection(random: Random, log: Log) -> LogQuestion:
    turn = random.choice(_with_lists(log))
    lists = turn.lists or {}
    if "" in lists:
        return LogQuestion(
            "Which entity is hidden? It is in all tool results.", log.hidden
        )
    return LogQuestion(
        text=f"Which entities are in all lists of candidates of the tool result for round {turn.number}? {_ROUND}",
        answer=sorted(set.intersection(*map(set, lists.values()))),
        round=turn.number,
    )


_ASK: dict[str, Callable[[Random, Log], LogQuestion]] = {
    "count_frequency_tool": _count_frequency_tool,
    "find_duplicates_tool": _find_duplicates_tool,
    "find_target_offsets_tool": _find_target_offsets_tool,
    "count_correctness_env": _count_correctness_env,
    "count_frequency_env": _count_frequency_env,
    "find_round_largest_value_env": _find_round_largest_value_env,
    "weighted_summation_env": _weighted_summation_env,
    "intersection": _intersection,
}
"""The kinds of questions."""


def draw_question(key: str, kind: str, log: Log) -> LogQuestion:
    """Draw a question of a kind about a log.

    Args:
        key: determines the question together with the log.
    """
    return _ASK[kind](Random(f"{key} {kind}"), log)
