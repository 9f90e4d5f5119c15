"""All scores of a benchmark in a suite: the runs that count, and their means over tasks and categories.

Tables, pages, exports and comparisons show what a board returns.
"""

import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from helm_longctx.documents.numbers import one_line
from helm_longctx.errors import InputError
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.reading import (
    Result,
    Run,
    interval_finder,
    published_results,
    read_results,
    read_runs,
)
from helm_longctx.results.statistics.intervals import (
    ClusterWeights,
    Interval,
    mean_of_means,
)
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.lengths import length_label, parse_length, sort_lengths
from helm_longctx.tasks.metric_names import SCORE_NAMES
from helm_longctx.tasks.task import MAIN_METRIC, Task

Key = TypeVar("Key", bound=Hashable)

OVERALL = "overall"
"""The part that is the mean of a benchmark's averaged categories."""

FLOORS = {"longctx/null": "null", "longctx/lexical": "lexical"}
"""The models whose scores need no understanding, and their names in plots."""


class ScoreKey(NamedTuple):
    """The key of a score. `length` is None for a benchmark without lengths."""

    model: ShownModel
    part: str
    length: int | None
    context: str = "full"


@dataclass(frozen=True, eq=False)
class Board:
    """All results of a benchmark, or of one set of the user's questions.

    Args:
        benchmark: the benchmark. For the user's questions, its tasks are those that were run.
        folder: the folder of the user's files, without the length if each length has a folder, empty if there are none.
        short_folder: the last parts of the folder, as many as distinguish it from other folders.
        tasks: the results of tasks that count, for each judge apart.
        categories: the results of categories, for each judge apart.
        overalls: the overall scores, also those that a model does not have, whose `caveats` say why.
        folders: the folder of each length, if each length has one.
        metric: `likelihood`, `perplexity` or `longppl` if given texts are scored, empty for the official metrics.
    """

    benchmark: Benchmark
    folder: str
    short_folder: str
    tasks: Sequence[Result]
    categories: Sequence[Result]
    overalls: Sequence[Result]
    runs: Sequence[tuple[Run, Sequence[Result]]]
    folders: Mapping[int | None, str] = field(default_factory=dict)
    metric: str = ""

    @property
    def name(self) -> str:
        """The name, such as `helmet`. No other board has it."""
        return "_".join(filter(None, (self.benchmark.name, self.metric, self.folder)))

    @property
    def file_name(self) -> str:
        """The name as part of a file's name."""
        return group_name(
            self.benchmark, "", "", folder=self.folder, metric=self.metric
        )

    def folder_at(self, length: int | None) -> str:
        """Return the folder of the user's files for a length, empty if there are none."""
        return self.folders.get(length, self.folder)

    @property
    def title(self) -> str:
        """The title. Of the user's folder it has the short name."""
        is_named = self.metric and self.metric != self.benchmark.tasks[0].metric
        score = SCORE_NAMES[self.metric] if is_named else ""
        parts = [self.benchmark.title, score, self.short_folder]
        return " ".join(part for part in parts if part)

    @cached_property
    def results(self) -> Mapping[ScoreKey, Result]:
        """The result of each place that was run, with or without a score: of several judges the one that counts."""
        rows = (*self.tasks, *self.categories, *self.overalls)
        with_score = [row for row in rows if row.has_score]
        without_score = [row for row in rows if not row.has_score]
        return _choose_by_key([*with_score, *without_score], score_key)

    @cached_property
    def scores(self) -> Mapping[ScoreKey, Result]:
        """The result of each place that has a score."""
        return {key: result for key, result in self.results.items() if result.has_score}

    @cached_property
    def _scores_by_cell(
        self,
    ) -> Mapping[tuple[str, int | None, str], Mapping[ShownModel, Result]]:
        """The scores of each part at a length and in a context, by model, in the order of `models`."""
        keys_by_model: dict[ShownModel, list[ScoreKey]] = defaultdict(list)
        for key in self.scores:
            keys_by_model[key.model].append(key)
        by_cell: dict[tuple[str, int | None, str], dict[ShownModel, Result]] = {}
        for model in self.models:
            for key in keys_by_model[model]:
                cell = by_cell.setdefault((key.part, key.length, key.context), {})
                cell[model] = self.scores[key]
        return by_cell

    def scores_of(
        self,
        part: str,
        length: int | None,
        context: str = "full",
    ) -> Mapping[ShownModel, Result]:
        """Return the scores of a part by model, the user's own models first."""
        return self._scores_by_cell.get((part, length, context), {})

    def score(
        self,
        model: str,
        part: str,
        length: int | None,
        context: str = "full",
    ) -> Result | None:
        """Return the score of a part, also of `OVERALL`, or None if the model lacks one."""
        return self.scores_of(part, length, context).get(cast(ShownModel, model))

    def find(
        self,
        model: str,
        part: str,
        length: int | None,
        context: str = "full",
    ) -> Result | None:
        """Return the result of a part, whose `caveats` say why it has no score, or None if the part was not run."""
        # The model's name is enough for a look-up.
        key = ScoreKey(cast(ShownModel, model), part, length, context)
        return self.results.get(key)

    @cached_property
    def _scores_by_judge(self) -> Mapping[ScoreKey, Sequence[Result]]:
        """The scores of each task, for each judge apart."""
        results: dict[ScoreKey, list[Result]] = defaultdict(list)
        for task in self.tasks:
            if task.has_score:
                results[score_key(task)].append(task)
        return results

    def shared_scores(
        self,
        models: Sequence[ShownModel],
        task: str,
        length: int | None,
        context: str = "full",
    ) -> list[Result]:
        """Return each model's score of a task, all by the same judge and on the same prompts; none if there are none.

        Of several judges, the one with the most instances counts, and of these the official one.
        """
        by_conditions: dict[tuple[str, ...], list[Result]] = defaultdict(list)
        scores = self.scores_of(task, length, context)
        if not all(model in scores for model in models):
            return []
        for model in models:
            key = ScoreKey(model, task, length, context)
            for result in self._scores_by_judge.get(key, ()):
                by_conditions[result.conditions].append(result)
        whole = []
        for rows in by_conditions.values():
            if len(rows) == len(models):
                whole.append(rows)
        return max(
            whole,
            key=lambda rows: (min(row.interval.n for row in rows), rows[0].is_official),
            default=[],
        )

    @cached_property
    def models(self) -> list[ShownModel]:
        """All models with a score, the user's own first."""
        names = dict.fromkeys([key.model for key in self.scores])
        return sorted(names, key=self.published_models.__contains__)

    @cached_property
    def published_models(self) -> frozenset[ShownModel]:
        """The models whose scores were published, and not measured here."""
        return frozenset(
            [key.model for key, score in self.scores.items() if score.is_published]
        )

    @cached_property
    def own_models(self) -> list[ShownModel]:
        """The user's models with a score."""
        return [model for model in self.models if model not in self.published_models]

    def is_floor(self, model: ShownModel) -> bool:
        """Whether a model's scores need no understanding."""
        is_floor = model in FLOORS or model.label in self.benchmark.floors
        return is_floor or model.setup.method.is_floor

    @cached_property
    def kinds(self) -> Mapping[ShownModel, str]:
        """The kind of each model with a score: `own`, `published` or `floor`."""
        kinds = {}
        for model in self.models:
            if model in self._floors:
                kinds[model] = "floor"
            elif model in self.published_models:
                kinds[model] = "published"
            else:
                kinds[model] = "own"
        return kinds

    @cached_property
    def models_by_rank(self) -> list[ShownModel]:
        """All models with a score: the user's, the floors, and the published ones, each by rank."""
        part = self.main_part(self.main_length)
        scores = [
            *self.ranking(self.main_length, part),
            *self.without_rank(self.main_length, part),
        ]
        by_kind: dict[str, list[ShownModel]] = {"own": [], "floor": [], "published": []}
        for model in dict.fromkeys([*(score.model for score in scores), *self.models]):
            by_kind[self.kinds[model]].append(model)
        return [*by_kind["own"], *by_kind["floor"], *by_kind["published"]]

    @cached_property
    def _floors(self) -> frozenset[ShownModel]:
        """The models with a score that need no understanding, because this is asked for each score."""
        return frozenset(model for model in self.models if self.is_floor(model))

    @cached_property
    def competitors(self) -> list[ShownModel]:
        """The models that are compared: all except the floors."""
        return [model for model in self.models if model not in self._floors]

    @cached_property
    def lengths(self) -> list[int | None]:
        """All lengths with a score, ascending."""
        # A generator would make a call for each of thousands of scores.
        return sort_lengths({key.length for key in self.scores})

    @cached_property
    def columns(self) -> list[str]:
        """The parts whose mean is the overall score: the averaged categories, or the tasks of a single one."""
        averaged = []
        for entry, category in self.benchmark.entries.items():
            if category.averaged:
                averaged.append(entry)
        if len(averaged) == 1:
            return [task.name for task in self.benchmark.entries[averaged[0]].tasks]
        return averaged

    @cached_property
    def others(self) -> list[str]:
        """The parts with a column of their own that are in no mean: other categories, and variants of tasks."""
        entries = self.benchmark.entries.items()
        rest = []
        for entry, category in entries:
            if not category.averaged:
                rest.append(entry)
        return [
            *rest,
            *(task.name for _, category in entries for task in category.variants),
        ]

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each part."""
        tasks = {}
        for task in self.benchmark.tasks:
            tasks[task.name] = task.title
        categories = {}
        for name, category in self.benchmark.entries.items():
            categories[name] = category.title or self.benchmark.title
        return {OVERALL: self.benchmark.overall or "Overall", **categories, **tasks}

    def parts_at(self, length: int | None, context: str = "full") -> list[str]:
        """Return the parts with a column at a length: the overall score, the parts of the mean, and the others."""
        # With a single column, the overall score would repeat it.
        columns = self.columns_at(length, context)
        parts = [OVERALL, *columns, *self.others]
        if len(self.columns) < 2:
            parts.remove(OVERALL)
        return [part for part in parts if self._has_scores(part, length, context)]

    def table_parts(
        self,
        models: Collection[ShownModel],
        length: int | None,
        context: str = "full",
    ) -> list[str]:
        """Return the parts that models have in tables with all tasks: each category comes before its tasks."""
        parts = [OVERALL] if len(self.benchmark.categories) > 1 else []
        for entry, category in self.benchmark.entries.items():
            parts.append(entry)
            for task in (*category.tasks, *category.variants):
                parts.append(task.name)

        shown = set()
        for key, result in self.results.items():
            is_asked_for = key.length == length and key.context == context
            if is_asked_for and key.model in models and not self.repeats_task(result):
                shown.add(key.part)
        return [part for part in dict.fromkeys(parts) if part in shown]

    def repeats_task(self, result: Result) -> bool:
        """Whether a result is the mean of a category's only task. A published score of the category is not."""
        category = self.benchmark.entries.get(result.part)
        return (
            category is not None
            and not result.task
            and bool(result.parts)
            and len(category.tasks) < 2
        )

    def columns_at(self, length: int | None, context: str = "full") -> list[str]:
        """Return the columns of the mean that exist at a length."""
        columns = self.columns
        return [part for part in columns if self._has_scores(part, length, context)]

    def _has_scores(
        self,
        part: str,
        length: int | None,
        context: str,
    ) -> bool:
        return bool(self.scores_of(part, length, context))

    def tasks_of(self, part: str, length: int | None) -> list[str]:
        """Return the tasks of a part."""
        key = (part, length)
        if key not in self._tasks_of:
            self._tasks_of[key] = self._find_tasks(part, length)
        return list(self._tasks_of[key])

    @cached_property
    def _tasks_of(self) -> dict[tuple[str, int | None], list[str]]:
        """What `tasks_of` returned, because it is asked for each score."""
        return {}

    def _find_tasks(self, part: str, length: int | None) -> list[str]:
        if part == OVERALL:
            tasks = []
            for column in self.columns_at(length):
                tasks.extend(self.tasks_of(column, length))
            return tasks
        if category := self.benchmark.entries.get(part):
            return [task.name for task in category.tasks_at(length)]
        return [part]

    @cached_property
    def main_length(self) -> int | None:
        """The longest length that most of the user's models have; without own models, most published ones.

        More models can have a shorter length, but not twice as many.
        """
        if not self.lengths:
            return None
        models = self.own_models or self.models
        measured = {(key.model, key.length) for key in self.scores}
        counts = {}
        for length in self.lengths:
            counts[length] = sum((model, length) in measured for model in models)
        longest = None
        # The lengths are ascending.
        for length, count in counts.items():
            if 2 * count > max(counts.values()):
                longest = length
        return longest

    def main_part(self, length: int | None) -> str:
        """Return the part by which models are ranked: that with most of the user's models, first the overall score.

        A part that only floors have ranks nothing, so it is used only if there is no other.
        """
        models = set(self.own_models or self.models)

        def count(part: str) -> tuple[bool, int, int]:
            ranked = []
            for score in self.ranking(length, part):
                ranked.append(score.model in models)
            scores = self.scores_of(part, length)
            return bool(ranked), sum(ranked), len(models & scores.keys())

        # `max` returns the first of equal parts, so the overall score is preferred. Without full context there is none.
        return max(self.parts_at(length), key=count, default=OVERALL)

    def ranking(self, length: int | None, part: str = OVERALL) -> list[Result]:
        """Return the scores of a part that have ranks, the best first, without the floors.

        They are of the same tasks, judge and questions: generated ones or the benchmark's own.

        These are all tasks of the part if one of the user's models has them, or if the user has no model. Otherwise
        they are the tasks that most of the user's models have. Judge and questions are those of most of the user's
        models with these tasks; of equally many, the official judge's, and then the benchmark's own questions.
        """
        key = (length, part)
        if key not in self._rankings:
            self._rankings[key] = self._rank(length, part)
        return list(self._rankings[key])

    @cached_property
    def _rankings(self) -> dict[tuple[int | None, str], list[Result]]:
        """The rankings that were asked for, because a report asks for each of them many times."""
        return {}

    def _rank(self, length: int | None, part: str) -> list[Result]:
        competing = self.competing(length, part)
        behind = {score.model: self.tasks_behind(score) for score in competing}
        own = [score for score in competing if not score.is_published] or competing
        sets = [behind[score.model] for score in own]
        whole = frozenset(self.tasks_of(part, length))
        # A score of one task with 100 is not above a mean of four tasks with 99.
        if whole in sets:
            ranked = whole
        else:
            ranked = max(
                sets, key=lambda tasks: (sets.count(tasks), len(tasks)), default=whole
            )
        judged = []
        for score, tasks in zip(own, sets, strict=True):
            if tasks == ranked:
                judged.append(score)
        origins = Counter([(score.judges, score.is_generated) for score in judged])
        chosen = max(
            judged,
            key=lambda score: (
                origins[score.judges, score.is_generated],
                score.is_official,
                not score.is_generated,
            ),
            default=None,
        )
        if chosen is None:
            return []
        ranking = []
        for score in competing:
            if (
                behind[score.model] == ranked
                and score.judges == chosen.judges
                and score.is_generated == chosen.is_generated
            ):
                ranking.append(score)
        return ranking

    def without_rank(self, length: int | None, part: str = OVERALL) -> list[Result]:
        """Return the scores of a part without a rank: of other tasks or questions, or by another judge."""
        ranked = {score.model for score in self.ranking(length, part)}
        rest = []
        for score in self.competing(length, part):
            if score.model not in ranked:
                rest.append(score)
        return rest

    def competing(self, length: int | None, part: str = OVERALL) -> list[Result]:
        """Return all scores of a part, the best first, without the floors. They can be means over different tasks."""
        key = (length, part)
        if key not in self._competing:
            scores = self.scores_of(part, length)
            means = {}
            for model, score in scores.items():
                if model not in self._floors:
                    means[model] = -score.interval.mean
            ordered = []
            for model in sorted(means, key=means.__getitem__):
                ordered.append(scores[model])
            self._competing[key] = ordered
        return list(self._competing[key])

    @cached_property
    def _competing(self) -> dict[tuple[int | None, str], list[Result]]:
        """The scores that `competing` returned, because a report asks for them many times."""
        return {}

    def tasks_behind(self, score: Result) -> frozenset[str]:
        """Return the tasks of which a score is the mean: all of its part if a publication has only the mean."""
        known = self._tasks_behind.get(id(score))
        if known is None:
            # The score is kept, so that no other one gets its identity.
            known = score, self._find_tasks_behind(score)
            self._tasks_behind[id(score)] = known
        return known[1]

    @cached_property
    def _tasks_behind(self) -> dict[int, tuple[Result, frozenset[str]]]:
        """The tasks behind the scores that were asked for, by the identity of the score."""
        return {}

    def _find_tasks_behind(self, score: Result) -> frozenset[str]:
        tasks: set[str] = set()
        for part in score.parts:
            # Most parts are tasks, and a benchmark has thousands of published ones.
            if part.has_score:
                tasks |= {part.task} if part.task else self.tasks_behind(part)
        return frozenset(tasks or self.tasks_of(score.part, score.length))

    def floors(self, part: str, length: int | None) -> list[Result]:
        """Return the scores of a part that need no understanding of the context."""
        scores = self.scores_of(part, length)
        return [score for model, score in scores.items() if model in self._floors]

    def floor_result_below(self, score: Result) -> Result | None:
        """Return the best result of the same tasks and questions that needs no understanding, or None without one."""
        comparable = []
        for floor in self.floors(score.part, score.length):
            has_tasks = self.tasks_behind(floor) == self.tasks_behind(score)
            if has_tasks and floor.is_generated == score.is_generated:
                comparable.append(floor)
        return max(comparable, key=lambda floor: floor.interval.mean, default=None)

    def floor_below(self, score: Result) -> float | None:
        """Return the score of `floor_result_below`, or None without one."""
        floor = self.floor_result_below(score)
        return floor.interval.mean if floor else None


