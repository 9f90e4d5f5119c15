"""Finds the prices of tokens, in the price table of the package genai-prices or in a file of the user.

For a model without a known price the result is None. An unknown price never counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.helm_api import ModelDeployment, get_model_deployment
from helm_longctx.models.apis.provider import providers
from helm_longctx.redaction.origin import is_local
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.answer import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice


_FIELDS = ("input", "cached_input", "cache_write", "output")
"""The allowed keys of a user's prices, in dollars per million tokens."""

_BATCH = {"processing": "batch"}

_Price = Callable[[Usage], Decimal]
"""Function that returns the cost of a request in dollars."""

_MODEL_ARGUMENTS = (
    "model",
    *(
        name
        for provider in providers().values()
        for name in provider.helm_model_arguments
    ),
    "vllm_model_name",
    "together_model",
)
"""Arguments of our clients and of HELM's clients that can have the model's name in requests."""


def list_request_names(spec: ModelDeployment) -> list[str]:
    """Return the names that the model of a deployment can have in requests, the likeliest first."""
    arguments = spec.client_spec.args
    model = spec.model_name or spec.name
    names = [arguments.get(argument) for argument in _MODEL_ARGUMENTS]
    names += [model.partition("/")[2], model]
    return [str(name) for name in names if name]


@dataclass(frozen=True)
class Prices:
    """The prices of one model.

    Args:
        source: the source of the prices, with the date of the table.
        date: the date of the table, or None for a user's prices.
        batch: the cost of a request in a batch, or None if it is not known.
    """

    source: str
    date: date | None
    standard: _Price
    batch: _Price | None

    def dollars(self, usage: Usage, batch: bool = False) -> float | None:
        """Return the cost of a request in dollars, or None if the price of a batch is not known.

        A price can be higher for all tokens of a request whose prompt is long. So the cost of several
        requests is the sum of their costs, and not the cost of their total usage.
        """
        price = self.batch if batch else self.standard
        return None if price is None else float(price(usage))

    def saving(self, usage: Usage) -> float:
        """Return the dollars that the provider's cache saves for a request; negative if the cache costs more."""
        full = Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        return (self.dollars(full) or 0.0) - (self.dollars(usage) or 0.0)

    def caching_pays(self, tokens: int, requests: int) -> bool:
        """Return whether it is cheaper to write a shared beginning to the cache than to send it each time."""
        write = Usage(input_tokens=tokens, cache_write_tokens=tokens)
        read = Usage(input_tokens=tokens, cached_tokens=tokens)
        return self.saving(write) + (requests - 1) * self.saving(read) > 0

    def warming_pays(
        self,
        shared: int,
        rest: int,
        requests: int,
        write_price: float = 1.0,
    ) -> bool:
        """Return whether it is cheaper to send one request before a batch, and to read its beginning in the batch.

        Args:
            shared, rest: number of tokens of the beginning, and of the first request after it.
        """
        read = self.dollars(
            Usage(input_tokens=shared, cached_tokens=shared), batch=True
        )
        plain = self.dollars(Usage(input_tokens=shared), batch=True)
        end = self.dollars(Usage(input_tokens=rest), batch=True)
        if read is None or plain is None or end is None:
            return False
        first = (
            self.warming_dollars(
                Usage(shared + rest, cache_write_tokens=shared), write_price
            )
            - end
        )
        return first + (requests - 1) * read < requests * plain

    def warming_dollars(self, usage: Usage, write_price: float) -> float:
        """Return the cost of a request that writes to a provider's long cache."""
        written = Usage(
            usage.cache_write_tokens, cache_write_tokens=usage.cache_write_tokens
        )
        return (self.dollars(usage) or 0.0) + (write_price - 1) * (
            self.dollars(written) or 0.0
        )


def find_prices(deployment: str, own: Mapping[str, Any] | None = None) -> Prices | None:
    """Return the prices of a deployment, or None if they are not known.

    Args:
        own: the user's prices by deployment or model, besides those in the file that `HELM_LONGCTX_PRICES` names.

    Raises:
        InputError: the user's prices do not have the format of `read_prices`.
    """
    spec = get_model_deployment(deployment)
    # Prices that are passed in the call win over prices in the file.
    path = settings_in_use().prices
    own = {**(_read_once(path) if path else {}), **(own or {})}
    for name in (deployment, spec.model_name):
        if name in own:
            return _user_prices(name, own[name])
    return _table_prices(deployment, spec)


