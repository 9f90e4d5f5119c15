"""HELMET's new tasks: recall and RULER to two million tokens, graphs, and LongBench v2. The new MRCR is in `mrcr`.

Source: princeton-nlp/HELMET at 5dde2de, data_module/*.py, with its `post_process` functions. RULER and JSON KV differ
from the published tasks in their files, measured with Llama 3's tokenizer.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.helmet import scoring as published
from helm_longctx.benchmarks.helmet.helmet2.prompts import (
    CHOICE_PREFIX,
    CHOICE_USER,
    GRAPH_PREFIX,
    GRAPH_USER,
)
from helm_longctx.benchmarks.helmet.prompts import OMITTED
from helm_longctx.benchmarks.helmet.release import ARCHIVES
from helm_longctx.benchmarks.helmet.scoring import answer_metrics, parse_output
from helm_longctx.benchmarks.helmet.tasks import HELMET, JSON_KV, MK_2, MK_3, MV, RULER
from helm_longctx.tasks import (
    STANDARD,
    Category,
    DataRoot,
    Example,
    HubDataset,
    HubFile,
    InputError,
    JsonLines,
    MetricValues,
    Release,
    ReleaseFile,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    read_benchmark,
    sizes_in_tokens,
)
from helm_longctx.tasks.counting import TextCutter
from helm_longctx.tasks.sampling import shuffle_order

_RELEASE = Release(
    "princeton-nlp/HELMET",
    setting="HELM_LONGCTX_HELMET2_REPO",
    folder="helmet2",
    archive="data_v2.tar.gz",
    commit=ARCHIVES,
    sha256="89e6f3a197c6079d6b3b9092d9cf4503e4989bdc0bd659741bbb4e43bfa7600e",
)
LONGBENCH = HubDataset(
    "THUDM/LongBench-v2",
    {"train": 503},
    # The organization THUDM is called zai-org now.
    repo="zai-org/LongBench-v2",
    labelled=False,
    commit="2b48e494f2c7a2f0af81aae178e05c7e1dde0fe9",
    files={"train": ("data.json",)},
    sha256={
        "data.json": "15d61c22d92c96900b3c4948b6aeea218d3214b676a65df48e7b8555604c7fe2"
    },
)
LLAMA_3 = HubFile(
    repo="meta-llama/Llama-3.1-8B",
    name="tokenizer.json",
    path="tokenizers/meta-llama__Llama-3.1-8B/tokenizer.json",
    kind="model",
    setting="HELM_LONGCTX_LLAMA3_REPO",
    commit="d04e592bb4f6aa9cfee91e2e20afa771667e1d4b",
)
"""The tokenizer that cuts texts, whichever model reads them. Its repository is gated; the setting can name a copy."""

_CLASSES = {
    STANDARD["64k"]: "short",
    STANDARD["256k"]: "medium",
    STANDARD["1m"]: "long",
}
"""LongBench v2's classes of length, by the number of tokens to which their texts are cut."""

_CHOICES = ("choice_A", "choice_B", "choice_C", "choice_D")
_CHOICE_COLUMNS: Types = {
    "context": str,
    "question": str,
    "answer": str,
    "length": str,
    **dict.fromkeys(_CHOICES, str),
}
_GRAPH_COLUMNS: Types = {
    "context": str,
    "question": str,
    "answer": list,
}


def _release_file(path: str) -> ReleaseFile:
    """Return a file of the second release, by its path in the archive's `data` folder."""
    return ReleaseFile(_RELEASE, f"helmet2/{path}")


def _load_graphwalk(
    task: Task,
    settings: Settings,
    root: DataRoot,
) -> Iterator[Example]:
    """Load graphs and operations, shuffled."""
    path = task.only_file(settings, root)
    rows = JsonLines(path, _GRAPH_COLUMNS)
    numbers = shuffle_order(len(rows), settings.seed)[: task.sample(settings)]
    for number, row in zip(numbers, rows.rows(numbers), strict=True):
        if not all(isinstance(node, str) for node in row["answer"]):
            raise InputError(
                f"{path}: row {number + 1}: column 'answer' must be a list of texts"
            )
        fields = {"context": row["context"], "question": row["question"]}
        yield Example(
            id=f"{task.name}-{number}",
            fields=fields,
            references=row["answer"],
            source="official",
        )


def _load_longbench(
    task: Task,
    settings: Settings,
    root: DataRoot,
) -> Iterator[Example]:
    """Load the questions of a class of length, shuffled. Long texts are cut at their end."""
    path = root / LONGBENCH.folder / "train.jsonl"
    rows = JsonLines(path, _CHOICE_COLUMNS)
    length = _CLASSES[settings.level]
    of_class = []
    for number, row in enumerate(rows):
        if row["length"] == length:
            of_class.append(number)
    order = shuffle_order(len(of_class), settings.seed)[: task.sample(settings)]
    numbers = [of_class[index] for index in order]
    cutter = TextCutter(root / LLAMA_3.path, settings.level, OMITTED)
    for number, row in zip(numbers, rows.rows(numbers), strict=True):
        choice = f"choice_{row['answer']}"
        if choice not in _CHOICES:
            raise InputError(
                f"{path}: row {number + 1}: column 'answer' must be A, B, C or D"
            )
        ((_, end),) = cutter.measure([row["context"]])
        if end is None:
            context = row["context"]
        else:
            context = row["context"][:end] + OMITTED
        choices = {name: row[name] for name in _CHOICES}
        fields = {
            "context": context,
            "question": row["question"],
            **choices,
        }
        references = [row["answer"], f"{row['answer']}. {row[choice]}"]
        yield Example(
            id=f"{task.name}-{number}",
            fields=fields,
            references=references,
            source="hub",
        )


