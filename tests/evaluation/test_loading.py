"""Tests of how a model that is given by its path is loaded: with an adapter, and as bfloat16."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm_longctx.runs.files import MODEL  # noqa: E402
from tests.evaluation.calls import call_with_short_texts  # noqa: E402
from tests.models.conftest import one_thread  # noqa: E402, F401
from tests.models.small_models import save_model  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Save a small random model."""
    monkeypatch.chdir(tmp_path)
    return save_model(tmp_path / "small", positions=8192)


def load(folder: Path, **options: Any) -> tuple[Any, Any]:
    """Return the model as transformers loads it, and its tokenizer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, **{"dtype": torch.float32, **options}
    )
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def test_bfloat16(folder: Path) -> None:
    """With `dtype: bfloat16` the answers and log-probabilities are those of transformers' model of this type."""
    entry = {"path": str(folder), "dtype": "bfloat16", "attention": "eager"}
    loaded = load(folder, dtype=torch.bfloat16, attn_implementation="eager")
    results = []
    for model, source in (
        (entry, "path"),
        (loaded, "loaded"),
        ({**entry, "dtype": "float32"}, "whole"),
    ):
        options: dict[str, Any] = {"batch_size": 16, "output_path": source}
        likelihood = call_with_short_texts(
            model, {"metric": "likelihood"}, **options
        ).scores.score[0]
        answers = call_with_short_texts(model, **options).answers.answer
        results.append((list(answers), likelihood))
    assert results[0] == results[1]
    assert results[0][1] != results[2][1]


def test_an_adapter(folder: Path, tmp_path: Path) -> None:
    """A PEFT adapter changes the answers to those of the model that PEFT makes; the run's folder names it."""
    peft = pytest.importorskip("peft")
    model, tokenizer = load(folder)
    torch.manual_seed(2)
    settings = peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False
    )
    adapted = peft.get_peft_model(model, settings)
    adapted.save_pretrained(tmp_path / "adapter")
    merged = adapted.merge_and_unload()
    plain = {"path": str(folder), "dtype": "float32"}
    entries = [
        {**plain, "name": "my/plain"},
        {**plain, "adapter": str(tmp_path / "adapter"), "name": "my/adapted"},
    ]
    result = call_with_short_texts(entries)
    answers = {
        name: list(rows.answer) for name, rows in result.answers.groupby("model")
    }
    expected = call_with_short_texts(
        (merged, tokenizer), output_path="merged"
    ).answers.answer
    assert answers["my/adapted"] == list(expected) != answers["my/plain"]
    (facts,) = [
        orjson.loads(path.read_bytes())
        for path in result.suite.glob(f"*my_adapted/{MODEL}")
    ]
    assert facts["adapter"] == str(tmp_path / "adapter")
    assert "peft" in facts["packages"]
