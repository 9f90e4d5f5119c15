"""Finds prompts with the same beginning, orders them, and decides when each may be sent.

A server that has read a beginning need not read it again: vLLM and SGLang keep it in memory, and providers sell it at a
discount.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from helm_longctx.models.apis.prices import Prices
from helm_longctx.runner.spool import StoredRequest

STEP = 8192
"""Number of characters. Prompts are compared by prefixes whose lengths are multiples of this number."""

SMALLEST = 2 * STEP
"""Number of characters of the shortest beginning that is cached: about 4,096 tokens of English, the largest minimum of
Anthropic's models."""

CHARACTERS = 4
"""Approximate number of characters in a token of English text."""

PrefixDigests = list[int]
"""For each prefix of whole steps of a prompt, the number of the first prompt that starts with it."""


class SharedPrefix(NamedTuple):
    """The beginning that a prompt shares with at least one other."""

    group: int
    characters: int

    @property
    def tokens(self) -> int:
        """The approximate number of tokens."""
        return self.characters // CHARACTERS


Pays = Callable[[SharedPrefix, Sequence[int]], bool]
"""Says of a beginning, and of the numbers of the requests that share it, whether a cache makes them cheaper."""


def prefix_keys(prompts: Iterable[str]) -> list[PrefixDigests]:
    """Return the key of each prompt."""
    first: dict[bytes, int] = {}
    keys: list[PrefixDigests] = []
    for number, prompt in enumerate(prompts):
        # One hasher for all prefixes of a prompt reads each character once, and stores 16 bytes instead of a prefix.
        hasher = blake2b(digest_size=16)
        keys.append([])
        for start in range(0, len(prompt), STEP):
            hasher.update(prompt[start : start + STEP].encode("utf-8", "surrogatepass"))
            keys[-1].append(first.setdefault(hasher.digest(), number))
    return keys


def order_by_prefix(keys: Sequence[PrefixDigests]) -> list[int]:
    """Return the numbers of the prompts in an order that puts prompts with a common prefix next to each other.

    Each group takes the place of its first prompt.
    """
    return sorted(range(len(keys)), key=keys.__getitem__)


def shared_beginnings(keys: Sequence[PrefixDigests]) -> list[SharedPrefix | None]:
    """Return for each prompt the longest beginning that another prompt shares. One that is too short is None.

    A prompt that shares only a part of a longer beginning has none, because a provider finds only whole beginnings.
    """
    prompts: Counter[tuple[int, int]] = Counter()
    for key in keys:
        prompts.update(enumerate(key, 1))
    longest = []
    for key in keys:
        shared = []
        for prefix in enumerate(key, 1):
            if prompts[prefix] > 1:
                shared.append(prefix)
        longest.append(max(shared, default=(0, 0)))
    sharing = Counter(longest)
    groups = {prefix: group for group, prefix in enumerate(sharing)}
    beginnings: list[SharedPrefix | None] = []
    for prefix in longest:
        characters = prefix[0] * STEP
        if sharing[prefix] > 1 and characters >= SMALLEST:
            beginnings.append(SharedPrefix(groups[prefix], characters))
        else:
            beginnings.append(None)
    return beginnings


def cacheable_beginnings(
    requests: Sequence[StoredRequest],
    keys: Sequence[PrefixDigests],
    pays: Pays,
) -> list[SharedPrefix | None]:
    """Return the beginning that each prompt shares with others, if a provider's cache makes it cheaper.

    Conversations have none, because only a single turn is divided for the cache.
    """
    divided = []
    for asked, key in zip(requests, keys, strict=True):
        divided.append([] if asked.request.messages else key)
    beginnings = shared_beginnings(divided)
    groups: dict[SharedPrefix, list[int]] = defaultdict(list)
    for number, beginning in enumerate(beginnings):
        if beginning:
            groups[beginning].append(number)
    cheaper = set()
    for beginning, numbers in groups.items():
        if pays(beginning, numbers):
            cheaper.add(beginning)
    return [beginning if beginning in cheaper else None for beginning in beginnings]


def caching_pays(prices: Prices | None) -> Pays:
    """Return `pays` of requests that are sent on their own. If prices are not known, a cache counts as cheaper."""
    return lambda beginning, numbers: (
        prices is None or prices.caching_pays(beginning.tokens, len(numbers))
    )


def warming_pays(
    prices: Prices | None,
    write_price: float,
    tokens: Sequence[int],
) -> Pays:
    """Return `pays` of requests in a batch, of which the first is sent before it. If prices are not known, none pays.

    Args:
        write_price: see `Provider.batch_write_price`.
        tokens: approximate number of tokens of each prompt.
    """
    return lambda beginning, numbers: (
        prices is not None
        and prices.warming_pays(
            beginning.tokens,
            max(0, tokens[numbers[0]] - beginning.tokens),
            len(numbers),
            write_price,
        )
    )


class Schedule:
    """Chooses the next request. The first request of a group is sent alone; the others follow after its answer.

    Args:
        groups: the number of each request's group, if it has one. Requests are numbered in this order.
        numbers: the numbers of the requests that are to be sent.
    """

    def __init__(self, groups: Sequence[int | None], numbers: Iterable[int]):
        self._groups = groups
        self._ready: deque[int] = deque()
        self._held: defaultdict[int, deque[int]] = defaultdict(deque)
        leaders = set()
        for number in numbers:
            group = groups[number]
            if group is None or group not in leaders:
                self._ready.append(number)
                leaders.add(group)
            else:
                self._held[group].append(number)

    def __bool__(self) -> bool:
        return bool(self._ready or self._held)

    def peek(self) -> int | None:
        """Return the next request, or None if all that are left wait for the first one of their group."""
        return self._ready[0] if self._ready else None

    def take(self) -> int:
        """Return the next request and remove it."""
        return self._ready.popleft()

    def finish(self, number: int, is_answered: bool) -> None:
        """Record that a request has come back. If it has failed, the next one of its group is sent alone."""
        group = self._groups[number]
        if group is None or group not in self._held:
            return
        followers = self._held.pop(group)
        if is_answered:
            # They come first, because a provider keeps a beginning only for some minutes.
            self._ready.extendleft(reversed(followers))
            return
        self._ready.appendleft(followers.popleft())
        if followers:
            self._held[group] = followers
