"""Tests of how a model that is given by its path is loaded: with an adapter, with code of its own, and as bfloat16."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm_longctx.runs.files import MODEL  # noqa: E402
from tests.data.hub_server import COMMIT, Hub, serve  # noqa: E402
from tests.evaluation.calls import call_with_short_texts  # noqa: E402
from tests.models.conftest import one_thread  # noqa: E402, F401
from tests.models.small_models import save_model  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

OWN_CODE = """
from transformers import LlamaConfig, LlamaForCausalLM


class OwnConfig(LlamaConfig):
    model_type = "own"


class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""

WITH_CODE = f"""
import json
import helm_longctx as lc
from tests.evaluation.calls import call_with_short_texts

entry = {{"path": "org/own", "dtype": "float32", "revision": "{COMMIT}"}}
try:
    call_with_short_texts(entry)
except lc.InputError as error:
    print(json.dumps(str(error)))
result = call_with_short_texts({{**entry, "remote_code": True}})
print(json.dumps([list(result.scores.reason), list(result.answers.answer)]))
"""


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


def test_code_of_the_hub(folder: Path, tmp_path: Path) -> None:
    """A model's code on the hub runs only where the user says so, and then each result names it and its commit."""
    config = json.loads((folder / "config.json").read_bytes())
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnForCausalLM"}
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "own", "auto_map": own})
    )
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with serve(Hub({"org/own": {**files, "own.py": OWN_CODE.encode()}})) as hub:
        environment = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
        }
        paths = {"PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(
            [sys.executable, "-c", WITH_CODE],
            env={**os.environ, **environment, **paths},
            text=True,
            stdout=-1,
        )
    # Nobody is asked at the terminal whether the code may run, so there are only the two lines.
    refused, (reasons, answers) = map(json.loads, done.stdout.splitlines())
    assert (
        "path='org/own' needs code of its own (own.OwnForCausalLM); give remote_code: true, with a name"
        in refused
    )
    assert all(
        f"the model runs code of org/own at {COMMIT}" in reason for reason in reasons
    )
    (folder / "config.json").write_text(json.dumps(config))
    expected = call_with_short_texts(load(folder), output_path="loaded")
    assert answers == list(expected.answers.answer)
