"""Decides on a comparison of distributions: whether a candidate is worse, no worse, or whether that is open.

Both verdicts need bounds that hold for rare and skewed differences (`results/statistics/heavy_tails.py`). For "no
worse", a question counts as at most `CAPS` margins, so less than a tenth of the questions can diverge by more. For
"worse", a gain counts as at most as many. All looks at a growing sample share the error.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from helm_longctx.apps.gate.distributions import TINY, Asked, Point, Way, Written
from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import (
    format_decimals,
    format_interval,
    format_share,
    format_signed_decimals,
)
from helm_longctx.results.boards import label
from helm_longctx.results.statistics.comparison import (
    Looks,
    level_of_look,
    sign_test,
    smallest_shares,
)
from helm_longctx.results.statistics.heavy_tails import (
    are_above,
    fewest_values,
    group_means,
    lower_bound,
    upper_bound,
)
from helm_longctx.results.statistics.intervals import (
    Floats,
    Interval,
    ValueKind,
    mean_interval,
)
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.noninferiority import (
    ONE_SIDED,
    Verdict,
    combine_verdicts,
)

CAPS = 10
"""A question counts as at most so many margins. So a candidate passes only if less than a tenth of them can do so."""

_FAULTY_SHARE = 1 / CAPS
"""The share of questions whose answers may be empty, cut or otherwise wrong beside the base's."""

QUESTIONS = 48
"""Number of questions of each run, unless `-m` says another one: a candidate that hardly differs passes."""

QUESTIONS_OF_ANY = 8
"""The same with a margin of 0."""

FIRST_LOOKS = (8, 16, 32)
"""Numbers of questions of a run after which a candidate that is certainly worse is asked nothing more."""

OF_DIVERGENCE = 0.8
"""The part of the error of "worse" of all divergences. Losses, most likely tokens and answers share the rest."""

NOISY = 0.1
"""If the base differs from itself by more than this share of the margin, both read the texts of all questions twice."""

_NOISE_ROOM = 2.0
"""Noise of the base is subtracted, so values can be negative. None is expected to be larger than this many times the
largest that was seen."""

_SPREAD_RATIO = 1.0
"""Standard deviation of a part's divergence between questions, by its mean, until a command has measured it. It is an
assumption: divergences with this ratio are as skewed as an exponential distribution."""


_VISIBLE = tuple(float(times) for times in np.geomspace(1.05, 400, 60))
"""Mean divergences by the margin that are tried for the estimate of what a sample finds."""

_DRAWN = 200
"""Number of samples that this estimate draws."""


def count_twice(lengths: int) -> int:
    """Return how many questions of each length are read twice: as many as the note about any difference needs."""
    count = 1
    while sign_test(count, 0) * lengths >= level_of_look((1,), ONE_SIDED):
        count += 1
    return count


def count_fewest() -> int:
    """Return how many questions of a length are enough for a candidate without any difference to pass."""
    return fewest_values(_FAULTY_SHARE, 1.0, ONE_SIDED)


@dataclass(frozen=True)
class StretchComparison:
    """The comparison of a stretch of the texts of a length.

    Args:
        name: the length and the stretch.
        divergence, loss: means over questions, in nats. See `Point.excess` and `Point.excess_loss`. The ends are the
            bounds that decide; with a margin of 0, those of the interval.
        changed: the same of `Point.changed_share`.
        same: the mean share of tokens with the same most likely token.
        noise: the mean of what was subtracted from the divergences.
        verdict: whether a mean is certainly above its margin, or all are certainly below theirs.
    """

    name: str
    divergence: Interval
    loss: Interval
    changed: Interval
    same: float
    noise: float
    verdict: Verdict


@dataclass(frozen=True)
class _AnswerPart:
    """The answers of the candidate at a length.

    Args:
        faults: the number of each fault; see `Written`.
        share: the share of questions with a fault that the base's second answer does not have, with the bounds that
            decide.
    """

    name: str
    faults: Mapping[str, int]
    share: Interval
    verdict: Verdict


@dataclass(frozen=True)
class DivergenceDecision:
    """The decision on a comparison.

    Args:
        margin: the largest mean divergence that is accepted, in nats.
        differences: mean divergences beyond the noise of both at the lengths at which the candidate differs at all.
        noisier: the lengths at which the candidate differs from itself by more than the base from itself.
        looks: the numbers of questions at all looks until now.
    """

    margin: float
    parts: Sequence[StretchComparison]
    answers: Sequence[_AnswerPart]
    differences: Mapping[int | None, float]
    noisier: Sequence[int | None]
    looks: Looks
    verdict: Verdict


