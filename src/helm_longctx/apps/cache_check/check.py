"""Makes a cache check: asks the questions, prints the verdict, and searches where a difference is."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_longctx.apps.cache_check import boundary
from helm_longctx.apps.cache_check.prompts import PLAIN
from helm_longctx.apps.cache_check.reproduction import write_script
from helm_longctx.apps.cache_check.sections import (
    cache_blocks,
    describe_builds,
    open_cells,
)
from helm_longctx.apps.cache_check.states import (
    BUSY,
    BUSY_CONTROL,
    COLD,
    CONTROL,
    PARALLEL,
    REFERENCES,
    STATES,
    Server,
    StateReply,
    ask_states,
    list_copies,
    plan_busy,
    plan_questions,
)
from helm_longctx.apps.cache_check.verdict import (
    TIE,
    StateCell,
    judge,
    judge_builds,
    smallest_share,
)
from helm_longctx.apps.cache_check.where import QUESTIONS, SEEDS, Where, find_where
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.runs.design import keep_design, read_design
from helm_longctx.tasks.lengths import length_label
from helm_longctx.writing import replace_file


@dataclass(frozen=True)
class CheckPlan:
    """What a check asks.

    Args:
        lengths: tokens of prompts.
        questions: number of questions for each length, state and kind of text.
        states: keys of `states.STATES`.
        seed: the first seed of the questions.
        kinds: keys of `prompts.TEXTS`.
    """

    lengths: Sequence[int]
    questions: int
    states: Sequence[str]
    seed: int
    kinds: Sequence[str]


def open_folder(
    folder: Path,
    design: dict[str, Any],
    server: Server,
    finds_cold: bool,
) -> None:
    """Keep what the answers in a folder are about, with the fields of cold requests; find these if they are not given.

    Raises:
        InputError: the folder has a check with other options, or its file is damaged.
    """
    kept = read_design(folder, "cache-check")
    if finds_cold:
        if kept:
            server.cold_fields = kept.get("cold", {})
        else:
            server.cold_fields = server.find_cold_fields(design["seed"])
        if server.cold_fields:
            print(
                f"Cold requests have {json.dumps(server.cold_fields)}, with which the"
                " server does not use its cache."
            )
    design |= {"cold": dict(server.cold_fields)} if server.cold_fields else {}
    keep_design(folder, design, "cache-check", "a check")


def check(
    server: Server,
    plan: CheckPlan,
    folder: Path,
    searches: bool,
    tie: float | None,
) -> int:
    """Ask, print and write the verdict, and return the exit status."""
    tie = TIE if server.cold_fields and tie is None else tie
    asked = plan_questions(
        plan.lengths,
        plan.questions,
        plan.states,
        plan.seed,
        bool(server.cold_fields),
        plan.kinds,
    )
    replies = ask_states(server, asked, folder)
    replies = [reply for reply in replies if reply.state not in (BUSY, BUSY_CONTROL)]
    if suspects := find_suspects(replies, tie):
        print(
            "Answers in parallel seem to differ: cold questions are asked among other requests."
        )
        among_others = ask_states(
            server, plan_busy(suspects, bool(server.cold_fields)), folder
        )
        for reply in among_others:
            if reply.state in (BUSY, BUSY_CONTROL):
                replies.append(reply)
    cells = judge(replies, tie)
    print_blocks(cache_blocks(cells, replies, server.deployment))
    builds = judge_builds(replies)
    for line in describe_builds(builds):
        print(line)
    data = json.dumps([vars(cell) for cell in cells], indent=1)
    replace_file(folder / "cells.json", data.encode(), b"\n")
    differing = [cell for cell in cells if cell.differs]
    # The cell of the shortest length of each state and kind of text.
    shortest: dict[str, StateCell] = {}
    for cell in reversed(differing):
        shortest[cell.name] = cell
    first = list(reversed(shortest.values()))
    located = [Where(cell) for cell in first]
    if searches:
        located = []
        for cell in first:
            located.append(
                _search(server, cells, cell, replies, plan.seed, folder, tie)
            )
    for where in located:
        script = write_script(server, where.cell, where.boundary, folder)
        if script:
            print(f"This script shows it ({where.cell.name}): {script}")
    print(f"All data: {folder}")
    if differing or any(build.differs for build in builds):
        return 1
    return 3 if open_cells(cells) or not cells else 0


def find_suspects(replies: Sequence[StateReply], tie: float | None) -> list[StateReply]:
    """Return the answers in parallel that seem to differ from cold ones without other requests."""
    suspects = set()
    for cell in judge(replies, tie):
        if cell.state == PARALLEL and cell.differs:
            suspects.add((cell.length, cell.kind))
    parallel = [reply for reply in replies if reply.state == PARALLEL]
    chosen = []
    for reply in parallel:
        if (reply.length, reply.kind) in suspects:
            chosen.append(reply)
    return chosen


def _search(
    server: Server,
    cells: list[StateCell],
    cell: StateCell,
    replies: list[StateReply],
    seed: int,
    folder: Path,
    tie: float | None,
) -> Where:
    """Print and return where the difference of a cell is."""

    def ask(
        length: int,
        states: Sequence[str],
        is_spread: bool,
        shared: int | None = None,
        tried: int = 0,
    ) -> list[StateReply]:
        parts: list[object] = [cell.state, length]
        if cell.kind != PLAIN:
            parts.append(cell.kind)
        if is_spread:
            parts.append("spread")
        first = seed + SEEDS * (1 + is_spread)
        count = QUESTIONS
        if shared is not None:
            # Prompts of other steps with the same seeds would be in the cache.
            parts += [shared, tried]
            count = boundary.QUESTIONS
            first = seed + SEEDS * (3 + shared) + tried * count
        questions = plan_questions(
            [length],
            count,
            states,
            first,
            bool(server.cold_fields),
            [cell.kind],
            shared,
        )
        if CONTROL in states and COLD in states:
            questions += plan_busy(questions, bool(server.cold_fields))
        name = "-".join(map(str, parts)).replace(" ", "-")
        return ask_states(server, questions, folder / "where" / name, is_spread)

    def ask_shared(length: int, lines: int, tried: int) -> list[StateReply]:
        return ask(length, (COLD, CONTROL, cell.state), False, lines, tried)

    where = find_where(cells, cell, replies, ask, ask_shared, tie)
    print(where.text)
    return where


def print_plan(plan: CheckPlan, max_tokens: int, fields: dict[str, Any] | None) -> None:
    """Print how many requests and tokens a check has, and what it finds.

    Args:
        max_tokens: the limit of an answer.
        fields: the fields of `--cold`, if they are given.
    """
    copies = plan.questions * len(plan.kinds)
    count = len(plan.lengths)

    def count_requests(is_exact: bool) -> int:
        states = list_copies(plan.states, is_exact)
        return copies * sum(STATES[state].requests for state, _ in states)

    requests = count_requests(bool(fields))
    most = count_requests(True)
    for length in plan.lengths:
        tokens = requests * length / 1e6
        print(
            f"{length_label(length)}: {requests} requests, {tokens:,.1f}M prompt tokens"
        )
    tokens = sum(plan.lengths) * requests / 1e6
    print(
        f"Together: {requests * count} requests, {tokens:,.1f}M prompt tokens if nothing is cached."
    )
    if fields is None and most > requests:
        print(
            f"If the server can answer past its cache, there are {most * count} (--cold)."
        )
    print(f"An answer has at most {max_tokens} tokens.")
    if PARALLEL in plan.states:
        again = 2 * copies * STATES[BUSY].requests
        print(
            f"If answers in parallel seem to differ, {again} more for each length"
            " compare them with cold ones among other requests."
        )
    cells = (
        count * len(plan.kinds) * sum(state not in REFERENCES for state in plan.states)
    )
    share = smallest_share(plan.questions, cells)
    if share:
        size = f"that changes {share:.0%} of its answers"
    else:
        size = "of no size; ask more questions"
    print(
        f"A server that repeats its cold answers exactly: a state {size} is found in 80"
        " % of checks. Nothing was sent."
    )
