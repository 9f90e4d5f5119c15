"""Tests that an estimate agrees with the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.benchmark.tokenizer_config_registry import (
    TokenizerConfig,
    TokenizerSpec,
    register_tokenizer_config,
)
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from typer.testing import CliRunner

from helm_longctx.benchmarks.longgenbench.tasks import CHECKS
from helm_longctx.cli.main import app
from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.runner import LongContextRunner
from tests.benchmarks.longbench_write.fabricate import LENGTHS, build_longbench_write
from tests.benchmarks.longgenbench.fabricate import build_longgenbench, rows
from tests.runner import making
from tests.support.estimates import estimate
from tests.support.loads import count_loads


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Register a tokenizer in HELM that divides words at signs, and return its name."""
    folder = tmp_path_factory.mktemp("tokenizer")
    model = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=model, unk_token="?").save_pretrained(
        folder
    )
    kind = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"
    spec = TokenizerSpec(kind, {"pretrained_model_name_or_path": str(folder)})
    register_tokenizer_config(TokenizerConfig("test/signs", spec))
    return "test/signs"


def count(text: str) -> int:
    return len(pre_tokenizers.Whitespace().pre_tokenize_str(text))


@pytest.fixture
def deployment(tokenizer: str) -> Iterator[str]:
    """Register a deployment with a tokenizer and without a window, with which a run counts nothing."""
    spec = ClientSpec(f"{making.__name__}.PlainClient")
    with making.deployed(
        ModelDeployment("test/counted", spec, "longctx/lexical", tokenizer)
    ) as name:
        yield name


def test_an_estimate_is_the_run(deployment: str, tmp_path: Path) -> None:
    """An estimate has the run's requests, tokens within 2 %, disk, cost and time, and sends nothing."""
    entry = making.ENTRY.replace("num_samples=3", "num_samples=20") + deployment
    estimates = estimate(tmp_path / "estimate", entry, requests_per_minute=10)
    assert making.PlainClient.asked == []
    run = making.make_run(tmp_path, entry)
    assert estimates.requests == len(making.PlainClient.asked) == 80
    assert estimates.prompt_tokens.counted_by == "test/signs"
    tokens = sum(map(count, making.PlainClient.asked))
    assert estimates.prompt_tokens.total == pytest.approx(tokens, rel=0.02)
    size = sum(path.stat().st_size for path in run.iterdir())
    assert estimates.disk_bytes == pytest.approx(size, rel=0.25)
    states = making.read(run, "scenario_state")["request_states"]
    assert estimates.output_tokens.most == sum(
        state["request"]["max_tokens"] for state in states
    )
    assert estimates.dollars.most == pytest.approx(
        (100 * estimates.prompt_tokens.total + 1000 * estimates.output_tokens.most)
        / 1e6
    )
    assert estimates.dollars.batch == pytest.approx(estimates.dollars.typical / 2)
    assert estimates.minutes == 8


@pytest.mark.parametrize(("samples", "counted"), [(5, 5), (31, 16)])
def test_sixteen_prompts_are_counted(
    deployment: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    samples: int,
    counted: int,
) -> None:
    """Sixteen prompts of each task, spread over all of them, are tokenized."""
    texts: list[str] = []
    monkeypatch.setattr(
        "helm_longctx.runner.estimate.load_deployment_counter",
        lambda name: lambda t: texts.append(t) or count(t),
    )
    estimate(
        tmp_path,
        making.ENTRY.replace("num_samples=3", f"num_samples={samples},task=json_kv")
        + deployment,
    )
    assert len(set(texts)) == len(texts) == counted


@pytest.mark.parametrize("samples", [1, 5])
def test_the_disk_of_a_small_run(tmp_path: Path, samples: int) -> None:
    """The estimated disk space of a small run includes the files that each run and each task has."""
    entry = f"helmet_recall:length=8k,task=json_kv,num_samples={samples},model=longctx/lexical,model_deployment=test/plain"
    estimates = estimate(tmp_path / "estimate", entry)
    run = making.make_run(tmp_path, entry)
    assert estimates.disk_bytes == pytest.approx(
        sum(path.stat().st_size for path in run.iterdir()), rel=0.2
    )