def decide(
    points: Sequence[Point],
    written: Sequence[Written],
    margin: float,
    looks: Looks | None = None,
) -> DivergenceDecision:
    """Decide on each length and stretch, and on all of them.

    The error of calling a candidate worse is divided among the parts. A candidate passes if it passes in each part.
    With a margin of 0, it is worse if it differs from the base at a length (see `find_differing_lengths`), and passes
    if it does not, although the questions of each length are enough to find a difference in all of them.

    Args:
        margin: the largest mean divergence that is accepted, in nats. 0 for none beyond the noise of both.
        looks: the numbers of questions at all looks until now, or None for a single look.
    """
    questions = _count_questions(points, written)
    looks = looks or (max(1, sum(questions.values())),)
    # As a note, it is said once, about questions that are the same at all looks.
    differences = find_differing_lengths(
        points, written, looks[-1:] if margin else looks
    )
    noisier = _find_noisier_lengths(points, looks)
    groups: dict[tuple[int | None, str], list[Point]] = defaultdict(list)
    for point in points:
        groups[point.length, point.stretch].append(point)
    order = sorted(groups.items(), key=lambda item: (item[0][0] or 0, item[0][1]))
    if margin:
        levels = _Levels(looks, len(groups), max(len(questions), 1))
        parts = []
        for _, rows in order:
            parts.append(_judge_part(rows, margin, levels))
        answers = _judge_answers(written, levels)
    else:
        level = level_of_look(looks, ONE_SIDED)
        error = level / len(questions) if questions else level
        verdicts = {}
        for length, count in questions.items():
            verdicts[length] = _judge_any(length, count, differences, noisier, error)
        parts = []
        for (length, _), rows in order:
            parts.append(_describe_part(rows, verdicts[length]))
        answers = []
        for length, faults in _by_length(written).items():
            answers.append(_describe_answers(length, faults, verdicts[length]))
    decided = [part.verdict for part in parts]
    if not decided:
        decided.append(Verdict.UNDECIDED)
    decided += [part.verdict for part in answers]
    return DivergenceDecision(
        margin=margin,
        parts=parts,
        answers=answers,
        differences=differences,
        noisier=noisier,
        looks=looks,
        verdict=combine_verdicts(decided),
    )


class _Levels:
    """The one-sided levels of all tests.

    Bets have one error for all looks. Exact tests of single looks have the level of the last one.

    Args:
        parts: number of lengths and stretches.
        lengths: number of lengths.
    """

    def __init__(
        self,
        looks: Looks,
        parts: int,
        lengths: int,
    ):
        others = 2 * parts + lengths
        self.divergence = OF_DIVERGENCE * ONE_SIDED / max(parts, 1)
        self.other = (1 - OF_DIVERGENCE) * ONE_SIDED / others
        self.other_at_look = level_of_look(looks, self.other)
        # A look at fewer questions cannot pass, so it has no part of this error.
        able = tuple(look for look in looks if look >= count_fewest() * lengths)
        can_pass = looks[-1] in able
        if can_pass:
            self.passing = level_of_look(able, ONE_SIDED)
        else:
            self.passing = 0.0


def _by_length(written: Sequence[Written]) -> dict[int | None, list[Written]]:
    lengths: dict[int | None, list[Written]] = defaultdict(list)
    for row in sorted(written, key=lambda row: row.length or 0):
        lengths[row.length].append(row)
    return lengths


def _count_questions(
    points: Sequence[Point],
    written: Sequence[Written],
) -> dict[int | None, int]:
    groups: dict[int | None, set[str]] = defaultdict(set)
    for point in points:
        groups[point.length].add(point.group)
    for answer in written:
        groups[answer.length].add(answer.group)
    questions = {}
    for length, names in groups.items():
        questions[length] = len(names)
    return questions


