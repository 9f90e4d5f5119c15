"""The limit on what requests cost, which those in flight count for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.apis.prices import PRICES
from helm_longctx.apis.usage import Usage, with_usage
from helm_longctx.environment import MAX_COST
from helm_longctx.errors import InputError
from helm_longctx.models import lexical
from tests.running import making

PRICE = {"input": 100, "cached_input": 10, "output": 1000}
"""Dollars for a million tokens: about 80 cents for a prompt of the test entry."""


class PaidClient(making.PlainClient):
    """Counts the tokens of its answers."""

    usage = Usage(input_tokens=8000, cached_tokens=2000, output_tokens=40, reasoning_tokens=10)

    def make_request(self, request: Request) -> RequestResult:
        """An answer, which costs money."""
        self.asked.append(request.prompt)
        return with_usage(making.answered(lexical.answer(request.prompt), cached=False), self.usage)


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A deployment with prices."""
    making.register_client(PaidClient)
    file = tmp_path / "prices.yaml"
    file.write_text(json.dumps({"test/paid": PRICE}))
    monkeypatch.setenv(PRICES, str(file))
    return "test/paid"


def test_a_run_stops_before_the_limit(deployment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two requests in flight; what was answered is kept, and the same command with more money goes on."""
    each = (6000 * 100 + 2000 * 10 + 40 * 1000) / 1e6
    monkeypatch.setenv(MAX_COST, "4")
    with pytest.raises(
        InputError, match=rf"{MAX_COST}=4 allows .*spent; \d answers are kept in .*to continue"
    ) as error:
        making.make_run(tmp_path, making.ENTRY + deployment, cache=False)
    before = len(making.PlainClient.asked)
    assert 3 <= before <= 4 / each
    assert f"after ${before * each:.4f} were spent" in str(error.value)
    monkeypatch.setenv(MAX_COST, "100")
    run = making.make_run(tmp_path, making.ENTRY + deployment, cache=False)
    assert len(making.PlainClient.asked) == 12
    statistics = making.means(run)
    assert {name[0]: value for name, value in statistics.items()}["cost"] == pytest.approx(each)


def test_a_limit_needs_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown price is not zero."""
    monkeypatch.setenv(MAX_COST, "4")
    with pytest.raises(InputError, match=f"needs the prices of test/plain, which are not known.*{PRICES}"):
        making.make_run(tmp_path, making.ENTRY + "test/plain", cache=False)
    assert making.PlainClient.asked == []
