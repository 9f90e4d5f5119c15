"""Compares models: in pairs on the instances that both answered, by intervals if they share none, and as a ranking."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from statistics import fmean
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import numpy as np

from helm_longctx.documents.numbers import (
    format_ends,
    format_p_statement,
    format_percent,
    format_signed_percent,
)
from helm_longctx.errors import InputError, list_choices, list_first, shorten
from helm_longctx.results.boards import (
    OVERALL,
    Board,
    label,
    mean_of_results,
    show_model,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import (
    FAILURES_DECIDE,
    AskedPairs,
    Comparison,
    Decision,
    Pairs,
    compare_intervals_with_failures,
    compare_parts,
    reverse_comparison,
)
from helm_longctx.results.statistics.comparison import (
    find_differences as decide_differences,
)
from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.ranking import (
    Rank,
    rank_ranges,
)
from helm_longctx.runs.scores import Score
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.lengths import sort_lengths
from helm_longctx.tasks.metric_names import nearest_depth

_Part = TypeVar("_Part", str, int)


Differences = Mapping[tuple[ShownModel, ShownModel], Decision]
"""Whether models differ, for each pair that was compared in both directions. The effect is the score of the first minus
the second."""


def add_reverses(decisions: Differences) -> Differences:
    """Return the decisions on pairs, in both directions."""
    both = dict(decisions)
    for (one, other), decision in decisions.items():
        reverse = reverse_comparison(decision.comparison)
        both[other, one] = replace(decision, comparison=reverse)
    return both


def find_ranks(
    ranking: Iterable[Result],
    differences: Differences,
) -> dict[ShownModel, Rank]:
    """Return each model's rank, with those that differences leave open; published ones are not compared."""
    scores = {}
    for result in ranking:
        scores[result.model] = result.interval.mean
    # Each pair counts once, but the differences have both directions.
    pairs = []
    for pair in combinations(scores, 2):
        if pair in differences:
            pairs.append(pair)
    return rank_ranges(scores, {pair: differences[pair] for pair in pairs})


def describe_best(
    best: ShownModel,
    others: Iterable[ShownModel],
    differences: Differences,
) -> str:
    """Say with which models the best one is tied, or that it is better than all, or nothing if there is no other."""
    decisions = {other: differences[best, other] for other in others}
    if not decisions:
        return ""
    open_models = []
    tied = []
    for other, decision in decisions.items():
        if decision.is_left_to_failures:
            open_models.append(other)
        elif not decision.is_different:
            tied.append(other)
    sentences = []
    if tied:
        sentences.append(f"Statistical tie with {_list_models(tied)}.")
    for other in open_models[:4]:
        failures = describe_failures(
            show_model(best), show_model(other), decisions[other].comparison
        )
        sentences.append(
            f"{FAILURES_DECIDE.capitalize()} about {show_model(other)} ({failures})."
        )
    if len(open_models) > 4:
        sentences.append(
            f"{FAILURES_DECIDE.capitalize()} about {len(open_models) - 4} more."
        )
    better = len(decisions) - len(tied) - len(open_models)
    if not tied and not open_models:
        largest = max(decision.adjusted for decision in decisions.values())
        sentences.append(
            f"It is better than all others (adjusted {format_p_statement(largest)})."
        )
    elif better:
        sentences.append(f"It is better than {better} of the models.")
    return " ".join(sentences)


def _list_models(models: Sequence[ShownModel]) -> str:
    return list_first(map(show_model, models), 4)


def describe_pair(one: ShownModel, other: ShownModel, decision: Decision) -> str:
    """Say which of two models is better, as in `a is better than b (+3.0, +1.0 to +5.0; adjusted p = 0.012)`."""
    effect = decision.comparison.effect
    is_higher = "better than" if effect.mean > 0 else "worse than"
    outcome = is_higher if decision.is_different else "in a statistical tie with"
    names = f"{show_model(one)} is {outcome} {show_model(other)}"
    if decision.is_left_to_failures:
        names = f"{show_model(one)} and {show_model(other)}: {FAILURES_DECIDE}"
    difference = f"{format_signed_percent(effect.mean)}, {format_ends(effect, format_signed_percent)}"
    failures = describe_failures(
        show_model(one), show_model(other), decision.comparison
    )
    notes = [difference, f"adjusted {format_p_statement(decision.adjusted)}", failures]
    return f"{names} ({'; '.join(note for note in notes if note)})"


