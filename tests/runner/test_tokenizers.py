"""Tests that a tokenizer that cannot be loaded is found before the first request, if a prompt needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec, register_tokenizer_config

from helm_longctx.errors import InputError
from tests.runner.making import ENTRY, PlainClient, deployed, make_runner, spec_of
from tests.support.questions import ROW, write_questions

CLIENT = ClientSpec(f"{PlainClient.__module__}.{PlainClient.__name__}")


@pytest.fixture
def broken() -> Iterator[str]:
    """Register a deployment with a tokenizer that does not exist."""
    spec = TokenizerSpec(
        "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer", {"pretrained_model_name_or_path": "/nowhere"}
    )
    register_tokenizer_config(TokenizerConfig("test/absent", spec))
    name = "test/without-tokenizer"
    deployment = ModelDeployment(name, CLIENT, "longctx/lexical", "test/absent", max_sequence_length=8192)
    with deployed(deployment) as made:
        yield made


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (ENTRY + "test/without-tokenizer", "its tokenizer 'test/absent' cannot be loaded"),
        ("ruler:task=vt,length=4k,model_deployment=test/plain,model=longctx/lexical", "has no tokenizer_name"),
        (
            "ruler:task=vt,length=4k,count_with=nothing,model_deployment=test/plain,model=longctx/lexical",
            "count_with='nothing' is not a tokenizer",
        ),
    ],
)
def test_nothing_is_sent(tmp_path: Path, broken: str, entry: str, error: str) -> None:
    """Nothing is sent, although another run whose model needs no tokenizer comes first."""
    runner = make_runner(tmp_path)
    with pytest.raises(InputError, match=error):
        runner.run_all([spec_of(ENTRY + "test/plain"), spec_of(entry)])
    assert not PlainClient.asked
    assert not list(Path(runner.runs_path).glob("*:*"))


def test_short_prompts_need_no_tokenizer(tmp_path: Path, broken: str) -> None:
    entry = f"any_jsonl:path={write_questions(tmp_path, ROW)},length=8k,model=longctx/lexical,model_deployment={broken}"
    make_runner(tmp_path).run_all([spec_of(f"{entry},count_with=longctx/words")])
    assert len(PlainClient.asked) == 1
