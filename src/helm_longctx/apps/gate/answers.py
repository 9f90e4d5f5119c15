"""Pairs the answers of a gate's two arms, and compares their texts, their tokens and their scores."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from helm_longctx.apps.gate.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.results.boards import label
from helm_longctx.runs.scores import Score, read_scored_records
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import sort_lengths
from helm_longctx.tasks.sample import RecordKey

EQUAL = 1e-9
"""Scores that differ by less are equal."""

_TOKEN = re.compile(r"\w+|\S")
"""Matches a word or another character. Servers of chats do not return tokens."""


@dataclass(frozen=True)
class AnswerPair:
    """The answers of both arms to the same request.

    Args:
        base, candidate: the scores and statistics of both answers.
        texts: both answers, None for a request without an answer.
        is_base_first: whether the request was sent to the base first.
        may_pass: whether a request has no answer for a reason that can pass, such as a limit of the provider or a busy
            server. It says nothing about the model.
    """

    base: Score
    candidate: Score
    texts: tuple[str | None, str | None]
    is_base_first: bool
    may_pass: bool = False

    @property
    def is_answered(self) -> bool:
        """Whether both arms have answered."""
        return None not in self.texts

    @property
    def are_equal(self) -> bool:
        """Whether both answers are equal, character by character."""
        return self.texts[0] == self.texts[1]

    @property
    def equal_tokens(self) -> float:
        """The share of the tokens before the first difference, of the longer answer."""
        one, other = (_TOKEN.findall(text or "") for text in self.texts)
        if not one and not other:
            return 1.0
        same = 0
        for token, other_token in zip(one, other, strict=False):
            if token != other_token:
                break
            same += 1
        return same / max(len(one), len(other))

    @property
    def difference(self) -> float | None:
        """The candidate's score minus the base's, or None if one has no score."""
        if self.base.score is None or self.candidate.score is None:
            return None
        return self.candidate.score - self.base.score


@dataclass(frozen=True)
class ArmAgreement:
    """How far the answers of both arms agree in a part.

    Args:
        part: the length's label, or which arm was asked first.
        answers: number of requests that both arms answered.
        equal: share of equal answers.
        equal_tokens: mean share of the tokens before the first difference.
        equal_scores: share of equal scores. None if no request has a score in both arms.
        difference: the candidate's mean score minus the base's. None as for `equal_scores`.
    """

    part: str
    answers: int
    equal: float
    equal_tokens: float
    equal_scores: float | None
    difference: float | None


def pair_answers(
    folder: GateFolder,
    runs: Iterable[tuple[str, str]],
    benchmarks: Sequence[Benchmark],
) -> list[AnswerPair]:
    """Read the answers of both arms to the same requests.

    Args:
        runs: the names of the folders of each run of the base and of the candidate.

    Raises:
        InputError: a file of a run is missing or damaged.
    """
    pairs: list[AnswerPair] = []
    for names in runs:
        pairs += _pair_runs(folder, names, benchmarks)
    return pairs


def _pair_runs(
    folder: GateFolder,
    names: tuple[str, str],
    benchmarks: Sequence[Benchmark],
) -> Iterator[AnswerPair]:
    base_name, candidate_name = names
    base = _read_arm(folder.suite_folder(BASE) / base_name, benchmarks)
    candidate = _read_arm(folder.suite_folder(CANDIDATE) / candidate_name, benchmarks)
    first = folder.read_first_half(base_name)
    for key, score in base.scores.items():
        if key in candidate.scores:
            yield AnswerPair(
                base=score,
                candidate=candidate.scores[key],
                texts=(base.texts.get(key), candidate.texts.get(key)),
                is_base_first=key in first,
                may_pass=key in base.passing or key in candidate.passing,
            )


@dataclass(frozen=True)
class _ArmAnswers:
    """The answers of an arm in a run.

    Args:
        texts: those of requests that have an answer.
        passing: the requests that have none for a reason that can pass.
    """

    scores: dict[RecordKey, Score] = field(default_factory=dict)
    texts: dict[RecordKey, str] = field(default_factory=dict)
    passing: set[RecordKey] = field(default_factory=set)


def _read_arm(path: Path, benchmarks: Sequence[Benchmark]) -> _ArmAnswers:
    arm = _ArmAnswers()
    for record, score in read_scored_records(path, benchmarks):
        failure = record.answer.failure
        if failure is None:
            arm.texts[record.key] = record.text
        elif failure.is_retriable:
            arm.passing.add(record.key)
        if score is not None:
            arm.scores[record.key] = score
    return arm


def agreements(
    pairs: Sequence[AnswerPair],
) -> tuple[list[ArmAgreement], list[ArmAgreement]]:
    """Return how far the answers agree: by length, and by the arm that was asked first."""
    lengths: dict[int | None, list[AnswerPair]] = defaultdict(list)
    orders: dict[str, list[AnswerPair]] = defaultdict(list)
    for pair in pairs:
        if pair.is_answered:
            lengths[pair.base.length].append(pair)
            orders[f"{BASE if pair.is_base_first else CANDIDATE} first"].append(pair)
    by_length = []
    for length in sort_lengths(lengths):
        by_length.append(_agreement(part_name(length), lengths[length]))
    return by_length, [_agreement(order, orders[order]) for order in sorted(orders)]


def part_name(length: int | None) -> str:
    """Return the name of a length in a gate's results."""
    return label(length) or "no length"


def _agreement(part: str, pairs: Sequence[AnswerPair]) -> ArmAgreement:
    differences = []
    for pair in pairs:
        if pair.difference is not None:
            differences.append(pair.difference)
    return ArmAgreement(
        part=part,
        answers=len(pairs),
        equal=fmean(pair.are_equal for pair in pairs),
        equal_tokens=fmean(pair.equal_tokens for pair in pairs),
        equal_scores=fmean(abs(difference) < EQUAL for difference in differences)
        if differences
        else None,
        difference=fmean(differences) if differences else None,
    )
