"""Prose for haystacks: plain sentences from a small grammar, so that no text of others is needed."""

from __future__ import annotations

import random

_OPENINGS = (
    "In the morning", "After the rain", "Near the old bridge", "On the second floor", "By the end of the week",
    "Without much hurry", "For most of the year", "Before the meeting", "Along the northern road", "As far as we know",
)  # fmt: skip
_SUBJECTS = (
    "the gardener", "a retired captain", "the younger sister", "an old clock", "the night train", "our neighbour",
    "the school orchestra", "a quiet committee", "the ferry company", "a visiting painter", "the baker", "the council",
    "a flock of starlings", "the new librarian", "an amateur astronomer",
)  # fmt: skip
_VERBS = (
    "repaired", "measured", "described", "carried", "forgot", "collected", "painted", "studied", "exchanged",
    "examined", "counted", "remembered", "arranged", "discovered", "postponed",
)  # fmt: skip
_OBJECTS = (
    "the wooden gate", "a box of letters", "several maps", "the harvest figures", "a pair of lanterns",
    "the long staircase", "two silver spoons", "the weather records", "a borrowed violin", "the garden wall",
    "an unfinished letter", "the morning papers", "a basket of apples", "the harbour lights", "a set of keys",
)  # fmt: skip
_ENDINGS = (
    "and nobody objected", "while the kettle boiled", "before anyone noticed", "with unusual care",
    "although it was late", "as had been agreed", "in spite of the wind", "and wrote it down",
    "because the road was closed", "until the bells rang",
)  # fmt: skip


def sentence(rng: random.Random) -> str:
    """One sentence of about sixteen words."""
    opening, subject, verb, thing, ending = map(rng.choice, (_OPENINGS, _SUBJECTS, _VERBS, _OBJECTS, _ENDINGS))
    return f"{opening}, {subject} {verb} {thing} {ending}."
