"""Tests that a tokenizer that cannot be loaded is found before the first request, if a prompt needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
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


@pytest.mark.parametrize(("window", "sent"), [(4000, 0), (4_930, 1), (12_000, 3)])
def test_prompts_that_exceed_the_window(
    window: int, sent: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a tokenizer, a run whose prompts cannot fit the window of the model or its server is not sent.

    If its length says so, nothing is sent for other runs either.
    """
    entry = "helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx/lexical,model_deployment="
    questions = (
        f"any_jsonl:path={write_questions(tmp_path, ROW)},length=4k,count_with=longctx/words,model=longctx/lexical"
    )
    deployment = ModelDeployment("test/small", CLIENT, "longctx/lexical", max_sequence_length=window)
    with deployed(deployment) as name, nullcontext() if sent == 3 else pytest.raises(InputError) as raised:
        specs = [spec_of(f"{questions},model_deployment=test/plain"), spec_of(entry + name)]
        make_runner(tmp_path).run_all(specs)
    assert len(PlainClient.asked) == sent
    assert (f"window of test/small has {window:,} tokens" in f"{raised}{caplog.text}") == (sent < 3)


def test_short_prompts_at_a_length_that_exceeds_the_window(tmp_path: Path) -> None:
    """A length says only how long prompts can be, so short ones are sent whatever the window is."""
    entry = f"any_jsonl:path={write_questions(tmp_path, ROW)},length=8k,count_with=longctx/words,model=longctx/lexical"
    with deployed(ModelDeployment("test/small", CLIENT, "longctx/lexical", max_sequence_length=1000)) as name:
        make_runner(tmp_path).run_all([spec_of(f"{entry},model_deployment={name}")])
    assert len(PlainClient.asked) == 1
