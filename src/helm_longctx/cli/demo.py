"""`demo`: run the baselines, add published results, and write a report, with the commands that a user would call."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.shared import OutputPath, print_table
from helm_longctx.environment import require
from helm_longctx.errors import InputError
from helm_longctx.report.suite import report_path, score_tables, suite_path
from helm_longctx.runs.files import STATS

RUNS = Path(str(resources.files("helm_longctx") / "config" / "demo.yaml"))
"""The run configuration of the demo."""

PUBLISHED_ROWS = 2
"""Number of published models in a printed table."""

LOG = "demo.log"
POLL_SECONDS = 0.2


def demo(
    output_path: OutputPath = Path("benchmark_output"),
    local_path: Annotated[Path, typer.Option(help="HELM's --local-path.")] = Path("prod_env"),
) -> None:
    """Run the baselines on long-context tasks, add published results, and write a report.

    This takes about two minutes and needs no key, GPU or model. Data is generated, or read from a wheel that pip
    downloads.
    """
    require("report", "demo")
    config = yaml.safe_load(RUNS.read_text(encoding="utf-8"))
    suite, total = config["suite"], len(config["entries"]) * len(config["models"])
    folder, log = suite_path(output_path, suite), output_path / LOG
    folder.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    where = ["--suite", suite, "--output-path", str(output_path)]
    with Progress(
        TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn(), console=Console(stderr=True)
    ) as bars:
        step = bars.add_task("published results")
        published = [benchmark.name for benchmark in BENCHMARKS if benchmark.published()]
        for name in bars.track(published, task_id=step):
            _call(["reference", name, *where], log)
        step = bars.add_task(f"{total} runs of the baselines", total=total)
        options = ["--output-path", str(output_path), "--local-path", str(local_path)]
        for count in _watch(["run", str(RUNS), *options], log, folder):
            bars.update(step, completed=count)
        step = bars.add_task("report", total=1)
        _call(["report", *where], log)
        bars.advance(step)
    _print_end(config, output_path)


def _print_end(config: dict[str, Any], output_path: Path) -> None:
    """Print the scores at the longest lengths and the next commands."""
    suite, (task, *others) = config["suite"], [entry.partition(":")[0] for entry in config["entries"]]
    for benchmark in BENCHMARKS:
        if {task, *others} & benchmark.entries.keys():
            print_table(score_tables(suite_path(output_path, suite), [benchmark], PUBLISHED_ROWS)[-1])
    print("† Fewer examples or tasks than the benchmark has. The baselines compare words, and use no model.")
    print(f"The report:      {report_path(output_path, suite) / 'index.html'}")
    print(f"The leaderboard: helm-longctx serve --suite {suite} --output-path {output_path}")
    print(f"Your model:      helm-longctx run --model-url https://… --model-name … --tasks {task} --length 8k,128k")


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