def describe_failures(one: str, other: str, comparison: Comparison) -> str:
    """Say how many questions each of two sides did not answer, and what that can change, empty without failures.

    Args:
        one, other: how readers see the names of the sides.
    """
    failures = comparison.failures
    if failures is None:
        return ""
    shares = (
        f"no answer: {format_percent(failures.one.share)} % of {one} and"
        f" {format_percent(failures.other.share)} % of {other}"
    )
    if not math.isnan(failures.p_value):
        shares += f" ({format_p_statement(failures.p_value)})"
    bounds = []
    for name, bound in (("wrong", failures.as_wrong), ("right", failures.as_right)):
        bounds.append(
            f"failures as {name} {format_signed_percent(bound.effect.mean)},"
            f" {format_ends(bound.effect, format_signed_percent)}"
        )
    return "; ".join([shares, *bounds])


@cache
def find_differences(board: Board, part: str, length: int | None) -> Differences:
    """Compare the models with a score of a part, each pair on the tasks that both have. The floors are not compared.

    Two published models are not compared, and neither are models without a common task. P-values are adjusted within
    two families: own models with each other, and own models with published ones. Nobody asks here about published
    models among themselves, and they would make the own p-values larger.
    """
    scores = [*board.ranking(length, part), *board.without_rank(length, part)]
    families: dict[bool, dict[tuple[ShownModel, ShownModel], Comparison]] = {
        False: {},
        True: {},
    }
    for one, other in combinations(scores, 2):
        if one.is_published and other.is_published:
            continue
        has_published = one.is_published or other.is_published
        shared = board.tasks_behind(one) & board.tasks_behind(other)
        tasks = []
        for task in board.tasks_of(part, length):
            if task in shared:
                tasks.append(task)
        comparison = None
        # A published score has no instances to pair.
        if tasks and not has_published:
            comparison = _compare_answers(board, one, other, tasks)
        if comparison is None:
            comparison = _compare_means(board, one, other, tasks)
        if comparison is not None:
            families[has_published][one.model, other.model] = comparison
    return add_reverses(
        decide_differences(families[False]) | decide_differences(families[True])
    )


def _compare_answers(
    board: Board,
    one: Result,
    other: Result,
    tasks: Sequence[str],
) -> Comparison | None:
    """Compare two scores on the instances of tasks that both have, or None if they share none of a task by one judge."""
    models = (one.model, other.model)
    cells = _find_cells(board, models, [(task, one.length, "full") for task in tasks])
    # If a task is missing, the weighted mean would be over other tasks than the score.
    if len(cells) < len(tasks):
        return None
    weights = task_weights(board, tasks, one.length, one.part)
    shared = _SharedAnswers(
        models, cells, [weights.get(cell.task, 0.0) for cell in cells]
    )
    return shared.compare(range(len(shared.questions)))


def _compare_means(
    board: Board,
    one: Result,
    other: Result,
    tasks: Sequence[str],
) -> Comparison | None:
    """Compare two scores by their intervals over tasks, or None without tasks, and of other judges or questions."""
    if one.is_generated != other.is_generated:
        return None
    if _judges_of(board, one, tasks) != _judges_of(board, other, tasks):
        return None
    ends = []
    for score in (one, other):
        if board.tasks_behind(score) == frozenset(tasks):
            ends.append(score.interval)
            continue
        weights = task_weights(board, tasks, score.length, score.part)
        weighted = []
        for task in tasks:
            if result := board.score(score.model, task, score.length):
                weighted.append((result, weights[task]))
        if not tasks or len(weighted) < len(tasks):
            return None
        ends.append(mean_of_results(weighted))
    return compare_intervals_with_failures(
        ends[0], ends[1], find_failure_share(one), find_failure_share(other)
    )


