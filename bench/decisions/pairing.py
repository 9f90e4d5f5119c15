"""Simulates certificates of models that are reliable: a question is more or less always right or always wrong.

python -m bench.decisions pairing --rounds 4000

An answer is decided by its question with the probability `pairing`, and otherwise by chance. A model that loses 20
points at the claim has lost them in one of three ways (`Way`). "Before" is the rule in which each question had a bound
of its own, so that the stake depended on the question that was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from itertools import product
from math import inf, sqrt
from statistics import fmean
from typing import NamedTuple, Protocol

import numpy as np
from bench.decisions.certify import DESIGN, SHORTEST
from bench.decisions.figures import Figure, clustered_figure
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.search import (
    KIND_SHARE,
    SEEDS,
    Design,
    KindAnswers,
    LengthTest,
    Search,
    find_shifts,
)
from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.sequential import DeadlineTest, collect_outcomes

PAIRINGS = (0.5, 0.0, 1.0, 0.9)
SCORES = (0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

SHORT_SCORES = (0.5, 0.7, 0.9)
"""Scores at 4k of the models with a claim of 128k."""

CERTIFICATES = {1.0: 4, 0.9: 16, 0.5: 34, 0.0: 34}
"""For each pairing, the certificates for the same answers at the shortest length. Planning the tests takes most of the
time, and the more reliable a model is, the more these certificates are alike."""

EACH_BEFORE = 3
"""Each which draw of these answers is also decided with a bound for each question."""

QUESTIONS = SEEDS * len(DESIGN.kinds)

SHORT_DESIGN = replace(DESIGN, claim=128 * 1024)

Bools = NDArray[np.bool_]


class Way(Enum):
    """Which questions are wrong at the claim."""

    ANY = "any of those that were right"
    HARDEST = "the hardest of those that were right"
    OTHERS = "others, whatever was right before"
    NO_LOSS = "the same"
    NO_LOSS_OTHERS = "others, with the same score"

    @property
    def is_loss(self) -> bool:
        """Whether 20 points are lost."""
        return self not in (Way.NO_LOSS, Way.NO_LOSS_OTHERS)


WAYS_BY_QUESTION = (Way.ANY, Way.HARDEST, Way.NO_LOSS)
"""What is also decided with a bound for each question."""

LOW_SCORES = (0.45, 0.5)
"""The scores of models that were measured partly by luck. Only they are simulated with other right questions."""


class Rule(Protocol):
    """The two tests of a certificate: the mean loss is less than allowed, and there is a loss."""

    starts: tuple[float, float]
    """The shares of the goal before the first answer."""

    def next_shares(
        self, side: int, shares: Floats, number: int, is_right: Bools
    ) -> Floats:
        """Return the shares of one of the tests after the answers to a question.

        Args:
            side: which test, 0 or 1.
            shares: shape (certificates,).
            number: the place of the question in the order.
            is_right: shape (certificates,).
        """


class RuleNow:
    """The tests of the command."""

    def __init__(self, search: Search):
        self._test = search.tests[search.design.claim]
        self._order = search.order
        above, below = self._test.tests
        self.starts = (above.share, below.share)

    def next_shares(
        self, side: int, shares: Floats, number: int, is_right: Bools
    ) -> Floats:
        """Return the shares of one of the tests after the answers to a question."""
        kind, seed = self._order[number]
        scores: Floats = is_right.astype(float)
        values = self._test.values(scores, kind.kind, seed)
        test = self._test.tests[side]
        return np.asarray(test.next_shares(shares, number, values[side]))


class RuleByQuestion:
    """Tests in which the least value of the question that is drawn limits the stake."""

    def __init__(self, search: Search):
        self._kinds = search.measurable_kinds
        self._order = search.order
        self._loss = search.design.loss
        self._shifts = find_shifts(self._kinds)
        test = search.tests[search.design.claim]
        self._tests = self._plan(test, search.design.error)
        self.starts = (self._tests[0].share, self._tests[1].share)

    def _plan(
        self, test: LengthTest, error: float
    ) -> tuple[DeadlineTest, DeadlineTest]:
        """Plan with the least value of a question with the mean score, and with independent answers."""
        expected: list[float] = []
        scores: list[float] = []
        weights: list[float] = []
        noises = []
        for kind in self._kinds:
            own_expected, own_scores = self._list_answers(kind)
            expected += own_expected
            scores += own_scores
            weights += [1 / len(own_scores)] * len(own_scores)
            errors = np.subtract(own_expected, own_scores)
            noises.append(float(np.var(errors)) / len(errors))
        all_expected = np.array(expected)
        all_scores = np.array(scores)
        all_weights = np.array(weights)
        mean_score = float(np.average(all_scores, weights=all_weights))
        lost = min(self._loss / max(mean_score, self._loss), 1.0)
        thinned = collect_outcomes(
            np.concatenate([all_expected - all_scores, all_expected]),
            np.concatenate([(1 - lost) * all_weights, lost * all_weights]),
        )
        kept = collect_outcomes(all_scores - all_expected + self._loss, all_weights)
        mean = float(np.average(all_expected, weights=all_weights))
        least_variance = min(
            float(chances @ values**2 - (chances @ values) ** 2)
            for values, chances in (map(np.array, kept), map(np.array, thinned))
        )
        noise = fmean(noises) / len(self._kinds)
        ratio = test.most * noise / max(least_variance, 1e-9)
        errors_of_tests = (error, error * (1 - KIND_SHARE))
        above_error, below_error = (
            float(ndtr(ndtri(part) * sqrt(1 + ratio))) for part in errors_of_tests
        )
        return (
            DeadlineTest(kept, self._loss - mean, test.most, above_error),
            DeadlineTest(thinned, mean - 1, test.most, below_error),
        )

    def _list_answers(self, kind: KindAnswers) -> tuple[list[float], list[float]]:
        """Return the expected score and the score of each answer at the shortest length."""
        expected = []
        scores = []
        for answered in kind.base.answered:
            own = kind.expect(answered.block.seed) + self._shifts[kind.kind]
            for reply in answered.replies:
                if reply.score is not None:
                    expected.append(own)
                    scores.append(reply.score)
        return expected, scores

    def next_shares(
        self, side: int, shares: Floats, number: int, is_right: Bools
    ) -> Floats:
        """Return the shares of one of the tests after the answers to a question."""
        kind, seed = self._order[number]
        expected = kind.expect(seed) + self._shifts[kind.kind]
        scores = is_right.astype(float)
        if side == 0:
            values = scores - expected + self._loss
            least = self._loss - expected
        else:
            values = expected - scores
            least = expected - 1
        # A value of 1 adds the stake.
        stakes = self._tests[side].next_shares(shares, number, 1.0) - shares
        largest = shares / -least if least < 0 else np.full(len(shares), inf)
        wealth = shares + np.minimum(stakes, largest) * values
        return np.asarray(np.maximum(0.0, wealth))


class Rates(NamedTuple):
    """Shares of the certificates for the same answers at the shortest length."""

    effective: float
    refused: float


RatesOfWays = dict[Way, list[Rates]]
"""The rates for each way, one for each draw of the answers at the shortest length."""


class Simulated(NamedTuple):
    """The rates by the rule of the command, and with a bound for each question."""

    now: RatesOfWays
    by_question: RatesOfWays


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield a row for each pairing and score: how often a model that loses 20 points is called effective."""
    for pairing, score in product(PAIRINGS, SCORES):
        simulated = simulate(pairing, score, rounds, seed)
        yield describe(f"pairing {pairing:g}, score {score:g}", pairing, simulated)
    for pairing, score in product((1.0, 0.0), SHORT_SCORES):
        simulated = simulate(pairing, score, rounds, seed, SHORT_DESIGN)
        case = f"a claim of 128k, pairing {pairing:g}, score {score:g}"
        yield describe(case, pairing, simulated)


