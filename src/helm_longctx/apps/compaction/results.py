"""What the answers say: recall by kind, paired differences, and whether a compactor loses more than is allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from helm_longctx.apps.compaction.asking import add_dollars
from helm_longctx.apps.compaction.compactors import BASELINES, NOTHING, WHOLE
from helm_longctx.apps.compaction.probes import KINDS, Probe
from helm_longctx.apps.compaction.scoring import ScoreState
from helm_longctx.apps.compaction.trial import Arm, Compaction, Outcome
from helm_longctx.results.statistics.comparison import (
    AskedPairs,
    Decision,
    Pairs,
    compare_pairs,
    compare_parts,
    decide_all,
)
from helm_longctx.results.statistics.intervals import Interval, mean_interval
from helm_longctx.results.statistics.level import SIGNIFICANCE
from helm_longctx.results.statistics.noninferiority import (
    ONE_SIDED,
    Drop,
    Verdict,
    combine_verdicts,
    decide_drops,
    fewest_clusters,
)

_POWER = 0.8
"""The probability of a decision that the number of missing probes is for."""


@dataclass(frozen=True)
class Recall:
    """What an arm has left.

    Args:
        interval: the share of right answers among the probes that have a score.
        by_kind: the same for each kind with such a probe.
        tokens: the mean number of tokens that are left of a transcript, over the transcripts with a result.
        share: the share of the tokens of these transcripts.
        sizes: the mean number of tokens that are left after each round, over the transcripts with so many rounds.
        seconds: the mean time of a compaction.
        dollars: the price of all compactions. None if it is not known.
        answers: the price of all answers and verdicts.
        states: the number of probes by what became of them.
        failures: why probes have no score, with their numbers.
        compactions: why there is no compaction, with the numbers of transcripts.
    """

    arm: Arm
    interval: Interval
    by_kind: Mapping[str, Interval]
    tokens: float
    share: float
    sizes: Sequence[float]
    seconds: float
    dollars: float | None
    answers: float | None
    states: Mapping[ScoreState, int]
    failures: Mapping[str, int]
    compactions: Mapping[str, int]


@dataclass(frozen=True)
class Difference:
    """Two arms, compared on the same probes.

    Args:
        decision: the first arm's recall less the second one's, adjusted for all differences of the table.
        holds_for_others: as in `CompactionResults`.
    """

    one: Arm
    other: Arm
    decision: Decision
    holds_for_others: bool

    @property
    def verdict(self) -> str:
        """The verdict of the decision, with `here` after `better` or `worse` that is about these transcripts only.

        Probes that a compactor loses together make two equal compactors differ in the transcripts at hand. So a
        difference between messages says nothing about the compactors.
        """
        if self.decision.is_different and not self.holds_for_others:
            return f"{self.decision.verdict} here"
        return self.decision.verdict


@dataclass(frozen=True)
class CompactionResults:
    """All results.

    Args:
        holds_for_others: whether intervals and tests are about other transcripts, too: transcripts are the clusters. With
            fewer than `fewest` they are about these transcripts, and the clusters are their messages.
        fewest: the number of transcripts from which on they are about others.
    """

    probes: Sequence[Probe]
    outcomes: Sequence[Outcome]
    recalls: Sequence[Recall]
    differences: Sequence[Difference]
    rounds: Sequence[Difference]
    holds_for_others: bool
    fewest: int


@dataclass(frozen=True)
class Loss:
    """Whether an arm loses more than is allowed.

    Args:
        drop: the decision on the probes that both arms have answered.
        verdict: the decision with the probes that have no score in one of them: "no worse" must also hold if the arm is
            wrong on them, and "worse" if it is right.
    """

    arm: Arm
    drop: Drop
    verdict: Verdict


def analyze(
    compactions: Sequence[Compaction],
    outcomes: Sequence[Outcome],
    probes: Sequence[Probe],
) -> CompactionResults:
    """Return the results of a comparison."""
    arms = list(dict.fromkeys(compaction.arm for compaction in compactions))
    compared = [arm for arm in arms if arm.compactor.name not in (WHOLE, NOTHING)]
    pairs = []
    for one, other in combinations(compared, 2):
        if one.rounds == other.rounds:
            pairs.append((one, other))
    repeated = []
    for arm in compared:
        if arm.rounds > 1:
            once = [
                other
                for other in compared
                if other.rounds == 1 and other.compactor is arm.compactor
            ]
            repeated += [(arm, other) for other in once]
    fewest = find_fewest_transcripts(max(len(pairs), len(repeated)))
    names = {probe.transcript for probe in probes}
    holds_for_others = len(names) >= fewest
    scores = ProbeScores(outcomes, holds_for_others)
    return CompactionResults(
        probes=probes,
        outcomes=outcomes,
        recalls=[_find_recall(arm, compactions, scores) for arm in arms],
        differences=scores.compare(pairs),
        rounds=scores.compare(repeated),
        holds_for_others=holds_for_others,
        fewest=fewest,
    )


def find_fewest_transcripts(comparisons: int) -> int:
    """Return the fewest transcripts that can show a difference between compactors.

    The test of fewer transcripts rejects nothing, even if all of them agree.

    Args:
        comparisons: the number of differences that are tested together. One is also enough for none.
    """
    number = 2
    while True:
        agreeing = compare_pairs(np.ones(number), np.zeros(number))
        if agreeing.p_value * max(comparisons, 1) < SIGNIFICANCE:
            return number
        number += 1


class ProbeScores:
    """The scores of all arms.

    Args:
        by_transcript: whether the clusters are transcripts. Otherwise they are messages.
    """

    def __init__(self, outcomes: Sequence[Outcome], by_transcript: bool):
        self.by_arm: dict[Arm, dict[str, Outcome]] = {}
        for outcome in outcomes:
            self.by_arm.setdefault(outcome.arm, {})[outcome.probe.id] = outcome
        self._by_transcript = by_transcript

    def group_of(self, probe: Probe) -> str:
        """Return the cluster of a probe."""
        if self._by_transcript:
            return probe.transcript
        return f"{probe.transcript} {probe.message}"

    def find_interval(self, outcomes: Sequence[Outcome]) -> Interval:
        """Return the mean score of the outcomes that have one."""
        scored = []
        for outcome in outcomes:
            if outcome.given.score is not None:
                scored.append((outcome.given.score, self.group_of(outcome.probe)))
        values = [score for score, _ in scored]
        return mean_interval(values, [group for _, group in scored])

    def pair(self, one: Arm, other: Arm) -> Pairs:
        """Return the scores of two arms on the same probes."""
        ones = self.by_arm[one]
        others = self.by_arm[other]
        ids = [probe_id for probe_id in ones if probe_id in others]
        both = []
        for probe_id in ids:
            scores = (ones[probe_id].given.score, others[probe_id].given.score)
            if None not in scores:
                both.append(probe_id)
        asked = None
        if len(both) < len(ids):
            asked = AskedPairs(
                a=_fill([ones[probe_id] for probe_id in ids]),
                b=_fill([others[probe_id] for probe_id in ids]),
                a_failed=_find_failures([ones[probe_id] for probe_id in ids]),
                b_failed=_find_failures([others[probe_id] for probe_id in ids]),
                groups=[self.group_of(ones[probe_id].probe) for probe_id in ids],
            )
        return Pairs(
            a=_fill([ones[probe_id] for probe_id in both]),
            b=_fill([others[probe_id] for probe_id in both]),
            groups=[self.group_of(ones[probe_id].probe) for probe_id in both],
            weight=1.0,
            asked=asked,
        )

    def compare(self, pairs: Sequence[tuple[Arm, Arm]]) -> list[Difference]:
        """Compare pairs of arms, with Holm's correction over all of them. A pair without a shared answer is left out."""
        known = []
        comparisons = []
        for one, other in pairs:
            scores = self.pair(one, other)
            if len(scores.groups):
                known.append((one, other))
                comparisons.append(compare_parts([scores]))
        decisions = decide_all(comparisons)
        differences = []
        for (one, other), decision in zip(known, decisions, strict=True):
            differences.append(
                Difference(
                    one=one,
                    other=other,
                    decision=decision,
                    holds_for_others=self._by_transcript,
                )
            )
        return differences


