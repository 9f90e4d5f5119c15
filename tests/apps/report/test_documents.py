"""Tests of reports as one document, and of the errors of the command."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from helm_longctx.apps.report.build import write_report
from helm_longctx.documents.numbers import escape_markdown, escape_tex
from helm_longctx.errors import InputError
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.support.commands import Command


def test_markdown(suite: Path, tmp_path: Path) -> None:
    """The Markdown tables are well formed, and each plot and data file that is named exists, with Chinese titles as text."""
    path = write_report(
        suite, BENCHMARKS, tmp_path, "markdown", published=False, server=""
    )
    text = path.read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert len(tables) >= 3
    for table in tables:
        heading, rule, *rows = table.splitlines()
        assert re.fullmatch(r"\|( -+:? \|)+", rule)
        assert {row.replace(r"\|", "").count("|") for row in (heading, *rows)} == {
            heading.count("|")
        }
    files = re.findall(r"\]\(((?:plots|data)/[^)]+)\)", text)
    assert files
    assert all((tmp_path / file).is_file() for file in files)
    assert all(
        "<svg" in plot.read_text(encoding="utf-8")[:200]
        for plot in (tmp_path / "plots").iterdir()
    )


def test_latex(suite: Path, tmp_path: Path) -> None:
    """The LaTeX environments are closed, and every special character of a text is escaped."""
    path = write_report(
        suite, [find_benchmark("helmet")], tmp_path, "latex", published=False, server=""
    )
    text = path.read_text(encoding="utf-8")
    assert (
        re.findall(r"\\begin\{(\w+)\}", text).count("longtable")
        == text.count(r"\end{longtable}")
        >= 3
    )
    assert not re.search(
        r"(?<!\\)[_#&](?![^&\n]*\\\\|[^\n]*&|[^\n]*pdf)",
        text.split(r"\maketitle")[1].replace(" & ", ""),
    )
    plots = re.findall(r"\{(plots/[^}]+)\}", text)
    assert all((tmp_path / plot).read_bytes().startswith(b"%PDF") for plot in plots)


def test_escapes() -> None:
    """Markup of a format in a text is escaped."""
    assert escape_markdown("a|b <i> *x*\n# y") == r"a\|b \<i\> \*x\* \# y"
    assert (
        escape_tex("50 % of a_b & {c} \\d")
        == r"50 \% of a\_b \& \{c\} \textbackslash{}d"
    )


def test_pdf_needs_a_browser(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says that a PDF needs a browser, and names other formats."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        InputError,
        match="format=pdf needs Chromium or Chrome; install it, or use markdown",
    ):
        write_report(suite, BENCHMARKS, tmp_path, "pdf", published=False, server="")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--to", "x", "--server", "localhost"],
            "report: server='localhost' is invalid; give an address",
        ),
        ([], "report: to is missing; without --suite, name a folder with --to"),
        (
            ["--to", "x", "--no-published"],
            "report has no scores to report; first use helm-longctx run with it",
        ),
        (["--suite", "nosuch"], "suite='nosuch' is not in benchmark_output/runs"),
    ],
)
def test_mistakes(arguments: list[str], message: str, command: Command) -> None:
    """Each mistake gives one line, and nothing is written."""
    assert command("report", *arguments) == 2
    assert message in command.err
    assert command.err.count("\n") == 1
    assert not Path("x").exists()
