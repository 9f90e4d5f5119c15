"""HELMET's ruler: Llama 2's tokenizer, by which texts are measured and cut whatever model reads them."""

from __future__ import annotations

from helm_longctx.benchmarks.helmet.prompts import OMITTED
from helm_longctx.protocol.text import ESTIMATE, Counter, Cutter, tokenizer_counter
from helm_longctx.sources.hub import HubFile
from helm_longctx.sources.root import DataRoot

LLAMA_2 = HubFile(
    repo="meta-llama/Llama-2-7b-hf",
    name="tokenizer.json",
    path="tokenizers/meta-llama__Llama-2-7b-hf/tokenizer.json",
    kind="model",
    setting="HELM_LONGCTX_LLAMA2_REPO",
)
"""Gated: without access, the setting names a repository with a copy of the file."""


def ruler(root: DataRoot) -> Counter:
    """Llama 2 tokens, if that tokenizer is under the data root; else the estimate."""
    return tokenizer_counter(LLAMA_2.origin(root), root / LLAMA_2.path) if root.has(LLAMA_2.path) else ESTIMATE


def cutter(root: DataRoot, limit: int) -> Cutter:
    """Cuts texts to so many Llama 2 tokens."""
    return Cutter(root / LLAMA_2.path, limit, OMITTED)