def _judge_part(
    rows: Sequence[Point],
    margin: float,
    levels: _Levels,
) -> StretchComparison:
    """Decide on a part by its divergence, its loss, and its most likely tokens."""
    groups = [row.group for row in rows]
    most = CAPS * margin
    divergence = _judge(
        group_means([row.excess for row in rows], groups),
        _Measure(
            margin, most, find_floor([row.noise or 0.0 for row in rows], margin, most)
        ),
        levels.divergence,
        levels.passing,
    )
    # Gains can be as large as losses.
    loss = _judge(
        group_means([row.excess_loss for row in rows], groups),
        _Measure(margin, most, most),
        levels.other,
        levels.passing,
    )
    change = largest_change(margin)
    changes = []
    for row in rows:
        changes.append(0.0 if row.noise_same is None else 1.0 - row.noise_same)
    changed = _judge(
        group_means([row.changed_share for row in rows], groups),
        _Measure(change, 1.0, find_floor(changes, change, 1.0)),
        levels.other,
        levels.passing,
    )
    return StretchComparison(
        name=f"{label(rows[0].length)} {rows[0].stretch}".strip(),
        divergence=divergence.bounds,
        loss=loss.bounds,
        changed=changed.bounds,
        same=fmean(row.same for row in rows),
        noise=fmean(row.noise or 0.0 for row in rows),
        verdict=combine_verdicts([divergence.verdict, loss.verdict, changed.verdict]),
    )


def find_floor(noises: Sequence[float], margin: float, most: float) -> float:
    """Return how far below 0 a difference less the noise of the base can be.

    Args:
        noises: the noise that was subtracted from each value.
        most: the largest floor.
    """
    return min(max(_NOISE_ROOM * max(noises), NOISY * margin), most)


def largest_change(margin: float) -> float:
    """Return the accepted share of tokens with another most likely token.

    It is the largest total variation of distributions with this divergence (Pinsker's inequality).
    """
    return min(math.sqrt(margin / 2), 0.5)


class _Measure(NamedTuple):
    """The limits of a measure of a part.

    Args:
        margin: the accepted mean.
        most: larger values count as this one in the upper bound.
        floor: smaller values count as minus this one in the lower bound.
    """

    margin: float
    most: float
    floor: float


class _Judged(NamedTuple):
    """The mean of a measure with the bounds that decide, and the verdict."""

    bounds: Interval
    verdict: Verdict


def _judge(
    values: Floats,
    measure: _Measure,
    error: float,
    passing: float,
) -> _Judged:
    """Decide on a measure of a part.

    Args:
        values: shape (questions,).
        error: the one-sided error of "worse" at all looks.
        passing: the level of "no worse" at this look.
    """
    high = upper_bound(values, measure.margin, measure.most, ONE_SIDED, passing)
    low = lower_bound(values, measure.floor, error)
    verdict = Verdict.UNDECIDED
    if low > measure.margin:
        verdict = Verdict.WORSE
    elif high < measure.margin:
        verdict = Verdict.NO_WORSE
    return _Judged(
        Interval(
            mean=float(values.mean()),
            low=low,
            high=high,
            n=len(values),
        ),
        verdict,
    )


def _judge_answers(written: Sequence[Written], levels: _Levels) -> list[_AnswerPart]:
    """Decide by the faults of answers at each length."""
    from scipy.stats import binom

    parts = []
    for length, rows in _by_length(written).items():
        values = group_means(
            [float(row.counts) for row in rows], [row.group for row in rows]
        )
        faulty = int((values > 0.5).sum())
        high = upper_bound(values, _FAULTY_SHARE, 1.0, ONE_SIDED, levels.passing)
        p_value = float(binom.sf(faulty - 1, len(values), _FAULTY_SHARE))
        if high < _FAULTY_SHARE:
            verdict = Verdict.NO_WORSE
        else:
            verdict = Verdict.UNDECIDED
        if p_value < levels.other_at_look:
            verdict = Verdict.WORSE
        described = _describe_answers(length, rows, verdict)
        interval = Interval(
            mean=float(values.mean()),
            low=described.share.low,
            high=min(high, 1.0),
            n=len(values),
        )
        parts.append(replace(described, share=interval))
    return parts


def _judge_any(
    length: int | None,
    questions: int,
    differences: Mapping[int | None, float],
    noisier: Sequence[int | None],
    level: float,
) -> Verdict:
    """Decide on a length with a margin of 0."""
    if length in differences:
        return Verdict.WORSE
    # A candidate that only has more noise may have another load, or a fault.
    has_power = sign_test(questions, 0) < level
    if has_power and length not in noisier:
        return Verdict.NO_WORSE
    return Verdict.UNDECIDED


