"""Tests of `helm-longctx gate` with a real language model behind proxies. They are skipped if it cannot be fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.errors import InputError
from tests.support.commands import Command
from tests.support.deployments import register_server
from tests.support.servers.llm import run
from tests.support.servers.models import Model
from tests.support.servers.proxies import REAL_PROXIES, run_proxy

pytest.importorskip("torch")
pytest.importorskip("gguf")

from tests.support.servers.real_model import RealModel, RealServer, write_questions


@pytest.fixture(scope="module")
def model() -> RealModel:
    """Return a real model, or skip the tests if it cannot be fetched."""
    try:
        return RealModel()
    except InputError as error:
        pytest.skip(f"the model cannot be fetched: {error}")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


def ask(command: Command, model: RealModel, kind: str, questions: int) -> Any:
    """Give the command with a proxy before the candidate, and return its result."""
    entry = write_questions(Path("questions"), questions)
    models = {"base": Model(), "candidate": Model()}
    with (
        run(RealServer(model, models)) as server,
        run_proxy(server.address, REAL_PROXIES[kind]) as other,
    ):
        register_server("sim/base", server.address)
        register_server("sim/candidate", other)
        command(
            "gate",
            "sim/base",
            "sim/candidate",
            f"--entry={entry}",
            "--max-drop=5",
            "-n",
            "16",
            "--quiet",
        )
    return json.loads(Path("benchmark_output/gates/gate/gate.json").read_text())


def test_another_template_is_found(command: Command, model: RealModel) -> None:
    """A server that applies another family's chat template counts other prompt tokens, which the gate names."""
    result = ask(command, model, "swaps the template", 3)
    (counts,) = (
        finding for finding in result["findings"] if finding["kind"] == "counts"
    )
    assert counts["requests"] == 3
    assert "another chat template" in counts["text"]


def test_noise_is_found(command: Command, model: RealModel) -> None:
    """A candidate that samples at a high temperature gives other answers, of which far fewer are right."""
    result = ask(command, model, "adds noise", 5)
    (part,) = result["parts"]
    assert part["difference"] < 0
    assert result["answers"][0]["equal"] < 0.5
