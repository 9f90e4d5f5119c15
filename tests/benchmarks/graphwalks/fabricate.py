"""Fabricate rows of OpenAI's GraphWalks and odd outputs, which are the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.graphwalks.tasks import PATH, Operation, draw_edges
from tests.support.fabricate_words import write

START = """You will be given a graph as a list of directed edges.
Here is an example:
<begin example>
The graph has the following edges:
uvwx -> alke
abcd -> uvwx

Example 1:
Operation:
Perform a BFS from node abcd with depth 1.
Final Answer: [uvwx]

Example 2:
Operation:
Find the parents of node uvwx.
Final Answer: [abcd]
<end example>

Here is the graph to operate on:
The graph has the following edges:
"""
LENGTHS = {"128k": 131072, "256k": 262144, "1m": 1048576}
"""The lengths at which the file has rows."""

END = "You should immediately return the set of nodes. For example:\nFinal Answer: [node1, node2, node3]"


def build_graphwalks(root: Path) -> Path:
    """Write the data set's only split, which has short rows of both operations and one row of each at 256k and at
    1m."""
    rng = random.Random(5)
    rows = [
        graph(rng, kind, edges)
        for kind in ("bfs", "parents")
        for edges in (*[40] * 6, 13_000, 45_000)
    ]
    write(root / PATH, rows)
    return root / PATH


def graph(rng: random.Random, kind: str, count: int) -> dict[str, Any]:
    """Return a row with a number of edges."""
    edges = draw_edges(rng, count, 2)
    operation = Operation(
        edges[rng.randrange(9)][1], rng.choice((1, 2)) if kind == "bfs" else None
    )
    nodes = operation.answer(edges)
    wording = f"Find the parents of node {operation.node}."
    if kind == "bfs":
        wording = (
            f"Perform a BFS from node {operation.node} with depth {operation.depth}."
        )
    elif rng.random() < 0.5:
        edges = [*edges, (operation.node, operation.node)]
        nodes = [*nodes, operation.node]  # 24 rows have this defect
    lines = "\n".join(f"{source} -> {target}" for source, target in edges)
    prompt = f"{START}{lines}\n\n\nOperation:\n{wording}\n\n{END}"
    return {
        "prompt": prompt,
        "answer_nodes": nodes,
        "prompt_chars": len(prompt),
        "problem_type": kind,
        "date_added": "x",
    }


def records() -> list[dict[str, Any]]:
    """Return outputs, each with the expected nodes."""
    lists = (
        "a1, b2",
        "a1",
        "b2, a1, a1",
        "",
        "c3",
        "'a1', b2",
        "[a1], b2",
        " a1 ,, b2 ",
    )
    forms = ("Final Answer: [{}]", "Final Answer:[{}]", "final answer: [{}]", "[{}]", "Final Answer:  [{}]", "Final Answer: {}",
             "So.\nFinal Answer: [{}]", "Final Answer: [{}]\n", "Final Answer: [{}]\n\n \nDone", "**Final Answer: [{}]**",
             "Final Answer: [x] Final Answer: [{}]", "Final Answer: [{}")  # fmt: skip
    expected = (["a1", "b2"], ["a1"], [], ["c3", "c3", "d4"])
    outputs = ["", "\n", *(form.format(nodes) for form in forms for nodes in lists)]
    return [
        {"prediction": output, "references": nodes}
        for output in outputs
        for nodes in expected
    ]