def score_key(result: Result) -> ScoreKey:
    """Return the key of a result. Results of several judges share it."""
    return ScoreKey(
        result.model, result.task or result.entry, result.length, result.context
    )


class Suite(NamedTuple):
    """All results of a suite, of tasks in runs and published ones, and the boards that are made of them."""

    results: Sequence[Result]
    boards: Sequence[Board]


def read_suite(
    suite: Path,
    benchmarks: Iterable[Benchmark],
    *,
    published: bool = False,
    keep_answers: bool = True,
) -> Suite:
    """Read the results of a suite's folder, and make the boards in the order in which they are shown.

    Args:
        published: whether to add all published results of these benchmarks to those in the suite.
        keep_answers: whether results have the scores of answers. Comparisons need these.
    """
    benchmarks = tuple(benchmarks)
    results = read_results(suite, benchmarks, keep_answers)
    made = make_suite(results, benchmarks, published)
    if not made.boards:
        raise InputError(f"{suite} has no scores; first use helm-longctx run with it")
    return made


def make_suite(
    results: Sequence[Result],
    benchmarks: Iterable[Benchmark],
    published: bool = False,
) -> Suite:
    """Return results with the boards that are made of them. There can be none; see `read_suite`."""
    return Suite(results, make_boards(results, benchmarks, published))


