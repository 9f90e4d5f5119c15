"""GraphWalks' tasks: searches and parents, in generated graphs and in OpenAI's.

Source of the names and of what a row has: the card of the hub data set openai/graphwalks. The output budget of its
rows is lm-evaluation-harness's, since the card names none.
"""

from __future__ import annotations

from functools import partial

from helm_longctx.benchmarks.graphwalks.data import CHARACTERS, EDGES, SOURCE, generate, load_hub
from helm_longctx.benchmarks.graphwalks.graphs import SAME_NODES, solve
from helm_longctx.benchmarks.graphwalks.scoring import score
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms
from helm_longctx.tasks.errata import read_errata
from helm_longctx.tasks.lengths import LARGEST, Axis
from helm_longctx.tasks.publications import read_protocols
from helm_longctx.tasks.task import Baseline, Loader, Task
from helm_longctx.tasks.template import NO_TEMPLATE

HUB_BUDGET, GENERATED_BUDGET = 16384, 1000
HUB_ROWS = 400
"""The hub has fewer rows of any operation at any length, so all of them are asked."""
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {"bfs": ("BFS", ("depth",)), "parents": ("Parents", ())}
"""The operations, with their titles and arguments."""

_task = partial(
    Task,
    template=NO_TEMPLATE,
    score=score,
    headline=("f1",),
    metrics=("f1", "f1_card", "f1_card_2026"),
    unit="edges",
    chat=True,
    cut="nothing",
    baseline=Baseline(solve, "Final Answer: []"),
)


def _generated_task(kind: str, size: int | None = None) -> Task:
    title, arguments = KINDS[kind]
    load: Loader = partial(generate, kind=kind, size=size)
    return _task(
        f"{kind}_same_size" if size else kind,
        f"{title}, answers of the same size" if size else title,
        load=load,
        max_tokens=GENERATED_BUDGET,
        sizes=EDGES,
        any_length=True,
        arguments=("seed", *arguments),
    )


def _hub_task(kind: str, corrected: bool) -> Task:
    title, arguments = KINDS[kind]
    return _task(
        f"openai_{kind}{'_corrected' if corrected else ''}",
        f"OpenAI's {title}{' (corrected)' if corrected else ''}",
        load=partial(load_hub, kind=kind, corrected=corrected),
        max_tokens=HUB_BUDGET,
        sizes={length: EDGES[length] for length in CHARACTERS},
        num_samples=HUB_ROWS,
        sources=lambda length: (SOURCE,),
        arguments=arguments,
    )


_GENERATED = tuple(map(_generated_task, KINDS))
_SAME_SIZE = _generated_task("bfs", SAME_NODES)
_OPENAI = tuple(_hub_task(kind, corrected) for corrected in (False, True) for kind in KINDS)

GRAPHWALKS = Benchmark(
    name="graphwalks",
    title="GraphWalks",
    description="Breadth-first search and parents in lists of edges, after OpenAI's GraphWalks",
    revision="NVIDIA-NeMo/Gym@07d6b0d",
    comparability=1,
    url="https://huggingface.co/datasets/openai/graphwalks",
    categories=(Category("", "", _GENERATED, variants=(_SAME_SIZE, *_OPENAI)),),
    data={
        "https://huggingface.co/datasets/openai/graphwalks": Terms(
            "MIT",
            faults=(
                "Rows before 2026-02-27: 24 answers contain the start node, and depths can be read in two ways;"
                " openai_bfs_corrected and openai_parents_corrected repair this",
            ),
        ),
    },
    metrics=(
        Metric("f1", "F1", "F1 of the nodes that the last line lists after Final Answer."),
        Metric("f1_card", "F1 of the card", "F1 by the code that the card had in 2025, which misreads the first node."),
        Metric("f1_card_2026", "F1 of the card, 2026", "F1 by the code that the data set's card has since 2026-02-27."),
    ),
    protocols=partial(read_protocols, __package__),
    axis=Axis("tokens of the prompt, about", longest=LARGEST),
    errata=partial(read_errata, __package__),
)
