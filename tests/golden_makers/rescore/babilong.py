"""Score BABILong's published outputs of real models, and compare each score with the official one.

    python -m tests.golden_makers rescore.babilong --clone FOLDER [--write]

FOLDER: a clone of booydar/babilong with its branches. `--write` writes the table of published scores. Three commits have
outputs. Each output is scored by the task's scorer and by the official code; the printed tables of the repository are
compared with the accuracies.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import helm_longctx.benchmarks.babilong as package
from helm_longctx.benchmarks.babilong.outputs import READER
from helm_longctx.benchmarks.babilong.tasks import BABILONG
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.outputs import OutputRun
from tests.golden_makers.running import run_official

COMMITS = {
    "main": "7a6efee29f5cac03c3c410e6799c80fd2ffe3610",
    "smollm-eval": "a60bbf35754896e61e8c809444596fbbfae30567",
    "predictions_06_2024": "94a73a3654388649c5bf37d104eb4509308a1379",
}
"""The commits with outputs, and the branches that they are on."""

OFFICIAL = """
import json, sys
sys.path.insert(0, sys.argv[1])
import pandas as pd
from babilong.metrics import TASK_LABELS, compare_answers

results = {}
for path in json.load(sys.stdin):
    # get_model_results in babilong/collect_results.py, which needs matplotlib
    df = pd.read_csv(path)
    if df["output"].dtype != object:
        df["output"] = df["output"].astype(str)
    df["output"] = df["output"].fillna("")
    labels = TASK_LABELS[path.rsplit("/", 1)[1].split("_")[0]]
    results[path] = "".join(
        str(int(compare_answers(target=target, output=output, question=question, task_labels=labels)))
        for target, output, question in zip(df["target"], df["output"], df["question"])
    )
print("GOLDEN" + json.dumps(results))
"""

NOT_PLAIN = re.compile(r"RAG_Llama-3|.*-qa[12](-100|-1k)?")
"""Models whose published outputs are of another method or of a study of the examples. They are not in our table."""


@dataclass(frozen=True)
class File:
    """A table of outputs.

    Args:
        run: the run entry and the outputs.
        ours, official: a digit for each output.
        configuration: the end of the file's name, which says what the prompt contained.
    """

    run: OutputRun
    ours: str
    official: str
    configuration: str

    @property
    def accuracy(self) -> float:
        """The official accuracy in percent."""
        return 100 * self.official.count("1") / len(self.official)

    @property
    def is_whole(self) -> bool:
        """Whether it has as many outputs as the official sample, or 100, which older runs asked."""
        entry = parse_entry([BABILONG], self.run.entry)
        return len(self.official) in (
            entry.tasks[0].official_sample(entry.settings),
            100,
        )


def unpack(clone: Path, commit: str, folder: str, to: Path) -> None:
    """Write a folder of a commit."""
    done = subprocess.run(
        ["git", "-C", clone, "archive", commit, folder], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(to, filter="data")


def show(clone: Path, commit: str, path: str) -> str:
    """Return the text of a file at a commit."""
    return subprocess.run(
        ["git", "-C", clone, "show", f"{commit}:{path}"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout


def read_files(root: Path) -> tuple[dict[Path, OutputRun], dict[Path, str]]:
    """Return the outputs of each table, and the tables that cannot be read with the reason."""
    runs = {}
    refused = {}
    for path in sorted(root.rglob("*.csv")):
        try:
            (runs[path],) = READER.read(path, "")
        except InputError as error:
            refused[path] = str(error).removeprefix(f"{path}: ")
    return runs, refused


def score(run: OutputRun) -> str:
    """Return a digit for each output: whether the task's scorer accepts it."""
    (task,) = parse_entry([BABILONG], run.entry).tasks
    records = (
        {
            **output.record,
            "prediction": output.prediction,
            "references": output.references,
        }
        for output in run.outputs
    )
    return "".join(str(int(task.score(record)["accuracy"])) for record in records)


