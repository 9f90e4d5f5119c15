"""HELMET's new tasks: recall and RULER to two million tokens, graphs, and LongBench v2. The new MRCR is in `mrcr`.

Source: princeton-nlp/HELMET at 5dde2de, data_module/*.py, with its `post_process` functions. RULER and JSON KV differ
from the published tasks in their files, which were measured with Llama 3's tokenizer.
"""

import re
from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.helmet import scoring as published
from helm_longctx.benchmarks.helmet.helmet2 import data
from helm_longctx.benchmarks.helmet.helmet2.prompts import CHOICE_PREFIX, CHOICE_USER, GRAPH_PREFIX, GRAPH_USER
from helm_longctx.benchmarks.helmet.scoring import answer_metrics, parse_output
from helm_longctx.benchmarks.helmet.tasks import HELMET, JSON_KV, MK_2, MK_3, MV, RULER
from helm_longctx.tasks import Category, Record, Scores, Task, Template, read_benchmark

_FINAL_LIST = re.compile(r"final answer: ?\[([^\]]*)\]?", re.IGNORECASE)
_ANY_LIST = re.compile(r"\[([^\]]*)\]?")


def score_json_kv(record: Record) -> Scores:
    """Score the whole output; the published task also scores the line after its prefix."""
    return answer_metrics(record["prediction"], record["references"])


def score_graphwalk(record: Record) -> Scores:
    """Compute F1 of the nodes in the list after "Final Answer:", or else in the first list.

    A repeated node lowers the precision.
    """
    output, answer = record["prediction"], record["references"]
    match = _FINAL_LIST.search(output) or _ANY_LIST.search(output)
    found = [item.strip() for item in match[1].split(",") if item.strip()] if match else []
    if not answer:
        return {"f1": float(not found)}
    shared = len({*found} & {*answer})
    recall, precision = shared / len(answer), shared / len(found) if found else 0.0
    return {"f1": 2 * (recall * precision) / (recall + precision) if shared else 0.0}


def score_choice(record: Record) -> Scores:
    """Return the better score of the whole output and of the line after the prefix.

    The substring match is for the whole output.
    """
    whole = answer_metrics(record["prediction"], record["references"])
    parsed = answer_metrics(parse_output(record["prediction"], CHOICE_PREFIX), record["references"])
    # The official code raises a KeyError here: it drops this metric from the scores of the parsed line and then reads
    # it.
    return {
        name: value if name == "substring_exact_match" else max(value, parsed[name]) for name, value in whole.items()
    }


COMMIT = "5dde2ded6f402c9c1a7a224550d43d7ef10158f3"
LENGTHS = [4096 << power for power in range(10)]
"""4k to 2m."""
EDGES = dict(zip(LENGTHS, (250, 500, 1000, 2100, 4400, 8800, 17600, 35200, 70400, 140800), strict=True))
PAIRS = dict(zip(LENGTHS[3:], (630, 1260, 2550, 5125, 10250, 20500, 41000), strict=True))
FOLDERS = {
    "niah_s_": "niah_single_",
    "niah_mk_": "niah_multikey_",
    "niah_mq": "niah_multiquery",
    "niah_mv": "niah_multivalue",
}
"""Maps the start of HELMET's names of RULER's tasks to the start of their folders' names."""


# The published tasks are generated where files are missing; these are not.
_replace = partial(replace, optional_sources=lambda length: (), any_length=False, most_samples=None)


def _ruler(task: Task) -> Task:
    name = task.name.removeprefix("ruler_")
    folder = next((name.replace(start, new) for start, new in FOLDERS.items() if name.startswith(start)), name)
    return _replace(
        task,
        sizes={length: length for length in LENGTHS},
        sources=lambda length: (data.release_file(f"ruler_llama3/{folder}/validation_{length}.jsonl"),),
    )


_JSON_KV = _replace(
    JSON_KV,
    sizes=PAIRS,
    score=score_json_kv,
    sources=lambda length: (data.release_file(f"json_kv/test_k{PAIRS[length]}_dep6.jsonl"),),
)


def _graphwalk(name: str, title: str, file: str, max_tokens: int) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template(GRAPH_USER, GRAPH_PREFIX, separator="\n\n"),
        sizes=EDGES,
        unit="edges",
        load=data.load_graphwalk,
        score=score_graphwalk,
        headline=("f1",),
        metrics=("f1",),
        max_tokens=max_tokens,
        sources=lambda length: (data.release_file(f"graphwalk/{file.format(k=EDGES[length])}.jsonl"),),
        arguments=("seed",),
        prefix_scored=True,
    )


_LONGBENCH = Task(
    name="multiple_choice",
    title="LongBench v2",
    template=Template(CHOICE_USER, CHOICE_PREFIX),
    sizes={length: length for length in data.CLASSES},
    unit="tokens",
    load=data.load_longbench,
    score=score_choice,
    headline=("exact_match",),
    metrics=published.ANSWER_METRICS,
    max_tokens=128,
    sources=lambda length: (data.LONGBENCH, data.LLAMA_3),
    chat=True,
    arguments=("seed",),
    prefix_scored=True,
)

_RULER = {task.name: _ruler(task) for task in RULER}
_CATEGORIES = (
    Category("recall", "Recall", (_JSON_KV, *(_RULER[task.name] for task in (MK_2, MK_3, MV)))),
    Category("ruler", "RULER", tuple(_RULER.values())),
    Category(
        "graphwalk",
        "GraphWalk",
        (
            _graphwalk("bfs", "BFS at depth 10", "bfs_k{k}", 1000),
            _graphwalk("bfs_dep8", "BFS at depth 8", "bfs_k{k}_dep8", 500),
            _graphwalk("bfs_dep5", "BFS at depth 5", "bfs_k{k}_dep5", 200),
            _graphwalk("parent", "Parents", "parent_k{k}", 100),
        ),
    ),
    Category("longbenchv2", "LongBench v2", (_LONGBENCH,)),
)
_RETURNED = {name for category in _CATEGORIES for task in category.tasks for name in task.metrics}

HELMET2 = read_benchmark(
    __package__, _CATEGORIES, metrics=tuple(metric for metric in HELMET.metrics if metric.name in _RETURNED)
)
