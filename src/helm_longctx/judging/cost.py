"""What judges cost, about."""

from __future__ import annotations

import threading

from helm_longctx.judging.judge import Question, Reply

CHARACTERS = 4
"""Of English text a token has about so many; HELM does not hand on how many a provider counted."""


class Spending:
    """Calls, tokens and dollars, added up by threads; its text is for people."""

    def __init__(self) -> None:
        self.calls = self.input_tokens = self.output_tokens = 0
        self.dollars: float | None = 0.0
        self._lock = threading.Lock()

    def add(self, model: str, question: Question, reply: Reply) -> None:
        """Count what a question cost; answers from the cache cost nothing."""
        if not reply.paid_calls:
            return
        read = reply.paid_calls * len(question.prompt) // CHARACTERS
        written = reply.paid_calls * len(reply.text or "") // CHARACTERS
        price = price_of(model, read, written)
        with self._lock:
            self.calls += reply.paid_calls
            self.input_tokens += read
            self.output_tokens += written
            self.dollars = None if price is None or self.dollars is None else self.dollars + price

    def __str__(self) -> str:
        dollars = "no known price" if self.dollars is None else f"about ${self.dollars:.2f}"
        return f"{self.calls} calls, {self.input_tokens:,} tokens in, {self.output_tokens:,} out, {dollars}"


def price_of(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars by genai-prices' table, which comes with that package; None if it does not know the model.

    Args:
        model: as HELM names it, `openai/gpt-4o-2024-05-13`.
    """
    from genai_prices import Usage, calc_price

    try:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, model_ref=model.rpartition("/")[2]).total_price)
    except LookupError:
        return None