def find_failure_share(score: Result) -> float:
    """Return the share of the questions without an answer, as a mean over tasks; 0 for a published score."""
    if score.is_published:
        return 0.0
    if score.parts:
        return fmean(find_failure_share(part) for part in score.parts)
    if score.answers:
        return fmean(answer.score is None for answer in score.answers)
    return score.failed / max(score.failed + score.interval.n, 1)


def _judges_of(board: Board, score: Result, tasks: Sequence[str]) -> frozenset[str]:
    """Return the judges of a score over some of its tasks; of all if only its mean is known."""
    if board.tasks_behind(score) == frozenset(tasks):
        return score.judges
    judges: frozenset[str] = frozenset()
    for task in tasks:
        result = board.score(score.model, task, score.length)
        if result is None:
            return score.judges
        judges |= result.judges
    return judges


def by_instance(answers: Iterable[Score]) -> dict[str, list[Score]]:
    """Return the repeats of each instance that have a score."""
    repeats: dict[str, list[Score]] = defaultdict(list)
    for answer in answers:
        if answer.score is not None:
            repeats[answer.instance].append(answer)
    return repeats


def by_question(answers: Iterable[Score]) -> dict[str, list[Score]]:
    """Return all repeats of each instance, also those without a score."""
    repeats: dict[str, list[Score]] = defaultdict(list)
    for answer in answers:
        repeats[answer.instance].append(answer)
    return repeats


def _failure_share(repeats: Sequence[Score]) -> float:
    """Return the share of the repeats of an instance without a score."""
    return fmean(answer.score is None for answer in repeats)


def mean_of(repeats: Iterable[Score]) -> float:
    """Return the mean over the repeats of an instance that have a score; NaN if none has one."""
    scores = [answer.score for answer in repeats if answer.score is not None]
    if scores:
        return fmean(scores)
    return math.nan


def task_weights(
    board: Board,
    tasks: Iterable[str],
    length: int | None,
    part: str = OVERALL,
) -> dict[str, float]:
    """Return each task's weight in a part's score: equal columns, equal tasks in them; 0 if it is in no mean."""
    present = dict.fromkeys(tasks)
    parts = [part] if part != OVERALL else board.columns
    columns = []
    for name in parts:
        column = []
        for task in board.tasks_of(name, length):
            if task in present:
                column.append(task)
        if column:
            columns.append(column)
    if not columns:
        columns = [[task] for task in present]
    weights: dict[str, float] = defaultdict(float)
    for column in columns:
        for task in column:
            weights[task] += 1 / (len(columns) * len(column))
    return weights


class PairedInstance(NamedTuple):
    """An instance of a task at a length, on which models are compared."""

    entry: str
    task: str
    length: int | None
    context: str
    instance: str


@dataclass(frozen=True)
class Pairing:
    """A comparison of two models on a part of the instances.

    Args:
        one, other: the models; the effect is the score of `one` minus the score of `other`.
        by: `all`, `task`, `length` or `depth`.
        part: the task, the length's label, or the depth in percent.
        decision: whether the models differ. The p-values are adjusted over all pairs at the same length, as in the
            report, and otherwise over all pairs and parts with the same `by`.
    """

    one: ShownModel
    other: ShownModel
    by: str
    part: str
    decision: Decision

    @property
    def comparison(self) -> Comparison:
        """The comparison on which the decision is."""
        return self.decision.comparison

    @property
    def better(self) -> str:
        """The better model, empty if they are tied."""
        if not self.decision.is_different:
            return ""
        if self.comparison.effect.mean > 0:
            return self.one
        return self.other


@dataclass(frozen=True)
class Standing:
    """A model's place in the ranking.

    Args:
        rank: the rank by the mean, with the ranks that the comparisons leave open.
    """

    model: ShownModel
    mean: float
    rank: Rank


class _Contrast(NamedTuple):
    """The scores of two models on an instance, and the addresses of both answers on HELM's pages."""

    item: PairedInstance
    one: float
    other: float
    links: tuple[str, str]


