"""No output of a command has the level's old words after the one constant of the level has changed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AT_90 = """
import sys
from pathlib import Path

from helm_longctx.results.statistics import level

source = Path(level.__file__).read_text()
assert "LEVEL = 0.95\\n" in source
exec(source.replace("LEVEL = 0.95\\n", "LEVEL = 0.9\\n"), level.__dict__)

import vl_convert

from helm_longctx.cli.main import main

vl_convert.vegalite_to_pdf = lambda *spec, **options: b"%PDF"

for line in Path("commands").read_text().splitlines():
    sys.argv = ["helm-longctx", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0, (end.code, line)
"""
"""Changes the constant before anything has read it, and gives commands in one process.

Plots in PDF are compressed, so that no words are found in them. Those in SVG are drawn.
"""

SUITE = "--suite mine -o out"

COMMANDS = [
    f"summarize {SUITE}",
    f"compare {SUITE} acme/one acme/two",
    f"export {SUITE} --format latex --to latex",
    f"export {SUITE} --format markdown --to markdown",
    f"export {SUITE} --format every-eval-ever --to every",
    f"export {SUITE} --format eval-results --to results",
    *(
        f"report {SUITE} --no-published --format {kind} --to {kind}"
        for kind in ("html", "markdown", "latex", "pdf")
    ),
    "gate longctx/lexical longctx/lexical --suite gate -o out"
    " --entry helmet_recall:task=json_kv,length=4k,num_samples=24 -m 6 --max-drop 90",
    "compaction --quiet --to compaction",
]

BROWSER = """#!/bin/sh
for option; do
  case "$option" in
    --print-to-pdf=*) pdf="${option#--print-to-pdf=}" ;;
    file://*) page="${option#file://}" ;;
  esac
done
cp "$page" "$pdf"
"""
"""Copies the page that Chromium would print."""

SHOWN = r"(?<![\d.]){level}(?:\\,|[ \N{{NO-BREAK SPACE}}])\\?%"
"""A level as texts, Markdown, LaTeX and HTML write it. Ticks of plots have no space before the percent sign."""

OLD = re.compile(SHOWN.format(level=95))
NEW = re.compile(SHOWN.format(level=90))

WITH_LEVEL = [
    "printed",
    "out/runs/mine/groups/helmet.json",
    "latex/scores.tex",
    "markdown/scores.md",
    "results/acme_one/.eval_results/helmet.yaml",
    "html/index.html",
    "html/helmet-length.html",
    "markdown/report.md",
    "latex/report.tex",
    "pdf/report.pdf",
    "out/gates/gate/index.html",
    "compaction/index.html",
]
"""Files that say at which level their intervals are."""


def test_no_output_has_the_old_level(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a level of 90 %, no table, page, document or export says 95 %, and each kind of them says 90 %."""
    shutil.copytree(suite, tmp_path / "out/runs/mine")
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    (tmp_path / "commands").write_text("\n".join(COMMANDS))
    monkeypatch.setenv("CHROMIUM", str(browser))
    done = subprocess.run(
        [sys.executable, "-c", AT_90],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "printed").write_text(done.stdout + done.stderr)
    old = []
    for path in tmp_path.rglob("*"):
        if path.is_file() and OLD.search(path.read_text("utf-8", "replace")):
            old.append(path.relative_to(tmp_path))
    assert old == []
    for name in WITH_LEVEL:
        assert NEW.search((tmp_path / name).read_text("utf-8")), name
