"""The page and the command that compare models: which is better than which, and how far ranks are open."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.apps.app import for_each_length
from helm_longctx.config.shared import JsonPath, OutputPath, SuiteOption, check_folder
from helm_longctx.documents.document import (
    Figure,
    Section,
    Table,
    text_table,
)
from helm_longctx.documents.numbers import (
    MARK,
    add_in_brackets,
    add_mark,
    format_amount,
    format_interval,
    format_p,
    format_percent,
    format_signed_percent,
)
from helm_longctx.documents.plots import interval_plot, matrix
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError, describe_all
from helm_longctx.results.boards import OVERALL, Board, label, read_suite, show_model
from helm_longctx.results.cells import (
    SERVER,
    shown_models,
)
from helm_longctx.results.comparison import (
    Differences,
    Pairing,
    SharedTable,
    Standing,
    add_reverses,
    describe_failures,
    find_differences,
    find_ranks,
)
from helm_longctx.results.methods import Gain, find_gains
from helm_longctx.results.reading import Result
from helm_longctx.results.run_groups import (
    compare_groups,
    describe_noise,
    find_groups,
    group_tables,
    parse_groups,
    read_groups,
    read_groups_of,
    to_json,
)
from helm_longctx.results.statistics.comparison import (
    FAILURES_DECIDE,
    Decision,
    SideFailures,
)
from helm_longctx.results.statistics.level import LEVEL_TEXT, SIGNIFICANCE
from helm_longctx.results.suite import suite_folder, suite_path
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.task import PLAIN
from helm_longctx.writing import write_json


@for_each_length
def comparison_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which two models have a score."""
    part = board.main_part(length)
    ranking = board.ranking(length, part)
    differences = find_differences(board, part, length)
    if len(ranking) < 2 and not differences:
        return None
    scores = {}
    for score in (*ranking, *board.without_rank(length, part)):
        scores[score.model] = score
    # Published models without a rank have no task in common with the user's.
    compared = []
    for score in scores.values():
        if score in ranking or not score.is_published:
            compared.append(score)
    names = {}
    for model in shown_models(compared):
        names[model] = add_mark(show_model(model), scores[model].caveats)
    name = f"comparison-{board.file_name}-{label(length)}".rstrip("-")
    blocks = [
        _matrix(names, differences, name),
        _ranks(board, names, ranking, differences, name),
        *_recipes(board, length, name),
    ]
    shown = [block for block in blocks if block]
    if not shown:
        return None
    what = "overall score" if part == OVERALL else f"score in {board.titles[part]}"
    about = (
        f"By {what}, on the tasks that both models have. Models that were run here are"
        " compared on the same instances (a test of paired differences by clusters),"
        " and with published ones by their intervals. P-values are adjusted by Holm's"
        " method in two families: your models with each other, and with published"
        f" ones. Published models are not compared with each other. {MARK} marks models"
        " whose scores are not comparable."
    )
    return Section(
        name, f"Comparisons {label(length)}".strip(), shown, about, choice=label(length)
    )


def _recipes(board: Board, length: int | None, name: str) -> list[Table]:
    """Return the comparison of recipes, if the suite's configuration has groups of training runs."""
    patterns = read_groups_of(board)
    if not patterns:
        return []
    try:
        groups = find_groups(patterns, board.own_models)
        table = compare_groups([board], groups, length)
    except InputError:  # some runs of the groups have not been made at this length
        return []
    return group_tables(table, name)


def _matrix(
    names: Mapping[ShownModel, str],
    differences: Differences,
    name: str,
) -> Figure | None:
    pairs = {}
    for pair in permutations(names, 2):
        if pair in differences:
            pairs[pair] = differences[pair]
    if not pairs:
        return None
    rows = []
    for (one, other), decision in pairs.items():
        comparison = decision.comparison
        effect = comparison.effect
        wins = comparison.wins
        losses = comparison.losses
        ties = comparison.ties
        instances = "not the same"
        if wins + losses + ties:
            instances = f"{wins} wins, {losses} losses, {ties} ties"
        failures = describe_failures(show_model(one), show_model(other), comparison)
        rows.append(
            {
                "row": names[one],
                "column": names[other],
                "tied": not decision.is_different,
                "open": decision.is_left_to_failures,
                "failures": failures or "none",
                "difference": round(effect.mean, 6),
                "low": round(effect.low, 6),
                "high": round(effect.high, 6),
                "p": float(f"{comparison.p_value:.3g}"),
                "adjusted p": float(f"{decision.adjusted:.3g}"),
                "instances": instances,
            }
        )
    # With `or 1.0` the ends of the colour scale are never equal.
    largest = (
        max(abs(decision.comparison.effect.mean) for decision in pairs.values()) or 1.0
    )
    about = (
        "The score of the row's model minus the score of the column's, in percentage"
        " points. An equals sign marks a statistical tie. In the tooltip, the interval"
        " and p are of this pair alone, and the adjusted p, which decides on ties, is"
        " for all pairs of its family."
    )
    if any(row["open"] for row in rows):
        about += " A question mark: failures decide, so it cannot be told."
    text = "(datum.open ? '? ' : datum.tied ? '= ' : '') + format(100 * datum.difference, '+.1f')"
    shares = dict.fromkeys(("difference", "low", "high"), "+.1%")
    p_values = dict.fromkeys(("p", "adjusted p"), ".2~g")
    formats = {**shares, **p_values, "instances": None, "failures": None}
    spec = matrix(list(names.values()), "difference", largest, text, formats, "+.0%")
    return Figure(f"{name}-matrix", "Who is better than whom", about, spec, rows)


