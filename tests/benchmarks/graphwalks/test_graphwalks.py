"""GraphWalks' rows are those of the hub, and generated graphs have the expected answers."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from helm_longctx.benchmarks.graphwalks import BENCHMARK
from helm_longctx.benchmarks.graphwalks.tasks import (
    EDGE,
    SAME_NODES,
    read_operation,
    solve,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import find_protocol
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.graphwalks.fabricate import LENGTHS, build_graphwalks


def load(root: Path, name: str, length: int, **arguments: int) -> list[Example]:
    task = BENCHMARK.task(name)
    return list(
        task.load(
            task, Settings(length=length, **arguments), DataRoot(root, mirror=True)
        )
    )


def prompt_of(example: Example) -> str:
    return example.messages[0]["content"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphwalks")
    build_graphwalks(folder)
    return folder


def test_hub_rows(root: Path) -> None:
    """Rows of the hub are selected by operation, length and depth and stay unchanged."""
    rows = [
        json.loads(line)
        for line in (root / "hub/openai__graphwalks/train.jsonl")
        .read_text()
        .splitlines()
    ]
    for kind in ("bfs", "parents"):
        examples = [
            example
            for length in LENGTHS.values()
            for example in load(root, f"openai_{kind}", length)
        ]
        assert [prompt_of(e) for e in examples] == [
            row["prompt"] for row in rows if row["problem_type"] == kind
        ]
        assert [e.references for e in examples] == [
            row["answer_nodes"] for row in rows if row["problem_type"] == kind
        ]
        assert [
            len(load(root, f"openai_{kind}", length)) for length in LENGTHS.values()
        ] == [
            6,
            1,
            1,
        ]
    deep = load(root, "openai_bfs", LENGTHS["128k"], depth=2)
    assert 0 < len(deep) < 6
    assert all("with depth 2." in prompt_of(example)[-200:] for example in deep)


def test_openais_and_anthropics_prompts_differ_only_in_the_operation(
    root: Path,
) -> None:
    """The reported protocols have equal prompts about parents, and searches that differ in one line, the operation."""
    for kind, differing in (("bfs", 1), ("parents", 0)):
        prompts = []
        for company in ("openai", "anthropic"):
            protocol = find_protocol(f"{company} graphwalks {kind} 256k", [BENCHMARK])[
                1
            ]
            (entry,) = (parse_entry([BENCHMARK], text) for text in protocol.entries)
            (task,) = entry.tasks
            (example,) = task.load(task, entry.settings, DataRoot(root, mirror=True))
            # The example in the fabricated rows is worded as the operation is.
            prompts.append(
                prompt_of(example)
                .rpartition("The graph has the following edges:")[2]
                .split("\n")
            )
        pairs = [pair for pair in zip(*prompts, strict=True) if pair[0] != pair[1]]
        assert len(pairs) == differing
        for openai, anthropic in pairs:
            start, depth = openai.removesuffix(".").split(" with depth ")
            assert (
                anthropic
                == f"{start} and return only the nodes at exactly depth {depth} (not nodes at intermediate depths)."
            )


def test_no_node_is_its_own_parent(root: Path) -> None:
    """The corrected rows leave the given node out of the answer and leave out no other node."""
    plain, corrected = (
        [example for length in LENGTHS.values() for example in load(root, name, length)]
        for name in ("openai_parents", "openai_parents_corrected")
    )
    differ = 0
    for before, after in zip(plain, corrected, strict=True):
        operation = read_operation(prompt_of(before))
        assert operation is not None
        assert after.references == [
            node for node in before.references if node != operation.node
        ]
        differ += after.references != before.references
    assert differ


def test_known_errors_are_found(root: Path) -> None:
    """Rows with the two defects before 2026-02-27 have the names of the rules, and corrected rows have none."""
    parents = load(root, "openai_parents", LENGTHS["128k"])
    errata_by_id = {parent.id: parent.errata for parent in parents}
    assert set(errata_by_id.values()) == {(), ("own_parent",)}
    for parent in parents:
        operation = read_operation(prompt_of(parent))
        assert operation
        assert errata_by_id[parent.id] == (
            ("own_parent",) if operation.node in parent.references else ()
        )
    searches = {
        read_operation(prompt_of(example)).depth: example.errata
        for example in load(root, "openai_bfs", LENGTHS["128k"])
    }
    assert searches == {1: (), 2: ("ambiguous_depth",)}
    for kind in ("bfs", "parents"):
        assert not any(
            example.errata
            for example in load(root, f"openai_{kind}_corrected", LENGTHS["128k"])
        )
        assert not any(
            example.errata for example in load(root, kind, 4096, num_samples=3)
        )
    errata = BENCHMARK.errata()
    assert {(erratum.task, erratum.rule) for erratum in errata} == {
        ("openai_bfs", "ambiguous_depth"),
        ("openai_parents", "own_parent"),
    }


def test_missing_rows_are_an_error(root: Path) -> None:
    """An error of one line says that no row has the depth."""
    settings = Settings(length=LENGTHS["128k"], depth=77)
    with pytest.raises(
        InputError,
        match=r"train\.jsonl: no row can be used for openai_bfs with these arguments",
    ):
        list(
            load_examples(
                BENCHMARK.task("openai_bfs"), settings, DataRoot(root, mirror=True)
            )
        )


@pytest.mark.parametrize(
    ("length", "depth"), [(4096, 10), (4096, 8), (5000, 1), (131072, 5)]
)
def test_generated_searches(length: int, depth: int) -> None:
    """The answer is what networkx finds at this depth in the prompt's graph, and the length sets the number of
    edges."""
    for example in load(Path(), "bfs", length, depth=depth, num_samples=3):
        prompt = prompt_of(example)
        edges = EDGE.findall(prompt, prompt.rindex("edges:"))
        operation = read_operation(prompt)
        assert operation is not None
        assert operation.depth == depth
        paths = networkx.single_source_shortest_path_length(
            networkx.DiGraph(edges), operation.node
        )
        assert (
            {*example.references}
            == {node for node, steps in paths.items() if steps == depth}
            != set()
        )
        assert length / 20 < len(edges) < length / 14


@pytest.mark.parametrize("length", [4096, 16384, 131072])
def test_answers_of_the_same_size(length: int) -> None:
    """Every answer has eight nodes at every length, and the searches pass about as many nodes."""
    passed = []
    for example in load(Path(), "bfs_same_size", length, num_samples=8):
        prompt = prompt_of(example)
        operation = read_operation(prompt_of(example))
        assert operation is not None
        graph = networkx.DiGraph(EDGE.findall(prompt, prompt.rindex("edges:")))
        paths = networkx.single_source_shortest_path_length(
            graph, operation.node, cutoff=operation.depth
        )
        assert {*example.references} == {
            node for node, steps in paths.items() if steps == operation.depth
        }
        assert len(example.references) == SAME_NODES == 8
        passed.append(len(paths))
    assert 17 < sum(passed) / len(passed) < 29


def test_the_longest_lengths_have_longer_prompts() -> None:
    """Beyond the lengths of HELMET's table, the number of edges grows with the length."""
    (longest,), (twice,) = (
        load(Path(), "parents", length, num_samples=1) for length in (1 << 21, 1 << 22)
    )
    assert prompt_of(longest).count("\n") * 2 == pytest.approx(
        prompt_of(twice).count("\n"), rel=0.01
    )


