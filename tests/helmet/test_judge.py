"""The annotator: whatever goes wrong, a run goes on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig

import helm_longctx.plugin  # noqa: F401  # registers the deployments
from helm_longctx.helmet.judge import CitationAnnotator
from helm_longctx.sources.root import DataRoot
from tests.helmet.test_passages import load


def states(mirror: DataRoot, count: int, success: bool = True) -> list[Any]:
    """Answered requests, as far as an annotator looks at them."""
    made = []
    for example in load(f"helmet_cite:task=qampari,length=4k,num_samples={count}", mirror):
        extra = {"record": example.record, "answer_prefix": "", "style": "chat"}
        instance = SimpleNamespace(id=example.id, extra_data=extra, all_correct_references=[])
        text = "one [1], two [2][3], three [12], four [99]"
        result = SimpleNamespace(success=success, completions=[SimpleNamespace(text=text)])
        request = SimpleNamespace(prompt=example.fields["context"])
        made.append(
            SimpleNamespace(instance=instance, result=result, request=request, annotations=None, prompt_truncated=False)
        )
    return made


def test_a_judge_that_cannot_be_loaded(mirror: DataRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every instance is marked, the reason is told once, and nothing is raised."""
    annotator = CitationAnnotator(str(tmp_path / "no model"), None, str(tmp_path))  # type: ignore[arg-type]
    assert [annotator.annotate(state) for state in states(mirror, 3)] == [{"failed": True}] * 3
    assert caplog.text.count("are not judged") == 1
    assert "neither a deployment that HELM knows nor a model" in caplog.text


def test_nobody_judges(mirror: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a judge, and for a request that failed, there is nothing."""
    from helm_longctx.judging import entailment

    monkeypatch.setattr(entailment, "_true_nli_fits", lambda: False)
    annotator = CitationAnnotator("auto", None, str(tmp_path))  # type: ignore[arg-type]
    assert annotator.annotate(states(mirror, 1)[0]) == {}
    client = AutoClient({}, str(tmp_path), BlackHoleCacheBackendConfig())
    failed = CitationAnnotator("longctx/null", client, str(tmp_path))
    assert failed.annotate(states(mirror, 1, success=False)[0]) == {}


def test_documents_cut_from_the_prompt_were_not_shown(
    mirror: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a prompt shows is 8 of 12 documents; if it was cut, only those whose text it still has."""
    from helm_longctx.judging import entailment

    class Yes:
        name, official = "yes", True

        def entails(self, pairs: list[Any]) -> list[bool]:
            """Everything is supported."""
            return [True] * len(pairs)

    monkeypatch.setattr(entailment, "find_entailment", lambda *arguments: Yes())
    monkeypatch.setattr("helm_longctx.helmet.judge.find_entailment", lambda *arguments: Yes())
    annotator = CitationAnnotator("x", None, str(tmp_path))  # type: ignore[arg-type]
    (state,) = states(mirror, 1)
    whole = annotator.annotate(state)
    # Of four answers one cites a document that does not exist, one the last of the twelve.
    assert (whole["recall"], whole["recall_shown"], whole["hidden"]) == (0.75, 0.5, 2)
    state.prompt_truncated, state.request.prompt = True, state.request.prompt.split("\n\n")[0]
    cut = annotator.annotate(state)
    assert (cut["recall"], cut["recall_shown"], cut["hidden"]) == (0.75, 0.25, 4)
