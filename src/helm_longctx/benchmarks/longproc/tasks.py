"""LongProc's tasks. A level is a number of output tokens."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from helm_longctx.benchmarks.longproc.baselines import ROUTE, answer_always
from helm_longctx.benchmarks.longproc.data import (
    BUDGETS,
    FOLDER,
    LEVELS,
    SAMPLE,
    TASKS,
    problems,
    source,
)
from helm_longctx.benchmarks.longproc.programs import check_programs
from helm_longctx.benchmarks.longproc.scoring import (
    ITEMS,
    PROCEDURE_METRICS,
    SCORERS,
    TABLE_METRICS,
    find_item,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sampling import shuffle_order
from helm_longctx.tasks.task import Baseline, Example, Settings, Shape, Task
from helm_longctx.tasks.template import NO_TEMPLATE


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the sample of a level, in the shuffled order of the official add-on.

    Raises:
        InputError: a file is malformed.
    """
    # All problems of a level are read at once, because the shuffle needs their number. They are short.
    rows = list(problems(task.name, length_label(settings.level), root / FOLDER))
    for number in shuffle_order(len(rows), settings.seed)[: task.sample(settings)]:
        problem = rows[number]
        yield Example(
            id=f"{task.name}-{problem.number}",
            fields={},
            references=[problem.reference],
            source="official",
            # The evaluator does not read the rest of the item, which is in the prompt.
            record={"item": {name: problem.item[name] for name in ITEMS[task.name]}},
            messages=[{"role": "user", "content": problem.prompt}],
        )


def _sources(name: str, length: int | None) -> tuple[Any, ...]:
    level = length_label(length) if length else ""
    # Not every task exists at every level.
    return (source(name, level),) if level in TASKS[name].levels else ()


def _is_item(name: str, value: Any) -> bool:
    """Return whether a value is a data point with the fields that the task's evaluator reads."""
    item = find_item({"item": value})
    return isinstance(item, dict) and all(fits(item.get(field)) for field, fits in ITEMS[name].items())


def _task(name: str, title: str, metrics: tuple[str, ...], baseline: Baseline, **further: Any) -> Task:
    about = f"LongProc's data point, an object with {', '.join(ITEMS[name]) or 'any fields'}"
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        sizes={LEVELS[level]: LEVELS[level] for level in TASKS[name].levels},
        unit="output tokens",
        load=load,
        score=SCORERS[name],
        headline=metrics[:1],
        metrics=metrics,
        max_tokens={LEVELS[level]: BUDGETS[level] for level in TASKS[name].levels},
        num_samples=SAMPLE,
        sources=partial(_sources, name),
        chat=True,
        arguments=("seed",),
        cut="nothing",
        record_shapes={"item": Shape(about, partial(_is_item, name))},
        baseline=baseline,
        **further,
    )


_TASKS = (
    _task(
        "html_to_tsv",
        "HTML to TSV",
        TABLE_METRICS,
        answer_always("extract specific information from an HTML webpage", "```tsv\n```"),
    ),
    _task("path_traversal", "Path Traversal", PROCEDURE_METRICS, ROUTE),
    _task(
        "tom_tracking",
        "ToM Tracking",
        PROCEDURE_METRICS,
        answer_always("a story about object placement", "- Step 0"),
    ),
    _task(
        "countdown",
        "Countdown",
        PROCEDURE_METRICS,
        answer_always("four numbers and a target number", "<Solution>\n</Solution>"),
    ),
    _task(
        "travel_planning",
        "Travel Planning",
        PROCEDURE_METRICS,
        answer_always("create a trip plan based on given constraints", "<Plan>\n</Plan>"),
    ),
)
# This task is not in the mean, because it runs programs that the model writes, which each user has to allow.
_CODE = _task(
    "pseudo_to_code",
    "Pseudocode to Code",
    PROCEDURE_METRICS,
    answer_always("You will be given lines of pseudocode", "```cpp\nint main() {}\n```"),
    check_machine=check_programs,
)

LONGPROC = read_benchmark(__package__, (Category("", "", _TASKS, variants=(_CODE,)),))
