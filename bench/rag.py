"""Measures seconds and peak memory of making prompts from a RAG file (400 MB): 600 questions with 1,000 passages each.

`--helmet FOLDER` is a checkout of princeton-nlp/HELMET at 4526dfb with its requirements installed. With it, the
official loader reads the same file in the same run, and the ratios are printed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cost import peak_mb

QUESTIONS = 100
DEPTHS = 6
PASSAGES = 1000
WORDS = [
    "the",
    "of",
    "river",
    "town",
    "north",
    "built",
    "king",
    "year",
    "first",
    "school",
    "near",
    "house",
    "music",
]


def fabricate(root: Path) -> None:
    """Write test and demonstration files of NQ at 128k."""
    rng = random.Random(1)
    folder = root / "helmet/kilt"
    folder.mkdir(parents=True)
    texts = [" ".join(rng.choices(WORDS, k=108)) for _ in range(4000)]
    for name, questions, passages in (("dev", QUESTIONS, PASSAGES), ("train", 200, 3)):
        with (folder / f"nq-{name}-multikilt_1000_k{passages}_dep6.jsonl").open(
            "w"
        ) as file:
            for number in range(questions):
                for depth in range(DEPTHS):
                    ctxs = [
                        {"psg_id": "1", "title": f"T {t[:9]}", "text": t}
                        for t in rng.sample(texts, passages)
                    ]
                    ctxs[depth * (passages - 1) // (DEPTHS - 1)]["text"] += (
                        " It is called Kiri Vel."
                    )
                    row = {
                        "question": f"what is {name} {number}",
                        "answers": ["Kiri Vel"],
                        "ctxs": ctxs,
                    }
                    file.write(json.dumps(row) + "\n")


def ours(root: Path, helmet: Path) -> int:
    """Return the number of characters of all prompts."""
    from helm_longctx.benchmarks.helmet.tasks import HELMET
    from helm_longctx.data.root import DataRoot
    from helm_longctx.tasks.entry import parse_entry

    task = HELMET.task("nq")
    settings = parse_entry([HELMET], "helmet_rag:task=nq,length=128k").settings
    examples = task.load(task, settings, DataRoot(root, mirror=True))
    prompts = [task.prompt(example).text("completion") for example in examples]
    return sum(map(len, prompts))


def official(root: Path, helmet: Path) -> int:
    """Return the same number with HELMET's own loader."""
    sys.path.insert(0, str(helmet))
    from data import load_data

    random.seed(42)
    settings = argparse.Namespace(max_test_samples=100, shots=2, seed=42)
    kilt = root / "helmet/kilt"
    files = [
        str(kilt / f"nq-{name}-multikilt_1000_k{k}_dep6.jsonl")
        for name, k in (("dev", PASSAGES), ("train", 3))
    ]
    loaded = load_data(settings, "kilt_nq", *files)
    prompts = [loaded["prompt_template"].format(**row) for row in loaded["data"]]
    return sum(map(len, prompts))


def measure_in_process(name: str, root: Path, helmet: Path) -> dict[str, float]:
    """Measure one of the loaders in a new process."""
    command = [
        sys.executable,
        __file__,
        "--read",
        name,
        "--root",
        str(root),
        "--helmet",
        str(helmet),
    ]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    size = found["characters"] / 1e6
    print(
        f"{name}: {found['seconds']:.1f} s, peak {found['peak_mb']:.0f} MB, prompts {size:.0f} M characters"
    )
    return found


def main() -> None:
    """Print a line for each loader, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--helmet", type=Path, default=None)
    parser.add_argument("--read", choices=("ours", "official"), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        start = time.perf_counter()
        characters = {"ours": ours, "official": official}[args.read](
            args.root, args.helmet
        )
        seconds = time.perf_counter() - start
        print(
            json.dumps(
                {"seconds": seconds, "peak_mb": peak_mb(), "characters": characters}
            )
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        fabricate(root)
        print(
            f"file: {sum(p.stat().st_size for p in root.rglob('*dev*')) / 1e6:.0f} MB"
        )
        mine = measure_in_process("ours", root, args.helmet)
        if args.helmet:
            theirs = measure_in_process("official", root, args.helmet)
            assert mine["characters"] == theirs["characters"]
            faster, less = (
                theirs[name] / mine[name] for name in ("seconds", "peak_mb")
            )
            print(
                f"official / ours: {faster:.1f} times the time, {less:.1f} times the memory"
            )


if __name__ == "__main__":
    main()
