"""Decides whether answers in a state of the cache differ from cold ones by more than two cold ones do.

For each question there are three answers to copies of the same text, or to the same text if the server can answer it
past its cache: a cold one, another cold one, and one in the state. If the state changes nothing, the second and the
third are exchangeable, so each is as often the farther one from the first, and by as much. Ties say nothing. The tests,
of signed ranks of distances and of signs of values found, are exact, whatever the server's own noise is, and Holm's
correction is for all states and lengths.

Requests at the same time can change answers without a cache, because a server computes larger batches otherwise. So if
answers in parallel seem to differ, both cold answers are asked again among requests about other texts, and distances
are compared with these. Values that are lost in parallel are lost, whatever the reason is.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from scipy.stats import fisher_exact, rankdata

from helm_longctx.apps.cache_check.prompts import PLACES, PLAIN, TEXTS
from helm_longctx.apps.cache_check.states import (
    BUSY,
    BUSY_CONTROL,
    COLD,
    CONTROL,
    PARALLEL,
    REFERENCES,
    STATES,
    Reply,
)
from helm_longctx.models.apis.answer_logprobs import mean_difference
from helm_longctx.results.statistics.comparison import (
    SIGNIFICANCE,
    holm,
    sign_test,
    smallest_shares,
)

TIE = 0.02
"""Distances of answers that differ by less are equal: nats for each token, or shares of a text."""

LEAST_TIE = 0.001
"""The same for log-probabilities of a server without noise. It is above errors of rounding."""

_MEASURES = 2
"""Number of tests of each cell: of the distance of answers, and of the values found."""


@dataclass(frozen=True)
class Cell:
    """What was measured in a state at a length.

    Args:
        n: number of questions with an answer in the state and two cold ones.
        failed: number of questions whose answer in the state is missing.
        farther, nearer: number of questions whose answer is farther from the cold one than the other cold one is, or
            nearer to it.
        found, control_found, cold_found: shares of the values that were found in the state, and in both cold ones.
        lost: for each place that is asked for (`prompts.PLACES`) the share of its values that were found in the second
            cold answer, less the share found in the state.
        worse, better: number of questions with fewer, or with more values than the second cold answer.
        cached: share of the prompt's tokens that the server says it read from its cache; None if it does not say it.
        noise: median distance of the two cold answers.
        gap: median of how much farther the answer is from the cold one than the other cold one is.
        p_value: probability that so many are farther, or worse, if the state changes nothing; corrected for the number
            of cells.
        example: the seed of the question that shows the difference best; None if no answer differs.
        kind: the kind of text, a key of `prompts.TEXTS`.
    """

    length: int
    state: str
    n: int
    failed: int
    farther: int
    nearer: int
    found: float
    control_found: float
    cold_found: float
    worse: int
    better: int
    lost: tuple[float, ...]
    cached: float | None
    noise: float
    gap: float
    p_value: float
    example: int | None = None
    kind: str = PLAIN

    @property
    def name(self) -> str:
        """The state, and the kind of text if it is a special one."""
        return self.state if self.kind == PLAIN else f"{self.state} ({self.kind})"

    @property
    def differs(self) -> bool:
        """Whether the state changes the answers."""
        return self.p_value < SIGNIFICANCE

    @property
    def was_not_warm(self) -> bool:
        """Whether the server says that it read nothing from its cache where it should have."""
        return STATES[self.state].is_warm and self.cached is not None and self.cached < 0.01


def distance(reply: Reply, reference: Reply) -> float:
    """Return how far an answer is from another one, from 0.

    With log-probabilities it is the mean difference of the log-probabilities of the reference's tokens, up to the first
    token that differs. Otherwise it is the share of the text that differs.
    """
    if not (reply.logprobs and reference.logprobs):
        return 1 - SequenceMatcher(None, reference.text, reply.text, autojunk=False).ratio()
    return mean_difference(reply.logprobs, reference.logprobs)


def needed_wins(cells: int) -> int:
    """Return how many questions must be farther, if none is nearer, to find one of so many cells."""
    return math.ceil(math.log2(cells * _MEASURES / SIGNIFICANCE))


def smallest_share(questions: int, cells: int) -> float | None:
    """Return the smallest share of answers whose change is found in 80 % of checks; None if none is."""
    return smallest_shares(questions, SIGNIFICANCE / (cells * _MEASURES))[0]


def judge(replies: Sequence[Reply], tie: float | None = None) -> list[Cell]:
    """Return the cells of all lengths and states, with corrected p-values.

    Args:
        tie: log-probabilities that differ by less are equal, in nats for each token; None for half of what two cold
            answers usually differ by.
    """
    states = [state for state in STATES if state not in REFERENCES]
    groups: dict[tuple[int, str], list[Reply]] = defaultdict(list)
    for reply in replies:
        groups[reply.length, reply.kind].append(reply)
    cells = [
        _judge(rows, state, tie)
        for _, rows in sorted(
            groups.items(), key=lambda each: (each[0][0], list(TEXTS).index(each[0][1]))
        )
        for state in states
        if any(row.state == state for row in rows)
    ]
    p_values = holm([each.p_value for each in cells])
    return [replace(cell, p_value=p_value) for cell, p_value in zip(cells, p_values, strict=True)]


def find_small(replies: Sequence[Reply], cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that differ only if differences below the tie count; empty without `--cold`.

    Args:
        cells: what was judged with the tie.
    """
    if not any(reply.copy for reply in replies):
        return []
    pairs = zip(cells, judge(replies, LEAST_TIE), strict=True)
    return [small for cell, small in pairs if small.differs and not cell.differs]


