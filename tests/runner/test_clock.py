"""Tests that the seconds of a request do not depend on the system's clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from helm.common.request import wrap_request_time

from helm_longctx.helm.patches import apply_patches
from tests.runner import making
from tests.runner.making import ENTRY, make_run, read


@pytest.mark.parametrize("jump", [-3600, 3600])
def test_the_clock_is_set_while_a_request_is_made(
    jump: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HELM's clients measure the passed time, even if the clock is set meanwhile."""
    apply_patches()
    now = time.time()

    def request() -> dict[str, object]:
        monkeypatch.setattr(time, "time", lambda: now + jump)
        time.sleep(0.05)
        return {}

    response = wrap_request_time(request)()
    assert 0.05 <= response["request_time"] < 60
    assert abs(response["request_datetime"] - now) < 60


def test_negative_seconds_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative seconds, which caches of other versions contain, are left out."""
    answered = making.answered
    times = iter([-5.0, 2.0, 4.0])

    def timed(text: str, cached: bool) -> making.RequestResult:
        return making.replace(answered(text, cached), request_time=next(times))

    monkeypatch.setattr(making, "answered", timed)
    run = make_run(
        tmp_path, ENTRY.replace("length", "task=json_kv,length") + "test/plain"
    )
    seconds = next(
        row for row in read(run, "stats") if row["name"]["name"] == "request_seconds"
    )
    assert seconds["mean"] == pytest.approx(3.0)
