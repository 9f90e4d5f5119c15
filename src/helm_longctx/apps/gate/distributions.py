"""Compares the distributions of a gate's two sides at the same tokens. That needs few requests.

Both sides write an answer to each question. Then both read the same texts: the prompt with the base's answer, and the
prompt with the gold answer. At the tokens of both answers, and at stretches of the prompt, their most likely tokens
tell how far the distributions differ. What the candidate writes must follow its own distributions.

A server that gives log-probabilities only of the tokens that it writes cannot read texts. Then both sides answer, and
their answers are compared up to the first token that differs, because up to there both have written the same text.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import fmean
from typing import Any, NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.results import usage_of
from helm_longctx.models.scoring import (
    SEPARATOR,
    AnswerRequest,
    SpanRequest,
    distributions_of,
)
from helm_longctx.models.token_kinds import find_kind
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.logprobs import Distribution

_STRETCH = 160
"""Characters of a stretch of the prompt whose tokens are compared."""

_DEPTHS = (10, 30, 50, 70, 90)
"""Where the stretches begin, in percent of the prompt."""

ANSWER_TOKENS = 32
"""The most tokens of an answer."""

TOP = 5
"""Number of the most likely tokens: every server gives these."""

_SMALLEST = 1e-9
"""The least probability of all other tokens together. Rounding can make it negative."""


@dataclass(frozen=True)
class Way:
    """How distributions are compared: the number of requests about a question, and of stretches.

    Args:
        base, candidate: requests to each side.
        base_again, candidate_again: further requests to each side if it does everything twice.
        stretches: parts of each length.
        twice: what both do twice.
        about: what the table says.
    """

    base: int
    candidate: int
    base_again: int
    candidate_again: int
    stretches: int
    twice: str
    about: str

    def count(self, is_twice: bool = False) -> int:
        """Return the number of requests about a question."""
        once = self.base + self.candidate
        if is_twice:
            return once + self.base_again + self.candidate_again
        return once


TEXTS = Way(
    base=3,
    candidate=3,
    base_again=3,
    candidate_again=2,
    stretches=len(_DEPTHS) + 2,
    twice="both read each text twice",
    about="Both read the same texts.",
)
"""Both sides read the same texts, and both write an answer."""

ANSWERS = Way(
    base=1,
    candidate=1,
    base_again=1,
    candidate_again=1,
    stretches=1,
    twice="both answer each twice",
    about="Answers are compared, up to the first token that differs.",
)
"""Both sides answer."""

_LEAST_REST = 0.01
"""The least probability of all other tokens by which a change of a log-probability is divided."""

TINY = 1e-6
"""Divergences that differ by less are equal, in nats: log-probabilities are told with six digits."""

_OWN_GAP = 1.0
"""A token that a model writes is unlike its own distribution if it is less likely than its most likely one by more than
this, in nats. Answers are greedy, and rounding decides only between tokens that are about equally likely."""

_AGAIN = "again"
"""The value of a request's `random` with which the request cache does not answer."""

_SPECIAL = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|")
"""Matches the text of a token that ends an answer; servers also give it an empty one."""


class Asked(NamedTuple):
    """A question.

    Args:
        length: the length. None if the benchmark has no lengths.
        prompt: the prompt as a completion, or the last turn of a chat.
        gold: the first gold answer.
        group: the cluster of the question.
        messages: the earlier turns of a chat. None for a completion.
    """

    length: int | None
    prompt: str
    gold: str
    group: str
    messages: Sequence[Mapping[str, Any]] | None = None

    @property
    def text(self) -> str:
        """All turns, to estimate their tokens."""
        return "\n".join(
            [*(str(turn["content"]) for turn in self.messages or ()), self.prompt]
        )


