"""Batches of prompts: how many fit into the memory, and the key-value cache of several prompts of different lengths.

Each prompt is read on its own, because a long one keeps the processor busy, and a beginning that it shares with the one
before is not read again. Only the answers are written together: for each token of an answer all weights are read from
memory, and a batch reads them once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_longctx.models.local.model import LocalRequest

SHARE = 0.6
"""The share of the free memory that caches of a batch may have. The rest is for the layers' outputs."""


def bytes_per_token(cache: Any) -> int:
    """Return the bytes that a cache has for a token of a prompt."""
    size = 0
    for layer in cache.layers:
        for part in (layer.keys, layer.values):
            size += part.shape[1] * part.shape[3] * part.element_size()
    return size


def free_bytes(device: Any) -> int:
    """Return the bytes that are free on a model's device: of a GPU, or of this machine."""
    import torch

    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(
            device
        )
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(
                int(line.split()[1]) << 10
                for line in lines
                if line.startswith("MemAvailable")
            )
    except (OSError, StopIteration):  # not on Linux
        if hasattr(os, "sysconf"):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        return 1 << 31


def fitting(
    jobs: Sequence[LocalRequest],
    per_token: int,
    room: int,
    most: int,
) -> Iterator[list[int]]:
    """Yield the numbers of the jobs of each batch: as many as fit, those with a common beginning one after the other.

    Args:
        per_token: bytes of the cache for each token.
        room: bytes that are free.
        most: most jobs of a batch.
    """
    batch: list[int] = []
    longest = 0
    # In the order of their tokens prompts with one context are neighbours, the shorter ones first.
    for number in sorted(range(len(jobs)), key=lambda number: jobs[number].prompt):
        size = len(jobs[number].prompt) + jobs[number].max_tokens
        # The last prompt's own cache stays beside the batch's caches, for the next batch.
        needed = (len(batch) + 2) * max(longest, size) * per_token
        if batch and (needed > SHARE * room or len(batch) == most):
            yield batch
            batch = []
            longest = 0
        batch.append(number)
        longest = max(longest, size)
    if batch:
        yield batch


def merge(caches: list[Any], more: int) -> Any:
    """Return the cache of a batch, in which shorter prompts are padded on the left. The rows are given away.

    Args:
        caches: the caches of the prompts, each with a single row. The last one stays as it is.
        more: positions that follow.
    """
    length = max(cache.get_seq_length() for cache in caches)
    merged = copy(caches[-1])
    merged.layers = []
    for depth in range(len(caches[-1].layers)):
        layers = [cache.layers[depth] for cache in caches]
        keys = [layer.keys for layer in layers]
        values = [layer.values for layer in layers]
        merged.layers.append(
            _make_layer(
                layers[-1], _pad(keys, length, more), _pad(values, length, more), length
            )
        )
        for cache in caches[:-1]:
            cache.layers[depth] = None  # the memory of its row
    return merged


def _pad(rows: Sequence[Any], length: int, more: int) -> Any:
    _, heads, _, size = rows[0].shape
    padded = rows[0].new_zeros((len(rows), heads, length + more, size))
    for number, row in enumerate(rows):
        padded[number, :, length - row.shape[2] : length] = row[0]
    return padded


def _make_layer(
    layer: Any,
    keys: Any,
    values: Any,
    length: int,
) -> Any:
    """Return a layer of a cache that has room for all tokens, so that a further one is no copy of all before."""

    class RoomyLayer(type(layer)):  # type: ignore[misc]
        keys: Any
        values: Any

        def update(
            self,
            key_states: Any,
            value_states: Any,
            *arguments: Any,
            **options: Any,
        ) -> tuple[Any, Any]:
            start = self.keys.shape[2]
            end = start + key_states.shape[2]
            keys[:, :, start:end], values[:, :, start:end] = key_states, value_states
            self.keys = keys[:, :, :end]
            self.values = values[:, :, :end]
            return self.keys, self.values

    made = copy(layer)
    made.__class__ = RoomyLayer
    made.keys = keys[:, :, :length]
    made.values = values[:, :, :length]
    return made
