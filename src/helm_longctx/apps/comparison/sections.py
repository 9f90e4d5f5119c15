"""The page that compares models: which model is better than which, ranks by several methods, performance profiles."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import permutations, product

import numpy as np

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import Cell, Column, Figure, Section, Table, number_cell, text_table
from helm_longctx.documents.numbers import (
    MARK,
    amount,
    decimals,
    in_brackets,
    interval_text,
    marked,
    p_text,
    percent,
    signed_percent,
)
from helm_longctx.documents.plots import interval_plot, matrix, profiles
from helm_longctx.results.boards import OVERALL, Board, label, show_model
from helm_longctx.results.cells import caveat_kinds, kind_of, model_cell, own_first, shown_models
from helm_longctx.results.comparison import (
    THRESHOLDS,
    Differences,
    Pairing,
    Standing,
    add_reverses,
    find_differences,
    find_ranks,
)
from helm_longctx.results.methods import Gain
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import SIGNIFICANCE, Decision
from helm_longctx.results.statistics.ranking import borda, interquartile_mean, kemeny, performance_profile


@for_each_length
def comparison_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which two models have a score."""
    part = board.main_part(length)
    ranking = board.ranking(length, part)
    differences = find_differences(board, part, length)
    if len(ranking) < 2 and not differences:
        return None
    scores = {each.model: each for each in (*ranking, *board.unranked(length, part))}
    # Published models without a rank have no task in common with the user's.
    compared = [each for each in scores.values() if each in ranking or not each.is_published]
    names = {model: marked(show_model(model), scores[model].caveats) for model in shown_models(compared)}
    name = f"comparison-{board.file_name}-{label(length)}".rstrip("-")
    blocks = [
        _matrix(names, differences, name),
        _ranks(board, names, ranking, differences, name),
        _methods(board, ranking, length, name),
        _profiles(board, ranking, length, name),
    ]
    shown = [block for block in blocks if block]
    if not shown:
        return None
    what = "overall score" if part == OVERALL else f"score in {board.titles[part]}"
    about = (
        f"By {what}, on the tasks that both models have. Models that were run here are compared on the same instances"
        " (a test of paired differences by clusters), and with published ones by their intervals. P-values are adjusted"
        " by Holm's method in two families: your models with each other, and with published ones. Published models are"
        f" not compared with each other. {MARK} marks models whose scores are not comparable."
    )
    return Section(name, f"Comparisons {label(length)}".strip(), shown, about, choice=label(length))


def _matrix(names: Mapping[str, str], differences: Differences, name: str) -> Figure | None:
    pairs = {pair: differences[pair] for pair in permutations(names, 2) if pair in differences}
    if not pairs:
        return None
    rows = []
    for (one, other), each in pairs.items():
        found, effect = each.comparison, each.comparison.effect
        counts = f"{found.wins} wins, {found.losses} losses, {found.ties} ties"
        rows.append(
            {
                **{"row": names[one], "column": names[other], "tied": not each.is_different},
                **{"difference": round(effect.mean, 6), "low": round(effect.low, 6), "high": round(effect.high, 6)},
                **{"p": float(f"{found.p_value:.3g}"), "adjusted p": float(f"{each.adjusted:.3g}")},
                "instances": counts if found.wins + found.losses + found.ties else "not the same",
            }
        )
    # With `or 1.0` the ends of the colour scale are never equal.
    largest = max(abs(each.comparison.effect.mean) for each in pairs.values()) or 1.0
    about = (
        "The score of the row's model minus the score of the column's, in percentage points. An equals sign marks a"
        " statistical tie. In the tooltip, the interval and p are of this pair alone, and the adjusted p, which decides"
        " on ties, is for all pairs of its family."
    )
    text = "(datum.tied ? '= ' : '') + format(100 * datum.difference, '+.1f')"
    shares, p_values = dict.fromkeys(("difference", "low", "high"), "+.1%"), dict.fromkeys(("p", "adjusted p"), ".2~g")
    formats = {**shares, **p_values, "instances": None}
    spec = matrix(list(names.values()), "difference", largest, text, formats, "+.0%")
    return Figure(f"{name}-matrix", "Who is better than whom", about, spec, rows)


