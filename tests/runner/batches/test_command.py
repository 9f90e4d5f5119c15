"""`helm-longctx batch`, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.batching import collection
from helm_longctx.environment import MAX_COST
from helm_longctx.models import lexical
from tests.chaos.batches import write_deployment
from tests.cli.test_cli import Command, command  # noqa: F401  # the fixture
from tests.servers.batches import serve_batches

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=6,style=chat,model=chaos/model"


def test_from_submission_to_collection(
    command: Command,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The table has each batch; entries and names of runs select, and mistakes are one line."""
    monkeypatch.setattr(collection, "POLL", 0)
    monkeypatch.chdir(tmp_path)
    with serve_batches(lexical.answer) as server:
        write_deployment(tmp_path, server, "openai")
        common = ["--suite", "s", "--local-path", tmp_path]
        submit = ["batch", "submit", ENTRY, *common, "-m", 100]
        server.polls = 3
        assert command(*submit, "--batch-size", 4) == 0, command.err
        assert "batch batch_0: 4 requests" in caplog.text
        assert command("batch", "status", *common) == 0
        assert command.out.count("in_progress") == 2
        assert command("batch", "collect", ENTRY, *common, "--wait") == 0, command.err
        assert command.out.count("collected") == 2
        assert command("batch", "status", ENTRY.replace("4k", "8k"), *common) == 2
        assert "suite s has no run helmet_recall:task=json_kv,length=8k" in command.err
        assert command(*submit, "--judges") == 0, command.err
        assert "has no judge" in caplog.text
        monkeypatch.setenv(MAX_COST, "3")
        assert command(*submit) == 2
        assert f"{MAX_COST}=3 cannot limit batches" in command.err
        assert command.err.count("\n") == 1
