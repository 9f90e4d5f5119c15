"""How fast requests are sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from helm_longctx.data.download import retry_after
from helm_longctx.models.apis import rates
from helm_longctx.models.apis.caching import with_beginning
from helm_longctx.models.apis.rates import Pace
from tests.models.apis.making import REQUEST, make
from tests.support.http import HTTP
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda prompt: "Yes") as running:
        yield running


class Clock:
    """A clock on which sleeping takes no time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the time of the clock."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(rates, "time", clock)
    return clock


def starts(pace: Pace, clock: Clock, tokens: list[float]) -> list[float]:
    times = []
    for token in tokens:
        pace.wait(token)
        times.append(clock.now)
    return times


def test_limits(clock: Clock) -> None:
    """Requests are spread over the minute by their number and by their tokens."""
    assert starts(Pace(30, None), clock, [9, 9, 9]) == [0, 2, 4]
    clock.now = 0
    assert starts(Pace(None, 600), clock, [10, 100, 5]) == [0, 1, 11]
    clock.now = 0
    assert starts(Pace(30, 600), clock, [10, 100, 5]) == [0, 2, 12]
    clock.now = 0
    assert starts(Pace(None, None), clock, [1e9, 1e9]) == [0, 0]


def test_the_providers_count_corrects_the_estimate(clock: Clock) -> None:
    """A prompt that had more tokens than expected delays the next one."""
    pace = Pace(None, 60)
    pace.wait(10)
    pace.correct(20)
    assert starts(pace, clock, [1]) == [30]


@pytest.mark.parametrize(("kind", "seconds"), [("chat", 21), ("anthropic", 1)])
def test_tokens_from_the_providers_cache(
    kind: str, seconds: float, server: Server, clock: Clock
) -> None:
    """Cached tokens count for the limits of OpenAI's protocol, and not for those of Anthropic."""
    book = "A long book. " * 400
    client = make(kind, server, tokens_per_minute=3660)
    for question in ("a", "b"):
        client.make_request(
            with_beginning(
                replace(REQUEST, prompt=book + question, max_tokens=1), len(book)
            )
        )
    before = clock.now
    client.make_request(replace(REQUEST, prompt="c"))
    assert clock.now - before == pytest.approx(seconds, abs=1)


def test_pauses(clock: Clock) -> None:
    """No request is sent before the server allows it, but no pause is longer than the longest one."""
    pace = Pace(None, None)
    pace.pause(7)
    pace.pause(3)
    assert starts(pace, clock, [1, 1]) == [7, 7]
    pace.pause(1e6)
    assert starts(pace, clock, [1]) == [7 + rates.LONGEST_PAUSE]


def test_retry_after_pauses_all_threads(server: Server) -> None:
    """If a reply with status 429 says when to send again, no thread sends before."""
    server.plan = faults.first(Fault.RATE_LIMIT)
    client = make("chat", server)
    assert not client.make_request(REQUEST).success
    refused = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                client.make_request,
                [replace(REQUEST, prompt=str(number)) for number in range(4)],
            )
        )
    assert server.calls[0].at + 0.05 <= min(call.at for call in server.calls[1:])
    assert refused <= server.calls[1].at


def test_one_pace_for_an_address_and_a_model(server: Server, clock: Clock) -> None:
    """Two clients share one pace, for example a model and a judge at the same address."""
    for _ in range(2):
        assert (
            make("chat", server, requests_per_minute=600).make_request(REQUEST).success
        )
    assert clock.now == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "20"}, 20),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, 0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    """The header has seconds or milliseconds."""
    assert retry_after(status_error(headers)) == expected


def test_retry_after_as_a_date() -> None:
    """The header can have a date, also one that has passed. Other errors have no such header."""
    now = datetime.now(timezone.utc)
    later = retry_after(
        status_error(
            {"Retry-After": format_datetime(now + timedelta(seconds=60), usegmt=True)}
        )
    )
    assert later is not None
    assert 50 < later <= 60
    assert (
        retry_after(
            status_error(
                {
                    "Retry-After": format_datetime(
                        now - timedelta(seconds=60), usegmt=True
                    )
                }
            )
        )
        == 0
    )
    assert (
        retry_after(status_error({"Retry-After": "Sat, 01 Jan 2000 00:00:00 -0000"}))
        == 0
    )
    assert retry_after(ValueError()) is None


def status_error(headers: dict[str, str]) -> Exception:
    request = HTTP.Request("POST", "http://localhost")
    response = HTTP.Response(429, headers=headers, request=request)
    error: Exception = HTTP.HTTPStatusError("429", request=request, response=response)
    return error
