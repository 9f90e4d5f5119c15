"""LongProc's tasks and evaluators. A level is a number of output tokens.

The evaluators give the official results for any output that the official code reads. Source: princeton-pli/LongProc at
78e873a, longproc/longproc_data.py (`eval_*`), longproc/html_to_tsv_evaluator.py and longproc/tom_tracking_evaluator.py.

A record has `prediction` and `item`: the official data point or the `item` in it. The evaluators read its
`reference_output`. For countdown also `nums` and `target`, and for travel planning `ground_truth_cities` and
`ground_truth_durations`. For code they read only `testcases`. The templates are in downloaded files, so the baseline
models recognise a prompt's task by words in it.
"""

import csv
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from helm_longctx.benchmarks.longproc import countdown, data, prompts, travel
from helm_longctx.tasks import (
    NO_TEMPLATE,
    Baseline,
    Category,
    DataRoot,
    Example,
    InputError,
    Message,
    MetricValues,
    RepositoryFolder,
    ScorerInput,
    Settings,
    Shape,
    Task,
    are_all,
    is_text,
    is_whole,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sampling import shuffle_order
from helm_longctx.tasks.sandbox import PROGRAM, check_sandbox, run
from helm_longctx.tasks.task import Scorer
from helm_longctx.tasks.words import english_words

_INCLUDES = """
    cstdio iostream vector algorithm numeric cmath cstring set map queue stack list fstream climits cassert iomanip
    sstream bitset
"""
HEADER = (
    "".join(f"#include <{name}>\n" for name in _INCLUDES.split())
    + "using namespace std;\n"
)
"""The text before the answer's code, as the prompt says."""

_MOST_TESTS = 10
_SECONDS = 3
_COMPILE_SECONDS = 60
_COMPILE_PROCESSES = 256
"""Limits on the compiler's time and processes; the official code has none. The compiler starts further processes, and
older kernels count all processes of the user.
"""

_COMPILE = "g++ -std=c++11 -O -o /tmp/compiled -x c++ - && cat /tmp/compiled"


def check_programs() -> None:
    """Check that answers can be compiled and run on this machine."""
    check_sandbox(
        "longproc:task=pseudo_to_code runs the C++ programs that the model writes,"
    )
    _try_compiler()


@cache
def _try_compiler() -> None:
    if compile_program("int main() {}") is None:
        raise InputError(
            "longproc:task=pseudo_to_code needs g++, installed in /usr, to compile the"
            " model's programs"
        )


def passes(code: str, tests: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Return whether code compiles and gives the expected output, byte for byte, for the first `_MOST_TESTS` inputs."""
    check_programs()
    program = compile_program(HEADER + code)
    if program is None:
        return False
    for lines, expected in tests[:_MOST_TESTS]:
        outcome = run(
            [PROGRAM],
            stdin=_join(lines),
            program=program,
            seconds=_SECONDS,
        )
        # The exit status does not count: a program may crash after the right output (spoc_evaluator.py:63).
        if outcome.code is None or outcome.output != _join(expected):
            return False
        try:
            outcome.errors.decode()
        except UnicodeDecodeError:
            return False
    return True


def compile_program(code: str) -> bytes | None:
    """Return the executable, or None if the code does not compile within the limits."""
    # An answer can contain lone surrogates. Strict UTF-8 cannot encode them. The compiler refuses them.
    text = code.encode("utf-8", "surrogatepass")
    outcome = run(
        ["sh", "-c", _COMPILE],
        stdin=text,
        seconds=_COMPILE_SECONDS,
        processes=_COMPILE_PROCESSES,
    )
    return outcome.output if outcome.code == 0 else None


def _join(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


_TABLE_METRICS = ("f1", "precision", "recall", "extraction_rate")
_PROCEDURE_METRICS = ("accuracy", "partial_accuracy", "extraction_rate")

_PUNCTUATION_AND_APOSTROPHE = str.maketrans("", "", string.punctuation + "\u2019")
_BELIEF_WORDS = re.compile(
    r"\b(a|an|the|on|in|at|step|thinks|think|believes|believe|is|are|of|location|know|knows|belief)\b"
)


def score_html_to_tsv(record: ScorerInput) -> MetricValues:
    """Compute F1, precision and recall of a table's rows, ignoring order, case, spaces, punctuation and articles.

    All are 0 if the output or the reference is not a table, or if their numbers of columns differ.
    """
    output = record["prediction"]
    # Greedy as in longproc_data.py:78: from the first opening to the last fence.
    fenced = re.search(r"```tsv([\s\S]*)```", output)
    # Without a closing fence the text after the opening counts, and without any fence the whole output
    # (longproc_data.py:82 to 85).
    text = output
    if fenced:
        text = fenced[1]
    elif "```tsv" in output:
        text = output.split("```tsv")[1]
    given = _read_table(text)
    expected = _read_table(_find_item(record)["reference_output"])
    if not given or not expected or len(given[0]) != len(expected[0]):
        return dict.fromkeys(_TABLE_METRICS, 0.0)
    # Each row of the output is looked up by itself, so a row that is repeated counts each time.
    precision = sum(row in expected for row in given) / len(given)
    recall = sum(row in given for row in expected) / len(expected)
    if recall + precision:
        f1 = 2 * recall * precision / (recall + precision)
    else:
        f1 = 0.0
    return dict(zip(_TABLE_METRICS, (f1, precision, recall, 1.0), strict=True))


_NULL = "\ue000"
"""What stands for a null character in tables: a character that no text has."""


def _read_table(text: str) -> list[tuple[str, ...]]:
    """Return the normalized rows of tab-separated text without its header, or an empty list if it is not a table.

    If a row and the header have different numbers of cells, the cells of the row become `N/A`; the last row is left
    out instead.
    """
    # The reader of Python 3.10 refuses null characters, which pandas reads like any other.
    lines = text.strip().replace("\0", _NULL).split("\n")
    try:
        header, *rows = csv.reader(lines, delimiter="\t")
    except csv.Error:
        return []
    # The official code uses pandas. It fails for a column that exists twice when it normalizes the cells.
    if len(set(header)) < len(header):
        return []
    # Such a last row is often an end mark or a remark of the model (html_to_tsv_evaluator.py:39).
    if rows and len(rows[-1]) != len(header):
        rows.pop()
    filled = (row if len(row) == len(header) else ["N/A"] * len(header) for row in rows)
    # The official code first reduces the spaces and then removes all of them (html_to_tsv_evaluator.py:27).
    values = []
    for row in filled:
        values.append(tuple("".join(english_words(cell)) for cell in row))
    return values


def score_pseudo_to_code(record: ScorerInput) -> MetricValues:
    """Check whether the C++ of the output compiles and passes the tests. It is run, in a sandbox."""
    code = re.search(
        r"```cpp([\s\S]*)```", record["prediction"].replace("```c++", "```cpp")
    )
    if code is None:
        return _procedure(0.0, 0.0, extracted=False)
    is_right = float(passes(code[1], _find_item(record)["testcases"]))
    return _procedure(is_right, is_right)


def score_path_traversal(record: ScorerInput) -> MetricValues:
    """Check whether the route is the expected one, and measure the share up to the end of the first wrong line."""
    route = extract_tag(record["prediction"], "Route")
    if route is None:
        return _procedure(0.0, 0.0, extracted=False)
    expected = _find_item(record)["reference_output"].strip()
    if route == expected:
        return _procedure(1.0, 1.0)
    lines = route.split("\n")
    expected_lines = expected.split("\n")
    compared = min(len(lines), len(expected_lines))
    # The wrong line itself counts, because the official loop adds one after it ends (longproc_data.py:169).
    return _procedure(
        0.0,
        min(_count_agreeing(lines, expected_lines) + 1, compared) / len(expected_lines),
    )


def score_tom_tracking(record: ScorerInput) -> MetricValues:
    """Check whether all beliefs are the expected ones, and measure the share before the first wrong one.

    The result is empty if no beliefs are expected but some are given, where the official code divides by zero.
    """
    beliefs = _read_beliefs(record["prediction"])
    expected = _read_beliefs(_find_item(record)["reference_output"])
    if beliefs == expected:
        return _procedure(1.0, 1.0)
    if expected:
        return _procedure(0.0, _count_agreeing(beliefs, expected) / len(expected))
    return {}


def _read_beliefs(text: str) -> list[str]:
    """Return the normalized lines that begin with a hyphen. Indented lines are dropped, except the first."""
    # `strip` acts on the joined text, so only the first line loses its indentation (longproc_data.py:210,
    # tom_tracking_evaluator.py:30). The other indented lines then do not begin with a hyphen.
    hyphenated = []
    for line in text.splitlines():
        if line.strip().startswith("-"):
            hyphenated.append(line)
    lines = "\n".join(hyphenated).strip().split("\n")
    beliefs = []
    for line in lines:
        if line.startswith("-"):
            words = (
                line.removeprefix("-").lower().translate(_PUNCTUATION_AND_APOSTROPHE)
            )
            beliefs.append(" ".join(_BELIEF_WORDS.sub(" ", words).split()))
    return [belief for belief in beliefs if belief]


def score_countdown(record: ScorerInput) -> MetricValues:
    """Check whether the equations reach the target; otherwise measure how far the search follows the expected one."""
    item = _find_item(record)
    output = record["prediction"]
    solution = extract_tag(output, "Solution")
    extracted = solution is not None
    if solution is not None and countdown.is_solution(
        item["nums"], item["target"], solution
    ):
        return _procedure(1.0, 1.0)
    if prompts.COUNTDOWN_SEARCH not in output:
        return _procedure(0.0, 0.0, extracted)
    # The search needs no closing tag: an answer that ran out of tokens is scored as far as it goes
    # (longproc_data.py:264).
    search = output.split(prompts.COUNTDOWN_SEARCH)[-1]
    expected = (
        item["reference_output"]
        .split(prompts.COUNTDOWN_SEARCH)[-1]
        .split(prompts.COUNTDOWN_FOUND)[0]
    )
    return _procedure(0.0, countdown.search_accuracy(search, expected), extracted)


def _score_travel_planning(record: ScorerInput) -> MetricValues:
    """Check whether the plan has the expected cities and days; otherwise measure how far it follows the procedure."""
    item = _find_item(record)
    output = record["prediction"]
    plan = extract_tag(output, "Plan")
    if plan is not None and travel.is_plan(
        item["ground_truth_cities"], item["ground_truth_durations"], plan
    ):
        return _procedure(1.0, 1.0)
    return _procedure(
        0.0,
        travel.procedure_accuracy(output, item["reference_output"]),
        plan is not None,
    )


class _Evaluator(NamedTuple):
    """A task's scorer, and the fields of an item that it reads, with a check of their values."""

    compute: Scorer
    item: Mapping[str, Callable[[Any], bool]]

    def score(self, record: ScorerInput) -> MetricValues:
        """Score a record; without an item it has no scores."""
        if record.get("item") is None:
            return {}
        return self.compute(record)


_REFERENCE: Mapping[str, Callable[[Any], bool]] = {"reference_output": is_text}
_PLAN: Mapping[str, Callable[[Any], bool]] = {
    "ground_truth_cities": is_text,
    "ground_truth_durations": lambda value: (
        isinstance(value, str)
        and all(re.fullmatch(r"[0-9]{1,6}", days) for days in value.split("**") if days)
    ),
}
_TESTS = {
    "testcases": lambda value: (
        are_all(are_all(are_all(is_text)))(value)
        and all(len(test) == 2 for test in value)
    )
}

EVALUATORS: Mapping[str, _Evaluator] = {
    "html_to_tsv": _Evaluator(score_html_to_tsv, _REFERENCE),
    "pseudo_to_code": _Evaluator(score_pseudo_to_code, _TESTS),
    "path_traversal": _Evaluator(score_path_traversal, _REFERENCE),
    "tom_tracking": _Evaluator(score_tom_tracking, _REFERENCE),
    "countdown": _Evaluator(
        score_countdown,
        {
            **_REFERENCE,
            "nums": are_all(is_whole),
            "target": is_whole,
        },
    ),
    "travel_planning": _Evaluator(_score_travel_planning, {**_REFERENCE, **_PLAN}),
}


def extract_tag(text: str, tag: str) -> str | None:
    """Return the text between the first opening and the first closing tag, or None if one of them is missing."""
    start = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>")
    # As in the official code, a closing tag before the opening one gives an empty text (longproc_data.py:22).
    if -1 in (start, end):
        return None
    return text[start + len(tag) + 2 : end].strip()


def _find_item(record: ScorerInput) -> Any:
    """Return a record's `item`, or the `item` in it if it is a whole data point."""
    item = record["item"]
    if isinstance(item, dict):
        return item.get("item", item)
    return item


def _procedure(accuracy: float, partial: float, extracted: bool = True) -> MetricValues:
    return dict(
        zip(_PROCEDURE_METRICS, (accuracy, partial, float(extracted)), strict=True)
    )


def _count_agreeing(lines: Sequence[str], expected: Sequence[str]) -> int:
    pairs = zip(lines, expected, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


_MOST_STEPS = 1000
"""More steps than the longest route has. The limit ends a search in links that form a circle."""

_LINK = re.compile(r"You can travel from (.+?) to (.+?) by (\w+)\.")
_ROUTE = re.compile(r"Now find the route from (.+?) to (.+?) based on")


def _find_route(messages: Sequence[Message]) -> str | None:
    """Follow the links from city to city. Returns None if the last turn does not ask for a route."""
    problem = messages[-1]["content"].rpartition("[PROBLEM]")[2]
    question = _ROUTE.search(problem)
    if question is None:
        return None
    links = {source: (target, by) for source, target, by in _LINK.findall(problem)}
    city, target = question.groups()
    steps: list[str] = []
    while city != target and city in links and len(steps) < _MOST_STEPS:
        following, by = links[city]
        steps.append(f"From {city}, take a {by} to {following}.")
        city = following
    return "\n".join(["<Route>", *steps, "</Route>"])


def _answer_always(words: str, answer: str) -> Baseline:
    """Return a baseline that gives the same answer to every prompt of a task.

    Args:
        words: words that only the prompts of the task have.
        answer: an empty answer in the format of the task.
    """
    # Only the first thousand characters are searched, because a web page with any words can follow.
    return Baseline(
        lambda messages: answer if words in messages[-1]["content"][:1000] else None,
        answer,
    )


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the sample of a level, in the shuffled order of the official add-on."""
    # All problems of a level are read at once, because the shuffle needs their number. They are short.
    rows = list(
        data.problems(task.name, length_label(settings.level), root / data.FOLDER)
    )
    for number in shuffle_order(len(rows), settings.seed)[: task.sample(settings)]:
        problem = rows[number]
        # The evaluator does not read the rest of the item. It is in the prompt.
        record = {
            "item": {name: problem.item[name] for name in EVALUATORS[task.name].item}
        }
        name = f"{task.name}-{problem.number}"
        messages = [{"role": "user", "content": problem.prompt}]
        yield Example(
            id=name,
            fields={},
            references=[problem.reference],
            source="official",
            record=record,
            messages=messages,
        )


def _task(
    name: str,
    title: str,
    baseline: Baseline,
    metrics: tuple[str, ...] = _PROCEDURE_METRICS,
    **further: Any,
) -> Task:
    levels = data.TASKS[name].levels

    def is_item(value: Any) -> bool:
        item = _find_item({"item": value})
        if not isinstance(item, dict):
            return False
        fields = EVALUATORS[name].item.items()
        return all(fits(item.get(field)) for field, fits in fields)

    def sources(length: int | None) -> tuple[RepositoryFolder, ...]:
        level = length_label(length) if length else ""
        # Not every task exists at every level.
        if level in levels:
            return (data.source(name, level),)
        return ()

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


_TRIP = _answer_always(
    "create a trip plan based on given constraints", "<Plan>\n</Plan>"
)
_TASKS = (
    _task(
        "html_to_tsv",
        "HTML to TSV",
        _answer_always(
            "extract specific information from an HTML webpage", "```tsv\n```"
        ),
        _TABLE_METRICS,
    ),
    _task(
        "path_traversal", "Path Traversal", Baseline(_find_route, "<Route>\n</Route>")
    ),
    _task(
        "tom_tracking",
        "ToM Tracking",
        _answer_always("a story about object placement", "- Step 0"),
    ),
    _task(
        "countdown",
        "Countdown",
        _answer_always("four numbers and a target number", "<Solution>\n</Solution>"),
    ),
    _task("travel_planning", "Travel Planning", _TRIP),
)
# This task is not in the mean, because it runs programs that the model writes. Each user has to allow that.
_CODE = _task(
    "pseudo_to_code",
    "Pseudocode to Code",
    _answer_always(
        "You will be given lines of pseudocode", "```cpp\nint main() {}\n```"
    ),
    check_machine=check_programs,
)

LONGPROC = read_benchmark(__package__, (Category("", "", _TASKS, variants=(_CODE,)),))
