"""Counts how often `gate --logprobs` finds faults that depend on the length; a part of `bench.defects`."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from random import Random
from statistics import fmean
from typing import Any

from bench.defects.faults import FAILING, FLAKY, SHORT_TIMEOUT, SPREAD, LoopbackClient
from bench.defects.quantized import count_requests, find_by_scores
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import GeneratedOutput, Request, RequestResult
from tests.support.servers.real_cache import Build, Model, RealCachedServer
from tests.support.servers.real_proxy import NAME, FaultyProxy, Upstream

from helm_longctx.apps.gate.distributions import (
    ANSWERS,
    TEXTS,
    TINY,
    Asked,
    Compared,
    Point,
    Send,
    Way,
    compare,
    compare_texts,
)
from helm_longctx.apps.gate.divergences import (
    FIRST_LOOKS,
    NOISY,
    QUESTIONS_OF_ANY,
    count_twice,
    decide,
    find_differing_lengths,
)
from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.apis.echo import ECHO, find_span_tokens
from helm_longctx.models.apis.sending import Retries, Sender
from helm_longctx.models.endpoints.probe import ProbedEndpoint, make_client
from helm_longctx.models.results import add_facts, check_result
from helm_longctx.models.scoring import SpanRequest, distributions_of
from helm_longctx.results.statistics.noninferiority import Verdict
from helm_longctx.tasks.logprobs import Distribution

BEYOND = 180
"""Tokens from which faults show that depend on the length. Short questions have about 110 tokens, long ones 250."""

SIZES = {"short": 8, "long": 20}
"""Lines of the registers of short and of long questions."""

SIZES_OF_GATES = (4, QUESTIONS_OF_ANY, 12, 16, 24)
"""Questions of each length that are tried."""

MARGIN = 0.05
"""The command's own `--max-divergence`, in nats."""

GATE_FAULTS = {
    "4-bit cache beyond a length": Build(cache_bits=4, beyond=BEYOND),
    "8-bit cache beyond a length": Build(cache_bits=8, beyond=BEYOND),
    "positions times 1.5 beyond a length": Build(rope=1.5, beyond=BEYOND),
}

SMALL_MARGINS = {
    "4-bit cache beyond a length": 0.001,
    "8-bit cache beyond a length": 0.00001,
    "positions times 1.5 beyond a length": 0.01,
}
"""A margin for each fault that its divergence exceeds by far, in nats."""

NAMES = ("base", "candidate")


def make_question(size: str, number: int) -> Asked:
    """Return a question about a register of codes."""
    chance = Random(f"{size} {number}")
    rooms = chance.sample(range(10, 100), SIZES[size])
    codes = [str(chance.randint(100, 999)) for _ in rooms]
    lines = "\n".join(
        f"The code of room {room} is {code}."
        for room, code in zip(rooms, codes, strict=True)
    )
    asked_room = chance.randrange(len(rooms))
    room = rooms[asked_room]
    question = f"Question: What is the code of room {room}?"
    text = f"{lines}\n\n{question}\nAnswer: The code of room {room} is"
    return Asked({"short": 1, "long": 2}[size], text, codes[asked_room], str(number))


def with_parts(parts: Sequence[Sequence[Distribution]]) -> RequestResult:
    """Return the result of a request with distributions."""
    output = GeneratedOutput("", 0.0, [], {"reason": "endoftext"})
    distributions = tuple(tuple(part) for part in parts)
    return add_facts(
        RequestResult(True, [], [output], False), distributions=distributions
    )


class Arm:
    """An arm of the gate, which sends requests or computes their results."""

    way = TEXTS

    def __call__(self, request: Request) -> RequestResult:
        """Return the result of a request; raise a `FailureError` if there is none."""
        raise NotImplementedError

    def restart(self) -> None:
        """Begin again with the first reply to each request, if equal requests have replies of their own."""


