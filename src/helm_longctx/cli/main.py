"""`helm-longctx`: the entry point and its sub-commands."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer
from typer.main import get_command

from helm_longctx._version import VERSION
from helm_longctx.cli import (
    batch,
    compare,
    data,
    demo,
    doctor,
    estimate,
    export,
    gate,
    judge_agreement,
    judge_check,
    models,
    records,
    rejudge,
    report,
    results,
    run,
    shard,
    subset,
    tables,
)
from helm_longctx.errors import InputError, shorten, suggest
from helm_longctx.helm.errors import explain
from helm_longctx.redaction.logs import redact_logs, redact_uncaught
from helm_longctx.redaction.text import redact, register_environment

EXIT_STATUSES = {
    0: "all went well",
    1: "a check failed (gate: the candidate is worse), there is no result, or an unexpected error, which is shown with"
    " its traceback",
    2: "bad input, or runs that could not be made; one line says why",
    3: "gate cannot tell; it says how many more instances are needed",
    130: "interrupted by Ctrl-C",
    143: "ended by SIGTERM",
}

_PROGRAM = "helm-longctx"

_LONG_WORD = re.compile(r"(\S{300})\S+")
"""Matches a word of the command line that an error does not repeat as a whole."""

# Older versions of Typer have Click's class, newer ones their own.
_UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    help="Long-context evaluation for Stanford HELM.",
    epilog=f"Exit status: {'; '.join(f'{status}: {meaning}' for status, meaning in EXIT_STATUSES.items())}.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@dataclass(frozen=True)
class Command:
    """A row of the table of commands.

    Args:
        name: the command's name on the command line.
        what: the function, or an app with commands of its own.
        example: the arguments of the example at the end of the command's help.
    """

    name: str
    what: Callable[..., None] | typer.Typer
    example: str

    def add(self, panel: str) -> None:
        """Add the command to the app, in a group of the help."""
        epilog = f"Example: helm-longctx {self.name} {self.example}"
        if isinstance(self.what, typer.Typer):
            app.add_typer(self.what, name=self.name, epilog=epilog, rich_help_panel=panel)
        else:
            app.command(self.name, epilog=epilog, rich_help_panel=panel)(self.what)


COMMANDS = {
    "Before and during runs": (
        Command("run", run.run, example="run.yaml --dry-run"),
        Command("estimate", estimate.estimate, example="helmet_rag:length=128k --model openai/gpt-6-luna"),
        Command("gate", gate.gate, example="my/bf16 my/fp8 --tasks helmet_rag --length 8k,32k --max-drop 2"),
        Command("batch", batch.app, example="submit mrcr:length=8k,model=openai/gpt-6-luna --suite lc -m 10000"),
        Command("shard", shard.shard, example="2/4 helmet_rag:length=128k,model=openai/gpt-6-luna --suite lc -m 10000"),
    ),
    "Results": (
        Command("summarize", results.summarize, example="--suite lc"),
        Command("serve", results.serve, example="--suite lc --port 8001"),
        Command("report", report.report, example="--suite lc"),
        Command("compare", compare.compare, example="openai/gpt-6-luna longctx/lexical --suite lc"),
        Command("reference", results.reference, example="helmet --suite lc --length 128k"),
        Command("export", export.export, example="--suite lc --format lm-eval --to results"),
        Command(
            "import", export.import_results, example="HELMET/output/Llama-3.1-8B --suite lc --model meta/llama-3.1-8b"
        ),
        Command("show", records.show, example="benchmark_output/runs/lc/RUN id17"),
        Command("schema", results.schema, example="--suite lc"),
    ),
    "Judges": (
        Command("rejudge", rejudge.rejudge, example="--suite lc --judge openai/gpt-6-luna --to lc-luna"),
        Command("judge-check", judge_check.judge_check, example="--judge openai/gpt-6-luna"),
        Command("judge-agreement", judge_agreement.judge_agreement, example="--judged benchmark_output/runs/lc"),
    ),
    "Tasks and data": (
        Command("list", tables.list_tasks, example="helmet --length 8k"),
        Command("fetch", data.fetch, example="helmet_rag:length=128k lv_eval:length=64k"),
        Command("prompts", records.prompts, example="helmet_recall:task=json_kv,length=8k --style completion"),
        Command("score", records.score, example="helmet_recall:task=json_kv,length=8k --records outputs.jsonl"),
        Command("subset", subset.subset, example="helmet --price 0.1"),
        Command("confs", tables.confs, example="run_specs"),
    ),
    "Setup": (
        Command("demo", demo.demo, example="--output-path demo_output"),
        Command("doctor", doctor.doctor, example="--no-network"),
        Command("models", models.app, example="add my/model --url http://127.0.0.1:8000/v1"),
    ),
}
"""All commands by group, in the order of the help."""

for _panel, _commands in COMMANDS.items():
    for _command in _commands:
        _command.add(_panel)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"helm-longctx {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Long-context evaluation for Stanford HELM."""


def main() -> None:
    """Run the command. Bad input is reported in one line, with exit status 2."""
    # On standard error, because standard output is for results that other programs read.
    logging.basicConfig(level=logging.WARNING, format="helm-longctx: %(message)s", stream=sys.stderr)
    # Before anything can be logged: redaction only knows values that were registered.
    register_environment()
    redact_logs()
    redact_uncaught()
    try:
        raise SystemExit(_run_command())
    except InputError as error:
        print(f"helm-longctx: error: {explain(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        # A reader such as `head` closed the pipe. If stderr stays open, Python prints this error again at exit.
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:
        print(f"helm-longctx: error: {_explain_os_error(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _run_command() -> int:
    """Run the command of the command line, and return its exit status.

    Raises:
        InputError: a command or an option is unknown, missing or has a wrong value.
    """
    try:
        # Not `app()`: that would replace our hook for uncaught exceptions, which redacts secrets.
        return get_command(app)(prog_name=_PROGRAM, standalone_mode=False) or 0
    except _UsageError as error:
        # A command without its sub-command shows its help, which Typer makes an error.
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return 2
        raise InputError(_explain_usage(error)) from None


def _explain_usage(error: Any) -> str:
    """Return Typer's message as one line, with the most similar name, or with the command that prints the help."""
    path = error.ctx.command_path if error.ctx else _PROGRAM
    nearest = suggest(getattr(error, "option_name", ""), getattr(error, "possibilities", None) or [])
    text = f"{error.message}{nearest}" if nearest else error.format_message().rstrip(".")
    text = _LONG_WORD.sub(r"\1…", text)
    # Typer itself suggests a similar command.
    help_text = "" if text.endswith("?") else f"; see {path} --help"
    return ": ".join(filter(None, (path.removeprefix(_PROGRAM).strip(), f"{text}{help_text}")))


def _explain_os_error(error: OSError) -> str:
    """Explain an error about a file, a folder, a full disk or the network in one line."""
    if not error.strerror:  # raised by a network library, not by the file system
        return redact(f"a download failed: {shorten(str(error), 200)}; check the network, or provide the file offline")
    where = f"{shorten(str(error.filename), 200)}: " if error.filename is not None else ""
    return redact(f"{where}{error.strerror}; name another path, or make it readable and writable")
