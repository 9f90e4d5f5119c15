"""Prints reported protocols and releases, and how a suite's runs compare with their published numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from helm_longctx.apps.reproduction.data_versions import find_data_versions
from helm_longctx.apps.reproduction.reproduction import (
    Measurement,
    describe_generated,
    find_rows,
    judge_agreement,
    measure,
    published_interval,
)
from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import format_ends
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError, bad_argument, list_first
from helm_longctx.results.reading import Result, read_results
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.tasks.publications import Protocol, Reported
from helm_longctx.tasks.registry import (
    BENCHMARKS,
    BenchmarkProtocol,
    ReleaseRow,
    find_protocols,
)

_MOST_ROWS = 10
"""Number of published numbers beside own ones, the highest. Those of the same model are always there."""

_MOST_NAMES = 8
"""Number of models that a sentence names."""


@dataclass(frozen=True)
class Reproduction:
    """Published numbers that are measured again: those of protocols, or those of a release.

    Args:
        protocols: the protocols, or those by which the release is measured.
        release: the numbers of a release, empty for protocols.
        published: the published model with which protocols are compared, empty for the model of the same name.
    """

    protocols: Sequence[BenchmarkProtocol] = ()
    release: Sequence[ReleaseRow] = ()
    published: str = ""

    def print_numbers(self, has_numbers: bool = True) -> None:
        """Print what is measured.

        Args:
            has_numbers: whether to print the numbers of protocols. A comparison with them has them, too.
        """
        if self.release:
            _print_release(self.release)
        else:
            _print_protocols(self.protocols, has_numbers)

    def print_comparison(self, suite: Path, deployments: Collection[str] = ()) -> None:
        """Print a suite's scores beside the published numbers, and whether they agree.

        Args:
            suite: the suite's folder.
            deployments: the deployments to compare, or empty for all of the suite.

        Raises:
            InputError: `published` is no model of a protocol, or no model of the suite has all runs of a protocol.
        """
        if self.release:
            _print_release_comparison(self.release, suite, deployments)
        else:
            _print_comparisons(self.protocols, suite, deployments, self.published)


def print_protocol_list() -> None:
    """Print the names of all protocols, and how many numbers are published for each."""
    rows = []
    for benchmark in BENCHMARKS:
        for protocol in find_protocols(benchmark):
            rows.append([protocol.name, benchmark.name, str(len(protocol.rows))])
    columns = ("protocol", "benchmark", "published")
    print_table(text_table("Reported protocols", columns, rows, right=("published",)))
    print(
        "A protocol and its sources: helm-longctx reproduce NAME. To run it: add"
        " --model or --model-url"
    )


def _print_protocols(protocols: Sequence[BenchmarkProtocol], has_numbers: bool) -> None:
    """Print what protocols ask, their conditions, their run entries, and the published numbers with their sources."""
    for _, protocol in protocols:
        print(f"{protocol.title} ({protocol.name!r})")
        print(f"  {protocol.about}")
        print(f"  Conditions: {'; '.join(protocol.conditions)}.")
        for entry in protocol.run_entries:
            print(f"  {entry}")
        if has_numbers:
            print_table(_table(protocol, [], protocol.rows))
        versions = find_data_versions(protocol)
        for version in versions:
            print(f"  Data: {version.text}")
        for source in dict.fromkeys(row.source for row in protocol.rows):
            settings = f": {source.settings}" if source.settings else ""
            print(f"  {source.title}, {source.date}, {source.page}{settings}")
            for version in versions:
                if text := version.describe_use(source.date):
                    print(f"    {text}")


def _print_comparisons(
    protocols: Sequence[BenchmarkProtocol],
    suite: Path,
    deployments: Collection[str],
    published: str,
) -> None:
    """Print the numbers of a suite's models by protocols beside the published ones, and whether they agree."""
    for benchmark, protocol in protocols:
        results = read_results(suite, [benchmark])
        measured = []
        for own in measure(protocol, benchmark, results):
            if not deployments or own.deployment in deployments:
                measured.append(own)
        if not measured:
            runs = ", ".join(protocol.run_entries)
            by = f", judged by {protocol.judge}" if protocol.judge else ""
            raise InputError(
                f"{suite} lacks runs of {protocol.name!r}; it needs scores of {runs}{by}"
            )
        rows: dict[str, list[Reported]] = {}
        for own in measured:
            of_model = find_rows(protocol.rows, published or own.model)
            of_model = of_model or find_rows(protocol.rows, own.deployment)
            if published and not of_model:
                models = dict.fromkeys(row.model for row in protocol.rows)
                raise bad_argument("reproduce", "published", published, models)
            rows[own.model] = of_model
        best = sorted(protocol.rows, key=lambda row: -row.value)[:_MOST_ROWS]
        compared = list(chain.from_iterable(rows.values()))
        shown = []
        for row in protocol.rows:
            if row in best or row in compared:
                shown.append(row)
        print_table(_table(protocol, measured, shown))
        if len(shown) < len(protocol.rows):
            print(
                f"{len(protocol.rows) - len(shown)} more published numbers:"
                f" helm-longctx reproduce {protocol.name}"
            )
        names_of_rows = list(dict.fromkeys(row.model for row in protocol.rows))
        some = list_first(names_of_rows, _MOST_NAMES)
        known = f"numbers are published for {some}; name one with --published"
        for own in measured:
            if own.is_generated:
                print(f"{own.model}: {describe_generated(own)}")
                continue
            effort = _known_effort(own.deployment)
            for row in rows[own.model]:
                print(
                    f"{own.model}: {judge_agreement(own, row, protocol, effort).text}"
                )
            if not rows[own.model]:
                advice = known if names_of_rows else "there are none"
                print(
                    f"{own.model}: Not comparable: no number of this model is published ({advice})."
                )


