"""Tests of tokenizers that are read without transformers: their tokens, and that everything else is left to transformers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from helm_longctx.helm.truncation import load_tokenizer
from helm_longctx.models.fast_tokenizers import FastTokenizer, read_fast_tokenizer
from helm_longctx.tasks.counting import make_codec, make_counter
from helm_longctx.tasks.cutting.cutters import counter_with_special_tokens
from tests.support.servers.llm import serve
from tests.tasks import tokenizers as made

SPECIAL: dict[str, Any] = {
    "none": {},
    "in the file": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "not in the file": {
        "bos_token": "<|start|>",
        "pad_token": "[PAD]",
        "mask_token": "the town",
    },
}
"""The special tokens that a saved tokenizer names."""

KINDS = (
    made.gpt_2,
    made.claude,
    made.roberta,
    made.llama_3,
    made.deepseek,
    made.llama_2,
    made.t5,
    made.bert,
)
"""Byte-level and other BPE, Unigram and WordPiece, with every normalizer and way to split of the usual models."""

TEXTS = [
    *made.LINES[:6],
    "".join(made.PARTS),
    " ".join(made.PARTS),
    "",
    " ",
    "<|start|>[PAD] the town <|end of turn|> <s>x</s>",
]


WORDS_FOLDER = str(resources.files("helm_longctx") / "models/baselines/words")
WORDS = AutoTokenizer.from_pretrained(WORDS_FOLDER)


def refuse() -> Any:
    """Fail instead of loading with transformers."""
    raise AssertionError("transformers is not needed")


def check_alike(folder: Path, texts: list[str]) -> None:
    """Check that a tokenizer is read without transformers, and has its ids, counts and special tokens."""
    ours = read_fast_tokenizer(str(folder), refuse)
    theirs = AutoTokenizer.from_pretrained(folder)
    assert ours is not None
    assert (ours.bos_token, ours.eos_token) == (theirs.bos_token, theirs.eos_token)
    count = make_counter(ours)
    whole = counter_with_special_tokens(ours)
    codec = make_codec(ours)
    for text in texts:
        assert codec.encode(text) == theirs.encode(text)
        assert codec.decode(theirs.encode(text)) == theirs.decode(theirs.encode(text))
        assert count(text) == len(theirs.encode(text, add_special_tokens=False))
        assert whole(text) == len(theirs.encode(text))


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_tokens_equal_those_of_transformers(
    kind: Callable[[], Tokenizer], special: str, tmp_path: Path
) -> None:
    """A saved tokenizer of every kind of model, normalizer and split has the same ids and counts."""
    arguments = {
        "tokenizer_object": kind(),
        "clean_up_tokenization_spaces": False,
        **SPECIAL[special],
    }
    PreTrainedTokenizerFast(**arguments).save_pretrained(tmp_path)
    check_alike(tmp_path, TEXTS)


def test_files_of_older_versions_say_nothing_new(tmp_path: Path) -> None:
    """Files that older versions of transformers save do not count if the configuration has the added tokens."""
    tokenizer = made.llama_3()
    arguments = {
        "tokenizer_object": tokenizer,
        "clean_up_tokenization_spaces": False,
        "bos_token": "<s>",
    }
    PreTrainedTokenizerFast(**arguments).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    fields = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    decoder = tokenizer.get_added_tokens_decoder()
    config["added_tokens_decoder"] = {
        id: {name: getattr(token, name) for name in fields}
        for id, token in decoder.items()
    }
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps(config | {"tokenizer_class": "PreTrainedTokenizerFast"})
    )
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"bos_token": "<other>"})
    )
    check_alike(tmp_path, TEXTS)


def test_truncation_and_padding_in_the_file_do_not_count(tmp_path: Path) -> None:
    """Settings for training that were saved with a tokenizer change no count."""
    tokenizer = made.gpt_2()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    ours = read_fast_tokenizer(str(tmp_path), refuse)
    assert make_counter(ours)(made.LINES[0]) == len(made.gpt_2().encode(made.LINES[0]))


@given(st.text(max_size=60))
def test_our_own_tokenizer(text: str) -> None:
    """The baselines' tokenizer, which names a special token that its file lacks, has the tokens of transformers."""
    ours = read_fast_tokenizer(WORDS_FOLDER, refuse)
    assert ours is not None
    assert ours.backend_tokenizer.encode(f"{text}[UNK]").ids == WORDS.encode(
        f"{text}[UNK]"
    )


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"}),
        ("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizerFast"}),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True},
        ),
        (
            "tokenizer_config.json",
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "auto_map": {"AutoTokenizer": "x.Y"},
            },
        ),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "PreTrainedTokenizerFast", "image_token": "<image>"},
        ),
        (
            "tokenizer_config.json",
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "extra_special_tokens": ["<x>"],
            },
        ),
        (
            "tokenizer_config.json",
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "added_tokens_decoder": {"999": {"content": "<new>"}},
            },
        ),
        (
            "tokenizer_config.json",
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "added_tokens_decoder": {"1": {"content": "<s>", "lstrip": True}},
            },
        ),
        ("tokenizer_config.json", {}),
        ("config.json", {"model_type": "qwen2"}),
        ("special_tokens_map.json", {"bos_token": "<s>"}),
        ("tokenizer.json", {"not": "a tokenizer"}),
    ],
)
def test_what_transformers_may_change_is_left_to_it(
    file: str, content: dict[str, Any], tmp_path: Path
) -> None:
    """A tokenizer whose class, configuration or other files can change its tokens is read with transformers."""
    PreTrainedTokenizerFast(tokenizer_object=made.gpt_2()).save_pretrained(tmp_path)
    assert read_fast_tokenizer(str(tmp_path), refuse) is not None
    (tmp_path / file).write_text(json.dumps(content))
    assert read_fast_tokenizer(str(tmp_path), refuse) is None


