"""A judge's problems do not end a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helm.benchmark.config_registry import (
    register_builtin_configs_from_helm_package,
    register_configs_from_directory,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.request import GeneratedOutput, RequestResult

import helm_longctx.plugin  # noqa: F401  # registers the deployments
from helm_longctx.benchmarks.helmet.judge import CitationAnnotator, RubricAnnotator
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.sample import Sample
from tests.judging.deployments import write_judges
from tests.judging.grades import grade
from tests.support.servers.llm import serve
from tests.support.tasks import load


def make_result(text: str, success: bool = True) -> RequestResult:
    """Return a model's answer as HELM keeps it."""
    completion = GeneratedOutput(text=text, logprob=0, tokens=[])
    return RequestResult(
        success=success, embedding=[], completions=[completion], cached=False
    )


def states(mirror: DataRoot, count: int, success: bool = True) -> list[Any]:
    """Return answered requests with the fields that an annotator reads."""
    made = []
    for example in load(
        f"helmet_cite:task=qampari,length=4k,num_samples={count}", mirror
    ):
        extra = Sample("official", 9, 9, record=example.record, style="chat").to_json()
        instance = SimpleNamespace(
            id=example.id, extra_data=extra, all_correct_references=[]
        )
        text = "one [1], two [2][3], three [12], four [99]"
        result = make_result(text, success)
        request = SimpleNamespace(prompt=example.fields["context"])
        made.append(
            SimpleNamespace(
                instance=instance,
                result=result,
                request=request,
                annotations=None,
                prompt_truncated=False,
            )
        )
    return made


def test_a_judge_that_cannot_be_loaded(
    mirror: DataRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every instance is marked as failed, the log gives the reason once, and nothing is raised."""
    pytest.importorskip("torch", reason="a model on the hub is loaded with torch")
    annotator = CitationAnnotator(str(tmp_path / "no model"), None, str(tmp_path))  # type: ignore[arg-type]
    assert [annotator.annotate(state) for state in states(mirror, 3)] == [
        {"failed": True}
    ] * 3
    assert caplog.text.count("(and perhaps others) is not judged") == 1
    assert "neither a HELM deployment nor a model" in caplog.text


def test_nobody_judges(
    mirror: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no annotation without a judge or for a request that failed."""
    from helm_longctx.judging import entailment

    monkeypatch.setattr(entailment, "gpu_has_room", lambda needed: False)
    annotator = CitationAnnotator("auto", None, str(tmp_path))  # type: ignore[arg-type]
    assert annotator.annotate(states(mirror, 1)[0]) == {}
    client = AutoClient({}, str(tmp_path), BlackHoleCacheBackendConfig())
    failed = CitationAnnotator("longctx/null", client, str(tmp_path))
    assert failed.annotate(states(mirror, 1, success=False)[0]) == {}


def test_a_jury_of_which_one_cannot_be_asked(
    mirror: DataRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One judge's verdicts count although the others have no key, no deployment or no working client."""
    for name in ("OPENAI_API_KEY", "GPT_JUDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with serve(grade) as server:
        addresses = {"tests/good": server.openai, "tests/clientless": server.openai}
        local = write_judges(tmp_path / "models", addresses)
        deployments = local / "model_deployments.yaml"
        good, name, broken = deployments.read_text().partition("tests/good")
        deployments.write_text(
            good + name + broken.replace("base_url", "no_such_argument")
        )
        register_builtin_configs_from_helm_package()
        register_configs_from_directory(str(local))
        client = AutoClient({}, str(tmp_path), BlackHoleCacheBackendConfig())
        judge = "tests/good+openai/gpt-4o-2024-05-13+tests/unknown+tests/clientless"
        (annotation,) = RubricAnnotator(judge, client).annotate_all([answered(mirror)])
    said = annotation["jury"]
    assert said["failed"] == 0.75
    assert list(said["errors"]) == judge.split("+")[1:]
    assert "needs a key" in said["errors"]["openai/gpt-4o-2024-05-13"][0]
    scores = HELMET.task("narrativeqa").scores(
        {"prediction": "x", "references": ["y"], **annotation}
    )
    assert scores["judge_score:tests/good"] == scores["judge_score"]
    assert caplog.text.count("are not judged by") == 3


def answered(mirror: DataRoot) -> Any:
    """Return an answered question of NarrativeQA with the fields that an annotator reads."""
    (example,) = load("helmet_longqa:task=narrativeqa,length=8k,num_samples=1", mirror)
    extra = Sample(
        "official", 9, 9, record=example.record, style="chat", question="Who?"
    ).to_json()
    instance = SimpleNamespace(
        id="id0",
        sub_split="narrativeqa",
        extra_data=extra,
        all_correct_references=[SimpleNamespace(output=SimpleNamespace(text="She"))],
    )
    return SimpleNamespace(
        instance=instance, result=make_result("He"), annotations=None
    )


def test_documents_cut_from_the_prompt_were_not_shown(
    mirror: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt shows 8 of 12 documents, and a cut prompt shows only the documents whose text it still has."""
    from helm_longctx.judging import entailment

    class Yes:
        name = "yes"
        official = True

        def entails(self, pairs: list[Any]) -> list[bool]:
            """Return that every claim is supported."""
            return [True] * len(pairs)

    monkeypatch.setattr(entailment, "find_entailment", lambda *arguments: Yes())
    annotator = CitationAnnotator("x", None, str(tmp_path))  # type: ignore[arg-type]
    (state,) = states(mirror, 1)
    whole = annotator.annotate(state)
    # One of the four parts cites a document that does not exist, and another cites the last of the twelve.
    assert (whole["recall"], whole["recall_shown"], whole["hidden"]) == (0.75, 0.5, 2)
    state.prompt_truncated, state.request.prompt = (
        True,
        state.request.prompt.split("\n\n")[0],
    )
    cut = annotator.annotate(state)
    assert (cut["recall"], cut["recall_shown"], cut["hidden"]) == (0.75, 0.25, 4)
