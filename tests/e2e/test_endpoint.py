"""Tests the way from the address of a server to a leaderboard, as docs/models.md describes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from helm_longctx.models.baselines import lexical
from tests.support.programs import run
from tests.support.servers.llm import serve

KEY = "sk-mine-0123456789abcdef"
ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=my/tiny"


def test_three_commands_in_an_empty_folder(tmp_path: Path) -> None:
    """Three commands print the scores of a server's model, and the key is in the requests and in no file."""
    with serve(lexical.answer) as server:
        options = (
            "--url",
            server.address,
            "--api-key-env",
            "MY_KEY",
            "--context",
            "32k",
        )
        added = run(
            "helm-longctx",
            "models",
            "add",
            "my/tiny",
            *options,
            folder=tmp_path,
            MY_KEY=KEY,
        )
        assert added.returncode == 0, added.stderr
        server.forget()
        arguments = (
            "--run-entries",
            ENTRY,
            "--suite",
            "first",
            "-m",
            "10000",
            "-n",
            "16",
        )
        made = run("helm-run", *arguments, folder=tmp_path, MY_KEY=KEY)
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
        shown = run("helm-longctx", "summarize", "--suite", "first", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"JSON KV[^│]*┃", shown.stdout)
    assert re.search(r"│ +100\.0(?: †)? \(", shown.stdout)
    assert {(call.path, call.body["model"], call.key) for call in server.calls} == {
        ("/v1/completions", "tiny", f"Bearer {KEY}")
    }
    (states,) = tmp_path.glob("benchmark_output/runs/first/*/scenario_state.json")
    assert len(json.loads(states.read_text())["request_states"]) == 4
    assert not any(
        KEY.encode() in path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    )
