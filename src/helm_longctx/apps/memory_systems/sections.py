"""The page and the command with one table for memory systems: their scores in all benchmarks of memory, by one reader.

A system is a method of a model, the reader. The baselines are the same reader with the whole context and without any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from helm_longctx.config.shared import JsonPath, OutputPath, SuiteOption, check_folder
from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    HeadlineAnswer,
    Section,
    Table,
    interval_cell,
    number_cell,
    tabulate,
)
from helm_longctx.documents.numbers import (
    DASH,
    drop_nan,
    format_count,
    format_percent,
    format_signed_percent,
)
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.boards import Board, label, read_suite, show_model
from helm_longctx.results.cells import score_cell
from helm_longctx.results.comparison import SharedTable
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import (
    FAILURES_DECIDE,
    Comparison,
    Decision,
    decide_all,
)
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.suite import suite_folder
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.methods.memory import MEMORY
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Task
from helm_longctx.writing import write_json

TABLE = "memory"
"""The name of this table in `Benchmark.tables`."""

FULL = "full context"
NONE = "no context"
_CLOSED_BOOK = "closed_book"
"""The method that leaves out the context."""


@dataclass(frozen=True)
class _System:
    """A way in which the reader gets at a conversation.

    Args:
        name: the method with its arguments, or of `method=memory` the class; `FULL` or `NONE`; the model's name for
            answers from elsewhere.
        model: the row of the reader with this method.
    """

    name: str
    model: ShownModel

    @property
    def is_baseline(self) -> bool:
        """Whether it is the whole context or none."""
        return self.name in (FULL, NONE)


class _Test(NamedTuple):
    """A task of a benchmark at a length."""

    board: Board
    task: Task
    length: int | None

    @property
    def title(self) -> str:
        """The title with the benchmark and the length."""
        title = self.task.title
        if not title.startswith(self.board.title):
            title = f"{self.board.title}, {title}"
        return f"{title} {label(self.length)}".strip()

    def find_score(self, system: _System) -> Result | None:
        """Return the score of a system, or None if it has none. That a method asked is no mark here."""
        score = self.board.score(system.model, self.task.name, self.length)
        if score is None:
            return None
        marks = [caveat for caveat in score.caveats if caveat.kind != "method"]
        return replace(score, caveats=tuple(marks))


class _Contrast(NamedTuple):
    """A system compared with the whole context and with none, on the questions that were answered with both."""

    test: _Test
    system: _System
    full: Decision | None
    none: Decision | None


@dataclass(frozen=True)
class _PromptSpread:
    """The scores of the same answers by several prompts of judges.

    Args:
        lowest, highest: the title of the prompt, and the score.
    """

    benchmark: str
    length: int | None
    system: _System
    lowest: tuple[str, Result]
    highest: tuple[str, Result]

    @property
    def size(self) -> float:
        """The difference of both scores, 0 to 1."""
        return self.highest[1].interval.mean - self.lowest[1].interval.mean


@dataclass(frozen=True)
class _ReaderTable:
    """All systems of a reader.

    Args:
        contrasts: for each system that is no baseline, and each test, how it differs from the baselines.
    """

    reader: ShownModel
    tests: Sequence[_Test]
    systems: Sequence[_System]
    contrasts: Sequence[_Contrast]
    spreads: Sequence[_PromptSpread]


def find_tables(
    boards: Iterable[Board],
    others: Sequence[str] = (),
) -> list[_ReaderTable]:
    """Return the table of each reader that was run with a method.

    Args:
        boards: the boards of a suite, with their answers. Those of benchmarks without this table are ignored.
        others: models whose answers come from a memory system elsewhere. They are systems of every reader.

    Raises:
        InputError: the suite lacks one of `others`.
    """
    used = []
    for board in boards:
        if TABLE in board.benchmark.tables and not board.metric and board.own_models:
            used.append(board)
    models = list(dict.fromkeys(model for board in used for model in board.own_models))
    for name in others:
        if name not in models:
            raise bad_argument("memory", "system", name, models)
    systems_of: dict[ShownModel, list[_System]] = {}
    for model in models:
        if model not in others:
            system = _System(name=_name_system(model), model=model)
            systems_of.setdefault(model.without_method, []).append(system)
    elsewhere = []
    for model in models:
        if model in others:
            name = show_model(model)
            elsewhere.append(_System(name=name, model=model))
    tables = []
    for reader, own in systems_of.items():
        if len(own) > 1 or elsewhere:
            systems = sorted([*own, *elsewhere], key=_order)
            tables.append(_make_table(reader, used, systems))
    return tables


def _name_system(model: ShownModel) -> str:
    method = model.setup.method
    if not method:
        return FULL
    if method.name == _CLOSED_BOOK:
        return NONE
    if method.name == MEMORY.name:
        # The class says enough.
        arguments = dict(method.arguments)
        system = str(arguments.pop("system", MEMORY.arguments["system"]))
        marks = [f"{name}={value}" for name, value in arguments.items()]
        return " ".join([system, *marks])
    return method.title


def _order(system: _System) -> int:
    """Return the place of a system: after no context, and before the whole one."""
    return {NONE: 0, FULL: 2}.get(system.name, 1)


def _make_table(
    reader: ShownModel,
    boards: Sequence[Board],
    systems: Sequence[_System],
) -> _ReaderTable:
    tests = []
    for board in boards:
        for length in board.lengths:
            for task in board.benchmark.tasks:
                test = _Test(
                    board=board,
                    task=task,
                    length=length,
                )
                if any(test.find_score(system) for system in systems):
                    tests.append(test)
    return _ReaderTable(
        reader=reader,
        tests=tests,
        systems=systems,
        contrasts=_find_contrasts(tests, systems),
        spreads=_find_spreads(tests, systems),
    )


def _find_contrasts(
    tests: Sequence[_Test],
    systems: Sequence[_System],
) -> list[_Contrast]:
    """Compare each system with both baselines. P-values are adjusted over all tests and systems of a baseline."""
    pairs = []
    for test in tests:
        for system in systems:
            if not system.is_baseline and test.find_score(system):
                pairs.append((test, system))
    decisions = {}
    for name in (FULL, NONE):
        baseline = next((system for system in systems if system.name == name), None)
        comparisons = []
        for test, system in pairs:
            comparisons.append(_compare(test, system, baseline))
        decided = iter(decide_all([known for known in comparisons if known]))
        decisions[name] = [next(decided) if known else None for known in comparisons]
    contrasts = []
    for index, (test, system) in enumerate(pairs):
        contrast = _Contrast(
            test=test,
            system=system,
            full=decisions[FULL][index],
            none=decisions[NONE][index],
        )
        contrasts.append(contrast)
    return contrasts


def _compare(
    test: _Test,
    system: _System,
    baseline: _System | None,
) -> Comparison | None:
    """Compare a system with a baseline on the questions of a test, or return None if they share none by one judge."""
    if baseline is None:
        return None
    try:
        table = SharedTable(
            [test.board], (system.model, baseline.model), length=test.length
        )
    except InputError:  # they have no task in common
        return None
    indices = []
    for index, question in enumerate(table.questions):
        if question.item.task == test.task.name:
            indices.append(index)
    # Questions without an answer are the last ones.
    if not indices or indices[0] >= len(table.items):
        return None
    return table.compare(indices)


def _find_spreads(
    tests: Sequence[_Test],
    systems: Sequence[_System],
) -> list[_PromptSpread]:
    """Return how far the prompts of judges lie apart, for tasks that differ in nothing but the judge's prompt."""
    groups: dict[tuple[str, int | None], list[_Test]] = {}
    for test in tests:
        if test.task.judge_prompt:
            groups.setdefault((test.board.title, test.length), []).append(test)
    spreads = []
    for (benchmark, length), group in groups.items():
        for system in systems:
            scores = []
            for test in group:
                if score := test.find_score(system):
                    scores.append((test.task.judge_prompt, score))
            if len(scores) < 2:
                continue
            scores.sort(key=lambda pair: pair[1].interval.mean)
            spread = _PromptSpread(
                benchmark=benchmark,
                length=length,
                system=system,
                lowest=scores[0],
                highest=scores[-1],
            )
            spreads.append(spread)
    return spreads