@dataclass(frozen=True)
class _Cell:
    """A task at a length, with the results of all models, and their answers to the instances that all of them have.

    Args:
        answers: the scored answers of each model to the instances that all models answered, by instance.
        asked: all answers of each model to the instances that were put to all models, with those that failed, empty if
            none failed.
    """

    board: Board
    entry: str
    task: str
    length: int | None
    context: str
    answers: Mapping[str, Mapping[str, list[Score]]]
    asked: Mapping[str, Mapping[str, list[Score]]]
    results: Sequence[Result]


@dataclass(frozen=True)
class _Question:
    """An instance that was put to all models.

    Args:
        instance: the id of the instance.
        weight: the weight of its cell in the overall score.
        repeats: the answers of the first model, for what all answers to the instance share.
    """

    cell: _Cell
    instance: str
    weight: float
    repeats: Sequence[Score]

    @property
    def item(self) -> PairedInstance:
        """The instance with its task and length."""
        return PairedInstance(
            entry=self.cell.entry,
            task=self.cell.task,
            length=self.cell.length,
            context=self.cell.context,
            instance=self.instance,
        )

    @property
    def group(self) -> str:
        """The instance's cluster."""
        return self.repeats[0].group

    @property
    def depth(self) -> int | None:
        """The depth of the evidence, in percent, or None if it has none."""
        depth = self.repeats[0].depth
        return None if depth is None else nearest_depth(depth)


