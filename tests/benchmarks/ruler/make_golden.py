"""Writes golden.json: what the official scripts generate with fabricated texts and tokenizers.

    python -m tests.ruler.make_golden --official FOLDER

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

from tests import punkt
from tests.ruler.fabricate import CASES, build_sources, tokenizer


def main() -> None:
    """Runs the official scripts and writes hashes of their rows beside this file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    official = parser.parse_args().official.resolve()
    golden = {}
    with tempfile.TemporaryDirectory() as name, punkt.installed(Path(name) / "nltk") as nltk_data:
        folder = Path(name)
        shutil.copytree(official / "scripts", folder / "scripts")
        for path in (build_sources(folder) / "ruler_source").iterdir():
            shutil.copy(path, folder / "scripts/data/synthetic/json")
        for kind, length, seed, count, tasks in CASES:
            _save_tokenizer(kind, folder / kind)
            for task in tasks:
                rows = _run(folder, task, kind, length, seed, count, nltk_data)
                golden[f"{kind} {length} {seed} {task}"] = [digest_row(**row) for row in rows]
    target = Path(__file__).with_name("golden.json")
    target.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


def digest_row(input: str, answer_prefix: str, outputs: list[str], **_: object) -> str:
    """A hash of what a sample asks and expects."""
    return hashlib.sha256(json.dumps([input, answer_prefix, outputs]).encode()).hexdigest()[:16]


def _save_tokenizer(kind: str, folder: Path) -> None:
    folder.mkdir()
    tokenizer(kind).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


def _run(folder: Path, task: str, kind: str, length: int, seed: int, count: int, nltk_data: Path) -> list[dict]:
    command = [sys.executable, "prepare.py", "--save_dir", folder / f"{kind}_rows", "--task", task]
    command += ["--max_seq_length", length, "--num_samples", count, "--random_seed", seed]
    command += ["--tokenizer_type", "hf", "--tokenizer_path", folder / kind, "--model_template_type", "base"]
    environment = {**os.environ, "NLTK_DATA": str(nltk_data), "HF_HUB_OFFLINE": "1"}
    subprocess.run([*map(str, command)], cwd=folder / "scripts/data", env=environment, check=True, capture_output=True)
    text = (folder / f"{kind}_rows" / task / "validation.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


if __name__ == "__main__":
    main()