_FINAL_LIST = re.compile(r"final answer: ?\[([^\]]*)\]?", re.IGNORECASE)
_ANY_LIST = re.compile(r"\[([^\]]*)\]?")


def score_json_kv(record: ScorerInput) -> MetricValues:
    """Score the whole output; the published task also scores the line after its prefix."""
    return answer_metrics(record["prediction"], record["references"])


def _score_graphwalk(record: ScorerInput) -> MetricValues:
    """Compute F1 of the nodes in the list after "Final Answer:", or else in the first list.

    A repeated node lowers the precision.
    """
    output = record["prediction"]
    answer = record["references"]
    match = _FINAL_LIST.search(output) or _ANY_LIST.search(output)
    nodes: list[str] = []
    if match:
        items = []
        for item in match[1].split(","):
            items.append(item.strip())
        nodes = [item for item in items if item]
    if not answer:
        return {"f1": float(not nodes)}
    shared = len({*nodes} & {*answer})
    if not shared:
        return {"f1": 0.0}
    recall = shared / len(answer)
    precision = shared / len(nodes)
    return {"f1": 2 * (recall * precision) / (recall + precision)}


def score_choice(record: ScorerInput) -> MetricValues:
    """Return the better score of the whole output and of the line after the prefix.

    The substring match is for the whole output.
    """
    whole = answer_metrics(record["prediction"], record["references"])
    parsed = answer_metrics(
        parse_output(record["prediction"], CHOICE_PREFIX), record["references"]
    )
    # The official code raises a KeyError here: it drops this metric from the scores of the parsed line and then reads
    # it.
    scores = {}
    for name, value in whole.items():
        is_parsed = name != "substring_exact_match"
        scores[name] = max(value, parsed[name]) if is_parsed else value
    return scores


COMMIT = "5dde2ded6f402c9c1a7a224550d43d7ef10158f3"
_LENGTHS = [4096 << power for power in range(10)]
"""4k to 2m."""
_EDGES = dict(
    zip(
        _LENGTHS,
        (250, 500, 1000, 2100, 4400, 8800, 17600, 35200, 70400, 140800),
        strict=True,
    )
)
_PAIRS = dict(
    zip(_LENGTHS[3:], (630, 1260, 2550, 5125, 10250, 20500, 41000), strict=True)
)
_FOLDERS = {
    "niah_s_": "niah_single_",
    "niah_mk_": "niah_multikey_",
    "niah_mq": "niah_multiquery",
    "niah_mv": "niah_multivalue",
}
"""Maps the start of HELMET's names of RULER's tasks to the start of their folders' names."""


# The published tasks are generated where files are missing; these are not.
_replace = partial(
    replace,
    optional_sources=lambda length: (),
    any_length=False,
    most_samples=None,
    generated="never",
)


def _ruler(task: Task) -> Task:
    name = task.name.removeprefix("ruler_")
    folder = next(
        (
            name.replace(start, new)
            for start, new in _FOLDERS.items()
            if name.startswith(start)
        ),
        name,
    )
    return _replace(
        task,
        sizes=sizes_in_tokens(_LENGTHS),
        sources=lambda length: (
            _release_file(f"ruler_llama3/{folder}/validation_{length}.jsonl"),
        ),
    )


_JSON_KV = _replace(
    JSON_KV,
    sizes=_PAIRS,
    score=score_json_kv,
    sources=lambda length: (
        _release_file(f"json_kv/test_k{_PAIRS[length]}_dep6.jsonl"),
    ),
)


def _graphwalk(
    name: str,
    title: str,
    file: str,
    max_tokens: int,
) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template(GRAPH_USER, GRAPH_PREFIX, separator="\n\n"),
        sizes=_EDGES,
        unit="edges",
        load=_load_graphwalk,
        score=_score_graphwalk,
        headline=("f1",),
        metrics=("f1",),
        max_tokens=max_tokens,
        sources=lambda length: (
            _release_file(f"graphwalk/{file.format(k=_EDGES[length])}.jsonl"),
        ),
        arguments=("seed",),
        prefix_scored=True,
    )


_LONGBENCH = Task(
    name="multiple_choice",
    title="LongBench v2",
    template=Template(CHOICE_USER, CHOICE_PREFIX),
    sizes=sizes_in_tokens(_CLASSES),
    unit="tokens",
    load=_load_longbench,
    score=score_choice,
    headline=("exact_match",),
    metrics=published.ANSWER_METRICS,
    max_tokens=128,
    sources=lambda length: (LONGBENCH, LLAMA_3),
    chat=True,
    arguments=("seed",),
    prefix_scored=True,
)

_RULER = {task.name: _ruler(task) for task in RULER}
_CATEGORIES = (
    Category(
        "recall",
        "Recall",
        (_JSON_KV, *(_RULER[task.name] for task in (MK_2, MK_3, MV))),
    ),
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
_RETURNED: set[str] = set()
for _category in _CATEGORIES:
    _RETURNED.update(*(task.metrics for task in _category.tasks))

HELMET2 = read_benchmark(
    __package__,
    _CATEGORIES,
    metrics=tuple(metric for metric in HELMET.metrics if metric.name in _RETURNED),
)
