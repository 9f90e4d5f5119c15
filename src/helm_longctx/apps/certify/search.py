"""Decides whether a model loses over length, compared with itself at the shortest length, with few long prompts.

The same questions are asked at the shortest length, in several texts each, and then at the claim. A long prompt costs
as much as hundreds of short ones, so the short side is nearly free. At the claim the kinds are drawn at random, and
tests that hold whenever one looks decide about the mean loss over the kinds. Each kind also has tests of its own, which
find a kind that is lost. If the claim does not hold, the middle of the lengths that are still possible is tested, as in
a bisection, as long as the tokens last.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.results.statistics.intervals import (
    Floats,
    Interval,
    mean_interval,
)
from helm_longctx.results.statistics.power import variance_components
from helm_longctx.results.statistics.sequential import (
    DeadlineTest,
    Outcomes,
    ThresholdDecision,
    collect_outcomes,
    count_until_decision,
    decide,
    sequential_interval,
)

T = TypeVar("T", float, Floats)

NO_TEXT = 10
"""Number of questions without a text, for the floor of a kind."""

ABOVE_FLOOR = 0.2
"""What a kind that can be measured has at the shortest length, besides the loss that is allowed. A search for words
keeps up to 17 points in texts of 32k, for parts of answers. With less here, it could lose no more than is allowed."""

KIND_SHARE = 0.01
"""Part of the error with which the tests of single kinds may say that a kind is lost. The mean has the rest."""

_KIND_VARIANCE = 0.15
"""If the means of the kinds have less of the variance of scores, all kinds have one expected score. Right and wrong
answers then have two values, for which the bets are nearly the most powerful test of so many answers; with values of
their own for each kind, as many as 15 % more questions would be needed."""

_FEWEST = 20
"""A length below the claim is tested if the tokens are enough for so many questions."""

_MOST_SPARED = 3
"""Largest number of questions that are left out at the claim, to spare the tokens of further questions at the shortest
length. So a claim of 1m costs at most 60 million tokens, and short claims are still decided."""

_MOST_FAILED = 0.1
"""Above this share of requests without an answer at a length, it is not called effective, and a kind with more at the
shortest length is not measured."""

_FIRST = 6
"""With fewer questions at the shortest length no kind can be measured, as its interval is over questions."""

SEEDS = 200
"""Seeds of each kind: one of each question, and the last one for the questions without a text."""


@dataclass(frozen=True)
class Design:
    """What a certificate decides, and how certain it has to be.

    Args:
        claim: the claimed length in tokens.
        shortest: the length whose score the others are compared with.
        kinds: the names of the kinds.
        loss: the loss of score that an effective length stays below, 0 to 1.
        error: largest probability that the claim is called effective or not effective by mistake.
        most: largest number of questions at the claim. The tokens of so many are also the limit for all longer prompts.
        texts: number of texts at the shortest length in which each question is asked.
        seed: the first seed of the texts.
        each_kind: whether more questions are asked at an effective claim, until each kind is decided.
    """

    claim: int
    shortest: int
    kinds: tuple[str, ...]
    loss: float = 0.2
    error: float = 0.05
    most: int = 57
    texts: int = 13
    seed: int = 0
    each_kind: bool = False

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that can be asked: the shortest, its doubles below the claim, and the claim."""
        doubles = range(math.ceil(math.log2(self.claim / self.shortest)))
        return (*(self.shortest << power for power in doubles), self.claim)

    @property
    def first(self) -> int:
        """Number of questions of each kind that are asked at the shortest length before the kinds are chosen."""
        return min(max(math.ceil(self.most / len(self.kinds)), _FIRST), SEEDS - 1)

    def error_at(self, length: int) -> float:
        """Return the error of the decision about a length. The lengths below the claim share an error of their own."""
        below = math.ceil(math.log2(max(len(self.lengths) - 1, 2)))
        if length == self.claim:
            return self.error
        return self.error / below


