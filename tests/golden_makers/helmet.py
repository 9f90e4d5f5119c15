"""Write golden.json and golden_citations.json, which have the official code's results on the fabricated data.

    python -m tests.golden_makers helmet FOLDER [TASK ...]

FOLDER: a checkout of princeton-nlp/HELMET at 4526dfb. TASK: the tasks whose prompts are made again; other results stay. The cases are
in golden.json and the answers with citations in golden_citations.json; add a new case there as a key with the value {}.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.golden_makers.running import find_room
from tests.support import punkt
from tests.support.fabricate import build_mirror, score_records

PROGRAM = Path(__file__).with_name("helmet_official.py")
ROOM = find_room("benchmarks/helmet")
OFFICIAL_NAMES = {
    "asqa": "alce_asqa",
    "asqa_nocite": "alce_asqa_nocite",
    "banking77": "icl_banking77",
    "clinic150": "icl_clinic150",
    "hotpotqa": "kilt_hotpotqa",
    "infbench_choice": "infbench_choice_eng",
    "infbench_qa": "infbench_qa_eng",
    "infbench_sum": "infbench_sum_eng",
    "msmarco": "msmarco_rerank_psg",
    "nlu": "icl_nlu",
    "nq": "kilt_nq",
    "popqa": "kilt_popqa",
    "qampari": "alce_qampari",
    "qampari_nocite": "alce_qampari_nocite",
    "trec_coarse": "icl_trec_coarse",
    "trec_fine": "icl_trec_fine",
    "triviaqa": "kilt_triviaqa",
}


def main() -> None:
    """Run the official code and write its results beside the tests."""
    official = Path(sys.argv[1]).resolve()
    tasks = sys.argv[2:]
    golden, cited = (
        json.loads((ROOM / name).read_text())
        for name in ("golden.json", "golden_citations.json")
    )
    table = _read_table(official)
    records = score_records()
    task = {
        "prompts": {
            key: case(table, key)
            for key in golden["prompts"]
            if not tasks or key.split()[0] in tasks
        },
        "scored": {
            name: case(table, f"{name} 8k")
            for name in {record["task"] for record in records}
        },
        "records": records,
        "citations": [row["record"] for row in cited],
    }
    official_results = run_official(official, task)
    prompts = dict(sorted({**golden["prompts"], **official_results["prompts"]}.items()))
    _write("golden.json", {"prompts": prompts, "scores": official_results["scores"]})
    rows = [
        {"record": row["record"], "metrics": metrics}
        for row, metrics in zip(cited, official_results["citations"], strict=True)
    ]
    _write("golden_citations.json", rows)


def _read_table(official: Path) -> dict[str, Any]:
    """Return the official table of files and names by task and length."""
    return runpy.run_path(str(official / "scripts/generate_configs.py"))[
        "master_mapping"
    ]


def case(table: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the official arguments of a case such as `nq 8k shots=3`."""
    task, length, *arguments = key.split()
    given = dict(argument.split("=") for argument in arguments)
    name = OFFICIAL_NAMES.get(task, task)
    row = table[name][length]
    labelled = name.startswith("icl_")
    no_shots = labelled or name.startswith("ruler_") or name.endswith("nocite")
    labels = f"_{given['labels']}" if "labels" in given else ""
    return {
        "dataset": name + row.get("name_postfix", "") + labels,
        "test_files": row["test_files"],
        "demo_files": row.get("demo_files", ""),
        "shots": int(given.get("shots", 0 if no_shots else 2)),
        "seed": int(given.get("seed", 42)),
        "max_test_samples": int(given.get("num_samples", 500 if labelled else 100)),
    }


def run_official(official: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Return the official code's results; the code runs in a mirror folder that has the release's names, too."""
    with (
        tempfile.TemporaryDirectory() as folder,
        punkt.installed(Path(folder) / "nltk") as sentences,
    ):
        root = build_mirror(Path(folder) / "mirror")
        (root / "data").symlink_to(root / "helmet")
        (root / "prompts").symlink_to(root / "helmet/prompts")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(official), *sys.path]),
            "NLTK_DATA": str(sentences),
            "HF_HOME": folder,
            "HF_HUB_OFFLINE": "1",
        }
        command = [sys.executable, "-X", "utf8", str(PROGRAM)]
        done = subprocess.run(
            command,
            input=json.dumps(task),
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=environment,
            check=True,
        )
    return json.loads(done.stdout.rpartition("GOLDEN")[2])


def _write(name: str, golden: dict[str, Any] | list[Any]) -> None:
    """Write results as JSON, each on its own line."""
    if isinstance(golden, list):
        text = _lines(golden)
    else:
        prompts = ",\n".join(
            f"{json.dumps(key)}: {json.dumps(value)}"
            for key, value in golden["prompts"].items()
        )
        text = (
            f'{{"prompts": {{\n{prompts}\n}},\n"scores": {_lines(golden["scores"])}}}'
        )
    (ROOM / name).write_text(text + "\n", encoding="utf-8")


def _lines(rows: list[Any]) -> str:
    return (
        "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"
    )


if __name__ == "__main__":
    main()
