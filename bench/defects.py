"""Counts how often faults of serving in front of a real SmolLM2 are found, where, and with how many requests.

    python bench/defects.py record --part cache --keep PATH [--questions 20]
    python bench/defects.py count --part cache --keep PATH [--questions 20] [--seeds 100]
    python bench/defects.py record --part cache --keep PATH --server http://127.0.0.1:8080/v1=MODEL

`record` computes once what the model answers in each state of the cache and with each fault; it goes on from what is in
PATH. `count` draws questions with replacement for each seed, and lets the commands' own functions decide. Keys and
values, blocks, quantization and positions are real (`tests/support/servers/real_cache.py`). Answers to prompts that
only fill the cache are not written, because nobody compares them.

With `--server`, the model is that of a server that runs, such as llama.cpp's or `transformers serve`, and a proxy makes
the faults (`tests/support/servers/real_proxy.py`). `--other NAME ADDRESS=MODEL` names another build of the model on a
server of its own: the worse build behind a router, or the candidate of a gate.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import engines
from cache_check import InProcess
from gate_logprobs import count_requests, find_by_scores
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request
from tests.support.servers.real_cache import Build, Model, RealCachedServer, Replies, Run
from tests.support.servers.real_proxy import NAME, FaultyProxy, Upstream

from helm_longctx.apps.cache_check.prompts import Prompt, Question, lines_for
from helm_longctx.apps.cache_check.states import (
    ANSWERS,
    COLD,
    CONTROL,
    STATES,
    Reply,
    Server,
    ask_states,
    list_copies,
    plan_questions,
    read_replies,
)
from helm_longctx.apps.cache_check.verdict import TIE, Cell, distance, find_small, judge
from helm_longctx.apps.gate.distributions import (
    NOISY,
    QUESTIONS,
    READS,
    REQUESTS,
    TINY,
    TWICE,
    Asked,
    Point,
    compare,
    decide,
    find_differing_lengths,
)
from helm_longctx.config.shared import fill_registries
from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.apis.echo import find_span_tokens
from helm_longctx.models.apis.providers.openai import OpenAIClient
from helm_longctx.models.endpoints.probe import Endpoint, make_client
from helm_longctx.models.endpoints.stack import Stack
from helm_longctx.models.scoring import Distribution, SpanRequest
from helm_longctx.results.statistics.noninferiority import Verdict

LENGTH, ANSWER = 128, 24
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
        self.server, self.prepares, self.is_cold = server, False, False

    def connect_cold(self) -> object:
        """Return something that stands for a client whose requests do not use the cache."""
        return self

    def ask(self, prompt: Prompt, reply: Reply, client: object = None) -> Reply:
        """Return a reply with the answer."""
        self.prepares = STATES[reply.state].requests > 1 and not reply.before
        self.is_cold = client is self
        self.model: Any = _Never(self)
        return super().ask(prompt, reply, client)


class _Never:
    """A server in the place of the scripted one, none of whose requests fails."""

    fails, random = 0.0, Random(0)

    def __init__(self, asker: Asker):
        self._asker = asker

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        most = 0 if self._asker.prepares else ANSWER
        return self._asker.server.answer({**body, "max_tokens": most, "cache_prompt": not self._asker.is_cold})


class Plan(Model):
    """Notes what would be written about the current question, and writes nothing."""

    def __init__(self, model: Model):
        self.tokenizer, self.question = model.tokenizer, 0
        self.wanted: dict[str, tuple[int, Run]] = {}

    def write_all(self, build: Build, runs: Sequence[Run], most: int) -> list[dict[str, Any]]:
        """Note the runs."""
        if most:
            self.wanted.update({run.key: (self.question, run) for run in runs if run.key not in self.wanted})
        return [{"text": "", "content": []} for _ in runs]


def ask_question(server: RealCachedServer, number: int, states: Sequence[str], is_exact: bool = False) -> list[Reply]:
    """Ask a question in some states, cold ones past the cache if `is_exact`."""
    question = Question(number, lines_for(LENGTH))
    asker: Any = Asker(server)
    replies = [Reply(LENGTH, number, state, copy=copy) for state, copy in list_copies(states, is_exact)]
    return [STATES[each.state].ask(asker, question, each) for each in replies]


def ask_all(model: Model, questions: int, is_exact: bool) -> Iterator[tuple[str, Reply]]:
    """Yield the replies to each question with each fault."""
    for fault, states in CACHE_FAULTS.items():
        server = RealCachedServer(model, BASE, fault, CAPACITY)
        for number in range(questions):
            if isinstance(model, Plan):
                model.question = number
            yield from ((fault, reply) for reply in ask_question(server, number, states, is_exact))


def record_cache(model: Model, questions: int) -> None:
    """Write what is asked in all states, several answers at a time."""
    # The servers' caches hold names of keys and values, so one pass finds what is needed, and computes nothing.
    plan, start = Plan(model), time.time()
    for is_exact in (False, True):
        for _ in ask_all(plan, questions, is_exact):
            pass
    # What belongs to a question is computed together, because only some keys and values are kept.
    names = sorted(plan.wanted.values(), key=lambda each: each[0])
    runs = [run for _, run in names if f"write {ANSWER} {run.key}" not in model.replies.found]
    for first in range(0, len(runs), TOGETHER):
        model.write_all(BASE, runs[first : first + TOGETHER], ANSWER)
        print(f"{first + TOGETHER} of {len(runs)} answers, {time.time() - start:.0f} s", flush=True)


FLAKY = "slow and flaky"

TIMEOUT, LATE = 15, 20
"""Seconds after which a request has no answer, and after which a flaky proxy sends a late one."""


class PreparingServer(Server):
    """Asks for one token where a request only prepares the cache."""

    def ask(self, prompt: Prompt, reply: Reply, client: OpenAIClient | None = None) -> Reply:
        """Return a reply with the answer."""
        self.max_tokens = 1 if STATES[reply.state].requests > 1 and not reply.before else ANSWER
        return super().ask(prompt, reply, client)


def record_served_cache(model: Model, upstream: Upstream, questions: int, folder: Path) -> None:
    """Ask a server through a proxy, over HTTP, in all states and with each fault, as the command does."""
    os.environ["HELM_LONGCTX_TIMEOUT"] = str(TIMEOUT)
    proxy = FaultyProxy(RealCachedServer(model), upstream)
    with proxy.serve() as address, tempfile.TemporaryDirectory() as name:
        place = Path(name) / "prod_env"
        engines.add_server(place.parent, "bench/proxy", engines.Server(address, NAME, {}), "chat")
        fill_registries(place)
        for fault in (*CACHE_FAULTS, FLAKY):
            is_sound = fault in ("", FLAKY)
            proxy.late = LATE if fault == FLAKY else 0.0
            cold, warm = (COLD, CONTROL), CACHE_FAULTS.get(fault, CACHE_STATES[:-1])[2:]
            # A fault changes only the answers in its states; cold ones are those of the server without a fault.
            asked = {"": (*cold, *warm), COPIES: cold} if is_sound else {"": warm}
            for end, states in asked.items():
                proxy.cache = RealCachedServer(model, BASE, "" if is_sound else fault, CAPACITY)
                server = PreparingServer("bench/proxy", place, ANSWER, {} if end else {"cache_prompt": False})
                plan = plan_questions([LENGTH], questions, states, 0, is_exact=bool(server.cold_fields))
                ask_states(server, plan, folder / f"{fault or 'none'}{end}")


COPIES = ", copies"
"""The end of the name of a folder with cold answers to copies."""


def read_pools(folder: Path, is_exact: bool) -> dict[str, list[Reply]]:
    """Return the replies of a server with each fault."""
    pools: dict[str, list[Reply]] = {}
    for fault in (*CACHE_FAULTS, FLAKY):
        replies = read_replies(folder / (fault or "none") / ANSWERS)
        if fault != FLAKY:  # what failed was asked again
            replies = [each for each in replies if not each.failure]
        cold = read_replies(folder / f"{fault or 'none'}{COPIES}" / ANSWERS)
        pools[fault] = replies if is_exact else [*cold, *(each for each in replies if not each.copy)]
    return pools


BEYOND = 180
"""Tokens from which faults show that depend on the length. Short questions have about 110 tokens, long ones 250."""

SIZES = {"short": 8, "long": 20}
"""Lines of the registers of short and of long questions."""

GATE_FAULTS = {
    "4-bit cache beyond a length": Build(cache_bits=4, beyond=BEYOND),
    "8-bit cache beyond a length": Build(cache_bits=8, beyond=BEYOND),
    "positions times 1.5 beyond a length": Build(rope=1.5, beyond=BEYOND),
}
WORSE = Build(weight_bits=5)


class Arm:
    """An arm of a gate that reads given texts.

    Args:
        salt: number of the repetition, for builds that are noisy.
    """

    def __init__(self, model: Model, build: Build, salt: int = 0):
        self.model, self.build, self.salt = model, build, salt

    def read_distributions(self, request: SpanRequest) -> list[list[Distribution]]:
        """Return the distributions at the tokens of each part of a text."""
        found = self.model.score(self.build, request.prompt, self.salt)
        rows = list(zip(*(found[name] for name in ("tokens", "token_logprobs", "top_logprobs")), strict=True))
        parts = find_span_tokens(found["tokens"], len(request.prompt), request.spans)
        return [[Distribution(*rows[number]) for number in part] for part in parts]


def make_question(size: str, number: int) -> Asked:
    """Return a question about a register of codes."""
    chance = Random(f"{size} {number}")
    rooms = chance.sample(range(10, 100), SIZES[size])
    codes = [str(chance.randint(100, 999)) for _ in rooms]
    lines = "\n".join(f"The code of room {room} is {code}." for room, code in zip(rooms, codes, strict=True))
    place = chance.randrange(len(rooms))
    text = f"{lines}\n\nQuestion: What is the code of room {rooms[place]}?\nAnswer: The code of room {rooms[place]} is"
    return Asked({"short": 1, "long": 2}[size], text, codes[place], str(number))


class ServedArm(Arm):
    """An arm that is a server, whose replies are recorded."""

    def __init__(self, model: Model, upstream: Upstream):
        self.model, self.address = model, upstream.address
        self.client: Any = make_client(Endpoint(upstream.address, "openai", upstream.model, ("completions",)))

    def read_distributions(self, request: SpanRequest) -> list[list[Distribution]]:
        """Return the distributions at the tokens of each part of a text. The whole text is recorded."""
        name, replies = json.dumps([self.address, request.prompt]), self.model.replies
        if name not in replies.found:
            whole = replace(request, spans=((0, len(request.prompt)),))
            replies.add(name, self.client.read_distributions(whole)[0])
        rows = [Distribution("", 0.0, {}), *(Distribution(*each) for each in replies.found[name])]
        parts = find_span_tokens([each.text for each in rows], len(request.prompt), request.spans)
        return [[rows[number] for number in part] for part in parts]


def compare_arms(base: Arm, candidate: Arm, question: Asked) -> list[Point]:
    """Return what a gate compares of a question. The base writes no answer, so only the gold answer is read."""
    return list(compare(question, "", (base, candidate), ("base", "candidate"), reads_twice=False))


def record_gate(base: Arm, candidates: Mapping[str, Arm], questions: int) -> None:
    """Read all questions with each build."""
    start = time.time()
    for number in range(questions):
        for question in (make_question(size, number) for size in SIZES):
            for arm in (base, *candidates.values()):
                compare_arms(base, arm, question)
                score_question(arm, question)
        print(f"question {number}, {time.time() - start:.0f} s", flush=True)


QUESTIONS_OF_CHECKS = (10, 20)
"""Questions of a check that are tried."""

SETTLED = 95
"""Seeds of 100 that must find a fault."""

SPREAD = 0.05
"""Standard deviation of the noise that is added to log-probabilities, in nats."""

NOISE_OF_ARMS = 0.6
"""The same for readings of given texts, which then differ by more than the gate accepts."""

FAILING = 0.1
"""Share of requests that fail."""


def draw_replies(pool: Sequence[Reply], count: int, seed: int, change: Callable[[Reply, Random], Reply]) -> list[Reply]:
    """Return replies to questions that are drawn with replacement, each with a number of its own."""
    chance = Random(seed)
    by_question: dict[int, list[Reply]] = defaultdict(list)
    for reply in pool:
        by_question[reply.seed].append(reply)
    drawn = chance.choices(sorted(by_question), k=count)
    return [change(replace(each, seed=n), chance) for n, name in enumerate(drawn) for each in by_question[name]]


def add_noise(reply: Reply, chance: Random) -> Reply:
    """Move each log-probability."""
    moved = [{token: value + chance.gauss(0, SPREAD) for token, value in each.items()} for each in reply.logprobs]
    return replace(reply, logprobs=tuple(moved))


def lose(reply: Reply, chance: Random) -> Reply:
    """Let some requests fail."""
    return replace(reply, failure="temporary") if chance.random() < FAILING else reply


def keep(reply: Reply, chance: Random) -> Reply:
    """Return the reply."""
    return reply


AS_ASKED = "no fault"
"""The answers of a server without a fault as they are: what it reads from its cache, it has rounded in another way."""


def exchange(replies: Sequence[Reply], is_exact: bool, chance: Random) -> list[Reply]:
    """Let the answers to a question change states at random, except the reference."""
    groups: dict[Any, list[Reply]] = defaultdict(list)
    for reply in replies:
        groups[reply.seed, (reply.copy or reply.state) if is_exact else ""].append(reply)
    mixed = []
    for group in groups.values():
        others = [each for each in group if each.state != COLD]
        mixed += [each for each in group if each.state == COLD]
        for reply, other in zip(others, chance.sample(others, len(others)), strict=True):
            mixed.append(replace(other, state=reply.state, copy=reply.copy))
    return mixed


def count_cache(pools: Mapping[str, Sequence[Reply]], seeds: int, is_exact: bool) -> None:
    """Print how often `cache-check` finds each fault, and names its state."""
    tie = TIE if is_exact else None  # the command's own
    each_question = sum(STATES[state].requests for state, _ in list_copies(CACHE_STATES, is_exact))
    questions, found_cold = (
        len({each.seed for each in pools[""]}),
        fmean(value for each in pools[""] for value in each.found),
    )
    print(
        f"{'same prompts' if is_exact else 'copies'}: {questions} questions; {found_cold:.0%} of the values are found"
    )
    sound = {(each.state, each.copy, each.seed): each for each in pools[""]}
    for cell in judge(pools[""], tie):
        print(f"{cell.state}: two cold answers differ by {cell.noise:.4f}, this one by {cell.gap:+.4f} more (median)")
    for fault in filter(None, CACHE_FAULTS):
        own = {(each.state, each.copy, each.seed): each for each in pools[fault] if each.state not in (COLD, CONTROL)}
        pool, states = list({**sound, **own}.values()), {key[0] for key in own}
        for size in QUESTIONS_OF_CHECKS:
            drawn = [draw_replies(pool, size, seed, keep) for seed in range(seeds)]
            checks = [judge(replies, tie) for replies in drawn]
            cells = [[each for each in check if each.differs] for check in checks]
            small = [find_small(replies, check) for replies, check in zip(drawn, checks, strict=True)]
            print(
                f"{fault:12} {size * each_question:4} requests: found {count_named(cells, states)}, told below the tie"
                f" {count_named(small, states)}",
                flush=True,
            )
        apart = [distance(each, sound[key]) for key, each in own.items()]
        changes = fmean(each > EXACT_TIE for each in apart)
        ideal = next((n for n in range(1, 100) if (1 - changes) ** n <= 1 - SETTLED / 100), None)
        print(f"{fault:12} moves answers by {fmean(apart):.4f}; an ideal test asks {ideal} questions", flush=True)
    pairs = {AS_ASKED: keep, "equal": keep, "noise": add_noise, "failures": lose, FLAKY: keep}
    for name, change in pairs.items():
        if name == FLAKY and name not in pools:
            continue
        source = pools.get(name, pools[""])
        alarms, told = 0, 0
        for seed in range(seeds):
            chance = Random(seed)
            replies = draw_replies(source, 20, seed, keep)
            if name not in (AS_ASKED, FLAKY):
                replies = [change(each, chance) for each in exchange(replies, is_exact, chance)]
            check = judge(replies, tie)
            alarms, told = alarms + any(cell.differs for cell in check), told + bool(find_small(replies, check))
        failed = fmean(bool(each.failure) for each in source)
        print(f"{name}: alarms {alarms}, told below the tie {told}; {failed:.0%} of the requests failed", flush=True)


def count_named(checks: Sequence[Sequence[Cell]], states: set[str]) -> str:
    """Say in how many checks a state was named, and in how many the most certain one is one of some states."""
    first = [min(cells, key=lambda each: each.p_value) for cells in checks if cells]
    return f"{len(first):3} (state right {sum(cell.state in states for cell in first):3})"


SIZES_OF_GATES = (4, QUESTIONS, 12, 16, 24)
"""Questions of each length that are tried."""

MARGIN = 0.05
"""The command's own `--max-divergence`, in nats."""


