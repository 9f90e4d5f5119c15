"""Keeps the key-value cache of the start of a prompt for the next prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class CachedPrefix:
    """The key-value cache of the first tokens of a prompt, in whole chunks.

    Only whole chunks are kept, because then each prompt is computed by the same operations, whether or not a prefix is
    reused. So answers do not depend on the order of requests.

    Args:
        tokens: the token ids.
        cache: the cache object of transformers, with one position for each token.
        chunk_size: number of tokens in a chunk.
    """

    tokens: list[int]
    cache: Any
    chunk_size: int

    @staticmethod
    def of(prompt: Sequence[int], cache: Any, chunk_size: int) -> CachedPrefix:
        """Keep the whole chunks of a prompt. The cache has all tokens of the prompt; it may lack the last one."""
        # The last token is not in the cache: `generate` reads it.
        tokens = [*prompt[: (len(prompt) - 1) // chunk_size * chunk_size]]
        _crop(cache, len(tokens))
        return CachedPrefix(tokens, cache, chunk_size)

    def crop_to(self, prompt: Sequence[int], chunk_size: int) -> int:
        """Crop the cache to the chunks with which another prompt starts. Return their number of tokens."""
        if chunk_size != self.chunk_size:
            return 0
        end = 0
        # At least one token must be left to compute, because its logits give the first token of the answer.
        for start in range(0, min(len(self.tokens), len(prompt) - 1) - chunk_size + 1, chunk_size):
            if [*prompt[start : start + chunk_size]] != self.tokens[start : start + chunk_size]:
                break
            end = start + chunk_size
        _crop(self.cache, end)
        return end


def is_croppable(cache: Any) -> bool:
    """Return whether every layer keeps all positions. Layers with a sliding window or a recurrent state do not."""
    # Exact types are compared, because subclasses have state that is not cropped. Caches of older versions of
    # transformers have no layer objects.
    layers = getattr(cache, "layers", [])
    return type(cache).__name__ == "DynamicCache" and all(type(layer).__name__ == "DynamicLayer" for layer in layers)


def _crop(cache: Any, length: int) -> None:
    # A negative argument is the number of positions to remove, in all versions of transformers. A positive one is the
    # new length only in some.
    if excess := cache.get_seq_length() - length:
        cache.crop(-excess)
