"""The tasks of fresh text: recall of codes, recall without shared words, multi-hop graph, counting and conversation.

Each example has its own random generator: its names, words and lines depend only on the seed, and nothing is
downloaded. Each metric is the share in 0…1 of what was asked for that is in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.tasks import (
    NO_TEMPLATE,
    Baseline,
    DataRoot,
    Example,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    draw_lines,
    generation,
    insert_lines,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.generated_text import (
    NewNames,
    count_lines,
    draw_examples,
    invent_word,
)
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.token_estimate import estimate_tokens
from helm_longctx.tasks.words import f1

INSTRUCTIONS = 100
"""About how many tokens the rest of a prompt has at most: what the text is, how to answer, and what is hidden in it."""

_FILE = Path(__file__).with_name("associations.yaml")
"""What texts say and what questions ask, without a content word that both share."""

_ENDS = ("", "", "l", "n", "r", "s", "m", "nd", "rk", "th")


class _Owned(NamedTuple):
    """A thing and its owner: in the words of the texts, and in the words of the questions.

    Args:
        said: what a text says that the owner does.
        thing: the thing in a text.
        asked: what a question says about the owner.
        category: what a question calls the thing.
    """

    said: str
    thing: str
    asked: str
    category: str

    @property
    def question(self) -> str:
        """What a question calls it. No content word of it is in a text."""
        return f"{self.category} of someone who {self.asked}"

    @property
    def text(self) -> str:
        """What a text calls it."""
        return f"{self.thing} of someone who {self.said}"


class _Material(NewNames):
    """Words and names from one random generator. No name is drawn twice."""

    def possession(self) -> _Owned:
        """Draw a thing with its owner, who has another occupation or a thing of another category than all before."""
        owned = self.other()
        self.used.add(owned.question)
        return owned

    def other(self) -> _Owned:
        """Draw a thing with its owner that is none of `owned`; it can repeat.

        All words of the texts are equally frequent, also the words for the questioned things. So neither a search for
        words nor a search for rare words finds these things.
        """
        while True:
            said, asked = self.random.choice(associations())
            category, things = self.random.choice(categories())
            owned = _Owned(
                said=said,
                thing=self.random.choice(things),
                asked=asked,
                category=category,
            )
            if owned.question not in self.used:
                return owned

    def name(self) -> str:
        """Draw a new invented name, such as `Tavelor Grosimun`."""
        return self.draw_new(lambda: f"{self._word(2)} {self._word(3)}")

    def town(self) -> str:
        """Draw a new invented name of a town, such as `Grosimun`."""
        return self.draw_new(lambda: self._word(3))

    def number(self) -> str:
        """Draw a new number of seven digits."""
        return self.draw_new(lambda: str(self.random.randrange(1_000_000, 10_000_000)))

    def thing(self) -> str:
        """Draw an adjective and a noun; they can repeat."""
        return " ".join(
            self.random.choice(generation.plain_words(kind))
            for kind in ("adjective", "noun")
        )

    def new_thing(self) -> str:
        """Draw an adjective and a noun that were not drawn by this method before."""
        return self.draw_new(self.thing)

    def sentence(self) -> str:
        """Draw a sentence that says nothing."""
        return f"The {self.thing()} {self.random.choice(_VERBS)} the {self.thing()}."

    def _word(self, syllables: int) -> str:
        word = invent_word(self.random, syllables)
        return word.capitalize() + self.random.choice(_ENDS)


def _rest(question: str) -> int:
    """Return about how many tokens a prompt has besides its lines."""
    return estimate_tokens(question) + INSTRUCTIONS


@cache
def associations() -> list[tuple[str, str]]:
    """Return what texts say about people, each with what questions ask."""
    return [*read_yaml(_FILE)["associations"].items()]


@cache
def categories() -> list[tuple[str, list[str]]]:
    """Return what questions ask for, each with the things in texts that are meant."""
    return [*read_yaml(_FILE)["categories"].items()]


_VERBS = (
    "faces",
    "follows",
    "touches",
    "resembles",
    "hides",
    "outlasts",
    "mirrors",
    "borders",
    "supports",
    "precedes",
)


_DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""About the depths of the five codes that recall asks for."""

