"""Compares the distributions of a gate's two arms at the same tokens, which needs few requests.

The base answers each question once. Then both arms read the same texts: the prompt with the base's answer, and the
prompt with the gold answer. At the tokens of both answers, and at stretches of the prompt, their most likely tokens
tell how far the distributions differ.

A server that gives log-probabilities only of the tokens that it writes cannot read texts. Then both arms answer, and
their answers are compared up to the first token that differs, because up to there both have written the same text.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

from helm.common.request import Request, RequestResult

from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import decimals, interval_text, share, signed_decimals
from helm_longctx.errors import InputError
from helm_longctx.models.apis.usage import Usage, usage_of
from helm_longctx.models.scoring import (
    SEPARATOR,
    AnswerRequest,
    Distribution,
    SpanRequest,
    distributions_of,
)
from helm_longctx.models.token_kinds import find_kind
from helm_longctx.results.boards import label
from helm_longctx.results.statistics.comparison import sign_test, smallest_shares
from helm_longctx.results.statistics.intervals import Interval, mean_interval, standard_error
from helm_longctx.results.statistics.noninferiority import ONE_SIDED, Verdict

STRETCH = 160
"""Characters of a stretch of the prompt whose tokens are compared."""

DEPTHS = (10, 30, 50, 70, 90)
"""Where the stretches begin, in percent of the prompt."""

ANSWER_TOKENS = 32
"""The most tokens of the base's answer."""

TOP = 5
"""Number of the most likely tokens, which every server gives."""

QUESTIONS = 8
"""Number of questions of each run, unless `-m` says another one."""

SMALLEST = 1e-9
"""The least probability of all other tokens together, which rounding can make negative."""

SPREAD = 0.05
"""Assumed standard deviation of a part's divergence between questions, in nats, for the power that is told before."""


class Way(NamedTuple):
    """How distributions are compared: the number of requests about a question, and of places.

    Args:
        base, candidate: requests to each arm.
        again: further requests to the base, which then does everything twice.
        places: parts of each length.
        twice, about: what the base does twice, and what the table says.
    """

    base: int
    candidate: int
    again: int
    places: int
    twice: str
    about: str

    def count(self, reads_twice: bool = False) -> int:
        """Return the number of requests about a question."""
        return self.base + self.candidate + self.again * reads_twice


TEXTS = Way(3, 2, 2, len(DEPTHS) + 2, "reads each text twice", "Both read the same texts.")
"""Both arms read the same texts. The base also writes the answer."""

ANSWERS = Way(
    1, 1, 1, 1, "answers each twice", "Answers are compared, up to the first token that differs."
)
"""Both arms answer."""

TWICE = 2
"""The first questions of a comparison, which the base reads twice, to see how far it differs from itself."""

LEAST_REST = 0.01
"""The least probability of all other tokens by which a change of a log-probability is divided."""

TINY = 1e-6
"""Divergences that differ by less are equal, in nats: log-probabilities are told with six digits."""

NOISY = 0.1
"""If the base differs from itself by more than this share of the margin, it reads the texts of all questions twice."""


class Asked(NamedTuple):
    """A question.

    Args:
        length: the length; None if the benchmark has no lengths.
        prompt: the prompt as a completion, or the last turn of a chat.
        gold: the first gold answer.
        group: the cluster of the question.
        messages: the earlier turns of a chat; None for a completion.
    """

    length: int | None
    prompt: str
    gold: str
    group: str
    messages: Sequence[Mapping[str, Any]] | None = None

    @property
    def text(self) -> str:
        """All turns, to estimate their tokens."""
        return "\n".join([*(str(turn["content"]) for turn in self.messages or ()), self.prompt])