def make_boards(
    results: Iterable[Result],
    benchmarks: Iterable[Benchmark],
    published: bool = False,
) -> list[Board]:
    """Return a board for each benchmark and each set of own questions: with own runs first, then by `leads`."""
    results = list(results)
    groups = defaultdict(list)
    sets = find_question_sets(
        dict.fromkeys([(result.folder, result.length) for result in results])
    )
    for result in results:
        groups[result.benchmark, result.metric, sets[result.folder]].append(result)
    short = shorten_folders({folder for _, _, folder in groups})
    boards = []
    for whole in benchmarks:
        for name, metric, folder in sorted(groups):
            if name == whole.name:
                group = groups[name, metric, folder]
                # Nobody has published scores of the user's own questions.
                if published and not metric and not folder:
                    group = [*group, *published_results(whole, known=group)]
                benchmark, rows = _restrict(whole, metric, group)
                # Only one of several runs of a task counts, but a task can be in several categories.
                tasks = choose_tasks([row for row in rows if row.task])
                categories = category_results(rows, benchmark)

                folders = {}
                for row in rows:
                    if row.folder != folder:
                        folders[row.length] = row.folder
                board = Board(
                    benchmark=benchmark,
                    folder=folder,
                    short_folder=short[folder],
                    tasks=tasks,
                    categories=categories,
                    overalls=overall_results(categories, benchmark),
                    runs=list(read_runs(rows)),
                    folders=folders,
                    metric=metric,
                )
                boards.append(board)
    # The sort is stable.
    boards.sort(key=lambda board: (not board.runs, not board.benchmark.leads))
    return [board for board in boards if board.runs or board.scores]


