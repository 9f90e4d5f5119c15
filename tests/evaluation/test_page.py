"""Tests that run the examples of docs/evaluate.md, with small models in the place of real ones."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm_longctx.environment import ignore_broken_torchvision  # noqa: E402
from helm_longctx.models.local.packaged import SMOLLM2, find_model  # noqa: E402
from tests.evaluation.engines import Engine  # noqa: E402
from tests.models.small_models import save_model  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs/evaluate.md").read_text(encoding="utf-8")
EXAMPLES = dict(
    re.findall(
        r"(?:^|\n)#+ ([^\n]+)\n(?:(?!\n#).)*?```python\n(.*?)```", PAGE, re.DOTALL
    )
)
HUB_NAME = '"HuggingFaceTB/SmolLM2-135M-Instruct"'


def run(title: str, model: Path, samples: int) -> dict[str, Any]:
    """Run an example with another model and fewer questions, and return its names."""
    names: dict[str, Any] = {}
    exec(
        EXAMPLES[title]
        .replace(HUB_NAME, repr(str(model)))
        .replace("num_samples=20", f"num_samples={samples}"),
        names,
    )
    return names


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "small", positions=8192)


def test_a_function(small: Path) -> None:
    """The first example makes runs at two lengths, and a report."""
    names = run("For people who change models", small, 2)
    assert set(names["result"].answers.length) == {"4k", "8k"}
    assert names["result"].report().is_file()


def test_a_patched_model(small: Path) -> None:
    """A hook changes answers, and both results are compared."""
    names = run("A patched model", small, 3)
    assert not names["after"].answers.answer.equals(names["before"].answers.answer)


def test_a_method_that_drops_tokens(small: Path) -> None:
    """The method without drops gives the model's own answers, and with drops other ones."""
    import helm_longctx as lc

    names = run("A method that drops tokens of the cache", small, 2)
    answers = {
        model: list(rows.answer)
        for model, rows in names["result"].answers.groupby("model")
    }
    assert answers["python/drop-0"] != answers["python/drop-0.9"]
    plain = lc.evaluate(
        (names["model"], names["tokenizer"]), "ruler:task=niah_single_1", "4k", num_samples=2,
        arguments={"style": "completion"}, suite="plain",
    )  # fmt: skip
    assert [text.strip() for text in plain.answers.answer] == [
        text.replace("<s>", "").replace("<turn>", "").strip()
        for text in answers["python/drop-0"]
    ]


def test_an_engine(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of an engine runs with a class that has the interface of vLLM."""
    module = SimpleNamespace(SamplingParams=SimpleNamespace, LLM=Engine.load)
    monkeypatch.setitem(__import__("sys").modules, "vllm", module)
    monkeypatch.setattr(Engine, "__module__", "vllm.entrypoints.llm")
    assert set(run("An engine", small, 2)["result"].answers.model) == {"python/small"}


def test_two_checkpoints(small: Path) -> None:
    """The checkpoints have the names of their folders."""
    for seed, step in enumerate(("step-1000", "step-2000")):
        save_model(Path("checkpoints") / step, seed=seed)
    results = run("Two checkpoints", small, 2)["results"]
    assert [set(result.answers.model) for result in results] == [
        {"python/step-1000"},
        {"python/step-2000"},
    ]
    assert not results[0].answers.answer.equals(results[1].answers.answer)


def test_an_async_function(small: Path) -> None:
    """The example of an async function runs."""
    run("Functions that call a client", small, 2)


@pytest.mark.long
def test_scores_fall_with_the_share_that_is_dropped() -> None:
    """SmolLM2 finds needles with its whole cache, and fewer the more tokens are dropped."""
    ignore_broken_torchvision()
    result = run(
        "A method that drops tokens of the cache", Path(find_model(SMOLLM2)), 2
    )["result"]
    scores = (
        result.scores[result.scores.task == "niah_single_1"].set_index("model").score
    )
    assert (
        scores["python/drop-0"] > scores["python/drop-0.5"] >= scores["python/drop-0.9"]
    )
    assert scores["python/drop-0"] == 1