class Point(NamedTuple):
    """What was compared of a question in one stretch of text.

    A token is of the kinds of itself and of the token before it, because a fault of a kind can show in how probable it
    is, and in what follows it.

    Args:
        stretch: `answer`, `gold answer`, or the depth of the stretch.
        divergence: mean lower bound of the divergence of the candidate from the base, in nats.
        same: share of the tokens at which both have the same most likely token.
        loss: mean log-probability of the tokens by the base minus that by the candidate, in nats.
        noise: mean divergence of the base from itself, when it reads the same text again. None if it did not.
        kinds: for each kind of tokens their number, and how far the sides' log-probabilities of them are apart, less
            the same of the base and its second reading: the mean, and the mean of what is divided by the probability
            of all other tokens. A change of all logits by the same size moves the log-probability of a likely token
            less. The entry of all tokens has an empty name.
        candidate_noise: the noise of the candidate. None if it did not read again.
        noise_same, noise_loss: `same` and `loss` of the base and its second reading. None if it did not read again.
    """

    length: int | None
    stretch: str
    group: str
    divergence: float
    same: float
    loss: float
    noise: float | None = None
    kinds: Mapping[str, tuple[int, float, float]] = {}
    candidate_noise: float | None = None
    noise_same: float | None = None
    noise_loss: float | None = None

    @property
    def excess(self) -> float:
        """The divergence that is not the base's own noise."""
        return self.divergence - (self.noise or 0.0)

    @property
    def excess_loss(self) -> float:
        """The loss that is not the base's own noise."""
        return self.loss - (self.noise_loss or 0.0)

    @property
    def changed_share(self) -> float:
        """The share of tokens with another most likely token that is not the base's own noise."""
        return (1.0 if self.noise_same is None else self.noise_same) - self.same

    @property
    def shift(self) -> float:
        """How much farther the sides are from each other than each is from itself.

        The mean is 0 if only the sizes of their noise differ, for example because of the load of their servers.
        """
        own = self.noise or 0.0
        if self.candidate_noise is None:
            other = own
        else:
            other = self.candidate_noise
        return self.divergence - (own + other) / 2


class Written(NamedTuple):
    """What is wrong with the answer that the candidate wrote to a question, however likely its tokens are.

    Args:
        fault: `empty`, `cut` (it ends before the base's), `longer` (it goes on after the base's), `other text` (its
            log-probabilities are those of another text), or `unlike` (it does not follow the candidate's own
            distributions). Empty if nothing is.
        noise: the same of the base's second answer. None if it did not write again.
    """

    length: int | None
    group: str
    fault: str
    noise: str | None = None

    @property
    def counts(self) -> bool:
        """Whether the fault is not the base's own noise, too."""
        return bool(self.fault) and not self.noise


@dataclass
class Compared:
    """What was compared of questions.

    Args:
        usage: the usage of the base's answer.
    """

    points: list[Point] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    usage: Usage | None = None


def _probabilities(distribution: Distribution) -> dict[str, float]:
    told = {**distribution.top, distribution.text: distribution.logprob}
    probabilities = {}
    for text, value in told.items():
        probabilities[text] = math.exp(value)
    return probabilities


def divergence(base: Distribution, candidate: Distribution) -> float:
    """Return a lower bound of the Kullback-Leibler divergence at a token, in nats.

    It is the least divergence of all distributions with these log-probabilities. A token that only the base tells has
    at most the probability that the candidate's list leaves for it (`Distribution.largest_missing`). Tokens that the
    base does not tell are one, because putting tokens together never makes a divergence larger.
    """
    first = _probabilities(base)
    second = _probabilities(candidate)
    shared = []
    for text in first:
        if text in second:
            shared.append((first[text], second[text]))
    missing = []
    for text in first:
        if text not in second:
            missing.append(first[text])
    rest = max(1 - math.fsum(first.values()), _SMALLEST)
    budget = max(1 - math.fsum(q for _, q in shared), _SMALLEST)
    spent = _share_out(missing, budget, rest, math.exp(candidate.largest_missing))
    left = max(1 - math.fsum(second.values()), _SMALLEST)
    if math.fsum(spent) > left:
        spent = _share_out(missing, left, 0.0, math.exp(candidate.largest_missing))
    pairs = [
        *shared,
        *zip(missing, spent, strict=True),
        (rest, budget - math.fsum(spent)),
    ]
    bound = math.fsum(p * math.log(p / max(q, _SMALLEST)) for p, q in pairs if p > 0)
    return max(bound, 0.0)


def _share_out(
    shares: Sequence[float],
    budget: float,
    rest: float,
    most: float,
) -> list[float]:
    """Return the probabilities of tokens whose divergence from their shares is least.

    They are proportional to the shares, but none is above `most`.

    Args:
        budget: the probability of all of these tokens and of the rest together.
        rest: the share of the rest.
    """
    spent = [0.0] * len(shares)
    total = math.fsum(shares) + rest
    for index in sorted(range(len(shares)), key=lambda number: -shares[number]):
        scale = max(budget, 0.0) / max(total, _SMALLEST)
        spent[index] = min(scale * shares[index], most)
        budget -= spent[index]
        total -= shares[index]
    return spent


