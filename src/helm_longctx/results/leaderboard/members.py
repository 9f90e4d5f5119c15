"""What HELM's groups contain: the runs of a suite, and its published and overall scores without a run."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from helm.benchmark.presentation.summarize import Run

from helm_longctx.results.boards import OVERALL, Board, Suite, label
from helm_longctx.results.reading import Result, read_runs
from helm_longctx.results.suite import MAKER
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC


@dataclass(frozen=True, eq=False)
class Member:
    """A run in HELM's groups, or scores without a run.

    Args:
        name: the run to which cells link, empty for an overall score.
        statistics: the names of statistics, each with the tasks (HELM's sub-splits) that have it.
        results: the results of the run's tasks. Those of another package's scenario have an empty benchmark.
        run: HELM's run. Published and overall scores have none.
    """

    name: str
    model: str
    deployment: str
    groups: Sequence[str]
    statistics: Mapping[str, frozenset[str | None]]
    results: Sequence[Result]
    run: Run | None = None

    @property
    def is_published(self) -> bool:
        """Whether the scores were published, and not measured here."""
        return self.run is None and all(result.is_published for result in self.results)

    @property
    def run_names(self) -> list[str]:
        """The names of the runs to which a cell links; of an overall score those that it is made of."""
        if self.name:
            return [self.name]
        names = []
        for result in self.results:
            for run in result.runs:
                names.append(run.name)
        return names


def list_members(runs: Iterable[Run], suite: Suite) -> list[Member]:
    """Return what the groups of a suite contain: its runs, its published scores, and its overall scores."""
    results_of = {}
    for run, results in read_runs(suite.results):
        results_of[run.path] = results
    own = []
    deployments: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        member = _make_run_member(run, results_of.get(Path(run.run_path), []))
        own.append(member)
        for result in member.results:
            deployments[result.model][member.deployment] = None
    return [
        *own,
        *_published_members(suite.results),
        *_overall_members(suite.boards, deployments),
    ]


def _make_run_member(run: Run, results: Sequence[Result]) -> Member:
    tasks: dict[str, set[str | None]] = defaultdict(set)
    for stat in run.stats:
        tasks[stat.name.name].add(stat.name.sub_split)
    spec = run.run_spec
    return Member(
        name=spec.name,
        model=spec.adapter_spec.model,
        deployment=spec.adapter_spec.model_deployment,
        groups=spec.groups,
        statistics={name: frozenset(of) for name, of in tasks.items()},
        results=results,
        run=run,
    )


def _published_members(results: Iterable[Result]) -> Iterator[Member]:
    """Yield the published scores of each model in each category at each length."""
    published: dict[tuple[str, str, str, int | None], list[Result]] = defaultdict(list)
    for result in results:
        if result.is_published:
            key = (result.benchmark, result.entry, result.model, result.length)
            published[key].append(result)
    for (benchmark, _, _, _), rows in published.items():
        yield _make_member(f"{MAKER}_{benchmark}", rows[0].model, rows)


def _overall_members(
    boards: Iterable[Board],
    deployments: Mapping[str, Iterable[str]],
) -> Iterator[Member]:
    for board in boards:
        # With a single category, the overall score is that category's.
        for overall in board.overalls if len(board.benchmark.categories) > 1 else ():
            # HELM's tables have a row for each deployment of a model.
            for deployment in deployments.get(overall.model, [overall.model]):
                yield _make_member("", deployment, [overall])


def _make_member(name: str, deployment: str, results: Sequence[Result]) -> Member:
    first = results[0]
    benchmark = find_benchmark(first.benchmark)
    category = benchmark.entries.get(first.entry)
    tasks: dict[str, set[str | None]] = defaultdict(set)
    for result in results:
        if result.has_score:
            for statistic in (MAIN_METRIC, *result.statistics):
                tasks[statistic].add(result.task or None)
    parts = [category.name if category else OVERALL]
    parts += [result.task for result in results if result.task]
    return Member(
        name=name,
        model=first.model,
        deployment=deployment,
        groups=[
            group_name(benchmark, part, label(first.length), metric=first.metric)
            for part in parts
        ],
        statistics={statistic: frozenset(of) for statistic, of in tasks.items()},
        results=results,
    )


def find_first_group(boards: Iterable[Board]) -> str | None:
    """Return the group of the leaderboard's first table: of the user's benchmark, at its main length."""
    board = next((board for board in boards if board.scores), None)
    if board is None:
        return None
    length = board.main_length
    return group_name(
        board.benchmark,
        "",
        label(length),
        folder=board.folder_at(length),
        metric=board.metric,
    )
