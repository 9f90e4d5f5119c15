"""Says what a cache check found: a verdict, and a table with a row for each state and length."""

from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd

from helm_longctx.apps.cache_check.prompts import PLACES
from helm_longctx.apps.cache_check.states import (
    BUSY,
    COLD,
    PARALLEL,
    STATES,
    StateReply,
)
from helm_longctx.apps.cache_check.verdict import (
    LEAST_TIE,
    Build,
    StateCell,
    find_small,
    needed_wins,
)
from helm_longctx.documents.document import Block, Column, HeadlineAnswer, Table
from helm_longctx.documents.document import Cell as TableCell
from helm_longctx.documents.numbers import format_percent
from helm_longctx.tasks.lengths import length_label

QUESTION = "Do answers depend on what is in the server's prefix cache?"

_LOST = 0.2
"""Share of the values at a depth that must be lost for the depth to be named."""


def cache_blocks(
    cells: Sequence[StateCell],
    replies: Sequence[StateReply],
    model: str,
) -> list[Block]:
    """Return the verdict and the table."""
    columns = [
        Column("State", "What the server got before the question.", is_number=False),
        Column("Length", is_number=False),
        Column("Questions"),
        Column(
            "Farther",
            "Answers that are farther from the cold one than another cold one is.",
        ),
        Column("Nearer", "Answers that are nearer to it."),
        Column("Found", "Share of the values that were found in this state."),
        Column("Found cold", "The same in the cold answers."),
        Column(
            "From the cache",
            "Share of the prompt's tokens that the server says it read from its cache.",
        ),
        Column(
            "p",
            "Probability of so many if the state changes nothing, corrected for the"
            " number of rows.",
        ),
        Column("", is_number=False),
    ]
    table = Table(
        name="cache-check",
        title=f"States of the cache of {model}",
        columns=columns,
        rows=[_row(cell) for cell in cells],
    )
    return [
        table,
        HeadlineAnswer(
            question=QUESTION,
            verdict=_verdict(cells, model),
            certainty="",
            is_sure=not open_cells(cells),
            note=" ".join(_notes(cells, replies)),
        ),
    ]


def describe_builds(builds: Sequence[Build]) -> Iterator[str]:
    """Yield a sentence for each build behind the address whose answers are worse than the other builds'."""
    for build in builds:
        if build.differs:
            yield (
                f"Several builds answer at this address, and {build.name} is worse:"
                f" {build.right} of its {build.n} cold answers are right, and"
                f" {build.other_right} of {build.other_n} of the others (p"
                f" {build.p_value:.2g})."
            )


def open_cells(cells: Sequence[StateCell]) -> list[StateCell]:
    """Return the cells that say nothing: too few answers, or a cache that was not used."""
    undecided = []
    for cell in cells:
        if not cell.differs and (cell.n < needed_wins(len(cells)) or cell.was_not_warm):
            undecided.append(cell)
    return undecided


def _row(cell: StateCell) -> list[TableCell]:
    if cell.differs:
        note = "differs"
    else:
        note = "not from the cache" if cell.was_not_warm else ""
    seen = "–"
    cold = "–"
    if cell.n:
        seen = format_percent(cell.state_found)
        cold = format_percent((cell.cold_found + cell.control_found) / 2)
    return [
        TableCell(cell.name, note=STATES[cell.state].about),
        TableCell(length_label(cell.length)),
        TableCell(f"{cell.n}", cell.n, f"{cell.failed} failed" if cell.failed else ""),
        TableCell(f"{cell.farther}", cell.farther),
        TableCell(f"{cell.nearer}", cell.nearer),
        TableCell(seen, cell.state_found),
        TableCell(cold, cell.cold_found),
        TableCell(
            "–" if cell.cached is None else format_percent(cell.cached), cell.cached
        ),
        TableCell(f"{cell.p_value:.2g}", cell.p_value),
        TableCell(note),
    ]


