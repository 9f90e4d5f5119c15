"""`helm-longctx batch`, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import MAX_COST
from helm_longctx.runner.batches import collection
from tests.chaos.batches import write_deployment
from tests.support.commands import Command
from tests.support.servers.batches import serve_batches

ENTRY = (
    "helmet_recall:task=json_kv,length=4k,num_samples=6,style=chat,model=chaos/model"
)


def test_from_submission_to_collection(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The table has each batch. Entries and names of runs select batches, and mistakes are one line."""
    monkeypatch.setattr(collection, "_POLL", 0)
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


def test_a_batch_that_cannot_be_collected(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other batches are collected. The table has all, and the status is not 0 until the batch is given up."""
    monkeypatch.chdir(tmp_path)
    with serve_batches(lexical.answer) as server:
        write_deployment(tmp_path, server, "openai")
        common = ["--suite", "s", "--local-path", tmp_path]
        assert (
            command("batch", "submit", ENTRY, *common, "-m", 100, "--batch-size", 4)
            == 0
        ), command.err
        server.spoil = lambda name, lines: (
            b"<html>" if name.endswith("batch_0") else lines
        )
        assert command("batch", "collect", *common) == 2
        assert "batch_0" in command.err
        assert command.err.rstrip().endswith(
            "helm-longctx batch collect --suite s --forget"
        )
        assert (command.out.count("completed"), command.out.count("collected")) == (
            1,
            1,
        )
        server.gone = {"batch_0", "list_openai"}
        for name in ("status", "cancel"):
            assert command("batch", name, *common) == 2, name
            assert "404" in command.err
        assert command("batch", "collect", *common, "--forget", "--wait") == 2
        assert "--forget and --wait cannot be given together" in command.err
        assert command("batch", "collect", *common, "--forget") == 0, command.err
        assert "4 unreachable" in command.out
        assert command("batch", "status", *common) == 0
