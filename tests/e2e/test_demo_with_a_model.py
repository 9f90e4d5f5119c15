"""Test of `helm-longctx demo --with-model` with a small model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helm_longctx.cli import demo
from helm_longctx.models.local.packaged import SMOLLM2
from helm_longctx.tasks.registry import BENCHMARKS
from tests.models.small_models import save_model, write_deployment
from tests.support.demos import configure


def test_demo_with_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a model the demo says how long it takes, runs it beside the baselines, and prints its scores and speed."""
    save_model(tmp_path / "weights")
    (tmp_path / "prod_env").mkdir()
    write_deployment(tmp_path / "prod_env", tmp_path / "weights")
    deployments = tmp_path / "prod_env/model_deployments.yaml"
    deployments.write_text(
        deployments.read_text().replace(
            "max_sequence_length: 500", "max_sequence_length: 8000"
        )
    )
    entries = {
        "Paths": "graphwalks:task=bfs,length=4k,num_samples=1,num_output_tokens=8"
    }
    local = {
        "models": ["local/small"],
        "packaged": SMOLLM2,
        "tokens": 3000,
        "written": 8,
        "parallelism": 1,
    }
    configure(
        monkeypatch,
        tmp_path,
        entries={"Graphs": "graphwalks:task=bfs,length=4k,num_samples=2"},
        models=["longctx/lexical"],
        with_model={**local, "entries": entries},
    )
    monkeypatch.setattr(
        demo,
        "BENCHMARKS",
        [benchmark for benchmark in BENCHMARKS if not benchmark.published()],
    )
    demo.demo(Path("out"), Path("prod_env"), with_model=True)
    printed = capsys.readouterr().out
    assert (
        "The speed of local/small on this machine is measured …\nIt reads " in printed
    )
    assert re.search(
        r"Its runs read about 3,000 and write up to 8: about \d+\.\d minutes, if the machine",
        printed,
    )
    assert re.search(
        r"local/small and the baselines.*\n[^│]*\n┃ Task .*\n[^│]*\n│ Paths │ \d+\.\d † ",
        printed,
    )
    assert re.search(
        r"In 1 prompt it read [\d,]+ tokens, of which 0 were .* seconds: \d+ tokens a second\.",
        printed,
    )
    assert len(list((tmp_path / "out/runs/demo").glob("*model=local_small"))) == 1