Send = Callable[[Request], RequestResult]
"""(request) → its result. Raises a `FailureError` if there is none."""


def compare(
    asked: Asked,
    sides: Sequence[Send],
    deployments: tuple[str, str],
    way: Way,
    is_twice: bool = False,
    is_base_first: bool = True,
) -> Compared:
    """Ask both sides about a question.

    Args:
        sides: send requests to the base and to the candidate.
        is_twice: whether both read or answer again, so that their noise is known.
        is_base_first: the order of the sides. That of their second readings is the other one, so that both have the
            same load on average.

    Raises:
        InputError: the sides divide the same text into other tokens.
        FailureError: a request has no answer.
    """
    fields = {
        "prompt": asked.prompt,
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
    }
    order = []
    for side in (0, 1) if is_base_first else (1, 0):
        order.append((side, False))
    if is_twice:
        order += [(side, True) for side, _ in reversed(order)]
    if way is TEXTS:
        texts = {}
        usage = None
        for side, is_again in order:
            if side == 1 and is_again:
                continue
            request = Request(
                deployments[side],
                deployments[side],
                random=_AGAIN if is_again else None,
                **fields,
            )
            answer = sides[side](request)
            texts[side, is_again] = answer.completions[0].text
            if (side, is_again) == (0, False):
                usage = usage_of(answer)
        compared = compare_texts(asked, texts, sides, deployments, order)
        compared.usage = usage
        return compared
    rows = {}
    written = {}
    compared = Compared()
    for side, is_again in order:
        request = AnswerRequest(
            deployments[side],
            deployments[side],
            messages=asked.messages,
            top=TOP,
            random=_AGAIN if is_again else None,
            **fields,
        )
        result = sides[side](request)
        rows[side, is_again] = distributions_of(result)[0]
        written[side, is_again] = result.completions[0].text
        if (side, is_again) == (0, False):
            compared.usage = usage_of(result)
    base = rows[0, False]
    if base and rows[1, False]:
        compared.points.append(_measure(asked, "answer", rows))
    # A server that samples, or tells the log-probabilities of its reasoning, does so on both sides.
    own = _find_fault(base, base, written[0, False])
    faults = {}
    for key, row in rows.items():
        fault = _find_fault(base, row, written[key])
        faults[key] = "" if fault == own else fault
    noise = faults.get((0, True))
    compared.written.append(
        Written(
            length=asked.length,
            group=asked.group,
            fault=faults[1, False],
            noise=noise,
        )
    )
    return compared


def _find_fault(
    base: Sequence[Distribution],
    other: Sequence[Distribution],
    text: str,
) -> str:
    """Return what is wrong with an answer beside the base's; see `Written`."""
    if not other:
        return "empty" if base else ""
    if _is_other_text(other, text):
        return "other text"
    if max(_own_gap(row) for row in other) > _OWN_GAP:
        return "unlike"
    texts = [row.text for row in base]
    others = [row.text for row in other]
    if len(others) < len(texts) and texts[: len(others)] == others:
        return "cut"
    if len(texts) < len(others) and others[: len(texts)] == texts:
        return "longer"
    return ""


def _own_gap(row: Distribution) -> float:
    """Return how much less likely the written token is than the most likely one, in nats."""
    return max(row.top.values(), default=row.logprob) - row.logprob


def _is_other_text(rows: Sequence[Distribution], text: str) -> bool:
    """Whether the tokens are those of another text. Parts of characters and marks of the end are no texts."""
    tokens = [row.text for row in rows]
    if any("\ufffd" in token or "\\x" in token for token in tokens):
        return False
    told = "".join(token for token in tokens if not _SPECIAL.fullmatch(token)).strip()
    return not (told.startswith(text.strip()) or text.strip().startswith(told))


