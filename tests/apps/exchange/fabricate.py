"""Fabricates files of other programs in their formats: HELMET's outputs and logs of inspect_ai."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import zstandard

CHOICE = "2025-01-31T12-00-00_task_abc"
HELMET_NAME = (
    "kilt_nq_v1_nq-dev_in8192_size2_shots2_sampFalsemax20min0t0.0p1.0_chatFalse_42.json"
)


def sample(number: int, text: Any, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """Return a sample of inspect_ai."""
    choices = (
        [] if text is None else [{"message": {"role": "assistant", "content": text}}]
    )
    about = {
        "id": number,
        "epoch": epoch,
        "input": "Who?",
        "target": ["Paris", "Paname"],
        "output": {"choices": choices},
    }
    return {**about, "metadata": {}, **more}


def log(*samples: dict[str, Any], task: str = "helmet_nq_8k") -> dict[str, Any]:
    """Return a log of inspect_ai."""
    return {
        "version": 2,
        "eval": {"task": task, "model": "some/model"},
        "samples": list(samples),
    }


def write_archive(path: Path, content: dict[str, Any]) -> Path:
    """Write an `.eval` file as inspect_ai does today: compressed by Zstandard, which Python's zipfile cannot write."""
    header = {name: value for name, value in content.items() if name != "samples"}
    files = {"header.json": header}
    files |= {
        f"samples/{record['id']}_epoch_{record['epoch']}.json": record
        for record in content["samples"]
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in files.items():
            archive.writestr(
                name, zstandard.ZstdCompressor().compress(json.dumps(value).encode())
            )
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + offset] = 93
            at = data.find(signature, at + 1)
    path.write_bytes(data)
    return path


def helmet_file(**row: Any) -> str:
    """Return an output file of HELMET whose second row has other values."""
    good = {"output": "Answer: x", "answer": ["x"], "question": "?"}
    return json.dumps(
        {"args": {"model_name_or_path": "a/b"}, "data": [good, {**good, **row}]}
    )
