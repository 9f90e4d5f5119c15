"""Measures how long RULER's samples take to generate, beside the official scripts on the same files.

    python -m bench.prompts.ruler --official CHECKOUT --data ROOT --tokenizer FOLDER [--length 128k] [--samples 500]
        [--official-samples 5] [TASK ...]

CHECKOUT: NVIDIA/RULER at c3f5e3b. ROOT: a data root of `helm-longctx fetch ruler:…`. FOLDER: a saved tokenizer with
tokenizer.json and tokenizer_config.json, or the name of an encoding of tiktoken. NLTK finds punkt_tab in NLTK_DATA.

It prints a table in Markdown with a row for each task, or for all 13 if none is named. Our code generates all samples.
The official scripts generate a few, and the time of their loop is extrapolated. Each task runs in a new process. The
rows that both generated are compared.

No time includes writing samples to a file. The ratio is one of elapsed times. Our code counts new words in several
threads; the official scripts run in one.
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
from bench.cost import peak_mb

from helm_longctx.benchmarks.ruler.tasks import RULER as BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.task import Settings

ONE_THREAD = {
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

COLUMNS = (
    "task",
    "ours, s",
    "ours, s of CPU",
    "ours, GB",
    "official, s",
    "ratio",
    "equal rows",
)

# Runs a script and prints the seconds before its last loop under tqdm, and of that loop.
TIMED = """
import time
begin = time.perf_counter()
import json, runpy, sys, tqdm
class Timed(tqdm.tqdm):
    def __iter__(self):
        start = time.perf_counter()
        yield from self.iterable
        print("TIMES", json.dumps([start - begin, time.perf_counter() - start]))
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
    """Args: the first rows, processor seconds for all samples, and peak memory in GB."""

    rows: list[Any]
    cpu: float
    memory: float


def ours(case: Case, root: Path, first: int) -> Outcome:
    """Generate all samples. Call it in a new process."""
    from helm_longctx.tasks.counting import make_counter

    if Path(case.tokenizer).is_dir():
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(f"{case.tokenizer}/tokenizer.json")
    else:
        import tiktoken

        tokenizer = tiktoken.get_encoding(case.tokenizer)
    settings = Settings(
        case.length,
        seed=case.seed,
        num_samples=case.samples,
        counter=make_counter(tokenizer),
    )
    task = BENCHMARK.task(case.task)
    rows: list[dict[str, Any]] = []
    for example in task.load(task, settings, DataRoot(root, mirror=True)):
        prompt = task.prompt(example)
        row = {
            "input": prompt.user_turn,
            "answer_prefix": prompt.answer_prefix,
            "outputs": example.references,
        }
        rows += [row] if len(rows) < first else []
    return Outcome(rows, time.process_time(), peak_mb() / 1e3)


def official(case: Case, checkout: Path, first: int) -> tuple[list[Any], float]:
    """Generate the first samples with the task's official script, and return them, with the seconds for all samples."""
    sys.path[:0] = [str(checkout / "scripts/data")]
    from synthetic.constants import TASKS  # type: ignore[import-not-found]

    config = yaml.safe_load((checkout / "scripts/synthetic.yaml").read_text())[
        case.task
    ]
    script = TASKS[config["task"]]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-c",
            TIMED,
            str(checkout / f"scripts/data/synthetic/{config['task']}.py"),
        ]
        options = {
            **{
                "save_dir": folder,
                "save_name": case.task,
                "max_seq_length": case.length,
                "random_seed": case.seed,
            },
            **{"tokenizer_type": "hf" if Path(case.tokenizer).is_dir() else "openai"},
            **{"tokenizer_path": case.tokenizer, "num_samples": first},
            **{"tokens_to_generate": script["tokens_to_generate"]},
            **{
                "template": script["template"] + script["answer_prefix"],
                **config["args"],
            },
        }
        command += [
            text
            for name, value in options.items()
            for text in (f"--{name}", str(value))
        ]
        environment = {**os.environ, **ONE_THREAD, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        rows = [
            json.loads(line)
            for line in (Path(folder) / case.task / "validation.jsonl").open()
        ]
    *_, times = (line for line in done.stdout.splitlines() if line.startswith("TIMES"))
    before, loop = json.loads(times.removeprefix("TIMES"))
    return rows, before + loop / first * case.samples


def copy_official(checkout: Path, root: Path, folder: Path) -> Path:
    """Copy the official scripts, with links to the files that they read, and return the folder."""
    shutil.copytree(checkout / "scripts", folder / "scripts")
    for path in (root / "ruler_source").iterdir():
        target = folder / "scripts/data/synthetic/json" / path.name
        target.unlink(missing_ok=True)
        target.symlink_to(path.resolve())
    return folder


def measure(case: Case, checkout: Path, root: Path, first: int) -> tuple[object, ...]:
    """Generate a task's samples with both, and return the row of the table."""
    start = time.perf_counter()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        mine = pool.submit(ours, case, root, first).result()
        seconds = time.perf_counter() - start
    rows, expected = official(case, checkout, first)
    equal = sum(
        all(row[key] == other[key] for key in row)
        for row, other in zip(mine.rows, rows, strict=True)
    )
    figures = (
        f"{seconds:.1f}",
        f"{mine.cpu:.1f}",
        f"{mine.memory:.2f}",
        f"{expected:.0f}",
        f"{expected / seconds:.0f}",
    )
    return f"`{case.task}`", *figures, f"{equal} of {len(rows)}"


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="TASK",
        default=[task.name for task in BENCHMARK.tasks],
    )
    for name in ("--official", "--data"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--length", default="128k", type=parse_length)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--official-samples", type=int, default=5)
    options = parser.parse_args()
    print_row(*COLUMNS)
    print_row(*["---"] * len(COLUMNS))
    with tempfile.TemporaryDirectory() as name:
        checkout = copy_official(options.official, options.data, Path(name))
        for task in options.tasks:
            case = Case(task, options.tokenizer, options.length, options.samples)
            print_row(*measure(case, checkout, options.data, options.official_samples))


def print_row(*cells: object) -> None:
    """Print a row of a table in Markdown at once, even into a file."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