_JITTER = 0.01
"""Largest distance from these depths."""

_HOPS = 3

_SIGHTINGS = (4, 9)
"""Smallest and largest number of towns that are counted."""

_MENTIONS = 3
_ITEMS = 5
_SENTENCES = 12
"""Conversation: replies about the topic that is asked for, things at the end of a reply, and sentences before them."""

_ORDINALS = ("first", "second", "third")

_DECOYS = 0.1
"""Share of the other arrows that lead to a thing on the way that is asked for."""

_Start = Callable[[_Material], _Material]
"""(facts) → the material of the other lines. It draws nothing of the facts."""


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Draw the examples of a task."""

    def draw(name: str, text: int) -> Example:
        # What is asked for does not depend on the length, so that the same question can be asked at several ones.
        facts = _Material(name)
        start = partial(_Material, f"{name}-{settings.level}-{text}")
        return _DRAWS[task.name](facts, start, settings, name)

    return draw_examples(task, settings, draw)


def _draw_recall(
    facts: _Material,
    start: _Start,
    settings: Settings,
    name: str,
) -> Example:
    things = [facts.possession() for _ in _DEPTHS]
    codes = [facts.number() for _ in _DEPTHS]
    needles = []
    for thing, code in zip(things, codes, strict=True):
        needles.append(f"The {thing.text} has the code {code}.")
    question = f"What are the codes of these five: {'; '.join(thing.question for thing in things)}?"
    filler = start(facts)
    lines = draw_lines(
        settings.level,
        lambda: f"The {filler.other().text} has the code {filler.number()}.",
        _rest(question),
    )
    # A line that is always the same, such as the first one, would be read without a search.
    depths = []
    for depth in _DEPTHS:
        depths.append(abs(depth - _JITTER * facts.random.random()))
    return _example(
        settings, name, insert_lines(lines, needles, depths), question, codes
    )


def _draw_paraphrase(
    facts: _Material,
    start: _Start,
    settings: Settings,
    name: str,
) -> Example:
    wanted = facts.possession()
    person = facts.name()
    depth = facts.random.random()
    question = f"Which of the people {wanted.asked} and owns {wanted.category}?"
    filler = start(facts)

    def describe(person: str, owned: _Owned) -> str:
        return f"{person} {owned.said} and owns the {owned.thing}."

    lines = draw_lines(
        settings.level, lambda: describe(filler.name(), filler.other()), _rest(question)
    )
    return _example(
        settings,
        name,
        insert_lines(lines, [describe(person, wanted)], [depth]),
        question,
        [person],
        depth,
    )


def _draw_graph(
    facts: _Material,
    start: _Start,
    settings: Settings,
    name: str,
) -> Example:
    nodes = []
    for _ in range(_HOPS + 1):
        nodes.append((facts.possession(), facts.number()))
    question = (
        f"Start at {nodes[0][0].question} and follow {_HOPS} arrows, one after the"
        " other. Which numbers do you reach?"
    )
    last = facts.other()
    filler = start(facts)
    targets = [*(node for node, _ in nodes[1:]), last]
    path = []
    for (thing, number), target in zip(nodes, targets, strict=True):
        path.append(_arrow(thing, number, target))
    depths = [facts.random.random() for _ in path]
    # Other arrows lead to the questioned things too, so their words in a text do not show the way.
    every = [node for node, _ in nodes]

    def draw() -> str:
        if filler.random.random() < _DECOYS:
            target = filler.random.choice(every)
        else:
            target = filler.other()
        return _arrow(filler.other(), filler.number(), target)

    lines = insert_lines(
        draw_lines(settings.level, draw, _rest(question)), path, depths
    )
    return _example(
        settings, name, lines, question, [number for _, number in nodes[1:]]
    )


def _arrow(node: _Owned, number: str, target: _Owned) -> str:
    return f"{number}: {node.text} -> {target.question}"


def _draw_count(
    facts: _Material,
    start: _Start,
    settings: Settings,
    name: str,
) -> Example:
    wanted = facts.possession()
    number = facts.random.randint(_SIGHTINGS[0], _SIGHTINGS[1])
    question = f"In which towns did someone who {wanted.asked} find {wanted.category}, and how many towns are they?"
    towns = [facts.town() for _ in range(number)]
    # One sentence in each of as many equal parts, so that every part of the text counts.
    depths = []
    for number_of_part in range(number):
        depths.append((number_of_part + facts.random.random()) / number)
    things = dict(categories())[wanted.category]
    needles = []
    for town in towns:
        thing = facts.random.choice(things)
        needles.append(f"In {town} someone who {wanted.said} found the {thing}.")
    filler = start(facts)

    def draw() -> str:
        other = filler.other()
        return f"In {filler.town()} someone who {other.said} found the {other.thing}."

    lines = insert_lines(
        draw_lines(settings.level, draw, _rest(question)), needles, depths
    )
    return _example(settings, name, lines, question, towns)


def _draw_conversation(
    facts: _Material,
    start: _Start,
    settings: Settings,
    name: str,
) -> Example:
    topic = facts.possession()
    which = facts.random.randrange(_MENTIONS)
    question = (
        f"Which {_ITEMS} things did your {_ORDINALS[which]} answer about"
        f" {topic.question} name at its end? Write only these things, in the same"
        " order, with commas between them."
    )
    depths = []
    for number in range(_MENTIONS):
        depths.append((number + facts.random.random()) / _MENTIONS)
    items = [facts.new_thing() for _ in range(_ITEMS)]
    filler = start(facts)
    size = count_lines(
        settings.level,
        lambda: f"Tell me about the {filler.other().text}.\n{_reply(filler)}",
        _rest(question),
    )
    turns: list[tuple[str, list[str] | None]] = []
    for _ in range(max(1, size - _MENTIONS)):
        turns.append((filler.other().text, None))
    positions = []
    for depth in depths:
        positions.append(round(depth * len(turns)))
    # From the back, so that an insertion does not move the positions before it.
    for number, position in reversed([*enumerate(positions)]):
        turns.insert(position, (topic.text, items if number == which else None))
    messages: list[Message] = []
    for text, named in turns if settings.context == "full" else ():
        messages.append({"role": "user", "content": f"Tell me about the {text}."})
        messages.append({"role": "assistant", "content": _reply(filler, named)})
    messages.append({"role": "user", "content": question})
    return Example(
        id=name,
        fields={},
        references=items,
        source="official",
        messages=messages,
    )


def _reply(material: _Material, items: list[str] | None = None) -> str:
    """Return an answer of a conversation. It names things at its end: the given ones, or drawn ones."""
    named = items or [material.new_thing() for _ in range(_ITEMS)]
    prose = " ".join(material.sentence() for _ in range(_SENTENCES))
    return f"{prose} It comes with: {', '.join(named)}."


def _example(
    settings: Settings,
    name: str,
    lines: list[str],
    question: str,
    references: list[str],
    depth: float | None = None,
) -> Example:
    # Without its context, a model can only guess.
    if settings.context == "full":
        text = "\n".join(lines)
    else:
        text = ""
    return Example(
        id=name,
        fields={CONTEXT: text, "question": question},
        references=references,
        source="official",
        depth=depth,
    )


_DRAWS = {
    "recall": _draw_recall,
    "paraphrase": _draw_paraphrase,
    "graph": _draw_graph,
    "count": _draw_count,
    "conversation": _draw_conversation,
}


PLACES = ("at_start", "at_quarter", "at_middle", "at_three_quarters", "at_end")
"""Metrics of recall by the depth of the number."""

_SEPARATOR = re.compile(r"[,;\n]|\band\b")
_NUMBER = re.compile(r"\d+")


def _score_recall(record: ScorerInput) -> MetricValues:
    """Compute the share of the codes that the answer has, and whether it has the code at each depth."""
    numbers = set(_NUMBER.findall(record["prediction"]))
    hits = []
    for code in record["references"]:
        hits.append(float(code in numbers))
    return {"found": sum(hits) / len(hits), **dict(zip(PLACES, hits, strict=False))}


def _score_path(record: ScorerInput) -> MetricValues:
    """Compute the share of the arrows that the answer follows without a mistake, from the first right number on."""
    numbers = _NUMBER.findall(record["prediction"])
    path = record["references"]
    if path[0] in numbers:
        numbers = numbers[numbers.index(path[0]) :]
    else:
        numbers = []
    pairs = zip(numbers, path, strict=False)
    return {
        "found": len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) / len(path)
    }


def _score_towns(record: ScorerInput) -> MetricValues:
    """Compute the F1 of the towns in the answer, and whether the last number in it is their number."""
    parts = (
        part.strip(" .:-*").casefold()
        for part in _SEPARATOR.split(record["prediction"])
    )
    towns = set()
    for part in parts:
        if part and not _NUMBER.search(part):
            towns.add(part)
    numbers = _NUMBER.findall(record["prediction"])
    expected = set()
    for town in record["references"]:
        expected.add(town.casefold())
    return {
        "found": f1(towns, expected),
        "number": float(numbers[-1:] == [str(len(expected))]),
    }


def _score_items(record: ScorerInput) -> MetricValues:
    """Compute the share of the things that stand at their position in the answer's list."""
    items = []
    for part in record["prediction"].split(","):
        items.append(part.strip(" .-*").casefold())
    pairs = zip(items, (item.casefold() for item in record["references"]), strict=False)
    return {
        "found": sum(one == other for one, other in pairs) / len(record["references"])
    }


