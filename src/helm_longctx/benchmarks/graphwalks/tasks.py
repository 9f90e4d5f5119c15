"""GraphWalks' tasks, searches and parents in generated graphs and in OpenAI's, and the overlap of two sets of nodes.

Source of the names and of what a row has: the card of the hub data set openai/graphwalks. The output budget of its
rows is lm-evaluation-harness's, since the card names none. `f1` is computed as NVIDIA-NeMo/Gym at 07d6b0d does
(resources_servers/graphwalks/app.py), `f1_card` and `f1_card_2026` as the code on the card, before 2026-02-27 and at
be6cc6e.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

import numpy as np

from helm_longctx.benchmarks.graphwalks import prompts
from helm_longctx.errors import PreconditionError
from helm_longctx.tasks import (
    NO_TEMPLATE,
    STANDARD,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubDataset,
    JsonLines,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Types,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import Loader
from helm_longctx.tasks.words import f1

_Edges = Sequence[tuple[str, str]]
"""(from, to), in the order of the prompt. An edge can stand there twice, or lead to its own node."""

EDGE = re.compile(r"^(\S+) -> (\S+)$", re.MULTILINE)
_OPERATION = re.compile(
    r"^(?:Perform a BFS from node (?P<start>\S+) "
    r"(?:with depth|and return only the nodes at exactly depth) (?P<depth>\d+)"
    r"|Find the parents of node (?P<child>[^\s.]+))",
    re.MULTILINE,
)
_GRAPH = "The graph has the following edges:"
_OPERATION_START = "Operation:"

_NODE_CHARACTERS = 10
_MOST_EDGES_PER_NODE = 4
_NODES_AT_DEPTH = 40
"""Nodes that a search is expected to find. The answer then fits into the official budget of 1000 tokens."""
SAME_NODES = 8
"""Nodes that a search finds in graphs whose answers have the same size at all lengths."""


class Operation(NamedTuple):
    """The operation in a prompt: find the nodes at a depth from a node, or, if there is no depth, its parents."""

    node: str
    depth: int | None

    def answer(self, edges: _Edges) -> list[str]:
        """Return the nodes, without the given one, in the order in which a search finds them."""
        if self.depth is None:
            return list(
                dict.fromkeys(
                    source for source, target in edges if target == self.node != source
                )
            )
        return search(_list_children(edges), self.node, self.depth)


def read_operation(prompt: str) -> Operation | None:
    """Read the operation at the end of a prompt, or None if it has none. Examples before it do not count."""
    *_, operation = [None, *_OPERATION.finditer(prompt, prompt.rfind(_OPERATION_START))]
    if operation is None:
        return None
    return Operation(
        operation["start"] or operation["child"],
        int(operation["depth"]) if operation["depth"] else None,
    )


def solve(messages: Sequence[Message]) -> str | None:
    """Search the graph of a prompt, or return None if it has no operation or no graph. Examples do not count."""
    prompt = messages[-1]["content"]
    operation = read_operation(prompt)
    edges = EDGE.findall(prompt, max(0, prompt.rfind(_GRAPH)))
    if not operation or not edges:
        return None
    return f"Final Answer: [{', '.join(operation.answer(edges))}]"


def _list_children(edges: _Edges) -> Mapping[str, Sequence[str]]:
    """Return the nodes to which the edges of each node lead."""
    children: dict[str, list[str]] = {}
    for source, target in edges:
        children.setdefault(source, []).append(target)
    return children


def search(children: Mapping[str, Sequence[str]], start: str, depth: int) -> list[str]:
    """Return the nodes whose shortest path from `start` has exactly `depth` edges."""
    seen = {start}
    level = [start]
    for _ in range(depth):
        reached: dict[str, None] = {}
        for source in level:
            reached |= dict.fromkeys(children.get(source, ()))
        level = [node for node in reached if node not in seen]
        seen.update(level)
    return level


def draw_edges(
    rng: Random,
    count: int,
    depth: int,
    reached: int = _NODES_AT_DEPTH,
) -> list[tuple[str, str]]:
    """Draw a random graph, grouped by the edges' first nodes.

    Args:
        reached: the number of nodes that a search reaches at `depth` in a graph without end. It sets the mean number of
            edges for each node, at least one.
    """
    per_node = min(reached ** (1 / depth), _MOST_EDGES_PER_NODE)
    nodes = []
    for number in range(max(2, int(count / per_node))):
        name = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
        nodes.append(name[:_NODE_CHARACTERS])
    sources = sorted(
        [*range(len(nodes)), *rng.choices(range(len(nodes)), k=count - len(nodes))]
    )
    edges = []
    for source in sources:
        edges.append((nodes[source], rng.choice(nodes)))
    return edges


_DIGESTS = {
    "graphwalks_128k_and_shorter.parquet": "54036036c91d8e04bb2a5fcd9e36f8e2a852cacece5dfc2b1ee40e3a6182b516",
    "graphwalks_256k_to_1mil.parquet": "537879431c72a42e3b500f80efc3047e7facb90390b6063d33679b4320985911",
}
"""The files after the repair of 2026-02-27, in the order of the hub's split, with their SHA-256."""
SOURCE = HubDataset(
    "openai/graphwalks",
    {"train": 1150},
    labelled=False,
    commit="f338bb265735a56a79f4b0f5def722c9c3268ead",
    files={"train": tuple(_DIGESTS)},
    sha256=_DIGESTS,
)
PATH = f"{SOURCE.folder}/train.jsonl"
COLUMNS: Types = {
    "prompt": str,
    "answer_nodes": list,
    "problem_type": str,
}

