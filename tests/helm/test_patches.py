"""Tests of the functions that replace functions of HELM: they fail if HELM changes."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import helm.benchmark.runner as helm_runner
import pytest
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    Input,
    Instance,
    Output,
    Reference,
)
from helm.clients import auto_client
from helm.common.local_context import LocalContext
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.errors import UnsupportedHelmError
from helm_longctx.helm import patches
from helm_longctx.helm.patches import Patch, apply_patches
from tests.core_evals.medical_rows import write_stand_ins
from tests.runner.making import deployed
from tests.support.servers.llm import serve

EVERY = (
    patches.make_our_adapter,
    *patches._OF_RUNS,
    patches._send_seeds,
    patches._take_tokenizers,
    patches.find_registered_first,
)

SUMMARIES = "helm.benchmark.metrics.summarization_metrics"


class Poison:
    """A pickle of it writes a file when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


def owner_of(patch: Patch) -> object:
    module, _, cls = patch.owner.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, cls) if cls else imported


@pytest.mark.parametrize("patch", EVERY, ids=lambda patch: patch.name)
def test_the_function_of_helm_is_as_we_know_it(patch: Patch) -> None:
    """HELM has every function that is replaced, with the expected parameters, and replacing twice is once."""
    patch.apply()
    ours = inspect.getattr_static(owner_of(patch), patch.name)
    patch.apply()
    assert inspect.getattr_static(owner_of(patch), patch.name) is ours
    theirs = inspect.unwrap(ours.__func__ if isinstance(ours, staticmethod) else ours)
    assert tuple(inspect.signature(theirs).parameters) == patch.parameters


