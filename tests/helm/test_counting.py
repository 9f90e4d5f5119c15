"""Tests of the choice of the tokenizer that counts the tokens of generated examples."""

from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import create_scenario
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec

import helm_longctx.plugin  # noqa: F401
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm.command_line import make_run_specs
from helm_longctx.helm.truncation import (
    settings_with_tokenizer,
    with_deployments_tokenizer,
)


def spec_of(entry: str, folder: Path) -> RunSpec:
    (spec,) = make_run_specs([entry], [], [], "test", 10, folder)
    return spec


def test_the_baselines_count_words(tmp_path: Path) -> None:
    """The baselines count words and punctuation marks, and the run spec records it."""
    spec = with_deployments_tokenizer(
        spec_of(
            "ruler:task=vt,length=4k,model=longctx/lexical,model_deployment=longctx/lexical",
            tmp_path,
        )
    )
    assert spec.scenario_spec.args["count_with"] == "longctx/words"
    settings = settings_with_tokenizer(
        create_scenario(spec.scenario_spec).entry, DataRoot(tmp_path, mirror=True)
    )
    assert settings.counter is not None
    assert settings.counter("The grass is green. The sky is blue.") == 10


def test_a_deployment_without_a_tokenizer(tmp_path: Path) -> None:
    register_model_deployment(
        ModelDeployment(
            name="test/no_tokenizer",
            model_name="longctx/lexical",
            client_spec=ClientSpec("unused"),
        )
    )
    spec = spec_of(
        "ruler:task=vt,length=4k,model=longctx/lexical,model_deployment=test/no_tokenizer",
        tmp_path,
    )
    with pytest.raises(
        InputError,
        match=r"'test/no_tokenizer' has no tokenizer_name; .*--argument count_with=",
    ):
        with_deployments_tokenizer(spec)


def test_a_tokenizer_that_cannot_be_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer that cannot be downloaded ends in one line that names the argument, whichever library fails."""
    config = TokenizerConfig(
        "test/tiktoken",
        TokenizerSpec("helm.tokenizers.tiktoken_tokenizer.TiktokenTokenizer"),
    )
    monkeypatch.setattr(
        "helm_longctx.helm.truncation.get_tokenizer_config", lambda name: config
    )
    monkeypatch.setattr(
        "tiktoken.get_encoding",
        lambda name: (_ for _ in ()).throw(ConnectionError("no network")),
    )
    (spec,) = make_run_specs(
        ["ruler:task=vt,length=4k,model=longctx/lexical,count_with=test/tiktoken"],
        [],
        [],
        "test",
        10,
        tmp_path,
    )
    with pytest.raises(
        InputError,
        match=r"^count_with='test/tiktoken' cannot be loaded \(ConnectionError\)",
    ):
        settings_with_tokenizer(
            create_scenario(spec.scenario_spec).entry, DataRoot(tmp_path, mirror=True)
        )
