"""Draws the examples of the five kinds. Each example has its own random generator, and nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from helm_longctx.benchmarks.fresh_text.associations import ASSOCIATIONS
from helm_longctx.benchmarks.fresh_text.material import Material, count_lines, draw_lines, insert
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.task import Example, Loader, Settings, Task
from helm_longctx.tasks.template import CONTEXT

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The depths of the five numbers that exact recall asks for."""

HOPS = 3
"""Number of arrows that are followed."""

SIGHTINGS = (4, 9)
"""Smallest and largest number of places that are counted."""

MENTIONS, ITEMS, SENTENCES = 3, 5, 12
"""Conversation: replies about the topic that is asked for, things at the end of a reply, and sentences before them."""

ORDINALS = ("first", "second", "third")

BIRDS = (
    "heron", "stork", "falcon", "plover", "curlew", "magpie", "cuckoo", "osprey", "bittern", "lapwing", "dunlin",
)  # fmt: skip

Reply = tuple[str, list[str]]
"""An answer in a conversation, and the things at its end."""


def loader(kind: str) -> Loader:
    """Return the loader of a kind."""
    return partial(_load, kind=kind)


def _load(task: Task, settings: Settings, root: DataRoot, kind: str) -> Iterator[Example]:
    for number in range(task.sample(settings)):
        name = f"{kind}-{settings.seed}-{number}"
        yield _DRAWS[kind](Material(f"{name}-{settings.level}"), settings, name)


def _draw_recall(material: Material, settings: Settings, name: str) -> Example:
    things, codes = ([draw() for _ in DEPTHS] for draw in (material.new_thing, material.number))
    needles = [f"The code of the {thing} is {code}." for thing, code in zip(things, codes, strict=True)]
    question = f"What are the codes of these five: {', '.join(f'the {thing}' for thing in things)}?"
    lines = draw_lines(settings, material.sentence, question)
    return _example(settings, name, insert(lines, needles, DEPTHS), question, codes)


def _draw_paraphrase(material: Material, settings: Settings, name: str) -> Example:
    (fact, asked), *others = material.random.sample(ASSOCIATIONS, len(ASSOCIATIONS))
    question, person, depth = f"Which of the people {asked}?", material.name(), material.random.random()
    lines = draw_lines(settings, lambda: f"{material.name()} {material.random.choice(others)[0]}.", question)
    return _example(settings, name, insert(lines, [f"{person} {fact}."], [depth]), question, [person], depth)


def _draw_graph(material: Material, settings: Settings, name: str) -> Example:
    question = f"Start at {{}} and follow {HOPS} arrows, one after the other. Which numbers do you reach?"
    size = count_lines(settings, lambda: f"{material.number()} -> {material.number()}", question)
    # The numbers are a circle, so that each of them has exactly one arrow that leaves it.
    nodes = [material.number() for _ in range(size + HOPS)]
    edges = [f"{one} -> {other}" for one, other in pairwise([*nodes, nodes[0]])]
    material.random.shuffle(edges)
    return _example(settings, name, edges, question.format(nodes[0]), nodes[1 : HOPS + 1])


def _draw_count(material: Material, settings: Settings, name: str) -> Example:
    bird, *others = material.random.sample(BIRDS, len(BIRDS))
    question = f"In which towns were {bird}s seen, and how many towns are they?"

    def sight(of: str) -> tuple[str, str]:
        town = material.name().split()[1]
        return town, f"In {town} {material.random.randrange(2, 29)} {of}s were seen."

    lines = draw_lines(settings, lambda: sight(material.random.choice(others))[1], question)
    found = dict(sight(bird) for _ in range(material.random.randint(*SIGHTINGS)))
    # One place in each of as many equal parts, so that every part of the text counts.
    depths = [(number + material.random.random()) / len(found) for number in range(len(found))]
    return _example(settings, name, insert(lines, list(found.values()), depths), question, list(found))


def _draw_conversation(material: Material, settings: Settings, name: str) -> Example:
    topic, which = material.new_thing(), material.random.randrange(MENTIONS)
    question = (
        f"Which {ITEMS} things did your {ORDINALS[which]} answer about the {topic} name at its end? Write only these"
        " things, in the same order, with commas between them."
    )
    size = count_lines(settings, lambda: f"Tell me about the {material.new_thing()}.\n{_reply(material)[0]}", question)
    depths = [(number + material.random.random()) / MENTIONS for number in range(MENTIONS)]
    others = [material.new_thing() for _ in range(max(1, size - MENTIONS))]
    topics = insert(others, [topic] * MENTIONS, depths)
    replies = [_reply(material) for _ in topics]
    wanted = [items for each, (_, items) in zip(topics, replies, strict=True) if each == topic][which]
    messages: list[Message] = []
    for each, (text, _) in zip(topics, replies, strict=True) if settings.context == "full" else ():
        messages.append({"role": "user", "content": f"Tell me about the {each}."})
        messages.append({"role": "assistant", "content": text})
    messages.append({"role": "user", "content": question})
    return Example(name, {}, wanted, "generated", messages=messages)


def _reply(material: Material) -> Reply:
    items = [material.new_thing() for _ in range(ITEMS)]
    prose = " ".join(material.sentence() for _ in range(SENTENCES))
    return f"{prose} It comes with: {', '.join(items)}.", items


def _example(
    settings: Settings, name: str, lines: list[str], question: str, references: list[str], depth: float | None = None
) -> Example:
    # Without its context, a model can only guess.
    text = "\n".join(lines) if settings.context == "full" else ""
    return Example(name, {CONTEXT: text, "question": question}, references, "generated", depth=depth)


_DRAWS = {
    "recall": _draw_recall,
    "paraphrase": _draw_paraphrase,
    "graph": _draw_graph,
    "count": _draw_count,
    "conversation": _draw_conversation,
}
