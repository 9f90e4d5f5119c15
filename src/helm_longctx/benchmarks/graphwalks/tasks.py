"""GraphWalks' tasks: searches and parents, in generated graphs and in OpenAI's.

Source of the names and of what a row has: the card of the hub data set openai/graphwalks. The output budget of its
rows is lm-evaluation-harness's, since the card names none.
"""

from functools import partial

from helm_longctx.benchmarks.graphwalks.data import CHARACTERS, EDGES, SOURCE, generate, load_hub
from helm_longctx.benchmarks.graphwalks.graphs import SAME_NODES, solve
from helm_longctx.benchmarks.graphwalks.scoring import score
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
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

GRAPHWALKS = read_benchmark(__package__, (Category("", "", _GENERATED, variants=(_SAME_SIZE, *_OPENAI)),))
