"""Compares the distributions of a gate's two arms at the same tokens, which needs few requests.

The base answers each question once. Then both arms read the same texts: the prompt with the base's answer, and the
prompt with the gold answer. At the tokens of both answers, and at stretches of the prompt, their most likely tokens
tell how far the distributions differ.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

from helm.common.request import Request, RequestResult

from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import decimals, interval_text, share, signed_decimals
from helm_longctx.errors import InputError
from helm_longctx.models.scoring import SEPARATOR, Distribution, SpanRequest
from helm_longctx.results.boards import label
from helm_longctx.results.statistics.comparison import sign_test
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

REQUESTS_OF_ARMS = (3, 2)
"""Requests for each question to the base, which also writes the answer, and to the candidate."""

REQUESTS = sum(REQUESTS_OF_ARMS)

READS = 2
"""Requests with which an arm reads the texts of a question."""

TWICE = 2
"""The first questions of a comparison, whose texts the base reads twice, to see how far it differs from itself."""

TINY = 1e-6
"""Divergences that differ by less are equal, in nats: log-probabilities are told with six digits."""

NOISY = 0.1
"""If the base differs from itself by more than this share of the margin, it reads the texts of all questions twice."""


class Asked(NamedTuple):
    """A question.

    Args:
        length: the length; None if the benchmark has no lengths.
        prompt: the prompt as a completion.
        gold: the first gold answer.
        group: the cluster of the question.
    """

    length: int | None
    prompt: str
    gold: str
    group: str


class Point(NamedTuple):
    """What was compared of a question at one place.

    Args:
        place: `answer`, `gold answer`, or the depth of a stretch.
        divergence: mean lower bound of the divergence of the candidate from the base, in nats.
        same: share of the tokens at which both have the same most likely token.
        loss: mean log-probability of the tokens by the base minus that by the candidate, in nats.
        noise: mean divergence of the base from itself, when it reads the same text again; None if it did not.
    """

    length: int | None
    place: str
    group: str
    divergence: float
    same: float
    loss: float
    noise: float | None = None

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
    rest = tuple(max(1 - math.fsum(column), SMALLEST) for column in zip(*pairs, strict=True)) if pairs else (1.0, 1.0)
    return max(math.fsum(p * math.log(p / max(q, SMALLEST)) for p, q in [*pairs, rest] if p > 0), 0.0)


def write_answer(asked: Asked, client: Any, deployment: str) -> RequestResult:
    """Return the base's answer to a question; raise an `InputError` if there is none."""
    request = Request(
        model=deployment,
        model_deployment=deployment,
        prompt=asked.prompt,
        max_tokens=ANSWER_TOKENS,
        temperature=0,
    )
    result: RequestResult = client.make_request(request)
    if not result.success:
        raise InputError(f"gate: {deployment} does not answer: {result.error}")
    return result


