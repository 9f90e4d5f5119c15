"""Measures seconds and peak memory of making LV-Eval's prompts at 256k words and cutting them in the middle.

    python -m bench.prompts.lv_eval --tokenizer tokenizer.json [--rows 200] [--lveval CHECKOUT]

`--lveval` is a checkout of infinigence/LVEval at 63e7ae9. With it, the official code reads and cuts the same file with
the same tokenizer in the same run. Every cut prompt is compared, and the ratio of the times is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from bench.cost import peak_mb
from bench.words import COMMON_WORDS

WORDS = 262_144
WINDOW = 131_072


def fabricate(root: Path, count: int) -> Path:
    """Write one data set's file with this number of rows."""
    path = root / "lveval/loogle_SD_mixup/loogle_SD_mixup_256k.jsonl"
    path.parent.mkdir(parents=True)
    rng = random.Random(1)
    with path.open("w") as file:
        for number in range(count):
            row: dict[str, Any] = {
                "context": " ".join(rng.choices(COMMON_WORDS, k=WORDS * 5 // 4)),
                "input": f"what is {number}?",
            }
            row |= {
                "answers": ["river"],
                "length": WORDS,
                "language": "en",
                "answer_keywords": "",
                "confusing_facts": "",
            }
            file.write(json.dumps(row) + "\n")
    return path


def ours(root: Path, tokenizer_file: Path, checkout: Path) -> list[str]:
    """Return digests of the cut prompts."""
    from tokenizers import Tokenizer

    from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL
    from helm_longctx.data.root import DataRoot
    from helm_longctx.tasks.cutting.cutters import middle_cutter
    from helm_longctx.tasks.entry import parse_entry

    cut = middle_cutter(Tokenizer.from_file(str(tokenizer_file)))
    task = LV_EVAL.task("loogle_SD_mixup")
    settings = parse_entry(
        [LV_EVAL], "lv_eval:dataset=loogle_SD_mixup,length=256k,num_samples=1000"
    ).settings
    examples = task.load(task, settings, DataRoot(root, mirror=True))
    kept: list[str] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # A few whole prompts in memory at a time; the cut ones are kept.
        while batch := [
            task.prompt(example).user_turn
            for example in islice(examples, 2 * (os.cpu_count() or 1))
        ]:
            kept += [
                fitted.prompt
                for fitted in pool.map(lambda prompt: cut(prompt, WINDOW - 500), batch)
            ]
    return [hashlib.sha256(prompt.encode()).hexdigest() for prompt in kept]


def official(root: Path, tokenizer_file: Path, checkout: Path) -> list[str]:
    """Return the same digests with the official functions."""
    sys.path.insert(0, str(checkout))
    from config import DATASET_PROMPT
    from transformers import PreTrainedTokenizerFast
    from utils import load_jsonl, truncate_prompt

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file))
    rows = load_jsonl(next(root.rglob("*.jsonl")))
    template = DATASET_PROMPT["loogle_SD_mixup"]
    cut = [
        truncate_prompt(tokenizer, template.format(**row), WINDOW - 500) for row in rows
    ]
    return [hashlib.sha256(prompt.encode()).hexdigest() for prompt in cut]


def measure_in_process(
    name: str, args: argparse.Namespace, root: Path, size: float
) -> dict[str, Any]:
    """Measure one of the two in a new process."""
    command = [
        sys.executable,
        "-m",
        "bench.prompts.lv_eval",
        "--read",
        name,
        "--root",
        str(root),
        "--tokenizer",
        str(args.tokenizer),
    ]
    command += ["--lveval", str(args.lveval)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, Any] = json.loads(out.splitlines()[-1])
    peak = figures["peak_mb"]
    times = f"{figures['seconds']:.1f} s ({figures['cpu']:.1f} s of processors)"
    print(f"{name}: {times}, peak {peak:.0f} MB, {peak / size:.2f} times the text")
    return figures


def main() -> None:
    """Print a line for each way, and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--lveval", type=Path)
    parser.add_argument("--read", choices=("ours", "official"), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        start = time.perf_counter()
        digests = {"ours": ours, "official": official}[args.read](
            args.root, args.tokenizer, args.lveval
        )
        seconds = time.perf_counter() - start
        print(
            json.dumps(
                {
                    "seconds": seconds,
                    "cpu": time.process_time(),
                    "peak_mb": peak_mb(),
                    "digests": digests,
                }
            )
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        size = fabricate(Path(folder), args.rows).stat().st_size / 1e6
        print(f"file: {args.rows} rows, {size:.0f} MB")
        mine = measure_in_process("ours", args, Path(folder), size)
        if args.lveval:
            theirs = measure_in_process("official", args, Path(folder), size)
            assert mine["digests"] == theirs["digests"]
            wall, cpu = (theirs[name] / mine[name] for name in ("seconds", "cpu"))
            print(
                f"official / ours: {wall:.1f} times the time, {cpu:.1f} times the processors'; all prompts equal"
            )


if __name__ == "__main__":
    main()
