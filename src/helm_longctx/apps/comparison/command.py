"""`compare`: compare models on the same instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table as Grid

from helm_longctx.apps.comparison.methods import Costs, Gain, find_gains
from helm_longctx.config.shared import JsonPath, OutputPath, Suite, check_folder
from helm_longctx.documents.numbers import percent, range_text, signed_percent
from helm_longctx.documents.terminal import print_grid
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.boards import read_suite
from helm_longctx.results.comparison import THRESHOLDS, Contrast, Pairing, Standing, Table
from helm_longctx.results.printing import SERVER
from helm_longctx.results.statistics.comparison import SIGNIFICANCE
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.registry import BENCHMARKS


def compare(
    suite: Suite,
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Two or more models of the suite, e.g. longctx/null. [default with --methods: all]"),
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="Only this benchmark, e.g. helmet.")] = None,
    pool: Annotated[
        bool, typer.Option("--pool", help="Compare all benchmarks in one mean, in which they have equal weights.")
    ] = False,
    length: Annotated[str | None, typer.Option(help="Only this length, e.g. 128k.")] = None,
    methods: Annotated[
        bool, typer.Option("--methods", help="Compare each model's methods with its plain prompts instead.")
    ] = False,
    instances: Annotated[int, typer.Option(min=0, help="Number of instances to list, largest differences first.")] = 10,
    address: Annotated[str, typer.Option(help="Address of helm-server, for links to its pages.")] = SERVER,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Compare models on the instances that all of them answered.

    Each benchmark is compared on its own, unless --pool is given. The test changes the signs of paired differences, and
    keeps questions of one group together. Holm's method adjusts its p-values for all pairs of the models that are
    named. Models whose difference is not significant are tied (=).
    """
    check_folder("json", json_path)
    models = models or []
    if not methods and (len(set(models)) < 2 or len(set(models)) < len(models)):
        raise InputError(f"compare: models={' '.join(models)!r} is invalid; give two or more different models")
    names = [each.name for each in BENCHMARKS]
    if benchmark is not None and benchmark not in names:
        raise bad_argument("compare", "benchmark", benchmark, names)
    tokens = parse_length(length, "compare") if length else None
    every = read_suite(suite_folder(output_path, suite), BENCHMARKS).boards
    boards = [board for board in every if benchmark in (None, board.benchmark.name)]
    if methods:
        _compare_methods(find_gains(boards, models, tokens), json_path)
        return
    table = Table(boards, models, tokens)
    for line in table.refusals:
        print(line)
    tables = [table] if pool else [Table([board], models, tokens) for board in table.boards]
    content: dict[str, Any] = {"standings": [], "thresholds": THRESHOLDS, "pairings": [], "differences": []}
    content["not_compared"] = table.refusals
    for table in tables:
        name = "" if pool else table.boards[0].name
        for key, rows in _show(table, instances, address.rstrip("/")).items():
            content[key] += [{"benchmark": name, **row} for row in rows]
    if json_path:
        json_path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


def _show(table: Table, instances: int, address: str) -> dict[str, list[dict[str, Any]]]:
    """Print a comparison, and return it as rows of JSON data."""
    models, pairings = table.models, table.pairings()
    standings = table.standings(pairings)
    title = " and ".join(board.title for board in table.boards)
    print(f"{title}: {len(table.items)} instances that all {len(models)} models answered")
    print(*table.describe(pairings, standings), sep="\n")
    others = {model for board in table.boards for model in board.competitors if model in board.own_models} - {*models}
    if others:
        print(f"P-values are adjusted for these {len(models)} models; the report has {len(models) + len(others)}.")
    if table.outside:
        print(f"Not in the means, because the benchmark leaves them out: {', '.join(table.outside)}")
    print_grid(_standings(standings))
    print_grid(_matrix(models, pairings))
    contrasts: list[Contrast] = []
    if len(models) == 2:
        contrasts = table.contrasts(models[0], models[1], instances, address)
        print_grid(_parts(pairings))
        _print_contrasts(contrasts)
    return {
        "standings": [asdict(each) for each in standings],
        "pairings": [{**asdict(each), "better": each.better} for each in pairings],
        "differences": [{**each._asdict(), "item": each.item._asdict()} for each in contrasts],
    }


def _compare_methods(gains: Sequence[Gain], json_path: Path | None) -> None:
    for model in dict.fromkeys(gain.model for gain in gains):
        of_model = [gain for gain in gains if gain.model == model]
        print_grid(_gains(of_model))
        print_grid(_prices(of_model))
        for line in dict.fromkeys(line for gain in of_model for line in gain.not_compared):
            print(line)
    if json_path:
        rows = [{**asdict(each), "costs": _costs(each.costs), "plain": _costs(each.plain)} for each in gains]
        json_path.write_bytes(orjson.dumps({"gains": rows}, option=orjson.OPT_INDENT_2))