def _fill(outcomes: Sequence[Outcome]) -> list[float]:
    scores = [outcome.given.score for outcome in outcomes]
    return [float("nan") if score is None else score for score in scores]


def _find_failures(outcomes: Sequence[Outcome]) -> list[float]:
    return [float(outcome.given.score is None) for outcome in outcomes]


def _find_recall(
    arm: Arm,
    compactions: Sequence[Compaction],
    scores: ProbeScores,
) -> Recall:
    own = list(scores.by_arm.get(arm, {}).values())
    made = []
    for compaction in compactions:
        if compaction.arm == arm:
            made.append(compaction)
    done = []
    for compaction in made:
        if not compaction.failure:
            done.append(compaction)
    tokens = [compaction.result.tokens for compaction in done]
    seconds = [compaction.result.seconds for compaction in done]
    before = sum(compaction.transcript.tokens for compaction in done)
    by_kind = {}
    for kind in KINDS:
        interval = scores.find_interval(
            [outcome for outcome in own if outcome.probe.kind == kind]
        )
        if interval.n:
            by_kind[kind] = interval
    return Recall(
        arm=arm,
        interval=scores.find_interval(own),
        by_kind=by_kind,
        tokens=float(np.mean(tokens)) if tokens else float("nan"),
        share=sum(tokens) / before if before else float("nan"),
        sizes=_find_mean_sizes([compaction.result.sizes for compaction in done]),
        seconds=float(np.mean(seconds)) if seconds else float("nan"),
        dollars=add_dollars([compaction.result.dollars for compaction in made]),
        answers=add_dollars([outcome.given.dollars for outcome in own]),
        states=Counter(outcome.given.state for outcome in own),
        failures=Counter(
            outcome.given.failure for outcome in own if outcome.given.score is None
        ),
        compactions=Counter(
            compaction.failure for compaction in made if compaction.failure
        ),
    )