def describe(case: str, pairing: float, simulated: Simulated) -> Figure:
    """Return how often a model that loses any 20 points is called effective, with all else beside it."""
    now, by_question = simulated
    notes = [
        f"with a bound for each question {_format(by_question[Way.ANY])}",
        f"loses the hardest: {_format(now[Way.HARDEST])}"
        f" ({_format(by_question[Way.HARDEST])})",
        f"loses others: {_format(now[Way.OTHERS])}",
        f"no loss, called effective: {_format(now[Way.NO_LOSS])}"
        f" ({_format(by_question[Way.NO_LOSS])})",
        f"refused: {_format(now[Way.NO_LOSS], is_refused=True)}",
    ]
    if Way.NO_LOSS_OTHERS in now:
        refused = _format(now[Way.NO_LOSS_OTHERS], is_refused=True)
        notes.append(f"no loss, but others are right, refused: {refused}")
    return clustered_figure(
        case,
        "called effective: at most 5 %",
        [rates.effective for rates in now[Way.ANY]],
        CERTIFICATES[pairing],
        "; ".join(notes),
    )


def _format(rates: list[Rates], is_refused: bool = False) -> str:
    shares = [rate.refused if is_refused else rate.effective for rate in rates]
    estimate = clustered_figure("", "", shares, 1)
    return f"{100 * estimate.share:.1f} ± {100 * estimate.error:.1f} %"