def score_question(arm: Arm, question: Asked) -> float:
    """Return whether each token of the gold answer is the most likely one."""
    text = f"{question.prompt} {question.gold}"
    span = (len(question.prompt), len(text))
    (found,) = arm.read_distributions(SpanRequest("", "", prompt=text, spans=(span,), top=5))
    return float(all(each.text == each.best for each in found))


def count_gate(base: Arm, candidates: Mapping[str, Arm], questions: int, seeds: int) -> None:
    """Print how often `gate --logprobs` finds each fault, and names the length."""
    asked = [[make_question(size, number) for size in SIZES] for number in range(questions)]
    base_scores = [[score_question(base, each) for each in pair] for pair in asked]
    print(
        f"{questions} questions; right answers {[f'{fmean(column):.0%}' for column in zip(*base_scores, strict=True)]}"
    )
    for name, arm in candidates.items():
        points = [[compare_arms(base, arm, each) for each in pair] for pair in asked]
        long = [[fmean(point.divergence for point in pair[1])] for pair in points]
        scores = [[score_question(arm, each) for each in pair] for pair in asked]
        print(
            f"{name}: mean divergence of long questions {fmean(value for (value,) in long):.6f}, largest of short ones"
            f" {max(point.divergence for pair in points for point in pair[0]):.6f}, {sum(v > TINY for (v,) in long)}"
            f" of {len(long)} long questions differ; right"
            f" {[f'{fmean(column):.0%}' for column in zip(*scores, strict=True)]}"
        )
        for size in SIZES_OF_GATES:
            results = [judge_gate(draw_points(points, size, seed)) for seed in range(seeds)]
            worse, differs, right = (sum(column) for column in zip(*results, strict=True))
            requests = 2 * size * REQUESTS + READS * TWICE
            print(
                f"  {requests:3} requests: worse {worse:3}, differs {differs:3}, length right {right:3}",
                flush=True,
            )
        flat = [[value for pair in side for value in pair] for side in (base_scores, scores)]
        print(
            f"  by scores: {count_requests(partial(find_by_scores, flat[0], flat[1]), 2, seeds)} requests", flush=True
        )
    count_alarms(base, asked, seeds)


