"""The tasks of tool calls: definition, identifier, constraint, replacement and abstention.

Each example has its own random generator: its tools, names and lines depend only on the seed, and nothing is downloaded.
The question of an example is the same at each length.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.tool_calls.baseline import answer_by_words
from helm_longctx.benchmarks.tool_calls.prompts import FORM, NO_CALL, TEMPLATE
from helm_longctx.benchmarks.tool_calls.scoring import can_read, score
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.tasks import (
    STANDARD,
    Baseline,
    DataRoot,
    Example,
    Settings,
    Shape,
    Task,
    are_all,
    generation,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.generated_text import (
    FILL,
    NewNames,
    draw_examples,
    invent_word,
)
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.token_estimate import estimate_tokens

_INSTRUCTIONS = 160
"""About how many tokens a prompt has besides tools, log and question."""

_BLOCK = 8
"""Number of entries whose tokens are estimated together."""

_FEWEST_TOOLS = 6
_MOST_TOOLS = 48
_TOKENS_OF_A_TOOL = 700
"""Tokens of the length for each tool: longer prompts have more tools, up to the most."""

_FILE = Path(__file__).with_name("material.yaml")

_ROLES = ("item", "amount", "choice", "ticket", "tell")
"""What the parameters of a tool are for. Their names are drawn."""


@cache
def read_material() -> dict[str, Any]:
    """Return what definitions, logs and questions say."""
    return read_yaml(_FILE)


@cache
def _names(kind: str) -> tuple[str, ...]:
    """Return what logs can name: `subjects` or `sites`."""
    return (*read_material()[kind],)


@dataclass(frozen=True)
class _Tool:
    """A tool: its action, and the drawn names of its parameters by role."""

    name: str
    action: Mapping[str, Any]
    names: Mapping[str, str]

    @property
    def definition(self) -> dict[str, Any]:
        """The definition as `tools=` sends it."""
        choice = self.action["choice"]
        about_amount, _ = self.action["amount"]
        schemas: dict[str, dict[str, Any]] = {
            "item": {"type": "string", "description": "Identifier."},
            "amount": {"type": "integer", "description": about_amount},
            "choice": {
                "type": "string",
                "enum": [*choice["values"]],
                "description": choice["about"],
            },
            "ticket": {
                "type": "string",
                "description": "Ticket, only where a rule demands one.",
            },
            "tell": {
                "type": "array",
                "items": {"type": "string"},
                "description": "People to inform, in order.",
            },
        }
        properties = {}
        for role in _ROLES:
            properties[self.names[role]] = schemas[role]
        required = []
        for role in _ROLES:
            if role != "ticket":
                required.append(self.names[role])
        return {
            "name": self.name,
            "description": self.action["does"],
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
        }

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments from values by role."""
        return {self.names[role]: value for role, value in values.items()}


@dataclass(frozen=True)
class _Item:
    """An item of the log: what it is about and where it is."""

    subject: str
    site: str

    @property
    def clue(self) -> str:
        """What a question calls it."""
        material = read_material()
        return (
            f"what deals with {material['subjects'][self.subject]}"
            f" and lies in {material['sites'][self.site]}"
        )


