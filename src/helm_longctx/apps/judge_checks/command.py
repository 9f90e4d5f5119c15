"""`judge-check` and `judge-agreement`: measure whether a judge can be trusted, and how far judges and people agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_longctx.config.shared import (
    JsonPath,
    LocalPath,
    OutputPath,
    check_folder,
    check_picture,
    fill_registries,
    hide_chatter,
    without_helms_log,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import format_decimals, format_percent, format_range
from helm_longctx.documents.terminal import print_table
from helm_longctx.environment import require
from helm_longctx.errors import InputError
from helm_longctx.interruptions import describe_kept, stoppable
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.writing import write_json

if TYPE_CHECKING:
    import pandas as pd

    from helm_longctx.apps.judge_checks.measures import Measure, RaterAgreement
    from helm_longctx.apps.judge_checks.ratings import Results
    from helm_longctx.judging.check_items import Check
    from helm_longctx.results.statistics.comparison import Comparison
_Compared = tuple[str, str, "RaterAgreement"]
"""(metric, names of the two raters, their agreement)."""


def judge_agreement(
    judged: Annotated[
        Path,
        typer.Option(
            help="Folder of a run or of a suite, or a file in the format of --labels."
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Human labels as JSON lines or CSV: id, a column for each metric,"
            " optionally run and rater."
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """Measure how far judges agree with human labels, or with each other if there are no labels.

    Prints kappa and alpha with confidence intervals. Metrics are the metrics of a run (judge_score, judge_f1,
    judge_fluency …) and the numbers in its judges' verdicts (fluency, correctness; recall, precision, sentence_count).
    """
    check_folder("json", json_path)
    require("judges", "judge-agreement")
    from helm_longctx.apps.judge_checks.measures import pairwise
    from helm_longctx.apps.judge_checks.ratings import (
        HUMAN,
        JUDGE,
        rating_tables,
        read_ratings,
    )

    people = read_ratings(labels, HUMAN) if labels else None
    tables, unknown = rating_tables(read_ratings(judged, JUDGE), people)
    humans = set() if people is None else set(people["rater"])
    compared = []
    for metric, table in tables.items():
        columns = {rater: table[rater] for rater in table}
        judges = []
        for rater in table:
            if rater not in humans:
                judges.append(rater)
        for raters, agreement in pairwise(columns, judges):
            compared.append((metric, raters, agreement))
    print_table(_agreement_table(f"Agreement on {judged.name}", compared))
    if unknown:
        print(f"{unknown} labels do not belong to a judged instance")
    if json_path:
        rows = []
        for what, raters, agreement in compared:
            rows.append({"of": what, "raters": raters, **asdict(agreement)})
        report = {"agreement": rows, "unknown_labels": unknown}
        write_json(json_path, report)


def _agreement_table(title: str, compared: Sequence[_Compared]) -> Table:
    """Make a table with a row for each pair of raters.

    A cell has a coefficient and below it its interval. The caption says what could not be computed.
    """
    notes: dict[str, None] = {}
    rows = []
    for what, raters, agreement in compared:
        if agreement.note:
            notes[f"{what}, {raters}: {agreement.note}"] = None
        cells = []
        for estimate, show in (
            (agreement.same, _percent_text),
            (agreement.kappa, _number_text),
            (agreement.weighted_kappa, _number_text),
            (agreement.alpha, _number_text),
        ):
            cells.append(
                _interval_text(estimate.value, estimate.low, estimate.high, show)
            )
        rows.append([what, raters, str(agreement.n), *cells])
    columns = ("of", "raters", "n", "same %", "kappa", "weighted kappa", "alpha")
    return text_table(title, columns, rows, about="\n".join(notes))


def _interval_text(
    value: float,
    low: float,
    high: float,
    show: Callable[[float | None], str],
) -> str:
    """Return a cell such as `0.52`, with the interval `0.38–0.65` on the next line if there is one."""
    return "\n".join(filter(None, (show(value), format_range(low, high, show))))


def _percent_text(
    value: float | None,
    show: Callable[[float], str] = format_percent,
) -> str:
    """Return a share in percent, or a number as another function shows it; a dash if it is not defined."""
    if value is None or math.isnan(value):
        return "-"
    return show(value)


def _number_text(value: float | None) -> str:
    """Return a number with two decimals; a dash if it is not defined."""
    return _percent_text(value, format_decimals)


def judge_check(
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="More files for --compare.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="HELM deployment to check, or several joined by +."),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="File of saved results to compare; more files can follow.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of times to ask each question.")
    ] = 3,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            "--json",
            help="Save all results to this file, as JSON, for --compare.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot file: .png, .svg or .pdf.")
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Measure how correct, unbiased and consistent a judge is, or compare judges that were measured before.

    A judge is asked about answers whose correct verdict is known: right and wrong answers, answers with padding,
    repetitions or instructions to the judge, and empty ones. The rubrics are the benchmarks' own. Calls go through
    HELM and its request cache. Missing verdicts are counted and are in no mean.
    """
    if more and not compare:
        raise InputError(
            f"judge-check: FILE={str(more[0])!r} is invalid; give files only after --compare"
        )
    files = [*(compare or ()), *(more or ())]
    if not judge and not files:
        raise InputError("judge-check needs --judge DEPLOYMENT or --compare FILE")
    # All is checked before calls cost money.
    if plot:
        check_picture("judge-check", plot)
        check_folder("plot", plot)
    check_folder("save", save)
    require("judges", "judge-check")
    settings_in_use()  # a wrong value in the environment is refused here
    from helm_longctx.apps.judge_checks import ratings
    from helm_longctx.apps.judge_checks.measures import plot_judges
    from helm_longctx.documents.plots import write_picture

    loaded = [ratings.load(file) for file in files]
    asked = [_ask(judge, repeats, output_path, local_path)] if judge else []
    # The judges that were asked now come first in the tables.
    results = ratings.merge([*asked, *loaded])
    report = _report(results.rows)
    if save:
        ratings.save(save, results, report)
    if plot:
        write_picture(plot_judges(results.rows), plot)
    without = []
    for result in asked:
        for name, rows in result.rows.groupby("judge"):
            if rows["score"].isna().all():
                without.append(name)
    if without:
        raise InputError(f"judge-check: no reply of {', '.join(without)} has a verdict")


