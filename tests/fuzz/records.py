"""Mutated records for `helm-longctx score`: each gives a line of scores, or one line of error."""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.benchmarks.helmet.fabricate_replies import answer_replies, summary_replies
from tests.fuzz.cases import Kind, check_finite
from tests.fuzz.commands import check, run_command
from tests.fuzz.loaders import TASKS, length_of
from tests.fuzz.mutate import dumped, mutated, mutated_bytes
from tests.support.fabricate import score_records
from tests.support.fabricated import fabricated
from tests.support.tasks import entry_of

OF_BENCHMARK: dict[str, dict[str, Any]] = fabricated("RECORD")
"""An answer of each benchmark, with the further fields that its records have."""

CITED = {
    "judge": "x/y",
    "official": True,
    "recall": 0.5,
    "precision": None,
    "recall_shown": 1.0,
    "precision_shown": 0.0,
    "hidden": 1,
}


@cache
def _records() -> dict[str, list[dict[str, Any]]]:
    """Return records as users have them, by task."""
    records_by_task: dict[str, list[dict[str, Any]]] = {name: [] for name in TASKS}
    for record in score_records():
        records_by_task[record["task"]].append(record)
    plain = {
        "prediction": "Answer: Lake Vel [1]. A river, a town",
        "references": ["Lake Vel", "Vel"],
    }
    for name, (benchmark, _) in TASKS.items():
        records_by_task[name].append({**plain, **OF_BENCHMARK.get(benchmark.name, {})})
    replies = [reply for reply in answer_replies() if reply]
    for case in summary_replies()[::40]:
        parts = {
            "fluency": case.fluency,
            "recall": case.recall,
            "precision": case.precision,
        }
        for name in ("infbench_sum", "multi_lexsum"):
            records_by_task[name].append(
                {**plain, "judge": parts, "keypoints": ["a"] * case.keypoints}
            )
            records_by_task[name].append(
                {
                    **plain,
                    "jury": {"replies": {"a": parts, "b": parts}},
                    "keypoints": ["a", "b"],
                }
            )
    records_by_task["narrativeqa"] += [
        {**plain, "judge": reply, "jury": {"replies": {"a": reply}}}
        for reply in replies[::20]
    ]
    for name in ("asqa", "asqa_nocite"):
        records_by_task[name].append(
            {
                **plain,
                "qa_pairs": [{"short_answers": ["Lake Vel", "x"]}],
                "citations": CITED,
            }
        )
    for name in ("qampari", "qampari_nocite"):
        records_by_task[name].append(
            {**plain, "answers": [["a river"], ["a town", "b"]], "citations": CITED}
        )
    return records_by_task


def run(target: str, rng: random.Random) -> None:
    """Score a file in which one record, or the bytes, are mutated."""
    name = rng.choice(list(TASKS))
    benchmark, task = TASKS[name]
    records = [rng.choice(_records()[name]) for _ in range(rng.randint(1, 3))]
    position = rng.randrange(len(records))
    records[position] = mutated(records[position], rng)
    data = b"".join(dumped(record, rng) + b"\n" for record in records)
    arguments = {benchmark.task_argument: task.argument, "length": length_of(task)}
    given = ",".join(
        f"{key}={value}" for key, value in arguments.items() if value is not None
    )
    entry = f"{entry_of(task)}:{given}"
    with tempfile.TemporaryDirectory(prefix="fuzz-records-") as folder:
        path = Path(folder) / "records.jsonl"
        path.write_bytes(mutated_bytes(data, rng) if rng.random() < 0.1 else data)
        done = run_command(["score", entry, "--records", "records.jsonl"], Path(folder))
        check(done, [name, path.read_bytes()[:600].decode("utf-8", "replace")])
        if done.status == 0:
            lines = done.out.decode().splitlines()
            assert len(lines) == sum(
                not line.isspace()
                for line in path.read_bytes().splitlines(keepends=True)
            ), "lines are missing"
            for line in lines:
                check_finite(json.loads(line))


KIND = Kind("records", ("score",), 1000, run)