class _SharedAnswers:
    """The answers of models to the instances for which each of them has a score. All comparisons are made on these.

    Args:
        cells: the tasks at lengths that the models share.
        weights: the weight of each cell in the overall score; 0 if it is in no mean.

    Attributes:
        questions: the instances, and after them those that were put to all models and that one of them did not answer.
        items: the instances that all models answered, in the order of `questions`.
        scores: the scores of each model on `items`, means over repeats.
    """

    def __init__(
        self,
        models: Sequence[ShownModel],
        cells: Sequence[_Cell],
        weights: Sequence[float],
    ):
        self.models = tuple(models)
        first = models[0]
        answered: list[_Question] = []
        unanswered: list[_Question] = []
        for cell, weight in zip(cells, weights, strict=True):
            rows = cell.answers[first]
            for name, repeats in rows.items():
                answered.append(_Question(cell, name, weight, repeats))
            for name, repeats in cell.asked.get(first, {}).items():
                if name not in rows:
                    unanswered.append(_Question(cell, name, weight, repeats))
        self.questions = [*answered, *unanswered]
        self.items = [question.item for question in answered]
        self.scores: dict[str, Floats] = {}
        for model in models:
            means = []
            for index in range(len(answered)):
                means.append(mean_of(self.answers_of(model, index)))
            self.scores[model] = np.array(means)

    def answers_of(self, model: str, index: int) -> Sequence[Score]:
        """Return the answers of a model to `items[index]`: its repeats."""
        question = self.questions[index]
        return question.cell.answers[model][question.instance]

    def depth(self, index: int) -> int | None:
        """Return the depth of the evidence of `items[index]` in percent, or None if it has none."""
        return self.questions[index].depth

    @property
    def weighted_indices(self) -> list[int]:
        """The indices of the `questions` that are in a mean."""
        questions = self.questions
        return [index for index, question in enumerate(questions) if question.weight]

    def keep_answered(self, indices: Iterable[int]) -> list[int]:
        """Return the indices of `questions` that all models answered: these are the first ones."""
        return [index for index in indices if index < len(self.items)]

    def _split(
        self,
        part: Callable[[_Question], _Part | None],
    ) -> dict[_Part, list[int]]:
        """Return the indices of the `questions` of each part in which all models answered an instance."""
        parts: dict[_Part, list[int]] = defaultdict(list)
        for index, question in enumerate(self.questions):
            name = part(question)
            if name is not None and (name in parts or index < len(self.items)):
                parts[name].append(index)
        return parts

    def compare(self, indices: Sequence[int]) -> Comparison:
        """Compare the first model with the second one on a part of the instances.

        Args:
            indices: indices of `questions`.
        """
        one, other, *_ = self.models
        cells = {}
        for index in indices:
            cells[id(self.questions[index].cell)] = self.questions[index].cell
        # The looks at the run that was looked at most often, until now.
        looks: tuple[int, ...] = ()
        for cell in cells.values():
            for result in cell.results:
                runs = result.runs if result.model in (one, other) else ()
                for run in runs:
                    if len(run.looks) > len(looks):
                        looks = run.looks
        size = len(self.keep_answered(indices))
        if looks and size > looks[-1]:
            looks = (*looks, size)
        return compare_parts(self.pair_scores(one, other, indices), looks)

    def pair_scores(
        self,
        one: str,
        other: str,
        indices: Sequence[int],
    ) -> list[Pairs]:
        """Return the scores of two models on a part of the instances, by task, with weights of the overall score.

        Args:
            indices: indices of `questions`.
        """
        by_cell: dict[int, list[int]] = defaultdict(list)
        for index in indices:
            by_cell[id(self.questions[index].cell)].append(index)
        # The weights of tasks in no mean are 0. Among themselves they are equal.
        weights = []
        for cell in by_cell.values():
            weights.append(self.questions[cell[0]].weight)
        total = sum(weights)
        shares = []
        for weight in weights:
            shares.append(weight / total if total else 1 / len(by_cell))
        parts = []
        for cell, share in zip(by_cell.values(), shares, strict=True):
            if not share:
                continue
            answered = self.keep_answered(cell)
            pairs = Pairs(
                a=self.scores[one][answered],
                b=self.scores[other][answered],
                groups=[self.questions[index].group for index in answered],
                weight=share,
                asked=self._pair_questions(one, other, cell),
            )
            parts.append(pairs)
        return parts

    @property
    def has_failures(self) -> bool:
        """Whether a question that was put to all models has no answer of one of them."""
        return any(question.cell.asked for question in self.questions)

    def scores_of_run(
        self,
        model: str,
        failure: float | None = None,
    ) -> tuple[Floats, Floats, list[str]]:
        """Return a model's scores on the questions of the overall score.

        Args:
            failure: the score of an answer that is missing. None leaves out the questions that a model did not answer.

        Returns:
            Shape (questions,) each: the scores, their weights with the sum 1, and the groups of questions.
        """
        indices = self.weighted_indices or list(range(len(self.questions)))
        if failure is None:
            indices = self.keep_answered(indices)
        sizes = Counter(id(self.questions[index].cell) for index in indices)
        scores = []
        weights = []
        groups = []
        for index in indices:
            question = self.questions[index]
            scores.append(self._score_of_run(model, index, failure))
            # The weights of tasks in no mean are 0. Among themselves they are equal.
            weights.append((question.weight or 1.0) / sizes[id(question.cell)])
            groups.append(question.group)
        whole = np.array(weights)
        return np.array(scores), whole / whole.sum(), groups

    def _score_of_run(
        self,
        model: str,
        index: int,
        failure: float | None,
    ) -> float:
        question = self.questions[index]
        asked = question.cell.asked
        if failure is None or not asked:
            return float(self.scores[model][index])
        repeats = asked[model][question.instance]
        failed = _failure_share(repeats)
        answered = mean_of(repeats) if failed < 1 else 0.0
        return answered * (1 - failed) + failure * failed

    def _pair_questions(
        self,
        one: str,
        other: str,
        indices: Sequence[int],
    ) -> AskedPairs | None:
        """Return questions of a cell, or nothing if both models answered all of them."""
        questions = [self.questions[index] for index in indices]
        asked = questions[0].cell.asked
        if not asked:
            return None
        first = [asked[one][question.instance] for question in questions]
        second = [asked[other][question.instance] for question in questions]
        return pair_questions(first, second)


