"""`helm-longctx`: the entry point and its sub-commands."""

import logging
import re
import sys
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from helm_longctx._version import VERSION
from helm_longctx.apps.app import Command, find_apps, find_own_apps
from helm_longctx.config.shared import LOG_FORMAT
from helm_longctx.environment import check_encoding
from helm_longctx.errors import InputError, shorten, suggest
from helm_longctx.helm.errors import explain
from helm_longctx.interruptions import stoppable
from helm_longctx.process_state import giving_back
from helm_longctx.redaction.logs import redact_logs, redact_uncaught
from helm_longctx.redaction.text import redact, register_environment
from helm_longctx.writing import DISK_FULL

_INTERRUPTED = 130

EXIT_STATUSES = {
    0: "all went well",
    1: "a check failed (gate: the candidate is worse), there is no result, or an"
    " unexpected error, which is shown with its traceback",
    2: "bad input, or runs that could not be made; one line says why",
    3: "gate, cache-check or compaction cannot tell; the output says what is missing",
    _INTERRUPTED: "stopped by Ctrl-C",
    143: "stopped by SIGTERM",
}

_PROGRAM = "helm-longctx"

_LONG_WORD = re.compile(r"(\S{300})\S+")
"""Matches a word of the command line that an error does not repeat as a whole."""

# Older versions of Typer have Click's class, newer ones their own.
_UsageError: Any = typer.BadParameter.__base__


PANELS = ("Before and during runs", "Results", "Judges", "Tasks and data", "Setup")
"""The headings of the help, in its order."""
RUNS, RESULTS, JUDGES, TASKS, SETUP = PANELS


def _own(where: str, panel: str, *, example: str) -> Command:
    """Return a command of this room. It has the name of its function."""
    return Command(
        where.partition(":")[2].removesuffix("_tasks"),
        f"helm_longctx.cli.{where}",
        panel,
        example,
    )


_OWN = (
    _own("run:run", RUNS, example="run.yaml --dry-run"),
    _own(
        "reproduce:reproduce",
        RUNS,
        example='"deepseek mrcr 1m mmr" --model-url http://127.0.0.1:8000/v1',
    ),
    _own(
        "estimate:estimate",
        RUNS,
        example="helmet_rag:length=128k --model openai/gpt-6-luna",
    ),
    _own(
        "batch:batch",
        RUNS,
        example="status --suite lc",
    ),
    _own(
        "shard:shard",
        RUNS,
        example="2/4 helmet_rag:length=128k,model=openai/gpt-6-luna --suite lc -m 10000",
    ),
    _own("results:summarize", RESULTS, example="--suite lc"),
    _own("results:serve", RESULTS, example="--suite lc --port 8001"),
    _own("results:reference", RESULTS, example="helmet --suite lc --length 128k"),
    _own("records:show", RESULTS, example="benchmark_output/runs/lc/RUN id17"),
    _own("results:schema", RESULTS, example="--suite lc"),
    _own(
        "rejudge:rejudge",
        JUDGES,
        example="--suite lc --judge openai/gpt-6-luna --to lc-luna",
    ),
    _own("tables:list_tasks", TASKS, example="helmet --length 8k"),
    _own("tables:fetch", TASKS, example="helmet_rag:length=128k lv_eval:length=64k"),
    _own(
        "records:prompts",
        TASKS,
        example="helmet_recall:task=json_kv,length=8k --style completion",
    ),
    _own(
        "records:score",
        TASKS,
        example="helmet_recall:task=json_kv,length=8k --records outputs.jsonl",
    ),
    _own("tables:confs", TASKS, example="run_specs"),
    _own("demo:demo", SETUP, example="--output-path demo_output"),
    _own("doctor:doctor", SETUP, example="--no-network"),
    _own("models:models", SETUP, example="add my/model --url http://127.0.0.1:8000/v1"),
)


def _list_commands() -> list[Command]:
    commands = [*_OWN]
    for app in find_own_apps():
        commands += app.commands
    return sorted(commands, key=lambda command: PANELS.index(command.panel))


COMMANDS = _list_commands()
"""All commands of ours, in the order of the help."""


