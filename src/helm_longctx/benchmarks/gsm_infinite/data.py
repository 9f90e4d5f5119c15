"""Generates GSM-Infinite's symbolic problems, and reads the others from the hub.

Source: Infini-AI-Lab/gsm_infinite at caa5388, gsm-infinite/data/symbolic/generate_payload.py, generate_symbolic.py,
pred/pred.py (`filter_config`) and config.sh.
"""

import random
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from helm_longctx.tasks import DataRoot, Example, HubDataset, InputError, JsonLines, Settings, Task, Types
from helm_longctx.tasks.lengths import length_label

NAMES = 1_000_000
"""Number of names of variables, V000000 and so on."""
STATEMENTS, TOKENS = 828, 9668
"""Number of statements in a text of so many tokens."""
SYMBOLIC_OPERATIONS = {0: 50, 8192: 30, 16384: 20}
"""The largest number of operations of symbolic problems by length; 10 at other lengths."""
MOST_OPERATIONS = 10
OPERATIONS = range(2, 31)
"""The numbers of operations of the other problems."""
SYMBOLIC_LIMIT, LIMIT = 100, 200
"""The numbers of problems with each number of operations."""

_FIRST, _SECOND = "normalforward", "forwardreverse"
SHARES = {
    (template, mode): share
    for mode in (_FIRST, _SECOND)
    for template, share in {"crazy_zootopia": 0.4, "movie_festival_awards": 0.05, "teachers_in_school": 0.05}.items()
}
"""The share of each kind of problem, in the official order."""
COLUMNS: Types = {"messages": list, "solution": str, "op": int, "template": str, "mode": str}
_KEPT = (*COLUMNS, "id")


class Problem(NamedTuple):
    """A symbolic problem: its statements, the value that is asked for, and the variables that have it."""

    statements: list[str]
    value: int
    variables: list[str]


def draw_problem(rng: random.Random, operations: int, size: int) -> Problem:
    """Draw a problem with `operations` variables that have values, and `size` variables in all."""
    names = [f"V{number:06d}" for number in rng.sample(range(NAMES), k=size)]
    nodes, edges = _draw_tree(rng, names[:operations])
    signs = dict(zip((child for _, child in edges), _draw_signs(rng, len(edges)), strict=True))
    values = {nodes[0]: rng.randint(0, 10)}
    statements = [f"assign {nodes[0]} = {values[nodes[0]]}"]
    # A parent stands before its children in the list, so one pass finds all values.
    for parent, child in edges:
        values[child] = values[parent] + {"": 0, " + 1": 1, " - 1": -1}[signs[child]]
        statements.append(f"assign {child} = {parent}{signs[child]}")
    # The official code draws from the values in the order of the nodes.
    value = rng.choice([values[node] for node in nodes])
    variables = [node for node in nodes if values[node] == value]
    if size > operations:
        _, edges = _draw_tree(rng, names[operations:])
        further = _draw_signs(rng, len(edges))
        statements += [f"assign {child} = {parent}{sign}" for (parent, child), sign in zip(edges, further, strict=True)]
    rng.shuffle(statements)
    return Problem(statements, value, variables)


def _draw_tree(rng: random.Random, nodes: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Shuffle nodes, and give each but the first a parent before it."""
    rng.shuffle(nodes)
    return nodes, [(nodes[rng.randint(0, place - 1)], nodes[place]) for place in range(1, len(nodes))]


def _draw_signs(rng: random.Random, count: int) -> list[str]:
    return rng.choices(["", " + 1", " - 1"], k=count)


def official_tokens(length: int) -> int:
    """Return the number that the official script gets for a length: 8000 for 8k."""
    return length // 1024 * 1000 if length % 1024 == 0 else length


def count_symbolic(length: int) -> int:
    """Return the official number of symbolic problems at a length."""
    return SYMBOLIC_LIMIT * SYMBOLIC_OPERATIONS.get(length, MOST_OPERATIONS)


def generate(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Draw symbolic problems as the official script with the same seed does, with few operations first."""
    rng = random.Random(settings.seed)
    noise = int(official_tokens(settings.level) * STATEMENTS / TOKENS * 1.0)
    most = SYMBOLIC_OPERATIONS.get(settings.level, MOST_OPERATIONS)
    each = -(-task.sample(settings) // most)
    drawn = (
        (operations, number, draw_problem(rng, operations, operations + noise))
        for operations in range(1, most + 1)
        for number in range(each)
    )
    for operations, number, problem in islice(drawn, task.sample(settings)):
        fields = {"context": " ".join(f"{text}." for text in problem.statements), "question": str(problem.value)}
        record = {"value": problem.value}
        yield Example(f"{operations}-{number}", fields, problem.variables, "generated", record=record)


def find_source(name: str, length: int) -> HubDataset:
    """Return the hub data set of medium or hard problems of a length. It has a split for each number of operations."""
    splits = {f"ops_{operations}": 0 for operations in OPERATIONS}
    repo = f"InfiniAILab/gsm_infinite_{name}_{length_label(length) if length else 0}"
    return HubDataset(repo, splits, columns=dict.fromkeys(splits, _KEPT), labelled=False)


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield medium or hard problems, with few operations first, and of each kind its official share."""
    each = -(-task.sample(settings) // len(OPERATIONS))
    examples = (
        example
        for path in task.paths(settings.length)
        for example in islice(_select(JsonLines(root / path, COLUMNS)), each)
    )
    return islice(examples, task.sample(settings))


def _select(rows: JsonLines) -> Iterator[Example]:
    """Yield the first problems of each kind in a file."""
    total = min(LIMIT, len(rows))
    wanted = {kind: int(total * share) for kind, share in SHARES.items()}
    kinds: Mapping[tuple[str, str], list[Example]] = {kind: [] for kind in SHARES}
    for number, row in enumerate(rows):
        kind = (row["template"], row["mode"])
        if kind not in kinds or len(kinds[kind]) == wanted[kind]:
            continue
        answer = row["solution"].partition("Answer: ")[2].partition(".")[0]
        try:
            reference = str(int(answer.lower()))
        except ValueError as error:
            raise InputError(f"{row}: column 'solution' has no number after 'Answer: '") from error
        messages = [{"role": turn["role"], "content": turn["content"]} for turn in row["messages"]]
        kinds[kind].append(Example(f"{row['op']}-{number}", {}, [reference], "hub", messages=messages))
        if all(len(found) == wanted[each] for each, found in kinds.items()):
            break
    yield from (example for found in kinds.values() for example in found)
