"""The long-context numbers of a model's release: which of them can be run, and how own runs compare with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from helm_longctx.apps.reproduction.protocols import known_effort
from helm_longctx.apps.reproduction.reproduction import judge_agreement, measure
from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import range_text
from helm_longctx.documents.terminal import print_table
from helm_longctx.results.reading import Result, read_results
from helm_longctx.tasks.registry import ReleaseRow

_MANAGED = ("tools", "context management")
"""Conditions of a number that no protocol here has."""


def find_obstacle(each: ReleaseRow) -> str:
    """Return why a number cannot be measured here as it was reported; empty if it can."""
    conditions = each.row.conditions
    own = (f"{name}: {conditions[name]}" for name in _MANAGED if conditions.get(name, "none") != "none")
    return each.protocol.obstacle or next(own, "")


def describe_runs(each: ReleaseRow) -> str:
    """Say whether a number can be run as it was reported, and if not, why."""
    if obstacle := find_obstacle(each):
        return f"no: {obstacle}"
    # What the page does not say, so that no measurement is comparable with the number.
    doubts = ", ".join([*each.protocol.not_stated, *([] if each.row.effort else ["the reasoning effort"])])
    judge = f", with the judge {each.protocol.judge}" if each.protocol.judge else ""
    return f"yes{judge}" + (f"; not comparable, because the page does not say {doubts}" if doubts else "")


def release_table(rows: Sequence[ReleaseRow]) -> Table:
    """Return a table of the numbers of a release, with what can be run."""
    cells = [
        (
            each.protocol.title,
            each.row.effort or "not stated",
            each.row.number_text,
            describe_runs(each),
            each.row.origin,
        )
        for each in rows
    ]
    columns = ("number", "effort", "published", "can be run", "origin")
    return text_table(f"Published long-context numbers of {rows[0].row.model}", columns, cells, right=("published",))


def print_release(rows: Sequence[ReleaseRow]) -> None:
    """Print the numbers of a release, what can be run, and the run entries of all that can."""
    print_table(release_table(rows))
    entries = dict.fromkeys(entry for each in rows if not find_obstacle(each) for entry in each.protocol.run_entries)
    print(
        f"{sum(not find_obstacle(each) for each in rows)} of {len(rows)} can be run, with {len(entries)} run entries:"
    )
    for entry in entries:
        print(f"  {entry}")


def print_release_comparison(rows: Sequence[ReleaseRow], suite: Path, deployments: Collection[str] = ()) -> None:
    """Print the numbers of a suite's models beside a release's numbers, with a verdict for each.

    Args:
        suite: the suite's folder.
        deployments: the deployments to compare; empty for all of the suite.
    """

    @cache
    def results(benchmark: str) -> tuple[Result, ...]:
        return tuple(read_results(suite, [each.benchmark for each in rows if each.benchmark.name == benchmark][:1]))

    cells, sentences, kinds = [], [], Counter[str]()
    for each in rows:
        shown: list[tuple[str, str, str, str]] = []
        obstacle = find_obstacle(each)
        # An own number has the digits of the published one.
        digits = len(each.row.text.partition(".")[2]) if each.row.text else 1
        for own in [] if obstacle else measure(each.protocol, each.benchmark, results(each.benchmark.name)):
            if own.deployment in (deployments or [own.deployment]):
                verdict = judge_agreement(own, each.row, each.protocol, known_effort(own.deployment))
                ends = range_text(own.interval.low, own.interval.high)
                shown.append((f"{100 * own.interval.mean:.{digits}f}", ends, verdict.kind, verdict.text))
        why = f"Not run: {obstacle or 'the suite lacks its runs'}."
        for value, interval, kind, text in shown or [("", "", "not run", why)]:
            kinds[kind] += 1
            effort = each.row.effort or "not stated"
            cells.append((each.protocol.title, effort, each.row.number_text, value, interval, kind))
            sentences.append(f"{each.protocol.title}: {text}")
    columns = ("number", "effort", "published", "measured", "95 % interval", "verdict")
    title = f"{rows[0].row.model}: published and measured"
    print_table(text_table(title, columns, cells, right=("published", "measured")))
    print(*sentences, sep="\n")
    print("; ".join(f"{kind}: {count}" for kind, count in kinds.items()))


def runnable_protocols(rows: Sequence[ReleaseRow]) -> list[str]:
    """Return the names of the protocols that measure a release, each once."""
    return list(dict.fromkeys(each.protocol.name for each in rows if not find_obstacle(each)))