@dataclass
class KindCell:
    """The answers of one kind at one length.

    Args:
        highest: the score above which the kind is effective for sure: the upper end of the interval at the shortest
            length, less the loss.
        lowest: the score below which the kind has lost for sure: the lower end of that interval.
        errors: the errors of the tests above the first and below the second.
    """

    length: int
    highest: float = 0.0
    lowest: float = 0.0
    errors: tuple[float, float] = (0.0, 0.0)
    answered: list[Answered] = field(default_factory=list)

    @property
    def replies(self) -> list[KeptReply]:
        """All replies, in the order in which they were asked for."""
        replies: list[KeptReply] = []
        for answered in self.answered:
            replies += answered.replies
        return replies

    @property
    def scores(self) -> list[float]:
        """The scores of the answers."""
        scores = []
        for reply in self.replies:
            if reply.score is not None:
                scores.append(reply.score)
        return scores

    @property
    def failure_count(self) -> int:
        """Number of requests without an answer, apart from refused prompts."""
        return sum(reply.is_failed for reply in self.replies)

    def scores_with(self, failure: float) -> list[float]:
        """Return the scores in the order of the questions, in which a request without an answer has a given score."""
        scores = []
        for reply in self.replies:
            scores.append(failure if reply.is_failed else reply.score)
        return [score for score in scores if score is not None]

    @property
    def is_refused(self) -> bool:
        """Whether the server refused a prompt because of its length."""
        return any(reply.refused for reply in self.replies)

    @property
    def decision(self) -> ThresholdDecision:
        """Whether the kind is effective at the length. A length that the server refuses is not."""
        if self.is_refused:
            return ThresholdDecision.BELOW
        if not all(self.errors):
            return ThresholdDecision.OPEN
        # Requests need not fail at random, so those that failed count against each decision.
        if (
            decide(self.scores_with(1.0), self.lowest, self.errors[1])
            is ThresholdDecision.BELOW
        ):
            return ThresholdDecision.BELOW
        lowest_scores = self.scores_with(0.0)
        is_above = (
            decide(lowest_scores, self.highest, self.errors[0])
            is ThresholdDecision.ABOVE
        )
        is_above = is_above and self.failure_count <= _MOST_FAILED * len(self.replies)
        if is_above:
            return ThresholdDecision.ABOVE
        return ThresholdDecision.OPEN

    @property
    def interval(self) -> Interval:
        """The mean score, with its interval at all sample sizes together."""
        return sequential_interval(self.scores)


def _find_decided(
    lengths: Mapping[int, KindCell] | Mapping[int, LengthTest],
    decision: ThresholdDecision,
) -> list[int]:
    """Return the lengths with a decision."""
    decided = []
    for length, test in lengths.items():
        if test.decision is decision:
            decided.append(length)
    return decided