def read_prices(path: Path) -> dict[str, Any]:
    """Read a YAML file of prices in dollars per million tokens, by deployment or model.

    For example `openai/gpt-6-luna: {input: 2, cached_input: 0.5, output: 8, batch: {input: 1, output: 4}}`.

    Raises:
        InputError: the file cannot be read, or has another format.
    """
    try:
        content = read_yaml(path)
    except InputError as error:
        raise InputError(f"prices: {error}") from None
    if not isinstance(content, dict) or not all(
        isinstance(value, dict) for value in content.values()
    ):
        raise InputError(
            f"prices: {shorten(str(path))} must have one mapping for each deployment or model"
        )
    for name, value in content.items():
        _user_prices(str(name), value)
    return content


def _read_once(path: Path) -> dict[str, Any]:
    """Return what `read_prices` returns. A file that has not changed is read once in a process."""
    status = path.stat() if path.exists() else None
    return _read_version(path.resolve(), status and status.st_mtime_ns)


@cache
def _read_version(path: Path, changed: int | None) -> dict[str, Any]:
    return read_prices(path)


def _user_prices(name: str, value: Mapping[str, Any]) -> Prices:
    batch = value.get("batch")
    standard = {}
    for key, price in value.items():
        if key != "batch":
            standard[key] = price
    return Prices(
        source="the user's prices",
        date=None,
        standard=_user_price(name, standard),
        batch=batch and _user_price(name, batch),
    )


def _user_price(name: str, value: Any) -> _Price:
    if not isinstance(value, Mapping) or not {"input", "output"} <= value.keys() <= set(
        _FIELDS
    ):
        allowed = f"input, output, and perhaps {', '.join(_FIELDS[1:3])}, batch"
        raise bad_argument("prices", name, str(value), allowed)
    for price in value.values():
        # `True` is an int in Python, and YAML reads `yes` as True.
        if (
            isinstance(price, bool)
            or not isinstance(price, int | float)
            or not 0 <= price < 1e6
        ):
            raise bad_argument("prices", name, price, "dollars per million tokens")
    # The conversion through `str` keeps 0.1 exact, instead of the nearest binary fraction.
    prices = {}
    for key, price in value.items():
        prices[key] = Decimal(str(price))

    def multiply(usage: Usage) -> Decimal:
        plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        counts = zip(
            _FIELDS,
            (plain, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens),
            strict=True,
        )
        # Tokens without a price of their own cost as input.
        return (
            sum(
                (prices.get(name, prices["input"]) * count for name, count in counts),
                Decimal(0),
            )
            / 1_000_000
        )

    return multiply


def _table_prices(deployment: str, spec: ModelDeployment) -> Prices | None:
    """Look a deployment up by its address, or by the provider in its name, and by the names that its model can have."""
    arguments = spec.client_spec.args
    address = arguments.get("base_url")
    provider = deployment.partition("/")[0]
    # No provider is on this machine, and the table takes a quarter of a second to import.
    if address and is_local(str(address)):
        return None
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    table = get_snapshot()
    # If there is an address, only it counts: users can choose any organization in a deployment's name.
    for name in list_request_names(spec):
        try:
            if address:
                _, listed = table.find_provider_model(name, None, None, str(address))
            else:
                _, listed = table.find_provider_model(name, None, provider, None)
        except LookupError:
            continue
        now = datetime.now(timezone.utc)
        source = f"genai-prices {version('genai-prices')} of {_table_date()}"
        batch = partial(_look_up, listed.get_prices(now, _BATCH))
        standard = partial(_look_up, listed.get_prices(now))
        # For a model without prices of batches, `get_prices` returns the standard ones. They would be too high.
        has_batch = any(
            variant.when == _BATCH for variant in listed.price_variants or ()
        )
        return Prices(
            source=source,
            date=_table_date(),
            standard=standard,
            batch=batch if has_batch else None,
        )
    return None


def _look_up(price: ModelPrice, usage: Usage) -> Decimal:
    """Return the dollars of a request at the table's prices. They can depend on the length of the prompt."""
    from genai_prices import Usage as Counts

    counts = Counts(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    return price.calc_price(counts)["total_price"]


@cache
def _table_date() -> date:
    """Return the date of the newest price in the table that is already valid. The package does not give a date."""
    from genai_prices.data import providers
    from genai_prices.types import StartDateConstraint

    dates = set()
    for provider in providers:
        for model in provider.models:
            for price in model.prices if isinstance(model.prices, list) else ():
                if isinstance(price.constraint, StartDateConstraint):
                    dates.add(price.constraint.start_date)
    return max(date for date in dates if date <= datetime.now(timezone.utc).date())