class Changes(NamedTuple):
    """How a state changes answers. Arrays have an element for each question with an answer in it and two cold ones.

    Args:
        triples: the cold answer, the other cold one, and that in the state.
        noise: distances of the two cold answers.
        gaps: how much farther the answers are from the cold ones.
        found: shape (questions, 3, places): whether values were found, in cold answers without other requests.
        tie: the least gap that counts.
    """

    triples: list[tuple[Reply, Reply, Reply]]
    noise: np.ndarray
    gaps: np.ndarray
    found: np.ndarray
    tie: float

    @property
    def losses(self) -> np.ndarray:
        """For each question the share of its values that were found without the state, and not with it."""
        share: np.ndarray = (self.found[:, 1] - self.found[:, 2]).mean(axis=1)
        return share


def compare_answers(replies: Sequence[Reply], state: str, tie: float | None = None) -> Changes:
    """Compare the answers in a state with cold ones to the same questions.

    Args:
        replies: the replies of one length and kind of text.
        tie: see `judge`.
    """
    answers = {
        (reply.state, reply.seed): reply
        for reply in replies
        if not reply.failure and reply.copy in ("", state)
    }
    is_busy = state == PARALLEL and any(reply.state == BUSY for reply in replies)
    first, second = (BUSY, BUSY_CONTROL) if is_busy else (COLD, CONTROL)
    needed = {first, second, COLD, CONTROL, state}
    seeds = [
        seed
        for seed in dict.fromkeys(reply.seed for reply in replies if reply.state == state)
        if all((name, seed) in answers for name in needed)
    ]
    triples = [
        (answers[first, seed], answers[second, seed], answers[state, seed]) for seed in seeds
    ]
    noise = np.array([distance(second, first) for first, second, _ in triples])
    gaps = np.array([distance(third, first) for first, _, third in triples]) - noise
    if not triples or not all(each.logprobs for triple in triples for each in triple):
        tie = TIE
    elif tie is None:
        tie = float(np.clip(np.median(noise) / 2, LEAST_TIE, TIE))
    shape = (len(triples), 3, len(triples[0][0].found) if triples else len(PLACES))
    values = [[answers[name, seed].found for name in (COLD, CONTROL, state)] for seed in seeds]
    found = np.array(values, dtype=float).reshape(shape)
    return Changes(triples, noise, gaps, found, tie)


