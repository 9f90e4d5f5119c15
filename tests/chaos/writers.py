"""Rounds of commands that write files of a suite, in which they are killed and given again."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import time
from functools import cache
from pathlib import Path

from tests.chaos.chaos import PATIENCE, SIGNALS, Chaos, ChaosError
from tests.chaos.processes import Attempt, start
from tests.support.fabricate_runs import long_prompts, write_run

ENTRIES = (
    "helmet_recall:task=json_kv,length=8k",
    "helmet_recall:task=json_kv,length=16k",
    "lv_eval:dataset=cmrc_mixup,length=16k",
)
MODELS = ("longctx/null", "longctx/lexical")
EXPORTS = ("csv", "parquet", "markdown", "latex", "lm-eval", "every-eval-ever")
REPORTS = ("html", "markdown", "latex")

_TIMES = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[\d.:-]*|\b1\d{9}\b[.\d]*|\d{4}-\d\d-\d\d|\d\d? \w+ 20\d\d|[0-9a-f-]{36,64}"
)
"""Matches times, random identifiers and digests in what is written."""


@cache
def _suite(folder: Path) -> Path:
    """Return an output folder with a suite of six runs."""
    for entry in ENTRIES:
        for model in MODELS:
            write_run(
                folder / "benchmark_output/runs/s",
                f"{entry},model={model}",
                long_prompts(20, 4000),
            )
    return folder / "benchmark_output"


def kill_export(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Kill `export` at any moment, and run the command again."""
    _disturb(chaos, rng, folder, "export", rng.choice(EXPORTS))


def kill_report(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Kill `report` at any moment, and run the command again."""
    _disturb(chaos, rng, folder, "report", rng.choice(REPORTS))


def _disturb(
    chaos: Chaos, rng: random.Random, folder: Path, command: str, form: str
) -> None:
    """Kill a command, and compare what its repetition writes with what an undisturbed command writes.

    Raises:
        ChaosError: the files differ, or the command changed the suite.
    """
    output = _suite(chaos.folder)
    before = _digest(output)
    arguments = [
        "helm-longctx",
        command,
        "--suite",
        "s",
        "--format",
        form,
        "-o",
        str(output),
        "--to",
        "out",
    ]
    expected, seconds = _undisturbed(chaos, command, form, tuple(arguments))
    folder.mkdir()
    for _ in range(rng.randint(1, 3)):
        attempt = start(folder, arguments)
        attempt.ended(rng.uniform(0, seconds))
        signal = rng.choice(SIGNALS)
        chaos.tally.events[f"kills of {command}"] += not attempt.ended(0)
        attempt.send(signal)
        _await_end(attempt)
    if _digest(output) != before:
        raise ChaosError("the command changed the suite")
    if (
        form == "lm-eval"
    ):  # its files have the time in their names, so those of a killed command remain
        shutil.rmtree(folder / "out", ignore_errors=True)
    attempt = start(folder, arguments)
    _await_end(attempt)
    if attempt.status:
        raise ChaosError(
            f"status {attempt.status}: {(folder / 'log').read_text()[-500:]}"
        )
    if (content := _content(folder / "out")) != expected:
        names = {
            name
            for name in content.keys() | expected.keys()
            if content.get(name) != expected.get(name)
        }
        raise ChaosError(
            f"the files of {form} differ from an undisturbed command's: {sorted(names)[:5]}"
        )


@cache
def _undisturbed(
    chaos: Chaos, command: str, form: str, arguments: tuple[str, ...]
) -> tuple[dict[str, bytes], float]:
    """Return what a command writes, and the seconds that it takes."""
    folder = chaos.folder / f"undisturbed-{command}-{form}"
    folder.mkdir()
    begin = time.monotonic()
    _await_end(start(folder, list(arguments)))
    return _content(folder / "out"), time.monotonic() - begin


def _await_end(attempt: Attempt) -> None:
    if not attempt.ended_by_itself(PATIENCE):
        raise ChaosError(f"it did not end within {PATIENCE:.0f} s")


def _content(folder: Path) -> dict[str, bytes]:
    """Return the content of all files by their paths, without times. Plots in PDF differ each time, but must be whole."""
    return {
        _TIMES.sub(
            b"TIME", str(path.relative_to(folder)).encode()
        ).decode(): _comparable(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _comparable(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".pdf":
        return (
            b"whole"
            if content.startswith(b"%PDF") and content.rstrip().endswith(b"%%EOF")
            else content
        )
    return _TIMES.sub(b"TIME", content)


def _digest(folder: Path) -> str:
    sha = hashlib.sha256()
    for name, content in _content(folder).items():
        sha.update(name.encode() + content)
    return sha.hexdigest()
