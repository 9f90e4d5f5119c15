"""Reads, draws and searches the graphs of prompts."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from helm_longctx.tasks.prompt import Message

Edges = Sequence[tuple[str, str]]
"""(from, to), in the order of the prompt. An edge can stand there twice, or lead to its own node."""

EDGE = re.compile(r"^(\S+) -> (\S+)$", re.MULTILINE)
_OPERATION = re.compile(
    r"^(?:Perform a BFS from node (?P<start>\S+) "
    r"(?:with depth|and return only the nodes at exactly depth) (?P<depth>\d+)"
    r"|Find the parents of node (?P<child>[^\s.]+))",
    re.MULTILINE,
)
_GRAPH, OPERATION_START = "The graph has the following edges:", "Operation:"

NODE_CHARACTERS, MOST_EDGES_PER_NODE = 10, 4
NODES_AT_DEPTH = 40
"""Nodes that a search is expected to find. The answer then fits into the official budget of 1000 tokens."""
SAME_NODES = 8
"""Nodes that a search finds in graphs whose answers have the same size at all lengths."""


class Operation(NamedTuple):
    """The operation in a prompt: find the nodes at a depth from a node, or, if there is no depth, its parents."""

    node: str
    depth: int | None

    def answer(self, edges: Edges) -> list[str]:
        """Return the nodes, without the given one, in the order in which a search finds them."""
        if self.depth is None:
            return list(dict.fromkeys(source for source, target in edges if target == self.node != source))
        return search(list_children(edges), self.node, self.depth)


def read_operation(prompt: str) -> Operation | None:
    """Read the operation at the end of a prompt; None if it has none. Examples before it do not count."""
    *_, operation = [None, *_OPERATION.finditer(prompt, prompt.rfind(OPERATION_START))]
    if operation is None:
        return None
    return Operation(operation["start"] or operation["child"], int(operation["depth"]) if operation["depth"] else None)


def solve(messages: Sequence[Message]) -> str | None:
    """Search the graph of a prompt; None if it has no operation or no graph. Examples do not count."""
    prompt = messages[-1]["content"]
    operation, edges = read_operation(prompt), EDGE.findall(prompt, max(0, prompt.rfind(_GRAPH)))
    return f"Final Answer: [{', '.join(operation.answer(edges))}]" if operation and edges else None


def list_children(edges: Edges) -> Mapping[str, Sequence[str]]:
    """Return the nodes to which the edges of each node lead."""
    children: dict[str, list[str]] = {}
    for source, target in edges:
        children.setdefault(source, []).append(target)
    return children


def search(children: Mapping[str, Sequence[str]], start: str, depth: int) -> list[str]:
    """Return the nodes whose shortest path from `start` has exactly `depth` edges."""
    seen, level = {start}, [start]
    for _ in range(depth):
        reached = dict.fromkeys(target for source in level for target in children.get(source, ()))
        level = [node for node in reached if node not in seen]
        seen.update(level)
    return level


def draw_edges(rng: Random, count: int, depth: int, found: int = NODES_AT_DEPTH) -> list[tuple[str, str]]:
    """Draw a random graph, grouped by the edges' first nodes.

    Args:
        found: the number of nodes that a search finds at `depth` in a graph without end. It sets the mean number of
            edges for each node, which is at least one.
    """
    per_node = min(found ** (1 / depth), MOST_EDGES_PER_NODE)
    nodes = [
        hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()[:NODE_CHARACTERS]
        for number in range(max(2, int(count / per_node)))
    ]
    sources = sorted([*range(len(nodes)), *rng.choices(range(len(nodes)), k=count - len(nodes))])
    return [(nodes[source], rng.choice(nodes)) for source in sources]