def _restrict(
    benchmark: Benchmark,
    metric: str,
    results: Sequence[Result],
) -> tuple[Benchmark, Sequence[Result]]:
    """Return the benchmark and the results that a board shows: of the user's questions, the tasks that ran."""
    if metric:  # nothing was published, and likelihoods are on another scale
        benchmark = replace(
            benchmark,
            published=tuple,
            protocols=tuple,
            effective_score=None,
        )
    own = set()
    for result in results:
        if not result.is_published:
            own.add(result.entry)
    if own:  # beside own models, a category in no mean that only published models have would be an empty column
        for entry, category in benchmark.entries.items():
            if category.averaged:
                own.add(entry)
        results = [result for result in results if result.entry in own]
    categories = []
    for category in benchmark.categories:
        if category.needs_path:
            tasks = tasks_of(category, results)
            category = replace(category, tasks=tasks, variants=())
        categories.append(category)
    return replace(benchmark, categories=tuple(categories)), results


def published_boards(benchmarks: Iterable[Benchmark]) -> list[Board]:
    """Return a board of the published results of each benchmark that has some."""
    benchmarks = tuple(benchmarks)
    results = []
    for benchmark in benchmarks:
        results += published_results(benchmark)
    return make_boards(results, benchmarks)


def find_question_sets(folders_at: Iterable[tuple[str, int | None]]) -> dict[str, str]:
    """Return the name of the set of questions in each folder: the folder, or its name without its length.

    `law-8k` at the length 8k and `law-32k` at 32k are the set `law`, and so are `law/8k` and `law/32k`. A folder that
    is used at several lengths is a set of its own, and so is one that has no other folder for another length.
    """
    lengths: dict[str, set[int | None]] = defaultdict(set)
    for folder, length in folders_at:
        lengths[folder].add(length)
    by_name: dict[str, list[str]] = defaultdict(list)
    for folder, (first, *others) in lengths.items():
        name = folder
        if first is not None and not others:
            name = _without_length(folder, first)
        by_name[name].append(folder)
    sets = {folder: folder for folder in lengths}
    for name, folders in by_name.items():
        # Two folders for one length, or a folder with the set's name, would be mixed.
        of_lengths = set().union(*(lengths[folder] for folder in folders))
        is_free = bool(name) and name not in lengths
        if is_free and len(folders) == len(of_lengths) > 1:
            sets |= dict.fromkeys(folders, name)
    return sets