def _ranks(
    board: Board,
    names: Mapping[ShownModel, str],
    ranking: Sequence[Result],
    differences: Differences,
    name: str,
) -> Figure | None:
    ranks = find_ranks(ranking, differences)
    rows = []
    for model in names:
        if model not in ranks or model not in board.own_models:
            continue
        rank, low, high = astuple(ranks[model])
        # The same plot shows scores and ranks, so the rank is put in the field of the score.
        row = {
            "model": names[model],
            "score": rank,
            "low": low,
            "high": high,
            "kind": board.kinds[model],
        }
        rows.append(row)
    if len(ranking) < 2 or not rows:
        return None
    about = (
        f"The rank of each of your models among {len(ranking)} by score, and the best"
        " and the worst rank that the comparisons leave open. Models with overlapping"
        " ranges may change places."
    )
    spec = interval_plot("rank", [str(row["model"]) for row in rows], ranks=True)
    return Figure(f"{name}-ranks", "Ranks and how far they are open", about, spec, rows)


def _shared_blocks(
    models: Sequence[ShownModel],
    pairings: Sequence[Pairing],
    standings: Sequence[Standing],
) -> list[Table]:
    """Return a table of the ranking and one of the differences of all pairs; of two models also one of the parts."""
    rows = []
    for standing in standings:
        rank = standing.rank
        rank_text = add_in_brackets(f"{rank.rank:g}", f"{rank.low}–{rank.high}")
        rows.append([standing.model, format_percent(standing.mean), rank_text])
    ranking = text_table(
        f"Ranking (rank with its {LEVEL_TEXT} interval)",
        ["model", "mean %", "rank"],
        rows,
    )
    every = {}
    for pairing in pairings:
        if pairing.by == "all":
            every[(pairing.one, pairing.other)] = pairing.decision
    both_ways = add_reverses(every)

    def show_difference(decision: Decision | None) -> str:
        if decision is None:
            return ""
        mean = format_signed_percent(decision.comparison.effect.mean)
        if decision.is_left_to_failures:
            return f"? ({mean})"
        if decision.is_different:
            return mean
        return f"= ({mean})"

    is_open = any(decision.is_left_to_failures for decision in every.values())
    open_mark = f"; ?: {FAILURES_DECIDE}" if is_open else ""
    lines = []
    for one in models:
        line: list[str] = [one]
        for other in models:
            line.append(show_difference(both_ways.get((one, other))))
        lines.append(line)
    matrix = text_table(
        f"Row minus column in % (=: p >= {SIGNIFICANCE}, a tie{open_mark})",
        ["", *models],
        lines,
    )
    failures = _failure_tables(pairings)
    if len(models) > 2:
        return [ranking, matrix, *failures]
    columns = [
        "by",
        "part",
        f"difference in % ({LEVEL_TEXT})",
        "p",
        "adjusted p",
        "wins",
        "losses",
        "ties",
    ]
    parts = []
    for pairing in pairings:
        comparison = pairing.comparison
        parts.append(
            [
                pairing.by,
                pairing.part,
                format_interval(comparison.effect, format_signed_percent),
                format_p(comparison.p_value),
                format_p(pairing.decision.adjusted),
                str(comparison.wins),
                str(comparison.losses),
                str(comparison.ties),
            ]
        )
    return [
        ranking,
        matrix,
        text_table(f"{pairings[0].one} minus {pairings[0].other}", columns, parts),
        *failures,
    ]


_FAILURES_ABOUT = (
    "If both models fail in about equal shares, but on other kinds of questions, such"
    " as one on wrong answers and one at random, these bounds do not show it; repeat"
    " the runs, which ask again for what failed."
)