class BuildArm(Arm):
    """An arm that reads given texts with a build in this process."""

    def __init__(self, model: Model, build: Build):
        self.model = model
        self.build = build

    def __call__(self, request: Request) -> RequestResult:
        """Return the distributions at the tokens of each part of a text."""
        scores = self.model.score(self.build, request.prompt, 0)
        rows = list(
            zip(
                *(
                    scores[name]
                    for name in ("tokens", "token_logprobs", "top_logprobs")
                ),
                strict=True,
            )
        )
        parts = find_span_tokens(scores["tokens"], len(request.prompt), request.spans)
        return with_parts(
            [[Distribution(*rows[number]) for number in part] for part in parts]
        )


class ReadingArm(Arm):
    """An arm that is a server which reads given texts. Its replies are recorded."""

    def __init__(self, model: Model, upstream: Upstream):
        self.model = model
        self.address = upstream.address
        self.client: Any = make_client(
            ProbedEndpoint(upstream.address, "openai", upstream.model, ("completions",))
        )
        self.client._way = ECHO  # the command's probe is short, so it does not reach a fault that begins at a length

    def __call__(self, request: Request) -> RequestResult:
        """Return the distributions at the tokens of each part of a text. The whole text is recorded."""
        name = json.dumps([self.address, request.random, request.prompt])
        replies = self.model.replies
        if name not in replies.found:
            result = check_result(
                self.client.make_request(
                    replace(request, spans=((0, len(request.prompt)),))
                )
            )
            replies.add(name, distributions_of(result)[0])
        rows = [
            Distribution("", 0.0, {}),
            *(Distribution(*values) for values in replies.found[name]),
        ]
        parts = find_span_tokens(
            [row.text for row in rows], len(request.prompt), request.spans
        )
        return with_parts([[rows[number] for number in part] for part in parts])


class AnsweringArm(Arm):
    """An arm that is a server which answers chats. Each reply is recorded, also those to equal chats."""

    way = ANSWERS

    def __init__(self, model: Model, upstream: Upstream):
        self.model = model
        self.upstream = upstream
        self.client = LoopbackClient(
            BlackHoleCacheConfig(), base_url="http://127.0.0.1:9/v1", model=NAME
        )
        self.client.chance = Random(0)

    def restart(self) -> None:
        """Begin again with the first reply to each chat."""
        self.client.server = FaultyProxy(RealCachedServer(self.model), self.upstream)

    def __call__(self, request: Request) -> RequestResult:
        """Return an answer with its distributions."""
        return check_result(self.client.make_request(request))


class FlakyArm(Arm):
    """An arm that is a server, with the command's own retries."""

    def __init__(self, address: str):
        client = make_client(ProbedEndpoint(address, "openai", NAME, ("chat",)))
        self.sender = Sender(client, Retries(tries=6, first_wait=0.01))

    def __call__(self, request: Request) -> RequestResult:
        """Return the result of a request, which is sent again if it fails."""
        return check_result(self.sender(request).result)


@contextmanager
def open_flaky_arm(model: Model, upstream: Upstream, seed: int) -> Iterator[FlakyArm]:
    """Yield an arm over HTTP whose server is slow and flaky, with the command's own retries."""
    os.environ["HELM_LONGCTX_TIMEOUT"] = str(SHORT_TIMEOUT)
    proxy = FaultyProxy(RealCachedServer(model), upstream, late=2 * SHORT_TIMEOUT)
    proxy.chance.seed(seed)
    with proxy.serve() as address:
        yield FlakyArm(address)


ORDER = ((0, False), (1, False), (1, True), (0, True))
"""The order of the readings of both arms, if each reads twice."""


def ask_arms(
    base: Send, candidate: Send, question: Asked, way: Way, reads_twice: bool = True
) -> list[Point]:
    """Return what a gate compares of a question. With texts nobody writes an answer: only the gold answer is read."""
    sides = (base, candidate)
    if way is TEXTS:
        order = ORDER if reads_twice else ORDER[:2]
        compared: Compared = compare_texts(question, {}, sides, NAMES, order)
        return compared.points
    return compare(
        question._replace(messages=()), sides, NAMES, way, reads_twice
    ).points