def _without_length(folder: str, length: int) -> str:
    """Return a folder's name without the last word that says this length, and the sign before it."""
    words = list(re.finditer(r"(^|[-_./~])([^-_./~]+)", folder))
    for word in reversed(words):
        with suppress(InputError):
            if parse_length(word[2]) == length:
                # After a first word, the sign behind it goes.
                return folder[: word.start()] + folder[word.end() + (not word[1]) :]
    return folder


def shorten_folders(folders: Iterable[str]) -> dict[str, str]:
    """Return for each folder its last part, or as many of its last parts as distinguish it from the others."""
    paths = list(folders)
    short: dict[str, str] = {}
    for folder in paths:
        parts = folder.split("/")
        end = parts.pop()
        while parts and sum(f"/{other}".endswith(f"/{end}") for other in paths) > 1:
            end = f"{parts.pop()}/{end}"
        short[folder] = end
    return short


def choose_results(
    results: Iterable[Result],
    key: Callable[[Result], Hashable],
) -> list[Result]:
    """Return for each key the result that counts: the one with the most instances, or else of the official judge.

    Results of generated questions count only if there are none of the benchmark's own, and published results only if
    there is no other.
    """
    return list(_choose_by_key(results, key).values())


def _choose_by_key(
    results: Iterable[Result],
    key: Callable[[Result], Key],
) -> dict[Key, Result]:
    """Return the result that counts for each key, as `choose_results` chooses them."""
    best: dict[Key, Result] = {}
    for result in results:
        at = key(result)
        earlier = best.setdefault(at, result)
        # The comparison is strict, so that the first of equal results counts.
        if result is not earlier and _weight(result) > _weight(earlier):
            best[at] = result
    return best


