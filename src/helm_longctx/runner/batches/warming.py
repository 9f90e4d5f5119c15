"""Fills a provider's prompt cache before a batch, whose requests never find each other's beginnings in it.

The requests of a batch are answered at the same time, so each pays for the beginning that they share. If one of them is
sent directly before, the others read the beginning from the cache.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from helm_longctx.errors import InputError
from helm_longctx.models.apis.provider import Provider
from helm_longctx.runner.asking import Asking, PendingRequest, ask_all
from helm_longctx.runner.prefixes import CHARACTERS, Beginning, warming_pays
from helm_longctx.runner.runner import PreparedRun

_log = logging.getLogger(__name__)


def fill_cache(run: PreparedRun, provider: Provider, numbers: Sequence[int], parallelism: int) -> dict[int, Beginning]:
    """Send one request of each group with a shared beginning directly, where that makes the batch cheaper.

    Args:
        numbers: the requests without an answer.

    Returns:
        The beginning that each request of these groups finds in the cache; none if the group's first request failed.
    """
    tokens = [run.requests[number].characters // CHARACTERS for number in numbers]
    pays = warming_pays(run.spending.prices, provider.batch_write_price, tokens)
    beginnings = dict(zip(numbers, run.beginnings(numbers, pays), strict=True))
    # Of each group the first request in the given order.
    first = {beginning: number for number, beginning in reversed(beginnings.items()) if beginning}
    pending = [PendingRequest(run.requests[number], each, in_batch=True) for each, number in first.items()]
    if not pending:
        return {}
    asking = Asking(run.sender, run.journal, run.spending, len(pending))
    try:
        states = ask_all(pending, asking, parallelism)
    except InputError as error:  # a small request before the batch shows whether the model can be asked at all
        _log.warning(f"the provider's cache is not filled: {error}")
        return {}
    asking.finish()
    warm = {each for each, state in zip(first, states, strict=True) if state.result and state.result.success}
    return {number: each for number, each in beginnings.items() if each in warm}