def pair_questions(
    one: Sequence[Sequence[Score]],
    other: Sequence[Sequence[Score]],
) -> AskedPairs | None:
    """Return the scores and failures of two models on questions that were put to both.

    Args:
        one, other: the repeats of each question, in the same order.

    Returns:
        Nothing if both models answered all of them.
    """
    failed = []
    for side in (one, other):
        failed.append([_failure_share(repeats) for repeats in side])
    if not any(failed[0]) and not any(failed[1]):
        return None
    return AskedPairs(
        a=[mean_of(repeats) for repeats in one],
        b=[mean_of(repeats) for repeats in other],
        a_failed=failed[0],
        b_failed=failed[1],
        groups=[repeats[0].group for repeats in one],
    )


class SharedTable(_SharedAnswers):
    """The scores of models on the instances that all of them have, by one judge, or an `InputError` without any."""

    def __init__(
        self,
        boards: Iterable[Board],
        names: Sequence[str],
        length: int | None = None,
    ):
        boards = list(boards)
        known: dict[str, ShownModel] = {}
        for board in boards:
            for score in board.scores.values():
                if score.answers:
                    known[score.model] = score.model
        for name in names:
            if name not in known:
                raise InputError(
                    f"compare: model={shorten(name)} has no scored instance in this suite; "
                    f"{list_choices(name, known) or 'no run of the suite has instances'}"
                )
        models = [known[name] for name in names]
        self._suite = boards
        self._length = length
        cells: list[_Cell] = []
        # The tasks that all models have and that are not compared, by the reason.
        refusals: dict[str, dict[str, None]] = defaultdict(dict)
        for board in boards:
            addresses: dict[tuple[str, int | None, str], None] = {}
            for result in board.tasks:
                if result.answers and length in (None, result.length):
                    addresses[result.task, result.length, result.context] = None
            cells += _find_cells(board, models, addresses)
            for address in addresses:
                if reason := _find_refusal(board, models, address):
                    refusals[reason][address[0]] = None
        self.refusals = []
        for reason, tasks in refusals.items():
            self.refusals.append(f"{', '.join(tasks)} cannot be compared: {reason}")
        if not cells:
            reason = self.refusals[0] if self.refusals else "run the same tasks"
            raise InputError(
                f"compare: {', '.join(models)} have no scored instance in common; {reason}"
            )
        weights = _weigh(cells)
        self.boards = list(dict.fromkeys(cell.board for cell in cells))
        self._weights = list(zip(cells, weights, strict=True))
        super().__init__(models, cells, weights)

    @property
    def outside(self) -> list[str]:
        """The tasks that are compared but are in no mean."""
        left_out = [cell.task for cell, weight in self._weights if not weight]
        return list(dict.fromkeys(left_out))

    def pairings(self) -> list[Pairing]:
        """Compare every two models on all instances that both answered, and by length, task and depth of these."""
        families: dict[
            tuple[str, str], dict[tuple[ShownModel, ShownModel, str], Comparison]
        ] = defaultdict(dict)
        for one, other in combinations(self.models, 2):
            table = self
            if len(self.models) > 2:
                table = SharedTable(self._suite, (one, other), self._length)
            for by, part, comparison in table._compare_parts():
                # Each length is a question of its own, as on the report's page of that length.
                own_part = part if by in ("all", "length") else ""
                families[by, own_part][one, other, part] = comparison
        pairings = []
        for (by, _), comparisons in families.items():
            decisions = decide_differences(comparisons)
            for (one, other, part), decision in decisions.items():
                pairing = Pairing(
                    one=one,
                    other=other,
                    by=by,
                    part=part,
                    decision=decision,
                )
                pairings.append(pairing)
        # The sort is stable, so that lengths and depths stay in their order.
        order = ("all", "length", "task", "depth")
        return sorted(pairings, key=lambda pairing: order.index(pairing.by))

    def standings(self, pairings: Iterable[Pairing]) -> list[Standing]:
        """Rank the models, best first."""
        comparisons = {}
        for pairing in pairings:
            if pairing.by == "all":
                comparisons[pairing.one, pairing.other] = pairing.comparison
        cells = self._split(
            lambda question: id(question.cell) if question.weight else None
        )
        answered = [self.keep_answered(indices) for indices in cells.values()]
        weights = np.array([self.questions[indices[0]].weight for indices in answered])
        # A row for each model and a column for each task and length.
        rows = []
        for model in self.models:
            scores = self.scores[model]
            rows.append([scores[indices].mean() for indices in answered])
        weighted = (np.array(rows) @ weights).tolist()
        means = dict(zip(self.models, weighted, strict=True))
        ranks = rank_ranges(means, decide_differences(comparisons))
        standings = []
        for model, mean in means.items():
            standings.append(
                Standing(
                    model=model,
                    mean=mean,
                    rank=ranks[model],
                )
            )
        return sorted(standings, key=lambda standing: standing.rank.rank)

    def describe(
        self,
        pairings: Iterable[Pairing],
        standings: Sequence[Standing],
    ) -> Iterator[str]:
        """Yield a sentence on which model is better over all and, with several lengths, one for each length."""
        parts: dict[str, dict[tuple[ShownModel, ShownModel], Decision]] = {"": {}}
        # At the other lengths, only some of the models share instances.
        lengths = set()
        for cell, weight in self._weights:
            if weight:
                lengths.add(cell.length)
        for length in sort_lengths(lengths):
            parts[label(length)] = {}
        for pairing in pairings:
            if pairing.by in ("all", "length") and pairing.part in parts:
                parts[pairing.part][pairing.one, pairing.other] = pairing.decision
        for part, decisions in parts.items():
            if not decisions or (part and len(parts) < 3):
                continue
            sentence = self._describe_best(part, standings[0].model, decisions)
            yield f"At {part} {sentence}" if part else sentence

    def _describe_best(
        self,
        length: str,
        best: ShownModel,
        decisions: Differences,
    ) -> str:
        """Say whether the model with the highest mean (`best`, or the best at a length) is better than the others."""
        if length:
            # The mean is over all instances that a model answered, as the report has it.
            means = dict.fromkeys(self.models, 0.0)
            for cell, weight in self._weights:
                if label(cell.length) == length:
                    for model, result in zip(self.models, cell.results, strict=True):
                        means[model] += weight * result.interval.mean
            best = max(means, key=means.__getitem__)
        others = [model for model in self.models if model != best]
        differences = add_reverses(decisions)
        if len(others) == 1:
            return f"{describe_pair(best, others[0], differences[best, others[0]])}."
        return f"{show_model(best)} has the highest mean. {describe_best(best, others, differences)}"

    def contrasts(
        self,
        one: ShownModel,
        other: ShownModel,
        most: int,
        address: str,
    ) -> list[_Contrast]:
        """Return the instances with the largest differences between two models, with wins and losses in turn."""
        gaps = self.scores[one] - self.scores[other]
        downwards = np.argsort(-gaps, kind="stable").tolist()
        upwards = np.argsort(gaps, kind="stable").tolist()
        wins = [index for index in downwards if gaps[index] > 0]
        losses = [index for index in upwards if gaps[index] < 0]
        turns: list[int] = []
        for pair in zip(wins, losses, strict=False):
            turns += pair
        # If one model wins more often, its further wins follow.
        turns += [*wins[len(losses) :], *losses[len(wins) :]]
        contrasts = []
        for index in turns[:most]:
            first = self.answers_of(one, index)[0]
            second = self.answers_of(other, index)[0]
            contrast = _Contrast(
                item=self.items[index],
                one=float(self.scores[one][index]),
                other=float(self.scores[other][index]),
                links=(_link(address, first), _link(address, second)),
            )
            contrasts.append(contrast)
        return contrasts

    def _compare_parts(self) -> Iterator[tuple[str, str, Comparison]]:
        """Yield the comparisons of two models, each with what it is by and its part, as in `Pairing`."""
        lengths = self._split(
            lambda question: question.cell.length if question.weight else None
        )
        depths = self._split(lambda question: question.depth)
        parts = {
            "all": self._split(lambda question: "" if question.weight else None),
            "length": {label(length): lengths[length] for length in sorted(lengths)},
            "task": self._split(
                lambda question: question.cell.task or question.cell.entry
            ),
            "depth": {f"{depth} %": depths[depth] for depth in sorted(depths)},
        }
        for by, indices_of in parts.items():
            for part, indices in indices_of.items():
                yield by, part, self.compare(indices)


