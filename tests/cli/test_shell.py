"""Tests of the exit statuses, completion, colours and suggestions that `helm-longctx` gives in a shell."""

from __future__ import annotations

import ast
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from rich.table import Table as Grid

from helm_longctx.cli.main import EXIT_STATUSES
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from tests.support.commands import Command
from tests.support.programs import BIN, run

SOURCE = Path(__file__).parents[2] / "src/helm_longctx"
FORCED = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}


def test_every_exit_status_is_documented() -> None:
    """Every exit status that the code uses is in `EXIT_STATUSES` and in the reference page."""
    calls = [
        node
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func)
        in ("SystemExit", "typer.Exit", "sys.exit", "os._exit")
    ]
    statuses = {
        node.args[0].value
        for node in calls
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    assert {1, 2, 130} <= statuses <= set(EXIT_STATUSES)
    page = (SOURCE.parents[1] / "docs/reference/commands.md").read_text(
        encoding="utf-8"
    )
    assert all(
        f"| {status} | {meaning} |" in page for status, meaning in EXIT_STATUSES.items()
    )


def test_suites_are_completed(tmp_path: Path) -> None:
    """The shell completes names of suites from the output folder that the command line names."""
    for name in ("alpha", "alpine", "beta"):
        (tmp_path / "out/runs" / name).mkdir(parents=True)
    (tmp_path / "out/runs/latest").symlink_to("alpha")
    line = "helm-longctx summarize -o out --suite al"
    environment = {
        "_HELM_LONGCTX_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": "5",
    }
    assert run("helm-longctx", folder=tmp_path, **environment).stdout.split() == [
        "alpha",
        "alpine",
    ]


def test_completion_is_printed(tmp_path: Path) -> None:
    """`helm-longctx` prints the completion script that a shell reads."""
    printed = run("helm-longctx", folder=tmp_path, _HELM_LONGCTX_COMPLETE="source_bash")
    assert (
        "complete -o default -F _helm_longctx_completion helm-longctx" in printed.stdout
    )


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        (["summarise", "--suite", "s"], "summarize"),
        (["summarize", "--suit", "s"], "--suite"),
        (["prompts", "helmet_recal:length=8k"], "did you mean helmet_recall?"),
        (["models", "ad", "x/y"], "add"),
    ],
)
def test_typos_get_a_suggestion(command: Command, typo: list[str], meant: str) -> None:
    """A typo in a command, option, sub-command or run entry gets a suggestion."""
    assert command(*typo) == 2
    assert meant in command.err


def test_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables have colours only on a terminal, and have none if NO_COLOR is set (no-color.org)."""
    monkeypatch.setattr(
        "helm_longctx.documents.terminal.Grid", partial(Grid, header_style="red")
    )
    table = text_table("", ["red"], [])
    printed = {}
    for variable in ("NO_COLOR", *FORCED):
        monkeypatch.delenv(variable, raising=False)
    for name, environment in {"terminal": {}, "NO_COLOR": {"NO_COLOR": "1"}}.items():
        with monkeypatch.context() as patch:
            for variable, value in {**FORCED, **environment}.items():
                patch.setenv(variable, value)
            print_table(table)
            printed[name] = capsys.readouterr().out
    print_table(table)
    assert "\x1b[" not in capsys.readouterr().out
    assert "31m" in printed["terminal"]
    assert "31m" not in printed["NO_COLOR"]


def test_help_without_color(tmp_path: Path) -> None:
    """The help has colours if they are forced, and none if NO_COLOR is set as well."""
    without = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    helps = {
        name: subprocess.run(
            [str(BIN / "helm-longctx"), "serve", "--help"],
            env={**without, **FORCED, **more},
            capture_output=True, text=True, check=True,
        ).stdout
        for name, more in {"forced": {}, "NO_COLOR": {"NO_COLOR": "1"}}.items()
    }  # fmt: skip
    assert "\x1b[1;36m" in helps["forced"]
    assert "36m" not in helps["NO_COLOR"]


def test_names_of_models_do_not_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Control characters in a table's title, headings and cells are printed as escapes, and colours of rich are not."""
    table = text_table(
        "a\x1b[31mtitle", ["m/\x1b]0;owned\x07"], [["right\u202eto left\nnext line"]]
    )
    print_table(table)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\x07" not in printed
    for text in (
        r"a\x1b[31mtitle",
        r"m/\x1b]0;owned\x07",
        r"right\u202eto left ",
        "next line",
    ):
        assert text in printed
