"""Tests that mistakes in arguments of `serve` and `export` and in names of suites end in one line."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from helm_longctx._version import VERSION
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.results.suite import (
    PAGES_RECORD,
    find_chosen_schema,
    needs_pages,
    report_path,
)
from tests.support.commands import Command
from tests.support.fabricate_runs import long_prompts, write_run

ENTRY = "helmet_recall:task=json_kv,length=8k,model=longctx/null"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Write a suite with one run."""
    return write_run(
        tmp_path / "benchmark_output/runs/mine", ENTRY, long_prompts(2, 500)
    ).parent


def told(command: Command, *arguments: object) -> str:
    """Return the single line of an error."""
    assert command(*arguments) == 2
    assert command.out == ""
    assert command.err.count("\n") == 1
    return command.err


def test_pages_that_are_older_than_what_they_show(
    command: Command, suite: Path
) -> None:
    """A suite has pages until one of its runs, or its report, is newer."""
    (stats,) = suite.glob("*/stats.json")
    report = report_path(Path("benchmark_output"), "mine") / "index.html"
    report.parent.mkdir(parents=True)
    assert needs_pages(suite)
    for newer in (lambda: stats.touch(), lambda: report.write_text("")):
        assert command("summarize", "--suite", "mine") == 0
        assert not needs_pages(suite)
        time.sleep(0.05)
        newer()
        assert needs_pages(suite)


def test_pages_with_a_schema_of_the_users(command: Command, suite: Path) -> None:
    """Pages keep the user's schema until another one is given or none, and HELM's own pages are left alone."""
    assert find_chosen_schema(suite) is None
    assert command("schema", "--suite", "mine") == 0
    Path("own.yaml").write_text(command.out)
    assert command("summarize", "--suite", "mine", "--schema-path", "own.yaml") == 0
    assert find_chosen_schema(suite) == Path("own.yaml").resolve()
    assert command("summarize", "--suite", "mine") == 0
    assert "own.yaml, the schema of the last summarize" in command.err
    assert find_chosen_schema(suite) == Path("own.yaml").resolve()
    Path("own.yaml").rename("moved.yaml")
    assert "own.yaml" in told(command, "summarize", "--suite", "mine")
    assert command("summarize", "--suite", "mine", "--without-schema") == 0
    assert find_chosen_schema(suite) is None
    (suite / PAGES_RECORD).unlink()
    assert not needs_pages(suite)