def _ranks(
    board: Board, names: Mapping[str, str], ranking: Sequence[Result], differences: Differences, name: str
) -> Figure | None:
    ranks = find_ranks(ranking, differences)
    rows = [
        # The same plot shows scores and ranks, so the rank is put in the field of the score.
        {"model": names[model], "score": rank, "low": low, "high": high, "kind": kind_of(board, model)}
        for model in names
        if model in ranks and model in board.own_models
        for rank, low, high in [astuple(ranks[model])]
    ]
    if len(ranking) < 2 or not rows:
        return None
    about = (
        f"The rank of each of your models among {len(ranking)} by score, and the best and the worst rank that the"
        " comparisons leave open. Models with overlapping ranges may change places."
    )
    spec = interval_plot("rank", [str(row["model"]) for row in rows], ranks=True)
    return Figure(f"{name}-ranks", "Ranks and how far they are open", about, spec, rows)


def _methods(board: Board, ranking: Sequence[Result], length: int | None, name: str) -> Table | None:
    """Return ranks by other methods, of the models with a score in every column that all of the user's models have."""
    own = [each.model for each in ranking if not each.is_published]
    columns = _common_parts(board, own, board.columns_at(length), length)
    ranked = [{each.model for each in board.ranking(length, part)} for part in columns]
    names = own_first(board, (each.model for each in ranking))
    models = [model for model in names if all(model in having for having in ranked)]
    if len(columns) < 2 or len(models) < 2:
        return None
    scores = {model: [score for part in columns if (score := board.score(model, part, length))] for model in models}
    table = np.array([[score.interval.mean for score in found] for found in scores.values()])
    lacking = [caveat_kinds(caveat for score in found for caveat in score.caveats) for found in scores.values()]
    points, order = borda(table), kemeny(table)
    rows = [
        [
            model_cell(board, model),
            number_cell(float(table[place].mean()), lacking=lacking[place]),
            Cell(decimals(points[place], 1), float(points[place])),
            number_cell(interquartile_mean(table[place]), lacking=lacking[place]),
            Cell(str(order.index(place) + 1), order.index(place) + 1),
        ]
        for place, model in enumerate(models)
    ]
    heads = [
        Column("Model", is_number=False),
        Column("Mean", "The mean of the columns."),
        Column("Borda", "The number of models that it is better than, as a mean over columns."),
        Column("Interquartile mean", "The mean of the middle half of the columns' scores."),
        Column("Kemeny", "The rank in the order that contradicts the columns' orders of pairs least often."),
    ]
    about = (
        f"By {', '.join(board.titles[part] for part in columns)}. If the methods order two models differently, their"
        " order depends on the weights of columns."
    )
    return Table(f"{name}-methods", "Ranks by other methods", heads, rows, about, search=True)


def _common_parts(board: Board, models: Sequence[str], parts: Sequence[str], length: int | None) -> list[str]:
    """Return the parts in which all models have a score over the same tasks."""
    ranked = {part: {each.model for each in board.ranking(length, part)} for part in parts}
    return [part for part in parts if ranked[part].issuperset(models)]