class _Commands(TyperGroup):
    """Imports the module of a command when the command is given. The list of commands needs only their docstrings."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            command.help = command.help or BY_NAME[cmd_name].read_help()
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A program that runs several runs each as if it were alone."""
        with giving_back():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, also from other packages."""
        self._add_others()
        return super().list_commands(ctx)

    def _add_others(self) -> None:
        # Entry points are read only if they are needed: for the list, and for a name that is not ours.
        for app in find_apps():
            for command in app.commands:
                if command.name not in BY_NAME:
                    BY_NAME[command.name] = command
                    self.load(command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in BY_NAME:
            self._add_others()
        if args[0] in BY_NAME:
            self.load(BY_NAME[args[0]])
        return super().resolve_command(ctx, args)

    def load(self, command: Command) -> None:
        """Put a command's own parser in the place of the stand-in."""
        self.commands[command.name] = command.load()


# Since Typer 0.29, the help has `<bool>` beside flags. They take no value.
_show_type: Any = getattr(TyperOption, "display_type_rich", None)
if _show_type:

    def _show_type_of_values(option: Any, ctx: Any) -> Any:
        if option.is_flag:
            return None
        return _show_type(option, ctx)

    TyperOption.display_type_rich = _show_type_of_values  # type: ignore[assignment, method-assign]

BY_NAME = {command.name: command for command in COMMANDS}

app = typer.Typer(
    cls=_Commands,
    help="Long-context evaluation for Stanford HELM.",
    epilog=f"Exit status: {'; '.join(f'{status}: {meaning}' for status, meaning in EXIT_STATUSES.items())}.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

for _command in COMMANDS:
    app.command(_command.name, rich_help_panel=_command.panel)(lambda: None)


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
    version: bool = typer.Option(
        False,
        "--version",
        callback=_version,
        is_eager=True,
        help="Print the version.",
    ),
) -> None:
    """Long-context evaluation for Stanford HELM."""


def main() -> None:
    """Run the command. Bad input is reported in one line, with exit status 2."""
    # On standard error, because standard output is for results that other programs read.
    logging.basicConfig(
        level=logging.WARNING,
        format=LOG_FORMAT,
        stream=sys.stderr,
    )
    # Before anything can be logged: redaction only knows values that were registered.
    register_environment()
    redact_logs()
    redact_uncaught()
    try:
        check_encoding()
        with stoppable():
            status = _run_command()
        raise SystemExit(status)
    except InputError as error:
        print(f"helm-longctx: error: {explain(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        # A reader such as `head` closed the pipe. If stderr stays open, Python prints this error again at exit.
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:
        if error.filename is not None:
            where = f"{shorten(str(error.filename), 200)}: "
        else:
            where = ""
        about = f"{where}{error.strerror}; name another path, or make it readable and writable"
        if error.errno in DISK_FULL:
            about = (
                f"{where}{error.strerror}; make room, then run the same command again"
            )
        if not error.strerror:  # raised by a network library, not by the file system
            about = f"a download failed: {shorten(str(error), 200)}; check the network, or provide the file offline"
        print(f"helm-longctx: error: {redact(about)}", file=sys.stderr)
        raise SystemExit(2) from None


def _run_command() -> int:
    try:
        # Not `app()`: that would replace our hook for uncaught exceptions that redacts secrets.
        status: int = get_command(app)(prog_name=_PROGRAM, standalone_mode=False) or 0
    except typer.Abort:  # for Ctrl-C, in older versions of Typer
        raise KeyboardInterrupt from None
    except _UsageError as usage_error:
        error: Any = usage_error
        # A command without its sub-command shows its help. Typer makes this an error.
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return 2
        # Typer's message in one line, with the most similar name, or with the command that prints the help.
        path = error.ctx.command_path if error.ctx else _PROGRAM
        nearest = suggest(
            getattr(error, "option_name", ""),
            getattr(error, "possibilities", None) or [],
        )
        if nearest:
            text = f"{error.message}{nearest}"
        else:
            text = error.format_message().rstrip(".")
        text = _LONG_WORD.sub(r"\1…", text)
        # Typer itself suggests a similar command.
        help_text = "" if text.endswith("?") else f"; see {path} --help"
        command = path.removeprefix(_PROGRAM).strip()
        raise InputError(
            ": ".join(filter(None, (command, f"{text}{help_text}")))
        ) from None
    if status == _INTERRUPTED:  # for Ctrl-C, in newer versions of Typer
        raise KeyboardInterrupt
    return status