def _verdict(cells: Sequence[StateCell], model: str) -> str:
    differing = [cell for cell in cells if cell.differs]
    if not differing:
        undecided = open_cells(cells)
        if undecided:
            names = ", ".join(
                f"{cell.name} at {length_label(cell.length)}" for cell in undecided
            )
            return f"It is open whether the answers of {model} depend on its cache. Nothing is known about: {names}."
        lengths = ", ".join(dict.fromkeys(length_label(cell.length) for cell in cells))
        return f"No state of the cache changes the answers of {model} ({lengths})."
    first = differing[0]
    states = ", ".join(dict.fromkeys(cell.name for cell in differing))
    text = f"The answers of {model} depend on its cache: {states}; the shortest length is {length_label(first.length)}."
    kinds = list(dict.fromkeys(cell.kind for cell in differing))
    fine: list[str] = []
    for cell in cells:
        if cell.kind not in (*kinds, *fine):
            fine.append(cell.kind)
    if fine:
        text += f" It was seen only in texts of these kinds: {', '.join(kinds)}; not in: {', '.join(fine)}."
    most_lost = []
    for name, share in zip(PLACES, first.lost, strict=True):
        if share >= _LOST:
            most_lost.append(name)
    if most_lost:
        return f"{text} Values are lost most at: {', '.join(most_lost)}."
    return text


def _notes(cells: Sequence[StateCell], replies: Sequence[StateReply]) -> list[str]:
    notes = []
    cached = set()
    for reply in replies:
        if reply.cached_tokens:
            cached.add(reply.cached_tokens)
    if all(cell.cached is None for cell in cells):
        notes.append(
            "The server does not say how many tokens it read from its cache, so a warm"
            " request may have been cold."
        )
    elif len(cached) > 2 and (block := reduce(gcd, cached)) > 1:
        notes.append(
            f"All counts of cached tokens are multiples of {block}, perhaps the size of a block."
        )
    if small := find_small(replies, cells):
        names = ", ".join(
            f"{cell.name} at {length_label(cell.length)} ({cell.gap:.1g} nats)"
            for cell in small
        )
        notes.append(
            "By less than --tie, but beyond chance, answers differ from cold ones to"
            f" the same prompts: {names}. --tie {LEAST_TIE:g} counts them. If all"
            " states do by about as much, the server rounds what it caches."
        )
    compared = set()
    for reply in replies:
        if reply.state == BUSY:
            compared.add((reply.length, reply.kind))
    if any(
        cell.state == PARALLEL
        and not cell.differs
        and (cell.length, cell.kind) in compared
        for cell in cells
    ):
        notes.append(
            "Requests at the same time change answers, also if they are about other"
            " texts: this is the server's load, and not its cache."
        )
    is_exact = any(reply.copy for reply in replies)
    noise = max((cell.noise for cell in cells if cell.n), default=0.0)
    if noise and any(reply.logprobs for reply in replies) and not is_exact:
        notes.append(
            f"Cold answers to copies of a prompt differ by {noise:.2g} nats for each"
            " token, so changes of much less are not seen; --cold asks for cold"
            " answers to the same prompts."
        )
    if any(
        reply.state == COLD
        and reply.cached_tokens
        and reply.cached_tokens > reply.length / 2
        for reply in replies
    ):
        if is_exact:
            why = "so --cold does not keep requests away from the cache"
        else:
            why = "so its counts are wrong"
        notes.append(
            f"The server says that it read cold prompts from its cache, too, {why}."
        )
    if not any(reply.logprobs for reply in replies):
        notes.append(
            "The server gives no log-probabilities, so only texts are compared."
        )
    if failed := sum(bool(reply.failure) for reply in replies):
        reasons = ", ".join(
            sorted({reply.failure for reply in replies if reply.failure})
        )
        notes.append(
            f"{failed} questions have no answer ({reasons}); run the command again to"
            " ask them again."
        )
    return notes
