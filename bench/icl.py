"""Measures seconds and peak memory of making 500 many-shot prompts at 128k."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path

from cost import peak_mb

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.hub import HubDataset
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.lengths import STANDARD

SETS = {"clinic150": {"train": 15250, "validation": 3100}, "nlu": {"train": 25700}}
WORDS = [
    f"{a}{b}"
    for a in ("set", "play", "what", "turn", "call", "book")
    for b in ("er", "ing", "s", "able", "", "le")
]


def fabricate(root: Path, name: str) -> None:
    """Write a data set of the same size as the real one."""
    (source,), rng = HELMET.task(name).sources(STANDARD["128k"]), random.Random(1)
    assert isinstance(source, HubDataset)
    column = {"clinic150": ("intent", 151), "nlu": ("label", 68)}[name]
    folder = root / source.folder
    folder.mkdir(parents=True)
    for split, rows in SETS[name].items():
        with (folder / f"{split}.jsonl").open("w") as file:
            for _ in range(rows):
                label = int(rng.random() ** 1.5 * column[1])
                file.write(
                    json.dumps(
                        {"text": " ".join(rng.choices(WORDS, k=9)), column[0]: label}
                    )
                    + "\n"
                )
    (folder / "features.json").write_text("{}")


def main() -> None:
    """Print a line for each set."""
    for name in SETS:
        with tempfile.TemporaryDirectory() as folder:
            fabricate(Path(folder), name)
            task = HELMET.task(name)
            settings = parse_entry(
                [HELMET], f"helmet_icl:task={name},length=128k"
            ).settings
            start = time.perf_counter()
            prompts = [
                task.prompt(example).user_turn
                for example in task.load(
                    task, settings, DataRoot(Path(folder), mirror=True)
                )
            ]
            ours = time.perf_counter() - start
        size = sum(map(len, prompts)) / 1e6
        print(
            f"{name}: {len(prompts)} prompts, {size:.0f} M characters: {ours:.1f} s, peak {peak_mb():.0f} MB"
        )
        del prompts


if __name__ == "__main__":
    main()
