"""The key-value cache of a prompt's beginning, kept for the next prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class CachedPrefix:
    """What a model computed for the first tokens of a prompt, in whole chunks.

    Only whole chunks, so that a prompt is computed by the same operations whatever was asked before: an answer does not
    depend on the order of requests.

    Args:
        tokens: ids.
        cache: of transformers; it holds as many positions.
        chunk_size: tokens that were read at once.
    """

    tokens: list[int]
    cache: Any
    chunk_size: int

    @staticmethod
    def of(prompt: Sequence[int], cache: Any, chunk_size: int) -> CachedPrefix:
        """A prompt's whole chunks, from a cache that holds at least all of it but its last token."""
        tokens = [*prompt[: (len(prompt) - 1) // chunk_size * chunk_size]]
        _crop(cache, len(tokens))
        return CachedPrefix(tokens, cache, chunk_size)

    def crop_to(self, prompt: Sequence[int], chunk_size: int) -> int:
        """Forget all but the chunks that another prompt begins with; how many tokens they are."""
        if chunk_size != self.chunk_size:
            return 0
        end = 0
        # Of the last chunk a token is always left to compute.
        for start in range(0, min(len(self.tokens), len(prompt) - 1) - chunk_size + 1, chunk_size):
            if [*prompt[start : start + chunk_size]] != self.tokens[start : start + chunk_size]:
                break
            end = start + chunk_size
        _crop(self.cache, end)
        return end


def is_croppable(cache: Any) -> bool:
    """Whether every layer keeps all positions; sliding windows and recurrent states do not."""
    # Exact types: subclasses have states that are not cropped with the rest. Older versions have no layer objects.
    layers = getattr(cache, "layers", [])
    return type(cache).__name__ == "DynamicCache" and all(type(layer).__name__ == "DynamicLayer" for layer in layers)


def _crop(cache: Any, length: int) -> None:
    # What is positive means a length in some versions of transformers; what is negative is taken off in all.
    if excess := cache.get_seq_length() - length:
        cache.crop(-excess)