def test_decoding_is_left_to_transformers(tmp_path: Path) -> None:
    """Decoding, which can clean up spaces, and calling are those of the tokenizer of transformers."""
    PreTrainedTokenizerFast(
        tokenizer_object=made.gpt_2(), clean_up_tokenization_spaces=True
    ).save_pretrained(tmp_path)
    spec = TokenizerSpec(
        "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer",
        {"pretrained_model_name_or_path": str(tmp_path)},
    )
    ours = load_tokenizer(TokenizerConfig("test/decodes", spec))
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(ours, FastTokenizer)
    ids = theirs.encode("a town , it 's .")
    assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(
        ids, skip_special_tokens=True
    )
    assert ours("a town")["input_ids"] == theirs("a town")["input_ids"]


def test_a_run_on_a_server_loads_no_torch(tmp_path: Path) -> None:
    """The whole command `run`, from own questions to printed scores, imports neither torch nor other large packages."""
    (tmp_path / "own").mkdir()
    row = {
        "context": "The bridge is red. " * 20,
        "question": "Which colour?",
        "answers": ["red"],
    }
    (tmp_path / "own/questions.jsonl").write_text(json.dumps(row))
    entry = "any_jsonl:path=own,length=4k,count_with=longctx/words"
    with serve(lambda prompt: "red") as server:
        command = [
            "-X",
            "importtime",
            "-m",
            "helm_longctx",
            "run",
            "--suite",
            "s",
            "--entry",
            entry,
            "--model-type",
            "chat",
        ]
        options = [
            "--model-url",
            server.openai,
            "--model-name",
            "m",
            "--context",
            "32k",
            "--tokenizer",
            WORDS_FOLDER,
        ]
        done = subprocess.run(
            [sys.executable, *command, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "100.0" in done.stdout
    imported = {
        line.rpartition("|")[2].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert (
        not {
            "torch",
            "transformers",
            "datasets",
            "pandas",
            "scipy.stats",
            "sklearn",
            "nltk",
        }
        & imported
    )
