"""Random orders equal those of `datasets`, which the official code uses, for any seed and number of rows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.protocol.sampling import shuffle_order

datasets = pytest.importorskip("datasets")


@settings(deadline=None)
@given(count=st.integers(1, 2000), seed=st.integers(0, 2**32 - 1))
def test_orders_are_the_librarys(count: int, seed: int) -> None:
    """`Dataset.shuffle(seed)` and then the first rows: the sample of HELMET's tasks, of its new ones and of its MRCR."""
    shuffled = datasets.Dataset.from_dict({"row": range(count)}).shuffle(seed=seed).select(range(min(100, count)))
    assert shuffle_order(count, seed)[:100] == shuffled["row"]