class KindAnswers:
    """The answers of one kind.

    Attributes:
        base: the answers at the shortest length.
        without_text: the replies without a text.
        cells: the answers at other lengths, in the order in which they were tested.
    """

    def __init__(self, design: Design, kind: str):
        self.design = design
        self.kind = kind
        self.base = KindCell(design.shortest)
        self.without_text: list[Answered] = []
        self.cells: dict[int, KindCell] = {}

    def question(self, number: int) -> int:
        """Return the seed of a question."""
        return self.design.seed + SEEDS * self.design.kinds.index(self.kind) + number

    def block(self, length: int, seed: int) -> AskedBlock:
        """Return the block that asks one question at a length above the shortest."""
        return AskedBlock(kind=self.kind, length=length, seed=seed, count=1)

    def base_blocks(self, numbers: Sequence[int]) -> list[AskedBlock]:
        """Return the blocks that ask questions at the shortest length, each in several texts."""
        blocks = []
        for number in numbers:
            blocks.append(
                AskedBlock(
                    kind=self.kind,
                    length=self.design.shortest,
                    seed=self.question(number),
                    count=self.design.texts,
                    texts=self.design.texts,
                )
            )
        return blocks

    def _base_scores(self) -> tuple[list[float], list[int]]:
        """Return the scores at the shortest length, and the seed of the question of each."""
        scores = []
        seeds = []
        for answered in self.base.answered:
            for reply in answered.replies:
                if reply.score is not None:
                    scores.append(reply.score)
                    seeds.append(answered.block.seed)
        return scores, seeds

    def cell(self, length: int) -> KindCell:
        """Return the answers at a length above the shortest."""
        if length not in self.cells:
            error = self.design.error_at(length) / len(self.design.kinds)
            ends = self.base_interval
            self.cells[length] = KindCell(
                length=length,
                highest=ends.high - self.design.loss,
                lowest=ends.low,
                errors=(error, KIND_SHARE * error),
            )
        return self.cells[length]

    @cached_property
    def base_interval(self) -> Interval:
        """The score at the shortest length, with its interval over questions. Read it when all are answered."""
        scores, seeds = self._base_scores()
        if not scores:
            return Interval(
                mean=0.0,
                low=0.0,
                high=1.0,
                n=0,
            )
        interval = mean_interval(scores, seeds)
        # A test needs thresholds between 0 and 1, and few questions cannot show that a score is exactly 1.
        least = 1 / (len(scores) + 2)
        mean, low, high = (
            min(max(end, least), 1 - least)
            for end in (interval.mean, interval.low, interval.high)
        )
        return Interval(
            mean=mean,
            low=low,
            high=high,
            n=len(scores),
        )

    @cached_property
    def pairing(self) -> float:
        """How much of a question's difference from its kind's mean at the shortest length is not chance, 0 to 1."""
        scores, seeds = self._base_scores()
        parts = variance_components(scores, seeds)
        # Differences that chance explains are none: it explains this one in less than 0.1 % of cases. Real differences
        # that are smaller explain about a tenth of the variance at the claim.
        by_chance = (
            5
            * parts.within
            / self.design.texts
            * math.sqrt(2 / max(parts.groups - 1, 1))
        )
        whole = parts.between + parts.within / self.design.texts
        if not whole or not parts.between > by_chance:
            return 0.0
        return parts.between / whole

    def expect(self, seed: int, is_paired: bool = True) -> float:
        """Return the score of a question without a loss.

        Args:
            is_paired: whether the kind's mean is moved to the question's own mean at the shortest length.
        """
        mean = self.base_interval.mean
        if not is_paired or not self.pairing or seed not in self._question_means:
            return mean
        return mean + self.pairing * (self._question_means[seed] - mean)

    @cached_property
    def _question_means(self) -> dict[int, float]:
        """The mean score of each question at the shortest length, by seed. Read it when all are answered."""
        scores, seeds = self._base_scores()
        by_question: dict[int, list[float]] = defaultdict(list)
        for score, seed in zip(scores, seeds, strict=True):
            by_question[seed].append(score)
        means = {}
        for seed, values in by_question.items():
            means[seed] = fmean(values)
        return means

    @property
    def floor(self) -> float:
        """The score that needs no text: of the model without texts, or of a constant answer if that is higher."""
        guesses = KindCell(self.design.shortest, answered=self.without_text).scores
        return max(fmean(guesses) if guesses else 0.0, self.baselines.get("null", 0.0))

    @property
    def baselines(self) -> dict[str, float]:
        """The mean scores of the baselines at the shortest length, by name."""
        floors = []
        for reply in self.base.replies:
            if reply.floors:
                floors.append(reply.floors)
        if not floors:
            return {}
        baselines = {}
        for name in floors[0]:
            baselines[name] = fmean(floor[name] for floor in floors)
        return baselines

    @property
    def least(self) -> float:
        """The score above which a kind can be measured."""
        return self.floor + self.design.loss + ABOVE_FLOOR

    @property
    def is_measurable(self) -> bool:
        """Whether the score at the shortest length is so far above the floor that a loss can be seen."""
        interval = self.base_interval
        return (
            interval.n > 0
            and self.base.failure_count <= _MOST_FAILED * len(self.base.replies)
            and interval.mean > self.least
            and interval.low > self.floor + self.design.loss
        )

    @property
    def effective(self) -> int | None:
        """The largest length at which this kind is effective for sure, besides the shortest."""
        lengths = _find_decided(self.cells, ThresholdDecision.ABOVE)
        return max(lengths, default=None)

    @property
    def not_effective(self) -> int | None:
        """The smallest length at which this kind is lost for sure."""
        lengths = _find_decided(self.cells, ThresholdDecision.BELOW)
        return min(lengths, default=None)