def simulate(
    pairing: float, score: float, rounds: int, seed: int, design: Design = DESIGN
) -> Simulated:
    """Return the rates of certificates, with new answers at the shortest length for each seed."""
    count = CERTIFICATES[pairing]
    ways = tuple(
        way for way in Way if way is not Way.NO_LOSS_OTHERS or score in LOW_SCORES
    )
    simulated = Simulated(
        now={way: [] for way in ways}, by_question={way: [] for way in WAYS_BY_QUESTION}
    )
    # These draws are needed at least twice, for their error.
    for number in range(seed, seed + max(rounds // count, 2 * EACH_BEFORE)):
        random = np.random.default_rng(number)
        levels = random.random(QUESTIONS)
        own_design = replace(design, seed=QUESTIONS * number)
        search = _answer_base(pairing, score, levels, own_design, random)
        answers = {}
        if search.tests:
            for way in ways:
                answers[way] = _answer_claim(
                    search, pairing, score, way, levels, random
                )
        _add_rates(simulated.now, RuleNow, search, answers)
        if (number - seed) % EACH_BEFORE == 0:
            _add_rates(simulated.by_question, RuleByQuestion, search, answers)
    return simulated


def _add_rates(
    rates: RatesOfWays,
    make_rule: Callable[[Search], Rule],
    search: Search,
    answers: dict[Way, Bools],
) -> None:
    """Add the shares of certificates that are effective and refused, for each way.

    Args:
        answers: what `_answer_claim` returns for each way; none if no kind could be measured.
    """
    if not answers:
        for way_rates in rates.values():
            way_rates.append(Rates(0.0, 0.0))
        return
    # All ways at once, because each step costs much more than a certificate in it.
    columns = [answers[way] for way in rates]
    decisions = _decide(make_rule(search), np.concatenate(columns, axis=1))
    shares = decisions.reshape(2, len(rates), -1).mean(axis=2)
    for way_rates, effective, refused in zip(
        rates.values(), shares[0], shares[1], strict=True
    ):
        way_rates.append(Rates(float(effective), float(refused)))


def _answer_base(
    pairing: float,
    score: float,
    levels: Floats,
    design: Design,
    random: np.random.Generator,
) -> Search:
    """Return a search with all answers at the shortest length.

    Args:
        levels: shape (questions,): how hard each question is, 0 to 1. Those below the score are right.
    """
    search = Search(design)

    def reply(block: AskedBlock) -> list[KeptReply]:
        if not block.has_text:
            return [KeptReply(0.0)] * block.count
        own = levels[block.seed - search.design.seed]
        level = np.where(
            random.random(block.count) < pairing, own, random.random(block.count)
        )
        return [KeptReply(float(is_right)) for is_right in level < score]

    while (blocks := search.next_blocks()) and blocks[0].length == SHORTEST:
        for block in blocks:
            search.add(Answered(block, reply(block)))
    return search


def _answer_claim(
    search: Search,
    pairing: float,
    score: float,
    way: Way,
    levels: Floats,
    random: np.random.Generator,
) -> Bools:
    """Return the answers to the questions of the claim, shape (questions, certificates)."""
    count = CERTIFICATES[pairing]
    most = search.tests[search.design.claim].most
    questions = [seed - search.design.seed for _, seed in search.order[:most]]
    shape = (len(questions), count)
    own = levels[questions][:, None]
    if way in (Way.OTHERS, Way.NO_LOSS_OTHERS):
        own = random.random((QUESTIONS, count))[questions]
    level = np.where(random.random(shape) < pairing, own, random.random(shape))
    left = score - search.design.loss
    if way is Way.ANY:
        # A part of the right answers has become wrong.
        return np.asarray((level < score) & (random.random(shape) < left / score))
    return level < (left if way.is_loss else score)


def _decide(rule: Rule, is_right: Bools) -> Bools:
    """Return which certificates are effective, and which are refused, shape (2, certificates).

    Args:
        is_right: shape (questions, certificates), in the order of the questions.
    """
    count = is_right.shape[1]
    is_effective = np.zeros(count, bool)
    is_refused = np.zeros(count, bool)
    is_open = np.arange(count)
    above = np.full(count, rule.starts[0])
    below = np.full(count, rule.starts[1])
    for number, answers in enumerate(is_right):
        above = rule.next_shares(0, above, number, answers[is_open])
        below = rule.next_shares(1, below, number, answers[is_open])
        is_above = above >= 1 - 1e-9
        is_below = below >= 1 - 1e-9
        # If both decide at once, neither does.
        is_effective[is_open[is_above & ~is_below]] = True
        is_refused[is_open[is_below & ~is_above]] = True
        is_left = ~is_above & ~is_below
        is_open = is_open[is_left]
        above = above[is_left]
        below = below[is_left]
        if not len(is_open):
            break
    return np.stack([is_effective, is_refused])
