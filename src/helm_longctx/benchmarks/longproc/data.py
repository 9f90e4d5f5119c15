"""Reads LongProc's files and makes the same problems as the official loader.

Source: princeton-pli/LongProc at 78e873a, longproc/longproc_data.py (`load_longproc_data` and `_load_*_data`). Budgets
and the sample are from its add-on for HELMET (princeton-nlp/HELMET, branch longproc, longproc_addon/configs).
"""

import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longproc import countdown, prompts, travel
from helm_longctx.data.jsonl import Row
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.errors import shorten
from helm_longctx.tasks import InputError, JsonArray, RepositoryFolder, Types
from helm_longctx.tasks.prompt import fill

FOLDER = "longproc"
"""Folder under the data root, with the content of the repository's folder `data`."""

LEVELS = {
    "0.5k": 512,
    "2k": 2048,
    "8k": 8192,
}
"""The number of output tokens that a level stands for."""
BUDGETS = {
    "0.5k": 1024,
    "2k": 3072,
    "8k": 10240,
}
SAMPLE = 100
SEED = 42
"""The sample is the first problems after `datasets.Dataset.shuffle(SEED)`."""

_TABLE_FIELDS = (
    "task_id",
    "website_id",
    "task_topic",
    "task_description",
    "tsv_header",
    "filtering_instruction",
)
_STORY_FIELDS = ("story_components", "story", "question")
_TRIP_FIELDS = (
    "id",
    "ground_truth_plan",
    "ground_truth_cities",
    "ground_truth_durations",
)
_TEMPLATES = "prompts.yaml"
_TRAVEL_EXAMPLES = "travel_planning_icl_examples.json"


@dataclass(frozen=True)
class _Problem:
    """A data point.

    Args:
        number: its index among the problems of the level in the official order, from 0.
        prompt: the text of the user turn.
        item: the official `item`: the template's fields, `reference_output`, and what the evaluator reads.
    """

    number: int
    prompt: str
    item: Mapping[str, Any]

    @property
    def reference(self) -> str:
        """The expected output."""
        return str(self.item["reference_output"])


@dataclass(frozen=True)
class _Files:
    """A task's files and how a row becomes a data point.

    Args:
        columns: the columns that every row must have, with their types.
        item: makes the official `item` of a row; gets the row and the task's folder.
        levels: names of the levels that exist.
        file: the file's name, with `{level}` if each level has a file of its own.
        demonstrations: makes the text for `{demonstration}` in the template; gets the task's folder.
        fields: names of the template's other fields, needed only with demonstrations.
        wanted: whether a row belongs to a level in output tokens.
    """

    columns: Types
    item: Callable[[Row, Path], dict[str, Any]]
    levels: tuple[str, ...] = tuple(LEVELS)
    file: str = "{task}_{level}.json"
    demonstrations: Callable[[Path], str] | None = None
    fields: tuple[str, ...] = ()
    wanted: Callable[[Row, int], bool] = field(default=lambda row, tokens: True)


def problems(task: str, level: str, root: Path) -> Iterator[_Problem]:
    """Yield the problems of a task at a level in the official order, one at a time.

    Args:
        level: one of the task's levels, e.g. "0.5k".
        root: the folder that has the content of the repository's folder `data`.

    Raises:
        InputError: a file is absent or malformed.
    """
    files = TASKS[task]
    folder = root / task
    template = _template(files, folder)
    path = folder / (files.file.format(task=task, level=level))
    number = 0
    for index, row in enumerate(JsonArray(path, files.columns), 1):
        # Numbers count the rows of the level, because the official loader filters before anything else
        # (longproc_data.py:377).
        if not files.wanted(row, LEVELS[level]):
            continue
        try:
            item = files.item(row, folder)
        except InputError as error:
            raise InputError(f"{path}: item {index}: {error}") from error
        yield _Problem(number, _fill(template, folder / _TEMPLATES, item), item)
        number += 1


def _template(files: _Files, folder: Path) -> str:
    """Read the official template.

    A template with demonstrations is filled with them here, and with the problem later. As in the official code, the
    second filling also reads braces in the demonstrations.
    """
    path = folder / _TEMPLATES
    try:
        template = read_yaml(path)["USER_PROMPT"]
    except (LookupError, TypeError) as error:
        raise InputError(
            f"{path}: it is not a YAML file with the field USER_PROMPT ({type(error).__name__})"
        ) from error
    if files.demonstrations is None:
        return str(template)
    # The problem's own fields stay as they are for the second filling (longproc_data.py:306).
    fields = {}
    for name in files.fields:
        fields[name] = f"{{{name}}}"
    return _fill(
        str(template), path, {"demonstration": files.demonstrations(folder), **fields}
    )


def _fill(template: str, path: Path, fields: Mapping[str, Any]) -> str:
    """Fill a downloaded template. Its fields must be plain names: others could reach attributes of the values."""
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InputError(
            f"{path}: USER_PROMPT is not this task's template: {error}"
        ) from error
    # `fill` would leave such a field as it is, and the prompt would differ from the official one without notice.
    for _, name, spec, conversion in parsed:
        if name is None:
            continue
        if name not in fields or spec or conversion:
            raise InputError(
                f"{path}: USER_PROMPT is not this task's template: unknown field {shorten(name)}"
            )
    return fill(template, fields)