class PairedAnswer(NamedTuple):
    """An answer at the shortest length.

    Args:
        expected: the expected score of the question.
        question: the question's seed. Its answers in several texts are not independent.
    """

    expected: float
    score: float
    question: int


class _Expectation:
    """The scores of questions without a loss, as the answers at the shortest length let one expect.

    Args:
        kinds: the kinds that can be measured.
        shifts: what is added to the expected scores of each kind.
        is_paired: whether a question is compared with itself, or with the mean of its kind.
    """

    def __init__(
        self,
        kinds: Sequence[KindAnswers],
        shifts: Mapping[str, float],
        is_paired: bool,
    ):
        self._kinds = {answers.kind: answers for answers in kinds}
        self._shifts = shifts
        self._is_paired = is_paired

    def score(self, kind: str, seed: int) -> float:
        """Return the expected score of a question."""
        return self._kinds[kind].expect(seed, self._is_paired) + self._shifts[kind]

    def answers_of(self, kind: KindAnswers) -> list[PairedAnswer]:
        """Return the answers of a kind at the shortest length."""
        answers = []
        for answered in kind.base.answered:
            seed = answered.block.seed
            expected = self.score(kind.kind, seed)
            for reply in answered.replies:
                if reply.score is not None:
                    answer = PairedAnswer(
                        expected=expected,
                        score=reply.score,
                        question=seed,
                    )
                    answers.append(answer)
        return answers


class LengthTest:
    """The tests of the mean loss over the kinds at one length.

    Args:
        kinds: the kinds that can be measured.
        most: largest number of questions.

    Attributes:
        losses: the loss of each question, in the order of the answers: the expected score less the score.
        asked: number of questions that were asked.
        failed: number of those without an answer, apart from refused prompts. The first test takes them for wrong
            answers, and the second one for right ones, because requests need not fail at random.
        tests: the tests whether the mean loss is less than allowed, and whether there is any.
    """

    def __init__(
        self,
        design: Design,
        length: int,
        kinds: Sequence[KindAnswers],
        most: int,
    ):
        self.length = length
        self.kinds = {answers.kind: answers for answers in kinds}
        self.most = most
        self.losses: list[float] = []
        self.asked = 0
        self.failed = 0
        self._loss = design.loss
        error = design.error_at(length)
        shifts = find_shifts(kinds)
        self._paired = _Expectation(kinds, shifts, is_paired=True)
        plans = [self._paired]
        if any(kind.pairing for kind in kinds):
            plans.append(_Expectation(kinds, shifts, is_paired=False))
        planned = []
        for expectation in plans:
            answers = []
            for kind in kinds:
                answers.append(expectation.answers_of(kind))
            planned.append(plan_tests(answers, design.loss, most, error))
        # Pairs have a smaller variance, but their bounds are wider. Each test uses what has the larger power. Only
        # answers at the shortest length choose, so the error stays.
        powers = np.array([[test.power for test in pair] for pair in planned])
        retention, loss = powers.argmax(axis=0)
        self._expectations = (plans[retention], plans[loss])
        self.tests = (planned[retention][0], planned[loss][1])
        self._is_refused = False
        self._next_count: int | None = None

    def add(
        self,
        reply: KeptReply,
        kind: str,
        seed: int,
    ) -> None:
        """Take the answer to a question."""
        self.asked += 1
        self._next_count = None
        self._is_refused |= reply.refused
        if reply.score is not None:
            self.losses.append(self._paired.score(kind, seed) - reply.score)
        elif reply.is_failed:
            self.failed += 1
        else:
            return
        above, _ = self.values(0.0 if reply.score is None else reply.score, kind, seed)
        _, below = self.values(1.0 if reply.score is None else reply.score, kind, seed)
        self.tests[0].add(above)
        self.tests[1].add(below)

    @property
    def has_too_many_failures(self) -> bool:
        """Whether so many requests failed that the length cannot be called effective."""
        return self.failed > _MOST_FAILED * self.asked

    def values(
        self,
        score: T,
        kind: str,
        seed: int,
    ) -> tuple[T, T]:
        """Return the value of a score, or of several scores, for each test."""
        above, below = (
            expectation.score(kind, seed) for expectation in self._expectations
        )
        return score - above + self._loss, below - score

    @property
    def decision(self) -> ThresholdDecision:
        """Whether the length is effective: above if the mean loss is less than allowed, and no kind is lost."""
        for kind in self.kinds.values():
            cell = kind.cells.get(self.length)
            if cell and cell.decision is ThresholdDecision.BELOW:
                return ThresholdDecision.BELOW
        if self._is_refused:
            return ThresholdDecision.BELOW
        above, below = self.tests
        # If both decide, the one that needed fewer answers was first.
        if below.is_above and (not above.is_above or below.count < above.count):
            return ThresholdDecision.BELOW
        is_above = above.is_above and (not below.is_above or above.count < below.count)
        if is_above and not self.has_too_many_failures:
            return ThresholdDecision.ABOVE
        return ThresholdDecision.OPEN

    @property
    def next_count(self) -> int:
        """Number of questions to ask next; 0 if the length is decided or has its largest number."""
        if self._next_count is None:
            self._next_count = 0
            left = self.most - self.asked
            if left > 0 and self.tests[0].is_above and self.has_too_many_failures:
                # Only more answers make the share of failures small enough.
                missing = math.ceil(self.failed / _MOST_FAILED) - self.asked
                self._next_count = missing if missing <= left else 0
            elif left > 0 and self.decision is ThresholdDecision.OPEN:
                mean = fmean(kind.base_interval.mean for kind in self.kinds.values())
                above, below = self.tests
                right = above.count_until_sure(1 - mean + self._loss, left)
                self._next_count = below.count_until_sure(mean, right)
        return self._next_count

    @property
    def interval(self) -> Interval:
        """The mean loss, with its interval if the number of questions had been fixed, for the table.

        Losses are in -1 to 1. Moved to 0 to 1 they have Wilson's interval. It has a width even if few losses are all
        equal; Student's has none.
        """
        interval = mean_interval([(loss + 1) / 2 for loss in self.losses])
        return Interval(
            mean=2 * interval.mean - 1,
            low=2 * interval.low - 1,
            high=2 * interval.high - 1,
            n=interval.n,
        )