def compare(
    asked: Asked, answer: str, clients: Sequence[Any], deployments: tuple[str, str], reads_twice: bool = False
) -> Iterator[Point]:
    """Let both arms read a question with its answers, and yield what was compared.

    Args:
        answer: the base's answer.
        clients: the clients of the base and of the candidate.
        reads_twice: whether the base reads again, as a candidate that is equal to it.

    Raises:
        InputError: the arms have other tokens.
    """
    gap = "" if asked.prompt[-1:].isspace() else SEPARATOR
    size = len(asked.prompt)
    stretches = {f"{depth} %": (size * depth // 100, size * depth // 100 + STRETCH) for depth in DEPTHS}
    stretches = {place: span for place, span in stretches.items() if span[1] <= size}
    texts = [(asked.prompt + gap + asked.gold, {"gold answer": (size, size + len(gap + asked.gold))})]
    if answer:
        texts.append((asked.prompt + answer, {"answer": (size, size + len(answer))}))
    texts[-1] = (texts[-1][0], {**stretches, **texts[-1][1]})
    readers: list[tuple[Any, str, str | None]] = [(*each, None) for each in zip(clients, deployments, strict=True)]
    if reads_twice:
        # With a value of `random`, the request cache does not answer.
        readers.append((clients[0], deployments[0], "again"))
    for text, places in texts:
        found = [
            client.read_distributions(
                SpanRequest(name, name, prompt=text, spans=tuple(places.values()), top=TOP, random=chance)
            )
            for client, name, chance in readers
        ]
        for place, one, other, *again in zip(places, *found, strict=True):
            if [each.text for each in one] != [each.text for each in other]:
                raise InputError(
                    f"gate: {deployments[0]} and {deployments[1]} divide the same text into different tokens, so their"
                    " distributions cannot be compared; give both the same tokenizer, or leave out --logprobs"
                )
            pairs = list(zip(one, other, strict=True))
            if pairs:
                yield Point(
                    asked.length,
                    place,
                    asked.group,
                    fmean(divergence(a, b) for a, b in pairs),
                    fmean(a.best == b.best for a, b in pairs),
                    fmean(a.logprob - b.logprob for a, b in pairs),
                    fmean(map(divergence, one, again[0])) if again else None,
                )


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


def decide(points: Iterable[Point], margin: float) -> tuple[list[Part], Verdict]:
    """Decide on each length and place, and on all of them.

    The error of calling a candidate worse is divided among the parts. A candidate passes if it passes in each part.

    Args:
        margin: the largest mean divergence that is accepted, in nats.
    """
    groups: dict[tuple[int | None, str], list[Point]] = defaultdict(list)
    for point in points:
        groups[point.length, point.place].append(point)
    parts = [
        _decide(f"{label(length)} {place}".strip(), rows, margin, len(groups))
        for (length, place), rows in sorted(groups.items(), key=lambda each: (each[0][0] or 0, each[0][1]))
    ]
    verdicts = {part.verdict for part in parts}
    worst = next((each for each in (Verdict.WORSE, Verdict.UNDECIDED) if each in verdicts), Verdict.NO_WORSE)
    return parts, worst if parts else Verdict.UNDECIDED


def _decide(name: str, rows: Sequence[Point], margin: float, parts: int) -> Part:
    clusters = [row.group for row in rows]
    columns = ([row.excess for row in rows], [row.same for row in rows], [row.loss for row in rows])
    mean, same, loss = (mean_interval(values, clusters) for values in columns)
    error, freedom = standard_error(columns[0], clusters), len(set(clusters)) - 1
    verdict = Verdict.UNDECIDED
    if freedom > 0:
        if mean.mean - _quantile(ONE_SIDED / parts, freedom) * error > margin:
            verdict = Verdict.WORSE
        elif mean.mean + _quantile(ONE_SIDED, freedom) * error < margin:
            verdict = Verdict.NO_WORSE
    return Part(name, mean, same, loss, fmean(row.noise or 0.0 for row in rows), verdict)


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
    questions: dict[int | None, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        noise = largest if point.noise is None else point.noise
        questions[point.length][point.group].append(point.divergence - noise)
    found = {}
    for length, groups in sorted(questions.items(), key=lambda each: each[0] or 0):
        excesses = list(map(fmean, groups.values()))
        p_value = sign_test(sum(each > TINY for each in excesses), sum(each < -TINY for each in excesses))
        if p_value * len(questions) < ONE_SIDED:
            found[length] = fmean(excesses)
    return found


def visible_divergence(questions: int, parts: int, margin: float, spread: float, power: float) -> float:
    """Return the smallest mean divergence of a part that is called worse with a probability.

    Args:
        spread: the standard deviation of a part's divergence between questions, in nats.
    """
    if questions < 2:
        return math.inf
    quantiles = _quantile(ONE_SIDED / parts, questions - 1) + NormalDist().inv_cdf(power)
    return margin + quantiles * spread / math.sqrt(questions)


def describe_sample(asked: Sequence[Asked], margin: float, power: float) -> str:
    """Say which requests a comparison sends, and what it finds."""
    count = len({each.group for each in asked})
    lengths = len({each.length for each in asked})
    parts = lengths * (len(DEPTHS) + 2)
    found = visible_divergence(count // max(lengths, 1), parts, margin, SPREAD, power)
    return (
        f"{len(asked)} questions, {REQUESTS * len(asked) + READS * min(TWICE, len(asked))} requests, and"
        f" {READS * max(len(asked) - TWICE, 0)} more if BASE is not deterministic. A part whose mean divergence is at"
        f" least {decimals(found, 3)} nats is called worse with a probability of {share(power)}, if it varies by"
        f" {SPREAD:g} nats between questions; up to {margin:g} nats are accepted (--max-divergence)."
    )


def parts_table(parts: Sequence[Part]) -> Table:
    """Return the table that the terminal shows."""
    numbers = ("questions", "divergence", "noise", "same token", "loss")
    rows = [
        (
            *(part.name, str(part.divergence.n), interval_text(part.divergence, lambda value: decimals(value, 3))),
            *(decimals(part.noise, 3), share(part.same.mean), interval_text(part.loss, signed_decimals)),
            part.verdict.name.lower().replace("_", " "),
        )
        for part in parts
    ]
    about = (
        "Divergence is a lower bound, from the most likely tokens of both, less the noise: how far the base is from"
        " itself when it reads the same text again. Loss is what the candidate loses on the same"
        " tokens. Both are in nats, with 95 % intervals."
    )
    return text_table("Distributions", ("part", *numbers, "verdict"), rows, about, right=numbers)


def explain(verdict: Verdict, margin: float) -> str:
    """Say what a verdict means."""
    return {
        Verdict.NO_WORSE: f"NO WORSE: the divergence that can be seen is below {margin:g} nats in each part.",
        Verdict.WORSE: f"WORSE: in a part the divergence is above {margin:g} nats, beyond chance.",
        Verdict.UNDECIDED: "CANNOT TELL: ask more questions with -m.",
    }[verdict]


def explain_differences(differences: Mapping[int | None, float]) -> str:
    """Say at which lengths the candidate differs from the base at all."""
    lengths = ", ".join(f"{label(length)} ({value:.1g} nats)".strip() for length, value in differences.items())
    return f"Beside the verdict: the candidate differs from the base by more than the base from itself at {lengths}."


def parts_json(
    parts: Sequence[Part], verdict: Verdict, differences: Mapping[int | None, float], requests: int
) -> Mapping[str, Any]:
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
    return {"verdict": verdict.name.lower(), "requests": requests, "parts": rows, "differences": differing}
