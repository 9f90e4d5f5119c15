"""Reads the files that HELMET's code writes: outputs, outputs with the judge's scores, and averages.

Source: princeton-nlp/HELMET at 4526dfb, eval.py (outputs, averages), eval_alce.py (averages of citations),
scripts/eval_gpt4_longqa.py and scripts/eval_gpt4_summ.py (the judge's scores), scripts/collect_results.py (scale).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.benchmarks.helmet.rubrics import RUBRICS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.helmet.verdicts import JUDGE
from helm_longctx.data.jsonl import read_object
from helm_longctx.tasks import TEXT, TEXTS, InputError, Published, Task, is_number
from helm_longctx.tasks.judge_scores import ANSWER
from helm_longctx.tasks.outputs import (
    Output,
    OutputReader,
    OutputRun,
    OutputScore,
    RunOrScore,
    make_jury,
)

_Row = Mapping[str, Any]

_JUDGED = "-gpt4eval_o.json"
"""The end of the name of a file with the judge's scores."""

_AVERAGES = ".score"
_THINKING_TOKENS = 32768
"""The number of tokens that the official code adds to both budgets of a model that thinks (eval.py:74)."""

_TASKS = "|".join(sorted((task.name for task in HELMET.tasks), key=len, reverse=True))
_NAME = re.compile(
    rf"(?:kilt_|icl_|alce_)?(?P<task>{_TASKS})(?![a-z0-9]).*_in(?P<length>\d+)_size(?P<size>\d+|None)"
    r"_shots(?P<shots>\d+)_samp(?:True|False)max\d+min\d+t[\d.]+p[\d.]+_chat(?P<chat>True|False)_(?P<seed>\d+)"
    r"(?:-gpt4eval_o)?\.json(?:\.score)?"
)
"""The name of an output file (eval.py:41). It begins with an optional name of a collection and the name of a task."""

_PERCENT = {"gpt-4-score": 3.0, "gpt-4-f1": 1.0}
"""Averages that are not percentages, and their largest values."""

_AVERAGE_OF = {"judge_score": "gpt-4-score", "judge_f1": "gpt-4-f1"}
"""The official names of averages, by the metrics' names here, where the two differ."""

_REPLIES = {
    "fluency": "flunecy_output",
    "recall": "recall_output",
    "precision": "precision_output",
}
"""The columns of the judge's replies on a summary, with the official spelling."""


class _Name(NamedTuple):
    """What a file's name says."""

    task: Task
    length: int
    size: int | None
    shots: int
    chat: bool
    seed: int


def _read(path: Path, entry: str) -> Iterator[RunOrScore]:
    """Yield the run in a file of outputs, or the score in a file of averages."""
    name = parse_name(path)
    content = read_object(path)
    if path.name.endswith(_AVERAGES):
        yield _score(path, name, content)
        return
    rows = content.get("data")
    arguments = content.get("args")
    if not isinstance(rows, list) or not isinstance(arguments, dict):
        raise InputError(
            f"{path}: it lacks the list 'data' or the object 'args' of HELMET's output files"
        )
    judged = path.name.endswith(_JUDGED)
    outputs = []
    for number in range(len(rows)):
        location = f"{path}: row {number + 1}"
        outputs.append(_output(name, rows, number, location, judged))
    model = str(arguments.get("model_name_or_path") or "")
    yield OutputRun(
        entry=entry or _entry(name, arguments, judged),
        model=model,
        outputs=outputs,
    )