def compare_pair(base: Arm, candidate: Arm, pair: Sequence[Asked]) -> list[list[Point]]:
    """Return what is compared of a short question, which the base answers in both arms, and of a long one."""
    base.restart()
    candidate.restart()
    return [
        ask_arms(base, arm, question, base.way)
        for arm, question in zip((base, candidate), pair, strict=True)
    ]


def ask_pairs(questions: int) -> list[list[Asked]]:
    """Return a short and a long question for each number."""
    return [
        [make_question(size, number) for size in SIZES] for number in range(questions)
    ]


def score_question(arm: Arm, question: Asked) -> float:
    """Return whether each token of the gold answer is the most likely one."""
    text = f"{question.prompt} {question.gold}"
    request = SpanRequest(
        "", "", prompt=text, spans=((len(question.prompt), len(text)),), top=5
    )
    return float(
        all(token.text == token.best for token in distributions_of(arm(request))[0])
    )


def record_gate(base: Arm, candidates: Mapping[str, Arm], questions: int) -> None:
    """Ask all questions of each build."""
    start = time.time()
    for number, pair in enumerate(ask_pairs(questions)):
        for arm in (base, *candidates.values()):
            compare_pair(base, arm, pair)
        print(f"question {number}, {time.time() - start:.0f} s", flush=True)


def count_gate(
    base: Arm, candidates: Mapping[str, Arm], questions: int, seeds: int
) -> None:
    """Print how often `gate --logprobs` finds each fault, and names the length."""
    asked = ask_pairs(questions)
    way = base.way
    has_scores = way is TEXTS
    scores = (
        [[score_question(base, question) for question in pair] for pair in asked]
        if has_scores
        else []
    )
    if has_scores:
        print(
            f"{questions} questions; right answers {[f'{fmean(column):.0%}' for column in zip(*scores, strict=True)]}"
        )
    for name, arm in candidates.items():
        points = [compare_pair(base, arm, pair) for pair in asked]
        long = [fmean(point.divergence for point in pair[1]) for pair in points]
        noise = fmean(point.noise or 0.0 for pair in points for point in pair[1])
        print(
            f"{name}: mean divergence of long questions {fmean(long):.6f}, noise {noise:.6f};"
            f" {sum(value > TINY for value in long)} of {len(long)} long questions differ"
        )
        for size in SIZES_OF_GATES:
            drawn = [draw_points(points, size, seed) for seed in range(seeds)]
            more = way.count(is_twice=True) - way.count()
            once = 2 * size * way.count() + more * 2 * count_twice(2)
            twice = 2 * size * way.count(is_twice=True)
            margins = [MARGIN]
            if name in SMALL_MARGINS:
                margins.append(SMALL_MARGINS[name])
            for margin in margins:
                counts = count_found(map(read_some_twice, drawn), margin)
                print(f"  {once:3} requests, margin {margin:g}: {counts}")
            print(
                f"  {twice:3} requests, margin 0: {count_found(drawn, 0)}", flush=True
            )
        if has_scores:
            others = [[score_question(arm, pair[1])] for pair in asked]
            sides = [pair[1] for pair in scores], [value for (value,) in others]
            requests = count_requests(
                partial(find_by_scores, sides[0], sides[1]), 2, seeds
            )
            print(f"  by scores of the long questions: {requests} requests", flush=True)
    count_alarms(base, asked, seeds)


def draw_points(
    points: Sequence[Sequence[Sequence[Point]]], size: int, seed: int
) -> list[Point]:
    """Return what was compared of drawn questions, each with a number of its own."""
    drawn = Random(seed).choices(points, k=size)
    return [
        point._replace(group=str(n))
        for n, pair in enumerate(drawn)
        for points_of_question in pair
        for point in points_of_question
    ]


def read_some_twice(points: Sequence[Point]) -> list[Point]:
    """Leave out the noise of questions that the command asks once, unless the base is not deterministic."""
    if any((point.noise or 0) > NOISY * MARGIN for point in points):
        return list(points)
    return [
        point
        if int(point.group) < count_twice(2)
        else point._replace(
            noise=None, candidate_noise=None, noise_same=None, noise_loss=None
        )
        for point in points
    ]


