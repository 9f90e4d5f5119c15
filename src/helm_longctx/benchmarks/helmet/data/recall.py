"""Loads key-value and needle tasks from HELMET's release, or generates them if the files are missing.

Source of the official order: princeton-nlp/HELMET at 4526dfb, data.py load_json_kv, load_ruler, load_data.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

from helm_longctx.benchmarks.helmet import prompts
from helm_longctx.benchmarks.helmet.data import ruler
from helm_longctx.benchmarks.helmet.release import find_llama2_counter
from helm_longctx.data.jsonl import JsonLines, Row, Types
from helm_longctx.tasks import DataRoot, Example, InputError, Settings, Task
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.sampling import shuffle_order

_TEXTS = (str, list)
_log = logging.getLogger(__name__)


def load_json_kv(task: Task, settings: Settings, root: DataRoot) -> Iterable[Example]:
    """Load JSON KV: a key to look up in a JSON object of `sizes[length]` pairs, after two demonstrations."""
    types: Types = {CONTEXT: str, "question": str, "answer": _TEXTS, "demos": list, "num_kvs": int}
    shots = task.demonstrations(settings)
    convert = partial(_json_kv, shots=shots, at_least=settings.shots or 0)
    if rows := _official_rows(task, settings, root, types):
        return _read_official(task, settings, rows, convert)
    # The number of pairs for any length, by linear interpolation between the official sizes.
    points, length = sorted(task.sizes), settings.level
    if not points[0] <= length <= points[-1]:
        raise InputError(f"{task.name}: length={length} is invalid; give {points[0]} to {points[-1]}")
    low, high = next((low, high) for low, high in pairwise(points) if low <= length <= high)
    pairs = task.sizes[low] + (task.sizes[high] - task.sizes[low]) * (length - low) // (high - low)
    return _generate(task, settings, root, partial(ruler.fit_rows, ruler.json_kv, at_most=pairs), convert)


def load_ruler(task: Task, settings: Settings, root: DataRoot, make: ruler.Maker, has_depth: bool) -> Iterable[Example]:
    """Load one of RULER's tasks, which have no demonstrations."""
    convert = partial(_ruler, names=task.template.names)
    if rows := _official_rows(task, settings, root, {CONTEXT: str}):
        return _read_official(task, settings, rows, convert, has_depth)
    return _generate(task, settings, root, partial(ruler.fit_rows, make), convert)


Convert = Callable[[Row, str], tuple[dict[str, str], list[str]]]
"""(row, file and row number for errors) → template fields and references."""


def _official_rows(task: Task, settings: Settings, root: DataRoot, types: Types) -> JsonLines | None:
    for path in task.paths(settings.length):
        if root.has(path):
            return JsonLines(root / path, types)
    _warn_of_generation(str(root.path))
    return None


@cache  # one line for all tasks, lengths and models of a command; the scores name the tasks
def _warn_of_generation(root: str) -> None:
    _log.warning("%s lacks official files of recall tasks; their examples are generated", root)


def _read_official(
    task: Task, settings: Settings, rows: JsonLines, convert: Convert, has_depth: bool = True
) -> Iterator[Example]:
    # Rows are shuffled and then cut (HELMET data.py:141 and 515), so a smaller sample is the start of a larger one.
    numbers = shuffle_order(len(rows), settings.seed)[: task.sample(settings)]
    for position, (number, row) in enumerate(zip(numbers, rows.rows(numbers), strict=True)):
        fields, references = convert(row, f"{rows.path}: row {number + 1}")
        depth = row.get("depth") if has_depth else None
        # The depth in the file counts if it is a share of the context, and else the mean position of the answers.
        if has_depth and not (isinstance(depth, float | int) and 0 <= depth <= 1):
            depth = evidence_depth(row[CONTEXT], references)
        yield Example(f"{task.name}-{position}", fields, references, "official", depth)


def _generate(
    task: Task, settings: Settings, root: DataRoot, fit_rows: Callable[..., Any], convert: Convert
) -> Iterator[Example]:
    counter = find_llama2_counter(root)

    def measure(rows: list[Row]) -> list[int]:
        fields = (convert(row, task.name)[0] for row in rows)
        return counter.count([task.template.render(f).text("completion") for f in fields])

    count = task.sample(settings)
    # The prompt and its output together must fit the length.
    rows, lengths = fit_rows(count, settings.seed, settings.level - task.output_tokens(settings), measure)
    for position, (row, tokens) in enumerate(zip(rows, lengths, strict=True)):
        fields, references = convert(row, task.name)
        yield Example(
            f"{task.name}-{position}", fields, references, "generated", row.get("depth"), tokens, counter.name
        )


def evidence_depth(context: str, answers: Iterable[str]) -> float | None:
    """Return the mean relative position of the answers in the context; None if it contains none of them."""
    places = [at / max(1, len(context)) for at in map(context.find, answers) if at >= 0]
    return sum(places) / len(places) if places else None


def _json_kv(row: Row, where: str, shots: int, at_least: int) -> tuple[dict[str, str], list[str]]:
    if at_least > len(row["demos"]):
        raise InputError(
            f"{where}: shots={at_least}, but there are only {len(row['demos'])} demonstrations; give fewer shots"
        )
    try:
        demos = [prompts.JSON_KV_DEMO.format(key=key, value=value) for key, value in row["demos"][:shots]]
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: column 'demos' must be a list of [key, value]") from error
    fields = {
        CONTEXT: row[CONTEXT],
        "question": row["question"],
        # The blank line depends on the number of shots asked for, not on the number found (HELMET data.py:136).
        "demos": "\n\n".join(demos) + ("\n\n" if shots > 0 else ""),
    }
    return fields, _texts(row["answer"], "answer", where)


def _ruler(row: Row, where: str, names: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    values = {
        **row,
        # NIAH's files have the column `query`, and files of RULER's questions have `question` (HELMET data.py:500).
        "question": row.get("query", row.get("question", "")),
        "example": f"{row['example']}\n\n" if row.get("example") else "",
    }
    if absent := sorted(names - {name for name, value in values.items() if value is not None}):
        raise InputError(f"{where}: columns are missing: {', '.join(absent)}")
    # RULER's own scripts name the column `outputs` (HELMET data.py:502).
    column = "answer" if "answer" in row else "outputs"
    return {name: str(values[name]) for name in names}, _texts(row.get(column), column, where)


def _texts(value: object, column: str, where: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not (isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts)):
        raise InputError(f"{where}: column {column!r} must be a string or a list of strings, and not empty")
    return texts