def draw_points(points: Sequence[Sequence[Sequence[Point]]], size: int, seed: int) -> list[Point]:
    """Return what was compared of drawn questions, each with a number of its own."""
    drawn = Random(seed).choices(points, k=size)
    return [point._replace(group=str(n)) for n, pair in enumerate(drawn) for each in pair for point in each]


def judge_gate(points: Sequence[Point]) -> tuple[bool, bool, bool]:
    """Return whether a candidate is worse, whether it differs at all, and whether only at the longer length."""
    found = find_differing_lengths(points)
    return decide(points, MARGIN)[1] is Verdict.WORSE, bool(found), set(found) == {2}


class NoisyArm:
    """An arm each of whose readings has other log-probabilities, and some of whose requests fail.

    Args:
        arm: what it reads without noise.
        spread: standard deviation of the noise of log-probabilities, in nats.
        failing: share of requests that fail.
    """

    def __init__(self, arm: Arm, chance: Random, spread: float, failing: float):
        self.arm, self.chance, self.spread, self.failing = arm, chance, spread, failing

    def read_distributions(self, request: SpanRequest) -> list[list[Distribution]]:
        """Return the distributions at the tokens of each part of a text."""
        if self.chance.random() < self.failing:
            raise FailureError(Failure.TEMPORARY, "overloaded")
        return [[self._move(each) for each in part] for part in self.arm.read_distributions(request)]

    def _move(self, found: Distribution) -> Distribution:
        tops = {text: value + self.chance.gauss(0, self.spread) for text, value in found.top.items()}
        total = max(sum(map(math.exp, tops.values())), 1.0)
        tops = {text: value - math.log(total) for text, value in tops.items()}
        return Distribution(found.text, tops.get(found.text, found.logprob), tops)