def _weight(result: Result) -> tuple[bool, bool, bool, int, bool]:
    # A mean of fewer tasks can have more instances, so the tasks come first.
    return (
        not result.is_published,
        result.is_complete,
        not result.is_generated,
        result.interval.n,
        result.is_official,
    )


def choose_tasks(results: Iterable[Result]) -> list[Result]:
    """Return the results of tasks that count, for each judge apart."""

    def find_key(result: Result) -> tuple[object, ...]:
        cell = (result.model, result.task, result.length, result.context)
        other_judge = result.other_judge if result.caveats else ""
        return result.benchmark, result.folder, cell, other_judge

    return choose_results(results, find_key)


_find_cell = operator.attrgetter("model", "length", "context")
"""Returns what the results in a mean share."""


def mean_over_tasks(
    tasks: Iterable[Task],
    results: Iterable[Result],
    metric: str = MAIN_METRIC,
) -> tuple[Interval, tuple[Caveat, ...]]:
    """Return the unweighted mean of a statistic over tasks, and why it is not comparable.

    Args:
        tasks: the tasks that the mean should be of.
        results: results of tasks, in which further tasks are ignored. Of several of a task the one that counts is used.
    """
    return _average_tasks(
        tasks, _choose_by_key(results, operator.attrgetter("task")), metric
    )