def compare_texts(
    asked: Asked,
    answers: Mapping[tuple[int, bool], str],
    sides: Sequence[Send],
    deployments: tuple[str, str],
    order: Sequence[tuple[int, bool]],
) -> Compared:
    """Let both sides read a question with its answers, and return what was compared. See `compare`.

    Args:
        answers: the answers of the base (0), of the candidate (1), and of the base again. Without an answer of the
            candidate, nothing is said about what it writes.
        order: the side of each reading, and whether it is a second one.
    """
    answer = answers.get((0, False), "")
    gap = "" if asked.prompt[-1:].isspace() else SEPARATOR
    size = len(asked.prompt)
    stretches = {}
    for depth in _DEPTHS:
        start = size * depth // 100
        if start + _STRETCH <= size:
            stretches[f"{depth} %"] = (start, start + _STRETCH)
    gold = gap + asked.gold
    # The stretches of the prompt are compared in the last text.
    texts = []
    if answer:
        texts.append((asked.prompt + gold, {"gold answer": (size, size + len(gold))}))
        stretches["answer"] = (size, size + len(answer))
        texts.append((asked.prompt + answer, stretches))
    else:
        stretches["gold answer"] = (size, size + len(gold))
        texts.append((asked.prompt + gold, stretches))
    compared = Compared()
    own_rows: dict[tuple[int, bool], Sequence[Distribution]] = {}
    is_other = False
    for text, spans in texts:
        readings: dict[tuple[int, bool], Sequence[Sequence[Distribution]]] = {}
        for side, is_again in order:
            request = SpanRequest(
                deployments[side],
                deployments[side],
                prompt=text,
                spans=tuple(spans.values()),
                top=TOP,
                random=_AGAIN if is_again else None,
            )
            readings[side, is_again] = distributions_of(sides[side](request))
        for number, (stretch, (start, end)) in enumerate(spans.items()):
            rows = {}
            for key, parts in readings.items():
                rows[key] = parts[number]
            if _reads_other_text(rows, text[start:end]):
                is_other = True
                continue
            _check_tokens(rows[0, False], rows[1, False], deployments)
            if rows[0, False]:
                compared.points.append(_measure(asked, stretch, rows))
            if stretch == "answer":
                own_rows = dict(rows)
    if (1, False) not in answers:
        return compared
    base_rows = own_rows.get((0, False), ())
    fault = "other text"
    if not is_other:
        fault = _find_written_fault(
            answer, answers[1, False], own_rows.get((1, False), ())
        )
    if fault == "unlike" and max(map(_own_gap, base_rows), default=0.0) > _OWN_GAP:
        fault = ""  # the base samples, too
    noise = None
    if (0, True) in answers:
        noise = _find_written_fault(answer, answers[0, True], base_rows)
    compared.written.append(
        Written(
            length=asked.length,
            group=asked.group,
            fault=fault,
            noise=noise,
        )
    )
    return compared


def _reads_other_text(
    rows: Mapping[tuple[int, bool], Sequence[Distribution]],
    text: str,
) -> bool:
    """Whether the base's tokens are those of a text, and the candidate's are not."""
    told = []
    for side in (0, 1):
        told.append("".join(row.text for row in rows[side, False]))
    return text in told[0] and text not in told[1]


def _find_written_fault(forced: str, written: str, rows: Sequence[Distribution]) -> str:
    """Return what is wrong with an answer beside the one that was read. See `Written`.

    Args:
        forced: the text that was read.
        rows: the distributions of the answer's writer at its tokens.
    """
    if not written.strip():
        return "empty" if forced.strip() else ""
    if not forced.strip():
        return "longer"
    if written.strip().startswith(forced.strip()) or not rows:
        if written.strip() != forced.strip() and rows:
            return "longer"
        return ""
    if not "".join(row.text for row in rows).endswith(forced):
        return ""  # the texts of tokens lack spaces or have parts of characters
    # A token at the start can have characters of the prompt, so characters are counted from the end.
    ends = list(accumulate(len(row.text) for row in rows))
    starts = []
    for end, row in zip(ends, rows, strict=True):
        starts.append(len(forced) - ends[-1] + end - len(row.text))
    for start, row in zip(starts, rows, strict=True):
        token = row.text[-start:] if start < 0 else row.text
        rest = written[max(start, 0) :]
        if rest.startswith(token):
            continue
        best = max(row.top.values(), default=row.logprob)
        likely = []
        for text, value in {**row.top, row.text: row.logprob}.items():
            if text != row.text and _continues(rest, text):
                likely.append(value)
        gap = best - max(likely, default=row.largest_missing)
        if gap <= _OWN_GAP:
            return ""
        return "unlike" if rest else "cut"
    return ""


