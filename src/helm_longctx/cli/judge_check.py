"""`judge-check`: measure whether a judge can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.table import Table

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.judge_agreement import agreement_data, agreement_table, number_text
from helm_longctx.cli.shared import (
    JsonPath,
    LocalPath,
    OutputPath,
    check_folder,
    check_picture,
    fill_registries,
    print_table,
    without_helms_log,
)
from helm_longctx.judging.calls import check_settings
from helm_longctx.sources.root import DataRoot

if TYPE_CHECKING:
    import pandas as pd
    from helm.clients.auto_client import AutoClient

    from helm_longctx.judging.check.measures import Measure


def judge_check(
    judge: Annotated[str, typer.Option(help="A HELM deployment, or several joined by +.")],
    repeats: Annotated[int, typer.Option(min=1, help="How often each question is asked.")] = 3,
    json_path: JsonPath = None,
    plot: Annotated[Path | None, typer.Option(help="Plot file: .png, .svg or .pdf.")] = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Measure a judge's bias towards injected orders, padding and empty answers, and its consistency.

    Asks judges about answers whose correct verdict is known (right, wrong, padded, repeated, with orders to the judge
    …), with the rubrics of the benchmarks, through HELM and its request cache. A missing verdict is counted, not taken
    as a zero.
    """
    if plot:
        check_picture("judge-check", plot)
        check_folder("plot", plot)
    check_folder("json", json_path)
    check_settings()
    from helm_longctx.judging.check import measures, plotting

    verdicts = _observe(judge, repeats, output_path, local_path)
    by_judge = {str(name): rows for name, rows in verdicts.groupby("judge", sort=False)}
    kinds = {name: measures.by_kind(rows) for name, rows in by_judge.items()}
    measures_by_judge = {name: measures.measures(rows) for name, rows in by_judge.items()}
    compared = list(measures.agreements(verdicts))
    for table in (
        *_kind_tables(kinds),
        _measure_table(measures_by_judge),
        agreement_table("Agreement of scores", compared),
    ):
        print_table(table)
    for name, error, times in _errors(verdicts):
        print(f"{name}: {times} without a verdict: {error}")
    if json_path:
        report = {
            "kinds": {name: table.to_dict("index") for name, table in kinds.items()},
            "measures": {name: [asdict(measure) for measure in several] for name, several in measures_by_judge.items()},
            "agreement": agreement_data(compared),
            "verdicts": verdicts.astype(object).where(verdicts.notna(), None).to_dict("records"),
        }
        json_path.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY))
    if plot:
        plotting.draw(verdicts, plot)


def _observe(judge: str, repeats: int, output_path: Path, local_path: Path) -> pd.DataFrame:
    client = _client(local_path)
    from helm.common.object_spec import get_class_by_name

    from helm_longctx.judging.check.items import observe
    from helm_longctx.judging.judge import find_judges

    judges, root = find_judges(judge, client), DataRoot.find(output_path)
    checks = [get_class_by_name(benchmark.judge_checks) for benchmark in BENCHMARKS if benchmark.judge_checks]
    items = [check for of_benchmark in checks for check in of_benchmark(root)]
    with without_helms_log():
        return observe(items, judges, repeats)


def _client(local_path: Path) -> AutoClient:
    """HELM's client for all deployments, with the request cache of helm-run."""
    from helm.clients.auto_client import AutoClient
    from helm.common.general import get_credentials
    from helm.proxy.services.service import CACHE_DIR

    from helm_longctx.running.cache import digest_cache

    fill_registries(local_path)
    cache = local_path / CACHE_DIR
    cache.mkdir(parents=True, exist_ok=True)
    return AutoClient(get_credentials(str(local_path)), str(cache), digest_cache(str(cache)))


def _kind_tables(kinds: Mapping[str, pd.DataFrame]) -> Iterator[Table]:
    for judge, rows in kinds.items():
        table = Table(title=judge, title_justify="left")
        columns = (
            "kind of answer",
            "items",
            "asked",
            "judged",
            "unreadable",
            "failed",
            "right",
            "score",
            "right score",
        )
        for column in columns:
            table.add_column(column)
        for kind, row in rows.iterrows():
            counts = (str(int(row[name])) for name in ("items", "asked", "judged", "unreadable", "failed"))
            means = (number_text(row[name]) for name in ("right", "score", "expected_score"))
            table.add_row(str(kind).replace("_", " "), *counts, *means)
        yield table


def _measure_table(measures_by_judge: Mapping[str, list[Measure]]) -> Table:
    table = Table(title="What changes a verdict", title_justify="left")
    for column in ("measure", *measures_by_judge, "right", "n", "meaning"):
        table.add_column(column, overflow="fold")
    for row in zip(*measures_by_judge.values(), strict=True):
        values = (number_text(measure.value) for measure in row)
        fewest = min(measure.n for measure in row)
        table.add_row(row[0].name, *values, number_text(row[0].good), str(fewest), row[0].about)
    return table


def _errors(verdicts: pd.DataFrame) -> Iterator[tuple[str, str, Any]]:
    failures = verdicts.dropna(subset="error")
    for (judge, error), times in failures.groupby(["judge", "error"]).size().items():
        yield judge, error, times
