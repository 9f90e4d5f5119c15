"""Measures how similar texts are in meaning, with models of the hub that make a vector of a text."""

import logging
from collections.abc import Sequence
from typing import Any

from helm_longctx.environment import (
    dtype_argument,
    ignore_broken_torchvision,
    page_address,
    require,
)
from helm_longctx.errors import InputError
from helm_longctx.judging.entailment import HubModel, gpu_has_room

_log = logging.getLogger(__name__)


class EmbeddingModel(HubModel):
    """A sentence-transformers model of the hub or of a folder, with 32-bit weights."""

    def __init__(self, model: str, pads_left: bool = False):
        super().__init__(model)
        self._options = {"padding_side": "left"} if pads_left else {}

    def best_similarity(self, texts: Sequence[str], other: str) -> float:
        """Return the similarity of a text with the most similar one of several, mostly a cosine, -1 to 1."""
        with self._lock:  # HELM runs annotators in several threads
            model = self._find()
            # Each side is a batch of its own, because the other texts of a batch change the last digits.
            return float(
                model.similarity(model.encode(list(texts)), model.encode([other])).max()
            )

    def _load(self) -> Any:
        ignore_broken_torchvision()
        try:
            if self._version is None:
                raise LookupError("the commit is unknown")
            import torch
            from sentence_transformers import SentenceTransformer

            return SentenceTransformer(
                self._model,
                revision=None if self._folder else self._version,
                trust_remote_code=False,
                model_kwargs={dtype_argument(): torch.float32},
                processor_kwargs=self._options,
            )
        except (
            Exception
        ) as error:  # errors of the hub, the disk, or a broken installation
            raise InputError(
                f"judge={self._model!r} is not a sentence-transformers model that can"
                f" be loaded on this machine ({type(error).__name__}); see"
                f" {page_address('judges#similarity')}"
            ) from error


def find_embedding_model(
    judge: str,
    official: str,
    needed: int,
) -> EmbeddingModel | None:
    """Create the model of a `judge=` argument, or raise an `InputError`. Returns None if similarity is not measured.

    `auto` is the official model, if a GPU has `needed` free bytes. Others are `none`, a folder, `name` or
    `name@revision`.
    """
    if judge == "auto" and not gpu_has_room(needed):
        _log.warning(
            "similarity is not measured: no GPU has room for %s; name a model with judge=",
            official,
        )
        return None
    if judge == "none":
        return None
    # The official model is pinned, because a change of it would change scores without notice.
    if judge in ("auto", official.partition("@")[0]):
        model = official
    else:
        model = judge
    require("similarity", f"judge={model!r}")
    return EmbeddingModel(model, pads_left=model == official)