def _table(
    protocol: Protocol,
    measured: Sequence[Measurement],
    rows: Iterable[Reported],
) -> Table:
    """Return a table of own and published numbers."""
    lines = []
    for own in measured:
        score = f"{100 * own.interval.mean:.2f}"
        origin = "measured here" + ", generated questions" * own.is_generated
        lines.append((str(own.model), score, *_ends(own.interval), origin))
    for row in rows:
        ends = _ends(published_interval(row, protocol, measured))
        lines.append((row.label, row.number_text, *ends, row.origin))
    columns = ("model", "score", f"{LEVEL_TEXT} interval", "n", "origin")
    return text_table(protocol.title, columns, lines, right=("score", "n"))


def _ends(interval: Interval) -> tuple[str, str]:
    if math.isnan(interval.low):
        return "not known", "not known"
    return format_ends(interval), f"{interval.n:,}"


def _known_effort(deployment: str) -> str | None:
    """Return the reasoning effort that a deployment sends, or None if it sends none, or is not registered."""
    from helm_longctx.helm.style import find_client_arguments

    effort = find_client_arguments(deployment).get("reasoning_effort")
    return str(effort) if effort else None


_MANAGED = ("tools", "context management")
"""Conditions of a number that no protocol here has."""


def _find_obstacle(release: ReleaseRow) -> str:
    """Return why a number cannot be measured here as it was reported. It is empty if it can."""
    if release.protocol.obstacle:
        return release.protocol.obstacle
    conditions = release.row.conditions
    for name in _MANAGED:
        if conditions.get(name, "none") != "none":
            return f"{name}: {conditions[name]}"
    return ""


