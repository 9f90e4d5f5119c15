"""Tests every format of export with names of models that are markup, commands or paths."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from helm_longctx.apps.exchange.command import EXPORTERS, export_suite
from helm_longctx.apps.exchange.export import LONGEST_NAME, folder_name
from helm_longctx.documents.document import unquote_formula
from helm_longctx.documents.numbers import one_line
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.commands import Command
from tests.support.fabricate_runs import long_prompts, write_run
from tests.support.programs import run

NAMES = (
    r"org/\input{/etc/passwd}", r"org/$^_&#%{}~\\", "org/<script>alert(1)</script>", "org/]]>", "org/a\nb\r\n\r\nc", "org/\u202eevil\u2066",
    f"org/{'x' * 300}", "../..", "..", "org/../../../../evil", "org/a|b`c*d[e](http://x)", "[2cm]", "*", "org/{{7*7}}<%=1%>", "org/\x1b[31m",
    "org/文😀", "-/--help", "org/[/red]", "org/:smile:", "org/a\\b", "org/\x00", "org/a\ufffe",
)  # fmt: skip

COMMANDS = {
    *(
        "begin",
        "end",
        "centering",
        "caption",
        "toprule",
        "midrule",
        "bottomrule",
        "dag",
        "tiny",
    ),
    "textbackslash",
    "textasciitilde",
    "textasciicircum",
}
"""The commands of LaTeX that a table may have."""


def write_runs(folder: Path, entry: str) -> None:
    """Write a run of each model."""
    for number, name in enumerate(NAMES):
        run = write_run(folder, f"{entry},model=longctx/null", long_prompts(2, 1000))
        for path in run.glob("*.json"):
            text = path.read_text().replace('"longctx/null"', json.dumps(name))
            path.write_text(text.replace("longctx_null", f"m{number}"))
        run.rename(run.with_name(f"{run.name.rpartition('=')[0]}=m{number}"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a suite with a run of each model."""
    folder = tmp_path_factory.mktemp("names") / "benchmark_output/runs/s"
    write_runs(folder, "helmet_recall:task=json_kv,length=8k")
    return folder


def export(suite: Path, form: str, folder: Path) -> list[Path]:
    """Export to a deep folder, check that no file is outside it, and return the files."""
    target = folder / "a/b/c/d/e/out"
    files = [path for path, _ in export_suite(form, suite, BENCHMARKS, target)]
    assert {path for path in folder.rglob("*") if path.is_file()} == {
        path for path in target.rglob("*") if path.is_file()
    }
    assert all(target in path.parents for path in files)
    return files


@pytest.mark.parametrize("form", EXPORTERS)
def test_files_stay_in_their_folder(form: str, suite: Path, tmp_path: Path) -> None:
    """The files of an export stay in its folder whatever a model is called, and no model shares a folder with another one."""
    if form == "official":
        # Only some benchmarks have such files, and the suite has none of them.
        suite = tmp_path / "benchmark_output/runs/official"
        write_runs(suite, "lv_eval:dataset=factrecall_en,length=16k")
    files = export(suite, form, tmp_path / "out")
    assert all(path.is_file() for path in files)
    assert len(set(files)) == len(files)
    if form in ("every-eval-ever", "lm-eval"):
        assert len({path.parent for path in files}) == len(NAMES)


def test_a_table_has_the_names_as_they_are(suite: Path, tmp_path: Path) -> None:
    """A program that reads CSV gets each name unchanged, except for the quotation mark in front of a formula."""
    path = next(
        path for path in export(suite, "csv", tmp_path) if path.name == "scores.csv"
    )
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert {unquote_formula(row["model"]) for row in csv.DictReader(file)} == set(
            NAMES
        )


def test_latex(suite: Path, tmp_path: Path) -> None:
    """No name in LaTeX is a command, ends a row, or becomes an argument of the end of the row before it."""
    (path,) = export(suite, "latex", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= COMMANDS
    rows = text.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0].split("\n")
    assert len(rows) == len(NAMES)
    cells = {len(re.findall(r"(?<!\\)&", row)) for row in rows}
    assert len(cells) == 1
    for row in rows:
        assert re.search(r" \\\\$", row)
        assert not re.match(r"[\[*]", row)
        name = re.sub(
            r"\\text[a-z]+\{\}|\\[&%$#_{}]|^\{\}", "", row.partition(" & ")[0]
        )
        assert not re.search(
            r"[\\&%$#_{}~^\x00-\x1f\u2028\u202a-\u202e\u2066-\u2069]", name
        ), row


def test_markdown(suite: Path, tmp_path: Path) -> None:
    """Each model has one row with all cells in Markdown, and no name is a link, HTML or code."""
    (path,) = export(suite, "markdown", tmp_path)
    rows = [
        row
        for row in path.read_text(encoding="utf-8").split("\n")
        if row.startswith("|")
    ][2:]
    assert len(rows) == len(NAMES)
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    for row in rows:
        name = re.sub(r"\\.", "", row.split(" | ")[0].removeprefix("| "))
        assert not re.search(r"[<>`*\[\]|\x00-\x1f\u202a-\u202e\u2066-\u2069]", name), (
            row
        )


@pytest.mark.usefixtures("suite")
def test_names_are_no_markup_of_the_terminal(command: Command, suite: Path) -> None:
    """Tables in the terminal show names unchanged; `[/red]` ended `compare` and `summarize` with a traceback before."""
    output = suite.parents[1]
    assert (
        command("compare", "org/[/red]", "org/:smile:", "--suite", "s", "-o", output)
        == 0
    )
    assert "org/[/red]" in command.out
    assert "org/:smile:" in command.out


def test_folder_names() -> None:
    """A folder name is one part of a path with a length that file systems accept, and different long names stay different."""
    assert folder_name("a b.c-d_é文") == "a b.c-d_é文"
    assert [folder_name(name) for name in ("", ".", "..", "a/../b", "\\", "\n")] == [
        "_",
        "_",
        "__",
        "a_.._b",
        "_",
        "_",
    ]
    long = folder_name("文" * 300)
    other = folder_name("文" * 301)
    assert long != other
    assert max(len(long.encode()), len(other.encode())) <= LONGEST_NAME


def test_texts_in_one_line() -> None:
    """One line of text has no line breaks, no invisible characters, and none that XML forbids."""
    assert one_line(" a\n\u2028b\u202e\ud800\x00\uffff ") == "a b"


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_plots(form: str, suite: Path, tmp_path: Path) -> None:
    """A report draws all plots with hostile names; a control character in a name ended the process before."""
    done = run("helm-longctx", "report", "--suite", "s", "-o", suite.parents[1], "--to", tmp_path / form,
               "--format", form, "--no-published", folder=tmp_path)  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert len(list((tmp_path / form / "plots").iterdir())) >= 2