def _continues(rest: str, token: str) -> bool:
    """Whether a text can go on with a token. A mark of the end is followed by nothing."""
    if not rest:
        return bool(_SPECIAL.fullmatch(token))
    return bool(token) and (rest.startswith(token) or token.startswith(rest))


def _measure(
    asked: Asked,
    stretch: str,
    rows: Mapping[tuple[int, bool], Sequence[Distribution]],
) -> Point:
    """Compare the distributions of both sides, and of their second readings, up to the first token that differs.

    Args:
        rows: the distributions of each side (0: base, 1: candidate), and whether they are of its second reading.
    """
    base = rows[0, False]
    pairs = pair_tokens(base, rows[1, False])
    again = rows.get((0, True))
    other_again = rows.get((1, True))
    repeated = pair_tokens(base, base if again is None else again)
    apart = [_mean_divergence(pairs)]
    if again and other_again:
        apart.append(_mean_divergence(pair_tokens(again, other_again)))
    candidate_noise = None
    if other_again:
        candidate_noise = _mean_divergence(pair_tokens(rows[1, False], other_again))
    return Point(
        length=asked.length,
        stretch=stretch,
        group=asked.group,
        divergence=fmean(apart),
        same=_share_same(pairs),
        loss=_mean_loss(pairs),
        noise=_mean_divergence(repeated) if again else None,
        kinds=_average_kinds(pairs, repeated),
        candidate_noise=candidate_noise,
        noise_same=_share_same(repeated) if again else None,
        noise_loss=_mean_loss(repeated) if again else None,
    )


_Rows = Sequence[tuple[Distribution, Distribution]]


def _mean_divergence(pairs: _Rows) -> float:
    """Return the mean divergence of the second distribution of each pair from the first, in nats."""
    return fmean(divergence(one, other) for one, other in pairs)


def _share_same(pairs: _Rows) -> float:
    return fmean(one.best == other.best for one, other in pairs)


def _mean_loss(pairs: _Rows) -> float:
    return fmean(one.logprob - other.find_logprob(one.text) for one, other in pairs)


def pair_tokens(
    one: Sequence[Distribution],
    other: Sequence[Distribution],
) -> list[tuple[Distribution, Distribution]]:
    """Return the distributions after the same text: the last pair is that at the first token that differs."""
    pairs = list(zip(one, other, strict=False))
    end = next((n for n, (a, b) in enumerate(pairs) if a.text != b.text), len(pairs))
    return pairs[: end + 1]


def _check_tokens(
    one: Sequence[Distribution],
    other: Sequence[Distribution],
    deployments: tuple[str, str],
) -> None:
    texts = [row.text for row in one]
    other_texts = [row.text for row in other]
    if texts != other_texts:
        pairs = zip(texts, other_texts, strict=False)
        first = next(("".join(pair) for pair in pairs if pair[0] != pair[1]), "")
        kind = find_kind(first)
        raise InputError(
            f"gate: {deployments[0]} and {deployments[1]} divide the same text into"
            f" different tokens, first in {kind}, so their distributions cannot be"
            " compared; give both the same tokenizer, or leave out --logprobs"
        )


def _average_kinds(
    pairs: Sequence[tuple[Distribution, Distribution]],
    repeated: Sequence[tuple[Distribution, Distribution]],
) -> dict[str, tuple[int, float, float]]:
    """Return how far log-probabilities are apart for each kind of tokens. See `Point.kinds`."""
    changes: dict[str, list[float]] = defaultdict(list)
    relatives: dict[str, list[float]] = defaultdict(list)
    before = ""
    for (base, candidate), (_, second) in zip(pairs, repeated, strict=False):
        apart = abs(base.logprob - candidate.find_logprob(base.text))
        change = apart - abs(base.logprob - second.find_logprob(base.text))
        relative = change / max(1 - math.exp(base.logprob), _LEAST_REST)
        kinds = {""}
        for text in (before, base.text):
            if text:
                kinds.add(find_kind(text))
        for kind in kinds:
            changes[kind].append(change)
            relatives[kind].append(relative)
        before = base.text
    averages = {}
    for kind, values in changes.items():
        averages[kind] = (len(values), fmean(values), fmean(relatives[kind]))
    return averages