class Point(NamedTuple):
    """What was compared of a question at one place.

    A token is of the kinds of itself and of the token before it, because a fault of a kind can show in how probable it
    is, and in what follows it.

    Args:
        place: `answer`, `gold answer`, or the depth of a stretch.
        divergence: mean lower bound of the divergence of the candidate from the base, in nats.
        same: share of the tokens at which both have the same most likely token.
        loss: mean log-probability of the tokens by the base minus that by the candidate, in nats.
        noise: mean divergence of the base from itself, when it reads the same text again; None if it did not.
        kinds: for each kind of tokens their number, and how far the arms' log-probabilities of them are apart, less the
            same of the base and its second reading: the mean, and the mean of what is divided by the probability of all
            other tokens. A change of all logits by the same size moves the log-probability of a likely token less. The
            entry of all tokens has an empty name.
    """

    length: int | None
    place: str
    group: str
    divergence: float
    same: float
    loss: float
    noise: float | None = None
    kinds: Mapping[str, tuple[int, float, float]] = {}

    @property
    def excess(self) -> float:
        """The divergence that is not the base's own noise."""
        return self.divergence - (self.noise or 0.0)


def divergence(base: Distribution, candidate: Distribution) -> float:
    """Return a lower bound of the Kullback-Leibler divergence at a token, in nats.

    It is the divergence of what both arms tell: the tokens that are among the most likely ones of both, and all others
    as one. Putting tokens together never makes a divergence larger.
    """
    first, second = ({**each.top, each.text: each.logprob} for each in (base, candidate))
    shared = first.keys() & second.keys()
    pairs = [(math.exp(first[text]), math.exp(second[text])) for text in shared]
    rest = (
        tuple(max(1 - math.fsum(column), SMALLEST) for column in zip(*pairs, strict=True))
        if pairs
        else (1.0, 1.0)
    )
    return max(
        math.fsum(p * math.log(p / max(q, SMALLEST)) for p, q in [*pairs, rest] if p > 0), 0.0
    )


Send = Callable[[Request], RequestResult]
"""(request) → its result. Raises a `FailureError` if there is none."""


def compare(
    asked: Asked,
    arms: Sequence[Send],
    deployments: tuple[str, str],
    way: Way,
    reads_twice: bool = False,
) -> tuple[list[Point], Usage | None]:
    """Ask both arms about a question; return what was compared, and the usage of the base's answer.

    Args:
        arms: send requests to the base and to the candidate.
        reads_twice: whether the base reads or answers again, as a candidate that is equal to it.

    Raises:
        InputError: the arms divide the same text into other tokens.
        FailureError: a request has no answer.
    """
    base, candidate = deployments
    fields = {"prompt": asked.prompt, "max_tokens": ANSWER_TOKENS, "temperature": 0}
    if way is TEXTS:
        answer = arms[0](Request(base, base, **fields))
        return list(
            compare_texts(asked, answer.completions[0].text, arms, deployments, reads_twice)
        ), usage_of(answer)
    asks = partial(AnswerRequest, messages=asked.messages, top=TOP, **fields)
    results = [arms[0](asks(base, base)), arms[1](asks(candidate, candidate))]
    if reads_twice:
        results.append(arms[0](asks(base, base, random=AGAIN)))
    one, other, *again = (distributions_of(result)[0] for result in results)
    points = (
        [_measure(asked, "answer", one, other, again[0] if again else None)]
        if one and other
        else []
    )
    return points, usage_of(results[0])


AGAIN = "again"
"""The value of a request's `random` with which the request cache does not answer."""


