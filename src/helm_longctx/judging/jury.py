"""Several judges, asked many questions at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from helm.common.hierarchical_logger import herror, hlog
from tqdm import tqdm

from helm_longctx.judging.cost import Spending
from helm_longctx.judging.judge import Judge, JudgeRequest, Reply
from helm_longctx.judging.settings import PARALLEL, setting


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
