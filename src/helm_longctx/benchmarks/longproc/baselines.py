"""How the baseline models answer LongProc's tasks.

The templates are in downloaded files, so a prompt's task is recognised by words in it.
"""

import re
from collections.abc import Sequence

from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.task import Baseline

MOST_STEPS = 1000
"""More steps than the longest route has. The limit ends a search in links that form a circle."""

_LINK = re.compile(r"You can travel from (.+?) to (.+?) by (\w+)\.")
_ROUTE = re.compile(r"Now find the route from (.+?) to (.+?) based on")


def find_route(messages: Sequence[Message]) -> str | None:
    """Follow the links from city to city. Returns None if the last turn does not ask for a route."""
    problem = messages[-1]["content"].rpartition("[PROBLEM]")[2]
    question = _ROUTE.search(problem)
    if question is None:
        return None
    links = {source: (target, by) for source, target, by in _LINK.findall(problem)}
    city, target = question.groups()
    steps: list[str] = []
    while city != target and city in links and len(steps) < MOST_STEPS:
        following, by = links[city]
        steps.append(f"From {city}, take a {by} to {following}.")
        city = following
    return "\n".join(["<Route>", *steps, "</Route>"])


def answer_always(words: str, answer: str) -> Baseline:
    """Return a baseline that gives the same answer to every prompt of a task.

    Args:
        words: words that only the prompts of the task have.
        answer: an empty answer in the format of the task.
    """
    # Only the first thousand characters are searched, because a web page with any words can follow.
    return Baseline(lambda messages: answer if words in messages[-1]["content"][:1000] else None, answer)


ROUTE = Baseline(find_route, "<Route>\n</Route>")
