"""Runs that cannot be judged again."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm.common.codec import to_json

from helm_longctx.benchmarks import benchmark_of
from helm_longctx.errors import InputError
from helm_longctx.helm.run_specs import build_run_spec
from helm_longctx.protocol.entry import split_entry
from helm_longctx.running.rejudge import Rejudger
from helm_longctx.sources.root import ENVIRONMENT


@pytest.mark.parametrize("judge", [None, "longctx/lexical"])
@pytest.mark.parametrize(
    "entry", ["mrcr:needles=2,length=8k", "longproc:task=countdown,length=0.5k", "helmet_recall:length=8k"]
)
def test_a_run_that_no_judge_scores(entry: str, judge: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says so, whether a judge is named or not."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    name, arguments = split_entry(entry)
    Path("run").mkdir()
    Path("run/run_spec.json").write_text(to_json(build_run_spec(benchmark_of(name), name, **arguments)))
    with pytest.raises(InputError, match="cannot be judged, because none of its tasks has a judge") as error:
        Rejudger(Path("out"), "s", Path("local")).specs([Path("run")], judge)
    assert "\n" not in str(error.value)
