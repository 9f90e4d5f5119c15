"""Takes samples of examples, and makes the same random orders as the official code."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import islice
from typing import Concatenate, ParamSpec

import numpy as np

from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task

_Further = ParamSpec("_Further")
_LoadAll = Callable[Concatenate[Task, Settings, DataRoot, _Further], Iterator[Example]]


def take_sample(load: _LoadAll[_Further]) -> _LoadAll[_Further]:
    """Make a loader that yields only the first examples: `num_samples`, or else the official number."""

    @wraps(load)
    def load_sample(
        task: Task,
        settings: Settings,
        root: DataRoot,
        /,
        *args: _Further.args,
        **kwargs: _Further.kwargs,
    ) -> Iterator[Example]:
        return islice(
            load(task, settings, root, *args, **kwargs), task.sample(settings)
        )

    return load_sample


def number_name(name: str, earlier: Counter[str]) -> str:
    """Return a name, with a number added if earlier rows have the same name, and count it."""
    earlier[name] += 1
    if earlier[name] == 1:
        return name
    return f"{name}-{earlier[name]}"


def shuffle_order(count: int, seed: int) -> list[int]:
    """Return the order of `count` rows after `datasets.Dataset.shuffle(seed)`: NumPy's permutation."""
    # NumPy's stubs let `tolist` return Any, so the variable has a type.
    order: list[int] = np.random.default_rng(seed).permutation(count).tolist()
    return order


class UnseededShuffles:
    """The orders of successive `Dataset.shuffle()` calls without a seed after `numpy.random.seed(seed)`.

    For such a call the library reads its seed from NumPy's global state and advances that state by one step.
    """

    def __init__(self, seed: int):
        self._state = np.random.RandomState(seed)

    def next(self, count: int) -> list[int]:
        """Return the order of `count` rows after the next call."""
        state = self._state.get_state(legacy=False)["state"]
        # `datasets` unpacks `np.random.get_state()` as `_, seed, pos, *_` and takes `seed[pos]` if `pos` is below 624.
        keys = state["key"]
        position = state["pos"]
        # At the end of the key NumPy would first make a new key, but the library then reads key[0] of the old one.
        if position < len(keys):
            seed = keys[position]
        else:
            seed = keys[0]
        self.skip(1)
        return shuffle_order(count, int(seed))

    def skip(self, calls: int) -> None:
        """Advance the state as so many calls would."""
        # Each call of `datasets` draws one number with `np.random.random()`, so drawing many at once has the same
        # effect.
        self._state.random_sample(calls)


def text_seed(text: str, seed: int = 0) -> int:
    """Return a seed that depends on the text: its SHA-256 plus `seed`, modulo 2**31 (HELMET data.py)."""
    return (int(hashlib.sha256(text.encode("utf-8")).hexdigest(), 16) + seed) % 2**31