SMALL = 0.001
"""The same so small that the base reads only its first questions twice."""

PAIRS: dict[str, tuple[float, float]] = {
    "equal": (0.0, 0.0),
    f"noise of {SMALL} nats": (SMALL, 0.0),
    f"noise of {SPREAD} nats": (SPREAD, 0.0),
    f"noise of {NOISE_OF_ARMS} nats": (NOISE_OF_ARMS, 0.0),
    "a tenth of the requests fails": (0.0, FAILING),
}
"""Noise and failures of pairs whose arms are the same build."""


def count_alarms(base: Arm, asked: Sequence[Sequence[Asked]], seeds: int) -> None:
    """Print how often a pair is called worse, or different, whose arms are the same build."""
    for name, (spread, failing) in PAIRS.items():
        alarms, differences, stops, blind = 0, 0, 0, 0
        for seed in range(seeds):
            arm = NoisyArm(base, Random(seed), spread, failing)
            rows: list[Point] = []
            for number, pair in enumerate(Random(seed).choices(asked, k=QUESTIONS)):
                for place, question in enumerate(pair):
                    # The command reads the questions of one length after those of the other. Here they alternate.
                    twice = 2 * number + place < TWICE or any((row.noise or 0) > NOISY * MARGIN for row in rows)
                    points = None
                    while points is None:  # a failure stops the command, and the user gives it again
                        try:
                            points = list(compare(question, "", (arm, arm), ("base", "candidate"), twice))
                        except FailureError:
                            stops += 1
                    rows += [point._replace(group=str(number)) for point in points]
            worse, differs, _ = judge_gate(rows)
            alarms, differences = alarms + worse, differences + differs
            blind += decide([row._replace(noise=None) for row in rows], MARGIN)[1] is Verdict.WORSE
        print(
            f"{name}: worse {alarms}, differs {differences}; worse {blind} if the noise is not subtracted;"
            f" {stops / seeds:.1f} stops",
            flush=True,
        )