def _costs(costs: Costs) -> dict[str, Any]:
    per_point = {name: getattr(costs, name) for name in ("tokens_per_point", "dollars_per_point")}
    return {**asdict(costs), **per_point}


def _gains(gains: Sequence[Gain]) -> Grid:
    """Return a table with a row for each method of a model, with the score of plain prompts in brackets."""
    title = f"{gains[0].model}: methods (in brackets: plain prompts on the same questions)"
    grid = _grid(title, ("method", "questions", "score %", "gain in % (95 %)", "p", "adjusted p"))
    for each in gains:
        effect = each.comparison.effect
        interval = f"{signed_percent(effect.mean)} ({range_text(effect.low, effect.high, signed_percent)})"
        score = f"{percent(each.costs.score)} ({percent(each.plain.score)})"
        numbers = (_p_value(each.comparison.p_value), _p_value(each.adjusted))
        grid.add_row(_name(each), str(each.costs.questions), score, interval, *numbers)
    return grid


def _prices(gains: Sequence[Gain]) -> Grid:
    """Return a table of what a question and a point cost, with a row for each method of a model."""
    names = ("tokens per question", "dollars per question", "tokens per point", "dollars per point")
    grid = _grid(f"{gains[0].model}: costs of methods (in brackets: plain prompts)", ("method", *names))
    for each in gains:
        cells = [
            f"{_amount(getattr(each.costs, field))} ({_amount(getattr(each.plain, field))})"
            for field in ("tokens", "dollars", "tokens_per_point", "dollars_per_point")
        ]
        grid.add_row(_name(each), *cells)
    return grid


def _grid(title: str, columns: Iterable[str]) -> Grid:
    grid = Grid(title=title, title_justify="left")
    for name in columns:
        grid.add_column(name, overflow="fold")
    return grid


def _name(gain: Gain) -> str:
    return gain.method.removeprefix("method=")


def _amount(value: float | None) -> str:
    """Return a number of tokens or dollars, which can be small; a dash if it is not known."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _p_value(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _standings(standings: Sequence[Standing]) -> Grid:
    columns = ("model", "mean %", "rank", "Borda", "Kemeny", "interquartile mean %")
    grid = _grid("Ranking (rank with its 95 % interval)", columns)
    for row in standings:
        rank = f"{row.rank.rank:g} ({row.rank.low}–{row.rank.high})"
        middle = percent(row.interquartile_mean)
        grid.add_row(row.model, percent(row.mean), rank, f"{row.borda:.2f}", str(row.kemeny), middle)
    return grid


def _matrix(models: Sequence[str], pairings: Iterable[Pairing]) -> Grid:
    """Return a table of the mean difference between each row's and each column's model; `=` marks a tie."""
    found = {(each.one, each.other): each for each in pairings if each.by == "all"}
    grid = _grid(f"Row minus column in % (=: p >= {SIGNIFICANCE}, a tie)", ("", *models))
    for one in models:
        cells = []
        for other in models:
            # A pair is compared once; the other direction has the opposite sign.
            pairing, sign = (found[one, other], 1) if (one, other) in found else (found.get((other, one)), -1)
            mean = signed_percent(sign * pairing.comparison.effect.mean) if pairing else ""
            cells.append(mean if not pairing or pairing.better else f"= ({mean})")
        grid.add_row(one, *cells)
    return grid


def _parts(pairings: Sequence[Pairing]) -> Grid:
    columns = ("by", "part", "difference in % (95 %)", "p", "adjusted p", "wins", "losses", "ties")
    grid = _grid(f"{pairings[0].one} minus {pairings[0].other}", columns)
    for each in pairings:
        effect, found = each.comparison.effect, each.comparison
        interval = f"{signed_percent(effect.mean)} ({range_text(effect.low, effect.high, signed_percent)})"
        numbers = (_p_value(found.p_value), _p_value(each.adjusted), found.wins, found.losses, found.ties)
        grid.add_row(each.by, each.part, interval, *map(str, numbers))
    return grid


def _print_contrasts(contrasts: Iterable[Contrast]) -> None:
    for each in contrasts:
        item = each.item
        at = "" if item.length is None else f" at {length_label(item.length)}"
        print(f"{item.task or item.entry}{at}, {item.instance}: {percent(each.one)} and {percent(each.other)}")
        print(*(f"  {link}" for link in each.links), sep="\n")
