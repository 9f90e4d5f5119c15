"""The pages of scores by length and depth: curves, means, drop, effective length, heat tables, depth and complexity."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    number_cell,
)
from helm_longctx.documents.numbers import DASH, MARK, percent, range_text, share
from helm_longctx.documents.plots import curves, depth_maps, heat_tables
from helm_longctx.results.boards import OVERALL, Board, label, mean_of_results
from helm_longctx.results.cells import (
    all_models,
    caveat_kinds,
    interval_row,
    kind_of,
    model_cell,
    plot_row,
    score_cell,
    short_name,
)
from helm_longctx.results.reading import Result, interval_of
from helm_longctx.results.statistics.intervals import (
    NOLIMA_SHARE,
    Interval,
    drop,
    effective_length,
    length_means,
    possible_lengths,
    share_of_shortest,
)
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.benchmark import Benchmark, Sweep
from helm_longctx.tasks.metric_names import DEPTHS, nearest_depth

_ABOUT_SWEEPS = (
    "The tasks of a panel differ in one property alone, so the fall of a curve is what this property costs. Bold lines"
    f" are your models, and dotted lines are floors. {MARK} marks scores that are not comparable."
)

_Levels = Mapping[str, Result]
"""A model's score at each level that it has, the easiest first."""


@for_each_length
def sweep_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which a model has several levels of a sweep."""
    found: list[tuple[Sweep, dict[ShownModel, _Levels]]] = []
    for sweep in board.benchmark.sweeps:
        models: dict[ShownModel, _Levels] = {}
        results = {
            level: board.scores_of(task, length) for level, task in sweep.tasks.items()
        }
        for model in all_models(board):
            levels = {
                level: scores[model]
                for level, scores in results.items()
                if model in scores
            }
            if len(levels) >= 2:
                models[model] = levels
        if models:
            found.append((sweep, models))
    if not found:
        return None
    rows = [
        plot_row(board, score, part=sweep.title, level=level)
        for sweep, models in found
        for levels in models.values()
        for level, score in levels.items()
    ]
    name = f"complexity-{board.file_name}-{label(length)}".rstrip("-")
    about = " ".join(f"{sweep.title}: {sweep.about}" for sweep, _ in found)
    order = dict.fromkeys(level for sweep, _ in found for level in sweep.tasks)
    spec = curves(
        [sweep.title for sweep, _ in found], list(order), "level", over="level"
    )
    figure = Figure(
        f"{name}-curves", "Score by complexity", about, spec, rows, by_model=True
    )
    tables = [
        _sweep_table(board, sweep, models, f"{name}-{sweep.title.lower()}")
        for sweep, models in found
    ]
    title = f"Scores by complexity {label(length)}".strip()
    return Section(name, title, [figure, *tables], _ABOUT_SWEEPS, choice=label(length))


def _sweep_table(
    board: Board, sweep: Sweep, models: Mapping[ShownModel, _Levels], name: str
) -> Table:
    there = [
        level
        for level in sweep.tasks
        if any(level in levels for levels in models.values())
    ]
    columns = [
        Column("Model", is_number=False),
        *(Column(level, board.titles[sweep.tasks[level]]) for level in there),
        Column(
            "Drop",
            "The score at the easiest level minus that at the hardest, of those that the model has.",
        ),
        Column(
            "Effective level",
            f"The hardest level at which the score is at least {share(NOLIMA_SHARE)} of that at the easiest.",
            is_number=False,
        ),
    ]
    rows = []
    for model, levels in models.items():
        # Levels need not be numbers, so their places stand for them.
        places = {there.index(level): score.interval for level, score in levels.items()}
        means = {place: interval.mean for place, interval in places.items()}
        loss = drop(places)
        effective = (
            effective_length(means, share_of_shortest(means))
            if means[min(means)]
            else None
        )
        possible = ", ".join(
            there[place] for place in possible_lengths(places) if place is not None
        )
        lacking = caveat_kinds(
            caveat for score in levels.values() for caveat in score.caveats
        )
        longest = DASH if effective is None else there[effective]
        note = f"possible at {LEVEL_TEXT}: {possible}"
        rows.append(
            [
                model_cell(board, model),
                *(score_cell(levels.get(level)) for level in there),
                number_cell(
                    loss.mean,
                    note=f"{LEVEL_TEXT} interval {range_text(loss.low, loss.high)}",
                    lacking=lacking,
                ),
                Cell(longest, note=note if possible else ""),
            ]
        )
    return Table(name, sweep.title, columns, rows, sweep.about)


_ABOUT_HEAT = (
    "Each panel has a row for each model, your models first, and a column for each length. Choose above the models"
    " that are shown. † marks scores that are not comparable."
)


def heat_sections(board: Board) -> list[Section]:
    """Return the scores of categories and of tasks by length, as Figures 6 and 7 of HELMET's paper do.

    Nothing for a benchmark with a single length.
    """
    if len(board.lengths) < 2:
        return []
    name = f"heat-{board.file_name}"
    parts = [
        *([OVERALL] if len(board.columns) > 1 else []),
        *board.columns,
        *board.others,
    ]
    categories = _heat_table(board, f"{name}-categories", "Scores by length", parts)
    # Each task is shown once, and none that the first table has.
    shown = {*board.columns, *board.others}
    tasks = []
    for part, category in board.benchmark.entries.items():
        # The score of a category with one task is the task's.
        names = [
            task.name
            for task in category.tasks
            if task.name not in shown and len(category.tasks) > 1
        ]
        shown |= set(names)
        if figure := _heat_table(board, f"{name}-{part}", board.titles[part], names):
            tasks.append(figure)
    sections = (
        [Section(name, "Scores of models by length", [categories], _ABOUT_HEAT)]
        if categories
        else []
    )
    return (
        [*sections, Section(f"{name}-tasks", "Scores of tasks by length", tasks)]
        if tasks
        else sections
    )


def _heat_table(
    board: Board, name: str, title: str, parts: Sequence[str]
) -> Figure | None:
    rows: list[dict[str, Any]] = []
    models = all_models(board)
    for part in parts:
        scores_at = {
            label(length): board.scores_of(part, length) for length in board.lengths
        }
        for model in models:
            row: dict[str, Any] = {
                "model": short_name(model),
                "part": board.titles[part],
            }
            marked = []
            for length, scores in scores_at.items():
                if score := scores.get(model):
                    row[length] = round(score.interval.mean, 6)
                    if score.caveats:
                        marked.append(length)
            if marked:
                row["marked"] = marked
            if len(row) > 2:
                rows.append(row)
    if not rows:
        return None
    titles = list(dict.fromkeys(row["part"] for row in rows))
    spec = heat_tables(
        titles, [label(length) for length in board.lengths], _unit(board)
    )
    about = f"Score in percent: {', '.join(titles)}."
    return Figure(name, title, about, spec, rows, by_model=True)


def length_sections(board: Board) -> list[Section]:
    """Return curves over length by category, and a table with means and drop; nothing for a single length."""
    name = f"length-{board.file_name}"
    found = [_curves(board, f"{name}-curves"), _table(board, f"{name}-table")]
    blocks: list[Block] = [block for block in found if block]
    sections = [Section(name, "Scores over length", blocks)] if blocks else []
    rows = []
    order = all_models(board)
    traits = splits(board.tasks, board.benchmark) if len(board.lengths) > 1 else []
    for split in sorted(traits, key=lambda split: order.index(split.model)):
        overall = board.score(split.model, OVERALL, split.length)
        mark = (
            {"mark": MARK, "note": caveat_kinds(overall.caveats)}
            if overall and overall.caveats
            else {}
        )
        for part, interval in (
            (f"With {split.trait}", split.with_it),
            (f"Without {split.trait}", split.without),
        ):
            row = {
                "model": short_name(split.model),
                "part": part,
                "length": label(split.length),
            }
            rows.append(
                {
                    **row,
                    **interval_row(interval),
                    **mark,
                    "kind": kind_of(board, split.model),
                }
            )
    if not rows:
        return sections
    parts = list(dict.fromkeys(str(row["part"]) for row in rows))
    about = "Means over the tasks with a trait and over the others; dotted lines are floors."
    spec = curves(parts, [label(length) for length in board.lengths], _unit(board))
    name = f"traits-{board.file_name}"
    figure = Figure(
        f"{name}-curves", " and ".join(parts), about, spec, rows, by_model=True
    )
    return [*sections, Section(name, "Tasks with a trait and without", [figure])]


def depth_sections(board: Board) -> list[Section]:
    """Return heat maps of scores by depth and length, for the user's runs of tasks whose evidence has a place.

    The first section has the mean of all tasks, and the second one each task, as HELMET's Figure 10 (arXiv 2410.02694).
    For a single task the second one would repeat the first one.
    """
    # The results whose answers have a depth, by task, in the order of the models.
    found: dict[str, list[Result]] = {task.name: [] for task in board.benchmark.tasks}
    answered = [
        result
        for result in board.scores.values()
        if result.answers and result.context == "full"
    ]
    order = all_models(board)
    for result in sorted(answered, key=lambda each: order.index(each.model)):
        if any(answer.depth is not None for answer in result.answers):
            found[result.task].append(result)
    tasks = {task: results for task, results in found.items() if results}
    if not tasks:
        return []
    name = f"depth-{board.file_name}"
    about = (
        "The mean score in percent of all tasks whose evidence has a place in the context, by that place and by length."
        " A weaker middle row than first and last row means that a model loses what stands in the middle."
        f" {MARK} marks a mean over fewer tasks than all models together have at that length."
    )
    every = [result for results in tasks.values() for result in results]
    mean = _depth_maps(board, every, f"{name}-maps", "Score by depth and length", about)
    sections = [Section(name, "Scores over depth", [mean])]
    if len(tasks) == 1:
        return sections
    maps = [
        _depth_maps(
            board,
            results,
            f"{name}-{task}",
            board.titles[task],
            "The score in percent by depth and length.",
        )
        for task, results in tasks.items()
    ]
    about = (
        "A map for each task and model. A row that is weak at all lengths means a place that the model reads badly; a"
        " column that is weak at all depths means a length that is too long for it. The tooltips have the number of"
        " instances in a cell and the interval, which is wide for few instances."
    )
    return [
        *sections,
        Section(f"{name}-tasks", "Scores over depth by task", maps, about),
    ]


def _depth_maps(
    board: Board, results: Sequence[Result], name: str, title: str, about: str
) -> Figure:
    groups: dict[tuple[ShownModel, int | None], list[Result]] = defaultdict(list)
    tasks: dict[int | None, set[str]] = defaultdict(set)
    for result in results:
        groups[result.model, result.length].append(result)
        tasks[result.length].add(result.task)
    rows = []
    for (model, length), found in groups.items():
        mark = {"mark": MARK} if len(found) < len(tasks[length]) else {}
        row = {
            "model": short_name(model),
            "length": label(length),
            **mark,
            "kind": kind_of(board, model),
        }
        for depth, interval in by_depth(
            [each for result in found for each in result.answers]
        ).items():
            rows.append(
                {
                    **row,
                    "depth": f"{depth} %",
                    **interval_row(interval),
                    "n": interval.n,
                }
            )
    there = {row["length"] for row in rows}
    lengths = [label(length) for length in board.lengths if label(length) in there]
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    spec = depth_maps(models, [f"{depth} %" for depth in DEPTHS], lengths, _unit(board))
    return Figure(name, title, about, spec, rows, by_model=True)


def _curves(board: Board, name: str) -> Figure | None:
    # A part with a single length has no curve.
    lengths = {
        part: {place.length for place in board.scores if place.part == part}
        for part in board.titles
    }
    parts = [
        part
        for part in (OVERALL, *board.columns, *board.others)
        if len(lengths.get(part, ())) > 1
    ]
    parts = [part for part in parts if part != OVERALL or len(board.columns) > 1]
    rows = [
        plot_row(board, result, part=board.titles[part], length=label(length))
        for model in all_models(board)
        for part in parts
        for length in board.lengths
        if (result := board.score(model, part, length))
    ]
    rows += [
        {
            **plot_row(board, result, part=board.titles[part], length=label(length)),
            **{"model": f"{short_name(model)}, closed book", "kind": "floor"},
        }
        for (model, part, length, context), result in board.scores.items()
        if part in parts and context == "none"
    ]
    if not rows:
        return None
    about = (
        f"Each panel is a category; vertical lines are {LEVEL_TEXT} intervals. Bold lines are your models. Dotted lines are"
        " floors, and models without the context (closed book), where these were run."
        f" {MARK} marks scores that are not comparable."
    )
    spec = curves(
        [board.titles[part] for part in parts],
        [label(length) for length in board.lengths],
        _unit(board),
    )
    return Figure(name, "Score over length", about, spec, rows, by_model=True)


def _table(board: Board, name: str) -> Table | None:
    part = board.main_part(board.main_length)
    scores = {
        model: {
            length: score
            for length in board.lengths
            if length and (score := board.score(model, part, length))
        }
        for model in all_models(board)
    }
    # A published model with one length has nothing to show here.
    found = {
        model: each
        for model, each in scores.items()
        if len(each) > 1 or (each and model in board.own_models)
    }
    lengths = sorted({length for each in found.values() for length in each})
    if len(lengths) < 2:
        return None
    sets = [list(each) for each in found.values()]
    # The lengths that most models have; of several such sets the largest.
    usual = max(sets, key=lambda lengths: (sets.count(lengths), len(lengths)))
    own = board.benchmark.effective_score
    least = (
        f"{share(NOLIMA_SHARE)} of that at the shortest"
        if own is None
        else f"{percent(own)} %, as the publication has it"
    )
    columns = [
        Column("Model", is_number=False),
        *(Column(label(length)) for length in lengths),
        Column("Mean", "The mean over the lengths that the model has."),
        Column(
            "Mean (inc)",
            "The same mean with weights that increase linearly with the length (arXiv 2404.06654).",
        ),
        Column(
            "Mean (dec)",
            "The same mean with weights that decrease linearly with the length (arXiv 2404.06654).",
        ),
        Column("Drop", "The score at the shortest length minus that at the longest."),
        Column(
            "Effective length",
            f"The longest length at which the score is at least {least}. In parentheses are the lengths that are"
            f" possible at {LEVEL_TEXT}.",
        ),
    ]
    rows = []
    for model, each in found.items():
        # The tooltips have the intervals.
        cells = [replace(score_cell(each.get(length)), detail="") for length in lengths]
        others = (
            ""
            if list(each) == usual
            else f"over {', '.join(label(length) for length in each)}"
        )
        is_marked = any(score.caveats for score in each.values())
        lacking = others or ("some scores are not comparable" if is_marked else "")
        values = length_means(
            {length: score.interval.mean for length, score in each.items()}
        )
        means = [number_cell(value, lacking=lacking) for value in values]
        rows.append(
            [model_cell(board, model), *cells, *means, *_changes(board, each, lacking)]
        )
    about = (
        f"{board.titles[part]} in percent, with the change from the shortest to the longest length. {MARK} marks scores"
        " that are not comparable, and means over other lengths than most models have"
        f" ({', '.join(label(length) for length in usual)})."
    )
    return Table(
        name, "Means, drop and effective length", columns, rows, about, search=True
    )


def _changes(board: Board, scores: Mapping[int, Result], lacking: str) -> list[Cell]:
    """Return the cells of the drop and of the effective length, which a single length does not have."""
    if len(scores) < 2:
        return [number_cell(None, note="one length")] * 2
    intervals = {length: score.interval for length, score in scores.items()}
    means = {length: interval.mean for length, interval in intervals.items()}
    loss = drop(intervals)
    effective = effective_length(
        means, board.benchmark.effective_score or share_of_shortest(means)
    )
    # With a score of zero at the shortest length, every length would reach 85 % of it.
    longest = effective if means[min(means)] else None
    possible = possible_lengths(intervals, score=board.benchmark.effective_score)
    ends = [
        label(length) if length else "none" for length in (possible[:1] + possible[-1:])
    ]
    text = label(longest) + (f" ({ends[0]}–{ends[1]})" if len(possible) > 1 else "")
    note = (
        f"possible at {LEVEL_TEXT}: {', '.join(label(each) if each else 'none' for each in possible)}"
        if possible
        else ""
    )
    return [
        number_cell(
            loss.mean,
            note=f"{LEVEL_TEXT} interval {range_text(loss.low, loss.high)}",
            lacking=lacking,
        ),
        number_cell(
            longest,
            lambda _: text,
            "",
            note if longest else f"no length; {note}".rstrip("; "),
            lacking,
        ),
    ]


def _unit(board: Board) -> str:
    return (
        f"length in {board.benchmark.axis.unit}" if board.benchmark.axis else "length"
    )


class PropertySplit(NamedTuple):
    """A model's mean over the tasks with a property, and over the others, at a length."""

    model: ShownModel
    length: int | None
    trait: str
    with_it: Interval
    without: Interval


