"""`compare`: compare models on the same instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table as Grid

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.shared import JsonPath, OutputPath, Suite, check_folder, print_table
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.report.compare import THRESHOLDS, Difference, Pairing, Standing, Table
from helm_longctx.report.results import Result, read_results
from helm_longctx.report.suite import suite_folder
from helm_longctx.statistics.comparison import SIGNIFICANCE

ADDRESS = "http://127.0.0.1:8000"


def compare(
    suite: Suite,
    models: Annotated[
        list[str] | None, typer.Argument(help="Two or more models of the suite, e.g. longctx/null.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="Only this benchmark, e.g. helmet.")] = None,
    length: Annotated[str | None, typer.Option(help="Only this length, e.g. 128k.")] = None,
    instances: Annotated[
        int, typer.Option(min=0, help="Number of instances to list, those with the largest differences first.")
    ] = 10,
    address: Annotated[str, typer.Option(help="Address of helm-server, for links to its pages.")] = ADDRESS,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Compare models on the instances that all of them answered.

    The test is a permutation test of paired scores that keeps questions of one group together. Holm's method adjusts
    its p-values. Models whose difference is not significant are tied (=).
    """
    check_folder("json", json_path)
    models = models or []
    if len(set(models)) < 2 or len(set(models)) < len(models):
        raise InputError(f"compare: models={' '.join(models)!r} is not allowed; allowed: two or more different models")
    results = read_results(suite_folder(output_path, suite), BENCHMARKS)
    table = Table(_select(results, benchmark, length), models)
    pairings, standings = table.pairings(), table.standings()
    print(f"{len(table.items)} instances that all {len(models)} models answered")
    print_table(_standings(standings))
    print_table(_matrix(models, pairings))
    differences: list[Difference] = []
    if len(models) == 2:
        differences = table.differences(models[0], models[1], instances, address.rstrip("/"))
        print_table(_parts(pairings))
        _print_differences(differences)
    if json_path:
        json_path.write_bytes(orjson.dumps(_json(pairings, standings, differences), option=orjson.OPT_INDENT_2))


def _select(results: Iterable[Result], benchmark: str | None, length: str | None) -> list[Result]:
    names = [each.name for each in BENCHMARKS]
    if benchmark is not None and benchmark not in names:
        raise bad_argument("compare", "benchmark", benchmark, names)
    tokens = parse_length(length, "compare") if length else None
    return [r for r in results if benchmark in (None, r.benchmark) and tokens in (None, r.length)]


def _standings(standings: Sequence[Standing]) -> Grid:
    grid = Grid(title="Ranking (rank with its 95 % interval)", title_justify="left")
    for name in ("model", "mean", "rank", "Borda", "Kemeny", "interquartile mean"):
        grid.add_column(name, overflow="fold")
    for row in standings:
        rank = f"{row.rank.rank:g} ({row.rank.low} to {row.rank.high})"
        grid.add_row(
            row.model, f"{row.mean:.3f}", rank, f"{row.borda:.2f}", str(row.kemeny), f"{row.interquartile_mean:.3f}"
        )
    return grid


def _matrix(models: Sequence[str], pairings: Iterable[Pairing]) -> Grid:
    """Return a table of the mean difference between each row's and each column's model; `=` marks a tie."""
    found = {(each.one, each.other): each for each in pairings if each.by == "all"}
    grid = Grid(title=f"Row minus column (=: p >= {SIGNIFICANCE}, a tie)", title_justify="left")
    for name in ("", *models):
        grid.add_column(name, overflow="fold")
    for one in models:
        cells = []
        for other in models:
            # A pair is compared once; the other direction has the opposite sign.
            pairing, sign = (found[one, other], 1) if (one, other) in found else (found.get((other, one)), -1)
            mean = f"{sign * pairing.comparison.effect.mean:+.3f}" if pairing else ""
            cells.append(mean if not pairing or pairing.better else f"= ({mean})")
        grid.add_row(one, *cells)
    return grid


def _parts(pairings: Sequence[Pairing]) -> Grid:
    grid = Grid(title=f"{pairings[0].one} minus {pairings[0].other}", title_justify="left")
    for name in ("by", "part", "difference (95 %)", "p", "adjusted p", "wins", "losses", "ties"):
        grid.add_column(name, overflow="fold")
    for each in pairings:
        effect, found = each.comparison.effect, each.comparison
        interval = f"{effect.mean:+.3f} ({effect.low:+.3f} to {effect.high:+.3f})"
        numbers = (f"{found.p_value:.4f}", f"{each.adjusted:.4f}", found.wins, found.losses, found.ties)
        grid.add_row(each.by, each.part, interval, *map(str, numbers))
    return grid


def _print_differences(differences: Iterable[Difference]) -> None:
    for each in differences:
        item = each.item
        at = "" if item.length is None else f" at {length_label(item.length)}"
        print(f"{item.task or item.entry}{at}, {item.instance}: {each.one:.3f} and {each.other:.3f}")
        print(*(f"  {link}" for link in each.links), sep="\n")


def _json(
    pairings: Iterable[Pairing], standings: Iterable[Standing], differences: Iterable[Difference]
) -> dict[str, Any]:
    return {
        "standings": [asdict(each) for each in standings],
        "thresholds": THRESHOLDS,
        "pairings": [{**asdict(each), "better": each.better} for each in pairings],
        "differences": [{**each._asdict(), "item": each.item._asdict()} for each in differences],
    }
