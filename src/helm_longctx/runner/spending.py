"""Adds up the cost of a process's requests, and enforces the limit on it."""

import math
from collections import Counter

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm.style import find_client_arguments
from helm_longctx.models.apis.prices import Prices, find_prices
from helm_longctx.models.scoring import count_texts, input_tokens
from helm_longctx.run_settings import MAX_COST, PRICES
from helm_longctx.runner.follow_up import most_follow_up_tokens
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.tasks.answer import Answer, Usage

_COUNTED = 1.02
"""Largest ratio of a prompt's real number of tokens to the number that the deployment's tokenizer counts."""

CHAT_TOKENS = 100
"""Number of tokens that a chat can add to a prompt."""

NOT_BILLED = frozenset(Failure) - {Failure.REFUSED, Failure.MALFORMED, Failure.UNKNOWN}
"""Failures that occur before the model reads the prompt."""


class Limit:
    """A limit in dollars for all runs of a process.

    Attributes:
        spent: the dollars that were spent.
        reserved: the most dollars that the requests in flight can cost.
        is_reached: whether there was no room for a request although no other was in flight.
    """

    def __init__(self, dollars: float | None):
        self.dollars = dollars
        self.spent = 0.0
        self.reserved = 0.0
        self.is_reached = False

    @property
    def dollars_left(self) -> float:
        """The dollars that are not spent yet. They are infinite without a limit."""
        return math.inf if self.dollars is None else self.dollars - self.spent

    def has_room(self, dollars: float) -> bool:
        """Whether the limit has room for a request of this cost."""
        return (
            self.dollars is None or self.spent + self.reserved + dollars <= self.dollars
        )


class Spending:
    """Adds up tokens and dollars of one run; `prices` is None if they are not known. Only one thread may use it.

    Raises an `InputError` if there is a limit, and it is reached or the prices are not known.
    """

    def __init__(self, deployment: str, limit: Limit):
        if limit.is_reached:
            raise InputError(f"{MAX_COST}={limit.dollars:g} is reached")
        self.prices: Prices | None = find_prices(deployment)
        self._limit = limit
        self._tokens: Counter[str] = Counter()
        self._dollars = self._saving = 0.0
        self._reserved: dict[int, float] = {}
        self._thinking = int(
            find_client_arguments(deployment).get("thinking_tokens") or 0
        )
        if limit.dollars is not None and self.prices is None:
            need = f"{MAX_COST}={limit.dollars:g} needs the prices of {deployment}, which are not known"
            raise InputError(f"{need}; name a file of prices in {PRICES}")

    def reserve(
        self,
        number: int,
        request: StoredRequest,
        in_flight: int,
    ) -> bool:
        """Reserve the highest cost of a request, which `number` identifies, if the limit has room for it.

        Raises an `InputError` if there is no room although no request is in flight, whose cost is not known yet.
        """
        if self._limit.dollars is None or self.prices is None:
            return True
        most = self._most_dollars(request, self.prices)
        if self._limit.has_room(most):
            self._reserved[number] = most
            self._limit.reserved += most
            return True
        if in_flight:
            return False
        self._limit.is_reached = True
        raise InputError(
            f"the next request can cost ${most:.4f}, and {MAX_COST}={self._limit.dollars:g} allows"
            f" ${self._limit.dollars - self._limit.spent:.4f} more after"
            f" ${self._limit.spent:.4f} were spent"
        )

    def settle(
        self,
        number: int,
        answer: Answer,
        is_late: bool,
    ) -> None:
        """Replace a request's reserved cost by its real cost. If it is late, the provider may still count it."""
        reserved = self._reserved.pop(number, 0.0)
        self._limit.reserved -= reserved
        usage = answer.usage
        if answer.failure is not None:
            is_billed = is_late or answer.failure not in NOT_BILLED
            self._limit.spent += reserved if is_billed else 0.0
        elif answer.is_cached:
            return
        elif usage is None:
            # Without a count of the provider the highest cost is assumed, so that the limit always holds.
            self._limit.spent += reserved
        else:
            self._tokens.update(vars(usage), requests=1)
            dollars = (self.prices.dollars(usage) if self.prices else None) or 0.0
            self._dollars += dollars
            self._limit.spent += dollars
            self._saving += self.prices.saving(usage) if self.prices else 0.0

    def summary(self) -> str | None:
        """Return one line about the tokens and dollars of the run, or None if no answer came with its tokens."""
        if not self._tokens["requests"]:
            return None
        tokens = self._tokens
        share = tokens["cached_tokens"] / max(tokens["input_tokens"], 1)
        counts = (
            f"{tokens['input_tokens']:,} prompt tokens, {tokens['cached_tokens']:,} of"
            f" them cached ({share:.0%}); {tokens['output_tokens']:,} output tokens,"
            f" {tokens['reasoning_tokens']:,} of them reasoning"
        )
        if self.prices is None:
            return f"{counts}; the price is not known"
        saving = ""
        if tokens["cached_tokens"]:
            saving = f", and the provider's cache saved ${self._saving:.4f}"
        return (
            f"{counts}; ${self._dollars:.4f} were spent{saving} ({self.prices.source})"
        )

    def _most_dollars(self, asked: StoredRequest, prices: Prices) -> float:
        counted = asked.sample.prompt_tokens
        most = (
            int(counted * _COUNTED) if counted else _most_tokens(asked.text())
        ) + CHAT_TOKENS
        most = input_tokens(asked.request, most, asked.characters)
        # A server writes a token after each text that it scores.
        output = (
            asked.request.max_tokens or count_texts(asked.request)
        ) + self._thinking
        if (
            second := most_follow_up_tokens(asked.request, asked.sample, _most_tokens)
        ) != Usage():
            most += second.input_tokens + CHAT_TOKENS
            output += second.output_tokens + self._thinking
        written = Usage(
            input_tokens=most,
            cache_write_tokens=most,
            output_tokens=output,
        )
        plain = Usage(input_tokens=most, output_tokens=output)
        return max(prices.dollars(written) or 0.0, prices.dollars(plain) or 0.0)


def _most_tokens(text: str) -> int:
    """Return the number of bytes of a text: an estimate can be too low, but no tokenizer makes more tokens."""
    return len(text.encode("utf-8", "surrogatepass"))