_CHARACTERS = {
    STANDARD["128k"]: (0, 300_000),
    STANDARD["256k"]: (300_000, 1_000_000),
    STANDARD["1m"]: (1_000_000, 1 << 40),
}
"""The range of characters of the hub's prompts at each length: more than the first number, at most the second.

The card gives lengths only for whole files: up to 128k tokens, and 256k and 1m. These limits separate the files'
prompts, because an edge has 25 characters and about 14 tokens.
"""

_EDGES = {
    4096 << power: edges
    for power, edges in enumerate(
        (250, 500, 1000, 2100, 4400, 8800, 17600, 35200, 70400, 140800)
    )
}
"""Edges by length, 4k to 2m tokens. Source: princeton-nlp/HELMET at 5dde2de, data_module/graphwalk.py."""

_DEPTH = 10
_SAME_SIZE_DEPTH = 5
_TRIES = 1000
"""The depths of a search if the run entry names none (HELMET's depths), and the number of nodes tried for a search.
A deep search in a short graph soon comes back to its own nodes, so it cannot find as many nodes as in a long one."""

_AMBIGUOUS = re.compile(r"Perform a BFS from node (\S+) with depth (\d+)")
_EXACT = r"Perform a BFS from node \1 and return only the nodes at exactly depth \2 (not nodes at intermediate depths)"


@take_sample
def _load_hub(
    task: Task,
    settings: Settings,
    root: DataRoot,
    kind: str,
    corrected: bool = False,
) -> Iterator[Example]:
    """Load the rows of one operation and one length in file order. `depth` keeps only searches of that depth.

    Args:
        corrected: whether a search asks for the nodes at exactly its depth, and no node is its own parent.
    """
    above, most = _CHARACTERS[settings.level]

    def fits(prompt: str) -> bool:
        if settings.depth:
            operation = read_operation(prompt)
        else:
            operation = None
        return above < len(prompt) <= most and settings.depth in (
            None,
            operation and operation.depth,
        )

    for number, row in enumerate(JsonLines(root / PATH, COLUMNS)):
        prompt = row["prompt"]
        nodes = row["answer_nodes"]
        if row["problem_type"] != kind or not fits(prompt):
            continue
        if corrected and (operation := read_operation(prompt)):
            prompt = _AMBIGUOUS.sub(_EXACT, prompt)
            nodes = [node for node in nodes if kind == "bfs" or node != operation.node]
        messages = [{"role": "user", "content": prompt}]
        yield Example(
            id=f"{kind}-{number}",
            fields={},
            references=nodes,
            source="hub",
            messages=messages,
            errata=_find_errata(prompt, nodes),
        )


