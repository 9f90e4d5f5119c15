"""Tests of the similarity of texts, with a small real model in the form of sentence-transformers."""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longbench_pro.judge import SimilarityAnnotator
from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.errors import InputError
from helm_longctx.judging import similarity
from helm_longctx.judging.similarity import EmbeddingModel, find_embedding_model
from tests.support.states import state

transformers = pytest.importorskip("transformers")
if find_spec("sentence_transformers") is None:
    pytest.skip("needs sentence_transformers", allow_module_level=True)
ignore_broken_torchvision()

OFFICIAL = "org/embedding@" + "0" * 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a model with random weights, whose vectors are means over tokens."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel

    path = tmp_path_factory.mktemp("embedding")
    words = ["[PAD]", "[UNK]", "the", "cat", "sat", "on", "mat", "dog"]
    tokenizer = Tokenizer(
        WordLevel(
            {word: number for number, word in enumerate(words)}, unk_token="[UNK]"
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    )
    fast.save_pretrained(path / "plain")
    transformers.set_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    transformers.BertModel(config).save_pretrained(path / "plain")
    base = Transformer(str(path / "plain"))
    SentenceTransformer(modules=[base, Pooling(8)], device="cpu").save(
        str(path / "model")
    )
    return path / "model"


def answered(summary: str, task: str = "t4_1") -> Any:
    """Return a request with an answer, whose reference is `v1`."""
    return state(1, summary, task=task, prefix_scored=False)


def test_the_official_computation(folder: Path) -> None:
    """The similarity is what the official code computes with the same model: the largest cosine."""
    from sentence_transformers import SentenceTransformer

    texts = ["the cat sat", "dog", "on the mat"]
    similarities = {}
    for pads_left, options in ((False, {}), (True, {"padding_side": "left"})):
        model = SentenceTransformer(str(folder), device="cpu", processor_kwargs=options)
        ours = EmbeddingModel(str(folder), pads_left)
        for other in ("the dog sat on the mat", "on the mat", "北京"):
            expected = model.similarity(
                model.encode(texts), model.encode([other])
            ).max()
            similarities[pads_left, other] = ours.best_similarity(texts, other)
            assert similarities[pads_left, other] == float(expected)
    assert similarities[False, "on the mat"] == pytest.approx(1)
    assert similarities[False, "北京"] != similarities[True, "北京"]


def test_summaries_are_annotated(folder: Path) -> None:
    """A summary gets its similarity and the model's name; other tasks, empty and failed answers get nothing."""
    annotator = SimilarityAnnotator(str(folder))
    note = annotator.annotate(answered("[Answer]\nV1"))
    assert -1 <= note["value"] <= 1.001
    assert note["model"].startswith(f"{folder}@local-")
    assert annotator.annotate(answered("[Answer]\nV1", "t4_2_thinking")) == note
    assert [
        annotator.annotate(answer)
        for answer in (answered("A", "t3_1"), answered(" \n"))
    ] == [
        {},
        {},
    ]
    failed = answered("V1")
    assert (
        annotator.annotate(
            replace(failed, result=replace(failed.result, success=False))
        )
        == {}
    )


def test_a_model_that_cannot_be_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no model is named once in the log, and the answers count as not judged."""
    with pytest.raises(
        InputError,
        match="is not a sentence-transformers model that can be loaded on this machine",
    ):
        EmbeddingModel(str(tmp_path)).best_similarity(["a"], "b")
    annotator = SimilarityAnnotator(str(tmp_path))
    with caplog.at_level(logging.ERROR):
        assert [annotator.annotate(answered(text)) for text in "ab"] == [
            {"failed": True}
        ] * 2
    assert sum("is not judged" in record.message for record in caplog.records) == 1


def test_names_of_models(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`auto` is the pinned model if a GPU has room, the model's plain name is pinned, too, and `none` is no model."""
    room = [False]
    monkeypatch.setattr(similarity, "gpu_has_room", lambda needed: room[0])
    assert find_embedding_model("auto", OFFICIAL, 1) is None
    assert "no GPU has room for org/embedding@" in caplog.text
    assert find_embedding_model("none", OFFICIAL, 1) is None
    room[0] = True
    models = [
        find_embedding_model(name, OFFICIAL, 1)
        for name in ("auto", "org/embedding", OFFICIAL)
    ]
    assert [model.name for model in models if model] == [OFFICIAL] * 3


def test_without_the_extra(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the package, a named model is refused before anything is sent, and judging again fails without an error."""
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(
        InputError,
        match=r"judge='org/other' needs sentence_transformers; install with: pip install",
    ):
        SimilarityAnnotator.check("org/other")
    SimilarityAnnotator.check("auto")
    assert SimilarityAnnotator("org/other").annotate(answered("V1")) == {"failed": True}
    assert "similarity is not measured: judge='org/other' needs" in caplog.text