_task = partial(
    Task,
    load=load,
    sizes=sizes_in_tokens(),
    **task_fields(__package__),
)


def _template(what: str, form: str) -> Template:
    # The question comes last, because models find it better there, and servers that cut a text keep its end.
    return Template(
        f"Here is {what}. A question follows after it.\n\n{{context}}\n\n{{question}} {form}",
        "Answer:",
    )


TASKS = (
    _task(
        name="recall",
        title="Recall of codes",
        template=_template(
            "a text with codes of some things",
            "Write only the five codes, in this order.",
        ),
        score=_score_recall,
        metrics=("found", *PLACES),
        max_tokens=256,
        baseline=Baseline("span", "1000000"),
    ),
    _task(
        name="paraphrase",
        title="Recall of a person",
        template=_template(
            "a list of people and what they do", "Write only the person's full name."
        ),
        score=lambda record: {
            "found": float(
                record["references"][0].casefold() in record["prediction"].casefold()
            )
        },
        max_tokens=128,
        baseline=Baseline("span", "nobody"),
    ),
    _task(
        name="graph",
        title="Multi-hop graph",
        template=_template(
            "a list of things with numbers and arrows",
            "Write only the numbers, in this order.",
        ),
        score=_score_path,
        max_tokens=256,
        baseline=Baseline("span", "1000000"),
    ),
    _task(
        name="count",
        title="Counting and aggregation",
        template=_template(
            "a list of things that were found in towns",
            "Write only the towns with commas between them, and in a second line their number.",
        ),
        score=_score_towns,
        headline=("found", "number"),
        metrics=("found", "number"),
        max_tokens=512,
        baseline=Baseline("span", "none"),
    ),
    _task(
        name="conversation",
        title="Conversation",
        template=NO_TEMPLATE,
        score=_score_items,
        max_tokens=256,
    ),
)

FRESH_TEXT = read_benchmark(__package__, TASKS)