def test_generated_parents() -> None:
    """The answer is the nodes before the given one; another seed gives another graph, and the same seed gives the same
    graph."""
    examples = load(Path(), "parents", 8192, num_samples=4)
    for example in examples:
        prompt = prompt_of(example)
        operation = read_operation(prompt_of(example))
        assert operation is not None
        graph = networkx.DiGraph(EDGE.findall(prompt, prompt.rindex("edges:")))
        assert (
            {*example.references}
            == {*graph.predecessors(operation.node)} - {operation.node}
            != set()
        )
    assert load(Path(), "parents", 8192, num_samples=4) == examples
    assert load(Path(), "parents", 8192, num_samples=4, seed=1)[0] != examples[0]


def test_the_baseline_solves_every_prompt(root: Path) -> None:
    """The baseline reads the graph and the operation in generated prompts and in the hub's, and does not answer other
    prompts."""
    for example in [
        *load(root, "openai_bfs", LENGTHS["128k"]),
        *load(root, "bfs", 4096, num_samples=3),
    ]:
        assert (
            solve(example.messages)
            == f"Final Answer: [{', '.join(example.references)}]"
        )
    for prompt in ("Operation:\nFind the parents of node x.", "a -> b\nWhat?"):
        assert solve([{"role": "user", "content": prompt}]) is None
