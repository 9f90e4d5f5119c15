"""Tests of commands whose caller has closed standard streams, or has a locale without UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import helm_longctx as lc
from helm_longctx import environment

RUN = "run --entry helmet_recall:task=json_kv,length=4k,num_samples=1 --model longctx/null --suite s"


def give(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Give a line to a shell, in which `$C` is the command."""
    command = f"{sys.executable} -m helm_longctx"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={**os.environ, "C": command, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_closed_streams(tmp_path: Path) -> None:
    """A run is made without standard streams, and its files have nothing of what it would print."""
    done = give(f"$C {RUN} <&- >&- 2>&-", tmp_path)
    assert done.returncode == 0
    assert [*tmp_path.glob("benchmark_output/runs/s/*/stats.json")]
    printed = ("Model", "helm-longctx")
    for path in tmp_path.glob("benchmark_output/runs/s/*/*.jsonl"):
        assert not path.read_text(encoding="utf-8").startswith(printed)


@pytest.mark.parametrize("streams", [">&-", "2>&-"])
def test_some_closed_streams(streams: str, tmp_path: Path) -> None:
    """A command ends with its status, whichever streams are closed, and prints no traceback to the others."""
    done = give(f"$C list {streams}; echo status $?", tmp_path)
    assert done.stdout.endswith("status 0\n")
    assert "Traceback" not in done.stderr


def test_a_locale_without_utf_8(tmp_path: Path) -> None:
    """A command says in one line that the locale has no UTF-8, and the variable that it names helps."""
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = give("$C list --all", tmp_path, **variables)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("helm-longctx: error: the locale's encoding is ")
    assert line.endswith("set PYTHONUTF8=1")
    assert (
        give("$C list --all", tmp_path, **{**variables, "PYTHONUTF8": "1"}).returncode
        == 0
    )


def test_a_program_whose_locale_has_no_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """`evaluate` refuses a locale without UTF-8, too."""
    monkeypatch.setattr(
        environment.locale, "getpreferredencoding", lambda *_: "latin-1"
    )
    with pytest.raises(lc.InputError, match="the locale's encoding is latin-1"):
        lc.evaluate(str, "helmet_recall:task=json_kv", "4k")
