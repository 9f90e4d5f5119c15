"""Tests that old names of modules still work, because users' commands, YAML files and `run_spec.json` have them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from helm.common.object_spec import get_class_by_name

from helm_longctx._moved import MOVED, current_name, former_name

CLASSES = {
    "helm_longctx.apis.AnthropicClient": "helm_longctx.models.apis.AnthropicClient",
    "helm_longctx.apis.OpenAIClient": "helm_longctx.models.apis.OpenAIClient",
    "helm_longctx.apis.nvcf.FunctionCalls": "helm_longctx.models.apis.nvcf.FunctionCalls",
    "helm_longctx.models.client.LexicalClient": "helm_longctx.models.baselines.clients.LexicalClient",
    "helm_longctx.models.hf.LongContextHuggingFaceClient": (
        "helm_longctx.models.local.huggingface.LongContextHuggingFaceClient"
    ),
    "helm_longctx.protocol.task.Task": "helm_longctx.tasks.task.Task",
    "helm_longctx.report.LongContextSummarizer": "helm_longctx.results.leaderboard.LongContextSummarizer",
    "helm_longctx.running.LongContextRunner": "helm_longctx.runner.LongContextRunner",
    "helm_longctx.scaling.RayRunner": "helm_longctx.runner.machines.RayRunner",
    "helm_longctx.scaling.slurm_runner.SlurmRunner": (
        "helm_longctx.runner.machines.slurm_runner.SlurmRunner"
    ),
    "helm_longctx.sources.jsonl.JsonLines": "helm_longctx.data.jsonl.JsonLines",
}
"""Class paths that users wrote, with the new ones."""


@pytest.mark.filterwarnings("ignore:.* is now .*:FutureWarning")
@pytest.mark.parametrize("old", CLASSES)
def test_class_paths(old: str) -> None:
    """HELM finds the same class, not a second copy, by its old and new path."""
    if "slurm" in old:
        pytest.importorskip("simple_slurm")
    assert get_class_by_name(old) is get_class_by_name(CLASSES[old])


@pytest.mark.filterwarnings("ignore:.* is now .*:FutureWarning")
@pytest.mark.parametrize("old", MOVED)
def test_modules(old: str) -> None:
    """Each row of the table names a module that exists, and both names give the same module."""
    assert import_module(f"helm_longctx.{old}") is import_module(f"helm_longctx.{MOVED[old]}")


def test_names_of_classes() -> None:
    """Old and new paths of a class can be compared, and the path of another package's class does not change."""
    for old, new in CLASSES.items():
        assert current_name(old) == current_name(new) == new
        assert current_name(former_name(new)) == new
    client = "helm_longctx.models.apis.OpenAIClient"
    assert (
        former_name(client)
        == former_name("helm_longctx.apis.OpenAIClient")
        == "helm_longctx.apis.OpenAIClient"
    )
    for name in ("helm.clients.simple_client.SimpleClient", "helm_longctx.runs.journal.Journal"):
        assert current_name(name) == former_name(name) == name


def test_one_warning() -> None:
    """An old name gives one warning in a process, which has the new name; a new name gives none."""
    code = (
        "import helm_longctx.runner; " + "from helm_longctx.running import LongContextRunner; " * 3
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    warnings = [line for line in done.stderr.splitlines() if "FutureWarning" in line]
    assert len(warnings) == 1
    assert warnings[0].endswith(
        "helm_longctx.running is now helm_longctx.runner. The old name still works in 1.x."
    )


@pytest.mark.filterwarnings("ignore:.* is now .*:FutureWarning")
def test_unknown_names() -> None:
    """A module that never existed is not found by any name."""
    with pytest.raises(ModuleNotFoundError, match=r"helm_longctx\.runnings"):
        import_module("helm_longctx.runnings")
    with pytest.raises(ModuleNotFoundError, match=r"helm_longctx\.runner\.unheard_of"):
        import_module("helm_longctx.running.unheard_of")