def _average_tasks(
    tasks: Iterable[Task],
    chosen: Mapping[str, Result],
    metric: str,
) -> tuple[Interval, tuple[Caveat, ...]]:
    missing: list[Caveat] = []
    others: list[Caveat] = []
    find_interval = interval_finder(metric)
    intervals = []
    clusters = []
    for task in tasks:
        result = chosen.get(task.name)
        interval = find_interval(result) if result else None
        if result is None or interval is None or math.isnan(interval.mean):
            missing.append(Caveat("missing", task.name))
            continue
        intervals.append(interval)
        others += result.caveats
        # Of published scores no clusters are known.
        if not result.is_published:
            clusters.append(result.clusters_of(metric))
    if len(clusters) < len(intervals):
        clusters = []
    return mean_of_means(intervals, clusters), (*missing, *others)


def mean_of_results(
    weighted: Sequence[tuple[Result, float]],
    metric: str = MAIN_METRIC,
) -> Interval:
    """Return the weighted mean of a statistic over scores.

    A mean of means is made of its tasks (`Result.weighted_tasks`): a mean of intervals of means would be another
    interval of the same questions, and a wider one.

    Args:
        weighted: scores with the statistic, each with its weight. The sum of the weights is 1.
    """
    find_interval = interval_finder(metric)
    intervals = []
    clusters: list[ClusterWeights] = []
    weights = []
    for result, weight in weighted:
        interval = find_interval(result)
        if interval is None:
            raise KeyError(metric)
        intervals.append(interval)
        # Of published scores no clusters are known.
        clusters.append({} if result.is_published else result.clusters_of(metric))
        weights.append(weight)
    return mean_of_means(intervals, clusters, weights)


def category_results(results: Iterable[Result], benchmark: Benchmark) -> list[Result]:
    """Average the tasks of each category, for each model, length, context, folder and judge.

    Missing tasks are in the mean's `caveats`. A published score of a whole category is returned unchanged.
    """
    groups: dict[tuple[object, ...], list[Result]] = defaultdict(list)
    for result in results:
        if result.benchmark == benchmark.name:
            judge = result.run.judge if result.run else ""
            groups[(result.entry, result.folder, *_find_cell(result), judge)].append(
                result
            )
    means = []
    tasks_at: dict[tuple[str, int | None], tuple[Task, ...]] = {}
    for rows in groups.values():
        entry = rows[0].entry
        category = benchmark.entries[entry]
        if category.needs_path:
            tasks = tasks_of(category, rows)
        else:
            at = (entry, rows[0].length)
            if at not in tasks_at:
                tasks_at[at] = category.tasks_at(rows[0].length)
            tasks = tasks_at[at]
        names = set(map(operator.attrgetter("name"), tasks))
        whole = None
        used = []
        for row in rows:
            if not row.task:
                whole = whole or row
            elif row.task in names:
                used.append(row)
        # A run of a variant alone has no mean.
        if whole:
            means.append(whole)
        elif used:
            means.append(average(entry, tasks, used))
    return means


