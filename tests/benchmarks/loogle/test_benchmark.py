"""Groups and hostile answers of LooGLE."""

from __future__ import annotations

from pathlib import Path

from helm_longctx.benchmarks.loogle import BENCHMARK
from helm_longctx.benchmarks.loogle.tasks import CLOZE
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.loogle.fabricate import build_loogle


def test_groups(tmp_path: Path) -> None:
    """Questions on a text are a group."""
    task = BENCHMARK.task("longdep_qa")
    root = DataRoot(build_loogle(tmp_path), mirror=True)
    examples = list(load_examples(task, Settings(None), root))
    assert [example.group for example in examples] == [
        group
        for row in range(0, len(examples), 5)
        for group in [examples[row].group] * 5
    ]


def test_code_in_an_answer_is_not_run(tmp_path: Path) -> None:
    """An answer that is a Python call is wrong, and the call is not made."""
    target = tmp_path / "x"
    scores = BENCHMARK.task(CLOZE).score(
        {
            "prediction": f"dict([('<mask-0>', open({str(target)!r}, 'w').name)])",
            "references": ['{"<mask-0>": "x"}'],
        }
    )
    assert scores["exact_match"] == 0
    assert not target.exists()