def _find_cells(
    board: Board,
    models: Sequence[ShownModel],
    addresses: Iterable[tuple[str, int | None, str]],
) -> list[_Cell]:
    """Return the tasks, lengths and contexts of which all models have answers to the same instances."""
    cells = []
    for task, length, context in addresses:
        results = board.shared_scores(models, task, length, context)
        answers = [by_instance(result.answers) for result in results]
        if not answers:
            continue
        rows = _keep_shared(models, answers)
        if not rows[models[0]]:
            continue
        entry = results[0].entry
        cell = _Cell(
            board=board,
            entry=f"{entry} {board.folder}".strip(),
            task=task,
            length=length,
            context=context,
            answers=rows,
            asked=_find_questions(models, results),
            results=results,
        )
        cells.append(cell)
    return cells


def _keep_shared(
    models: Sequence[ShownModel],
    answers: Sequence[Mapping[str, list[Score]]],
) -> dict[str, dict[str, list[Score]]]:
    """Return the answers of each model to the instances that all models have, in the order of the first one's."""
    first, *others = answers
    names = []
    for name in first:
        if all(name in other for other in others):
            names.append(name)
    shared: dict[str, dict[str, list[Score]]] = {}
    for model, by_name in zip(models, answers, strict=True):
        shared[model] = {name: by_name[name] for name in names}
    return shared


