"""Calls at the same time, as judges and checks make them."""

from __future__ import annotations

import threading
import time

import pytest

from helm_longctx import interruptions
from helm_longctx.models.apis.calls import call_all


def test_values_have_the_order_of_the_items() -> None:
    """All items are called, at most so many at the same time, and the values are in order."""
    lock = threading.Lock()
    running = 0
    most = 0

    def double(item: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01 * (item % 3))
        with lock:
            running -= 1
        return 2 * item

    assert call_all(double, range(30), 4) == [2 * item for item in range(30)]
    assert 1 < most <= 4
    assert call_all(double, [], 4) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_calls(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error no other call begins, calls in flight may end, and one that does not end is left behind."""
    monkeypatch.setattr(interruptions, "SETTLE", 5)
    forever = threading.Event()
    begun: list[int] = []
    ended: list[int] = []

    def ask(item: int) -> None:
        begun.append(item)
        if item == 0:
            time.sleep(0.1)
            raise error
        if item == 1:
            time.sleep(0.3)
        else:
            forever.wait(120)
        ended.append(item)

    start = time.monotonic()
    with pytest.raises(error):
        call_all(ask, range(100), 3)
    assert time.monotonic() - start < 60
    assert sorted(begun) == [0, 1, 2]
    assert ended == [1]
    forever.set()