def parse_name(path: Path) -> _Name:
    """Read what the name of an official file says. Raises an `InputError` if it is not such a name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise InputError(
            f"{path}: not a name of HELMET's files: DATASET_TAG_TEST_in8192_size100_shots2_….json"
        )
    if match["size"] == "None":
        size = None
    else:
        size = int(match["size"])
    shots = int(match["shots"])
    seed = int(match["seed"])
    return _Name(
        task=HELMET.task(match["task"]),
        length=int(match["length"]),
        size=size,
        shots=shots,
        chat=match["chat"] == "True",
        seed=seed,
    )


def _entry(name: _Name, arguments: _Row, judged: bool) -> str:
    """Return the run entry that asks for the same prompts."""
    task = name.task
    category = _category(task)
    thinks = arguments.get("thinking") is True
    stops = arguments.get("stop_newline") is True
    values: dict[str, object] = {"task": task.argument, "length": name.length}
    # What is the default in a run entry is left out.
    if "shots" in task.arguments and name.shots != task.shots:
        values["shots"] = name.shots
    if "seed" in task.arguments and name.seed != 42:
        values["seed"] = name.seed
    if name.size != task.num_samples:
        values["num_samples"] = name.size
    if name.chat != task.chat:
        values["style"] = "chat" if name.chat else "completion"
    if stops and not thinks and "current" in task.variants:
        values["protocol"] = "current"
    if thinks:
        values["thinking_tokens"] = _THINKING_TOKENS
    if task.has_judge and not judged:
        values["judge"] = "none"
    given = []
    for key, value in values.items():
        if value is not None:
            given.append(f"{key}={value}")
    return f"{category}:{','.join(given)}"


def _category(task: Task) -> str:
    entries = HELMET.entries.items()
    return next(
        name
        for name, category in entries
        if task in (*category.tasks, *category.variants)
    )


def _output(
    name: _Name,
    rows: Sequence[Any],
    number: int,
    location: str,
    judged: bool,
) -> Output:
    task = name.task
    row = rows[number]
    if not isinstance(row, dict):
        raise InputError(f"{location}: not a JSON object but {type(row).__name__}")
    TEXT.check(f"{location}: output", row.get("output"))
    # Those of QAMPARI are lists of names. The record has them.
    references = row.get("answer")
    if references is None:
        references = []
    elif isinstance(references, str):
        references = [references]
    TEXTS.check(f"{location}: answer", references)
    prompt: Any = row.get("input_text") or ""
    if not isinstance(prompt, str):
        prompt = json.dumps(prompt, ensure_ascii=False)
    tokens = row.get("input_len")
    depth = row.get("depth")
    has_depth = isinstance(depth, int | float) and 0 <= depth <= 1
    group = ""
    if "qrels" in task.record_shapes:
        group = f"query {row.get('qid')}"
    elif task.depths > 1:
        group = f"question {row.get('id', row.get('question'))}"
    # The official code leaves out requests without an answer, so rows of a short file cannot be identified by number.
    is_whole = name.size is None or len(rows) >= name.size
    return Output(
        id=f"{task.name}-{number}" if is_whole else f"{task.name}-row-{number + 1}",
        prediction=row["output"],
        references=references,
        record=_record(task, row, rows[0], location),
        prompt=prompt,
        input_tokens=tokens if isinstance(tokens, int) else None,
        group=group,
        depth=depth if has_depth else None,
        notes={"jury": _jury(task, row)} if judged and task.name in RUBRICS else {},
        location=location,
    )


def _record(
    task: Task,
    row: _Row,
    first: Any,
    location: str,
) -> dict[str, Any]:
    """Return the fields that the task's scorer and its judge read."""
    names = {
        "question": "question",
        "keypoints": "keypoints",
        "long_summary": "summary/long",
    }
    for column in ("qa_pairs", "answers"):
        if column in task.record_shapes:
            names[column] = column
    record = {}
    for own, column in names.items():
        if row.get(column) is not None:
            record[own] = row[column]
    if "qrels" in task.record_shapes:
        record |= {
            "qrels": _qrels(row, location),
            "passages": len(_qrels(first, location)),
        }
    if "rubric" in task.judge_sources:
        record["rubric"] = task.judge_sources["rubric"].paths[0]
    return record


def _qrels(row: Any, location: str) -> dict[str, int]:
    try:
        qrels = {}
        for passage, grade in row["qrel"]:
            qrels[str(passage)] = int(grade)
        return qrels
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{location}: qrel must be a list of pairs of a passage's id and its grade"
        ) from error


def _jury(task: Task, row: _Row) -> dict[str, Any]:
    """Return what the judge said, in the form of our judge's annotations. For answers, the file has only the scores."""
    rubric = RUBRICS[task.name]
    column = row.get("gpt-4-scores")
    # A missing object of scores stands for missing replies.
    scores = column if isinstance(column, dict) else None
    replies: dict[str, Any] = dict.fromkeys(rubric.prompts)
    if scores is not None:
        if ANSWER in rubric.prompts:
            replies = {ANSWER: json.dumps(scores)}
        else:
            replies = {}
            for part in rubric.prompts:
                replies[part] = scores.get(_REPLIES[part])
    verdicts = {}
    for part, reply in replies.items():
        verdicts[part] = rubric.read(part, reply) if isinstance(reply, str) else None
    return make_jury(
        JUDGE, replies.get(ANSWER, replies), verdicts, JUDGE.rpartition("/")[2]
    )


def _score(path: Path, name: _Name, averages: _Row) -> OutputScore:
    """Return the task's score in a file of averages in percent."""
    values = {}
    for metric in name.task.headline:
        official = _AVERAGE_OF.get(metric, metric)
        value = averages.get(official)
        if not is_number(value):
            raise InputError(
                f"{path}: it lacks the number {official!r}, the score of {name.task.name}"
            )
        values[metric] = float(value or 0.0) / _PERCENT.get(official, 100.0)
    entry = _category(name.task)
    score = {name.task.name: sum(values.values()) / len(values)}
    if len(values) > 1:
        metrics = {name.task.name: values}
    else:
        metrics = {}
    # The folder of a model's outputs has the model's name in the official scripts.
    row = Published(
        model=path.resolve().parent.name,
        category=HELMET.entries[entry].name,
        length=name.length,
        scores=score,
        metrics=metrics,
    )
    return OutputScore(
        entry=entry,
        location=str(path),
        row=row,
    )


def _choose(paths: Sequence[Path]) -> Iterable[Path]:
    """Choose judged outputs instead of plain ones, and averages only if outputs cannot give the same score."""
    names = {str(path) for path in paths}
    for path in paths:
        judged = str(path).removesuffix(".json") + _JUDGED
        outputs = str(path).removesuffix(_AVERAGES)
        if not path.name.endswith(_AVERAGES):
            if judged not in names:
                yield path
            continue
        metrics = parse_name(path).task.headline
        if outputs not in names or any("citation" in metric for metric in metrics):
            yield path


READER = OutputReader(
    "HELMET's outputs (*.json, *-gpt4eval_o.json) and averages (*.score)",
    _NAME,
    _read,
    _choose,
)