def _failure_tables(pairings: Sequence[Pairing]) -> list[Table]:
    """Return a table of the questions without an answer, by pair and part, or nothing if all have answers."""
    columns = [
        "pair",
        "by",
        "part",
        "questions",
        "no answer %",
        "p",
        "score of the other there %",
        f"failures as wrong ({LEVEL_TEXT})",
        f"failures as right ({LEVEL_TEXT})",
        "verdict",
    ]
    rows = []
    for pairing in pairings:
        failures = pairing.comparison.failures
        if failures is None:
            continue
        sides = (failures.one, failures.other)
        rows.append(
            [
                f"{pairing.one} minus {pairing.other}",
                pairing.by,
                pairing.part,
                str(failures.asked),
                " and ".join(format_percent(side.share) for side in sides),
                format_p(failures.p_value),
                " and ".join(_show_other_score(side) for side in sides),
                format_interval(failures.as_wrong.effect, format_signed_percent),
                format_interval(failures.as_right.effect, format_signed_percent),
                pairing.decision.verdict,
            ]
        )
    title = "Questions without an answer (the difference is also given with them as wrong and as right)"
    if rows:
        return [text_table(title, columns, rows, _FAILURES_ABOUT)]
    return []


def _show_other_score(side: SideFailures) -> str:
    """Return the score of the other model where one failed, and of how many questions."""
    if not side.other_n:
        return "–"
    return f"{format_percent(side.other_score)} of {side.other_n}"


def _gain_blocks(gains: Sequence[Gain]) -> list[Table]:
    """Return a table of what the methods of a model gain, and one of what a question and a point cost."""
    model = gains[0].model
    fields = ("tokens", "dollars", "tokens_per_point", "dollars_per_point")
    scores = []
    prices = []
    for gain in gains:
        scores.append(
            (
                gain.method.title,
                str(gain.costs.questions),
                add_in_brackets(
                    format_percent(gain.costs.score), format_percent(gain.plain.score)
                ),
                format_interval(gain.comparison.effect, format_signed_percent),
                format_p(gain.comparison.p_value),
                format_p(gain.adjusted),
                gain.verdict,
            )
        )
        row = [gain.method.title]
        for field in fields:
            ours = format_amount(getattr(gain.costs, field))
            plain = format_amount(getattr(gain.plain, field))
            row.append(add_in_brackets(ours, plain))
        prices.append(row)
    columns = [
        "method",
        "questions",
        "score %",
        f"gain in % ({LEVEL_TEXT})",
        "p",
        "adjusted p",
        "verdict",
    ]
    per = [
        "tokens per question",
        "dollars per question",
        "tokens per point",
        "dollars per point",
    ]
    return [
        text_table(
            f"{model}: methods (in brackets: plain prompts on the same questions)",
            columns,
            scores,
        ),
        text_table(
            f"{model}: costs of methods (in brackets: plain prompts)",
            ["method", *per],
            prices,
        ),
    ]


