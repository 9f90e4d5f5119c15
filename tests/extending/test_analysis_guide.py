"""Follows docs/adding-an-analysis.md: a package of its own, and a folder beside our analyses."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.apps.report.suites import write_suite
from tests.extending.guide import Guide, copy_repository, run_in_copy

GUIDE = Guide("adding-an-analysis.md")
FOLDER = "spread/"
MOST_LINES = 120
"""Of all files in an analysis' folder."""

SKILLS = {"my/strong": 0.95, "my/weak": 0.3}


def write_runs(folder: Path) -> None:
    """Write the suite of the guide's commands: two models of different skill at two lengths."""
    entries = ["helmet_recall:length=8k", "helmet_recall:length=16k"]
    write_suite(folder / "benchmark_output/runs/lc", entries, SKILLS, 6)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Write the guide's files, as pip would install the package, run its commands, and return what they print."""
    folder = tmp_path_factory.mktemp("guide")
    GUIDE.write(folder)
    info = folder / "spread-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spread\nVersion: 1\n")
    points = (
        GUIDE.files["pyproject.toml"]
        .partition("[project.entry-points.")[2]
        .replace('"', "")
    )
    (info / "entry_points.txt").write_text(f"[{points}")
    write_runs(folder)
    return folder, GUIDE.run(folder, folder)


def test_the_command_prints_the_table(followed: tuple[Path, str]) -> None:
    """The table names the better model, and is what the guide shows."""
    assert [line for line in GUIDE.output if line not in followed[1]] == []
    assert "my/strong" in followed[1]
    assert "my/weak" not in followed[1]


def test_the_report_has_the_page(followed: tuple[Path, str]) -> None:
    """The page is in the navigation of the report, and its CSV has the unrounded differences, the largest first."""
    (page,) = followed[0].glob("benchmark_output/reports/lc/*spread.html")
    assert "Where do the models differ most?" in page.read_text(encoding="utf-8")
    assert page.name in (page.parent / "index.html").read_text(encoding="utf-8")
    (data,) = page.parent.glob("data/*spread*.csv")
    rows = list(csv.DictReader(data.read_text(encoding="utf-8-sig").splitlines()))
    assert {(row["Length"], row["Best model"]) for row in rows} == {
        ("8k", "my/strong"),
        ("16k", "my/strong"),
    }
    spreads = [float(row["Spread"]) for row in rows]
    assert spreads == sorted(spreads, reverse=True)
    assert [float(row["Best"]) - float(row["Worst"]) for row in rows] == pytest.approx(
        spreads
    )


def test_a_folder_beside_ours_is_enough(tmp_path: Path) -> None:
    """In a copy of the repository the folder alone adds the command, with its place in the help."""
    copy = tmp_path / "copy"
    copy.mkdir()
    copy_repository(copy)
    for path, text in GUIDE.files.items():
        if path.startswith(FOLDER):
            (copy / "src/helm_longctx/apps" / path).parent.mkdir(exist_ok=True)
            (copy / "src/helm_longctx/apps" / path).write_text(text, encoding="utf-8")
    write_runs(tmp_path)
    output = str(tmp_path / "benchmark_output")
    assert "my/strong" in run_in_copy(
        copy, "helm-longctx", "spread", "--suite", "lc", "-o", output
    )
    assert "Show how far the models of a suite lie apart" in run_in_copy(
        copy, "helm-longctx", "--help"
    )


def test_an_analysis_is_short() -> None:
    """All files of the guide's analysis together stay within a limit of lines."""
    assert (
        sum(
            text.count("\n")
            for path, text in GUIDE.files.items()
            if path.startswith(FOLDER)
        )
        <= MOST_LINES
    )
