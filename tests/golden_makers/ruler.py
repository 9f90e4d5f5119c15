"""Write golden.json, which has the official scripts' samples of fabricated texts and tokenizers.

    python -m tests.golden_makers ruler --official FOLDER

FOLDER: a checkout of NVIDIA/RULER at c3f5e3b. Its scripts run in a copy, each in a process of its own. They need
transformers, nltk, wonderwords, scipy and tenacity.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from helm_longctx.benchmarks.ruler import BENCHMARK
from tests.benchmarks.ruler.fabricate import (
    CASES,
    MORE_NEEDLES,
    build_sources,
    tokenizer,
)
from tests.golden_makers.running import find_room
from tests.support import punkt


def main() -> None:
    """Run the official scripts and write hashes of their rows next to this file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    official = parser.parse_args().official.resolve()
    golden = {}
    with (
        tempfile.TemporaryDirectory() as name,
        punkt.installed(Path(name) / "nltk") as nltk_data,
    ):
        folder = Path(name)
        shutil.copytree(official / "scripts", folder / "scripts")
        for path in (build_sources(folder) / "ruler_source").iterdir():
            shutil.copy(path, folder / "scripts/data/synthetic/json")
        _add_tasks(folder / "scripts/synthetic.yaml")
        for kind, length, seed, count, tasks in CASES:
            _save_tokenizer(kind, folder / kind)
            for task in tasks:
                rows = _run(folder, task, kind, length, seed, count, nltk_data)
                golden[f"{kind} {length} {seed} {task}"] = [
                    digest_row(**row) for row in rows
                ]
    target = find_room("benchmarks/ruler") / "golden.json"
    target.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


def _add_tasks(table: Path) -> None:
    """Add tasks to the official table, from which the official script takes the output budget."""
    tasks = yaml.safe_load(table.read_text(encoding="utf-8"))
    usual = tasks["niah_single_2"]["args"]
    for name, arguments in MORE_NEEDLES.items():
        budget = {"tokens_to_generate": BENCHMARK.task(name).max_tokens}
        tasks[name] = {"task": "niah", "args": {**usual, **arguments, **budget}}
    table.write_text(yaml.safe_dump(tasks), encoding="utf-8")


def digest_row(input: str, answer_prefix: str, outputs: list[str], **_: object) -> str:
    """Return a hash of a sample's prompt and answers."""
    return hashlib.sha256(
        json.dumps([input, answer_prefix, outputs]).encode()
    ).hexdigest()[:16]


def _save_tokenizer(kind: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    tokenizer(kind).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast"}'
    )


def _run(
    folder: Path,
    task: str,
    kind: str,
    length: int,
    seed: int,
    count: int,
    nltk_data: Path,
) -> list[dict]:
    command = [
        sys.executable,
        "prepare.py",
        "--save_dir",
        folder / f"{kind}_rows",
        "--task",
        task,
    ]
    command += [
        "--max_seq_length",
        length,
        "--num_samples",
        count,
        "--random_seed",
        seed,
    ]
    command += [
        "--tokenizer_type",
        "hf",
        "--tokenizer_path",
        folder / kind,
        "--model_template_type",
        "base",
    ]
    environment = {**os.environ, "NLTK_DATA": str(nltk_data), "HF_HUB_OFFLINE": "1"}
    subprocess.run(
        [*map(str, command)],
        cwd=folder / "scripts/data",
        env=environment,
        check=True,
        capture_output=True,
    )
    text = (folder / f"{kind}_rows" / task / "validation.jsonl").read_text(
        encoding="utf-8"
    )
    return [json.loads(line) for line in text.splitlines()]


if __name__ == "__main__":
    main()
