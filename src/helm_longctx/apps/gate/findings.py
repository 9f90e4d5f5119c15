"""Finds what scores alone can hide: silent cuts, counts that differ, requests without an answer, a base without scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from helm_longctx.apps.gate.answers import AnswerPair
from helm_longctx.apps.gate.folder import BASE, CANDIDATE
from helm_longctx.documents.numbers import format_points
from helm_longctx.results.statistics.noninferiority import Drop
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.sample import OTHER_TOKENIZER, is_cut

_COUNT = "billed_prompt_tokens"
_EXPECTED = "prompt_tokens"
"""Statistics of an answer: the prompt's tokens as the server counts them, and as the deployment's tokenizer does."""

_Kind = Literal[
    "cut",
    "refused",
    "passing",
    "floor",
    "unanswered",
    "counts",
    "uncounted",
    "both cut",
    "base cut",
]


@dataclass(frozen=True)
class Finding:
    """Something that the requests of both arms show.

    Args:
        kind: `cut` and `refused` make the candidate worse, `passing` and `floor` leave the verdict open, and others are
            notes. The number of `unanswered` ones decides by a test of its own.
        requests: number of requests.
        text: a sentence for readers.
    """

    kind: _Kind
    requests: int
    text: str

    @property
    def decides_worse(self) -> bool:
        """Whether the finding makes the candidate worse, whatever the scores are."""
        return self.kind in ("cut", "refused")

    @property
    def leaves_open(self) -> bool:
        """Whether the candidate cannot be called no worse, because answers can still come or no drop could be seen."""
        return self.kind in ("passing", "floor")


def describe_floor(part: str, drop: Drop) -> Finding:
    """Return the finding for a part in which even a candidate without a right answer would not drop by more."""
    text = (
        f"{BASE} scores {format_points(round(drop.base, 3))} at {part}, so even a candidate"
        f" without a right answer would not drop by more; choose tasks that {BASE} can do"
    )
    return Finding(
        kind="floor",
        requests=drop.comparison.effect.n,
        text=text,
    )


def find_differences(pairs: Sequence[AnswerPair]) -> list[Finding]:
    """Return what the requests show, the most important first."""
    return [*_find_cuts(pairs), *_find_missing(pairs), *_find_counts(pairs)]


def _find_cuts(pairs: Sequence[AnswerPair]) -> Iterator[Finding]:
    counted = [pair for pair in pairs if _counts(pair)]
    if number := len(_cut_pairs(counted)):
        text = f"{CANDIDATE} counts far fewer prompt tokens than {BASE}, so it cuts these prompts silently"
        yield Finding(kind="cut", requests=number, text=text)
    if number := len(_cut_pairs([_swap(pair) for pair in counted])):
        text = f"{BASE} counts far fewer prompt tokens than {CANDIDATE}, so it cuts these prompts silently"
        yield Finding(kind="base cut", requests=number, text=text)
    both = []
    for pair in counted:
        if _is_short(pair.base) and _is_short(pair.candidate):
            both.append(pair)
    if both:
        text = "both count far fewer prompt tokens than the tokenizer, so both cut these prompts silently"
        yield Finding(kind="both cut", requests=len(both), text=text)


def _cut_pairs(pairs: Sequence[AnswerPair]) -> list[AnswerPair]:
    """Return the pairs whose prompt the candidate has cut.

    Deployments with different tokenizers have about the same ratio of counts in all prompts. It is the ratio of the
    shortest prompts, because these are cut last.
    """
    counts = []
    for pair in pairs:
        tokens = _counts(pair)
        if tokens:
            counts.append((pair, tokens))
    shortest = sorted((tokens for _, tokens in counts), key=max)[
        : max(1, len(counts) // 4)
    ]
    if shortest:
        usual = median(candidate / base for base, candidate in shortest)
    else:
        usual = 1.0
    # A larger difference of tokenizers is less probable than that all prompts are cut.
    if not OTHER_TOKENIZER <= usual <= 1 / OTHER_TOKENIZER:
        usual = 1.0
    cut = []
    for pair, (base, candidate) in counts:
        if is_cut(candidate, base, usual):
            cut.append(pair)
    return cut


def _find_missing(pairs: Sequence[AnswerPair]) -> Iterator[Finding]:
    too_long = []
    for pair in pairs:
        if pair.candidate.failure == "request_too_long" and not pair.base.failure:
            too_long.append(pair)
    if too_long:
        text = f"{CANDIDATE} refuses these prompts as too long, and {BASE} answers them"
        yield Finding(kind="refused", requests=len(too_long), text=text)
    number = sum(_lacks_score(pair) for pair in pairs if pair.may_pass)
    if number:
        text = (
            "one deployment has not answered for a reason that can pass, such as a"
            " limit of the provider; the same command sends these requests again"
        )
        yield Finding(kind="passing", requests=number, text=text)
    lasting = sum(_lacks_score(pair) for pair in pairs if not pair.may_pass)
    number = lasting - len(too_long)
    if number:
        text = "only one deployment has a scored answer; the same command sends failed requests again"
        yield Finding(kind="unanswered", requests=number, text=text)


def _lacks_score(pair: AnswerPair) -> bool:
    return (pair.base.score is None) != (pair.candidate.score is None)


def _find_counts(pairs: Sequence[AnswerPair]) -> Iterator[Finding]:
    answered = [pair for pair in pairs if pair.is_answered]
    counts = []
    for tokens in map(_counts, answered):
        if tokens:
            counts.append(tokens)
    different = []
    for base, candidate in counts:
        if base != candidate:
            different.append(candidate - base)
    if different:
        text = (
            f"prompt-token counts differ, by {median(different):+g} tokens in the"
            f" median and from {min(different):+g} to {max(different):+g}: another chat"
            " template, another tokenizer, or cut prompts"
        )
        yield Finding(kind="counts", requests=len(different), text=text)
    number = len(answered) - len(counts)
    if number:
        text = "the servers do not report the tokens of these prompts, so cuts cannot be found in their counts"
        yield Finding(kind="uncounted", requests=number, text=text)


def _counts(pair: AnswerPair) -> tuple[float, float] | None:
    """Return the tokens of the prompt that both servers report, or None if one does not."""
    base = pair.base.values.get(_COUNT)
    candidate = pair.candidate.values.get(_COUNT)
    return (base, candidate) if base and candidate else None


def _is_short(score: Score) -> bool:
    expected = score.values.get(_EXPECTED)
    return expected is not None and is_cut(score.values[_COUNT], expected)


def _swap(pair: AnswerPair) -> AnswerPair:
    return AnswerPair(
        base=pair.candidate,
        candidate=pair.base,
        texts=(pair.texts[1], pair.texts[0]),
        is_base_first=not pair.is_base_first,
    )