class _Material(NewNames):
    """Names and items from one random generator. No name is drawn twice."""

    def word(self, syllables: int) -> str:
        """Draw a new invented word."""
        return self.draw_new(lambda: invent_word(self.random, syllables))

    def tool_name(self) -> str:
        """Draw the name of a tool, such as `tavi_losune`. It says nothing of what the tool does."""
        return f"{self.word(2)}_{self.word(3)}"

    def person(self) -> str:
        """Draw the name of a person."""
        return self.word(3).capitalize()

    def identifier(self) -> str:
        """Draw a new identifier, such as `k48213-b`."""

        def draw() -> str:
            number = self.random.randrange(10_000, 100_000)
            return (
                f"{self.random.choice('kmprt')}{number}-{self.random.choice('abcdef')}"
            )

        return self.draw_new(draw)

    def ticket(self) -> str:
        """Draw a ticket."""
        return f"T{self.random.randrange(1_000_000, 10_000_000)}"

    def item(self) -> _Item:
        """Draw an item that is none of the questioned ones; it can repeat.

        All words are equally frequent, so that a search for the words of an item finds many.
        """
        while True:
            item = _Item(
                subject=self.random.choice(_names("subjects")),
                site=self.random.choice(_names("sites")),
            )
            if item.clue not in self.used:
                return item

    def new_item(self) -> _Item:
        """Draw an item that is not drawn again."""
        item = self.item()
        self.used.add(item.clue)
        return item

    def tool(self, action: Mapping[str, Any]) -> _Tool:
        """Draw a tool with an action."""
        names = {}
        for role in _ROLES:
            names[role] = self.random.choice(read_material()["parameters"][role])
        return _Tool(
            name=self.tool_name(),
            action=action,
            names=names,
        )

    def values(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Draw the arguments of a call by role, without a ticket."""
        people = [self.person() for _ in range(self.random.randint(1, 3))]
        return {
            "item": self.identifier(),
            "amount": self.random.randint(2, 99),
            "choice": self.random.choice([*action["choice"]["values"]]),
            "tell": people,
        }

    def sentence(self) -> str:
        """Draw a sentence that says nothing."""
        words = []
        for kind in ("adjective", "noun", "adjective", "noun"):
            words.append(self.random.choice(generation.plain_words(kind)))
        return f"The {words[0]} {words[1]} borders the {words[2]} {words[3]}."


@dataclass
class _Log:
    """What a question needs of the log, each with its depth from 0 to 1, and the call that is right.

    Args:
        depth: the depth of what decides.
        call: None if no call is right.
    """

    tools: list[_Tool]
    question: str
    call: dict[str, Any] | None
    depth: float
    needles: list[tuple[float, list[str]]] = field(default_factory=list)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _ask(action: Mapping[str, Any], item: str, values: Mapping[str, Any]) -> str:
    """Return the question that wants a call, in other words than the definition's."""
    _, amount = action["amount"]
    choice = action["choice"]["values"][values["choice"]]
    people = ", then ".join(values["tell"])
    return (
        f"Take {item}. {action['asked']}, {amount.format(values['amount'])}; {choice}."
        f" Let {people} know."
    )


def _result(identifier: str, item: _Item, size: int) -> str:
    return "result " + _compact(
        {"id": identifier, "about": item.subject, "site": item.site, "size": size}
    )


def _rule(item: _Item, ticket: str) -> str:
    return f"user: Whatever you call a tool for about {item.subject} in {item.site}, give the ticket {ticket}."


def _replacement(old: str, new: str) -> str:
    return f"notice: {old} was replaced by {new}"


def _switch(name: str, is_on: bool) -> str:
    return f"notice: {name} was switched {'on again' if is_on else 'off'}"


def _draw_definition(facts: _Material) -> _Log:
    """The tool is defined before the log, and the log never calls it."""
    action = facts.random.choice(read_material()["actions"])
    tool = facts.tool(action)
    values = facts.values(action)
    return _Log(
        tools=[tool],
        question=_ask(action, f"the item {values['item']}", values),
        call={"name": tool.name, "arguments": tool.arguments(values)},
        depth=0.0,
    )


def _draw_identifier(facts: _Material) -> _Log:
    """The identifier is in one result of the log, which the question describes in other words."""
    log = _draw_definition(facts)
    action = log.tools[0].action
    values = facts.values(action)
    item = facts.new_item()
    log.question = _ask(action, item.clue, values)
    log.call = {
        "name": log.tools[0].name,
        "arguments": log.tools[0].arguments(values),
    }
    log.depth = facts.random.random()
    size = facts.random.randrange(1_000, 100_000)
    log.needles = [(log.depth, [_result(values["item"], item, size)])]
    return log


def _draw_constraint(facts: _Material) -> _Log:
    """The user has once demanded a ticket for calls about an item."""
    log = _draw_definition(facts)
    tool = log.tools[0]
    values = facts.values(tool.action)
    item = facts.new_item()
    ticket = facts.ticket()
    asked = f"the item {values['item']}, {item.clue}"
    log.question = _ask(tool.action, asked, values)
    log.call = {
        "name": tool.name,
        "arguments": tool.arguments({**values, "ticket": ticket}),
    }
    log.depth = facts.random.random()
    log.needles = [(log.depth, [_rule(item, ticket)])]
    return log


def _draw_replacement(facts: _Material) -> _Log:
    """The tool was replaced, and its successor, too. All three have the same description."""
    log = _draw_definition(facts)
    tools = [log.tools[0]]
    action = tools[0].action
    while len(tools) < 3:
        tools.append(facts.tool(action))
    values = facts.values(action)
    first, last = sorted(facts.random.random() for _ in range(2))
    log.tools = tools
    log.question = _ask(action, f"the item {values['item']}", values)
    log.call = {"name": tools[2].name, "arguments": tools[2].arguments(values)}
    log.depth = last
    log.needles = [
        (first, [_replacement(tools[0].name, tools[1].name)]),
        (last, [_replacement(tools[1].name, tools[2].name)]),
    ]
    return log


def _draw_abstention(facts: _Material) -> _Log:
    """The only tool was switched off, and in half of the examples on again. Then the call is right."""
    log = _draw_definition(facts)
    name = log.tools[0].name
    is_on = facts.random.random() < 0.5
    depths = sorted(facts.random.random() for _ in range(3))
    if is_on:
        states = (True, False, True)
    else:
        states = (False, True, False)
        log.call = None
    for depth, state in zip(depths, states, strict=True):
        log.needles.append((depth, [_switch(name, is_on=state)]))
    log.depth = depths[-1]
    return log


_DRAWS: dict[str, Callable[[_Material], _Log]] = {
    "definition": _draw_definition,
    "identifier": _draw_identifier,
    "constraint": _draw_constraint,
    "replacement": _draw_replacement,
    "abstention": _draw_abstention,
}


class _Filler:
    """The other entries of a log: calls, results, errors, files, rules and notices about other items and tools.

    Args:
        tools: the tools that are called and switched; none of them is the questioned one.
    """

    def __init__(self, material: _Material, tools: Sequence[_Tool]):
        self._material = material
        self._random = material.random
        self._tools = tools

    def draw(self) -> str:
        """Draw the next entry, of one line or of two."""
        kinds = (self._call, self._file, self._error, self._rule, self._notice)
        (kind,) = self._random.choices(kinds, (5, 2, 1, 2, 2))
        return kind()

    def _call(self) -> str:
        tool = self._random.choice(self._tools)
        values = self._values(tool)
        call = f"call {tool.name} {_compact(tool.arguments(values))}"
        size = self._random.randrange(1_000, 100_000)
        identifier = self._material.identifier()
        return f"{call}\n{_result(identifier, self._material.item(), size)}"

    def _values(self, tool: _Tool) -> dict[str, Any]:
        # The people are not remembered: a long log has more of them than there are names.
        people = [self._person() for _ in range(self._random.randint(1, 3))]
        return {
            "item": self._material.identifier(),
            "amount": self._random.randint(2, 99),
            "choice": self._random.choice([*tool.action["choice"]["values"]]),
            "tell": people,
        }

    def _person(self) -> str:
        return invent_word(self._random, 3).capitalize()

    def _file(self) -> str:
        name = f"{self._random.choice(generation.plain_words('noun'))}.md"
        text = " ".join(self._material.sentence() for _ in range(3))
        return f"file {name}: {text}"

    def _error(self) -> str:
        tool = self._random.choice(self._tools)
        error = self._random.choice(read_material()["errors"])
        return f"error {tool.name}: {error.format(self._random.randint(2, 999))}"

    def _rule(self) -> str:
        return _rule(self._material.item(), self._material.ticket())

    def _notice(self) -> str:
        tool = self._random.choice(self._tools)
        if self._random.random() < 0.5:
            return _switch(tool.name, is_on=self._random.random() < 0.5)
        return _replacement(tool.name, self._random.choice(self._tools).name)


def _number_of_tools(level: int) -> int:
    return min(max(level // _TOKENS_OF_A_TOOL, _FEWEST_TOOLS), _MOST_TOOLS)


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Draw the examples of a task."""
    return draw_examples(task, settings, partial(_draw_example, task, settings))


def _draw_example(
    task: Task,
    settings: Settings,
    name: str,
    text: int,
) -> Example:
    """Draw an example.

    Args:
        name: says which question it is.
        text: the number of the log in which the question is asked.
    """
    # What is asked for does not depend on the length, so that the same question can be asked at several ones.
    facts = _Material(name)
    log = _DRAWS[task.name](facts)
    key = f"{name}-{settings.level}"
    material = _Material(f"{key}-{text}" if text else key, facts)
    # Other tools have other actions, so that one tool alone, or its successors, can do what is asked for.
    actions = [
        action
        for action in read_material()["actions"]
        if action is not log.tools[0].action
    ]
    others: list[_Tool] = []
    for _ in range(_number_of_tools(settings.level) - len(log.tools)):
        others.append(material.tool(material.random.choice(actions)))
    definitions = [tool.definition for tool in (*log.tools, *others)]
    material.random.shuffle(definitions)
    tools = "\n".join(map(_compact, definitions))
    rest = f"{tools}\n{log.question}"
    if settings.context == "full":
        filler = _Filler(material, others)
        context = "\n".join(_fill(settings, filler, log, rest))
    else:
        context = ""
    return Example(
        id=name,
        fields={
            "tools": tools,
            CONTEXT: context,
            "question": log.question,
            "form": FORM,
        },
        references=[_compact(log.call) if log.call else NO_CALL],
        source="official",
        depth=log.depth,
        record={"tools": definitions},
    )


def _fill(
    settings: Settings,
    filler: _Filler,
    log: _Log,
    rest: str,
) -> list[str]:
    """Return the entries of a log that fills the length, with what the question needs between them."""
    tokens = FILL * settings.level - estimate_tokens(rest) - _INSTRUCTIONS
    for _, needle in log.needles:
        tokens -= estimate_tokens("\n".join(needle))
    entries: list[str] = []
    while tokens > 0 or not entries:
        block = [filler.draw() for _ in range(_BLOCK)]
        size = estimate_tokens("\n".join(block))
        # The last block is the part of one that fills the length.
        if size > tokens:
            block = block[: max(1, round(_BLOCK * tokens / size))]
        entries += block
        tokens -= size
    number = len(entries)
    # From the back, so that an insertion does not move the positions before it.
    for depth, lines in reversed(log.needles):
        position = round(depth * number)
        entries[position:position] = lines
    return entries


_task = partial(
    Task,
    template=TEMPLATE,
    load=load,
    score=score,
    can_read=can_read,
    max_tokens=512,
    baseline=Baseline(answer_by_words, NO_CALL),
    sizes={length: length for length in STANDARD.values() if length >= STANDARD["4k"]},
    record_shapes={
        "tools": Shape(
            "a list of objects", are_all(lambda tool: isinstance(tool, dict))
        )
    },
    **task_fields(__package__),
)

TASKS = (
    _task(name="definition", title="Tool defined far above"),
    _task(name="identifier", title="Identifier from a result"),
    _task(name="constraint", title="Constraint stated once"),
    _task(name="replacement", title="Replaced tool"),
    _task(name="abstention", title="Call or no call"),
)

TOOL_CALLS = read_benchmark(__package__, TASKS)
