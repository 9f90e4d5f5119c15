"""The twenty conditions of OOLONG-Pairs as functions of the texts of two users, and all pairs that meet one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from itertools import combinations

from helm_longctx.benchmarks.oolong.data import read_entries

Texts = Sequence[tuple[str, date]]
Rule = Callable[[Texts, Texts], bool]


def _count(texts: Texts, *labels: str) -> int:
    return sum(label in labels for label, _ in texts)


def _days(texts: Texts, label: str) -> list[date]:
    return [day for text_label, day in texts if text_label == label]


def _both(fits: Callable[[Texts], bool]) -> Rule:
    return lambda one, other: fits(one) and fits(other)


def _either(first: Callable[[Texts], bool], second: Callable[[Texts], bool]) -> Rule:
    return lambda one, other: (
        (first(one) and second(other)) or (first(other) and second(one))
    )


D, E, H, N, L, A = (
    "description and abstract concept",
    "entity",
    "human being",
    "numeric value",
    "location",
    "abbreviation",
)
RULES = [
    _both(lambda t: _count(t, N, L) > 0),
    _both(lambda t: _count(t, E, H) > 0),
    _both(lambda t: _count(t, D, A) > 0),
    _both(
        lambda t: (
            _count(t, H, L) > 0
            and min(_days(t, H), default=date.max) > date(2023, 1, 6)
        )
    ),
    _both(
        lambda t: (
            _count(t, E, N) > 0
            and max(_days(t, E), default=date.min) < date(2023, 3, 15)
        )
    ),
    _both(lambda t: _count(t, L, A) > 0),
    _both(
        lambda t: (
            _count(t, D, N) > 0
            and min(_days(t, N), default=date.max) > date(2023, 2, 1)
        )
    ),
    _both(lambda t: _count(t, H, D) > 0),
    _both(
        lambda t: (
            _count(t, E, L) > 0
            and min(_days(t, L), default=date.max) > date(2023, 4, 10)
        )
    ),
    _both(
        lambda t: (
            _count(t, N, A) > 0
            and max(_days(t, A), default=date.min) < date(2023, 5, 20)
        )
    ),
    _either(
        lambda t: _count(t, E) > 0 and _count(t, A) > 0, lambda t: _count(t, E) == 1
    ),
    _either(
        lambda t: _count(t, N) > 1, lambda t: _count(t, L) > 0 and _count(t, H) > 0
    ),
    _either(
        lambda t: _count(t, D) == 1, lambda t: _count(t, A) > 0 and _count(t, E) > 0
    ),
    _either(
        lambda t: _count(t, H) > 0 and _count(t, N) > 0, lambda t: _count(t, L) == 2
    ),
    _either(
        lambda t: min(_count(t, E), _count(t, L), _count(t, A)) > 0,
        lambda t: _count(t, N) == 1,
    ),
    _either(
        lambda t: min(_count(t, D), _count(t, H)) > 0,
        lambda t: _count(t, E) > 1 and _count(t, A) == 1,
    ),
    _either(lambda t: _count(t, N) == 1, lambda t: min(_count(t, L), _count(t, D)) > 0),
    _either(
        lambda t: _count(t, A) > 0 and _count(t, H) == 1,
        lambda t: min(_count(t, E), _count(t, N)) > 0,
    ),
    _either(
        lambda t: _count(t, L) > 1 and _count(t, E) > 0,
        lambda t: _count(t, D) == 1 and _count(t, A) == 1,
    ),
    _either(
        lambda t: min(_count(t, N), _count(t, H)) > 0,
        lambda t: min(_count(t, L), _count(t, E)) > 0 and _count(t, A) == 1,
    ),
]


def find_pairs(labelled: str, rule: Rule) -> list[tuple[int, int]]:
    """Return the right pairs in a text with labels, each pair of users on its own."""
    users: dict[int, list[tuple[str, date]]] = {}
    for entry in read_entries(labelled):
        day = datetime.strptime(entry.date, "%b %d, %Y").date()
        users.setdefault(int(entry.user), []).append((entry.label, day))
    return [
        (one, other)
        for one, other in combinations(sorted(users), 2)
        if rule(users[one], users[other])
    ]
