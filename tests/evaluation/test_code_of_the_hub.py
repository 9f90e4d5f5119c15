"""Test of a model that needs code of its own, from a local hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

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


def test_code_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's code on the hub runs only where the user says so, and then each result names it and its commit."""
    monkeypatch.chdir(tmp_path)
    folder = save_model(tmp_path / "small", positions=8192)
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
    loaded = (
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        transformers.AutoTokenizer.from_pretrained(folder),
    )
    expected = call_with_short_texts(loaded, output_path="loaded")
    assert answers == list(expected.answers.answer)
