"""Tests that random orders equal the orders of `datasets`, which the official code uses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.tasks.sampling import shuffle_order

datasets = pytest.importorskip("datasets")


@settings(deadline=None)
@given(count=st.integers(1, 2000), seed=st.integers(0, 2**32 - 1))
def test_orders_are_the_librarys(count: int, seed: int) -> None:
    """The order equals `Dataset.shuffle(seed)` and its first rows, which HELMET's tasks sample."""
    shuffled = (
        datasets.Dataset.from_dict({"row": range(count)})
        .shuffle(seed=seed)
        .select(range(min(100, count)))
    )
    assert shuffle_order(count, seed)[:100] == shuffled["row"]
