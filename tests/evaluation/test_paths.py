"""Tests of models that are given by their folders: in run configurations, on the command line, and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

torch = pytest.importorskip("torch")

import helm_longctx as lc  # noqa: E402
from helm_longctx.models.local.weights import _loaded  # noqa: E402
from helm_longctx.runs.files import MODEL  # noqa: E402
from helm_longctx.tasks.steps import find_step  # noqa: E402
from tests.evaluation.calls import call, call_with_short_texts  # noqa: E402
from tests.models.conftest import one_thread  # noqa: E402, F401
from tests.models.small_models import save_model  # noqa: E402
from tests.support.commands import Command  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
TASK = (
    "--tasks",
    "helmet_recall:task=json_kv",
    "--length",
    "4k",
    "--argument",
    "num_samples=1",
    "--suite",
    "a",
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Save three models, as a training does."""
    monkeypatch.chdir(tmp_path)
    for seed, step in enumerate((1000, 200, 30)):
        save_model(Path(f"checkpoints/step-{step}"), seed=seed, positions=8192)
    return tmp_path / "checkpoints"


def test_checkpoints_of_a_pattern(
    checkpoints: Path, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """A pattern stands for all folders, in the order of their steps, and one model after the other is in memory."""
    assert command("run", "--model-path", "checkpoints/step-*", *TASK) == 0, command.err
    runs = sorted(
        Path("benchmark_output/runs/a").glob(f"*/{MODEL}"),
        key=lambda path: path.stat().st_mtime,
    )
    paths = [
        orjson.loads(run.read_bytes())["pretrained_model_name_or_path"] for run in runs
    ]
    assert paths == [str(checkpoints / f"step-{step}") for step in (30, 200, 1000)]
    assert "checkpoints/step-200: context 8192, chat template: yes" in caplog.text
    assert not [weights for weights in _loaded if weights.path in paths]


def test_weights_that_were_replaced_are_asked_again(checkpoints: Path) -> None:
    """A complete run stays, unless the files in the model's folder have changed since."""
    path = checkpoints / "step-30"
    first, again = (call_with_short_texts(path).answers.answer for _ in range(2))
    assert first.equals(again)
    save_model(path, seed=9, positions=8192)
    assert not call_with_short_texts(str(path)).answers.answer.equals(first)


def test_equal_to_a_loaded_model(checkpoints: Path) -> None:
    """A mapping with a path gives the answers of the loaded model, and its name."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = checkpoints / "step-30"
    loaded = (
        AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32),
        AutoTokenizer.from_pretrained(path),
    )
    mapping: dict[str, Any] = {
        "path": str(path),
        "dtype": "float32",
        "attention": "eager",
        "name": "my/eager",
    }
    results = [call_with_short_texts(model) for model in (mapping, loaded)]
    assert results[0].answers.answer.equals(results[1].answers.answer)
    assert set(results[0].answers.model) == {"my/eager"}


def test_batch_size_of_a_folder(checkpoints: Path) -> None:
    """`batch_size` says how many prompts of a folder are answered together."""
    result = call_with_short_texts(str(checkpoints / "step-30"), batch_size=2)
    (facts,) = [
        orjson.loads(path.read_bytes()) for path in result.suite.glob(f"*/{MODEL}")
    ]
    assert facts["batch"] == 2
    with pytest.raises(
        lc.InputError,
        match="evaluate: tokenizer='gpt2' has no effect; leave it out, because a folder",
    ):
        call(checkpoints / "step-30", tokenizer="gpt2")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"path": "no/step-*"},
            "path='no/step-\\*' matches no folder; give folders with config.json",
        ),
        (
            {"path": "./no"},
            "path='./no' has no config.json; give a folder with config.json and safetensors weights",
        ),
        (
            {"path": "a/b", "dtype": "int3"},
            "dtype='int3' is invalid; choose from bfloat16, float16, float32, auto",
        ),
        (
            {"path": "a/b", "remote_code": True},
            "remote_code runs code from the hub; give it only with a commit of 40",
        ),
        (
            {"path": "a/b", "remote_code": True, "revision": "main"},
            "give it only with a commit of 40 hexadecimal",
        ),
        (
            {"path": "a/b", "load": {"torch_dtype": "auto"}},
            "torch_dtype has a key of its own; give dtype",
        ),
        (
            {"path": "checkpoints/step-30", "revision": COMMIT},
            "revision='0123.*is a folder; leave it out",
        ),
        (
            {"path": "checkpoints/step-30", "attention": "fast"},
            "attn_implementation='fast' is invalid; .*eager, sdpa",
        ),
        (
            {"path": "checkpoints/step-*", "step": 1},
            "step=1 is given, but checkpoints/step-\\* stands for 3 models",
        ),
        (
            {"path": "checkpoints/step-30", "engine": "trt"},
            "engine='trt' is invalid; choose from transformers, vllm",
        ),
        (
            {"path": "checkpoints/step-30", "adaptor": "x"},
            "adaptor is not a key; .*adapter",
        ),
        (
            {"path": "checkpoints/step-30", "adapter": "x"},
            "(needs peft|has no adapter_config.json)",
        ),
    ],
)
def test_errors_before_anything_is_loaded(
    checkpoints: Path, entry: dict[str, Any], message: str
) -> None:
    """A mistake is one line with the argument, its value and what is allowed."""
    with pytest.raises(lc.InputError, match=message):
        call(entry)
    assert not Path("benchmark_output/runs").exists()


def test_a_folder_without_weights(checkpoints: Path) -> None:
    """A folder whose weights are not complete is refused with the name of the file that lacks."""
    (checkpoints / "step-30/model.safetensors").unlink()
    with pytest.raises(
        lc.InputError, match=r"step-30' has no model\.safetensors; give a folder"
    ):
        call(checkpoints / "step-30")


def test_options_of_servers_and_of_folders(checkpoints: Path, command: Command) -> None:
    """An option of a server is refused beside a folder."""
    assert (
        command(
            "run", "--model-path", "checkpoints/step-30", "--api-key-env", "KEY", *TASK
        )
        == 2
    )
    assert (
        "--api-key-env belongs to --model-url, not to --model-path; leave it out"
        in command.err
    )


@pytest.mark.parametrize(
    ("name", "family", "step"),
    [
        ("checkpoints/step-1000", "checkpoints/step-*", 1000),
        ("x/checkpoint-500", "x/checkpoint-*", 500),
        ("y/global_step20", "y/global_step*", 20),
        ("org/pythia-step143k", "org/pythia-step*", 143000),
        ("org/pythia-1000", "org/pythia-*", 1000),
        ("local/Qwen2.5-7B", None, None),
        ("local/smollm2-135m-instruct", None, None),
    ],
)
def test_steps_in_names(name: str, family: str | None, step: int | None) -> None:
    """The step of a checkpoint is read from its name."""
    checkpoint = find_step(name)
    assert (checkpoint and checkpoint.family, checkpoint and checkpoint.number) == (
        family,
        step,
    )