def compare(
    suite: SuiteOption,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two or more models of the suite, e.g. longctx/null. [default with --methods: all]"
        ),
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Only this benchmark, e.g. helmet.")
    ] = None,
    pool: Annotated[
        bool,
        typer.Option(
            "--pool",
            help="Compare all benchmarks in one mean, in which they have equal weights.",
        ),
    ] = False,
    length: Annotated[
        str | None, typer.Option(help="Only this length, e.g. 128k.")
    ] = None,
    methods: Annotated[
        bool,
        typer.Option(
            "--methods",
            help="Compare each model's methods with its plain prompts instead.",
        ),
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare recipes by their training runs: NAME=PATTERN of models, e.g."
            " recipe-a=ckpt/a-seed*. Repeat it."
        ),
    ] = None,
    run_noise: Annotated[
        str | None,
        typer.Option(
            help="Assumed standard deviation between runs of a recipe, in points, or"
            " the group whose runs give it."
        ),
    ] = None,
    instances: Annotated[
        int,
        typer.Option(
            min=0, help="Number of instances to list, largest differences first."
        ),
    ] = 10,
    address: Annotated[
        str, typer.Option(help="Address of helm-server, for links to its pages.")
    ] = SERVER,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Compare models on the instances that all of them answered.

    Each benchmark is compared on its own, unless --pool is given. The test changes the signs of paired differences, and
    keeps questions of one group together. Holm's method adjusts its p-values for all pairs of the models that are
    named. Models whose difference is not significant are tied (=).

    With --group, recipes are compared by several training runs of each, over runs and questions. The noise between runs
    is estimated from all groups; with one run of a recipe it is unknown, and nothing is decided.
    """
    check_folder("json", json_path)
    models = models or []
    patterns = parse_groups(group or ())
    if not (patterns or models or methods):
        patterns = read_groups(suite_path(output_path, suite))
    if not patterns and run_noise is not None:
        raise InputError(f"compare: --run-noise={run_noise} needs groups; give --group")
    if group and (models or methods):
        raise InputError(
            "compare: --group names the models; leave out models and --methods"
        )
    if not (methods or patterns) and (
        len(set(models)) < 2 or len(set(models)) < len(models)
    ):
        raise InputError(
            f"compare: models={' '.join(models)!r} is invalid; give two or more different models"
        )
    if benchmark is not None:
        find_benchmark(benchmark, "compare", "benchmark")
    tokens = parse_length(length, "compare") if length else None
    every = read_suite(suite_folder(output_path, suite), BENCHMARKS).boards
    boards = []
    for board in every:
        if benchmark in (None, board.benchmark.name):
            boards.append(board)
    if patterns:
        content = _show_groups(boards, patterns, tokens, run_noise)
    elif methods:
        content = _show_methods(find_gains(boards, models, tokens))
    else:
        content = _show_comparisons(
            SharedTable(boards, models, tokens),
            tokens,
            pool,
            instances,
            address.rstrip("/"),
        )
    if json_path:
        write_json(json_path, content)


def _show_groups(
    boards: Sequence[Board],
    patterns: Mapping[str, Sequence[str]],
    length: int | None,
    run_noise: str | None,
) -> dict[str, Any]:
    """Print how recipes compare in each benchmark, and return it for programs."""
    models = list(
        dict.fromkeys(model for board in boards for model in board.own_models)
    )
    groups = find_groups(patterns, models)
    members = {model for group in groups for model in group.models}
    content = {}
    for board in boards:
        if not members <= {*board.own_models}:
            continue
        table = compare_groups([board], groups, length, run_noise)
        print(f"{board.title}: {describe_noise(table)}")
        print_blocks(group_tables(table, board.file_name))
        content[board.name] = to_json(table)
    if not content:
        raise InputError("compare: no benchmark has scores of all runs of the groups")
    return content


def _show_comparisons(
    table: SharedTable,
    length: int | None,
    pool: bool,
    instances: int,
    address: str,
) -> dict[str, Any]:
    for line in table.refusals:
        print(line)
    if pool:
        tables = [table]
    else:
        tables = []
        for board in table.boards:
            tables.append(SharedTable([board], table.models, length))
    content: dict[str, Any] = {
        "standings": [],
        "pairings": [],
        "differences": [],
        "not_compared": table.refusals,
    }
    for table in tables:
        name = "" if pool else table.boards[0].name
        for key, rows in _show(table, instances, address).items():
            content[key] += [{"benchmark": name, **row} for row in rows]
    return content


def _show_methods(gains: Sequence[Gain]) -> dict[str, Any]:
    for model in dict.fromkeys(gain.model for gain in gains):
        of_model = [gain for gain in gains if gain.model == model]
        print_blocks(_gain_blocks(of_model))
        for gain in of_model:
            if gain.comparison.failures:
                failures = describe_failures(str(gain.method), PLAIN, gain.comparison)
                print(f"{gain.method}: {failures}")
        for line in dict.fromkeys(
            line for gain in of_model for line in gain.not_compared
        ):
            print(line)
    return {"gains": [{**asdict(gain), "method": str(gain.method)} for gain in gains]}


def _show(
    table: SharedTable,
    instances: int,
    address: str,
) -> dict[str, list[dict[str, Any]]]:
    models = table.models
    pairings = table.pairings()
    standings = table.standings(pairings)
    title = " and ".join(board.title for board in table.boards)
    every = describe_all(len(models), "model")
    print(f"{title}: {len(table.items)} instances that {every} answered")
    print(*table.describe(pairings, standings), sep="\n")
    others: set[ShownModel] = set()
    for board in table.boards:
        others.update(set(board.competitors).intersection(board.own_models))
    others.difference_update(models)
    if others:
        print(
            f"P-values are adjusted for these {len(models)} models; the report has"
            f" {len(models) + len(others)}."
        )
    if table.outside:
        print(
            f"Not in the means, because the benchmark leaves them out: {', '.join(table.outside)}"
        )
    print_blocks(_shared_blocks(models, pairings, standings))
    contrasts = []
    if len(models) == 2:
        one, other = models
        contrasts = table.contrasts(one, other, instances, address)
    for contrast in contrasts:
        item = contrast.item
        at = f" at {label(item.length)}" if item.length is not None else ""
        scores = f"{format_percent(contrast.one)} and {format_percent(contrast.other)}"
        print(f"{item.task or item.entry}{at}, {item.instance}: {scores}")
        for link in contrast.links:
            print(f"  {link}")
    rows = []
    for pairing in pairings:
        row = asdict(pairing)
        row |= row.pop("decision")
        row["better"] = pairing.better
        row["verdict"] = pairing.decision.verdict
        rows.append(row)
    return {
        "standings": [asdict(standing) for standing in standings],
        "pairings": rows,
        "differences": [
            {**contrast._asdict(), "item": contrast.item._asdict()}
            for contrast in contrasts
        ],
    }
