"""Tests of `helm-longctx run` on a server, interrupted and repeated, as docs/running.md describes it."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from helm_longctx.models.baselines import lexical
from helm_longctx.runs.journal import NAME
from tests.e2e.browser import served
from tests.support.programs import run, start
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import asked_again, serve
from tests.support.servers.models import Model

KEY = "sk-mine-0123456789abcdef"

CONFIG = """\
suite: first
tasks: [helmet_recall:task=json_kv]
lengths: [8k]
arguments: {{num_samples: 6}}
models:
  - name: my/tiny
    url: {address}
    type: chat
    api_key_env: MY_KEY
    context: 32k
limits: {{request_timeout: 600, max_retries: 0}}
parallelism: 2
"""


def test_a_run_is_interrupted_and_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted and repeated run keeps its answers, asks no question again, and prints scores and the next commands."""
    monkeypatch.setenv("MY_KEY", KEY)
    with serve(lexical.answer, models={"tiny": Model()}) as server:
        (tmp_path / "run.yaml").write_text(CONFIG.format(address=server.address))
        # Two calls ask what the server offers, and three are answered.
        server.plan = lambda prompt, before: (
            Fault.TIMEOUT if len(server.calls) >= 5 else None
        )
        process = start(
            "helm-longctx", "run", "run.yaml", folder=tmp_path, output=tmp_path / "log"
        )
        deadline = time.monotonic() + 120
        while len(server.calls) < 7 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        log_text = (tmp_path / "log").read_text()
        assert "3 answers are kept in" in log_text
        assert "Traceback" not in log_text
        server.plan = faults.none
        again = run("helm-longctx", "run", "run.yaml", folder=tmp_path)
        assert again.returncode == 0, again.stderr
        assert asked_again(server.calls[2:]) == []
        assert len([call for call in server.calls if call.fault is None]) == 2 + 6
    assert again.stdout.startswith("HELMET 8k")
    assert re.search(r"│ +100\.0(?: †)? \(", again.stdout)
    for line in (
        "helm-longctx serve --suite first",
        "helm-longctx report --suite first",
        "1 of 1 runs are in",
    ):
        assert line in again.stdout
    (states,) = tmp_path.glob("benchmark_output/runs/first/*/scenario_state.json")
    assert len(json.loads(states.read_text())["request_states"]) == 6
    assert not (states.parent / NAME).exists()
    assert not any(
        KEY.encode() in path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    )
    # `serve` writes the pages, which a run needs not.
    assert not (states.parents[1] / "groups.json").exists()
    with (
        served(tmp_path, "first") as address,
        urlopen(
            f"{address}/benchmark_output/runs/first/{states.parent.name}/display_predictions.json"
        ) as page,
    ):
        assert len(json.load(page)) == 6
