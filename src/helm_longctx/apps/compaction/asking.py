"""Asks models: each reply is kept in a file as soon as it arrives, and a limit in dollars holds."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.helm.style import deployment_style
from helm_longctx.helm_api import (
    LocalContext,
    get_model_deployment,
)
from helm_longctx.models.apis.calls import check_cancellation
from helm_longctx.models.apis.prices import Prices, find_prices
from helm_longctx.models.apis.sending import Sender
from helm_longctx.models.results import answer_of
from helm_longctx.models.sampling import SampledRequest
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.run_settings import settings_in_use
from helm_longctx.runner.sending import make_context, make_sender
from helm_longctx.runner.spending import CHAT_TOKENS, NOT_BILLED, Limit
from helm_longctx.runs.journal import KeptValues
from helm_longctx.tasks.answer import Answer, Usage

_REPLIES = "replies.jsonl"


@dataclass(frozen=True)
class ProbeReply:
    """A model's reply.

    Args:
        text: the answer without its reasoning. None without an answer.
        failure: why there is no answer. Empty if there is one.
        tokens: the tokens of the prompt as the server counts them, if it does.
        dollars: the price of the request. None if it is not known.
        is_cut: whether the output budget ended the answer.
    """

    text: str | None
    failure: str = ""
    tokens: int | None = None
    dollars: float | None = 0.0
    is_cut: bool = False


class Purse:
    """A limit in dollars that several threads share.

    A request begins when its highest price has room. Until then it waits for requests in flight, which mostly cost less.
    """

    def __init__(self, dollars: float | None = None):
        self._limit = Limit(dollars)
        self._in_flight = 0
        self._changed = threading.Condition()

    @property
    def spent(self) -> float:
        """The dollars that this process has spent."""
        return self._limit.spent

    def check_prices(self, deployment: str, prices: Prices | None) -> None:
        """Raise an `InputError` if there is a limit, and the prices of a deployment are not known."""
        if self._limit.dollars is not None and prices is None:
            raise InputError(
                f"compaction: --max-cost needs the prices of {deployment}, which are"
                " not known; give --prices"
            )

    def reserve(self, dollars: float) -> None:
        """Reserve the highest price of a request.

        Raises:
            InputError: there is no room for it.
            CancelledError: the command ends, and sends nothing else.
        """
        with self._changed:
            while not self._limit.has_room(dollars):
                if not self._in_flight:
                    raise InputError(
                        f"compaction: the next request can cost ${dollars:.4f}, and"
                        f" --max-cost={self._limit.dollars:g} has"
                        f" ${self._limit.dollars_left:.4f} left;"
                        " all replies are kept: give more, and run the same command"
                        " again"
                    )
                self._changed.wait()
            check_cancellation()
            self._in_flight += 1
            self._limit.reserved += dollars

    def settle(self, reserved: float, spent: float) -> None:
        """Replace a reserved price by the real one."""
        with self._changed:
            self._in_flight -= 1
            self._limit.reserved -= reserved
            self._limit.spent += spent
            self._changed.notify_all()


def open_replies(folder: Path) -> KeptValues:
    """Open the file of a comparison's folder that keeps what was paid for."""
    return KeptValues(
        folder / _REPLIES, "remove this line, and what it had is asked again"
    )


def name_of(*parts: str) -> str:
    """Return the name under which something is kept."""
    return digest("\0".join(parts))