def _describe_part(rows: Sequence[Point], verdict: Verdict) -> StretchComparison:
    groups = [row.group for row in rows]
    divergence = mean_interval([row.shift for row in rows], groups, ValueKind.NATS)
    loss = mean_interval([row.excess_loss for row in rows], groups, ValueKind.NATS)
    changed = mean_interval(
        [row.changed_share for row in rows], groups, ValueKind.DIFFERENCE
    )
    return StretchComparison(
        name=f"{label(rows[0].length)} {rows[0].stretch}".strip(),
        divergence=divergence,
        loss=loss,
        changed=changed,
        same=fmean(row.same for row in rows),
        noise=fmean(row.divergence - row.shift for row in rows),
        verdict=verdict,
    )


def _describe_answers(
    length: int | None,
    rows: Sequence[Written],
    verdict: Verdict,
) -> _AnswerPart:
    faults = Counter(row.fault for row in rows if row.counts)
    groups = [row.group for row in rows]
    interval = mean_interval([float(row.counts) for row in rows], groups)
    return _AnswerPart(
        name=f"{label(length)} answers".strip(),
        faults=faults,
        share=interval,
        verdict=verdict,
    )


_Measured = defaultdict[int | None, defaultdict[str, list[float]]]
"""What was measured of the questions of each length, by their clusters."""


def find_differing_lengths(
    points: Sequence[Point],
    written: Sequence[Written] = (),
    looks: Looks = (1,),
) -> dict[int | None, float]:
    """Return the lengths at which the sides differ from each other by more than each from itself.

    The values are the mean divergences beyond the noise, in nats. If both sides are the same build, all four readings
    of a text are exchangeable, so the sign of a question's shift is chance. It stays so, about, if the noise of both
    has other sizes. Only questions that both read twice count.
    """
    shifts: _Measured = defaultdict(lambda: defaultdict(list))
    for point in points:
        if point.noise is not None:
            shifts[point.length][point.group].append(point.shift)
    for row in written:
        if row.noise is not None and bool(row.fault) != bool(row.noise):
            shifts[row.length][row.group].append(1.0 if row.fault else -1.0)
    return _find_positive(shifts, looks)


def _find_noisier_lengths(points: Sequence[Point], looks: Looks) -> list[int | None]:
    """Return the lengths at which the candidate differs from itself by more than the base from itself."""
    noises: _Measured = defaultdict(lambda: defaultdict(list))
    for point in points:
        if point.noise is not None and point.candidate_noise is not None:
            noises[point.length][point.group].append(
                point.candidate_noise - point.noise
            )
    return list(_find_positive(noises, looks))


def _find_positive(measured: _Measured, looks: Looks) -> dict[int | None, float]:
    """Return the lengths at which more questions are above 0 than by chance, with the means over questions."""
    level = level_of_look(looks, ONE_SIDED)
    lengths = {}
    for length, questions in sorted(measured.items(), key=lambda item: item[0] or 0):
        means = [fmean(values) for values in questions.values()]
        if _sign_p_value(means) * len(measured) < level:
            lengths[length] = fmean(means)
    return lengths


def _sign_p_value(values: Sequence[float]) -> float:
    """Return the probability that so many values are positive by chance."""
    array = np.asarray(values)
    return sign_test(int((array > TINY).sum()), int((array < -TINY).sum()))


def visible_divergence(
    questions: int,
    parts: int,
    margin: float,
    ratio: float,
    power: float,
) -> float:
    """Return about the smallest mean divergence of a part that is called worse with a probability.

    The divergences of questions are drawn from gamma distributions.

    Args:
        ratio: the standard deviation of a part's divergence between questions, by its mean.

    Returns:
        Nats, or infinity if even the largest of `_VISIBLE` margins is not seen.
    """
    spread = max(ratio, 0.01) ** 2
    drawn = np.random.default_rng(0).gamma(1 / spread, spread, (_DRAWN, questions))
    floor = NOISY * margin
    error = OF_DIVERGENCE * ONE_SIDED / parts
    for times in _VISIBLE:
        mean = margin * times
        if are_above(mean * drawn, margin, floor, error).mean() >= power:
            return mean
    return math.inf


