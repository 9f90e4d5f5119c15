"""Makes the folder in which mutated command lines run, with everything that the valid lines name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.apps.exchange.fabricate import HELMET_NAME, helmet_file, log, sample
from tests.chaos.batches import write_deployment
from tests.fuzz.cases import Done
from tests.support.fabricate import score_records
from tests.support.fabricate_runs import long_prompts, write_run
from tests.support.servers.batches import BatchServer, _openai_line
from tests.support.servers.protocols import PROTOCOLS, Reply

BATCHED = (
    "helmet_recall:task=json_kv,length=4k,num_samples=3,style=chat,model=chaos/model"
)
ENTRIES = (
    "helmet_recall:task=json_kv,length=8k",
    "lv_eval:dataset=cmrc_mixup,length=16k",
)
MODELS = ("longctx/null", "longctx/lexical")
SMALL_DEMO = {
    "suite": "demo",
    "models": [MODELS[1]],
    "entries": {
        "Recall, 8k (HELMET)": "helmet_recall:task=json_kv,length=8k,num_samples=2"
    },
}
"""A demo without questions of its own, which take most of the time."""


def build_workplace(
    folder: Path, run_command: Callable[[list[str], Path], Done]
) -> None:
    """Write a suite of two models, and the files that commands read.

    Args:
        run_command: runs `helm-longctx` with arguments in a folder.
    """
    for entry in ENTRIES:
        for model in MODELS:
            write_run(
                folder / "benchmark_output/runs/s",
                f"{entry},model={model}",
                long_prompts(2, 2000),
            )
    _write_ratings(folder)
    records = [record for record in score_records() if record["task"] == "msmarco"][:3]
    _write_lines(folder / "records.jsonl", records)
    (folder / "file").write_text("")
    (folder / "folder").mkdir()
    (folder / "demo.yaml").write_text(yaml.safe_dump(SMALL_DEMO))
    _write_configurations(folder)
    _write_foreign_files(folder / "theirs")
    _submit_batches(folder, run_command)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_ratings(folder: Path) -> None:
    ratings = [
        {"id": str(number), "judge_score": number % 4 / 3, "rater": f"r{number % 2}"}
        for number in range(20)
    ]
    for name in ("judged.jsonl", "labels.jsonl"):
        _write_lines(folder / name, ratings)
    (folder / "labels.csv").write_text(
        "id,judge_score\n" + "".join(f"{n},{n % 3}\n" for n in range(20))
    )


def _write_configurations(folder: Path) -> None:
    entries = [f"{entry},num_samples=2" for entry in ENTRIES]
    config = {
        "suite": "t",
        "entries": entries,
        "models": [MODELS[0]],
        "limits": {"prices": "prices.yaml"},
        "parallelism": 2,
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    lines = "".join(
        f'  {{description: "{entry},model={MODELS[0]}", priority: 1}}\n'
        for entry in entries
    )
    (folder / "entries.conf").write_text(f"entries: [\n{lines}]\n")
    prices = {
        MODELS[0]: {
            "input": 2,
            "cached_input": 0.5,
            "output": 8,
            "batch": {"input": 1, "output": 4},
        }
    }
    (folder / "prices.yaml").write_text(yaml.safe_dump(prices))


def _write_foreign_files(folder: Path) -> None:
    folder.mkdir()
    (folder / HELMET_NAME).write_text(helmet_file())
    (folder / "2025-01-31T12-00-00_task_abc.json").write_text(
        json.dumps(log(sample(1, "Paris"), sample(2, "Rome")))
    )
    line = {
        "doc_id": 1,
        "doc": {"references": ["x"]},
        "target": "x",
        "resps": [["x"]],
        "filter": "none",
    }
    _write_lines(folder / "samples_nq_2025-01-31T12-00-00.0.jsonl", [line])
    (folder / "answers.csv").write_text(
        "model,task,length,references,answer\nmine,nq,8k,Paris | Paname,Paris\n"
    )


def _submit_batches(
    folder: Path, run_command: Callable[[list[str], Path], Done]
) -> None:
    """Write the files of two batches, of which the first has results."""
    write_deployment(folder / "local", BatchServer(str), "openai")
    (folder / "local/credentials.conf").write_text(
        'deployments: {"chaos/model": "sk-none"}\n'
    )
    submit = [
        "run",
        "--entry",
        BATCHED,
        "--suite",
        "b",
        "-m",
        "3",
        "--batch",
        "files",
        "--batch-size",
        "2",
    ]
    done = run_command([*submit, "--local-path", "local"], folder)
    assert done.status == 0, done.err
    first = min(folder.glob("benchmark_output/runs/b/*/batches/*.jsonl"))
    rows = [json.loads(line) for line in first.read_bytes().splitlines()]
    reply = Reply("Paris")
    bodies = {
        row["custom_id"]: PROTOCOLS[row["url"]].whole(row["body"], reply)
        for row in rows
    }
    results = [_openai_line(name, {"body": body}) for name, body in bodies.items()]
    _write_lines(first.with_suffix(".results.jsonl"), results)
