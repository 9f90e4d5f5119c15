"""LongProc's tasks. A level is a number of output tokens.

The templates are in downloaded files, so the baseline models recognise a prompt's task by words in it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from helm_longctx.benchmarks.longproc import data, scoring
from helm_longctx.benchmarks.longproc.scoring import EVALUATORS, PROCEDURE_METRICS, TABLE_METRICS
from helm_longctx.tasks import NO_TEMPLATE, Category, DataRoot, Message, RepositoryFolder, read_benchmark, task_fields
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sampling import shuffle_order
from helm_longctx.tasks.task import Baseline, Example, Settings, Shape, Task

MOST_STEPS = 1000
"""More steps than the longest route has. The limit ends a search in links that form a circle."""

_LINK = re.compile(r"You can travel from (.+?) to (.+?) by (\w+)\.")
_ROUTE = re.compile(r"Now find the route from (.+?) to (.+?) based on")


def find_route(messages: Sequence[Message]) -> str | None:
    """Follow the links from city to city. Returns None if the last turn does not ask for a route."""
    problem = messages[-1]["content"].rpartition("[PROBLEM]")[2]
    question = _ROUTE.search(problem)
    if question is None:
        return None
    links = {source: (target, by) for source, target, by in _LINK.findall(problem)}
    city, target = question.groups()
    steps: list[str] = []
    while city != target and city in links and len(steps) < MOST_STEPS:
        following, by = links[city]
        steps.append(f"From {city}, take a {by} to {following}.")
        city = following
    return "\n".join(["<Route>", *steps, "</Route>"])


def answer_always(words: str, answer: str) -> Baseline:
    """Return a baseline that gives the same answer to every prompt of a task.

    Args:
        words: words that only the prompts of the task have.
        answer: an empty answer in the format of the task.
    """
    # Only the first thousand characters are searched, because a web page with any words can follow.
    return Baseline(lambda messages: answer if words in messages[-1]["content"][:1000] else None, answer)


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the sample of a level, in the shuffled order of the official add-on."""
    # All problems of a level are read at once, because the shuffle needs their number. They are short.
    rows = list(data.problems(task.name, length_label(settings.level), root / data.FOLDER))
    for number in shuffle_order(len(rows), settings.seed)[: task.sample(settings)]:
        problem = rows[number]
        # The evaluator does not read the rest of the item, which is in the prompt.
        record = {"item": {name: problem.item[name] for name in EVALUATORS[task.name].item}}
        name, messages = f"{task.name}-{problem.number}", [{"role": "user", "content": problem.prompt}]
        yield Example(name, {}, [problem.reference], "official", record=record, messages=messages)


def _task(
    name: str, title: str, baseline: Baseline, metrics: tuple[str, ...] = PROCEDURE_METRICS, **further: Any
) -> Task:
    levels = data.TASKS[name].levels

    def is_item(value: Any) -> bool:
        item = scoring.find_item({"item": value})
        return isinstance(item, dict) and all(fits(item.get(field)) for field, fits in EVALUATORS[name].item.items())

    def sources(length: int | None) -> tuple[RepositoryFolder, ...]:
        # Not every task exists at every level.
        return (data.source(name, level),) if length and (level := length_label(length)) in levels else ()

    about = f"LongProc's data point, an object with {', '.join(EVALUATORS[name].item) or 'any fields'}"
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        sizes={data.LEVELS[level]: data.LEVELS[level] for level in levels},
        load=load,
        score=EVALUATORS[name].score,
        headline=metrics[:1],
        metrics=metrics,
        max_tokens={data.LEVELS[level]: data.BUDGETS[level] for level in levels},
        num_samples=data.SAMPLE,
        sources=sources,
        record_shapes={"item": Shape(about, is_item)},
        baseline=baseline,
        **further,
        **task_fields(__package__),
    )


_TRIP = answer_always("create a trip plan based on given constraints", "<Plan>\n</Plan>")
_TASKS = (
    _task(
        "html_to_tsv",
        "HTML to TSV",
        answer_always("extract specific information from an HTML webpage", "```tsv\n```"),
        TABLE_METRICS,
    ),
    _task("path_traversal", "Path Traversal", Baseline(find_route, "<Route>\n</Route>")),
    _task("tom_tracking", "ToM Tracking", answer_always("a story about object placement", "- Step 0")),
    _task("countdown", "Countdown", answer_always("four numbers and a target number", "<Solution>\n</Solution>")),
    _task("travel_planning", "Travel Planning", _TRIP),
)
# This task is not in the mean, because it runs programs that the model writes, which each user has to allow.
_CODE = _task(
    "pseudo_to_code",
    "Pseudocode to Code",
    answer_always("You will be given lines of pseudocode", "```cpp\nint main() {}\n```"),
    check_machine=scoring.check_programs,
)

LONGPROC = read_benchmark(__package__, (Category("", "", _TASKS, variants=(_CODE,)),))
