"""Describes the data of benchmarks: from where, under which license, checked by what, and fetched when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from helm_longctx.data.fetch import Source
from helm_longctx.data.origins import find_origin
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.task import Task

BEFORE_RUN, ON_REQUEST, FOR_JUDGES = "before a run", "only by helm-longctx fetch", "when answers are judged"

NOT_STATED = "not stated"


@dataclass
class DataCard:
    """The data that a benchmark has from one publisher.

    Args:
        benchmark: name of the benchmark.
        page: address of the publisher's page.
        license: the license of the data; `not stated` if the publisher names none.
        size: size of the download, as text; empty if it is not known.
        faults: known wrong keys and other faults, a sentence each.
        revisions: what is fetched.
        checks: the values with which content is compared, or who states them.
        times: when it is fetched.
        tasks: names of the tasks that use it.
        files: paths under the data root.
    """

    benchmark: str
    page: str
    license: str
    size: str
    faults: tuple[str, ...]
    revisions: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def make_cards(benchmark: Benchmark) -> list[DataCard]:
    """Return a card for each publisher of a benchmark's data; none if all its data is generated or the user's own."""
    cards: dict[str, DataCard] = {}
    for task, time, source in _list_sources(benchmark):
        origin = find_origin(source)
        about = benchmark.data.get(origin.page)
        new = DataCard(
            benchmark.name,
            origin.page,
            about.license if about else NOT_STATED,
            about.size if about else "",
            about.faults if about else (),
        )
        card = cards.setdefault(origin.page, new)
        found = (
            (card.revisions, [origin.revision]),
            (card.checks, [origin.check]),
            (card.times, [time]),
            (card.tasks, [task.name]),
            (card.files, source.paths),
        )
        for known, values in found:
            known += [value for value in values if value not in known]
    return list(cards.values())


def _list_sources(benchmark: Benchmark) -> Iterator[tuple[Task, str, Source]]:
    """Yield each source of each task at each of its lengths, with the time when it is fetched."""
    for task in benchmark.tasks:
        lengths: Iterable[int | None] = sorted(task.sizes) or (None,)
        for length in lengths:
            yield from ((task, BEFORE_RUN, source) for source in task.sources(length))
            yield from ((task, ON_REQUEST, source) for source in task.optional_sources(length))
        yield from ((task, FOR_JUDGES, source) for source in task.judge_sources.values())
