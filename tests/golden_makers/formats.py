"""Writes golden.json: the files that the official HELMET and LV-Eval code write for fabricated answers.

    python -m tests.golden_makers formats HELMET LVEVAL

HELMET: a checkout of princeton-nlp/HELMET at 4526dfb. LVEVAL: one of infinigence/LVEval at 63e7ae9. Columns that no
import reads, such as the documents, are left out of the files.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.lv_eval.fabricate import score_records
from tests.golden_makers.helmet import _read_table, case
from tests.golden_makers.running import find_room
from tests.support import punkt
from tests.support.fabricate import build_mirror

PROGRAM = Path(__file__).with_name("formats_official.py")
LENGTH = 8192
ROWS = 6
LONGEST = 1200
"""Characters of a column that stays in golden.json."""

TASKS = [
    "json_kv",
    "nq",
    "popqa",
    "hotpotqa",
    "msmarco",
    "ruler_niah_mv",
    "ruler_qa_1",
    "ruler_vt",
    "trec_coarse",
    "asqa",
    "qampari",
    "asqa_nocite",
    "narrativeqa",
    "infbench_qa",
    "infbench_choice",
    "infbench_sum",
    "multi_lexsum",
]


def main() -> None:
    """Run the official code, and write its files into `golden.json` beside the tests."""
    helmet, lv_eval = (Path(argument).resolve() for argument in sys.argv[1:3])
    golden = {"helmet": _helmet(helmet), "lv_eval": _lv_eval(lv_eval)}
    lines = [f'"{name}": {{\n{_lines(files)}\n}}' for name, files in golden.items()]
    (find_room("apps/exchange") / "golden.json").write_text(
        "{" + ",\n".join(lines) + "}\n", encoding="utf-8"
    )


def _lines(files: dict[str, Any]) -> str:
    return ",\n".join(
        f"{json.dumps(name)}: {json.dumps(content, ensure_ascii=False)}"
        for name, content in files.items()
    )


def _helmet(official: Path) -> dict[str, Any]:
    table = _read_table(official)
    cases = [
        {**case(table, f"{task} 8k num_samples={ROWS}"), "input_max_length": LENGTH}
        for task in TASKS
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        punkt.installed(Path(folder) / "nltk") as sentences,
    ):
        root = build_mirror(Path(folder) / "mirror")
        output = Path(folder) / "output"
        output.mkdir()
        (root / "data").symlink_to(root / "helmet")
        (root / "prompts").symlink_to(root / "helmet/prompts")
        path = os.pathsep.join([str(official), str(official / "scripts"), *sys.path])
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "NLTK_DATA": str(sentences),
            "HF_HOME": folder,
        }
        command = [sys.executable, "-X", "utf8", str(PROGRAM), str(output)]
        environment["HF_HUB_OFFLINE"] = "1"
        subprocess.run(
            command,
            input=json.dumps(cases),
            text=True,
            cwd=root,
            env=environment,
            check=True,
        )
        return {
            file.name: _short(json.loads(file.read_text()))
            for file in sorted(output.iterdir())
        }


def _short(content: dict[str, Any]) -> dict[str, Any]:
    """Return a file's content without long columns."""
    if "data" not in content:
        return content
    rows = [
        {name: value for name, value in row.items() if len(json.dumps(value)) < LONGEST}
        for row in content["data"]
    ]
    return {name: content[name] for name in ("args", "averaged_metrics")} | {
        "data": rows
    }


def _lv_eval(official: Path) -> dict[str, Any]:
    """Return the predictions of each data set, and the official table of scores."""
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, list[Any]] = {}
        for record in score_records():
            row = {
                "pred": record["prediction"],
                "answers": record["references"],
                "gold_ans": record["answer_keywords"],
                "input": random.Random(record["prediction"]).choice(["Who?", "谁？"]),
                "all_classes": None,
                "length": 9000,
            }
            files.setdefault(f"{record['dataset']}_16k.jsonl", []).append(row)
        files = {name: _scored(rows) for name, rows in files.items()}
        for name, rows in files.items():
            (Path(folder) / name).write_text(
                "".join(json.dumps(row) + "\n" for row in rows)
            )
        command = [
            sys.executable,
            str(official / "evaluation.py"),
            "--input-dir",
            folder,
        ]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return {
            **files,
            "result.json": json.loads(
                (Path(folder) / "eval_result/result.json").read_text()
            ),
        }


def _scored(rows: list[Any]) -> list[Any]:
    """Return the first rows of a file that the official code can score, because their keywords contain words."""
    return [
        row
        for row in rows
        if not row["gold_ans"] or any(map(str.isalnum, row["gold_ans"]))
    ][:ROWS]


if __name__ == "__main__":
    main()