def _find_questions(
    models: Sequence[ShownModel],
    results: Sequence[Result],
) -> dict[str, dict[str, list[Score]]]:
    """Return the answers to the instances that were put to all models, with those that failed, empty if none did."""
    asked = _keep_shared(models, [by_question(result.answers) for result in results])
    for by_name in asked.values():
        for repeats in by_name.values():
            if any(answer.score is None for answer in repeats):
                return asked
    return {}


def _find_refusal(
    board: Board,
    models: Sequence[ShownModel],
    address: tuple[str, int | None, str],
) -> str:
    """Say how results were judged and asked that cannot be compared, and how they can be made comparable."""
    task, length, context = address
    scores = board.scores_of(task, length, context)
    results = []
    for model in models:
        if model in scores:
            results.append(scores[model])
    if len(results) < len(models):
        return ""
    if board.shared_scores(models, task, length, context):
        return ""
    has_judges = len({result.judges for result in results}) > 1
    texts = []
    for result in results:
        conditions = list(result.asked_conditions)
        if has_judges:
            judges = " and ".join(sorted(result.judges))
            conditions.insert(0, f"is judged by {judges}")
        described = ", ".join(conditions) or "has the default prompts"
        texts.append(f"{show_model(result.model)} {described}")
    if has_judges:
        texts.append(
            "judge all with one judge (helm-longctx rejudge --suite … --judge … --to …)"
        )
    else:
        texts.append("run the same arguments for all")
    return "; ".join(texts)


def _weigh(cells: Sequence[_Cell]) -> list[float]:
    """Return the weight of each cell: equal benchmarks, equal lengths, and tasks as in the overall score."""
    lengths: dict[str, dict[tuple[int | None, str], list[_Cell]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for cell in cells:
        lengths[cell.board.name][cell.length, cell.context].append(cell)
    weights = {}
    for by_length in lengths.values():
        parts = len(lengths) * len(by_length)
        for (length, _), group in by_length.items():
            tasks = [cell.task for cell in group]
            shares = task_weights(group[0].board, tasks, length)
            for cell in group:
                weights[id(cell)] = shares.get(cell.task, 0.0) / parts
    return [weights[id(cell)] for cell in cells]


def _link(address: str, row: Score) -> str:
    return f"{address}/#/runs/{quote(row.run, safe='')}?instance={quote(row.instance, safe='')}"