def by_depth(rows: Iterable[InstanceScore]) -> dict[int, Interval]:
    """Return the mean at each depth in percent, of answers with a score whose evidence has a depth."""
    depths: dict[int, list[InstanceScore]] = defaultdict(list)
    for row in rows:
        if row.depth is not None and row.score is not None:
            depths[nearest_depth(row.depth)].append(row)
    return {depth: interval_of(depths[depth]) for depth in sorted(depths)}


def splits(results: Iterable[Result], benchmark: Benchmark) -> list[PropertySplit]:
    """Average the tasks with each trait apart from those without, such as LV-Eval's sets with confusing facts.

    Models that lack a task at a length are left out there.
    """
    cells: dict[tuple[ShownModel, int | None], dict[str, Result]] = defaultdict(dict)
    for result in results:
        if (
            result.benchmark == benchmark.name
            and result.task
            and result.context == "full"
        ):
            cells[result.model, result.length][result.task] = result
    tasks = [
        task
        for category in benchmark.categories
        if category.averaged
        for task in category.tasks
    ]
    found = []
    for trait in dict.fromkeys(task.trait for task in tasks if task.trait):
        for (model, length), scores in cells.items():
            there = [task for task in tasks if task.exists_at(length)]
            parts = [
                [task.name for task in there if (task.trait == trait) == has]
                for has in (True, False)
            ]
            if all(part and scores.keys() >= set(part) for part in parts):
                with_it, without = (
                    mean_of_results([(scores[name], 1 / len(part)) for name in part])
                    for part in parts
                )
                found.append(
                    PropertySplit(
                        model=model,
                        length=length,
                        trait=trait,
                        with_it=with_it,
                        without=without,
                    )
                )
    return found