def _measure_spread(points: Sequence[Point]) -> float | None:
    """Return the largest ratio of a part's standard deviation to its mean, if that is known."""
    groups: dict[tuple[int | None, str], list[Point]] = defaultdict(list)
    for point in points:
        groups[point.length, point.stretch].append(point)
    ratios = []
    for rows in groups.values():
        values = group_means([row.excess for row in rows], [row.group for row in rows])
        if len(values) > 2 and values.mean() > TINY:
            ratios.append(float(values.std(ddof=1) / values.mean()))
    return max(ratios, default=None)


def describe_sample(
    asked: Sequence[Asked],
    margin: float,
    power: float,
    way: Way,
    kept: Sequence[Point] = (),
) -> str:
    """Say which requests a comparison sends, and what it finds.

    Args:
        kept: what an earlier command has compared.
    """
    count = len({question.group for question in asked})
    lengths = max(len({question.length for question in asked}), 1)
    questions = count // lengths
    if not margin:
        shares = smallest_shares(
            questions, level_of_look((1,), ONE_SIDED) / lengths, power
        )
        exact, noisy = ("none" if value is None else f"{value:.0%}" for value in shares)
        return (
            f"{len(asked)} questions, {way.count(True) * len(asked)} requests:"
            f" {way.twice}. A candidate is found with a probability of {format_share(power)}"
            f" if it differs from BASE in {exact} of the {questions} questions of a"
            " length; if they are not deterministic, if they are farther from each"
            f" other than from themselves in {noisy} of them (--max-divergence 0)."
        )
    twice = min(count_twice(lengths) * lengths, len(asked))
    more = way.count(True) - way.count()
    measured = _measure_spread(kept)
    ratio = _SPREAD_RATIO if measured is None else measured
    origin = "as measured here"
    if measured is None:
        origin = "an assumption until a command has measured it"
    smallest = visible_divergence(
        questions, lengths * way.stretches, margin, ratio, power
    )
    visible = "of no size"
    if not math.isinf(smallest):
        visible = f"of at least {format_decimals(smallest, 3)} nats"
    few = ""
    if questions < count_fewest():
        few = (
            f" No candidate can pass with {questions} questions of a length: it takes"
            f" {count_fewest()} without any divergence."
        )
    return (
        f"{len(asked)} questions, {way.count() * len(asked) + more * twice} requests,"
        f" and {more * (len(asked) - twice)} more if BASE is not deterministic; a"
        " candidate that is clearly worse takes fewer. A part whose mean divergence is"
        f" {visible} is called worse with a probability of {format_share(power)}, if its"
        f" standard deviation between questions is {format_decimals(ratio, 1)} times its mean,"
        f" {origin}; up to {margin:g} nats are accepted (--max-divergence).{few}"
    )


def parts_table(decision: DivergenceDecision, way: Way) -> Table:
    """Return the table of distributions that the terminal shows."""
    numbers = ("questions", "divergence", "noise", "same token", "loss")
    rows = []
    for part in decision.parts:
        cells = (
            part.name,
            str(part.divergence.n),
            format_interval(part.divergence, lambda value: format_decimals(value, 3)),
            format_decimals(part.noise, 3),
            format_share(part.same),
            format_interval(part.loss, format_signed_decimals),
            _verdict_text(part.verdict),
        )
        rows.append(cells)
    ends = f"The ends are those of {LEVEL_TEXT} intervals."
    if decision.margin:
        most = f"{CAPS * decision.margin:g}"
        ends = f"The ends are the bounds that decide, in which a question counts as at most {most} nats."
    about = (
        f"{way.about} Divergence is a lower bound, from the most likely tokens of both,"
        " less the noise: how far the base is from itself the second time. Loss is"
        f" what the candidate loses on the same tokens. Both are in nats. {ends}"
    )
    return text_table(
        "Distributions", ("part", *numbers, "verdict"), rows, about, right=numbers
    )


def answers_table(decision: DivergenceDecision) -> Table:
    """Return the table of what is wrong with the candidate's answers."""
    numbers = ("questions", "faulty")
    rows = []
    for part in decision.answers:
        faults = []
        for fault, count in sorted(part.faults.items()):
            faults.append(f"{count} {fault}")
        cells = (
            part.name,
            str(part.share.n),
            format_interval(part.share, format_share),
            ", ".join(faults) or "none",
            _verdict_text(part.verdict),
        )
        rows.append(cells)
    about = (
        "Faulty answers are empty, end before the base's (cut), go on after it"
        " (longer), are told as another text, or do not follow the candidate's own"
        " distributions (unlike), where the base's second answer does not."
    )
    return text_table(
        "Answers of the candidate",
        ("part", *numbers, "faults", "verdict"),
        rows,
        about,
        right=numbers,
    )


