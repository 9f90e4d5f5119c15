"""`helm-longctx`: the entry point and its sub-commands."""

from __future__ import annotations

import ast
import logging
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from helm_longctx._version import VERSION
from helm_longctx.errors import InputError, shorten, suggest
from helm_longctx.helm.errors import explain
from helm_longctx.redaction.logs import redact_logs, redact_uncaught
from helm_longctx.redaction.text import redact, register_environment

_INTERRUPTED = 130

EXIT_STATUSES = {
    0: "all went well",
    1: "a check failed (gate: the candidate is worse), there is no result, or an unexpected error, which is shown with"
    " its traceback",
    2: "bad input, or runs that could not be made; one line says why",
    3: "gate cannot tell; it says how many more instances are needed",
    _INTERRUPTED: "interrupted by Ctrl-C",
    143: "ended by SIGTERM",
}

_PROGRAM = "helm-longctx"

_LONG_WORD = re.compile(r"(\S{300})\S+")
"""Matches a word of the command line that an error does not repeat as a whole."""

# Older versions of Typer have Click's class, newer ones their own.
_UsageError: Any = typer.BadParameter.__base__


@dataclass(frozen=True)
class Command:
    """A row of the table of commands.

    Args:
        name: the command's name on the command line.
        where: `module:function` in this folder. If the module has an `app`, the function is the app's callback.
        example: the arguments of the example at the end of the command's help.
    """

    name: str
    where: str
    example: str

    def load(self) -> Any:
        """Import the command's module, and return the parser of the command."""
        file, _, function = self.where.partition(":")
        module = import_module(f"helm_longctx.cli.{file}")
        own = getattr(module, "app", None)
        if own is None:
            own = typer.Typer(add_completion=False)
            own.command()(getattr(module, function))
        parser: Any = get_command(own)
        parser.name, parser.epilog = self.name, f"Example: helm-longctx {self.name} {self.example}"
        return parser

    def read_help(self) -> str:
        """Return the function's docstring. The module is not imported, because all of them together take seconds."""
        file, _, function = self.where.partition(":")
        code = ast.parse((Path(__file__).parent / f"{file}.py").read_text(encoding="utf-8"))
        found = (node for node in code.body if isinstance(node, ast.FunctionDef) and node.name == function)
        return ast.get_docstring(next(found)) or ""


COMMANDS = {
    "Before and during runs": (
        Command("run", "run:run", example="run.yaml --dry-run"),
        Command("certify", "certify:certify", example="--model-url http://127.0.0.1:8000/v1 --claim 128k --dry-run"),
        Command(
            "reproduce", "reproduce:reproduce", example='"deepseek mrcr 1m mmr" --model-url http://127.0.0.1:8000/v1'
        ),
        Command("estimate", "estimate:estimate", example="helmet_rag:length=128k --model openai/gpt-6-luna"),
        Command("gate", "gate:gate", example="my/bf16 my/fp8 --tasks helmet_rag --length 8k,32k --max-drop 2"),
        Command("batch", "batch:batch", example="submit mrcr:length=8k,model=openai/gpt-6-luna --suite lc -m 10000"),
        Command(
            "shard", "shard:shard", example="2/4 helmet_rag:length=128k,model=openai/gpt-6-luna --suite lc -m 10000"
        ),
    ),
    "Results": (
        Command("summarize", "results:summarize", example="--suite lc"),
        Command("serve", "results:serve", example="--suite lc --port 8001"),
        Command("report", "report:report", example="--suite lc"),
        Command("compare", "compare:compare", example="openai/gpt-6-luna longctx/lexical --suite lc"),
        Command("reference", "results:reference", example="helmet --suite lc --length 128k"),
        Command("export", "export:export", example="--suite lc --format lm-eval --to results"),
        Command(
            "import", "export:import_results", example="HELMET/output/Llama-3.1-8B --suite lc --model meta/llama-3.1-8b"
        ),
        Command("show", "records:show", example="benchmark_output/runs/lc/RUN id17"),
        Command("schema", "results:schema", example="--suite lc"),
    ),
    "Judges": (
        Command("rejudge", "rejudge:rejudge", example="--suite lc --judge openai/gpt-6-luna --to lc-luna"),
        Command("judge-check", "judge_check:judge_check", example="--judge openai/gpt-6-luna"),
        Command("judge-agreement", "judge_agreement:judge_agreement", example="--judged benchmark_output/runs/lc"),
    ),
    "Tasks and data": (
        Command("list", "tables:list_tasks", example="helmet --length 8k"),
        Command("fetch", "data:fetch", example="helmet_rag:length=128k lv_eval:length=64k"),
        Command("prompts", "records:prompts", example="helmet_recall:task=json_kv,length=8k --style completion"),
        Command("score", "records:score", example="helmet_recall:task=json_kv,length=8k --records outputs.jsonl"),
        Command("subset", "subset:subset", example="helmet --price 0.1"),
        Command("confs", "tables:confs", example="run_specs"),
    ),
    "Setup": (
        Command("demo", "demo:demo", example="--output-path demo_output"),
        Command("doctor", "doctor:doctor", example="--no-network"),
        Command("models", "models:models", example="add my/model --url http://127.0.0.1:8000/v1"),
    ),
}
"""All commands by group, in the order of the help."""


class _Commands(TyperGroup):
    """Imports the module of a command when the command is given. The list of commands needs only their docstrings."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            command.help = command.help or BY_NAME[cmd_name].read_help()
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in BY_NAME:
            self.load(BY_NAME[args[0]])
        return super().resolve_command(ctx, args)

    def load(self, command: Command) -> None:
        """Put a command's own parser in the place of the stand-in."""
        self.commands[command.name] = command.load()


_show_type: Any = getattr(TyperOption, "display_type_rich", None)
if _show_type:  # since Typer 0.29, whose help has `<bool>` beside flags, which take no value
    show_type: Any = lambda option, ctx: None if option.is_flag else _show_type(option, ctx)  # noqa: E731
    TyperOption.display_type_rich = show_type  # type: ignore[method-assign]

BY_NAME = {command.name: command for commands in COMMANDS.values() for command in commands}

app = typer.Typer(
    cls=_Commands,
    help="Long-context evaluation for Stanford HELM.",
    epilog=f"Exit status: {'; '.join(f'{status}: {meaning}' for status, meaning in EXIT_STATUSES.items())}.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

for _panel, _commands in COMMANDS.items():
    for _command in _commands:
        app.command(_command.name, rich_help_panel=_panel)(lambda: None)


def load_parser() -> Any:
    """Return the parser of the whole command line, with the parsers of all commands."""
    parser: Any = get_command(app)
    for command in BY_NAME.values():
        parser.load(command)
    return parser


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
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    try:
        # Not `app()`: that would replace our hook for uncaught exceptions, which redacts secrets.
        status: int = get_command(app)(prog_name=_PROGRAM, standalone_mode=False) or 0
    except typer.Abort:  # for Ctrl-C, in older versions of Typer
        raise KeyboardInterrupt from None
    except _UsageError as error:
        # A command without its sub-command shows its help, which Typer makes an error.
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return 2
        raise InputError(_explain_usage(error)) from None
    if status == _INTERRUPTED:  # for Ctrl-C, in newer versions of Typer
        raise KeyboardInterrupt
    return status


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