@pytest.mark.parametrize("patch", EVERY, ids=lambda patch: patch.name)
def test_another_helm_is_refused(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is missing or has other parameters ends in an error that names it."""
    monkeypatch.setattr(owner_of(patch), patch.name, lambda something_else: None)
    with pytest.raises(
        UnsupportedHelmError,
        match=rf"not supported, .*{patch.name} takes something_else instead of",
    ):
        patch.apply()
    monkeypatch.setattr(owner_of(patch), patch.name, None)
    with pytest.raises(UnsupportedHelmError, match=rf"{patch.name} is gone"):
        patch.apply()


def test_loading_the_plugin_changes_nothing_of_helm() -> None:
    """Loading the plugin changes only HELM's adapter factory until a run of ours is requested."""
    code = (
        "import logging, sys, helm.benchmark.run; before = sys.excepthook, logging.getLogRecordFactory();"
        "import helm_longctx.plugin; from helm_longctx.helm import patches as p; import importlib\n"
        "for each in p._OF_RUNS:\n"
        "    module, _, cls = each.owner.partition(':'); owner = importlib.import_module(module)\n"
        "    assert not hasattr(getattr(getattr(owner, cls) if cls else owner, each.name), p._MARK), each.name\n"
        "assert before == (sys.excepthook, logging.getLogRecordFactory())\n"
        "assert not logging.getLogger('helm').filters"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_patches_are_applied_once() -> None:
    """Applying all patches again changes nothing."""
    apply_patches()
    before = [
        inspect.getattr_static(owner_of(patch), patch.name)
        for patch in patches._OF_RUNS
    ]
    apply_patches()
    assert before == [
        inspect.getattr_static(owner_of(patch), patch.name)
        for patch in patches._OF_RUNS
    ]


def test_the_codec_comes_without_what_it_does_not_need() -> None:
    """The codec is HELM's own, and it imports NLTK, spaCy and PyTorch only when a perturbation uses them."""
    code = (
        "import sys; import helm_longctx.results.leaderboard.pages\n"
        "assert not {'nltk', 'nltk.corpus', 'spacy', 'torch'} & sys.modules.keys()\n"
        "from helm.common.codec import from_json, to_json\n"
        "from helm.benchmark.augmentations import synonym_perturbation as theirs\n"
        "from helm.benchmark.augmentations.perturbation_description import PerturbationDescription\n"
        "described = theirs.SynonymPerturbation.Description(name='synonym', prob=0.5)\n"
        "assert from_json(to_json(described).encode(), PerturbationDescription) == described\n"
        "import nltk\n"
        "assert theirs.nltk.data is nltk.data\n"
        "assert theirs.wordnet._LazyCorpusLoader__name == 'wordnet'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("client", "credentials", "key", "warnings"),
    [
        ("helm_longctx.models.apis.OpenAIClient", {}, None, 0),
        (
            "helm_longctx.models.apis.OpenAIClient",
            {"deployments": {"other/model": "x"}},
            None,
            0,
        ),
        (
            "helm_longctx.models.apis.OpenAIClient",
            {"myApiKey": "of the organization"},
            "of the organization",
            0,
        ),
        (
            "helm_longctx.models.apis.OpenAIClient",
            {"deployments": {"my/model": "of the model"}},
            "of the model",
            0,
        ),
        ("helm.clients.openai_client.OpenAIClient", {}, None, 1),
    ],
)
def test_keys_that_are_not_in_helms_file(
    caplog: pytest.LogCaptureFixture,
    client: str,
    credentials: dict[str, Any],
    key: str | None,
    warnings: int,
) -> None:
    """HELM does not warn of keys that our clients find elsewhere, but still warns of other clients' keys."""
    apply_patches()
    with deployed(
        ModelDeployment("my/model", ClientSpec(client), "longctx/lexical")
    ) as name:
        assert auto_client.provide_api_key(credentials, "my", name) == key
    assert caplog.text.count("Could not find key") == warnings


def test_helms_client_for_vllm_answers(tmp_path: Path) -> None:
    """HELM's own `VLLMClient`, which fails in plain HELM, sends a completion, and its errors are still its own."""
    apply_patches()
    with serve(lambda prompt: prompt.upper()) as server:
        arguments = {
            "base_url": server.openai,
            "vllm_model_name": "m",
            "max_retries": 0,
        }
        spec = ClientSpec("helm.clients.vllm_client.VLLMClient", arguments)
        with deployed(
            ModelDeployment("my/vllm", spec, "longctx/lexical", "longctx/words")
        ) as name:
            client = LocalContext(str(tmp_path)).client
            result = client.make_request(
                Request(name, "longctx/lexical", prompt="a question", temperature=0)
            )
    assert result.success
    assert result.completions[0].text == "A QUESTION"
    assert server.calls[0].path == "/v1/completions"


@pytest.fixture
def summary_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """HELM's metric of summaries, as a run makes it; its optional packages, and spaCy's model, have stand-ins."""
    write_stand_ins(tmp_path / "modules")
    (tmp_path / "modules/sitecustomize.py").unlink()
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    statistics = dict.fromkeys(("coverage", "density", "compression"), 0.5)
    data_stats = type(
        "DataStatsMetric",
        (),
        {"evaluate_example": lambda self, summary, text: statistics},
    )
    stand_ins = {
        "bert_score": SimpleNamespace(BERTScorer=None),
        "summ_eval": SimpleNamespace(),
        "summ_eval.data_stats_metric": SimpleNamespace(DataStatsMetric=data_stats),
    }
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, SUMMARIES, raising=False)
    apply_patches()
    yield helm_runner.create_metric(
        MetricSpec(f"{SUMMARIES}.SummarizationMetric", {"task": "medi_qa"})
    )
    # Other tests import the module without the stand-ins.
    sys.modules.pop(SUMMARIES, None)


def test_no_pickle_of_summaries_is_loaded(
    summary_metric: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """HELM's metric of summaries loads no pickle, not even one that is there, and has its other statistics."""
    (tmp_path / "qafacteval.pk").write_bytes(
        pickle.dumps({"medi_qa": Poison(tmp_path / "poisoned")})
    )
    instance = Instance(
        Input(text="The pulse is normal."),
        [Reference(Output(text="It is normal."), [CORRECT_TAG])],
        id="id1",
    )
    answer = RequestResult(True, [], [GeneratedOutput("It is normal.", 0, [])], False)
    state = SimpleNamespace(instance=instance, result=answer)
    spec = SimpleNamespace(model_deployment="test/model")
    stats = summary_metric.evaluate_generation(spec, state, None, str(tmp_path))
    assert {stat.name.name: stat.mean for stat in stats}["rouge_l"] == 1
    assert len(stats) == 6
    assert not (tmp_path / "poisoned").exists()
    assert "QAFactEval is left out" in caplog.text
    # HELM's own function would have loaded it.
    inspect.unwrap(type(summary_metric)._load_qafacteval)(summary_metric, str(tmp_path))
    assert (tmp_path / "poisoned").is_dir()