def _find_errata(prompt: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the rules of `errata.jsonl` by which a row of the hub is wrong."""
    operation = read_operation(prompt)
    if operation is None:
        return ()
    if operation.depth is None:
        return ("own_parent",) if operation.node in nodes else ()
    # At depth 1, all readings of the wording have the same nodes. The examples before the operation do not count.
    is_ambiguous = operation.depth > 1 and _AMBIGUOUS.search(
        prompt, prompt.rfind(_OPERATION_START)
    )
    return ("ambiguous_depth",) if is_ambiguous else ()


def generate(
    task: Task,
    settings: Settings,
    root: DataRoot,
    kind: str,
    size: int | None = None,
) -> Iterator[Example]:
    """Draw graphs and operations with answers that are not empty. Each example has its own random generator.

    Args:
        size: the number of nodes in each answer, whatever the length. None for answers that grow with the length.
    """
    depth = None
    if kind == "bfs":
        depth = settings.depth or (_SAME_SIZE_DEPTH if size else _DEPTH)
    # Beyond the longest length in the table, the number of edges grows in proportion.
    in_table = np.interp(settings.level, [*_EDGES], [*_EDGES.values()])
    edges = int(in_table * max(settings.level / max(_EDGES), 1))
    if size:
        allowed = {size}
    else:
        allowed = {*range(1, 2 * _NODES_AT_DEPTH + 1)}
    for number in range(task.sample(settings)):
        rng = Random(f"{kind} {settings.seed} {number}")
        graph = draw_edges(rng, edges, depth or 1, size or _NODES_AT_DEPTH)
        children = _list_children(graph) if depth else {}
        for _ in range(_TRIES):
            operation = Operation(rng.choice(graph)[0 if depth else 1], depth)
            if depth:
                nodes = search(children, operation.node, depth)
            else:
                nodes = operation.answer(graph)
            if len(nodes) in allowed:
                break
        else:
            wanted = f"{size} nodes" if size else "a node"
            raise PreconditionError(
                f"no search of depth={depth} finds {wanted} in graphs of this length;"
                " use a smaller depth"
            )
        wording = (prompts.BFS if depth else prompts.PARENTS).format(
            **operation._asdict()
        )
        lines = "\n".join(f"{source} -> {target}" for source, target in graph)
        prompt = prompts.PROMPT.format(edges=lines, operation=wording)
        yield Example(
            id=f"{kind}-{number}",
            fields={},
            references=nodes,
            source="generated",
            messages=[{"role": "user", "content": prompt}],
        )


_LIST = re.compile(r"Final Answer:\s*\[(.*)\]")
_LATE_LIST = re.compile(r"final answer\W*?\[([^\]]*)\]", re.IGNORECASE)
_ANY_LIST = re.compile(r"\[([^\]]*)\]")
_MARKUP = re.compile(r"[*`\"']")
_CARD_LIST = re.compile(r"Final Answer: ?\[.*\]")


def score(record: ScorerInput) -> MetricValues:
    """Compute F1 of the nodes in the last line that is not empty, and F1 as the card's two codes do."""
    expected = {*record["references"]}
    output = record["prediction"]
    # For both codes of the card the last line counts, even if it is empty.
    line = output.split("\n")[-1]
    line_to_bracket = _cut_after_bracket(line)
    start = line_to_bracket.find("[")
    card_2026 = None
    if start >= 0 and "Final Answer:" in line:
        card_2026 = line_to_bracket[start:].strip("[]")
    return {
        "f1": _compare(_find_list(output), expected),
        "f1_card": _compare_first_card(line_to_bracket, expected),
        "f1_card_2026": _compare(card_2026, expected),
        "f1_lenient": _compare(_find_plain_list(output), expected),
    }


def _compare(items: str | None, expected: set[str]) -> float:
    """Return the F1 of the nodes in a list, 1 if there are none in it and none are expected, and 0 without a list."""
    if items is None:
        return 0.0
    nodes = _nodes(items)
    return f1(nodes, expected) if nodes | expected else 1.0


def _compare_first_card(line: str, expected: set[str]) -> float:
    """Return what the first code of the card returns for a line.

    It reads the words before the list as a part of the first node, and gives 1 if no node is shared.
    """
    match = _CARD_LIST.search(line)
    if match is None:
        return 0.0
    nodes = _nodes(match[0].strip("[]"))
    return f1(nodes, expected) if nodes & expected else 1.0


def _find_list(output: str) -> str | None:
    """Return what stands in the list of the last line that is not empty, or None if that line has no list."""
    match = _LIST.search(_cut_after_bracket(output.strip().split("\n")[-1]))
    return match[1] if match else None


def _cut_after_bracket(text: str) -> str:
    """Return a text up to its last closing bracket.

    No pattern for lists matches beyond it, and without the rest each takes time that is linear in the text.
    """
    return text[: text.rfind("]") + 1]


def _find_plain_list(output: str) -> str | None:
    """Return what stands in the last list after "Final Answer" on any line, or else in the last list, or None.

    Marks of Markdown and quotation marks are ignored, and the list can have several lines.
    """
    text = _cut_after_bracket(_MARKUP.sub("", output))
    lists = _LATE_LIST.findall(text) or _ANY_LIST.findall(text)
    return lists[-1] if lists else None


def _nodes(text: str) -> set[str]:
    nodes = set()
    for item in text.split(","):
        if item.strip():
            nodes.add(item.strip())
    return nodes


_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bfs": ("BFS", ("depth",)),
    "parents": ("Parents", ()),
}

_task = partial(
    Task,
    template=NO_TEMPLATE,
    score=score,
    can_read=lambda record: _find_list(record["prediction"]) is not None,
    baseline=Baseline(solve, "Final Answer: []"),
    **task_fields(__package__),
)


def _generated_task(kind: str, size: int | None = None) -> Task:
    title, arguments = _KINDS[kind]
    load: Loader = partial(generate, kind=kind, size=size)
    return _task(
        name=f"{kind}_same_size" if size else kind,
        title=f"{title}, answers of the same size" if size else title,
        load=load,
        max_tokens=1000,
        sizes=_EDGES,
        any_length=True,
        generated="always",
        official_task=f"openai_{kind}",
        arguments=("seed", *arguments),
    )


_GENERATED = tuple(map(_generated_task, _KINDS))
_SAME_SIZE = _generated_task("bfs", SAME_NODES)
_OPENAI = tuple(
    _task(
        name=f"openai_{kind}{'_corrected' if corrected else ''}",
        title=f"OpenAI's {title}{' (corrected)' if corrected else ''}",
        load=partial(_load_hub, kind=kind, corrected=corrected),
        max_tokens=16384,
        sizes={length: _EDGES[length] for length in _CHARACTERS},
        # The hub has fewer rows of any operation at any length, so all of them are asked.
        num_samples=400,
        sources=lambda length: (SOURCE,),
        arguments=arguments,
    )
    for corrected in (False, True)
    for kind, (title, arguments) in _KINDS.items()
)

GRAPHWALKS = read_benchmark(
    __package__, (Category("", "", _GENERATED, variants=(_SAME_SIZE, *_OPENAI)),)
)
