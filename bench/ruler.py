"""Measures the processor time to generate 500 samples of each of RULER's tasks, with ours and the official scripts.

    python bench/ruler.py --official CHECKOUT --data ROOT --tokenizer FOLDER [--length 128k] [--samples 500]
        [--official-samples 3] [TASK ...]

CHECKOUT: NVIDIA/RULER at c3f5e3b. ROOT: a data root of `helm-longctx fetch ruler:…`. FOLDER: a saved tokenizer with
tokenizer.json and tokenizer_config.json, or the name of an encoding of tiktoken. NLTK finds punkt_tab in NLTK_DATA.

Both read the same files and write their rows to a file. Ours generates all samples. The official scripts generate a
few, and the time of their loop is extrapolated. The rows that both generated are compared.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cost import peak_mb

from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.protocol.lengths import parse_length
from helm_longctx.protocol.task import Settings
from helm_longctx.sources.root import DataRoot

# Runs a script and prints the processor seconds before its last loop under tqdm, and of that loop.
TIMED = """
import json, runpy, sys, time, tqdm
class Timed(tqdm.tqdm):
    def __iter__(self):
        start = time.process_time()
        yield from self.iterable
        print("TIMES", json.dumps([start, time.process_time() - start]))
tqdm.tqdm = Timed
sys.argv.pop(0)
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Case:
    """The arguments of the generation."""

    task: str
    tokenizer: str
    length: int
    samples: int
    seed: int = 42


@dataclass(frozen=True)
class Outcome:
    """Args: processor seconds for all samples, wall-clock seconds, peak memory in GB, and the first rows."""

    cpu: float
    wall: float
    memory: float
    rows: list[Any]


def ours(case: Case, root: Path, first: int) -> Outcome:
    """Generate all samples and write them to a file. Call it in a new process."""
    from helm_longctx.protocol.counting import make_counter

    start = time.perf_counter()
    if Path(case.tokenizer).is_dir():
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(f"{case.tokenizer}/tokenizer.json")
    else:
        import tiktoken

        tokenizer = tiktoken.get_encoding(case.tokenizer)
    settings = Settings(case.length, seed=case.seed, num_samples=case.samples, counter=make_counter(tokenizer))
    task = BENCHMARK.task(case.task)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryFile("w") as file:
        for example in task.load(task, settings, DataRoot(root, mirror=True)):
            prompt = task.prompt(example)
            row = {"input": prompt.user_turn, "answer_prefix": prompt.answer_prefix, "outputs": example.references}
            file.write(json.dumps(row) + "\n")
            rows += [row] if len(rows) < first else []
    return Outcome(time.process_time(), time.perf_counter() - start, peak_mb() / 1e3, rows)


def official(case: Case, checkout: Path, first: int) -> Outcome:
    """Generate the first samples with the task's official script, and extrapolate."""
    start = time.perf_counter()
    sys.path[:0] = [str(checkout / "scripts/data")]
    from synthetic.constants import TASKS  # type: ignore[import-not-found]

    config = yaml.safe_load((checkout / "scripts/synthetic.yaml").read_text())[case.task]
    script = TASKS[config["task"]]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", TIMED, str(checkout / f"scripts/data/synthetic/{config['task']}.py")]
        options = {
            **{"save_dir": folder, "save_name": case.task, "max_seq_length": case.length, "random_seed": case.seed},
            **{"tokenizer_type": "hf" if Path(case.tokenizer).is_dir() else "openai"},
            **{"tokenizer_path": case.tokenizer, "num_samples": first},
            **{"tokens_to_generate": script["tokens_to_generate"]},
            **{"template": script["template"] + script["answer_prefix"], **config["args"]},
        }
        command += [text for name, value in options.items() for text in (f"--{name}", str(value))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows = [json.loads(line) for line in (Path(folder) / case.task / "validation.jsonl").open()]
    *_, times = (line for line in done.stdout.splitlines() if line.startswith("TIMES"))
    before, loop = json.loads(times.removeprefix("TIMES"))
    return Outcome(before + loop / first * case.samples, time.perf_counter() - start, 0, rows)


def copy_official(checkout: Path, root: Path, folder: Path) -> Path:
    """Copy the official scripts, with links to the files that they read, and return the folder."""
    shutil.copytree(checkout / "scripts", folder / "scripts")
    for path in (root / "ruler_source").iterdir():
        target = folder / "scripts/data/synthetic/json" / path.name
        target.unlink(missing_ok=True)
        target.symlink_to(path.resolve())
    return folder


def main() -> None:
    """Print a line for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    for name in ("--official", "--data"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--length", default="128k")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--official-samples", type=int, default=3)
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    spawn = multiprocessing.get_context("spawn")
    print("task", "ours: s CPU", "s wall", "GB", "official: s CPU", "ratio", "equal rows", sep=" | ", flush=True)
    with tempfile.TemporaryDirectory() as name:
        checkout = copy_official(options.official, options.data, Path(name))
        for task in options.tasks or [task.name for task in BENCHMARK.tasks]:
            case = Case(task, options.tokenizer, parse_length(options.length), options.samples)
            with ProcessPoolExecutor(1, spawn) as pool:
                mine = pool.submit(ours, case, options.data, options.official_samples).result()
            theirs = official(case, checkout, options.official_samples)
            equal = sum(
                all(row[key] == other[key] for key in row) for row, other in zip(mine.rows, theirs.rows, strict=True)
            )
            figures = f"{mine.cpu:.1f} | {mine.wall:.1f} | {mine.memory:.2f} | {theirs.cpu:.0f}"
            print(f"{task} | {figures} | {theirs.cpu / mine.cpu:.1f} | {equal} of {len(theirs.rows)}", flush=True)


if __name__ == "__main__":
    main()
