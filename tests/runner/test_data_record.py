"""A run records the digests of the files that its questions were read from, and one of other files than pinned is marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.aa_lcr.tasks import DOCUMENTS_1_1, QUESTIONS_1_1
from helm_longctx.data.download import sha256_of
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import read_results
from helm_longctx.run_settings import MIRROR
from helm_longctx.runs.files import DATA, read_data
from helm_longctx.tasks.registry import BENCHMARKS
from tests.benchmarks.aa_lcr.fabricate import build_version_1_1
from tests.runner.making import make_run


def test_a_run_records_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record has the files of the run, and the score of fabricated files is not taken for one of the pinned ones."""
    mirror = tmp_path / "mirror"
    build_version_1_1(mirror)
    monkeypatch.setenv(MIRROR, str(mirror))
    run = make_run(
        tmp_path,
        "aa_lcr_v1_1:judge=none,model=longctx/lexical,model_deployment=test/cached",
    )
    digests = {
        path: sha256_of(mirror / path)
        for path in (QUESTIONS_1_1.path, DOCUMENTS_1_1.path)
    }
    assert read_data(run) == digests
    (result,) = read_results(run.parent, BENCHMARKS)
    marks = [
        text for text in describe(result.caveats) if text.startswith("another version")
    ]
    assert len(marks) == 2
    pinned = json.loads((run / DATA).read_text())
    pinned[QUESTIONS_1_1.path]["sha256"] = QUESTIONS_1_1.sha256
    pinned[DOCUMENTS_1_1.path]["sha256"] = DOCUMENTS_1_1.sha256
    (run / DATA).write_text(json.dumps(pinned))
    (result,) = read_results(run.parent, BENCHMARKS)
    assert not [
        text for text in describe(result.caveats) if text.startswith("another version")
    ]
