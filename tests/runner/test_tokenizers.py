"""Tests that what a run lacks is found before the first request, and that the other runs are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.benchmark.tokenizer_config_registry import (
    TokenizerConfig,
    TokenizerSpec,
    register_tokenizer_config,
)

from helm_longctx.errors import InputError
from tests.benchmarks.ruler.fabricate import build_sources
from tests.runner.making import ENTRY, PlainClient, deployed, make_runner, spec_of
from tests.support.questions import ROW, write_questions

CLIENT = ClientSpec(f"{PlainClient.__module__}.{PlainClient.__name__}")


@pytest.fixture
def broken() -> Iterator[str]:
    """Register a deployment with a tokenizer that does not exist."""
    spec = TokenizerSpec(
        "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer",
        {"pretrained_model_name_or_path": "/nowhere"},
    )
    register_tokenizer_config(TokenizerConfig("test/absent", spec))
    name = "test/without-tokenizer"
    deployment = ModelDeployment(
        name, CLIENT, "longctx/lexical", "test/absent", max_sequence_length=8192
    )
    with deployed(deployment) as made:
        yield made


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (
            ENTRY + "test/without-tokenizer",
            "its tokenizer 'test/absent' cannot be loaded",
        ),
        (
            "ruler:task=vt,length=4k,model_deployment=test/plain,model=longctx/lexical",
            "has no tokenizer_name",
        ),
        (
            "ruler:task=vt,length=4k,count_with=nothing,model_deployment=test/plain,model=longctx/lexical",
            "count_with='nothing' is not a tokenizer",
        ),
    ],
)
def test_a_run_without_a_tokenizer(
    tmp_path: Path,
    broken: str,
    entry: str,
    error: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run without its tokenizer is refused before the first request, the other run is made, and the last line says so."""
    check_refusal(tmp_path, entry, error, caplog, monkeypatch)


def test_a_run_without_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose data cannot be fetched is refused before the first request, and the other run is made.

    RULER's essays are here, but NLTK's model of sentences is not, and pip finds no wheel.
    """
    monkeypatch.setattr("nltk.data.path", [])
    for name, value in {
        "CONFIG_FILE": "/dev/null",
        "NO_INDEX": "1",
        "FIND_LINKS": "",
    }.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    build_sources(tmp_path / "benchmark_output/scenarios/helm_longctx")
    entry = "ruler:task=niah_single_2,length=4k,count_with=longctx/words,model_deployment=test/plain"
    reason = "NLTK's punkt_tab, of the wheel llama-index-core==0.14.25: pip downloaded no wheel"
    check_refusal(
        tmp_path, f"{entry},model=longctx/lexical", reason, caplog, monkeypatch
    )


def test_a_run_without_an_extra(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that needs a package that is not installed is refused before the first request, and the other run is made."""
    monkeypatch.setitem(sys.modules, "bm25s", None)
    entry = "helmet_recall:task=json_kv,length=8k,method=retrieve,model=longctx/lexical,model_deployment=test/plain"
    check_refusal(
        tmp_path,
        entry,
        "method=retrieve needs bm25s; install with: pip install",
        caplog,
        monkeypatch,
    )


def check_refusal(
    folder: Path,
    entry: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check that one of two runs is refused before the first request, and that the other one is made."""
    runner = make_runner(folder)
    log = []

    def refuse_none(prompt: str) -> bool:
        log.append(caplog.text)
        return False

    monkeypatch.setattr(PlainClient, "fails", staticmethod(refuse_none))
    good = spec_of(ENTRY + "test/plain")
    bad = spec_of(entry)
    with pytest.raises(InputError) as caught:
        runner.run_all([good, bad])
    assert (
        str(caught.value)
        == f"1 of 2 runs were not made: {bad.name}: their errors are in the log"
    )
    assert reason in log[0]
    assert len(PlainClient.asked) == 12
    assert [
        path.parent.name for path in Path(runner.runs_path).glob("*:*/stats.json")
    ] == [good.name]


def test_short_prompts_need_no_tokenizer(tmp_path: Path, broken: str) -> None:
    entry = f"any_jsonl:path={write_questions(tmp_path, ROW)},length=8k,model=longctx/lexical,model_deployment={broken}"
    make_runner(tmp_path).run_all([spec_of(f"{entry},count_with=longctx/words")])
    assert len(PlainClient.asked) == 1


@pytest.mark.parametrize(("window", "sent"), [(4000, 1), (4_930, 1), (12_000, 3)])
def test_prompts_that_exceed_the_window(
    window: int, sent: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a tokenizer, a run whose prompts cannot fit the window of the model or its server is not sent.

    The other runs are made.
    """
    entry = "helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx/lexical,model_deployment="
    questions = f"any_jsonl:path={write_questions(tmp_path, ROW)},length=4k,count_with=longctx/words,model=longctx/lexical"
    deployment = ModelDeployment(
        "test/small", CLIENT, "longctx/lexical", max_sequence_length=window
    )
    with (
        deployed(deployment) as name,
        nullcontext() if sent == 3 else pytest.raises(InputError) as raised,
    ):
        specs = [
            spec_of(f"{questions},model_deployment=test/plain"),
            spec_of(entry + name),
        ]
        make_runner(tmp_path).run_all(specs)
    assert len(PlainClient.asked) == sent
    assert (
        f"window of test/small has {window:,} tokens" in f"{raised}{caplog.text}"
    ) == (sent < 3)


def test_short_prompts_at_a_length_that_exceeds_the_window(tmp_path: Path) -> None:
    """A length says only how long prompts can be, so short ones are sent whatever the window is."""
    entry = f"any_jsonl:path={write_questions(tmp_path, ROW)},length=8k,count_with=longctx/words,model=longctx/lexical"
    with deployed(
        ModelDeployment(
            "test/small", CLIENT, "longctx/lexical", max_sequence_length=1000
        )
    ) as name:
        make_runner(tmp_path).run_all([spec_of(f"{entry},model_deployment={name}")])
    assert len(PlainClient.asked) == 1
