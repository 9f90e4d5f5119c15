"""How the baseline models answer LongProc's tasks.

The templates are in downloaded files, so a prompt's task is recognised by words in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from helm_longctx.protocol.baseline import Baseline, Strategy
from helm_longctx.protocol.prompt import Message

MOST_STEPS = 1000
"""More steps than the longest route has. The limit ends a search in links that form a circle."""

_LINK = re.compile(r"You can travel from (.+?) to (.+?) by (\w+)\.")
_ROUTE = re.compile(r"Now find the route from (.+?) to (.+?) based on")
_ANSWERS = {
    "html_to_tsv": ("extract specific information from an HTML webpage", "```tsv\n```"),
    "pseudo_to_code": ("You will be given lines of pseudocode", "```cpp\nint main() {}\n```"),
    "tom_tracking": ("a story about object placement", "- Step 0"),
    "countdown": ("four numbers and a target number", "<Solution>\n</Solution>"),
    "travel_planning": ("create a trip plan based on given constraints", "<Plan>\n</Plan>"),
}
"""For each task, words that only its prompts have, and an empty answer in its format."""


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


def _recognise(words: str, answer: str) -> Strategy:
    """Make a strategy that gives the same answer to every prompt of a task."""
    # Only the first thousand characters are searched, because a web page with any words can follow.
    return lambda messages: answer if words in messages[-1]["content"][:1000] else None


BASELINES = {
    **{name: Baseline(_recognise(words, answer), answer) for name, (words, answer) in _ANSWERS.items()},
    "path_traversal": Baseline(find_route, "<Route>\n</Route>"),
}
