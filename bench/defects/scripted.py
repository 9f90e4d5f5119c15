"""Counts how often a cache check finds faults of a prefix cache, and how often it finds one where there is none.

    python -m bench.defects.scripted --seeds 100
    python -m bench.defects.scripted --seeds 100 --where

The model is scripted, the cache of blocks and its faults are real (`tests/support/cached_server.py`). The requests stay
in this process. A fault is found if any state differs, and named right if the first state that differs is one of those
in which the fault can show.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.support.cached_server import CachedServer

from helm_longctx.apps.cache_check import boundary
from helm_longctx.apps.cache_check.check import find_suspects
from helm_longctx.apps.cache_check.prompts import (
    CheckPrompt,
    RegisterQuestion,
    lines_for,
)
from helm_longctx.apps.cache_check.states import (
    BEGINNING,
    BUSY,
    BUSY_CONTROL,
    STATES,
    StateReply,
    find_build,
    find_cached,
    plan_busy,
    plan_questions,
)
from helm_longctx.apps.cache_check.verdict import judge, judge_builds
from helm_longctx.apps.cache_check.where import QUESTIONS, SEEDS, find_where
from helm_longctx.models.apis.answer_logprobs import read_logprobs

FAULTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "wrong block on a partial hit": (
        {"fault": "wrong block"},
        {"same beginning", "parallel"},
    ),
    "shared block overwritten": (
        {"fault": "overwritten"},
        {"A, B, A", "same beginning", "parallel"},
    ),
    "last block dropped on a hit": (
        {"fault": "dropped"},
        {"warm", "same beginning", "parallel"},
    ),
    "stale block after eviction": ({"fault": "stale", "capacity": 400}, {"evicted"}),
    "aborted stream": ({"fault": "aborted"}, {"aborted"}),
    "questions mixed": ({"fault": "mixed"}, {"parallel"}),
    "none": ({}, set()),
    "none, 30 % of answers slip": ({"slip": 0.3}, set()),
    "none, 10 % of requests fail": ({"fails": 0.1}, set()),
    "none, random log-probabilities": ({"has_logprobs": True}, set()),
    "none, requests at the same time are computed otherwise": (
        {"has_logprobs": True, "load_noise": 0.1},
        set(),
    ),
}


class InProcess:
    """Asks a server without HTTP."""

    def __init__(self, model: CachedServer):
        self.model = model

    def connect(self) -> None:
        """Do nothing: there are no connections."""

    def _send(self, prompt: CheckPrompt, **fields: Any) -> dict[str, Any]:
        return self.model.answer(
            {
                "messages": [{"role": "user", "content": prompt.text}],
                "logprobs": True,
                "model": "m",
                **fields,
            }
        )

    def ask(
        self, prompt: CheckPrompt, reply: StateReply, client: object = None
    ) -> StateReply:
        """Return a reply with the answer, as `states.Server.ask` does."""
        if self.model.random.random() < self.model.fails:
            return replace(reply, failure="server_error")
        body = self._send(prompt)
        text = body["choices"][0]["message"]["content"]
        return replace(
            reply,
            text=text,
            hits=tuple(prompt.find_values(text)),
            logprobs=tuple(read_logprobs(body)),
            prompt_tokens=body["usage"]["prompt_tokens"],
            cached_tokens=find_cached(body),
            build=find_build(body),
        )

    def abort(self, prompt: CheckPrompt) -> None:
        """Send the prompt as an aborted stream."""
        self._send(prompt, stream=True)


def check(model: CachedServer, length: int, questions: int, seed: int) -> Iterator[str]:
    """Yield the states that differ."""
    server: Any = InProcess(model)
    size = lines_for(length)

    def ask(plan: Sequence[StateReply]) -> list[StateReply]:
        return [
            STATES[reply.state].ask(server, RegisterQuestion(reply.seed, size), reply)
            for reply in plan
        ]

    replies = ask(
        [
            StateReply(length, seed + number, name)
            for number in range(questions)
            for name in STATES
            if name not in (BUSY, BUSY_CONTROL)
        ]
    )
    replies += ask(plan_busy(find_suspects(replies, None), is_exact=False))
    yield from (cell.state for cell in judge(replies) if cell.differs)


SHORTEST = 1200
"""Tokens of the shortest prompt with which the faults show whose place is searched."""

PLACES: dict[str, tuple[str, tuple[float, float] | None, str]] = {
    "aborted": ("aborted", (0.5, 1.0), ""),
    "dropped": ("same beginning", None, "before the end"),
    "wrong block": ("same beginning", None, "before the end"),
}
"""For each fault the state, the depths of what is lost, and the place around the end of a shared beginning."""


def ask_many(
    model: CachedServer,
    length: int,
    states: Sequence[str],
    count: int,
    seed: int,
    is_spread: bool = False,
    shared: int | None = None,
) -> list[StateReply]:
    """Ask questions in some states."""
    server: Any = InProcess(model)
    plan = plan_questions([length], count, states, seed, is_exact=False, shared=shared)
    return [
        STATES[asked.state].ask(server, asked.question(is_spread), asked)
        for asked in plan
    ]


def count_places(seeds: int, length: int) -> None:
    """Print for each fault how often the search names its place."""
    for fault, (state, depths, border) in PLACES.items():
        detected = 0
        right = 0
        longest = 0.0
        deep = 0
        blocks = 0
        requests = 0
        for seed in range(seeds):
            model = CachedServer(seed=seed, fault=fault, shortest=SHORTEST)
            replies = ask_many(
                model, length, ("cold", "cold again", state), 12, 1000 * seed
            )
            cells = judge(replies)
            if not cells[0].differs:
                continue

            def ask(
                size: int,
                states: Sequence[str],
                is_spread: bool,
                model: CachedServer = model,
                seed: int = seed,
            ) -> list[StateReply]:
                return ask_many(
                    model,
                    size,
                    states,
                    QUESTIONS,
                    1000 * seed + SEEDS * (1 + is_spread),
                    is_spread,
                )

            def ask_shared(
                size: int,
                lines: int,
                tried: int,
                model: CachedServer = model,
                seed: int = seed,
            ) -> list[StateReply]:
                first = 1000 * seed + SEEDS * (3 + lines) + 100 * tried
                count = boundary.QUESTIONS
                return ask_many(
                    model,
                    size,
                    ("cold", "cold again", BEGINNING),
                    count,
                    first,
                    False,
                    lines,
                )

            where = find_where(cells, cells[0], replies, ask, ask_shared)
            detected += 1
            tokens = where.cell.length
            # The server counts other tokens than the plan of lengths, by a few percent.
            right += max(where.without * 0.9, 1) <= SHORTEST <= tokens * 1.1
            longest = max(longest, abs(math.log2(tokens / SHORTEST)))
            first, last = where.depths or (0.0, 0.0)
            deep += (
                border in where.at_border
                if border
                else depths is not None
                and abs(first - depths[0]) <= 0.1 >= abs(last - depths[1])
            )
            requests += model.requests
            blocks += (
                where.boundary is not None
                and where.boundary.first.tokens == model.first_hit * model.block
            )
        print(
            f"{fault:12} found {detected:3}, shortest length right {right:3} (at most a factor of {2**longest:.2f} off),"
            f" depth right {deep:3}, block right {blocks:3}, {requests / max(detected, 1):.0f} requests",
            flush=True,
        )
    for name, every in (("router, second build worse", 5), ("one build", 0)):
        alarms = 0
        for seed in range(seeds):
            model = CachedServer(seed=seed, worse_every=every)
            builds = judge_builds(
                ask_many(model, length, ("cold", "cold again", "warm"), 40, 1000 * seed)
            )
            alarms += any(
                build.differs and build.name.endswith("fp-2") for build in builds
            )
        print(f"{name}: named {alarms}", flush=True)


def main() -> None:
    """Print a row for each fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--where", action="store_true", help="Search the places of the faults."
    )
    options = parser.parse_args()
    if options.where:
        count_places(options.seeds, options.length)
        return
    print(
        f"{options.questions} questions of {options.length} tokens, {options.seeds} seeds"
    )
    for name, (arguments, states) in FAULTS.items():
        if options.only not in name:
            continue
        detected = 0
        right = 0
        requests = 0
        for seed in range(options.seeds):
            model = CachedServer(seed=seed, **arguments)
            differing = list(
                check(model, options.length, options.questions, 1000 * seed)
            )
            detected += bool(differing)
            right += bool(differing) and differing[0] in states
            requests += model.requests
        print(
            f"{name:35} found {detected:3}, place right {right:3}, {requests / options.seeds:.0f} requests",
            flush=True,
        )


if __name__ == "__main__":
    main()