def tasks_of(category: Category, rows: Iterable[Result]) -> tuple[Task, ...]:
    """Return the tasks whose mean is a category's score; of own questions, those that were run."""
    rows = list(rows)
    if not category.needs_path:
        if rows:
            return category.tasks_at(rows[0].length)
        return category.tasks
    names = {row.task for row in rows}
    every = (*category.tasks, *category.variants)
    return tuple(task for task in every if task.name in names)


def average(entry: str, tasks: Sequence[Task], rows: Sequence[Result]) -> Result:
    """Return the mean of tasks as a result. The rows agree in model, length, context and folder."""
    by_task = _choose_by_key(rows, operator.attrgetter("task"))
    chosen = list(by_task.values())
    interval, caveats = _average_tasks(tasks, by_task, MAIN_METRIC)
    first = rows[0]
    return Result(
        benchmark=first.benchmark,
        entry=entry,
        task="",
        model=first.model,
        length=first.length,
        context=first.context,
        interval=interval,
        caveats=caveats,
        folder=first.folder,
        metric=first.metric,
        **_of_parts(chosen),
    )


def _of_parts(parts: Sequence[Result]) -> dict[str, Any]:
    """Return the fields of a mean that follow from the results that it is of."""
    judges: frozenset[str] = frozenset()
    failed = 0
    is_published = False
    for part in parts:
        judges |= part.judges
        failed += part.failed
        is_published |= part.is_published
    return {
        "judges": judges,
        "failed": failed,
        "parts": tuple(parts),
        "is_published": is_published,
    }


def overall_results(categories: Iterable[Result], benchmark: Benchmark) -> list[Result]:
    """Average the averaged categories of each model at each length, if the benchmark has several or names the mean.

    A model has no overall score, and `caveats` say why, if a category lacks a score or a task, or if different judges
    judged categories with the same official judge. Other lacks are kept as marks.

    Args:
        categories: results of `category_results`, of which the best of each category counts.
    """
    averaged = {}
    for entry, category in benchmark.entries.items():
        if category.averaged:
            averaged[entry] = category
    if len(averaged) > 1 and not benchmark.overall:
        return []
    used = []
    for result in categories:
        if result.context == "full" and result.entry in averaged:
            used.append(result)
    groups: dict[tuple[object, ...], dict[str, Result]] = defaultdict(dict)
    for result in choose_results(
        used, lambda result: (result.folder, result.entry, *_find_cell(result))
    ):
        groups[(result.folder, *_find_cell(result))][result.entry] = result
    overalls = []
    for by_entry in groups.values():
        caveats = []
        for entry, category in averaged.items():
            if entry not in by_entry:
                caveats.append(Caveat("missing", category.name or entry))
        for result in by_entry.values():
            caveats += result.caveats
        caveats += _mixed_judges(averaged, by_entry)
        is_whole = all(caveat.kind not in ("missing", "judges") for caveat in caveats)
        tasks = []
        for entry in averaged if is_whole else ():
            for task, weight in by_entry[entry].weighted_tasks:
                tasks.append((task, weight / len(averaged)))
        overall = replace(
            next(iter(by_entry.values())),
            entry=OVERALL,
            task="",
            run=None,
            statistics={},
            interval=mean_of_results(tasks),
            caveats=tuple(caveats),
            **_of_parts(list(by_entry.values())),
        )
        overalls.append(overall)
    return overalls


def _mixed_judges(
    averaged: Mapping[str, Category],
    results: Mapping[str, Result],
) -> list[Caveat]:
    """Return a caveat for each official judge that several judges replaced, as one judge gave the published scores."""
    judges: dict[str, set[str]] = defaultdict(set)
    for entry, category in averaged.items():
        for task in category.tasks:
            if task.official_judge and entry in results:
                judges[task.official_judge] |= results[entry].judges
    caveats = []
    for used in judges.values():
        if len(used) > 1:
            caveats.append(Caveat("judges", "", " and ".join(sorted(used))))
    return caveats


def own_boards(boards: Iterable[Board]) -> list[Board]:
    """Return the boards with the user's runs, or all if there are none."""
    boards = list(boards)
    return [board for board in boards if board.runs] or boards


@cache
def label(length: int | None) -> str:
    """Return a length's label, empty for None."""
    return "" if length is None else length_label(length)


@cache
def show_model(model: ShownModel) -> str:
    """Return a model's name as pages and plots can show it."""
    return one_line(model.label)
