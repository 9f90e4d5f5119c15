"""`correlations`: which tasks order models alike, and whether the publication prints the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from helm_longctx.config.shared import (
    JsonPath,
    OutputPath,
    check_folder,
    complete_suite,
)
from helm_longctx.documents.document import text_table
from helm_longctx.documents.numbers import format_decimals, format_ends
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError
from helm_longctx.results.boards import category_results
from helm_longctx.results.reading import Result, published_results, read_results
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.ranking import (
    Correlation,
    correlate_pairs,
    spearman,
)
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.publications import PrintedCorrelation
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.writing import write_json

_INSTRUCT = "instruct"
"""The choice of the models of the publication's figures: its instruction-tuned ones."""

_FEWEST_MODELS = 5
"""Fewest models over which a correlation is shown."""

_CLOSE = 0.01
"""Largest difference from a printed correlation (of two digits) of one that is equal to it."""

ScoreColumns = Mapping[str, Sequence[float]]
"""For each task or run entry the scores of the models, in the same order; NaN for a missing one."""


def correlations(
    benchmark: Annotated[str, typer.Argument(help="Benchmark, e.g. helmet.")],
    length: Annotated[
        str | None,
        typer.Option(
            help="Length of the prompts. [default: the printed one, or the longest]"
        ),
    ] = None,
    models: Annotated[
        str,
        typer.Option(
            help="Models: `all`, `instruct` (the instruction-tuned ones of the"
            " publication's figures), or patterns of names, divided by commas."
        ),
    ] = "all",
    suite: Annotated[
        str | None,
        typer.Option(
            help="Add your models' scores in this suite.", autocompletion=complete_suite
        ),
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
    json_path: JsonPath = None,
) -> None:
    """Print the rank correlations of tasks over models, and compare them with those that the publication prints."""
    check_folder("json", json_path)
    chosen = find_benchmark(benchmark, "correlations", "benchmark")
    tokens = _choose_length(chosen, length)
    results = list(published_results(chosen))
    if suite is not None:
        own = read_results(
            suite_folder(output_path, suite), [chosen], keep_answers=False
        )
        results += [result for result in own if not result.is_published]
    scores, names = _read_scores(chosen, results, tokens, models)
    if len(names) < _FEWEST_MODELS:
        raise InputError(
            f"correlations: models={models!r} chooses {len(names)} models with scores"
            f" at {_label(tokens)}, and a correlation needs {_FEWEST_MODELS}"
        )
    correlations_of_rows = {}
    for pair, rho in correlate_pairs(scores).items():
        if rho.n >= _FEWEST_MODELS:
            correlations_of_rows[pair] = rho
    printed = []
    for row in chosen.correlations():
        if row.length == tokens:
            printed.append(row)
    titles = {name: _title(chosen, name) for name in scores}
    print(
        f"{chosen.title} {_label(tokens)}: Spearman's correlations over {len(names)} models"
    )
    # All pairs of tasks would be hundreds of lines.
    of_entries = {}
    for pair, rho in correlations_of_rows.items():
        if chosen.entries.keys() >= {*pair}:
            of_entries[pair] = rho
    _print_correlations(of_entries or correlations_of_rows, titles)
    if len(correlations_of_rows) > len(of_entries) > 0:
        print(
            f"The {len(correlations_of_rows) - len(of_entries)} pairs with a single"
            " task are in the file of --json."
        )
    comparisons = [_compare(row, scores) for row in printed]
    if comparisons:
        _print_comparisons(comparisons, titles)
    if json_path:
        content = _describe(chosen, tokens, names, correlations_of_rows, comparisons)
        write_json(json_path, content)


def _choose_length(benchmark: Benchmark, length: str | None) -> int | None:
    if length is not None:
        return parse_length(length, where="correlations")
    printed = [row.length for row in benchmark.correlations()]
    if printed:
        return printed[0]
    lengths = []
    for row in benchmark.published():
        if row.length is not None:
            lengths.append(row.length)
    return max(lengths, default=None)


def _label(length: int | None) -> str:
    return "" if length is None else length_label(length)


def _title(benchmark: Benchmark, name: str) -> str:
    """Return the title of a run entry or a task."""
    if name in benchmark.entries:
        return benchmark.entries[name].title
    return benchmark.task(name).title


def _read_scores(
    benchmark: Benchmark,
    results: Sequence[Result],
    length: int | None,
    models: str,
) -> tuple[ScoreColumns, list[str]]:
    """Return the scores of the chosen models, and the models' names."""
    scores: dict[str, dict[str, float]] = {}
    names: dict[str, None] = {}
    for result in (*category_results(results, benchmark), *results):
        if result.length != length or result.context != "full" or not result.has_score:
            continue
        if not _is_chosen(benchmark, result, models):
            continue
        names[result.model] = None
        scores.setdefault(result.part, {})[result.model] = result.interval.mean
    columns = {}
    for part, by_model in scores.items():
        columns[part] = [by_model.get(name, math.nan) for name in names]
    return columns, list(names)


def _is_chosen(benchmark: Benchmark, result: Result, models: str) -> bool:
    name = result.model.label
    if name in benchmark.floors:
        return False
    if models == "all":
        return True
    if models == _INSTRUCT:
        properties = benchmark.models().get(name)
        return properties is not None and properties.in_figures
    patterns = [pattern.strip() for pattern in models.split(",")]
    return any(fnmatchcase(result.model, f"*{pattern}") for pattern in patterns)


def _compare(row: PrintedCorrelation, scores: ScoreColumns) -> dict[str, Any]:
    """Return a printed correlation with ours, and whether they are equal to the printed digits."""
    rhos = []
    for column in row.columns:
        if row.row in scores and column in scores:
            rhos.append(spearman(scores[row.row], scores[column]).rho)
    if len(rhos) == len(row.columns):
        ours = fmean(rhos)
    else:
        ours = None
    return {
        "figure": row.figure,
        "row": row.row,
        "columns": list(row.columns),
        "printed": row.rho,
        "ours": ours,
        # Printed values are rounded, and their authors' scores have more digits than the published ones.
        "is_equal": ours is not None and abs(ours - row.rho) <= _CLOSE + 1e-9,
        "source": row.source,
    }


def _print_correlations(
    correlations: Mapping[tuple[str, str], Correlation],
    titles: Mapping[str, str],
) -> None:
    rows = []
    for (one, other), correlation in correlations.items():
        ends = format_ends(correlation, format_decimals)
        rows.append(
            (
                titles[one],
                titles[other],
                format_decimals(correlation.rho),
                ends,
                str(correlation.n),
            )
        )
    rows.sort(key=lambda row: row[2], reverse=True)
    heads = ("One", "Other", "rho", f"{LEVEL_TEXT} interval", "models")
    print_table(text_table("Rank correlations", heads, rows, right=("rho", "models")))


def _print_comparisons(
    comparisons: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
) -> None:
    rows = []
    for comparison in comparisons:
        columns = comparison["columns"]
        names = [titles.get(column, column) for column in columns]
        if len(names) == 1:
            other = names[0]
        else:
            other = f"mean of {len(names)}"
        ours = comparison["ours"]
        rows.append(
            (
                comparison["figure"],
                titles.get(comparison["row"], comparison["row"]),
                other,
                format_decimals(comparison["printed"]),
                "–" if ours is None else format_decimals(ours),
                "yes" if comparison["is_equal"] else "no",
            )
        )
    heads = ("Figure", "Row", "Column", "Printed", "Here", "Equal")
    table = text_table(
        "What the publication prints", heads, rows, right=("Printed", "Here")
    )
    print_table(table)
    equal = sum(comparison["is_equal"] for comparison in comparisons)
    print(
        f"{equal} of {len(comparisons)} printed correlations are equal within {_CLOSE:g}."
    )


def _describe(
    benchmark: Benchmark,
    length: int | None,
    models: Sequence[str],
    correlations: Mapping[tuple[str, str], Correlation],
    comparisons: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    pairs = []
    for (one, other), correlation in correlations.items():
        pairs.append(
            {
                "one": one,
                "other": other,
                "rho": correlation.rho,
                "low": correlation.low,
                "high": correlation.high,
                "p_value": correlation.p_value,
                "models": correlation.n,
            }
        )
    return {
        "benchmark": benchmark.name,
        "length": length,
        "models": list(models),
        "correlations": pairs,
        "printed": list(comparisons),
    }
