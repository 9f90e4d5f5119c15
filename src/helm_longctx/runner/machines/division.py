"""Divides the prompts of a run into shards. Prompts of one context stay together, because of prefix caches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from helm_longctx.runner.prefixes import Key, order_by_prefix, prefix_keys
from helm_longctx.runs.shards import Shard

SPLIT = 32
"""Least number of prompts that each shard gets of a context that is divided. A second shard must read the context
again, so this limits the cost."""


def select_shard(prompts: Iterable[str], shard: Shard) -> list[int]:
    """Return the numbers of a shard's prompts, in their order. Each prompt is in exactly one shard.

    Args:
        prompts: all prompts of the run, which are read once and one at a time.
    """
    sizes: list[int] = []
    keys = prefix_keys(_measure(prompts, sizes))
    shares: list[list[int]] = [[] for _ in range(shard.total)]
    load = [0] * shard.total
    # The largest group comes first, and each goes to the smallest shard, so all processes have the same result.
    for part in sorted(_parts(keys, sizes, shard.total), key=lambda part: -sum(sizes[each] for each in part)):
        least = load.index(min(load))
        shares[least] += part
        load[least] += sum(sizes[each] for each in part)
    return sorted(shares[shard.number - 1])


def _measure(prompts: Iterable[str], sizes: list[int]) -> Iterator[str]:
    for prompt in prompts:
        sizes.append(len(prompt))
        yield prompt


def _parts(keys: Sequence[Key], sizes: Sequence[int], total: int) -> Iterator[list[int]]:
    """Yield groups of prompts that stay together."""
    share = sum(sizes) / total
    waiting = [order_by_prefix(keys)]
    while waiting:
        group = waiting.pop()
        if len(group) < 2 or sum(sizes[number] for number in group) <= share:
            yield group
            continue
        # The prompts are sorted, so all of them have the prefix that the first and the last share.
        pairs = zip(keys[group[0]], keys[group[-1]], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if 2 * common >= max(len(keys[number]) for number in group):
            yield from _pieces(group, total)
        else:  # they share only a beginning, such as an instruction
            waiting += _divide(keys, group, common)


def _divide(keys: Sequence[Key], group: Sequence[int], level: int) -> list[list[int]]:
    """Divide prompts by the step of their keys that follows the steps that all share."""
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for number in group:
        groups[tuple(keys[number][level : level + 1])].append(number)
    return list(groups.values())


def _pieces(group: Sequence[int], total: int) -> Iterator[list[int]]:
    """Divide a context that has more than a fair share of the prompts, if the pieces are large enough."""
    count = max(1, min(total, len(group) // SPLIT))
    for piece in range(count):
        yield list(group[len(group) * piece // count : len(group) * (piece + 1) // count])