def _profiles(board: Board, ranking: Sequence[Result], length: int | None, name: str) -> Figure | None:
    """Return performance profiles over the tasks that all shown models have.

    Of published models often only categories are known. If the models have too few parts in common, the parts of the
    user's models are used.
    """
    shown = shown_models(ranking)
    own = [model for model in shown if kind_of(board, model) == "own"]
    choices = product((shown, own), (board.tasks_of(OVERALL, length), board.columns_at(length)))
    common = ((models, _common_parts(board, models, parts, length)) for models, parts in choices)
    models, parts = next((each for each in common if each[0] and len(each[1]) > 1), ([], []))
    if not parts:
        return None
    rows = []
    for model in models:
        scores = [score.interval.mean for part in parts if (score := board.score(model, part, length))]
        shares = performance_profile(scores, THRESHOLDS)
        rows += [
            {
                "model": show_model(model),
                "threshold": limit,
                "share": round(float(share), 4),
                "kind": kind_of(board, model),
            }
            for limit, share in zip(THRESHOLDS, shares, strict=True)
        ]
    about = f"The share of parts in which a model scores more than a value, of {len(parts)} that all these models have."
    return Figure(f"{name}-profiles", "Performance profiles", about, profiles(), rows, by_model=True)


def shared_blocks(models: Sequence[str], pairings: Sequence[Pairing], standings: Sequence[Standing]) -> list[Table]:
    """Return a table of the ranking and one of the differences of all pairs; of two models also one of the parts."""
    names = ["model", "mean %", "rank", "Borda", "Kemeny", "interquartile mean %"]
    rows = [
        (
            *(row.model, percent(row.mean), in_brackets(f"{row.rank.rank:g}", f"{row.rank.low}–{row.rank.high}")),
            *(decimals(row.borda), str(row.kemeny), percent(row.interquartile_mean)),
        )
        for row in standings
    ]
    ranking = text_table("Ranking (rank with its 95 % interval)", names, rows)
    every = {(each.one, each.other): each.decision for each in pairings if each.by == "all"}
    both_ways = add_reverses(every)

    def show_difference(decision: Decision | None) -> str:
        mean = signed_percent(decision.comparison.effect.mean) if decision else ""
        return f"= ({mean})" if decision and not decision.is_different else mean

    matrix = text_table(
        f"Row minus column in % (=: p >= {SIGNIFICANCE}, a tie)",
        ["", *models],
        [[one, *(show_difference(both_ways.get((one, other))) for other in models)] for one in models],
    )
    if len(models) > 2:
        return [ranking, matrix]
    columns = ["by", "part", "difference in % (95 %)", "p", "adjusted p", "wins", "losses", "ties"]
    parts = [
        (
            *(each.by, each.part, interval_text(found.effect, signed_percent)),
            *(p_text(found.p_value), p_text(each.adjusted), *map(str, (found.wins, found.losses, found.ties))),
        )
        for each in pairings
        for found in (each.comparison,)
    ]
    return [ranking, matrix, text_table(f"{pairings[0].one} minus {pairings[0].other}", columns, parts)]


def gain_blocks(gains: Sequence[Gain]) -> list[Table]:
    """Return a table of what the methods of a model gain, and one of what a question and a point cost."""
    names = [each.method.removeprefix("method=") for each in gains]
    model = gains[0].model
    scores = [
        (
            *(name, str(each.costs.questions), in_brackets(percent(each.costs.score), percent(each.plain.score))),
            interval_text(each.comparison.effect, signed_percent),
            *map(p_text, (each.comparison.p_value, each.adjusted)),
        )
        for name, each in zip(names, gains, strict=True)
    ]
    fields = ("tokens", "dollars", "tokens_per_point", "dollars_per_point")
    prices = [
        [name]
        + [in_brackets(*(amount(getattr(costs, field)) for costs in (each.costs, each.plain))) for field in fields]
        for name, each in zip(names, gains, strict=True)
    ]
    columns = ["method", "questions", "score %", "gain in % (95 %)", "p", "adjusted p"]
    per = ["tokens per question", "dollars per question", "tokens per point", "dollars per point"]
    return [
        text_table(f"{model}: methods (in brackets: plain prompts on the same questions)", columns, scores),
        text_table(f"{model}: costs of methods (in brackets: plain prompts)", ["method", *per], prices),
    ]