def test_models_share_their_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions of a run entry are made once for all models, and each estimate is that of a run alone."""
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    specs = []
    for model in ("longctx/lexical", "longctx/null"):
        for length in ("4k", "8k"):
            entry = f"helmet_recall:task=json_kv,length={length},num_samples=3,model={model}"
            specs.append(making.spec_of(entry))
    with count_loads(monkeypatch) as loads:
        alone = [estimate_runs(runner, [spec], {}, Rate())[0] for spec in specs]
        assert len(loads) == 4
        loads.clear()
        assert estimate_runs(runner, specs, {}, Rate()) == alone
        assert loads == ["json_kv", "json_kv"]


def test_judges_are_counted(
    mirror: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate has a question for each answer and judge, and no price for a judge without one."""
    monkeypatch.setenv(MIRROR, str(mirror.path))
    entry = "helmet_longqa:task=narrativeqa,length=8k,num_samples=2,judge={},model=longctx/lexical,model_deployment=test/plain"
    none = estimate(tmp_path, entry.format("none"))
    two = estimate(tmp_path, entry.format("longctx/lexical+test/cached"))
    assert none.judge_tokens.calls == 0
    assert two.judge_tokens.calls == 2 * two.requests
    assert two.judge_tokens.prompt > 40 * two.judge_tokens.calls
    assert two.dollars.judges is two.dollars.typical is None
    assert two.prompt_tokens.counted_by is None


def test_long_outputs_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate has texts of the required length, and a judge's request for each check of a whole text."""
    monkeypatch.setenv(MIRROR, str(tmp_path))
    build_longbench_write(tmp_path)
    build_longgenbench(tmp_path)
    rest = "judge=longctx/lexical,model=longctx/lexical,model_deployment=test/plain"
    written = estimate(tmp_path, f"longbench_write:{rest}")
    assert written.output_tokens.typical == sum(
        min(32768, max(20, round(1.5 * length))) for length in LENGTHS
    )
    assert written.output_tokens.most == 32768 * len(LENGTHS)
    assert written.judge_tokens.calls == len(LENGTHS)
    assert written.judge_tokens.prompt > written.output_tokens.typical
    generated = estimate(tmp_path, f"longgenbench:length=32k,{rest}")
    data = rows(32768)
    assert (
        generated.output_tokens.typical
        == generated.output_tokens.most
        == 32000 * len(data)
    )
    numbers = [
        (int(number), row["number"])
        for row in data
        for name in CHECKS
        for number in row[name]
    ]
    assert generated.judge_tokens.calls == sum(
        number <= last for number, last in numbers
    )
    assert generated.judge_tokens.prompt > 300 * generated.judge_tokens.calls


def test_the_command(tmp_path: Path) -> None:
    """`estimate` prints a table, writes JSON, and accepts prices."""
    entry = "helmet_recall:task=json_kv,length=8k,num_samples=3"
    options = [
        "--model",
        "longctx/lexical",
        "--price-input",
        "2",
        "--price-output",
        "8",
        "--json",
        "estimate.json",
    ]
    done = CliRunner().invoke(
        app,
        ["estimate", entry, entry.replace("8k", "16k"), *options],
        catch_exceptions=False,
    )
    estimate_file = json.loads(Path("estimate.json").read_bytes())
    assert [entry_estimate["requests"] for entry_estimate in estimate_file] == [3, 3]
    assert estimate_file[1]["prompt_tokens"]["total"] == pytest.approx(
        2 * estimate_file[0]["prompt_tokens"]["total"], rel=0.2
    )
    assert "the user's prices" in done.stdout
    lines = done.stdout.splitlines()
    (last,) = [line for line in lines if line.startswith("│ all")]
    assert (
        f"{sum(entry_estimate['prompt_tokens']['total'] for entry_estimate in estimate_file):,}"
        in last
    )
    assert (
        f"${sum(entry_estimate['dollars']['typical'] for entry_estimate in estimate_file):,.2f}"
        in last
    )
    assert not any("model=" in line for line in lines)