def _find_mean_sizes(sizes: Sequence[Sequence[int]]) -> list[float]:
    """Return the mean of the first sizes, of the second ones, and so on. Short transcripts have fewer."""
    means = []
    for index in range(max(map(len, sizes), default=0)):
        means.append(float(np.mean([own[index] for own in sizes if len(own) > index])))
    return means


@dataclass(frozen=True)
class KeptKinds:
    """Whether compactors keep all probes of some kinds.

    Args:
        kinds: keys of `KINDS`.
        lost: the outcomes that are lost.
        unscored: the number of outcomes without a score.
        verdict: `WORSE` if one is lost, and undecided if one has no score, or there is none.
    """

    kinds: Sequence[str]
    lost: Sequence[Outcome]
    unscored: int
    verdict: Verdict


def find_kept_kinds(results: CompactionResults, kinds: Sequence[str]) -> KeptKinds:
    """Find out whether the user's compactors keep all probes of some kinds.

    A probe that the whole transcript does not answer either is not lost, if this baseline is compared.
    """
    unanswered = set()
    for outcome in results.outcomes:
        if outcome.arm.compactor.name == WHOLE and outcome.given.score != 1:
            unanswered.add(outcome.probe.id)
    lost = []
    unscored = 0
    asked = 0
    for outcome in results.outcomes:
        if outcome.arm.compactor.name in BASELINES or outcome.probe.kind not in kinds:
            continue
        if outcome.probe.id in unanswered:
            continue
        asked += 1
        if outcome.given.score is None:
            unscored += 1
        elif outcome.given.score < 1:
            lost.append(outcome)
    verdict = Verdict.NO_WORSE
    if lost:
        verdict = Verdict.WORSE
    elif unscored or not asked:
        verdict = Verdict.UNDECIDED
    return KeptKinds(
        kinds=kinds,
        lost=lost,
        unscored=unscored,
        verdict=verdict,
    )