def compare(
    clone: Path, commit: str, code: Path
) -> tuple[dict[str, list[File]], dict[Path, str]]:
    """Return the scored tables of each model at a commit, and the tables that cannot be read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(clone, commit, "babilong_evals", folder)
        runs, refused = read_files(folder / "babilong_evals")
        official = run_official(OFFICIAL, code, data=[str(path) for path in runs])
        models = defaultdict(list)
        for path, run in runs.items():
            rest = path.stem.split("_", 2)[2]
            models[run.model].append(File(run, score(run), official[str(path)], rest))
        return models, {
            path.relative_to(folder): reason for path, reason in refused.items()
        }


def published_rows(
    results: Mapping[str, Mapping[str, list[File]]],
) -> Iterator[list[str]]:
    """Yield model, task, length and score of each whole table of a plain run."""
    seen = set()
    for models in results.values():
        for model, files in sorted(models.items()):
            # A table without the part "chat_template" is the run that the notebooks show.
            for file in sorted(files, key=lambda file: len(file.configuration)):
                entry = parse_entry([BABILONG], file.run.entry)
                key = (model, entry.tasks[0].name, entry.label)
                if (
                    not NOT_PLAIN.fullmatch(model.rpartition("/")[2])
                    and file.is_whole
                    and key not in seen
                ):
                    seen.add(key)
                    yield [*key, repr(file.accuracy)]


PRINTED_PARTS = {
    "instruction_yes_examples_yes_post_prompt_yes": "",
    "instruction_yes_examples_no_post_prompt_no": "_instruction",
    "instruction_no_examples_no_post_prompt_no": "_bare",
}


def printed_rows(clone: Path) -> Iterator[list[str]]:
    """Yield model, task, length and rounded score of the model of draw_evals.ipynb, whose outputs are not published."""
    cells = json.loads(show(clone, COMMITS["main"], "notebooks/draw_evals.ipynb"))[
        "cells"
    ]
    texts = [
        "".join(output.get("text", ()))
        or "".join(output.get("data", {}).get("text/plain", ()))
        for cell in cells
        if "print(f'{mn}" in "".join(cell["source"])
        for output in cell.get("outputs", ())
    ]
    for name, table in pairwise(texts):
        model, configuration, *_ = [*name.split(), "", ""]
        part = PRINTED_PARTS.get(configuration.partition("_chat_template")[0])
        if part is not None:
            lengths, *rows = (line.split() for line in table.splitlines())
            for task, *values in rows:
                pairs = zip(lengths, values, strict=True)
                yield from (
                    [model, task + part, length, value]
                    for length, value in pairs
                    if value != "-1"
                )


def main() -> None:
    """Score all outputs and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clone", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    clone = arguments.clone.resolve()
    comparisons = {}
    with tempfile.TemporaryDirectory() as name:
        unpack(clone, COMMITS["main"], "babilong", Path(name))
        for branch, commit in COMMITS.items():
            comparisons[branch], refused = compare(clone, commit, Path(name))
            files = [
                file
                for comparison in comparisons[branch].values()
                for file in comparison
            ]
            outputs = sum(len(file.official) for file in files)
            same = sum(
                a == b
                for file in files
                for a, b in zip(file.ours, file.official, strict=True)
            )
            equal = sum(
                file.ours.count("1") == file.official.count("1") for file in files
            )
            print(
                f"{branch}: {same} of {outputs} outputs and {equal} of {len(files)} accuracies are equal"
            )
            for path, reason in refused.items():
                print(f"  not scored: {path}: {reason}")
            for file in files:
                for row, (ours, official) in enumerate(
                    zip(file.ours, file.official, strict=True)
                ):
                    if ours != official:
                        print(
                            f"  differs: {file.run.outputs[row].location}: {ours} instead of {official}"
                        )
    if arguments.write:
        rows = [*published_rows(comparisons), *printed_rows(clone)]
        with (Path(package.__file__).parent / "published.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([["model", "task", "length", "score"], *rows])
        print(
            f"published.csv: {len(rows)} rows of {len({row[0] for row in rows})} models"
        )


if __name__ == "__main__":
    main()