def count_found(
    draws: Iterator[list[Point]] | Sequence[list[Point]], margin: float
) -> str:
    """Say in how many draws a candidate is worse, differs at all, and differs only at the longer length."""
    worse = differs = right = 0
    for points in draws:
        count = len({point.group for point in points})
        looks = (*(2 * size for size in FIRST_LOOKS if size < count), 2 * count)
        decision = decide(points, [], margin, looks)
        differing_lengths = find_differing_lengths(
            points, (), looks[-1:] if margin else looks
        )
        worse += decision.verdict is Verdict.WORSE
        differs = differs + bool(differing_lengths)
        right = right + (set(differing_lengths) == {2})
    return f"worse {worse:3}, differs {differs:3}, length right {right:3}"


class NoisyArm(Arm):
    """An arm each of whose readings has other log-probabilities, and some of whose requests fail.

    Args:
        arm: what it reads without noise.
        spread: standard deviation of the noise of log-probabilities, in nats.
        failing: share of requests that fail.
    """

    def __init__(self, arm: Arm, chance: Random, spread: float, failing: float):
        self.arm = arm
        self.chance = chance
        self.spread = spread
        self.failing = failing

    def restart(self) -> None:
        """Begin again, but not with the noise."""
        self.arm.restart()

    def __call__(self, request: Request) -> RequestResult:
        """Return the distributions with noise."""
        if self.chance.random() < self.failing:
            raise FailureError(Failure.TEMPORARY, "overloaded")
        result = self.arm(request)
        parts = distributions_of(result)
        return add_facts(
            result, distributions=tuple(tuple(map(self._move, part)) for part in parts)
        )

    def _move(self, distribution: Distribution) -> Distribution:
        tops = {
            text: value + self.chance.gauss(0, self.spread)
            for text, value in distribution.top.items()
        }
        total = max(sum(map(math.exp, tops.values())), 1.0)
        tops = {text: value - math.log(total) for text, value in tops.items()}
        return Distribution(
            distribution.text, tops.get(distribution.text, distribution.logprob), tops
        )


NOISE_OF_ARMS = 0.6
"""Noise with which readings of given texts differ by more than the gate accepts, in nats."""

SMALL = 0.001
"""Noise so small that the base reads only its first questions twice."""

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
        draws = []
        stops = 0
        for seed in range(seeds):
            rows, more = ask_pair(
                NoisyArm(base, Random(seed), spread, failing), asked, base.way, seed
            )
            draws.append(rows)
            stops += more
        print(f"{name}: {tell_alarms(draws)}; {stops / seeds:.1f} stops", flush=True)
    if isinstance(base, AnsweringArm):
        draws = []
        for seed in range(seeds):
            with open_flaky_arm(base.model, base.upstream, seed) as flaky:
                draws.append(ask_pair(flaky, asked, base.way, seed)[0])
        print(f"{FLAKY}: {tell_alarms(draws)}", flush=True)


def ask_pair(
    arm: Arm, asked: Sequence[Sequence[Asked]], way: Way, seed: int
) -> tuple[list[Point], int]:
    """Ask drawn questions in two arms of one build, all of them twice; return what was compared, and the stops."""
    rows: list[Point] = []
    stops = 0
    for number, pair in enumerate(Random(seed).choices(asked, k=QUESTIONS_OF_ANY)):
        arm.restart()
        for question in pair:
            points = None
            while (
                points is None
            ):  # a failure stops the command, and the user gives it again
                try:
                    points = ask_arms(arm, arm, question, way)
                except FailureError:
                    stops += 1
            rows += [point._replace(group=str(number)) for point in points]
    return rows, stops


def tell_alarms(draws: Sequence[list[Point]]) -> str:
    """Say how often a pair of one build is called worse."""
    blind = sum(
        decide([row._replace(noise=None) for row in rows], [], MARGIN).verdict
        is Verdict.WORSE
        for rows in draws
    )
    counts = count_found(map(read_some_twice, draws), MARGIN)
    return f"{counts}; margin 0: {count_found(draws, 0)}; worse {blind} if the noise is not subtracted"
