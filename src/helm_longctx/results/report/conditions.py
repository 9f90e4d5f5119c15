"""The page about the runs themselves: failures, cut prompts, outputs at their limit, tokens, seconds, money."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from helm_longctx.pages.document import Cell, Column, Section, Table
from helm_longctx.pages.results import Board, Run, label, lack_kinds
from helm_longctx.protocol.metric_names import CONDITIONS
from helm_longctx.report.comparability import MARK

Links = Callable[[Run], tuple[str, str]]
"""(run) → the addresses of its instances in the report and of its page in HELM; empty if there is no such page."""

COST = "cost"
"""The statistic that is summed over a run's answers. The others are shown as means."""

_LEFT_OUT = ("depth", "published", "subsampled", "generated_data", "num_instances", "price_date")
_PLAIN = ("request_seconds", "jury_alpha", COST)
"""Statistics that are not shares, beside the numbers of tokens."""


def condition_sections(board: Board, links: Links) -> list[Section]:
    """Return a table with a row for each of the user's runs; nothing without runs."""
    if not board.runs:
        return []
    # Statistics that are 0 in all runs have no column.
    names = [name for name in CONDITIONS if name not in _LEFT_OUT and any(_mean(run, name) for run in board.runs)]
    heads = [
        Column("Model", is_number=False),
        Column("Run entry", is_number=False),
        Column("Length", is_number=False),
        Column("Answers", "Answers with a score, of all answers."),
        *(Column(CONDITIONS[name][0], CONDITIONS[name][1]) for name in names),
        Column("HELM", "The run's page in HELM, if its server's address was given.", is_number=False),
        Column(f"{MARK} Not comparable", "Why the run's scores do not compare with others.", is_number=False),
    ]
    rows = [_row(run, names, links) for run in board.runs]
    name = f"runs-{board.benchmark.name}"
    about = (
        "Shares are in percent of the requests, tokens are means, and the cost is that of the whole run. The run entry"
        " leads to the run's instances."
    )
    table = Table(name, "Runs", heads, rows, about, search=True)
    return [Section(name, "Runs, failures and costs", [table])]


def _row(run: Run, names: Sequence[str], links: Links) -> list[Cell]:
    instances, page = links(run)
    scored = sum(each.score is not None for each in run.scores)
    lacks = list(dict.fromkeys(lack for reasons in run.lacks.values() for lack in reasons))
    entry = run.path.name.partition(",model=")[0]
    return [
        Cell(run.model),
        Cell(entry + (" (closed book)" if run.is_closed_book else ""), link=instances),
        Cell(label(run.length), sort=float(run.length or 0)),
        Cell(f"{scored} of {len(run.scores)}", float(scored)),
        *(_number(name, _cost(run) if name == COST else _mean(run, name)) for name in names),
        Cell("open" if page else "–", link=page),
        Cell(lack_kinds(lacks), note="; ".join(lacks), tag="lacking" if lacks else ""),
    ]


def _mean(run: Run, name: str) -> float | None:
    """Return the mean over tasks of a statistic."""
    values = [run.means[name, task.name] for task in run.tasks if (name, task.name) in run.means]
    return sum(values) / len(values) if values else None


def _number(name: str, value: float | None) -> Cell:
    if value is None:
        # A value below zero puts runs without a value at the end.
        return Cell("–", -1.0)
    if name.endswith("_tokens"):
        return Cell(f"{value:,.0f}", value)
    if name in _PLAIN:
        return Cell(f"{value:.2f}", value)
    return Cell(f"{100 * value:.1f}", 100 * value)


def _cost(run: Run) -> float | None:
    """Return the cost of all answers of a run."""
    # Only known costs are added. Answers whose provider counts no tokens have no cost.
    costs = [each.values[COST] for each in run.scores if COST in each.values]
    return sum(costs) if costs else None
