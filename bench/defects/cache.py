"""Counts how often `cache-check` finds faults of a prefix cache; a part of `bench.defects`."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from bench.defects.faults import FAILING, FLAKY, SPREAD
from bench.defects.scripted import InProcess
from bench.local import engines
from tests.support.servers.real_cache import Build, Model, RealCachedServer, Run
from tests.support.servers.real_proxy import NAME, FaultyProxy, Upstream

from helm_longctx.apps.cache_check.prompts import (
    CheckPrompt,
    RegisterQuestion,
    lines_for,
)
from helm_longctx.apps.cache_check.states import (
    ANSWERS,
    COLD,
    CONTROL,
    STATES,
    Server,
    StateReply,
    ask_states,
    list_copies,
    plan_questions,
    read_replies,
)
from helm_longctx.apps.cache_check.verdict import (
    TIE,
    StateCell,
    distance,
    find_small,
    judge,
)
from helm_longctx.config.shared import fill_registries
from helm_longctx.models.apis.providers.openai import OpenAIClient

LENGTH = 128
ANSWER = 24
"""Tokens of a prompt as `cache-check --length` takes them (about 340 tokens of SmolLM2), and of an answer."""

BASE = Build()

TOGETHER = 9
"""Answers that are written together."""

CACHE_STATES = (COLD, CONTROL, "warm", "same beginning", "evicted")

EXACT_TIE = 0.0005
"""Nats by which a fault changes an answer at least, for a test that knows the right one."""

CAPACITY = 70
"""Blocks of the cache: more than three prompts, and less than the four that come between in the state `evicted`."""

CACHE_FAULTS: dict[str, tuple[str, ...]] = {
    "": CACHE_STATES,
    "wrong block": (COLD, CONTROL, "same beginning"),
    "dropped": (COLD, CONTROL, "warm", "same beginning"),
    "stale": (COLD, CONTROL, "evicted"),
}
"""The states in which a fault can show. In the others, its server computes what the one without a fault does."""


class Asker(InProcess):
    """Asks a server in this process, and writes no answers to prompts that only prepare its cache."""

    def __init__(self, server: RealCachedServer):
        self.server = server
        self.prepares = False
        self.is_cold = False

    def connect_cold(self) -> object:
        """Return something that stands for a client whose requests do not use the cache."""
        return self

    def ask(
        self, prompt: CheckPrompt, reply: StateReply, client: object = None
    ) -> StateReply:
        """Return a reply with the answer."""
        self.prepares = STATES[reply.state].requests > 1 and not reply.before
        self.is_cold = client is self
        self.model: Any = _Never(self)
        return super().ask(prompt, reply, client)


class _Never:
    """A server in the place of the scripted one, none of whose requests fails."""

    fails = 0.0
    random = Random(0)

    def __init__(self, asker: Asker):
        self._asker = asker

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        most = 0 if self._asker.prepares else ANSWER
        return self._asker.server.answer(
            {**body, "max_tokens": most, "cache_prompt": not self._asker.is_cold}
        )


class Plan(Model):
    """Notes what would be written about the current question, and writes nothing."""

    def __init__(self, model: Model):
        self.tokenizer = model.tokenizer
        self.question = 0
        self.wanted: dict[str, tuple[int, Run]] = {}

    def write_all(
        self, build: Build, runs: Sequence[Run], most: int
    ) -> list[dict[str, Any]]:
        """Note the runs."""
        if most:
            self.wanted.update(
                {
                    run.key: (self.question, run)
                    for run in runs
                    if run.key not in self.wanted
                }
            )
        return [{"text": "", "content": []} for _ in runs]


def ask_question(
    server: RealCachedServer, number: int, states: Sequence[str], is_exact: bool = False
) -> list[StateReply]:
    """Ask a question in some states, cold ones past the cache if `is_exact`."""
    question = RegisterQuestion(number, lines_for(LENGTH))
    asker: Any = Asker(server)
    replies = [
        StateReply(LENGTH, number, state, copy=copy)
        for state, copy in list_copies(states, is_exact)
    ]
    return [STATES[reply.state].ask(asker, question, reply) for reply in replies]


def ask_all(
    model: Model, questions: int, is_exact: bool
) -> Iterator[tuple[str, StateReply]]:
    """Yield the replies to each question with each fault."""
    for fault, states in CACHE_FAULTS.items():
        server = RealCachedServer(model, BASE, fault, CAPACITY)
        for number in range(questions):
            if isinstance(model, Plan):
                model.question = number
            yield from (
                (fault, reply)
                for reply in ask_question(server, number, states, is_exact)
            )


def record_cache(model: Model, questions: int) -> None:
    """Write what is asked in all states, several answers at a time."""
    # The servers' caches hold names of keys and values, so one pass finds what is needed, and computes nothing.
    plan = Plan(model)
    start = time.time()
    for is_exact in (False, True):
        for _ in ask_all(plan, questions, is_exact):
            pass
    # What belongs to a question is computed together, because only some keys and values are kept.
    names = sorted(plan.wanted.values(), key=lambda named_run: named_run[0])
    runs = [
        run
        for _, run in names
        if f"write {ANSWER} {run.key}" not in model.replies.found
    ]
    for first in range(0, len(runs), TOGETHER):
        group = runs[first : first + TOGETHER]
        model.write_all(BASE, group, ANSWER)
        print(
            f"{first + len(group)} of {len(runs)} answers, {time.time() - start:.0f} s",
            flush=True,
        )


TIMEOUT = 60
LATE = 75
"""Seconds after which a request has no answer, and after which a flaky proxy sends a late one."""


class PreparingServer(Server):
    """Asks for one token where a request only prepares the cache."""

    def ask(
        self, prompt: CheckPrompt, reply: StateReply, client: OpenAIClient | None = None
    ) -> StateReply:
        """Return a reply with the answer."""
        self.max_tokens = (
            1 if STATES[reply.state].requests > 1 and not reply.before else ANSWER
        )
        return super().ask(prompt, reply, client)


def record_served_cache(
    model: Model, upstream: Upstream, questions: int, folder: Path
) -> None:
    """Ask a server through a proxy, over HTTP, in all states and with each fault, as the command does."""
    os.environ["HELM_LONGCTX_TIMEOUT"] = str(TIMEOUT)
    proxy = FaultyProxy(RealCachedServer(model), upstream)
    with proxy.serve() as address, tempfile.TemporaryDirectory() as name:
        local_path = Path(name) / "prod_env"
        engines.add_server(
            local_path.parent, "bench/proxy", engines.Server(address, NAME, {}), "chat"
        )
        fill_registries(local_path)
        for fault in (*CACHE_FAULTS, FLAKY):
            is_sound = fault in ("", FLAKY)
            proxy.late = LATE if fault == FLAKY else 0.0
            cold = (COLD, CONTROL)
            warm = CACHE_FAULTS.get(fault, CACHE_STATES[:-1])[2:]
            # A fault changes only the answers in its states; cold ones come from the server without a fault.
            asked = {"": (*cold, *warm), COPIES: cold} if is_sound else {"": warm}
            for end, states in asked.items():
                proxy.cache = RealCachedServer(
                    model, BASE, "" if is_sound else fault, CAPACITY
                )
                server = PreparingServer(
                    "bench/proxy",
                    local_path,
                    ANSWER,
                    {} if end else {"cache_prompt": False},
                )
                plan = plan_questions(
                    [LENGTH], questions, states, 0, is_exact=bool(server.cold_fields)
                )
                ask_states(server, plan, folder / f"{fault or 'none'}{end}")


COPIES = ", copies"
"""The end of the name of a folder with cold answers to copies."""


def read_pools(folder: Path, is_exact: bool) -> dict[str, list[StateReply]]:
    """Return the replies of a server with each fault."""
    pools: dict[str, list[StateReply]] = {}
    for fault in (*CACHE_FAULTS, FLAKY):
        replies = read_replies(folder / (fault or "none") / ANSWERS)
        if fault != FLAKY:  # what failed was asked again
            replies = [reply for reply in replies if not reply.failure]
        cold = read_replies(folder / f"{fault or 'none'}{COPIES}" / ANSWERS)
        pools[fault] = (
            replies
            if is_exact
            else [*cold, *(reply for reply in replies if not reply.copy)]
        )
    return pools


QUESTIONS_OF_CHECKS = (10, 20, 40)
"""Questions of a check that are tried."""

SETTLED = 95
"""Seeds of 100 that must find a fault."""


def draw_replies(
    pool: Sequence[StateReply],
    count: int,
    seed: int,
    change: Callable[[StateReply, Random], StateReply],
) -> list[StateReply]:
    """Return replies to questions that are drawn with replacement, each with a number of its own."""
    chance = Random(seed)
    by_question: dict[int, list[StateReply]] = defaultdict(list)
    for reply in pool:
        by_question[reply.seed].append(reply)
    drawn = chance.choices(sorted(by_question), k=count)
    return [
        change(replace(reply, seed=n), chance)
        for n, name in enumerate(drawn)
        for reply in by_question[name]
    ]


def add_noise(reply: StateReply, chance: Random) -> StateReply:
    """Move each log-probability."""
    moved = [
        {token: value + chance.gauss(0, SPREAD) for token, value in logprob.items()}
        for logprob in reply.logprobs
    ]
    return replace(reply, logprobs=tuple(moved))


def lose(reply: StateReply, chance: Random) -> StateReply:
    """Let some requests fail."""
    return replace(reply, failure="temporary") if chance.random() < FAILING else reply


def keep(reply: StateReply, chance: Random) -> StateReply:
    """Return the reply."""
    return reply


def exchange(
    replies: Sequence[StateReply], is_exact: bool, chance: Random
) -> list[StateReply]:
    """Let the answers to a question change states at random, except the reference."""
    groups: dict[Any, list[StateReply]] = defaultdict(list)
    for reply in replies:
        groups[reply.seed, (reply.copy or reply.state) if is_exact else ""].append(
            reply
        )
    mixed = []
    for group in groups.values():
        others = [member for member in group if member.state != COLD]
        mixed += [member for member in group if member.state == COLD]
        for reply, other in zip(
            others, chance.sample(others, len(others)), strict=True
        ):
            mixed.append(replace(other, state=reply.state, copy=reply.copy))
    return mixed


def count_cache(
    pools: Mapping[str, Sequence[StateReply]], seeds: int, is_exact: bool
) -> None:
    """Print how often `cache-check` finds each fault, and names its state."""
    tie = TIE if is_exact else None  # the command's own
    each_question = sum(
        STATES[state].requests for state, _ in list_copies(CACHE_STATES, is_exact)
    )
    questions = len({reply.seed for reply in pools[""]})
    found_cold = fmean(hit for reply in pools[""] for hit in reply.hits)
    print(
        f"{'same prompts' if is_exact else 'copies'}: {questions} questions; {found_cold:.0%} of the values are found"
    )
    sound = {(reply.state, reply.copy, reply.seed): reply for reply in pools[""]}
    # Draws from answers without a fault would only repeat how far their states differ by chance.
    cells = judge(pools[""], tie)
    noted = [cell.state for cell in find_small(pools[""], cells)]
    for cell in cells:
        print(
            f"{cell.state} without a fault: two cold answers differ by {cell.noise:.4f}, this one by {cell.gap:+.4f}"
            f" more (median); p = {cell.p_value:.3f}{', in the note' if cell.state in noted else ''}"
        )
    for fault in filter(None, CACHE_FAULTS):
        own = {
            (reply.state, reply.copy, reply.seed): reply
            for reply in pools[fault]
            if reply.state not in (COLD, CONTROL)
        }
        pool = list({**sound, **own}.values())
        states = {key[0] for key in own}
        for size in QUESTIONS_OF_CHECKS:
            drawn = [draw_replies(pool, size, seed, keep) for seed in range(seeds)]
            checks = [judge(replies, tie) for replies in drawn]
            differing = [[cell for cell in check if cell.differs] for check in checks]
            small = [
                find_small(replies, check)
                for replies, check in zip(drawn, checks, strict=True)
            ]
            print(
                f"{fault:12} {size * each_question:4} requests: found {count_named(differing, states)}, told below the tie"
                f" {count_named(small, states)}",
                flush=True,
            )
        apart = [distance(reply, sound[key]) for key, reply in own.items()]
        changes = fmean(gap > EXACT_TIE for gap in apart)
        ideal = next(
            (n for n in range(1, 100) if (1 - changes) ** n <= 1 - SETTLED / 100), None
        )
        print(
            f"{fault:12} moves answers by {fmean(apart):.4f}; an ideal test asks {ideal} questions",
            flush=True,
        )
    pairs = {"equal": keep, "noise": add_noise, "failures": lose, FLAKY: keep}
    for name, change in pairs.items():
        if name == FLAKY and name not in pools:
            continue
        source = pools.get(name, pools[""])
        alarms = 0
        told = 0
        for seed in range(seeds):
            chance = Random(seed)
            replies = draw_replies(source, 20, seed, keep)
            if name != FLAKY:
                replies = [
                    change(reply, chance)
                    for reply in exchange(replies, is_exact, chance)
                ]
            check = judge(replies, tie)
            alarms = alarms + any(cell.differs for cell in check)
            told = told + bool(find_small(replies, check))
        failed = fmean(bool(reply.failure) for reply in source)
        print(
            f"{name}: alarms {alarms}, told below the tie {told}; {failed:.0%} of the requests failed",
            flush=True,
        )


def count_named(checks: Sequence[Sequence[StateCell]], states: set[str]) -> str:
    """Say in how many checks a state was named, and in how many the most certain one is one of some states."""
    first = [min(cells, key=lambda cell: cell.p_value) for cells in checks if cells]
    return (
        f"{len(first):3} (state right {sum(cell.state in states for cell in first):3})"
    )