@dataclass(frozen=True)
class CompactionGate:
    """Whether the user's compactors lose more than is allowed.

    Args:
        base: the name of the base.
        margin: the largest loss that is accepted, 0 to 1.
        losses: the decision on each arm that can be compared.
        verdict: the decision on all.
        holds_for_others: whether it is about other transcripts, too. With fewer than `fewest` nothing could pass over
            transcripts, so it is about these ones as they were compacted.
        fewest: the number of transcripts from which on it is about others.
    """

    base: str
    margin: float
    losses: Sequence[Loss]
    verdict: Verdict
    holds_for_others: bool
    fewest: int


def decide_losses(
    results: CompactionResults,
    base: str,
    margin: float,
) -> CompactionGate:
    """Decide whether the user's compactors lose more than a margin against a base.

    Without an answer that can be compared it is undecided.

    Args:
        base: the name of the base, a compactor or a baseline in one round.
        margin: the largest loss that is accepted, above 0 and below 1.
    """
    fewest = fewest_clusters(margin, ONE_SIDED)
    transcripts = {probe.transcript for probe in results.probes}
    holds_for_others = len(transcripts) >= fewest
    losses, verdict = _decide_losses(results, base, margin, holds_for_others)
    return CompactionGate(
        base=base,
        margin=margin,
        losses=losses,
        verdict=verdict,
        holds_for_others=holds_for_others,
        fewest=fewest,
    )


def _decide_losses(
    results: CompactionResults,
    base: str,
    margin: float,
    by_transcript: bool,
) -> tuple[list[Loss], Verdict]:
    scores = ProbeScores(results.outcomes, by_transcript)
    arms = [recall.arm for recall in results.recalls]
    (reference,) = [
        arm for arm in arms if arm.compactor.name == base and arm.rounds == 1
    ]
    pairs = {}
    undecided = False
    for arm in arms:
        if arm.compactor.name in BASELINES or arm is reference:
            continue
        scores_of_both = scores.pair(arm, reference)
        if len(scores_of_both.groups):
            pairs[arm] = scores_of_both
        else:
            undecided = True
    if not pairs:
        return [], Verdict.UNDECIDED
    decided = _decide({arm: [pair] for arm, pair in pairs.items()}, margin)
    # The arm is wrong, and then right, where it or the base has no score.
    wrong = _decide(
        {arm: [pair.with_failures_as(0.0, 1.0)] for arm, pair in pairs.items()}, margin
    )
    right = _decide(
        {arm: [pair.with_failures_as(1.0, 0.0)] for arm, pair in pairs.items()}, margin
    )
    losses = []
    for arm, drop in decided.items():
        verdict = drop.verdict
        other = {Verdict.NO_WORSE: wrong, Verdict.WORSE: right}.get(verdict)
        if other is not None and other[arm].verdict is not verdict:
            verdict = Verdict.UNDECIDED
        losses.append(Loss(arm, drop, verdict))
    verdicts = [loss.verdict for loss in losses]
    if undecided:
        verdicts.append(Verdict.UNDECIDED)
    return losses, combine_verdicts(verdicts)


def _decide(parts: Mapping[Arm, Sequence[Pairs]], margin: float) -> dict[Arm, Drop]:
    named = {arm.name: pairs for arm, pairs in parts.items()}
    drops = decide_drops(named, margin, _POWER)
    return {arm: drops[arm.name] for arm in parts}
