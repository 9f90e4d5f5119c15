"""Tests of pages on a full disk. A limit on the size of files stands for it, because that needs no root."""

from __future__ import annotations

import resource
import sys
from functools import partial
from pathlib import Path

from tests.apps.report.suites import write_run
from tests.support import programs

LIMIT = 10_000
"""Bytes of a file. The schema of the pages has more."""


def limit_files() -> None:
    """Limit the files of this process. Python would write cut modules, which later processes cannot import."""
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def test_pages_can_be_written_again(tmp_path: Path) -> None:
    """A summarize that does not fit on the disk leaves no part of a file that the next one reads."""
    write_run(
        tmp_path / "benchmark_output/runs/s",
        "helmet_recall:task=json_kv,length=8k,model=acme/m",
        "acme/m",
        skill=0.7,
        instances=2,
        text="",
    )
    summarize = partial(
        programs.run, "helm-longctx", "summarize", "--suite", "s", folder=tmp_path
    )
    failed = summarize(prepare=limit_files)
    assert failed.returncode == 2
    assert "File too large" in failed.stderr
    again = summarize()
    assert again.returncode == 0, again.stderr
