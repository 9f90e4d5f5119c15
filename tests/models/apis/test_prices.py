"""Prices by genai-prices and by the user; what is not known is not zero."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment

from helm_longctx.errors import InputError
from helm_longctx.models.apis.prices import Prices, find_prices, read_prices
from helm_longctx.run_settings import PRICES
from helm_longctx.tasks.answer import Usage
from tests.runner import making

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PRICES, raising=False)


def prices(
    name: str, own: dict[str, Any] | None = None, **arguments: Any
) -> Prices | None:
    """Return the prices of a deployment with this name."""
    spec = ClientSpec("helm_longctx.models.apis.OpenAIClient", arguments)
    with making.deployed(ModelDeployment(name=name, client_spec=spec, model_name=name)):
        return find_prices(name, own)


def test_tiers() -> None:
    """Cached tokens, writes to the cache, batches and long prompts have their own prices (Claude Sonnet 4.5)."""
    table = prices("anthropic/claude-sonnet-4-5")
    assert table
    assert table.date
    assert table.date <= datetime.now(timezone.utc).date()
    assert str(table.date) in table.source
    assert table.dollars(Usage(100_000, output_tokens=1000)) == pytest.approx(
        0.3 + 0.015
    )
    assert table.dollars(Usage(100_000, cached_tokens=100_000)) == pytest.approx(0.03)
    assert table.dollars(Usage(100_000, cache_write_tokens=100_000)) == pytest.approx(
        0.375
    )
    assert table.dollars(Usage(100_000), batch=True) == pytest.approx(0.15)
    assert table.dollars(Usage(300_000)) == pytest.approx(1.8)
    assert table.saving(Usage(100_000, cached_tokens=100_000)) == pytest.approx(0.27)


def test_when_caching_pays() -> None:
    """A write costs a quarter more and a read costs a tenth, so caching pays from the second request on."""
    table = prices("anthropic/claude-sonnet-4-5")
    assert table
    assert table.caching_pays(50_000, 2)
    assert not table.caching_pays(50_000, 1)


def test_a_model_has_the_prices_of_its_provider() -> None:
    """A provider is recognized by its address or by the deployment's name. Prices at another address are unknown."""
    assert prices("openai/gpt-4.1-2025-04-14")
    assert prices("my/model", base_url="https://api.openai.com/v1", model="gpt-4.1")
    assert prices("openai/gpt-4.1", base_url="http://localhost:8000/v1") is None
    assert prices("vllm/gpt-4.1") is None
    assert prices("openai/no-such-model") is None


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_a_server_on_this_machine_needs_no_table(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is not imported for a server on this machine, which has no prices."""

    class Table(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"{name} is imported")

    monkeypatch.setitem(
        sys.modules, "genai_prices.data_snapshot", Table("data_snapshot")
    )
    assert prices("openai/gpt-4.1", base_url=f"http://{host}/v1") is None
    with pytest.raises(RuntimeError, match="is imported"):
        prices("openai/gpt-4.1", base_url="https://api.openai.com/v1")


def test_own_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has prices by deployment or by model. A batch has a price only if the file has one for it."""
    file = tmp_path / "prices.yaml"
    file.write_text(
        "my/a: {input: 2, cached_input: 0.5, output: 8}\nmy/b: {input: 0, output: 0, batch: {input: 1, output: 0}}"
    )
    own = prices("my/a", read_prices(file))
    assert own
    assert own.date is None
    assert own.dollars(
        Usage(MILLION, cached_tokens=MILLION // 2, output_tokens=MILLION)
    ) == pytest.approx(9.25)
    assert own.dollars(Usage(MILLION), batch=True) is None
    monkeypatch.setenv(PRICES, str(file))
    other = prices("my/b")
    assert other
    assert other.dollars(Usage(MILLION)) == 0
    assert other.dollars(Usage(MILLION), batch=True) == 1


def test_own_prices_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is only needed for its table. Cached tokens without a price cost as much as other input."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    own = prices("my/model", {"my/model": {"input": 0.3, "output": 1.2}})
    assert own
    assert own.dollars(Usage(MILLION, 400_000, 100_000, MILLION)) == pytest.approx(1.5)
    assert own.saving(Usage(MILLION, cached_tokens=MILLION)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "- 1",
        "a: 2",
        "a: {input: 1}",
        "a: {input: 1, output: x}",
        "a: {input: -1, output: 1}",
        "a: {x: 1}",
        "{",
    ],
)
def test_a_wrong_file_is_one_line(text: str, tmp_path: Path) -> None:
    """A wrong file is refused in one line before anything is sent."""
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"^prices: [^\n]*$"):
        read_prices(file)