@pytest.mark.parametrize("command_name", ["summarize", "report", "export"])
@pytest.mark.parametrize("kept", [0, 20])
@pytest.mark.parametrize("name", ["stats.json", "run_spec.json"])
def test_a_damaged_run_costs_only_itself(
    command_name: str,
    name: str,
    kept: int,
    command: Command,
    suite: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run whose files are cut off is left out with a warning, and the others are shown."""
    other = ENTRY.replace("null", "lexical")
    stats = write_run(suite, other, long_prompts(2, 500)) / name
    stats.write_bytes(stats.read_bytes()[:kept])
    assert command(command_name, "--suite", "mine") == 0
    assert "left out" in caplog.text
    assert str(stats.relative_to(Path.cwd())) in caplog.text


def test_a_suite_of_damaged_runs_alone_is_an_error(
    command: Command, suite: Path
) -> None:
    """A suite in which no run can be read ends in one line."""
    (stats,) = suite.glob("*/stats.json")
    stats.write_text("")
    assert "stats.json cannot be read" in told(command, "report", "--suite", "mine")


def test_a_used_port(command: Command, suite: Path) -> None:
    """`serve` names a port that is in use, and says what to do."""
    (suite / "groups.json").write_text("[]")
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        line = told(command, "serve", "--suite", "mine", "--port", port)
    assert (
        f"port={port} cannot be used (Address already in use); choose another with --port"
        in line
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mien", "suite='mien' is not in benchmark_output/runs; give mine\n"),
        ("zzz", "suite='zzz' is not in benchmark_output/runs; give mine\n"),
        (
            "x" * 5000,
            "…' is invalid; give a folder's name of at most 255 bytes, without '/', line breaks and other control characters\n",
        ),
        (
            "a/b",
            "suite='a/b' is invalid; give a folder's name of at most 255 bytes, without '/', line breaks and other control characters\n",
        ),
    ],
)
def test_suites_names(name: str, message: str, command: Command, suite: Path) -> None:
    """An unknown suite ends in one line that suggests the suite with the nearest name."""
    for arguments in (["serve"], ["export"], ["summarize"], ["schema"]):
        line = told(command, *arguments, "--suite", name)
        assert line.endswith(message)
        assert len(line) < 300


@pytest.mark.parametrize(
    "name", ["run_spec", "stats", "per_instance_stats", "scenario_state"]
)
def test_export_of_a_damaged_run(name: str, command: Command, suite: Path) -> None:
    """`export` names the damaged file of a run in one line."""
    (path,) = suite.glob(f"*/{name}.json")
    path.write_bytes(path.read_bytes()[:-30])
    command("export", "--suite", "mine")
    assert command.err.count("\n") == 1
    assert (
        f"{path.relative_to(suite.parent.parent.parent)} cannot be read ("
        in command.err
    )


@pytest.mark.parametrize(
    ("blocked", "arguments", "message"),
    [
        ("file/", ["--to", "file/x"], "'file/x': Not a directory; name another path"),
        ("out/scores.csv/", [], "to='out/scores.csv' is a folder"),
        ("out/scores.png/", [], "plot='out/scores.png' is a folder"),
        (
            None,
            ["--plot", f"{'x' * 300}.png"],
            "': File name too long; name another path",
        ),
    ],
)
def test_places_that_cannot_be_written(
    blocked: str | None,
    arguments: list[str],
    message: str,
    command: Command,
    suite: Path,
) -> None:
    """`export` names a place that cannot be written in one line."""
    if blocked == "file/":
        Path("file").write_text("")
    elif blocked:
        Path(blocked).mkdir(parents=True)
    assert (
        command(
            "export",
            "--suite",
            "mine",
            *(arguments if "--to" in arguments else ["--to", "out", *arguments]),
        )
        == 2
    )
    assert command.err.count("\n") == 1
    assert message in command.err


def test_export(command: Command, suite: Path) -> None:
    """`export` writes all files and lists them with their numbers of rows."""
    assert command("export", "--suite", "mine", "--to", "out") == 0
    assert command.out.split("\n")[:-1] == [
        "out/scores.csv: 1 row", "out/averages.csv: 2 rows", "out/answers.csv: 2 rows", "out/wide_helmet.csv: 1 row",
        "out/scores.png",
    ]  # fmt: skip
    header, row = (Path("out/scores.csv").read_text("utf-8-sig")).splitlines()
    columns = [
        "score",
        "instances",
        "caveats",
        "package",
        "comparability",
        "judge",
        "low",
        "high",
        "error",
        "failed",
    ]
    columns += ["folder", "counts", "published_model"]
    assert header.split(",")[-len(columns) :] == columns
    assert f",longctx_score,1.0,2,,{VERSION},{HELMET.comparability}," in row
    low, high, error, failed = map(float, row.split(",")[-7:-3])
    assert 0 < low < high == 1
    assert (error, failed) == (0, 0)


def test_export_of_a_suite_without_lengths(command: Command, tmp_path: Path) -> None:
    """Without `--plot`, tables of a suite without lengths are written without a plot; with it, nothing is written."""
    write_run(
        tmp_path / "benchmark_output/runs/mine",
        "longbench:task=qasper,model=longctx/null",
        long_prompts(2, 500),
    )
    assert command("export", "--suite", "mine", "--to", "out") == 0
    assert command.out.startswith(
        "no plot: the suite has no scores by length to draw\nout/scores.csv: "
    )
    assert not Path("out/scores.png").exists()
    line = told(command, "export", "--suite", "mine", "--to", "new", "--plot", "x.svg")
    assert "the suite has no scores by length to draw" in line
    assert not list(Path("new").iterdir())