def _judge(replies: Sequence[Reply], state: str, given_tie: float | None) -> Cell:
    triples, noise, gaps, found, tie = changed = compare_answers(replies, state, given_tie)
    lost = changed.losses
    farther, nearer, worse, better = (
        int(np.sum(each)) for each in (gaps > tie, gaps < -tie, lost > 0, lost < 0)
    )
    cached = [
        each.cached_tokens / each.prompt_tokens
        for *_, each in triples
        if each.prompt_tokens and each.cached_tokens is not None
    ]
    changes = gaps + lost
    in_state = [reply for reply in replies if reply.state == state]
    return Cell(
        length=replies[0].length,
        state=state,
        n=len(triples),
        failed=sum(bool(each.failure) for each in in_state),
        farther=farther,
        nearer=nearer,
        worse=worse,
        better=better,
        cold_found=float(found[:, 0].mean()) if triples else math.nan,
        control_found=float(found[:, 1].mean()) if triples else math.nan,
        found=float(found[:, 2].mean()) if triples else math.nan,
        lost=tuple(float(each) for each in (found[:, 1] - found[:, 2]).mean(axis=0))
        if triples
        else (),
        cached=float(np.mean(cached)) if cached else None,
        noise=float(np.median(noise)) if triples else math.nan,
        gap=float(np.median(gaps)) if triples else math.nan,
        p_value=min(
            1.0, _MEASURES * min(_signed_ranks(gaps[np.abs(gaps) > tie]), sign_test(worse, better))
        ),
        example=triples[int(np.argmax(changes))][2].seed
        if triples and changes.max() > tie
        else None,
        kind=replies[0].kind,
    )


def _signed_ranks(gaps: np.ndarray) -> float:
    """Return the probability of so high ranks of the positive gaps if all signs are chance (Wilcoxon 1945, exact)."""
    ranks = np.rint(2 * rankdata(np.abs(gaps))).astype(
        int
    )  # twice, because equal gaps have halves of ranks
    chances = np.ones(1)
    for rank in ranks:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return float(min(chances[ranks[gaps > 0].sum() :].sum(), 1.0))


class Build(NamedTuple):
    """The cold answers of one build behind an address, and of all others.

    Args:
        name: the model and the fingerprint that replies name.
        n, right: its cold answers, and those with all values.
        other_n, other_right: the same of all others.
        p_value: probability that so few are right if all builds answer alike, corrected for the number of builds.
    """

    name: str
    n: int
    right: int
    other_n: int
    other_right: int
    p_value: float

    @property
    def differs(self) -> bool:
        """Whether its answers are worse than the other builds'."""
        return self.p_value < SIGNIFICANCE


def judge_builds(replies: Sequence[Reply]) -> list[Build]:
    """Compare the cold answers of builds behind one address; empty if there is one build.

    A router can send all prompts of a question to one build, and answers to one question resemble each other, so each
    question counts once (see `_compare_build`).
    """
    cold = [reply for reply in replies if reply.state in (COLD, CONTROL) and not reply.failure]
    asked = Counter(reply.build for reply in cold)
    right = Counter(reply.build for reply in cold if all(reply.found))
    builds = []
    for name in asked if len(asked) > 1 else ():
        builds.append(
            Build(
                name=name,
                n=asked[name],
                right=right[name],
                other_n=len(cold) - asked[name],
                other_right=right.total() - right[name],
                p_value=_compare_build(cold, name),
            )
        )
    p_values = holm([build.p_value for build in builds])
    return [
        build._replace(p_value=p_value) for build, p_value in zip(builds, p_values, strict=True)
    ]


def _compare_build(replies: Sequence[Reply], name: str) -> float:
    """Return the probability that so few answers of a build are right if all builds answer alike.

    Questions that the build and others answered have a pair of first answers, and a sign test. Of all other questions
    the first answer counts, by Fisher's exact test. The better result of both tests is corrected for their number.
    """
    questions: dict[tuple[int, str, int], dict[bool, bool]] = defaultdict(dict)
    for reply in replies:
        answers = questions[reply.length, reply.kind, reply.seed]
        answers.setdefault(reply.build == name, all(reply.found))
    pairs = [answers for answers in questions.values() if len(answers) == 2]
    own = [answers[True] for answers in questions.values() if list(answers) == [True]]
    others = [answers[False] for answers in questions.values() if list(answers) == [False]]
    p_values = []
    if pairs:
        worse = sum(answers[False] > answers[True] for answers in pairs)
        better = sum(answers[True] > answers[False] for answers in pairs)
        p_values.append(sign_test(worse, better))
    if own and others:
        table = [[sum(answers), len(answers) - sum(answers)] for answers in (own, others)]
        p_values.append(float(fisher_exact(table, alternative="less").pvalue))
    return min(1.0, len(p_values) * min(p_values, default=1.0))
