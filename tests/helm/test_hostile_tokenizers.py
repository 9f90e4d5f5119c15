"""Tests that tokenizers which would stall a run are refused before they count anything."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
)
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm import truncation
from helm_longctx.helm.truncation import Truncator, settings_with_tokenizer
from helm_longctx.models import tokenizer_checks
from helm_longctx.models.tokenizer_checks import check_speed
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS

QUADRATIC = r"\s+$"
FAILING = r"(?:\w+\s?)+\d"


def save_tokenizer(folder: Path, pattern: str = r"\w+") -> Path:
    """Save a tokenizer that splits texts by a pattern, and return its folder."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    )
    return folder


def count_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a task count with the tokenizer of a folder."""
    entry = parse_entry(BENCHMARKS, f"ruler:task=vt,length=4k,count_with={folder}")
    return settings_with_tokenizer(entry, DataRoot(folder, mirror=True))


def cut_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a deployment cut prompts with the tokenizer of a folder."""
    spec = TokenizerSpec(
        "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer",
        {"pretrained_model_name_or_path": str(folder)},
    )
    deployment = ModelDeployment(
        name="test/cut",
        client_spec=ClientSpec("unused"),
        tokenizer_name="test/cut",
        max_sequence_length=100,
    )
    config = TokenizerConfig("test/cut", spec)
    monkeypatch.setattr(truncation, "get_tokenizer_config", lambda name: config)
    monkeypatch.setattr(truncation, "get_model_deployment", lambda name: deployment)
    Truncator.for_deployment("test/cut").check()


USES = [count_with, cut_with]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("pattern", [QUADRATIC, FAILING])
def test_a_slow_tokenizer_is_refused(
    use: Any, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer whose pattern takes quadratic time, or gives up, ends in one line with its place."""
    monkeypatch.setattr(tokenizer_checks, "_MOST_SECONDS", 0.2)
    folder = save_tokenizer(tmp_path / "slow", pattern)
    with pytest.raises(InputError, match=r"slow.*its tokenizer (needs|fails)") as error:
        use(folder, monkeypatch)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("use", USES)
def test_a_huge_tokenizer_is_refused(
    use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer's file of two gigabytes is not read."""
    folder = save_tokenizer(tmp_path / "huge")
    os.truncate(folder / "tokenizer.json", 2 << 30)
    with pytest.raises(InputError, match="a tokenizer has at most 268,435,456"):
        use(folder, monkeypatch)


@pytest.mark.parametrize("use", USES)
def test_a_plain_tokenizer_is_used(
    use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer with a usual pattern passes the same checks."""
    use(save_tokenizer(tmp_path / "plain"), monkeypatch)


def test_a_changed_tokenizer_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer is checked once, and again when its file has changed."""
    file = save_tokenizer(tmp_path / "changed") / "tokenizer.json"
    check_speed(Tokenizer.from_file(str(file)), str(file))
    slow = save_tokenizer(tmp_path / "slow", FAILING) / "tokenizer.json"
    os.replace(slow, file)
    with pytest.raises(InputError, match="its tokenizer"):
        check_speed(Tokenizer.from_file(str(file)), str(file))