def _verdict_text(verdict: Verdict) -> str:
    return verdict.name.lower().replace("_", " ")


def explain(decision: DivergenceDecision) -> str:
    """Say what a verdict means."""
    margin = decision.margin
    if decision.verdict is Verdict.NO_WORSE and margin:
        most = CAPS * margin
        return (
            "NO WORSE: in each part the mean divergence that can be seen, and the mean"
            f" loss, are below {margin:g} nats, where a question counts as at most"
            f" {most:g} nats: except for less than {format_share(_FAULTY_SHARE)} of the"
            " questions."
        )
    if decision.verdict is Verdict.NO_WORSE:
        return "NO WORSE: no divergence beyond the noise of both was found."
    if decision.verdict is Verdict.WORSE and not margin:
        return "WORSE: CANDIDATE differs from BASE by more than both from themselves."
    if decision.verdict is Verdict.WORSE:
        return f"WORSE: {'; '.join(_list_reasons(decision))}."
    if not margin and decision.noisier:
        return (
            "CANNOT TELL: CANDIDATE differs from itself by more than BASE from itself,"
            " because of another load or a fault; give both servers the same load and"
            " ask again with another --suite."
        )
    if not margin:
        return "CANNOT TELL: ask more questions with -m."
    needed = count_fewest()
    return (
        f"CANNOT TELL: ask more questions with -m. Without any divergence, {needed} of"
        f" each length are enough; the closer it is to {margin:g} nats, the more are"
        " needed."
    )


def _list_reasons(decision: DivergenceDecision) -> list[str]:
    margin = decision.margin
    change = largest_change(margin)
    worse = []
    for part in decision.parts:
        if part.verdict is Verdict.WORSE:
            worse.append(part)
    reasons = []
    if any(part.divergence.low > margin for part in worse):
        reasons.append(
            f"in a part the divergence is above {margin:g} nats, beyond chance"
        )
    if any(part.loss.low > margin for part in worse):
        reasons.append(f"in a part the loss is above {margin:g} nats, beyond chance")
    if any(part.changed.low > change for part in worse):
        reasons.append(
            f"in a part more than {format_share(change)} of the tokens have another most"
            " likely token, beyond chance"
        )
    if any(part.verdict is Verdict.WORSE for part in decision.answers):
        reasons.append(
            f"more than {format_share(_FAULTY_SHARE)} of the answers of a length are faulty, beyond chance"
        )
    return reasons


def explain_differences(decision: DivergenceDecision) -> str:
    """Say at which lengths the candidate differs from the base at all."""
    lengths = []
    for length, value in decision.differences.items():
        lengths.append(f"{label(length)} ({value:.1g} nats)".strip())
    if decision.margin:
        beside = "Beside the verdict: the"
    else:
        beside = "The"
    shown = ", ".join(lengths)
    return f"{beside} candidate differs from the base by more than both from themselves at {shown}."


def decision_json(decision: DivergenceDecision, requests: int) -> dict[str, Any]:
    """Return the results for programs."""
    parts = []
    for part in decision.parts:
        parts.append(
            {
                "part": part.name,
                "divergence": part.divergence.to_json(),
                "loss": part.loss.to_json(),
                "changed": part.changed.to_json(),
                "same": part.same,
                "noise": part.noise,
                "verdict": part.verdict.name.lower(),
            }
        )
    answers = []
    for answer in decision.answers:
        answers.append(
            {
                "part": answer.name,
                "faulty": answer.share.to_json(),
                "faults": dict(answer.faults),
                "verdict": answer.verdict.name.lower(),
            }
        )
    differing = []
    for length, value in decision.differences.items():
        differing.append({"length": length, "divergence": value})
    return {
        "verdict": decision.verdict.name.lower(),
        "requests": requests,
        "max_divergence": decision.margin,
        "parts": parts,
        "answers": answers,
        "differences": differing,
        "noisier": list(decision.noisier),
        "looks": list(decision.looks),
    }