def compare_texts(
    asked: Asked,
    answer: str,
    arms: Sequence[Send],
    deployments: tuple[str, str],
    reads_twice: bool = False,
) -> Iterator[Point]:
    """Let both arms read a question with its answers, and yield what was compared; see `compare`.

    Args:
        answer: the base's answer.
    """
    gap = "" if asked.prompt[-1:].isspace() else SEPARATOR
    size = len(asked.prompt)
    stretches = {
        f"{depth} %": (size * depth // 100, size * depth // 100 + STRETCH) for depth in DEPTHS
    }
    stretches = {place: span for place, span in stretches.items() if span[1] <= size}
    texts = [
        (asked.prompt + gap + asked.gold, {"gold answer": (size, size + len(gap + asked.gold))})
    ]
    if answer:
        texts.append((asked.prompt + answer, {"answer": (size, size + len(answer))}))
    texts[-1] = (texts[-1][0], {**stretches, **texts[-1][1]})
    readers: list[tuple[Send, str, str | None]] = [
        (*each, None) for each in zip(arms, deployments, strict=True)
    ]
    if reads_twice:
        readers.append((arms[0], deployments[0], AGAIN))
    for text, places in texts:
        found = [
            distributions_of(
                send(
                    SpanRequest(
                        name,
                        name,
                        prompt=text,
                        spans=tuple(places.values()),
                        top=TOP,
                        random=chance,
                    )
                )
            )
            for send, name, chance in readers
        ]
        for place, one, other, *again in zip(places, *found, strict=True):
            _check_tokens(one, other, deployments)
            if one:
                yield _measure(asked, place, one, other, again[0] if again else None)


def _measure(
    asked: Asked,
    place: str,
    one: Sequence[Distribution],
    other: Sequence[Distribution],
    again: Sequence[Distribution] | None,
) -> Point:
    """Compare the distributions of both arms, and of the base's second reading, up to the first token that differs."""
    pairs = pair_tokens(one, other)
    repeated = pair_tokens(one, one if again is None else again)
    return Point(
        asked.length,
        place,
        asked.group,
        fmean(divergence(a, b) for a, b in pairs),
        fmean(a.best == b.best for a, b in pairs),
        fmean(a.logprob - b.find_logprob(a.text) for a, b in pairs),
        fmean(divergence(a, b) for a, b in repeated) if again else None,
        _average_kinds(pairs, repeated),
    )


def pair_tokens(
    one: Sequence[Distribution], other: Sequence[Distribution]
) -> list[tuple[Distribution, Distribution]]:
    """Return the distributions after the same text: the last pair is that at the first token that differs."""
    pairs = list(zip(one, other, strict=False))
    end = next((n for n, (a, b) in enumerate(pairs) if a.text != b.text), len(pairs))
    return pairs[: end + 1]


def _check_tokens(
    one: Sequence[Distribution], other: Sequence[Distribution], deployments: tuple[str, str]
) -> None:
    texts = ([each.text for each in one], [each.text for each in other])
    if texts[0] != texts[1]:
        kind = find_kind(
            "".join(next((pair for pair in zip(*texts, strict=False) if pair[0] != pair[1]), ()))
        )
        raise InputError(
            f"gate: {deployments[0]} and {deployments[1]} divide the same text into different tokens, first in {kind},"
            " so their distributions cannot be compared; give both the same tokenizer, or leave out --logprobs"
        )


def _average_kinds(
    pairs: Sequence[tuple[Distribution, Distribution]],
    repeated: Sequence[tuple[Distribution, Distribution]],
) -> dict[str, tuple[int, float, float]]:
    """Return how far log-probabilities are apart for each kind of tokens; see `Point.kinds`."""
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    before = ""
    for (a, b), (_, second) in zip(pairs, repeated, strict=False):
        change = abs(a.logprob - b.find_logprob(a.text)) - abs(
            a.logprob - second.find_logprob(a.text)
        )
        for kind in {"", *(find_kind(text) for text in (before, a.text) if text)}:
            values[kind].append((change, change / max(1 - math.exp(a.logprob), LEAST_REST)))
        before = a.text
    return {
        kind: (
            len(rows),
            fmean(change for change, _ in rows),
            fmean(relative_change for _, relative_change in rows),
        )
        for kind, rows in values.items()
    }


@dataclass(frozen=True)
class Part:
    """The comparison of a part of the places.

    Args:
        name: the length and the place.
        divergence, same, loss: means over questions with their 95 % intervals; see `Point.excess` and `Point`.
        noise: the mean of what was subtracted from the divergences.
        verdict: whether the mean divergence is certainly above the margin, or certainly below it.
    """

    name: str
    divergence: Interval
    same: Interval
    loss: Interval
    noise: float
    verdict: Verdict


def decide(points: Sequence[Point], margin: float) -> tuple[list[Part], Verdict]:
    """Decide on each length and place, and on all of them.

    The error of calling a candidate worse is divided among the parts. A candidate passes if it passes in each part.
    With a margin of 0, it is worse if it differs from the base at a length (see `find_differing_lengths`), and passes
    if it does not, although the questions of each length are enough to find a difference in all of them.

    Args:
        margin: the largest mean divergence that is accepted, in nats; 0 for none beyond the base's own noise.
    """
    groups: dict[tuple[int | None, str], list[Point]] = defaultdict(list)
    for point in points:
        groups[point.length, point.place].append(point)
    order = sorted(groups.items(), key=lambda each: (each[0][0] or 0, each[0][1]))
    differing = find_differing_lengths(points)
    questions = {
        length: len({row.group for row in points if row.length == length}) for length, _ in groups
    }
    parts = []
    for (length, place), rows in order:
        if margin:
            verdict = _judge_mean(rows, margin, len(groups))
        elif length in differing:
            verdict = (
                Verdict.WORSE
                if _test_signs(rows)[0] * len(groups) < ONE_SIDED
                else Verdict.UNDECIDED
            )
        else:
            has_power = sign_test(questions[length], 0) * len(questions) < ONE_SIDED
            verdict = Verdict.NO_WORSE if has_power else Verdict.UNDECIDED
        clusters = [row.group for row in rows]
        columns = (
            [row.excess for row in rows],
            [row.same for row in rows],
            [row.loss for row in rows],
        )
        mean, same, loss = (mean_interval(values, clusters) for values in columns)
        noise = fmean(row.noise or 0.0 for row in rows)
        parts.append(Part(f"{label(length)} {place}".strip(), mean, same, loss, noise, verdict))
    verdicts = {Verdict.WORSE} if differing and not margin else {part.verdict for part in parts}
    worst = next(
        (each for each in (Verdict.WORSE, Verdict.UNDECIDED) if each in verdicts), Verdict.NO_WORSE
    )
    return parts, worst if parts else Verdict.UNDECIDED


def _judge_mean(rows: Sequence[Point], margin: float, parts: int) -> Verdict:
    """Return whether the mean divergence of a part is certainly above the margin, or certainly below it."""
    clusters = [row.group for row in rows]
    excesses = [row.excess for row in rows]
    mean = fmean(excesses)
    error = standard_error(excesses, clusters)
    freedom = len(set(clusters)) - 1
    if freedom > 0 and mean - _quantile(ONE_SIDED / parts, freedom) * error > margin:
        return Verdict.WORSE
    is_below = freedom > 0 and mean + _quantile(ONE_SIDED, freedom) * error < margin
    return Verdict.NO_WORSE if is_below else Verdict.UNDECIDED


def _quantile(level: float, freedom: int) -> float:
    """Return the quantile of Student's t with a one-sided level."""
    from scipy.stats import t

    return float(t.isf(level, freedom))


def find_differing_lengths(points: Sequence[Point]) -> dict[int | None, float]:
    """Return the lengths at which the candidate differs from the base by more than the base from itself.

    The values are the mean divergences beyond the noise, in nats. If both arms are the same build, the candidate's
    reading and the base's second one are exchangeable, so the sign of a question's excess is chance. A text that the
    base read once counts with the largest noise of the others.
    """
    largest = max((point.noise for point in points if point.noise is not None), default=0.0)
    lengths: dict[int | None, list[Point]] = defaultdict(list)
    for point in points:
        lengths[point.length].append(
            point if point.noise is not None else point._replace(noise=largest)
        )
    tests = {
        length: _test_signs(rows)
        for length, rows in sorted(lengths.items(), key=lambda each: each[0] or 0)
    }
    return {
        length: mean
        for length, (p_value, mean) in tests.items()
        if p_value * len(tests) < ONE_SIDED
    }


def _test_signs(rows: Sequence[Point]) -> tuple[float, float]:
    """Return the probability that so many questions differ from the base by chance, and their mean divergence."""
    questions: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        questions[row.group].append(row.excess)
    excesses = list(map(fmean, questions.values()))
    return sign_test(
        sum(each > TINY for each in excesses), sum(each < -TINY for each in excesses)
    ), fmean(excesses)


def visible_divergence(
    questions: int, parts: int, margin: float, spread: float, power: float
) -> float:
    """Return the smallest mean divergence of a part that is called worse with a probability.

    Args:
        spread: the standard deviation of a part's divergence between questions, in nats.
    """
    if questions < 2:
        return math.inf
    quantiles = _quantile(ONE_SIDED / parts, questions - 1) + NormalDist().inv_cdf(power)
    return margin + quantiles * spread / math.sqrt(questions)


def describe_sample(asked: Sequence[Asked], margin: float, power: float, way: Way) -> str:
    """Say which requests a comparison sends, and what it finds."""
    count = len({each.group for each in asked})
    lengths = len({each.length for each in asked})
    if not margin:
        questions = count // max(lengths, 1)
        shares = smallest_shares(questions, ONE_SIDED / max(lengths, 1), power)
        exact, noisy = ("none" if each is None else f"{each:.0%}" for each in shares)
        return (
            f"{len(asked)} questions, {way.count(True) * len(asked)} requests: BASE {way.twice}. A candidate is found"
            f" with a probability of {share(power)} if it differs from BASE in {exact} of the {questions} questions of"
            f" a length; if BASE is not deterministic, if it is farther from BASE than BASE"
            f" from itself in {noisy} of them (--max-divergence 0)."
        )
    parts = lengths * way.places
    found = visible_divergence(count // max(lengths, 1), parts, margin, SPREAD, power)
    return (
        f"{len(asked)} questions, {way.count() * len(asked) + way.again * min(TWICE, len(asked))} requests, and"
        f" {way.again * max(len(asked) - TWICE, 0)} more if BASE is not deterministic. A part whose mean divergence is"
        f" at least {decimals(found, 3)} nats is called worse with a probability of {share(power)}, if it varies by"
        f" {SPREAD:g} nats between questions; up to {margin:g} nats are accepted (--max-divergence)."
    )


def parts_table(parts: Sequence[Part], way: Way) -> Table:
    """Return the table that the terminal shows."""
    numbers = ("questions", "divergence", "noise", "same token", "loss")
    rows = [
        (
            *(
                part.name,
                str(part.divergence.n),
                interval_text(part.divergence, lambda value: decimals(value, 3)),
            ),
            *(
                decimals(part.noise, 3),
                share(part.same.mean),
                interval_text(part.loss, signed_decimals),
            ),
            part.verdict.name.lower().replace("_", " "),
        )
        for part in parts
    ]
    about = (
        f"{way.about} Divergence is a lower bound, from the most likely tokens of both, less the noise: how far the"
        " base is from itself the second time. Loss is what the candidate loses on the same tokens. Both are in nats,"
        " with 95 % intervals."
    )
    return text_table("Distributions", ("part", *numbers, "verdict"), rows, about, right=numbers)


def explain(verdict: Verdict, margin: float) -> str:
    """Say what a verdict means."""
    below = f"the divergence that can be seen is below {margin:g} nats in each part."
    above = f"in a part the divergence is above {margin:g} nats, beyond chance."
    if not margin:
        below = "no divergence beyond BASE's own noise was found."
        above = "CANDIDATE differs from BASE by more than BASE from itself."
    return {
        Verdict.NO_WORSE: f"NO WORSE: {below}",
        Verdict.WORSE: f"WORSE: {above}",
        Verdict.UNDECIDED: "CANNOT TELL: ask more questions with -m.",
    }[verdict]


def explain_differences(differences: Mapping[int | None, float], margin: float) -> str:
    """Say at which lengths the candidate differs from the base at all."""
    lengths = ", ".join(
        f"{label(length)} ({value:.1g} nats)".strip() for length, value in differences.items()
    )
    beside = "Beside the verdict: the" if margin else "The"
    return (
        f"{beside} candidate differs from the base by more than the base from itself at {lengths}."
    )


def parts_json(
    parts: Sequence[Part], verdict: Verdict, differences: Mapping[int | None, float], requests: int
) -> dict[str, Any]:
    """Return the results for programs."""
    rows = [
        {
            "part": part.name,
            **{name: vars(getattr(part, name)) for name in ("divergence", "same", "loss")},
            "noise": part.noise,
            "verdict": part.verdict.name.lower(),
        }
        for part in parts
    ]
    differing = [{"length": length, "divergence": value} for length, value in differences.items()]
    return {
        "verdict": verdict.name.lower(),
        "requests": requests,
        "parts": rows,
        "differences": differing,
    }
