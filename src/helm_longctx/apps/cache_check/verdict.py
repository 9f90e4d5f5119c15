"""Decides whether answers in a state of the cache differ from cold ones by more than two cold ones do.

For each question there are three answers to copies of the same text, or to the same text if the server can answer it
past its cache: a cold one, another cold one, and one in the state. If the state changes nothing, the second and the
third are exchangeable, so each is as often the farther one from the first, and by as much. Ties say nothing. The tests,
of signed ranks of distances and of signs of right values, are exact, whatever the server's own noise is, and Holm's
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
    StateReply,
)
from helm_longctx.models.apis.answer_logprobs import mean_difference
from helm_longctx.results.statistics.comparison import holm, sign_test, smallest_shares
from helm_longctx.results.statistics.level import SIGNIFICANCE

TIE = 0.02
"""Distances of answers that differ by less are equal: nats for each token, or shares of a text."""

LEAST_TIE = 0.001
"""The same for log-probabilities of a server without noise. It is above errors of rounding."""

_MEASURES = 2
"""Number of tests of each cell: of the distance of answers, and of the right values."""


@dataclass(frozen=True)
class StateCell:
    """What was measured in a state at a length.

    Args:
        n: number of questions with an answer in the state and two cold ones.
        failed: number of questions whose answer in the state is missing.
        farther, nearer: number of questions whose answer is farther from the cold one than the other cold one is, or
            nearer to it.
        state_found, control_found, cold_found: shares of the values that answers have in the state, and in both cold ones.
        lost: for each of `prompts.PLACES` the share of its values that are in the second
            cold answer, less the share in the state.
        worse, better: number of questions with fewer, or with more values than the second cold answer.
        cached: share of the prompt's tokens that the server says it read from its cache, if it says it.
        noise: median distance of the two cold answers.
        gap: median of how much farther the answer is from the cold one than the other cold one is.
        p_value: probability that so many are farther, or worse, if the state changes nothing; corrected for the number
            of cells.
        example: the seed of the question that shows the difference best, or None if no answer differs.
        kind: the kind of text, a key of `prompts.TEXTS`.
    """

    length: int
    state: str
    n: int
    failed: int
    farther: int
    nearer: int
    state_found: float
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
        if self.kind == PLAIN:
            return self.state
        return f"{self.state} ({self.kind})"

    @property
    def differs(self) -> bool:
        """Whether the state changes the answers."""
        return self.p_value < SIGNIFICANCE

    @property
    def was_not_warm(self) -> bool:
        """Whether the server says that it read nothing from its cache where it should have."""
        return (
            STATES[self.state].is_warm
            and self.cached is not None
            and self.cached < 0.01
        )


def distance(reply: StateReply, reference: StateReply) -> float:
    """Return how far an answer is from another one, from 0.

    With log-probabilities it is the mean difference of the log-probabilities of the reference's tokens, up to the first
    token that differs. Otherwise it is the share of the text that differs.
    """
    if not (reply.logprobs and reference.logprobs):
        return (
            1
            - SequenceMatcher(None, reference.text, reply.text, autojunk=False).ratio()
        )
    return mean_difference(reply.logprobs, reference.logprobs)


def needed_wins(cells: int) -> int:
    """Return how many questions must be farther, if none is nearer, to find one of so many cells."""
    return math.ceil(math.log2(cells * _MEASURES / SIGNIFICANCE))


def smallest_share(questions: int, cells: int) -> float | None:
    """Return the smallest share of answers whose change is seen in 80 % of checks, or None if none is."""
    return smallest_shares(questions, SIGNIFICANCE / (cells * _MEASURES))[0]


def judge(replies: Sequence[StateReply], tie: float | None = None) -> list[StateCell]:
    """Return the cells of all lengths and states, with corrected p-values.

    Args:
        tie: log-probabilities that differ by less are equal, in nats for each token. None for half of what two cold
            answers usually differ by.
    """
    states = [state for state in STATES if state not in REFERENCES]
    groups: dict[tuple[int, str], list[StateReply]] = defaultdict(list)
    for reply in replies:
        groups[reply.length, reply.kind].append(reply)
    kinds = list(TEXTS)
    cells = []
    for length, kind in sorted(
        groups, key=lambda group: (group[0], kinds.index(group[1]))
    ):
        rows = groups[length, kind]
        answered = {row.state for row in rows}
        for state in states:
            if state in answered:
                cells.append(_judge(rows, state, tie))
    p_values = holm([cell.p_value for cell in cells])
    corrected = []
    for cell, p_value in zip(cells, p_values, strict=True):
        corrected.append(replace(cell, p_value=p_value))
    return corrected


def find_small(
    replies: Sequence[StateReply],
    cells: Sequence[StateCell],
) -> list[StateCell]:
    """Return the cells that differ only if differences below the tie count. There are none without `--cold`.

    Args:
        cells: what was judged with the tie.
    """
    if not any(reply.copy for reply in replies):
        return []
    pairs = zip(cells, judge(replies, LEAST_TIE), strict=True)
    small_cells = []
    for cell, small in pairs:
        if small.differs and not cell.differs:
            small_cells.append(small)
    return small_cells


class _Changes(NamedTuple):
    """How a state changes answers. Arrays have an element for each question with an answer in it and two cold ones.

    Args:
        triples: the cold answer, the other cold one, and that in the state.
        noise: distances of the two cold answers.
        gaps: how much farther the answers are from the cold ones.
        hits: shape (questions, 3, keys): whether answers have the values, cold ones without other requests.
        tie: the least gap that counts.
    """

    triples: list[tuple[StateReply, StateReply, StateReply]]
    noise: np.ndarray
    gaps: np.ndarray
    hits: np.ndarray
    tie: float

    @property
    def losses(self) -> np.ndarray:
        """For each question the share of its values that answers have without the state, and not with it."""
        share: np.ndarray = (self.hits[:, 1] - self.hits[:, 2]).mean(axis=1)
        return share


def compare_answers(
    replies: Sequence[StateReply],
    state: str,
    tie: float | None = None,
) -> _Changes:
    """Compare the answers in a state with cold ones to the same questions.

    Args:
        replies: the replies of one length and kind of text.
        tie: see `judge`.
    """
    answers = {}
    for reply in replies:
        if not reply.failure and reply.copy in ("", state):
            answers[reply.state, reply.seed] = reply
    first = COLD
    second = CONTROL
    if state == PARALLEL and any(reply.state == BUSY for reply in replies):
        first = BUSY
        second = BUSY_CONTROL
    needed = {first, second, COLD, CONTROL, state}
    triples = []
    hits = []
    noise = []
    gaps = []
    has_logprobs = True
    for seed in dict.fromkeys(reply.seed for reply in replies if reply.state == state):
        if not all((name, seed) in answers for name in needed):
            continue
        cold = answers[first, seed]
        control = answers[second, seed]
        changed = answers[state, seed]
        triples.append((cold, control, changed))
        hits.append([answers[name, seed].hits for name in (COLD, CONTROL, state)])
        own_noise = distance(control, cold)
        noise.append(own_noise)
        gaps.append(distance(changed, cold) - own_noise)
        if not (cold.logprobs and control.logprobs and changed.logprobs):
            has_logprobs = False
    if not triples or not has_logprobs:
        tie = TIE
    elif tie is None:
        tie = float(np.clip(np.median(noise) / 2, LEAST_TIE, TIE))
    if triples:
        values = len(triples[0][0].hits)
    else:
        values = len(PLACES)
    return _Changes(
        triples=triples,
        noise=np.array(noise),
        gaps=np.array(gaps),
        hits=np.array(hits, dtype=float).reshape(len(triples), 3, values),
        tie=tie,
    )


def _judge(
    replies: Sequence[StateReply],
    state: str,
    given_tie: float | None,
) -> StateCell:
    triples, noise, gaps, hits, tie = changed = compare_answers(
        replies, state, given_tie
    )
    lost = changed.losses
    worse = int(np.sum(lost > 0))
    better = int(np.sum(lost < 0))
    smallest = min(_signed_ranks(gaps[np.abs(gaps) > tie]), sign_test(worse, better))
    in_state = [reply for reply in replies if reply.state == state]
    cell = StateCell(
        length=replies[0].length,
        state=state,
        n=len(triples),
        failed=sum(bool(reply.failure) for reply in in_state),
        farther=int(np.sum(gaps > tie)),
        nearer=int(np.sum(gaps < -tie)),
        worse=worse,
        better=better,
        cold_found=math.nan,
        control_found=math.nan,
        state_found=math.nan,
        lost=(),
        cached=None,
        noise=math.nan,
        gap=math.nan,
        p_value=min(1.0, _MEASURES * smallest),
        example=None,
        kind=replies[0].kind,
    )
    if not triples:
        return cell
    cached = []
    for *_, reply in triples:
        if reply.prompt_tokens and reply.cached_tokens is not None:
            cached.append(reply.cached_tokens / reply.prompt_tokens)
    changes = gaps + lost
    most = int(np.argmax(changes))
    return replace(
        cell,
        cold_found=float(hits[:, 0].mean()),
        control_found=float(hits[:, 1].mean()),
        state_found=float(hits[:, 2].mean()),
        lost=tuple(float(share) for share in (hits[:, 1] - hits[:, 2]).mean(axis=0)),
        cached=float(np.mean(cached)) if cached else None,
        noise=float(np.median(noise)),
        gap=float(np.median(gaps)),
        example=triples[most][2].seed if changes[most] > tie else None,
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


def judge_builds(replies: Sequence[StateReply]) -> list[Build]:
    """Compare the cold answers of builds behind one address. A single build is not compared.

    A router can send all prompts of a question to one build, and answers to one question resemble each other, so each
    question counts once (see `_compare_build`).
    """
    cold = []
    for reply in replies:
        if reply.state in (COLD, CONTROL) and not reply.failure:
            cold.append(reply)
    asked = Counter(reply.build for reply in cold)
    right = Counter(reply.build for reply in cold if all(reply.hits))
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
    adjusted = zip(builds, p_values, strict=True)
    corrected = []
    for build, p_value in adjusted:
        corrected.append(build._replace(p_value=p_value))
    return corrected


def _compare_build(replies: Sequence[StateReply], name: str) -> float:
    """Return the probability that so few answers of a build are right if all builds answer alike.

    Questions that the build and others answered have a pair of first answers, and a sign test. Of all other questions
    the first answer counts, by Fisher's exact test. The better result of both tests is corrected for their number.
    """
    questions: dict[tuple[int, str, int], dict[bool, bool]] = defaultdict(dict)
    for reply in replies:
        answers = questions[reply.length, reply.kind, reply.seed]
        answers.setdefault(reply.build == name, all(reply.hits))
    pairs = 0
    worse = 0
    better = 0
    own = []
    others = []
    for is_right in questions.values():
        if len(is_right) == 2:
            pairs += 1
            worse += is_right[False] > is_right[True]
            better += is_right[True] > is_right[False]
        elif True in is_right:
            own.append(is_right[True])
        else:
            others.append(is_right[False])
    p_values = []
    if pairs:
        p_values.append(sign_test(worse, better))
    if own and others:
        table = [
            [sum(own), len(own) - sum(own)],
            [sum(others), len(others) - sum(others)],
        ]
        p_values.append(float(fisher_exact(table, alternative="less").pvalue))
    return min(1.0, len(p_values) * min(p_values, default=1.0))
