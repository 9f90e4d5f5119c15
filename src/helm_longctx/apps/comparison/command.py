"""`compare`: compare models on the same instances."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from helm_longctx.apps.comparison.sections import gain_blocks, shared_blocks
from helm_longctx.config.shared import JsonPath, OutputPath, Suite, check_folder
from helm_longctx.documents.numbers import percent
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.boards import label, read_suite
from helm_longctx.results.comparison import THRESHOLDS, Table
from helm_longctx.results.methods import Gain, find_gains
from helm_longctx.results.printing import SERVER
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.lengths import parse_length
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
        content = _show_methods(find_gains(boards, models, tokens))
    else:
        content = _show_comparisons(Table(boards, models, tokens), tokens, pool, instances, address.rstrip("/"))
    if json_path:
        json_path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


def _show_comparisons(table: Table, length: int | None, pool: bool, instances: int, address: str) -> dict[str, Any]:
    for line in table.refusals:
        print(line)
    tables = [table] if pool else [Table([board], table.models, length) for board in table.boards]
    content: dict[str, Any] = {"standings": [], "thresholds": THRESHOLDS, "pairings": [], "differences": []}
    content["not_compared"] = table.refusals
    for table in tables:
        name = "" if pool else table.boards[0].name
        for key, rows in _show(table, instances, address).items():
            content[key] += [{"benchmark": name, **row} for row in rows]
    return content


def _show_methods(gains: Sequence[Gain]) -> dict[str, Any]:
    for model in dict.fromkeys(gain.model for gain in gains):
        of_model = [gain for gain in gains if gain.model == model]
        print_blocks(gain_blocks(of_model))
        for line in dict.fromkeys(line for gain in of_model for line in gain.not_compared):
            print(line)
    names = ("tokens_per_point", "dollars_per_point")
    per_point = [
        {which: {**asdict(costs), **{name: getattr(costs, name) for name in names}} for which, costs in pair}
        for gain in gains
        for pair in [(("costs", gain.costs), ("plain", gain.plain))]
    ]
    return {"gains": [{**asdict(gain), **costs} for gain, costs in zip(gains, per_point, strict=True)]}


def _show(table: Table, instances: int, address: str) -> dict[str, list[dict[str, Any]]]:
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
    print_blocks(shared_blocks(models, pairings, standings))
    contrasts = table.contrasts(*models, instances, address) if len(models) == 2 else []
    for each in contrasts:
        item = each.item
        at = f" at {label(item.length)}" if item.length is not None else ""
        print(f"{item.task or item.entry}{at}, {item.instance}: {percent(each.one)} and {percent(each.other)}")
        print(*(f"  {link}" for link in each.links), sep="\n")
    return {
        "standings": [asdict(each) for each in standings],
        "pairings": [{**asdict(each), "better": each.better} for each in pairings],
        "differences": [{**each._asdict(), "item": each.item._asdict()} for each in contrasts],
    }
