"""Score BABILong's published outputs of real models, and compare each score with the official one.

    python -m tests.benchmarks.babilong.rescore --clone FOLDER [--write]

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
from helm_longctx.benchmarks.babilong.tasks import BABILONG, MAIN
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.outputs import OutputRun
from tests.support.official import run_official

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

BEFORE = "1e7893a4eba738b7b19d8d13c111aadcbf0002e3"
"""The official code when the notebooks were run. It looked for labels such as Mary in the question without ignoring
case, so names in the questions of qa5 counted as second answers. The next commit of the file, 58e5d20, corrects it."""

OFFICIAL_BEFORE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from babilong.metrics import TASK_LABELS, compare_answers

runs = json.load(sys.stdin)
print("GOLDEN" + json.dumps([[compare_answers(*row, TASK_LABELS[task]) for row in rows] for task, rows in runs]))
"""

NOT_PLAIN = re.compile(r"RAG_Llama-3|.*-qa[12](-100|-1k)?")
"""Models whose published outputs are of another method or of a study of the examples. They are not in our table."""

NOTEBOOKS = (
    "eval_LongAlpaca-13B",
    "eval_Mistral-7B-Instruct-v0.2",
    "eval_Mixtral-8x7B-Instruct-v0.1",
    "eval_activation-beacon_models",
)
"""The notebooks of main that print accuracies of outputs."""

LENGTHS = ("0k", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k")


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
        return len(self.official) in (entry.tasks[0].official_sample(entry.settings), 100)


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
        ["git", "-C", clone, "show", f"{commit}:{path}"], capture_output=True, check=True, text=True
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
        {**output.record, "prediction": output.prediction, "references": output.references}
        for output in run.outputs
    )
    return "".join(str(int(task.score(record)["accuracy"])) for record in records)


def compare(clone: Path, commit: str, code: Path) -> tuple[dict[str, list[File]], dict[Path, str]]:
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
        return models, {path.relative_to(folder): reason for path, reason in refused.items()}


def printed_tables(clone: Path) -> Iterator[tuple[str, str, list[list[float]]]]:
    """Yield the model, the configuration and the rounded accuracies that the notebooks print, by task and length."""
    for notebook in NOTEBOOKS:
        model = configuration = ""
        for cell in json.loads(show(clone, COMMITS["main"], f"notebooks/{notebook}.ipynb"))[
            "cells"
        ]:
            source = "".join(cell["source"])
            model = (re.findall(r"^model_name = '(.+)'", source, re.M) or [model])[-1]
            configuration = (re.findall(r"^prompt_name = '(.+)'", source, re.M) or [configuration])[
                -1
            ]
            for output in cell.get("outputs", ()):
                lines = "".join(output.get("text", ())).strip().splitlines()
                if len(lines) == len(MAIN) and all(
                    re.fullmatch(r"\d+( \d+)+ ?", line) for line in lines
                ):
                    yield (
                        model,
                        configuration,
                        [[float(value) for value in line.split()] for line in lines],
                    )


def accuracies(files: list[File], configuration: str) -> dict[tuple[str, str], float]:
    """Return the official accuracy of each task and length in a configuration."""
    found = {}
    for file in files:
        if file.configuration == configuration:
            task, length = re.findall(r"task=(\w+),length=(\w+)", file.run.entry)[0]
            found[task, length] = file.accuracy
    return found


def find_file(files: list[File], configuration: str, task: str, length: str) -> File:
    """Return the table of a task and length in a configuration."""
    (file,) = (
        each
        for each in files
        if each.configuration == configuration
        and each.run.entry.endswith(f":task={task},length={length}")
    )
    return file


def score_before(clone: Path, files: list[File]) -> list[float]:
    """Return the accuracies in percent by the official code of the notebooks."""
    runs = []
    for file in files:
        rows = [
            [output.references[0], output.prediction, output.record["question"]]
            for output in file.run.outputs
        ]
        runs.append([parse_entry([BABILONG], file.run.entry).tasks[0].argument, rows])
    with tempfile.TemporaryDirectory() as name:
        unpack(clone, BEFORE, "babilong", Path(name))
        return [
            100 * sum(row) / len(row)
            for row in run_official(OFFICIAL_BEFORE, Path(name), data=runs)
        ]