def describe_runs(row: ReleaseRow) -> str:
    """Say whether a number can be run as it was reported, and if not, why."""
    if obstacle := _find_obstacle(row):
        return f"no: {obstacle}"
    # What the page does not say, so that no measurement is comparable with the number.
    doubts = ", ".join(
        [
            *row.protocol.not_stated,
            *([] if row.row.effort else ["the reasoning effort"]),
        ]
    )
    judge = f", with the judge {row.protocol.judge}" if row.protocol.judge else ""
    return f"yes{judge}" + (
        f"; not comparable, because the page does not say {doubts}" if doubts else ""
    )


def _release_table(rows: Sequence[ReleaseRow]) -> Table:
    """Return a table of the numbers of a release, with what can be run."""
    cells = []
    for release in rows:
        effort = release.row.effort or "not stated"
        runs = describe_runs(release)
        number = release.row.number_text
        cells.append((release.protocol.title, effort, number, runs, release.row.origin))
    columns = ("number", "effort", "published", "can be run", "origin")
    return text_table(
        f"Published long-context numbers of {rows[0].row.model}",
        columns,
        cells,
        right=("published",),
    )


def _print_release(rows: Sequence[ReleaseRow]) -> None:
    """Print the numbers of a release, what can be run, and the run entries of all that can."""
    print_table(_release_table(rows))
    entries: dict[str, None] = {}
    count = 0
    for row in rows:
        if not _find_obstacle(row):
            count += 1
            entries |= dict.fromkeys(row.protocol.run_entries)
    print(f"{count} of {len(rows)} can be run, with {len(entries)} run entries:")
    for entry in entries:
        print(f"  {entry}")


def _print_release_comparison(
    rows: Sequence[ReleaseRow],
    suite: Path,
    deployments: Collection[str],
) -> None:
    """Print a suite's scores beside the published numbers of a release, and a verdict for each."""
    by_name = {release.benchmark.name: release.benchmark for release in reversed(rows)}

    @cache
    def results(benchmark: str) -> tuple[Result, ...]:
        return tuple(read_results(suite, [by_name[benchmark]]))

    cells = []
    sentences = []
    kinds = Counter[str]()
    for release in rows:
        protocol = release.protocol
        row = release.row
        shown: list[tuple[str, str, str, str]] = []
        obstacle = _find_obstacle(release)
        own_numbers: list[Measurement] = []
        if not obstacle:
            benchmark = release.benchmark
            own_numbers = measure(protocol, benchmark, results(benchmark.name))
        # An own number has the digits of the published one.
        if row.text:
            digits = len(row.text.partition(".")[2])
        else:
            digits = 1
        for own in own_numbers:
            if deployments and own.deployment not in deployments:
                continue
            verdict = judge_agreement(own, row, protocol, _known_effort(own.deployment))
            value = f"{100 * own.interval.mean:.{digits}f}"
            ends = format_ends(own.interval)
            shown.append((value, ends, verdict.kind, verdict.text))
        why = f"Not run: {obstacle or 'the suite lacks its runs'}."
        effort = row.effort or "not stated"
        for value, interval, kind, text in shown or [("", "", "not run", why)]:
            kinds[kind] += 1
            cells.append(
                (protocol.title, effort, row.number_text, value, interval, kind)
            )
            sentences.append(f"{protocol.title}: {text}")
    columns = (
        "number",
        "effort",
        "published",
        "measured",
        f"{LEVEL_TEXT} interval",
        "verdict",
    )
    title = f"{rows[0].row.model}: published and measured"
    print_table(text_table(title, columns, cells, right=("published", "measured")))
    for sentence in sentences:
        print(sentence)
    print("; ".join(f"{kind}: {count}" for kind, count in kinds.items()))


def runnable_protocols(rows: Sequence[ReleaseRow]) -> list[BenchmarkProtocol]:
    """Return the protocols that measure a release, each once."""
    protocols: dict[str, BenchmarkProtocol] = {}
    for row in rows:
        if not _find_obstacle(row):
            reported = BenchmarkProtocol(row.benchmark, row.protocol)
            protocols.setdefault(reported.text, reported)
    return list(protocols.values())
