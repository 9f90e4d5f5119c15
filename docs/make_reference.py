"""Writes the pages in docs/reference/ from the code: `python docs/make_reference.py`, or `make reference`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.main import COMMANDS, EXIT_STATUSES, app
from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.metric_names import headline_text
from helm_longctx.protocol.task import EVERY_TASK, Task

FOLDER = Path(__file__).parent / "reference"

DIRECTION = {None: "", True: "lower is better", False: "higher is better"}


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    parts = {"tasks.md": _tasks(), "metrics.md": _metrics(), "commands.md": _commands()}
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in parts.items()}


def _tasks() -> Iterator[str]:
    yield "# Tasks\n"
    yield "This page lists all tasks by benchmark. A run entry without a task runs all tasks of its category that"
    yield "have no asterisk. Tasks with an asterisk run only if the entry names them. Every task takes the arguments"
    yield f"{', '.join(f'`{name}`' for name in EVERY_TASK)} ([their meaning](../run-entries.md)); tasks without"
    yield "lengths take no `length`. A version names the official code with a benchmark's prompts and metrics.\n"
    for benchmark in BENCHMARKS:
        yield f"## {benchmark.title}\n"
        yield f"{benchmark.description}. Version: [{benchmark.revision}]({benchmark.url}).\n"
        yield from _table(
            ("entry", f"`{benchmark.task_argument}`", "lengths", "sample", "output tokens", "score", "arguments"),
            (
                _task_row(entry, task, benchmark, is_variant=task in category.variants)
                for entry, category in benchmark.entries.items()
                for task in (*category.tasks, *category.variants)
            ),
        )


def _task_row(entry: str, task: Task, benchmark: Benchmark, is_variant: bool) -> tuple[str, ...]:
    further = sorted(task.all_arguments.difference(EVERY_TASK))
    return (
        f"`{entry}`",
        f"`{task.argument}`{' *' if is_variant else ''}",
        _lengths(task, benchmark),
        _numbers(task.num_samples) + (f" at {task.depths} depths" if task.depths > 1 else ""),
        _numbers(task.max_tokens),
        headline_text(task),
        ", ".join(f"`{name}`" for name in further),
    )


def _numbers(number: int | Mapping[int, int]) -> str:
    return ", ".join(map(str, sorted({number} if isinstance(number, int) else {*number.values()})))


def _lengths(task: Task, benchmark: Benchmark) -> str:
    if task.any_length and (axis := benchmark.axis):
        return f"any, {length_label(axis.shortest)} to {length_label(axis.longest)}"
    return ", ".join(length_label(length) for length in sorted(task.sizes)) or "none"


def _metrics() -> Iterator[str]:
    yield "# Metrics\n"
    yield "This page lists all official metrics by benchmark. `stats.json`, exports and pages use these official names."
    yield "`longctx_score` is each task's headline metric under a common name, from 0 to 1.\n"
    for benchmark in BENCHMARKS:
        yield f"## {benchmark.title}\n"
        yield from _table(
            ("metric", "meaning", "values", "tasks"),
            (
                (
                    f"`{metric.name}`",
                    metric.description,
                    _values(metric.range, metric.lower_is_better),
                    _users(benchmark, metric.name),
                )
                for metric in benchmark.metrics
            ),
        )


def _values(limits: tuple[float, float] | None, lower_is_better: bool | None) -> str:
    span = f"{limits[0]:g} to {limits[1]:g}" if limits else "no bound"
    return ", ".join(filter(None, (span, DIRECTION[lower_is_better])))


def _users(benchmark: Benchmark, metric: str) -> str:
    users = [task.name for task in benchmark.tasks if metric in task.metrics]
    return "all" if len(users) == len(benchmark.tasks) else ", ".join(f"`{name}`" for name in users)


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield from _table(("exit status", "meaning"), ((str(status), text) for status, text in EXIT_STATUSES.items()))
    yield "`helm-longctx --install-completion` installs completion for the shell that you use.\n"
    parser: Any = get_command(app)
    for panel, commands in COMMANDS.items():
        yield f"## {panel}\n"
        for command in commands:
            yield from _command(f"helm-longctx {command.name}", parser.commands[command.name])


def _command(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    yield f"### {name}\n"
    yield f"{_text(command.help)}\n"
    yield f"    {' '.join((name, *command.collect_usage_pieces(context)))}\n"
    rows = [_parameter(each) for each in command.params if each.name != "help"]
    if rows:
        yield from _table(("argument or option", "meaning"), rows)
    if command.epilog:
        yield f"{command.epilog.replace('helm-longctx', '`helm-longctx', 1)}`\n"
    for child, each in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {child}", each)


def _parameter(parameter: Any) -> tuple[str, str]:
    names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    given = f" Default: `{default}`." if default not in (None, "", False, ()) and not callable(default) else ""
    return names + (" (required)" if parameter.required else ""), _text(getattr(parameter, "help", "") or "") + given


def _text(text: str) -> str:
    return " ".join(text.replace("\\[", "[").split())  # the help's markup needs the backslash


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(_text(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
