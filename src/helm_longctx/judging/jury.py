"""Several judges, asked many questions at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from genai_prices import Usage, calc_price
from helm.common.hierarchical_logger import herror, hlog
from tqdm import tqdm

from helm_longctx.judging.calls import PARALLEL, setting
from helm_longctx.judging.judge import Judge, JudgeRequest, Reply

CHARACTERS = 4
"""Of English text a token has about so many; HELM does not hand on how many a provider counted."""


def ask_judges(
    judges: Sequence[Judge], asked: Sequence[Mapping[str, JudgeRequest]], repeat: int = 0
) -> list[dict[str, dict[str, Reply]]]:
    """Ask every judge everything; the calls run in parallel, with a progress bar that says what they cost.

    Args:
        asked: for each item its questions by name.
        repeat: the how manieth time this is, for answers beside those that HELM's cache holds.

    Returns:
        For each item, by judge, the replies by name.
    """
    spending = Spending()
    places = [(number, judge, name) for number, item in enumerate(asked) for judge in judges for name in item]
    bar = tqdm(total=len(places), desc="judging", unit="questions", disable=None if len(asked) > 1 else True)

    def ask(place: tuple[int, Judge, str]) -> Reply:
        number, judge, name = place
        question = asked[number][name]
        reply = judge.ask(question, repeat)
        spending.add(judge.model, question, reply)
        bar.set_postfix_str(str(spending), refresh=False)
        bar.update()
        return reply

    with bar, ThreadPoolExecutor(int(setting(PARALLEL))) as pool:
        replies = list(pool.map(ask, places))
    found: list[dict[str, dict[str, Reply]]] = [{judge.name: {} for judge in judges} for _ in asked]
    for (number, judge, name), reply in zip(places, replies, strict=True):
        found[number][judge.name][name] = reply
    _tell(found, spending)
    return found


def _tell(found: Sequence[Mapping[str, Mapping[str, Reply]]], spending: Spending) -> None:
    """What it cost, and for each judge what went wrong."""
    if len(found) > 1:
        hlog(f"judges: {spending}")
    errors = Counter(
        (judge, reply.error)
        for item in found
        for judge, replies in item.items()
        for reply in replies.values()
        if reply.error
    )
    for (judge, error), times in errors.most_common(5):
        herror(f"judge {judge} gave no verdict on {times} questions: {error}")


class Spending:
    """Calls, tokens and dollars, added up by threads; its text is for people."""

    def __init__(self) -> None:
        self.calls = self.input_tokens = self.output_tokens = 0
        self.dollars: float | None = 0.0
        self._lock = threading.Lock()

    def add(self, model: str, question: JudgeRequest, reply: Reply) -> None:
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
    try:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, model_ref=model.rpartition("/")[2]).total_price)
    except LookupError:
        return None
