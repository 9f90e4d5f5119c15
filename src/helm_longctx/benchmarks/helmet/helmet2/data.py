"""Loads the files of HELMET's second release, and LongBench v2 as HELMET asks it.

Source of the order: princeton-nlp/HELMET at 5dde2de, data_module/graphwalk.py and longbenchv2.py.
"""

from collections.abc import Iterator

from helm_longctx.benchmarks.helmet.prompts import OMITTED
from helm_longctx.data.release import Release, ReleaseFile
from helm_longctx.tasks import STANDARD, DataRoot, HubDataset, HubFile, InputError, JsonLines, Types
from helm_longctx.tasks.sampling import shuffle_order
from helm_longctx.tasks.task import Example, Settings, Task
from helm_longctx.tasks.text import TextCutter

RELEASE = Release(
    "princeton-nlp/HELMET", setting="HELM_LONGCTX_HELMET2_REPO", folder="helmet2", archive="data_v2.tar.gz"
)
LONGBENCH = HubDataset("THUDM/LongBench-v2", {"train": 503}, labelled=False)
LLAMA_3 = HubFile(
    repo="meta-llama/Llama-3.1-8B",
    name="tokenizer.json",
    path="tokenizers/meta-llama__Llama-3.1-8B/tokenizer.json",
    kind="model",
    setting="HELM_LONGCTX_LLAMA3_REPO",
)
"""The tokenizer that cuts texts, whichever model reads them. Its repository is gated; the setting can name a copy."""

CLASSES = {STANDARD["64k"]: "short", STANDARD["256k"]: "medium", STANDARD["1m"]: "long"}
"""LongBench v2's classes of length, by the number of tokens to which their texts are cut."""

_CHOICES = ("choice_A", "choice_B", "choice_C", "choice_D")
_LONGBENCH: Types = {"context": str, "question": str, "answer": str, "length": str, **dict.fromkeys(_CHOICES, str)}
_GRAPH: Types = {"context": str, "question": str, "answer": list}


def release_file(path: str) -> ReleaseFile:
    """Return a file of the second release, by its path in the archive's `data` folder."""
    return ReleaseFile(RELEASE, f"helmet2/{path}")


def load_graphwalk(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load graphs and operations, shuffled."""
    (path,) = task.paths(settings.length)
    rows = JsonLines(root / path, _GRAPH)
    numbers = shuffle_order(len(rows), settings.seed)[: task.sample(settings)]
    for number, row in zip(numbers, rows.rows(numbers), strict=True):
        if not all(isinstance(node, str) for node in row["answer"]):
            raise InputError(f"{root / path}: row {number + 1}: column 'answer' must be a list of texts")
        fields = {"context": row["context"], "question": row["question"]}
        yield Example(f"{task.name}-{number}", fields, row["answer"], "official")


def load_longbench(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions of a class of length, shuffled. Long texts are cut at their end."""
    path = root / LONGBENCH.folder / "train.jsonl"
    rows = JsonLines(path, _LONGBENCH)
    of_class = [number for number, row in enumerate(rows) if row["length"] == CLASSES[settings.level]]
    order = shuffle_order(len(of_class), settings.seed)[: task.sample(settings)]
    numbers = [of_class[place] for place in order]
    cutter = TextCutter(root / LLAMA_3.path, settings.level, OMITTED)
    for number, row in zip(numbers, rows.rows(numbers), strict=True):
        choice = f"choice_{row['answer']}"
        if choice not in _CHOICES:
            raise InputError(f"{path}: row {number + 1}: column 'answer' must be A, B, C or D")
        ((_, end),) = cutter.measure([row["context"]])
        context = row["context"] if end is None else row["context"][:end] + OMITTED
        fields = {"context": context, "question": row["question"], **{name: row[name] for name in _CHOICES}}
        references = [row["answer"], f"{row['answer']}. {row[choice]}"]
        yield Example(f"{task.name}-{number}", fields, references, "hub")
