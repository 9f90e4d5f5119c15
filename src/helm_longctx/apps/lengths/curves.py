"""The pages of scores by length and depth: curves, means, drop, effective length, heat tables, depth and complexity."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
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
from helm_longctx.documents.numbers import (
    DASH,
    MARK,
    format_ends,
    format_percent,
    format_share,
)
from helm_longctx.documents.plots import curves, depth_maps, heat_tables
from helm_longctx.results.boards import OVERALL, Board, label, mean_of_results
from helm_longctx.results.cells import (
    caveat_kinds,
    interval_row,
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
from helm_longctx.runs.scores import Score
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.benchmark import Benchmark, Sweep
from helm_longctx.tasks.metric_names import DEPTHS, nearest_depth
from helm_longctx.tasks.task import Task

_ABOUT_SWEEPS = (
    "The tasks of a panel differ in one property alone, so the fall of a curve is what"
    " this property costs. Bold lines are your models, and dotted lines are floors."
    f" {MARK} marks scores that are not comparable."
)

_Levels = Mapping[str, Result]
"""A model's score at each level that it has, the easiest first."""


@for_each_length
def sweep_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which a model has several levels of a sweep."""
    swept: list[tuple[Sweep, dict[ShownModel, _Levels]]] = []
    for sweep in board.benchmark.sweeps:
        models: dict[ShownModel, _Levels] = {}
        results = {}
        for level, task in sweep.tasks.items():
            results[level] = board.scores_of(task, length)
        for model in board.models_by_rank:
            at_levels = {}
            for level, scores in results.items():
                if model in scores:
                    at_levels[level] = scores[model]
            if len(at_levels) >= 2:
                models[model] = at_levels
        if models:
            swept.append((sweep, models))
    if not swept:
        return None
    name = f"complexity-{board.file_name}-{label(length)}".rstrip("-")
    about = " ".join(f"{sweep.title}: {sweep.about}" for sweep, _ in swept)
    rows = []
    order: dict[str, None] = {}
    tables = []
    for sweep, models in swept:
        order |= dict.fromkeys(sweep.tasks)
        for levels in models.values():
            for level, score in levels.items():
                rows.append(plot_row(board, score, part=sweep.title, level=level))
        table = _sweep_table(board, sweep, models, f"{name}-{sweep.title.lower()}")
        tables.append(table)
    titles = [sweep.title for sweep, _ in swept]
    spec = curves(titles, list(order), "level", over="level")
    figure = Figure(
        f"{name}-curves", "Score by complexity", about, spec, rows, by_model=True
    )
    title = f"Scores by complexity {label(length)}".strip()
    return Section(name, title, [figure, *tables], _ABOUT_SWEEPS, choice=label(length))


def _sweep_table(
    board: Board,
    sweep: Sweep,
    models: Mapping[ShownModel, _Levels],
    name: str,
) -> Table:
    there = []
    for level in sweep.tasks:
        if any(level in levels for levels in models.values()):
            there.append(level)
    columns = [
        Column("Model", is_number=False),
        *(Column(level, board.titles[sweep.tasks[level]]) for level in there),
        Column(
            "Drop",
            "The score at the easiest level minus that at the hardest, of those that"
            " the model has.",
        ),
        Column(
            "Effective level",
            f"The hardest level at which the score is at least {format_share(NOLIMA_SHARE)} of"
            " that at the easiest.",
            is_number=False,
        ),
    ]
    rows = []
    for model, levels in models.items():
        # Levels need not be numbers, so their positions stand for them.
        by_index = {}
        for level, score in levels.items():
            by_index[there.index(level)] = score.interval
        means = {index: interval.mean for index, interval in by_index.items()}
        loss = drop(by_index)
        if means[min(means)]:
            effective = effective_length(means, share_of_shortest(means))
        else:
            effective = None
        possible_levels = []
        for index in possible_lengths(by_index):
            if index is not None:
                possible_levels.append(there[index])
        possible = ", ".join(possible_levels)
        caveats = caveat_kinds(
            caveat for score in levels.values() for caveat in score.caveats
        )
        longest = DASH if effective is None else there[effective]
        note = f"possible at {LEVEL_TEXT}: {possible}"
        ends = f"{LEVEL_TEXT} interval {format_ends(loss)}"
        row = [
            model_cell(board, model),
            *(score_cell(levels.get(level)) for level in there),
            number_cell(loss.mean, note=ends, caveats=caveats),
            Cell(longest, note=note if possible else ""),
        ]
        rows.append(row)
    return Table(name, sweep.title, columns, rows, sweep.about)


_ABOUT_HEAT = (
    "Each panel has a row for each model, your models first, and a column for each"
    " length. Choose above the models that are shown. † marks scores that are not"
    " comparable."
)


def heat_sections(board: Board) -> list[Section]:
    """Return the scores of categories and of tasks by length, as Figures 6 and 7 of HELMET's paper do.

    Nothing for a benchmark with a single length.
    """
    if len(board.lengths) < 2:
        return []
    name = f"heat-{board.file_name}"
    parts = [*board.columns, *board.others]
    if len(board.columns) > 1:
        parts.insert(0, OVERALL)
    categories = _heat_table(board, f"{name}-categories", "Scores by length", parts)
    # Each task is shown once, and none that the first table has.
    shown = {*board.columns, *board.others}
    tasks = []
    for part, category in board.benchmark.entries.items():
        # The score of a category with one task is the task's.
        names = []
        for task in category.tasks:
            if task.name not in shown and len(category.tasks) > 1:
                names.append(task.name)
        shown |= set(names)
        if figure := _heat_table(board, f"{name}-{part}", board.titles[part], names):
            tasks.append(figure)
    sections = []
    if categories:
        title = "Scores of models by length"
        sections.append(Section(name, title, [categories], _ABOUT_HEAT))
    if tasks:
        title = "Scores of tasks by length"
        sections.append(Section(f"{name}-tasks", title, tasks))
    return sections


def _heat_table(
    board: Board,
    name: str,
    title: str,
    parts: Sequence[str],
) -> Figure | None:
    rows: list[dict[str, Any]] = []
    models = board.models_by_rank
    for part in parts:
        scores_at = {}
        for length in board.lengths:
            scores_at[label(length)] = board.scores_of(part, length)
        for model in models:
            row: dict[str, Any] = {
                "model": short_name(model),
                "part": board.titles[part],
            }
            marked = []
            for column, scores in scores_at.items():
                if score := scores.get(model):
                    row[column] = round(score.interval.mean, 6)
                    if score.caveats:
                        marked.append(column)
            if marked:
                row["marked"] = marked
            if len(row) > 2:
                rows.append(row)
    if not rows:
        return None
    titles = list(dict.fromkeys([row["part"] for row in rows]))
    spec = heat_tables(
        titles, [label(length) for length in board.lengths], _unit(board)
    )
    about = f"Score in percent: {', '.join(titles)}."
    return Figure(name, title, about, spec, rows, by_model=True)


def length_sections(board: Board) -> list[Section]:
    """Return curves over length by category, and a table with means and drop, or nothing for a single length."""
    name = f"length-{board.file_name}"
    blocks: list[Block] = []
    if figure := _curves(board, f"{name}-curves"):
        blocks.append(figure)
    if table := _table(board, f"{name}-table"):
        blocks.append(table)
    sections = [Section(name, "Scores over length", blocks)] if blocks else []
    rows = []
    order = board.models_by_rank
    if len(board.lengths) > 1:
        traits = splits(board.tasks, board.benchmark)
    else:
        traits = []
    for split in sorted(traits, key=lambda split: order.index(split.model)):
        overall = board.score(split.model, OVERALL, split.length)
        for part, interval in (
            (f"With {split.trait}", split.with_it),
            (f"Without {split.trait}", split.without),
        ):
            row: dict[str, Any] = {
                "model": short_name(split.model),
                "part": part,
                "length": label(split.length),
            }
            row |= interval_row(interval)
            if overall and overall.caveats:
                row |= {"mark": MARK, "note": caveat_kinds(overall.caveats)}
            row["kind"] = board.kinds[split.model]
            rows.append(row)
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
    with_depth: dict[str, list[Result]] = {}
    for task in board.benchmark.tasks:
        with_depth[task.name] = []
    answered = []
    for result in board.scores.values():
        if result.answers and result.context == "full":
            answered.append(result)
    order = board.models_by_rank
    for result in sorted(answered, key=lambda result: order.index(result.model)):
        if any(answer.depth is not None for answer in result.answers):
            with_depth[result.task].append(result)
    tasks = {task: results for task, results in with_depth.items() if results}
    if not tasks:
        return []
    name = f"depth-{board.file_name}"
    about = (
        "The mean score in percent of all tasks whose evidence has a place in the"
        " context, by that place and by length. A weaker middle row than first and"
        f" last row means that a model loses what stands in the middle. {MARK} marks a"
        " mean over fewer tasks than all models together have at that length."
    )
    every = []
    for results in tasks.values():
        every.extend(results)
    mean = _depth_maps(board, every, f"{name}-maps", "Score by depth and length", about)
    sections = [Section(name, "Scores over depth", [mean])]
    if len(tasks) == 1:
        return sections
    about = "The score in percent by depth and length."
    maps = []
    for task_name, results in tasks.items():
        title = board.titles[task_name]
        maps.append(_depth_maps(board, results, f"{name}-{task_name}", title, about))
    about = (
        "A map for each task and model. A row that is weak at all lengths means a place"
        " that the model reads badly; a column that is weak at all depths means a"
        " length that is too long for it. The tooltips have the number of instances in"
        " a cell and the interval, which is wide for few instances."
    )
    title = "Scores over depth by task"
    return [*sections, Section(f"{name}-tasks", title, maps, about)]


def _depth_maps(
    board: Board,
    results: Sequence[Result],
    name: str,
    title: str,
    about: str,
) -> Figure:
    groups: dict[tuple[ShownModel, int | None], list[Result]] = defaultdict(list)
    tasks: dict[int | None, set[str]] = defaultdict(set)
    for result in results:
        groups[result.model, result.length].append(result)
        tasks[result.length].add(result.task)
    rows = []
    for (model, length), group in groups.items():
        row: dict[str, Any] = {"model": short_name(model), "length": label(length)}
        if len(group) < len(tasks[length]):
            row["mark"] = MARK
        row["kind"] = board.kinds[model]
        answers = chain.from_iterable(result.answers for result in group)
        for depth, interval in by_depth(answers).items():
            cell = {"depth": f"{depth} %", **interval_row(interval), "n": interval.n}
            rows.append({**row, **cell})
    there = {row["length"] for row in rows}
    lengths = []
    for length in board.lengths:
        if label(length) in there:
            lengths.append(label(length))
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    shown = {row["depth"] for row in rows}
    depths = []
    for depth in DEPTHS:
        if f"{depth} %" in shown:
            depths.append(f"{depth} %")
    spec = depth_maps(models, depths, lengths, _unit(board))
    return Figure(name, title, about, spec, rows, by_model=True)


def _curves(board: Board, name: str) -> Figure | None:
    # A part with a single length has no curve.
    lengths = {}
    for part in board.titles:
        lengths[part] = {key.length for key in board.scores if key.part == part}
    parts = []
    for part in (OVERALL, *board.columns, *board.others):
        if len(lengths.get(part, ())) > 1:
            parts.append(part)
    parts = [part for part in parts if part != OVERALL or len(board.columns) > 1]

    def make_row(result: Result) -> dict[str, Any]:
        title = board.titles[result.part]
        return plot_row(board, result, part=title, length=label(result.length))

    results = []
    for part in parts:
        for length in board.lengths:
            results.append(board.scores_of(part, length))
    rows = []
    for model in board.models_by_rank:
        for by_model in results:
            if result := by_model.get(model):
                rows.append(make_row(result))
    for key, result in board.scores.items():
        if key.part in parts and key.context == "none":
            row = make_row(result)
            row["model"] = f"{short_name(key.model)}, closed book"
            row["kind"] = "floor"
            rows.append(row)
    if not rows:
        return None
    about = (
        f"Each panel is a category; vertical lines are {LEVEL_TEXT} intervals. Bold"
        " lines are your models. Dotted lines are floors, and models without the"
        f" context (closed book), where these were run. {MARK} marks scores that are"
        " not comparable."
    )
    spec = curves(
        [board.titles[part] for part in parts],
        [label(length) for length in board.lengths],
        _unit(board),
    )
    return Figure(name, "Score over length", about, spec, rows, by_model=True)


def _table(board: Board, name: str) -> Table | None:
    part = board.main_part(board.main_length)
    shown = {}
    for model in board.models_by_rank:
        by_length = {}
        for length in board.lengths:
            score = board.score(model, part, length)
            if length and score:
                by_length[length] = score
        # A published model with one length has nothing to show here.
        if len(by_length) > 1 or (by_length and model in board.own_models):
            shown[model] = by_length
    lengths = sorted({length for by_length in shown.values() for length in by_length})
    if len(lengths) < 2:
        return None
    sets = [list(by_length) for by_length in shown.values()]
    # The lengths that most models have; of several such sets the largest.
    usual = max(sets, key=lambda lengths: (sets.count(lengths), len(lengths)))
    own = board.benchmark.effective_score
    if own is None:
        least = f"{format_share(NOLIMA_SHARE)} of that at the shortest"
    else:
        least = f"{format_percent(own)} %, as the publication has it"
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
            f"The longest length at which the score is at least {least}. In parentheses"
            f" are the lengths that are possible at {LEVEL_TEXT}.",
        ),
    ]
    rows = []
    for model, by_length in shown.items():
        # The tooltips have the intervals.
        row = [model_cell(board, model)]
        for length in lengths:
            row.append(replace(score_cell(by_length.get(length)), detail=""))
        caveats = ""
        if list(by_length) != usual:
            caveats = f"over {', '.join(label(length) for length in by_length)}"
        elif any(score.caveats for score in by_length.values()):
            caveats = "some scores are not comparable"
        means = {length: score.interval.mean for length, score in by_length.items()}
        row += [number_cell(mean, caveats=caveats) for mean in length_means(means)]
        row += _changes(board, by_length, caveats)
        rows.append(row)
    about = (
        f"{board.titles[part]} in percent, with the change from the shortest to the"
        f" longest length. {MARK} marks scores that are not comparable, and means over"
        " other lengths than most models have"
        f" ({', '.join(label(length) for length in usual)})."
    )
    return Table(
        name, "Means, drop and effective length", columns, rows, about, search=True
    )


def _changes(board: Board, scores: Mapping[int, Result], caveats: str) -> list[Cell]:
    """Return the cells of the drop and of the effective length. A single length has neither."""
    if len(scores) < 2:
        return [number_cell(None, note="one length")] * 2
    intervals = {}
    for length, score in scores.items():
        intervals[length] = score.interval
    means = {}
    for length, interval in intervals.items():
        means[length] = interval.mean
    loss = drop(intervals)
    effective = effective_length(
        means, board.benchmark.effective_score or share_of_shortest(means)
    )
    # With a score of zero at the shortest length, every length would reach 85 % of it.
    longest = effective if means[min(means)] else None
    possible = possible_lengths(intervals, score=board.benchmark.effective_score)
    labels = [label(length) if length else "none" for length in possible]
    text = label(longest)
    if len(labels) > 1:
        text += f" ({labels[0]}–{labels[-1]})"
    notes = [] if longest else ["no length"]
    if labels:
        notes.append(f"possible at {LEVEL_TEXT}: {', '.join(labels)}")
    ends = f"{LEVEL_TEXT} interval {format_ends(loss)}"
    return [
        number_cell(loss.mean, note=ends, caveats=caveats),
        number_cell(longest, lambda _: text, "", "; ".join(notes), caveats),
    ]


def _unit(board: Board) -> str:
    if board.benchmark.axis:
        return f"length in {board.benchmark.axis.unit}"
    return "length"


class PropertySplit(NamedTuple):
    """A model's mean over the tasks with a property, and over the others, at a length."""

    model: ShownModel
    length: int | None
    trait: str
    with_it: Interval
    without: Interval


def by_depth(rows: Iterable[Score]) -> dict[int, Interval]:
    """Return the mean at each depth in percent, of answers with a score whose evidence has a depth."""
    depths: dict[int, list[Score]] = defaultdict(list)
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
    tasks: list[Task] = []
    for category in benchmark.categories:
        if category.averaged:
            tasks += category.tasks
    traits = []
    for trait in dict.fromkeys(task.trait for task in tasks if task.trait):
        for (model, length), scores in cells.items():
            there = [task for task in tasks if task.exists_at(length)]
            having = []
            for task in there:
                if task.trait == trait:
                    having.append(task.name)
            others = []
            for task in there:
                if task.trait != trait:
                    others.append(task.name)
            if having and others and scores.keys() >= {*having, *others}:
                split = PropertySplit(
                    model=model,
                    length=length,
                    trait=trait,
                    with_it=_average(scores, having),
                    without=_average(scores, others),
                )
                traits.append(split)
    return traits


def _average(scores: Mapping[str, Result], tasks: Sequence[str]) -> Interval:
    return mean_of_results([(scores[task], 1 / len(tasks)) for task in tasks])
