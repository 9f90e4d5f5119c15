"""Outputs of four models, whole and with layers left out, to LongBench, and the tables of scores beside them.

LongBench's authors publish no outputs. A user of their code did, with the tables that the official eval.py wrote. The
repository's eval.py and metrics.py are the official ones at 2e00731.

Source: viridisGreen/LongBench at eaae805, pred.
"""

import json
from collections.abc import Iterator
from functools import partial

from helm_longctx.benchmarks.longbench.tasks import DATASETS, LONGBENCH
from helm_longctx.tasks import DataRoot, JsonLines, RepositoryFolder
from helm_longctx.tasks.proofs import OutputScores, PrintedScore, Proof, ScoredOutputs

_REPOSITORY = "viridisGreen/LongBench"
_COMMIT = "eaae8054f84fddaf1a299836ce6763359f823ce8"
FOLDER = "proof/longbench/pred"
MODELS = (
    "llama2-7b",
    "llama2-7b_S17-19-21-23",
    "llama2-7b-chat-4k",
    "llama2-7b-chat-4k_S17-19-21-23",
    "llama2-7b-chat-4k_S21-23",
    "llama3-8b-instruct",
    "llama3-8b-instruct_S17-19-21-23",
    "llama3-8b-instruct_S21-22-23-24",
    "qwen3-8b",
    "qwen3-8b_CXT3500",
    "qwen3-8b_CXT3500_ratio0.7_rate0.01",
    "qwen3-8b_S27-28-29-30",
)
TABLE = "result.json"


def _read_outputs(root: DataRoot, path: str) -> ScoredOutputs:
    """Read a file of outputs, or raise an `InputError`."""
    task = LONGBENCH.task(path.rpartition("/")[2].removesuffix(".jsonl"))
    records = []
    for row in JsonLines(root / path, {"pred": str, "answers": list}):
        records.append(
            {
                "prediction": row["pred"],
                "references": row["answers"],
                "all_classes": row.get("all_classes"),
            }
        )
    return ScoredOutputs(task, records)


def _read_cells(root: DataRoot) -> Iterator[PrintedScore]:
    """Yield the scores of each model's result.json, in the order of the data sets."""
    for model in MODELS:
        folder = f"{FOLDER}/{model}"
        if not root.has(f"{folder}/{TABLE}"):
            continue
        # The texts are kept, because they have the digits that were printed.
        text = (root / f"{folder}/{TABLE}").read_text(encoding="utf-8")
        table = json.loads(text, parse_float=str, parse_int=str)
        for dataset in DATASETS:
            if dataset.name in table:
                path = f"{folder}/{dataset.name}.jsonl"
                yield PrintedScore(
                    model=model,
                    column=dataset.title,
                    text=table[dataset.name],
                    compute=partial(OutputScores.percent, path=path),
                )


PROOF = Proof(
    title="outputs of four models in twelve settings, and the tables of the official eval.py",
    page=f"https://github.com/{_REPOSITORY}/tree/{_COMMIT}",
    sources=(
        RepositoryFolder(
            repo=_REPOSITORY,
            commit=_COMMIT,
            folder="pred",
            tree="d7b19710f0e6e95f3f98dd55f1468c1427421575",
            path=FOLDER,
            files=tuple(
                f"{model}/{name}"
                for model in MODELS
                for name in (TABLE, *(f"{dataset.name}.jsonl" for dataset in DATASETS))
            ),
        ),
    ),
    read_cells=_read_cells,
    read_outputs=_read_outputs,
    license="not stated",
    is_by_authors=False,
)