_ABOUT = (
    "A memory system reads a conversation, and the reader answers from what it has kept. The baselines are the same reader"
    " with the whole conversation and with none. Differences are paired on the questions that were answered with both;"
    " their p-values are adjusted by Holm's method over all tests and systems of the table."
)


def memory_sections(boards: Sequence[Board]) -> list[Section]:
    """Return a section for each reader with a memory system or another method."""
    return _make_sections(find_tables(boards))


def _make_sections(tables: Sequence[_ReaderTable]) -> list[Section]:
    sections = []
    for number, table in enumerate(tables):
        name = f"memory-{number}"
        blocks: list[Block] = [
            _make_answer(table),
            _score_table(table, name),
            *_contrast_table(table, name),
            *_spread_table(table, name),
        ]
        title = f"What do memory systems keep? Reader: {show_model(table.reader)}"
        sections.append(Section(name, title, blocks, _ABOUT))
    return sections


def _make_answer(table: _ReaderTable) -> HeadlineAnswer:
    """Say in how many tests each system is better or worse than the baselines."""
    sentences = []
    for system in table.systems:
        of_system = [row for row in table.contrasts if row.system == system]
        if of_system:
            none = _count_verdicts([row.none for row in of_system])
            full = _count_verdicts([row.full for row in of_system])
            sentences.append(
                f"{system.name}: compared with {NONE} {none}; with {FULL} {full}."
            )
    names = [system.name for system in table.systems]
    lacking = [name for name in (NONE, FULL) if name not in names]
    note = ""
    if lacking:
        note = (
            f"Without runs of {' and '.join(lacking)} it is not known what a system adds: {NONE} is"
            f" method={_CLOSED_BOOK}, {FULL} an entry without a method."
        )
    if not sentences:
        sentences = ["The suite has only baselines: add method=memory or another one."]
    return HeadlineAnswer(
        question="What do memory systems keep?",
        verdict="\n".join(sentences),
        certainty="",
        is_sure=not lacking,
        note=note,
    )