class StackClient(OpenAIClient):
    """Sends requests to a server in this process, some of which fail, and whose log-probabilities can have noise."""

    server: RealCachedServer | FaultyProxy
    chance: Random
    failing = spread = 0.0

    def _exchange(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        if self.chance.random() < self.failing:
            raise FailureError(Failure.TEMPORARY, "overloaded")
        reply: dict[str, Any] = json.loads(json.dumps(self.server.answer(body)))
        for token in (reply["choices"][0].get("logprobs") or {}).get("content", ()):
            for each in token["top_logprobs"]:
                each["logprob"] += self.chance.gauss(0, self.spread)
        return reply


def list_stack_faults(worse: Mapping[str, Build | Upstream]) -> dict[str, tuple[dict[str, Any], str]]:
    """Return for each fault the arguments of the server, and the text of the finding that names it.

    Args:
        worse: the builds that get each fifth request.
    """
    routers = {f"router, each fifth request to {name}": ({"worse": build}, "each 5th") for name, build in worse.items()}
    return {
        "middle dropped": ({"drops_middle": True}, "the server cuts prompts"),
        "template without the system turn": ({"drops_system": True}, "a system turn of about"),
        **routers,
        "none": ({}, ""),
        "none, a tenth of requests fails": ({"failing": FAILING}, ""),
        f"none, noise of {SPREAD} nats": ({"spread": SPREAD}, ""),
    }


def check_stack(
    model: Model, upstream: Upstream | None, arguments: Mapping[str, Any], seed: int
) -> tuple[list[str], int]:
    """Return what `doctor` finds broken, and the number of requests.

    Args:
        upstream: the server that answers; None for the model in this process.
    """
    given = dict(arguments)
    client = StackClient(BlackHoleCacheConfig(), base_url="http://127.0.0.1:9/v1", model=NAME)
    client.failing, client.spread = given.pop("failing", 0.0), given.pop("spread", 0.0)
    client.chance = Random(seed)
    if upstream:
        worse = given.pop("worse", None)
        client.server = FaultyProxy(RealCachedServer(model, **given), upstream, worse)
    else:
        client.server = RealCachedServer(model, **given)
    client.server.requests = seed  # the phase of a router, and the noise
    stack = Stack(Endpoint("http://127.0.0.1:9/v1", "openai", NAME, ("chat",), context=1024))
    stack.client = client
    findings = list(stack.find_faults())
    return [text for fine, text in findings if fine is False], client.server.requests - seed


def check_flaky_stack(model: Model, upstream: Upstream, seed: int) -> list[str]:
    """Return what `doctor` finds broken over HTTP, through a proxy without a fault that is slow and flaky."""
    os.environ["HELM_LONGCTX_TIMEOUT"] = str(SHORT_TIMEOUT)
    proxy = FaultyProxy(RealCachedServer(model), upstream, late=2 * SHORT_TIMEOUT)
    proxy.chance.seed(seed)
    with proxy.serve() as address:
        stack = Stack(Endpoint(address, "openai", NAME, ("chat",), context=1024))
        return [text for fine, text in stack.find_faults() if fine is False]


SHORT_TIMEOUT = 2
"""The same as `TIMEOUT` where most replies are recorded."""


def count_stack(model: Model, upstream: Upstream | None, worse: Mapping[str, Build | Upstream], seeds: int) -> None:
    """Print how often `doctor` finds each fault, and names it."""
    for name, (arguments, line) in list_stack_faults(worse).items():
        found = [check_stack(model, upstream, arguments, seed) for seed in range(seeds)]
        broken = sum(bool(lines) for lines, _ in found)
        right = sum(any(line in each for each in lines) for lines, _ in found) if line else 0
        print(
            f"{name:45} found {broken:3}, named right {right:3}, {fmean(n for _, n in found):.0f} requests", flush=True
        )
    if upstream:
        alarms = [check_flaky_stack(model, upstream, seed) for seed in range(seeds)]
        print(
            f"{FLAKY}: found {sum(map(bool, alarms))}: {sorted({text for each in alarms for text in each})}", flush=True
        )


def read_upstream(argument: str) -> Upstream:
    """Read `ADDRESS=MODEL;FIELDS` of the command line."""
    return Upstream(*engines.Server.read(argument))


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "count"))
    parser.add_argument("--part", choices=("cache", "gate", "stack"), required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--server", type=read_upstream, metavar="ADDRESS=MODEL;FIELDS")
    parser.add_argument("--other", nargs=2, action="append", default=[], metavar=("NAME", "ADDRESS=MODEL;FIELDS"))
    return parser.parse_args()


def main() -> None:
    """Record, or count."""
    options = read_options()
    records, upstream = options.action == "record", options.server
    others: dict[str, Any] = {name: read_upstream(argument) for name, argument in options.other}
    if options.part == "cache" and upstream:
        if records:
            record_served_cache(Model(), upstream, options.questions, options.keep)
        for is_exact in (False, True):
            count_cache(read_pools(options.keep, is_exact), options.seeds, is_exact)
        return
    model = Model(Replies(options.keep))
    if options.part == "cache" and records:
        record_cache(model, options.questions)
    elif options.part == "cache":
        for is_exact in (False, True):
            pools: dict[str, list[Reply]] = defaultdict(list)
            for fault, reply in ask_all(model, options.questions, is_exact):
                pools[fault].append(reply)
            count_cache(pools, options.seeds, is_exact)
    elif options.part == "gate":
        base = ServedArm(model, upstream) if upstream else Arm(model, BASE)
        candidates = (
            {name: ServedArm(model, each) for name, each in others.items()}
            if upstream
            else {name: Arm(model, build) for name, build in GATE_FAULTS.items()}
        )
        if records:
            record_gate(base, candidates, options.questions)
        else:
            count_gate(base, candidates, options.questions, options.seeds)
    else:
        worse = others if upstream else {"weights of 5 bits": WORSE}
        count_stack(model, upstream, worse, 5 if records else options.seeds)


if __name__ == "__main__":
    main()
