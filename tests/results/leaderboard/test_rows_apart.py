"""Tests of what tells the rows of a table apart."""

from __future__ import annotations

import random
import time

import pytest
from helm.common.general import unique_simplification

from helm_longctx.results.leaderboard.builder import _find_distinctions

KEYS = ("model_deployment", "model")
FIELDS = ("method", "model", "max_tokens", "model_deployment", "instructions")


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_told_apart_as_helm_does(seed: int) -> None:
    """Random descriptions, some of them equal, keep the same fields in the same order as with HELM's function."""
    generator = random.Random(seed)
    names = generator.sample(FIELDS, generator.randint(1, 5))
    descriptions = []
    for _ in range(generator.randint(1, 9)):
        descriptions.append({name: generator.randint(0, 2) for name in names})
    theirs = unique_simplification(descriptions, list(KEYS))
    ours = _find_distinctions(descriptions, KEYS)
    assert [list(fields.items()) for fields in ours] == [
        list(fields.items()) for fields in theirs
    ]


def test_descriptions_can_have_different_fields() -> None:
    """A field that only some descriptions have tells them from the others."""
    descriptions = [{"model": "a"}, {"model": "a", "method": "b"}]
    assert _find_distinctions(descriptions, KEYS) == [{}, {"method": "b"}]


def test_many_rows_take_linear_time() -> None:
    """Twenty thousand rows are told apart in a second of processor time, which pairs of them would exceed by far."""
    descriptions = [{"model": f"acme/model-{n}", "max_tokens": 9} for n in range(20000)]
    start = time.process_time()
    told_apart = _find_distinctions(descriptions, KEYS)
    assert time.process_time() - start < 1
    assert told_apart[-1] == {"model": "acme/model-19999"}