class Search:
    """Asks for questions until the claim is decided, and then for the largest effective length.

    Attributes:
        kinds: the answers of each kind, by name.
        tests: the tests of lengths, in the order in which they were made.
    """

    def __init__(self, design: Design):
        self.design = design
        self.kinds = {kind: KindAnswers(design, kind) for kind in design.kinds}
        self.tests: dict[int, LengthTest] = {}
        self._open: list[AskedBlock] | None = None

    @cached_property
    def measurable_kinds(self) -> list[KindAnswers]:
        """The kinds that can be measured. Read it when the shortest length is answered."""
        kinds = []
        for kind in self.kinds.values():
            if kind.is_measurable:
                kinds.append(kind)
        return kinds

    @cached_property
    def order(self) -> list[tuple[KindAnswers, int]]:
        """The questions at a length, in order: the kinds are drawn, so each question is about any kind."""
        random = Random(f"kinds {self.design.seed}")
        numbers = Counter[str]()
        count = self.design.most if self.measurable_kinds else 0
        drawn = []
        for _ in range(count):
            drawn.append(random.choice(self.measurable_kinds))
        questions = []
        for kind in drawn:
            questions.append((kind, kind.question(numbers[kind.kind] % (SEEDS - 1))))
            numbers[kind.kind] += 1
        return questions

    def next_blocks(self) -> list[AskedBlock]:
        """Return what to ask next, nothing at the end."""
        design = self.design
        kinds = list(self.kinds.values())
        if not any(kind.base.answered for kind in kinds):
            blocks = []
            for kind in kinds:
                seed = kind.question(SEEDS - 1)
                blocks.append(
                    AskedBlock(
                        kind=kind.kind,
                        length=design.shortest,
                        seed=seed,
                        count=NO_TEXT,
                        has_text=False,
                    )
                )
            for kind in kinds:
                blocks += kind.base_blocks(range(design.first))
            return blocks
        if not self.tests:
            return self._further_base() or self._next_questions()
        return self._next_questions() or (self._each_kind() if design.each_kind else [])

    def add(self, answered: Answered) -> None:
        """Take the answers to what was asked."""
        block = answered.block
        kind = self.kinds[block.kind]
        if not block.has_text:
            kind.without_text.append(answered)
        elif block.length == self.design.shortest:
            kind.base.answered.append(answered)
        else:
            kind.cell(block.length).answered.append(answered)
            test = self.tests.get(block.length)
            if test is None:
                return
            for reply in answered.replies:
                test.add(reply, block.kind, block.seed)

    @property
    def decision(self) -> ThresholdDecision:
        """Whether the claim is effective."""
        test = self.tests.get(self.design.claim)
        return test.decision if test else ThresholdDecision.OPEN

    @property
    def effective(self) -> int | None:
        """The largest length that is effective. It is the shortest if no other one is, None if no kind can be measured."""
        if not self.tests:
            return None
        lengths = _find_decided(self.tests, ThresholdDecision.ABOVE)
        return max([self.design.shortest, *lengths])

    @property
    def not_effective(self) -> int | None:
        """The smallest length that was decided to be not effective, if there is one."""
        lengths = _find_decided(self.tests, ThresholdDecision.BELOW)
        return min(lengths, default=None)

    def _further_base(self) -> list[AskedBlock]:
        """Return the questions of the order that the shortest length lacks, if it has too few or pairs them."""
        blocks = list[AskedBlock]()
        is_enough = (
            sum(len(kind.base.answered) for kind in self.measurable_kinds)
            >= self.design.most
        )
        drawn = dict.fromkeys(self.order)
        for kind in self.measurable_kinds:
            if is_enough and not kind.pairing:
                continue
            answered = set()
            for answer in kind.base.answered:
                answered.add(answer.block.seed)
            numbers = []
            for drawn_kind, seed in drawn:
                if drawn_kind is kind and seed not in answered:
                    numbers.append(seed - kind.question(0))
            blocks += kind.base_blocks(numbers)
        return blocks

    def _next_questions(self) -> list[AskedBlock]:
        length = self._next_length()
        if length is None:
            return []
        if length not in self.tests:
            # The base is complete now, and the first look at it came before.
            for kind in self.measurable_kinds:
                for figure in ("base_interval", "pairing", "_question_means"):
                    kind.__dict__.pop(figure, None)
            self.tests[length] = LengthTest(
                self.design, length, self.measurable_kinds, self.most_at(length)
            )
        test = self.tests[length]
        questions = self.order[test.asked : test.asked + test.next_count]
        return [kind.block(length, seed) for kind, seed in questions]

    def most_at(self, length: int) -> int:
        """Return the largest number of further questions at a length, of those that the tokens allow."""
        design = self.design
        further = 0
        for kind in self.measurable_kinds:
            further += max(len(kind.base.answered) - design.first, 0)
        spared = math.ceil(further * design.texts * design.shortest / design.claim)
        spared = min(spared, _MOST_SPARED)
        asked = 0
        for kind in self.measurable_kinds:
            for cell_length, cell in kind.cells.items():
                asked += len(cell.replies) * cell_length
        return min(
            design.most, max((design.most - spared) * design.claim - asked, 0) // length
        )

    def _next_length(self) -> int | None:
        """Return the length that is being tested, or else the claim, and then the middle of what is still possible."""
        if not self.measurable_kinds:
            return None
        for length, test in self.tests.items():
            if test.next_count:
                return length
        lengths = self.design.lengths
        claim = self.design.claim
        if claim not in self.tests:
            return claim
        if self.tests[claim].decision is not ThresholdDecision.BELOW:
            return None
        low = lengths.index(self.effective or self.design.shortest)
        others = []
        for n, test in self.tests.items():
            if test.decision is not ThresholdDecision.ABOVE:
                others.append(n)
        high = lengths.index(min(others))
        middle = lengths[(low + high) // 2]
        if high - low > 1 and self.most_at(middle) >= _FEWEST:
            return middle
        return None

    def _each_kind(self) -> list[AskedBlock]:
        """Return more questions of the kinds that are still open at an effective claim."""
        claim = self.design.claim
        blocks = list[AskedBlock]()
        if self.decision is not ThresholdDecision.ABOVE:
            return blocks
        for kind in self.measurable_kinds:
            cell = kind.cell(claim)
            start = len(cell.replies)
            left = min(self.design.most, SEEDS - 1) - start
            if left <= 0 or cell.decision is not ThresholdDecision.OPEN:
                continue
            limits = zip((cell.highest, cell.lowest), cell.errors, strict=True)
            count = min(
                count_until_decision(cell.scores, limit, left, error)
                for limit, error in limits
            )
            for number in range(start, start + max(count, 1)):
                blocks.append(kind.block(claim, kind.question(number)))
        return blocks


def find_shifts(kinds: Sequence[KindAnswers]) -> dict[str, float]:
    """Return what is added to the expected scores of each kind, so that all kinds have the same mean.

    As the kinds are drawn with equal chances, the mean loss is the same. It is 0 if the kinds differ much.
    """
    means = {}
    for answers in kinds:
        means[answers.kind] = answers.base_interval.mean
    of_kinds = np.var([*means.values()])
    within = np.mean([np.var(answers.base.scores) for answers in kinds])
    if of_kinds > _KIND_VARIANCE * (of_kinds + within):
        return dict.fromkeys(means, 0.0)
    shifts = {}
    for kind, mean in means.items():
        shifts[kind] = fmean(means.values()) - mean
    return shifts


def plan_tests(
    kinds: Sequence[Sequence[PairedAnswer]],
    loss: float,
    most: int,
    error: float,
) -> tuple[DeadlineTest, DeadlineTest]:
    """Return the tests whether the mean loss is less than `loss`, and whether there is any.

    The first one is planned for a model without a loss, and the second one for a model with this loss: its answers are
    those at the shortest length, but a part of them has become wrong.

    Args:
        kinds: the answers of each kind at the shortest length.
        most: largest number of questions.
        error: largest probability of a wrong decision.
    """
    expected_scores: list[float] = []
    own_scores: list[float] = []
    own_weights: list[float] = []
    for answers in kinds:
        expected_scores += [answer.expected for answer in answers]
        own_scores += [answer.score for answer in answers]
        own_weights += [1 / len(answers)] * len(answers)
    expected = np.array(expected_scores)
    scores = np.array(own_scores)
    weights = np.array(own_weights)
    lost = min(loss / max(float(np.average(scores, weights=weights)), loss), 1.0)
    thinned = collect_outcomes(
        np.concatenate([expected - scores, expected]),
        np.concatenate([(1 - lost) * weights, lost * weights]),
    )
    kept = collect_outcomes(scores - expected + loss, weights)
    # The expected scores are means of answers. They add the same variance to a mean of differences in each test.
    noise = fmean(_variance_of_mean(answers) for answers in kinds) / len(kinds)
    ratio = most * noise / max(min(_variance(kept), _variance(thinned)), 1e-9)
    # Questions are drawn, so the hypothesis says something about their mean only. A bound that depends on the question
    # that was drawn would change the stakes, and with them the mean: all questions have one bound.
    above = DeadlineTest(
        kept, loss - float(expected.max()), most, _adjust(error, ratio)
    )
    below_error = _adjust(error * (1 - KIND_SHARE), ratio)
    below = DeadlineTest(thinned, float(expected.min()) - 1, most, below_error)
    return above, below


def _variance_of_mean(answers: Sequence[PairedAnswer]) -> float:
    """Return the variance of the mean difference of expected scores and scores, over questions."""
    differences: dict[int, list[float]] = defaultdict(list)
    for answer in answers:
        differences[answer.question].append(answer.expected - answer.score)
    means = []
    for values in differences.values():
        means.append(fmean(values))
    return float(np.var(means)) / len(means)


def _adjust(error: float, ratio: float) -> float:
    """Return the error of a test that takes the expected scores for the true ones.

    The quantile of the normal distribution is multiplied by the root of the ratio of the variances of the mean with and
    without the uncertainty of the expected scores.

    Args:
        ratio: the variance of the expected scores divided by the variance of the mean.
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(error) * math.sqrt(1 + ratio)))


def _variance(outcomes: Outcomes) -> float:
    values, chances = map(np.asarray, outcomes)
    return float(chances @ values**2 - (chances @ values) ** 2)