def _count_verdicts(decisions: Sequence[Decision | None]) -> str:
    """Return how often each verdict occurs, as in `better in 2 of 3 tests, tied in 1`."""
    known = [decision for decision in decisions if decision is not None]
    if not known:
        return "not known"
    words = {
        "better": "better",
        "worse": "worse",
        "tie": "tied",
        FAILURES_DECIDE: "left to failures",
    }
    counts = []
    for verdict, word in words.items():
        times = sum(decision.verdict == verdict for decision in known)
        if times:
            counts.append(f"{word} in {times}")
    tests = "test" if len(known) == 1 else "tests"
    return f"{', '.join(counts)} of {len(known)} {tests}"


def _score_table(table: _ReaderTable, name: str) -> Table:
    """Return the scores, with a row for each test and a column for each system."""
    judges_of = [_find_judges(test, table.systems) for test in table.tests]
    different = {judges for judges in judges_of if judges}
    columns = [Column("Test", is_number=False)]
    if len(different) > 1:
        columns.append(Column("Judge", is_number=False, folds=True))
    columns += [Column(system.name) for system in table.systems]
    rows = []
    for test, judges in zip(table.tests, judges_of, strict=True):
        cells = [Cell(test.title)]
        if len(different) > 1:
            cells.append(Cell(", ".join(judges) or DASH))
        cells += [score_cell(test.find_score(system)) for system in table.systems]
        rows.append(cells)
    about = ""
    if len(different) == 1:
        (judges,) = different
        about = f"The judge of all judged tests is {', '.join(judges)}."
    title = f"Memory systems, read by {show_model(table.reader)}"
    return Table(f"{name}-scores", title, columns, rows, about)


def _find_judges(test: _Test, systems: Sequence[_System]) -> tuple[str, ...]:
    """Return the judges of a test, in order; none if no judge is needed."""
    judges: set[str] = set()
    for system in systems:
        if score := test.find_score(system):
            judges |= score.judges
    return tuple(sorted(judges))


_EFFECT = f"In points, with its {LEVEL_TEXT} interval, and whether the difference is significant."


def _contrast_table(table: _ReaderTable, name: str) -> list[Table]:
    if not table.contrasts:
        return []
    columns: Sequence[tuple[Column, Callable[[_Contrast], Cell]]] = (
        (Column("Test", is_number=False), lambda row: Cell(row.test.title)),
        (
            Column("System", is_number=False, folds=True),
            lambda row: Cell(row.system.name),
        ),
        (Column(f"Minus {FULL}", _EFFECT), lambda row: _effect_cell(row.full)),
        (Column(f"Minus {NONE}", _EFFECT), lambda row: _effect_cell(row.none)),
        (
            Column(
                "Tokens",
                "Tokens of a question in all requests, in percent of those with the full context.",
            ),
            lambda row: number_cell(_find_token_share(table, row), format_percent),
        ),
    )
    title = "What a system adds and lacks, in points; tokens in percent of the full context's"
    return [tabulate(f"{name}-contrasts", title, columns, table.contrasts)]


def _effect_cell(decision: Decision | None) -> Cell:
    if decision is None:
        return Cell(DASH, note="no questions in common by one judge")
    cell = interval_cell(decision.comparison.effect, format_signed_percent)
    return replace(cell, detail=f"{cell.detail}; {decision.verdict}")