class AskedModel:
    """A deployment that answers single prompts. Several threads may ask it.

    Args:
        deployment: its name in HELM.
        local_path: the folder with HELM's credentials.
        kept: what was paid for before, and is not asked again.
        purse: the limit on the cost.

    Raises:
        InputError: it cannot be asked, or its prices are not known, and there is a limit.
    """

    def __init__(
        self,
        deployment: str,
        local_path: Path,
        kept: KeptValues,
        purse: Purse,
    ):
        self.name = deployment
        self._local_path = local_path
        self._kept = kept
        self._purse = purse
        self.prices = find_prices(deployment)
        purse.check_prices(deployment, self.prices)
        spec = get_model_deployment(deployment)
        self._model = spec.model_name or deployment
        self._thinking = int((spec.client_spec.args or {}).get("thinking_tokens") or 0)
        self._is_chat = deployment_style(deployment) != "completion"
        # Equal prompts are sent one at a time, so that the second one finds the reply to the first.
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @cached_property
    def context(self) -> LocalContext:
        """HELM's context, without a request cache: replies are kept by us."""
        return make_context(self._local_path)

    @cached_property
    def _sender(self) -> Sender:
        return make_sender(self.context, self.name, settings_in_use())

    def connect(self) -> Any:
        """Return the client of the deployment."""
        return self._sender.client

    def ask(self, prompt: str, max_tokens: int) -> ProbeReply:
        """Return the reply to a prompt. A failure is a reply, and is asked again by the next command.

        Raises:
            InputError: the limit on the cost has no room, or the client got bad input.
        """
        name = name_of(self.name, str(max_tokens), prompt)
        with self._locks[name]:
            kept = self._kept.get(name)
            if kept is not None:
                return ProbeReply(**kept)
            reply = self._send(prompt, max_tokens)
            if not reply.failure:
                self._kept.add(name, vars(reply))
            return reply

    def _send(self, prompt: str, max_tokens: int) -> ProbeReply:
        # No tokenizer makes more tokens than a text has bytes.
        size = len(prompt.encode("utf-8", "surrogatepass")) + CHAT_TOKENS
        reserved = self.price(size, max_tokens) or 0.0
        self._purse.reserve(reserved)
        spent = reserved
        try:
            messages = [{"role": "user", "content": prompt}]
            request = SampledRequest(
                model=self._model,
                model_deployment=self.name,
                prompt="" if self._is_chat else prompt,
                messages=messages if self._is_chat else None,
                temperature=0.0,
                max_tokens=max_tokens,
            )
            answer = answer_of(self._sender(request).result)
            reply = self._read(answer)
            if answer.failure is None:
                spent = reserved if reply.dollars is None else reply.dollars
            elif answer.failure in NOT_BILLED:
                spent = 0.0
        finally:
            self._purse.settle(reserved, spent)
        return reply

    def _read(self, answer: Answer) -> ProbeReply:
        if answer.failure is not None:
            return ProbeReply(None, answer.failure.value, dollars=0.0)
        usage = answer.usage
        dollars = None
        if self.prices and usage:
            dollars = self.prices.dollars(usage)
        tokens = usage.input_tokens if usage else None
        if answer.has_open_reasoning:
            return ProbeReply(
                None, "the answer ended within its reasoning", tokens, dollars
            )
        return ProbeReply(answer.text.strip(), "", tokens, dollars, answer.is_cut)

    def price(self, tokens: int, max_tokens: int) -> float | None:
        """Return the highest price of a request with a prompt of so many tokens. None if it is not known."""
        if self.prices is None:
            return None
        usage = Usage(input_tokens=tokens, output_tokens=max_tokens + self._thinking)
        return self.prices.dollars(usage)

    def pay(self, tokens: int, max_tokens: int) -> Payment:
        """Return a block in which a request of another kind is paid for."""
        return Payment(self._purse, self.price(tokens, max_tokens) or 0.0)


class Payment:
    """A request of another kind than `Model.ask`. What it cost is set in the block; otherwise it costs the most.

    Args:
        purse: the limit.
        most: the highest price.
    """

    def __init__(self, purse: Purse, most: float):
        self._purse = purse
        self._most = most
        self.dollars = most

    def __enter__(self) -> Payment:
        self._purse.reserve(self._most)
        return self

    def __exit__(self, *exception: object) -> None:
        self._purse.settle(self._most, self.dollars)


def add_dollars(values: Sequence[float | None]) -> float | None:
    """Return the sum of prices. One that is not known makes the sum unknown: a part of it would look like the whole."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def read_usage(usage: Mapping[str, Any] | None, *names: str) -> Usage | None:
    """Return the usage in a server's reply, with the names of its counts of input and output tokens."""
    if not usage:
        return None
    counts = [usage.get(name) for name in names]
    if not all(isinstance(count, int) for count in counts):
        return None
    read, written = counts
    return Usage(input_tokens=int(read or 0), output_tokens=int(written or 0))
