"""Tests of folders of models with one thing wrong each: none of them is scored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import helm_longctx as lc  # noqa: E402
from helm_longctx.models.local import folders as model_folders  # noqa: E402
from helm_longctx.models.local import templates  # noqa: E402
from helm_longctx.models.local.folders import digest_folder, list_files  # noqa: E402
from tests.attacks import folders  # noqa: E402
from tests.evaluation.calls import call  # noqa: E402
from tests.models.conftest import one_thread  # noqa: E402, F401

pytestmark = pytest.mark.usefixtures("one_thread")

NAMED = {
    "a tensor is missing": f"missing: {folders.QUERY}",
    "a tensor is unknown": "unexpected: extra",
    "a tensor has another shape": f"{folders.QUERY} is [31, 32] instead of [32, 32]",
    "a weight is NaN": f"not finite numbers (NaN or infinity): {folders.QUERY}",
    "a million layers": "config.json has num_hidden_layers=1000000, and the weights have only 21",
    "the adapter has another prefix": "missing: model.layers.0.self_attn.q_proj.lora_A",
    "the adapter has half of its pairs": "missing: model.layers.0.self_attn.q_proj.lora_B",
    "the adapter has an unknown tensor": "unexpected: model.layers.9.mlp.lora_A",
}
"""What the error must name."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a small model without a fault."""
    return folders.make_source(tmp_path_factory.mktemp("source") / "model")


def test_a_whole_folder_is_asked(source: Path) -> None:
    """The folder that the others are made from answers."""
    assert folders.find_refusal({"path": str(source), "dtype": "float32"}) == ""


@pytest.mark.parametrize("name", folders.FOLDERS)
def test_a_broken_folder(
    name: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with one thing wrong is refused in one line."""
    if "adapter" in name:
        pytest.importorskip("peft")
    monkeypatch.setattr(templates, "_MOST_SECONDS", 1.0)
    entry = folders.make_folder(source, tmp_path / "model", name)
    refusal = folders.find_refusal(entry)
    assert refusal
    assert NAMED.get(name, "") in refusal
    assert "\n" not in refusal


def test_no_score(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call of `evaluate` with such a folder ends in one line and has no score."""
    monkeypatch.chdir(tmp_path)
    entry = folders.make_folder(source, tmp_path / "model", "a tensor is missing")
    with pytest.raises(
        lc.InputError, match=r"missing: model\.layers\.0\.self_attn\.q_proj"
    ):
        call(entry, lengths="4k", num_samples=1)
    assert not list(tmp_path.glob("benchmark_output/runs/*/*/stats.json"))


def test_a_tied_model_is_whole(tmp_path: Path) -> None:
    """A model with tied weights has one tensor for two names, and is asked."""
    import json

    folder = folders.make_source(tmp_path / "model")
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(
        json.dumps({**config, "tie_word_embeddings": True})
    )
    folders.change_tensors(lambda tensors: tensors.pop("lm_head.weight"))(folder)
    assert folders.find_refusal({"path": str(folder), "dtype": "float32"}) == ""


def test_what_changes_the_digest(source: Path, tmp_path: Path) -> None:
    """The digest of a folder changes with every file that changes answers, also if size and time stay."""
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(source, folder)
    seen = {digest_folder(source)}
    assert digest_folder(folder) in seen  # a copy is the same model
    weights = folder / "model.safetensors"
    status = weights.stat()
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    seen.add(digest_folder(folder))
    for name in (
        "chat_template.jinja",
        "tokenizer.json",
        "tokenizer_config.json",
        *(
            "generation_config.json",
            "merges.txt",
            "tokenizer.model",
            "special_tokens_map.json",
        ),
        *(
            "adapter_model.safetensors",
            "additional_chat_templates/tool.jinja",
            "own.py",
        ),
    ):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        before = path.read_bytes() if path.is_file() else b""
        path.write_bytes(before + b" ")
        seen.add(digest_folder(folder))
    assert len(seen) == 12
    for name in (
        "optimizer.pt",
        "README.md",
        ".cache",
        "checkpoint-7/model.safetensors",
    ):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"1")
        assert digest_folder(folder) in seen


def test_large_weights_are_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large file the digest covers blocks from the start to the end, and the time."""
    monkeypatch.setattr(model_folders, "_WHOLE", 1000)
    monkeypatch.setattr(model_folders, "_BLOCK", 100)
    monkeypatch.setattr(model_folders, "_BLOCKS", 10)
    file = tmp_path / "model.safetensors"
    data = bytearray(10_000)
    digests = set()
    for position in (0, 9_999, 5_505):
        data[position] ^= 1
        file.write_bytes(data)
        os.utime(file, ns=(0, 0))
        digests.add(digest_folder(tmp_path))
    os.utime(file, ns=(0, 1))
    digests.add(digest_folder(tmp_path))
    assert len(digests) == 4
    assert list(list_files(tmp_path)) == [file]


def test_weights_replaced_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder whose weights or template are replaced is asked again in the same process, by the same relative path."""
    monkeypatch.chdir(tmp_path)
    answers = []
    for seed in (1, 2):
        folders.save_model(Path("org/model"), seed=seed, positions=8192)
        for _ in range(2):
            result = call("org/model", lengths="4k", num_samples=1)
            answers.append(list(result.answers.answer))
    assert answers[0] == answers[1] != answers[2] == answers[3]