def _find_token_share(table: _ReaderTable, row: _Contrast) -> float | None:
    """Return the tokens of a system as a share of those with the whole context, or None if either is unknown."""
    for system in table.systems:
        if system.name == FULL:
            own = _count_tokens(row.test, row.system)
            full = _count_tokens(row.test, system)
            return own / full if own is not None and full else None
    return None


def _count_tokens(test: _Test, system: _System) -> float | None:
    """Return the mean number of tokens of a question, prompts and outputs, or None if the provider did not count."""
    score = test.find_score(system)
    total = 0.0
    for name in ("billed_prompt_tokens", "output_tokens"):
        interval = score.find_interval(name) if score else None
        if interval is None or math.isnan(interval.mean):
            return None
        total += interval.mean
    return total


def _spread_table(table: _ReaderTable, name: str) -> list[Table]:
    if not table.spreads:
        return []
    columns: Sequence[tuple[Column, Callable[[_PromptSpread], Cell]]] = (
        (
            Column("Benchmark", is_number=False),
            lambda row: Cell(f"{row.benchmark} {label(row.length)}".strip()),
        ),
        (
            Column("System", is_number=False, folds=True),
            lambda row: Cell(row.system.name),
        ),
        (
            Column("Lowest prompt", is_number=False),
            lambda row: Cell(row.lowest[0]),
        ),
        (Column("Score there"), lambda row: score_cell(row.lowest[1])),
        (
            Column("Highest prompt", is_number=False),
            lambda row: Cell(row.highest[0]),
        ),
        (Column("Score here"), lambda row: score_cell(row.highest[1])),
        (
            Column("Spread", "In points."),
            lambda row: number_cell(row.size, format_percent),
        ),
        (
            Column("Questions"),
            lambda row: number_cell(row.highest[1].interval.n, format_count),
        ),
    )
    about = "Where the prompts have different judges, the spread is of both; judge=NAME gives all prompts one judge."
    title = "The same answers by the judge's prompt"
    return [tabulate(f"{name}-prompts", title, columns, table.spreads, about)]


def memory(
    suite: SuiteOption,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="Model of the suite whose answers come from a memory system elsewhere, such as imported ones. It gets"
            " a column of its own. Give the option again for each further model."
        ),
    ] = None,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Show one table for memory systems: LoCoMo, LongMemEval and BEAM, with no context and the full one as baselines.

    A system is a method of a model, the reader: method=memory with your class, method=retrieve, or any other. Differences
    are paired, and scores by several prompts of judges stand side by side.
    """
    check_folder("json", json_path)
    suite_read = read_suite(suite_folder(output_path, suite), BENCHMARKS)
    tables = find_tables(suite_read.boards, system or ())
    if not tables:
        names = []
        for benchmark in BENCHMARKS:
            if TABLE in benchmark.tables:
                names.append(benchmark.title)
        raise InputError(
            f"memory: suite={suite} has no model with runs of {', '.join(names)} with a method and without one; run"
            " the same entries with method=memory and method=closed_book, for example"
        )
    for section in _make_sections(tables):
        print_blocks(section.blocks)
    if json_path:
        content = [_to_json(table) for table in tables]
        write_json(json_path, content)


def _to_json(table: _ReaderTable) -> dict[str, Any]:
    """Return a table for programs. Scores and differences are in 0 to 1; what is not known is null."""
    scores = []
    for test in table.tests:
        for system in table.systems:
            if score := test.find_score(system):
                scores.append(
                    {
                        **_name(test, system),
                        "judges": sorted(score.judges),
                        "judge_prompt": test.task.judge_prompt or None,
                        "score": score.interval.mean,
                        "low": drop_nan(score.interval.low),
                        "high": drop_nan(score.interval.high),
                        "n": score.interval.n,
                        "tokens": _count_tokens(test, system),
                        "lacking": [caveat.code for caveat in score.caveats],
                    }
                )
    differences = []
    for row in table.contrasts:
        for baseline, decision in ((FULL, row.full), (NONE, row.none)):
            if decision is not None:
                effect = decision.comparison.effect
                differences.append(
                    {
                        **_name(row.test, row.system),
                        "baseline": baseline,
                        "difference": effect.mean,
                        "low": drop_nan(effect.low),
                        "high": drop_nan(effect.high),
                        "n": effect.n,
                        "adjusted_p": drop_nan(decision.adjusted),
                        "verdict": decision.verdict,
                    }
                )
    return {"reader": table.reader, "scores": scores, "differences": differences}


def _name(test: _Test, system: _System) -> dict[str, Any]:
    return {
        "benchmark": test.board.benchmark.name,
        "task": test.task.name,
        "length": test.length,
        "system": system.name,
        "model": system.model,
    }
