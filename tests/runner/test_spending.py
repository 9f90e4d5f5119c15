"""Tests of the limit on the cost of requests, which includes requests in flight."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.models.baselines import lexical
from helm_longctx.models.results import add_facts
from helm_longctx.run_settings import MAX_COST, PRICES
from helm_longctx.tasks.answer import Usage
from tests.runner import making

PRICE = {"input": 100, "cached_input": 10, "output": 1000}
"""Dollars for a million tokens: about 80 cents for a prompt of the test entry."""


class PaidClient(making.PlainClient):
    """Counts the tokens of its answers."""

    usage = Usage(
        input_tokens=8000, cached_tokens=2000, output_tokens=40, reasoning_tokens=10
    )

    def make_request(self, request: Request) -> RequestResult:
        """Return an answer that costs money."""
        self.asked.append(request.prompt)
        return add_facts(
            making.answered(lexical.answer(request.prompt), cached=False),
            usage=self.usage,
        )


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Register a deployment with prices."""
    making.register_client(PaidClient)
    file = tmp_path / "prices.yaml"
    file.write_text(json.dumps({"test/paid": PRICE}))
    monkeypatch.setenv(PRICES, str(file))
    return "test/paid"


def test_a_run_stops_before_the_limit(
    deployment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with two requests in flight stops before the limit, and the same command with more money continues it."""
    dollars = (6000 * 100 + 2000 * 10 + 40 * 1000) / 1e6
    monkeypatch.setenv(MAX_COST, "7")
    with pytest.raises(
        InputError,
        match=rf"{MAX_COST}=7 allows .*spent; \d answers are kept in .*to continue",
    ) as error:
        making.make_run(tmp_path, making.ENTRY + deployment, cache=False)
    before = len(making.PlainClient.asked)
    assert 3 <= before <= 7 / dollars
    assert f"after ${before * dollars:.4f} were spent" in str(error.value)
    monkeypatch.setenv(MAX_COST, "100")
    run = making.make_run(tmp_path, making.ENTRY + deployment, cache=False)
    assert len(making.PlainClient.asked) == 12
    statistics = making.means(run)
    assert {name[0]: value for name, value in statistics.items()}[
        "cost"
    ] == pytest.approx(dollars)


class DearClient(PaidClient):
    """Makes a token of each byte, so that an estimate by words is far too low."""

    def make_request(self, request: Request) -> RequestResult:
        """Return an answer with the whole budget."""
        result = super().make_request(request)
        usage = Usage(
            input_tokens=len(request.prompt.encode()) + 50,
            output_tokens=request.max_tokens,
        )
        return add_facts(result, usage=usage)


def test_requests_in_flight_keep_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests in flight keep the limit, even if each prompt has as many tokens as bytes."""
    making.register_client(DearClient)
    file = tmp_path / "prices.yaml"
    file.write_text(json.dumps({"test/dear": PRICE}))
    monkeypatch.setenv(PRICES, str(file))
    monkeypatch.setenv(MAX_COST, "12")
    with pytest.raises(InputError, match="answers are kept") as error:
        making.make_run(tmp_path, making.ENTRY + "test/dear", cache=False)
    spent = float(re.search(r"after \$([\d.]+) were spent", str(error.value))[1])
    assert len(making.PlainClient.asked) >= 2
    assert 4 < spent <= 12


def test_a_limit_needs_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit with an unknown price is refused, because unknown is not zero."""
    monkeypatch.setenv(MAX_COST, "4")
    with pytest.raises(
        InputError,
        match=f"needs the prices of test/plain, which are not known.*{PRICES}",
    ):
        making.make_run(tmp_path, making.ENTRY + "test/plain", cache=False)
    assert making.PlainClient.asked == []