def _table(row: Row, folder: Path) -> dict[str, Any]:
    try:
        page = (folder / row["html_path"]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"column 'html_path' names no readable page ({type(error).__name__})"
        ) from error
    return {
        **{name: row[name] for name in _TABLE_FIELDS},
        "html_str": page,
        "reference_output": row["gt"],
    }


def _join(row: Row, column: str) -> str:
    if not all(isinstance(line, str) for line in row[column]):
        raise InputError(f"column {column!r} must hold texts alone")
    return "\n".join(row[column])


def _route(row: Row, folder: Path) -> dict[str, Any]:
    if len(row["question_repr"]) < 2:
        raise InputError("column 'question_repr' must hold two cities")
    cities = dict(zip(("src_city", "dst_city"), row["question_repr"], strict=False))
    return {
        "city_context": row["context_nl"],
        **cities,
        "reference_output": row["answer_nl"],
    }


def _equations(row: Row, folder: Path) -> dict[str, Any]:
    numbers = row["nums"]
    target = row["target"]
    # `type` and not `isinstance`, because `True` is an int in Python.
    if len(numbers) != 4 or not all(
        type(number) is int and number >= 0 for number in numbers
    ):
        raise InputError("column 'nums' must hold four whole numbers of at least 0")
    try:
        solution, demonstration = countdown.demonstrate(numbers, target)
    except ValueError as error:
        raise InputError(f"column 'nums': {error}") from error
    return {
        "nums": numbers,
        "target": target,
        "solution": solution,
        "reference_output": demonstration,
    }


def _procedure(row: Row) -> str:
    try:
        return travel.demonstrate(travel.Trip.of(row))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"column 'constraints' gives no plan ({type(error).__name__})"
        ) from error


def _travel_demonstrations(folder: Path) -> str:
    examples = []
    for row in JsonArray(folder / _TRAVEL_EXAMPLES, _TRIP):
        examples.append(
            prompts.TRAVEL_EXAMPLE.format(
                problem=row["disambig_question_text"],
                solution=_procedure(row),
            )
        )
    return "\n\n".join(examples)


_TRIP: Types = {
    **dict.fromkeys((*_TRIP_FIELDS, "disambig_question_text"), str),
    **{
        "num_cities": int,
        "constraints": list,
        "connected_cities": list,
    },
}
"""The columns of a trip, in the examples and in the problems."""

TASKS: Mapping[str, _Files] = {
    "html_to_tsv": _Files(
        dict.fromkeys((*_TABLE_FIELDS, "html_path", "gt"), str), _table
    ),
    "pseudo_to_code": _Files(
        {
            "pseudocode_lines": list,
            "code_lines": list,
            "testcases": list,
            "problem_id": str,
        },
        lambda row, folder: {
            "pseudocode": _join(row, "pseudocode_lines"),
            "reference_output": _join(row, "code_lines"),
            "testcases": row["testcases"],
            "problem_id": row["problem_id"],
        },
        levels=("0.5k", "2k"),
    ),
    "path_traversal": _Files(
        {
            "context_nl": str,
            "question_repr": list,
            "answer_nl": str,
        },
        _route,
    ),
    "tom_tracking": _Files(
        dict.fromkeys((*_STORY_FIELDS, "solution"), str),
        lambda row, folder: {
            **{name: row[name] for name in _STORY_FIELDS},
            "reference_output": row["solution"],
        },
    ),
    "countdown": _Files(
        {"nums": list, "target": int},
        _equations,
        demonstrations=lambda folder: countdown.demonstrations(),
        fields=("nums", "target"),
    ),
    "travel_planning": _Files(
        {**_TRIP, "estimated_output_tokens": (int, float)},
        lambda row, folder: {
            **{name: row[name] for name in _TRIP_FIELDS},
            "problem": row["disambig_question_text"],
            "reference_output": _procedure(row),
        },
        levels=("2k", "8k"),
        file="travel_planning_all.json",
        demonstrations=_travel_demonstrations,
        fields=("problem",),
        # Its only file has rows of both levels and of neither. The levels have fewer than 2,048 tokens, and at least
        # 4,096 but fewer than 8,192.
        wanted=lambda row, tokens: (
            (0 if tokens <= 2048 else tokens // 2)
            <= float(row["estimated_output_tokens"])
            < tokens
        ),
    ),
}


def source(task: str, level: str) -> RepositoryFolder:
    """Return the data that a task needs at a level. The repository's folder `data` is always fetched whole."""
    files = TASKS[task]
    names = [
        files.file.format(task=task, level=level),
        _TEMPLATES,
        *([_TRAVEL_EXAMPLES] if task == "travel_planning" else []),
    ]
    return RepositoryFolder(
        "princeton-pli/LongProc",
        "78e873ae395e42625fba7942bbb92713de08b2a6",
        "data",
        "cd956a28f34f1c402bd2916295bcdd8446ed97e0",
        FOLDER,
        tuple(f"{task}/{name}" for name in names),
    )