def _ask(
    judge: str,
    repeats: int,
    output_path: Path,
    local_path: Path,
) -> Results:
    from helm_longctx.apps.judge_checks.ratings import Results, digest_checks
    from helm_longctx.helm_api import (
        CACHE_DIR,
        AutoClient,
        get_class_by_name,
        get_credentials,
    )
    from helm_longctx.judging.check_items import observe
    from helm_longctx.judging.judge import find_judges
    from helm_longctx.runner.cache import digest_cache

    fill_registries(local_path)
    cache = local_path / CACHE_DIR
    cache.mkdir(parents=True, exist_ok=True)
    # All deployments can be asked, with the request cache of helm-run.
    with hide_chatter():
        client = AutoClient(
            get_credentials(str(local_path)), str(cache), digest_cache(str(cache))
        )
    judges = find_judges(judge, client)
    root = DataRoot.find(output_path)
    items: list[Check] = []
    for benchmark in BENCHMARKS:
        if benchmark.judge_checks:
            make_checks = get_class_by_name(benchmark.judge_checks)
            items += make_checks(root)
    with without_helms_log(), stoppable(lambda: describe_kept(cache)):
        return Results(
            f"judge={judge}", digest_checks(items), observe(items, judges, repeats)
        )


def _report(rows: pd.DataFrame) -> dict[str, Any]:
    from helm_longctx.apps.judge_checks import measures

    by_judge = {}
    for name, of_judge in rows.groupby("judge", sort=False):
        by_judge[str(name)] = of_judge
    kinds = {}
    for name, of_judge in by_judge.items():
        kinds[name] = measures.by_kind(of_judge)
    measures_by_judge = {}
    for name, of_judge in by_judge.items():
        measures_by_judge[name] = measures.measures(of_judge)
    compared = list(measures.agreements(rows))
    differences = measures.differences(rows)
    tables = []
    for judge, of_judge in kinds.items():
        tables.append(_make_kind_table(judge, of_judge))
    tables += _make_tables(measures_by_judge, differences)
    title = "Agreement with the expected scores and of the judges"
    tables.append(_agreement_table(title, compared))
    for table in tables:
        print_table(table)
    failures = rows.dropna(subset="error").groupby(["judge", "error"]).size()
    for (name, error), times in failures.items():
        print(f"{name}: {times} without a verdict: {error}")
    plain_measures = {}
    for name, several in measures_by_judge.items():
        plain_measures[name] = [asdict(measure) for measure in several]
    plain_differences = []
    for one, other, comparison in differences:
        plain_differences.append({"judges": [one, other], **asdict(comparison)})
    agreements = []
    for what, raters, agreement in compared:
        agreements.append({"of": what, "raters": raters, **asdict(agreement)})
    return {
        "kinds": {name: table.to_dict("index") for name, table in kinds.items()},
        "measures": plain_measures,
        "differences": plain_differences,
        "agreement": agreements,
    }


def _make_kind_table(judge: str, rows: pd.DataFrame) -> Table:
    counts = ("items", "asked", "judged", "unreadable", "failed")
    means = ("right", "score", "expected_score")
    cells = []
    for kind, row in rows.iterrows():
        numbers = [str(int(row[name])) for name in counts]
        numbers += [_percent_text(row[name]) for name in means]
        cells.append([str(kind).replace("_", " "), *numbers])
    titles = ("answers", *counts[1:], "right verdicts %", "score %", "expected score %")
    return text_table(f"Verdicts of {judge}", ("kind of answer", *titles), cells)


def _make_tables(
    measures_by_judge: Mapping[str, list[Measure]],
    differences: Sequence[tuple[str, str, Comparison]],
) -> Iterator[Table]:
    about = (
        f"Second lines: {LEVEL_TEXT} intervals. n: number of answers, pairs or groups of"
        " answers; the smallest among the judges"
    )
    rows = []
    for row in zip(*measures_by_judge.values(), strict=True):
        values = []
        for measure in row:
            values.append(
                _interval_text(measure.value, measure.low, measure.high, _percent_text)
            )
        fewest = min(measure.n for measure in row)
        rows.append(
            [
                row[0].name,
                *values,
                _percent_text(row[0].good),
                str(fewest),
                row[0].about,
            ]
        )
    names: tuple[str, ...] = (
        "measure",
        *measures_by_judge,
        "perfect judge",
        "n",
        "meaning",
    )
    yield text_table("Correctness, biases and consistency in %", names, rows, about)
    if differences:
        about = (
            "p is adjusted for the number of pairs (Holm). Better, worse, equal: on how"
            " many answers the first judge is so"
        )
        rows = []
        for one, other, comparison in differences:
            effect = comparison.effect
            shown = _interval_text(effect.mean, effect.low, effect.high, _percent_text)
            counts = map(str, (comparison.wins, comparison.losses, comparison.ties))
            rows.append([one, other, shown, f"{comparison.p_value:.3f}", *counts])
        title = "Differences between judges in the share of right verdicts, in percentage points"
        names = (
            "first judge",
            "second judge",
            "difference",
            "p",
            "better",
            "worse",
            "equal",
        )
        yield text_table(title, names, rows, about)