def check_notebooks(clone: Path, models: Mapping[str, list[File]]) -> tuple[int, list[str]]:
    """Return the number of printed accuracies, and those that differ from the outputs by the code of then and now."""
    printed = [
        (value, find_file(models[model], configuration, task, length))
        for model, configuration, table in printed_tables(clone)
        for task, row in zip(MAIN, table, strict=True)
        for length, value in zip(LENGTHS, row, strict=False)
    ]
    other = [(value, file) for value, file in printed if f"{file.accuracy:.0f}" != f"{value:.0f}"]
    before = score_before(clone, [file for _, file in other])
    odd = [
        f"{file.run.model} {file.configuration} {file.run.entry}: {value:.0f}, {file.accuracy}, before {then}"
        for (value, file), then in zip(other, before, strict=True)
        if f"{then:.0f}" != f"{value:.0f}"
    ]
    tasks = sorted({file.run.entry.split(",")[0] for _, file in other})
    print(
        f"notebooks: {len(printed) - len(other)} are equal by today's code, the others of {', '.join(tasks)} by {BEFORE[:7]}"
    )
    return len(printed), odd


def check_results(clone: Path, models: Mapping[str, list[File]]) -> tuple[int, list[str]]:
    """Return the number of accuracies in all_results.csv, and those that differ from the outputs.

    A model with several configurations has there the accuracies of the one with the highest mean over all lengths.
    """
    count = 0
    odd = []
    for row in csv.DictReader(
        io.StringIO(show(clone, COMMITS["smollm-eval"], "babilong_results/all_results.csv"))
    ):
        model = row.pop("model_name")
        task = row.pop("task")
        tables = [
            accuracies(models[model], each)
            for each in {file.configuration for file in models[model]}
        ]
        if task in MAIN:
            table = max(tables, key=lambda table: sum(table[task, length] for length in row))
            values = {length: table[task, length] for length in row}
        else:
            best = [
                max((t for t in tables), key=lambda t: sum(t[each, n] for n in row))
                for each in MAIN
            ]
            values = {
                n: sum(t[each, n] for each, t in zip(MAIN, best, strict=True)) / len(MAIN)
                for n in row
            }
        for length, value in row.items():
            count += 1
            if abs(float(value) - values[length]) > 1e-9:
                odd.append(f"{model} {task} {length}: {value}, {values[length]}")
    return count, odd


def published_rows(found: Mapping[str, Mapping[str, list[File]]]) -> Iterator[list[str]]:
    """Yield model, task, length and score of each whole table of a plain run."""
    seen = set()
    for models in found.values():
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
    cells = json.loads(show(clone, COMMITS["main"], "notebooks/draw_evals.ipynb"))["cells"]
    texts = [
        "".join(output.get("text", ())) or "".join(output.get("data", {}).get("text/plain", ()))
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
                    [model, task + part, length, value] for length, value in pairs if value != "-1"
                )


def main() -> None:
    """Score all outputs and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clone", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    clone = arguments.clone.resolve()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        unpack(clone, COMMITS["main"], "babilong", Path(name))
        for branch, commit in COMMITS.items():
            found[branch], refused = compare(clone, commit, Path(name))
            files = [file for each in found[branch].values() for file in each]
            outputs = sum(len(file.official) for file in files)
            same = sum(
                a == b for file in files for a, b in zip(file.ours, file.official, strict=True)
            )
            equal = sum(file.ours.count("1") == file.official.count("1") for file in files)
            print(
                f"{branch}: {same} of {outputs} outputs and {equal} of {len(files)} accuracies are equal"
            )
            for path, reason in refused.items():
                print(f"  not scored: {path}: {reason}")
            for file in files:
                for row, (ours, official) in enumerate(zip(file.ours, file.official, strict=True)):
                    if ours != official:
                        print(f"  differs: {file.run.places[row]}: {ours} instead of {official}")
    for title, check, branch in (
        ("notebooks", check_notebooks, "predictions_06_2024"),
        ("all_results.csv", check_results, "smollm-eval"),
    ):
        count, odd = check(clone, found[branch])
        print(f"{title}: {count - len(odd)} of {count} printed accuracies are equal")
        print(*(f"  differs: {line}" for line in odd), sep="\n")
    if arguments.write:
        rows = [*published_rows(found), *printed_rows(clone)]
        with (Path(package.__file__).parent / "published.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([["model", "task", "length", "score"], *rows])
        print(f"published.csv: {len(rows)} rows of {len({row[0] for row in rows})} models")


if __name__ == "__main__":
    main()
