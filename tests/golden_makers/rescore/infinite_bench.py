"""Score ∞Bench's published outputs of seven models, and compare each score with the official one.

    python -m tests.golden_makers rescore.infinite_bench --official FOLDER [--write]

FOLDER: a checkout of OpenBMB/InfiniteBench at 88b3daa. Each output is scored by the task's scorer and by the official code.
`helm-longctx verify infinite_bench` compares the means with the table of README.md. `--write` writes the table of published scores.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import helm_longctx.benchmarks.infinite_bench as package
from helm_longctx.benchmarks.infinite_bench.outputs import READER
from helm_longctx.benchmarks.infinite_bench.proof import MODELS, SCORER
from helm_longctx.benchmarks.infinite_bench.tasks import INFINITE_BENCH, ROWS
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.outputs import OutputRun
from helm_longctx.tasks.task import Settings, Task
from tests.golden_makers.infinite_bench import START
from tests.golden_makers.running import run_official

STEP_BY_STEP = "preds_code_debug_step_by_step.jsonl"
"""A second file of GPT-4's outputs of code_debug, which the official code does not read."""

OFFICIAL = (
    START
    + """
results = {}
for path, task, model in json.load(sys.stdin):
    rows = list(compute_scores.iter_jsonl(path))
    pairs = zip(compute_scores.get_preds(rows, task), compute_scores.get_labels(rows), strict=True)
    results[path] = [compute_scores.get_score_one(pred, label, task, model) for pred, label in pairs]
print("GOLDEN" + json.dumps(results))
"""
)


def read_files(root: Path) -> tuple[dict[Path, OutputRun], dict[Path, str]]:
    """Return the outputs of each file, and the files that cannot be read with the reason."""
    runs = {}
    refused = {}
    for path in sorted(root.rglob("preds_*.jsonl")):
        renamed = path
        if path.name == STEP_BY_STEP:
            renamed = path.parent / "step_by_step" / "preds_code_debug.jsonl"
            renamed.parent.mkdir(exist_ok=True)
            renamed.write_bytes(path.read_bytes())
        task = renamed.stem.removeprefix("preds_")
        # No entry has Kimi's prompts, but its outputs are scored in the same way.
        entry = (
            f"infinite_bench_claude:task={task}" if path.parent.name == "kimi" else ""
        )
        try:
            (runs[path],) = READER.read(renamed, entry)
        except InputError as error:
            refused[path] = str(error)
    return runs, refused


def find_task(run: OutputRun) -> Task:
    """Return the task of a run entry."""
    (task,) = parse_entry([INFINITE_BENCH], run.entry).tasks
    return task


def score(run: OutputRun) -> list[float]:
    """Return our score of each output."""
    task = find_task(run)
    fields = task.record_fields(Settings(None, scorer=SCORER))
    return [
        task.scores(
            {"prediction": output.prediction, "references": output.references, **fields}
        )["longctx_score"]
        for output in run.outputs
    ]


def main() -> None:
    """Compare all outputs, and write the published scores."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    root = arguments.official.resolve()
    runs, refused = read_files(root / "results")
    jobs = [
        (str(path), find_task(run).argument, path.parent.name)
        for path, run in runs.items()
    ]
    official = run_official(OFFICIAL, root, data=jobs)
    means = {}
    same = total = equal = 0
    for path, run in runs.items():
        ours = score(run)
        theirs = official[str(path)]
        total = total + len(ours)
        same = same + sum(a == b for a, b in zip(ours, theirs, strict=True))
        equal += ours == theirs
        means[path.parent.name, path.stem.removeprefix("preds_")] = (
            100 * sum(theirs) / len(theirs)
        )
    print(
        f"{same} of {total} outputs and {equal} of {len(runs)} files have equal scores"
    )
    print(
        *(
            f"  not scored: {path.relative_to(root)}: {reason}"
            for path, reason in refused.items()
        ),
        sep="\n",
    )
    print(f"  {STEP_BY_STEP}: {means['gpt4', 'code_debug_step_by_step']:.2f}")
    if arguments.write:
        with (Path(package.__file__).parent / "published.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["model", "task", "score", "scorer"])
            for model, title in MODELS.items():
                writer.writerows(
                    [title, task, f"{means[model, task]:.3f}", SCORER]
                    for task in ROWS
                    if (model, task) in means
                )


if __name__ == "__main__":
    main()
