"""Reads the files of answers and of judged answers that LongMemEval's scripts write.

Source: xiaowu0162/LongMemEval at 9e0b455, src/generation/run_generation.sh and run_generation.py (names, answers), and
src/evaluation/evaluate_qa.py (labels).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longmemeval import tasks
from helm_longctx.benchmarks.longmemeval.tasks import (
    COLUMNS,
    FILES,
    JUDGE,
    READINGS,
    Form,
)
from helm_longctx.data.fetch import ensure
from helm_longctx.data.jsonl import Row
from helm_longctx.tasks import DataRoot, FileRow, InputError, JsonArray, JsonLines
from helm_longctx.tasks.judge_scores import ANSWER
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun, make_jury

_FILE = re.compile(
    rf"(?P<file>{'|'.join(FILES.values())})\.json_testlog_top(?P<sessions>\d+)context_(?P<form>json|nl)format"
    r"_useronly(?P<user_only>true|false)_\d{8}-\d{4}.*"
)
_LABEL = "autoeval_label"
"""The column of the judge's label. A file of answers lacks it."""
_JUDGED = ".eval-results-gpt-4o"
"""The end of the name of a file with the official judge's labels."""
_NOTES = {"con": True, "direct": False}
"""Whether the prompt asks for notes, by the name of the reading."""
_ALL_SESSIONS = 1000
"""With this limit the official script keeps all sessions."""


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    rows = list(JsonLines(path, {"question_id": str, "hypothesis": str}))
    is_judged = _LABEL in rows[0]
    own, model = (entry, "") if entry else _parse_path(path)
    # The files have neither the answers nor the types of questions, so the official script reads the data, too.
    root = DataRoot.find()
    source = tasks.find_source("oracle")
    ensure((source,), root, "helm-longctx fetch longmemeval:task=oracle")
    questions = {}
    for row in JsonArray(root / source.path, COLUMNS):
        questions[row["question_id"]] = row
    outputs = []
    for row in rows:
        outputs.append(_output(row, questions, is_judged))
    suffix = "" if entry or is_judged else ",judge=none"
    yield OutputRun(
        entry=f"{own}{suffix}",
        model=model,
        outputs=outputs,
    )


def _parse_path(path: Path) -> tuple[str, str]:
    """Return the run entry and the model of an official path, `RETRIEVER/MODEL/READING/FILE`."""
    match = _FILE.fullmatch(path.name)
    retriever, model, folder = ("", "", "", *path.resolve().parts)[-4:-1]
    name = None
    if (
        match
        and retriever == "full-history-session"
        and int(match["sessions"]) >= _ALL_SESSIONS
    ):
        kind = (
            Form(match["form"] == "json", match["user_only"] == "true"),
            _NOTES.get(folder),
        )
        for key, reading in READINGS.items():
            if (reading.form, reading.notes) == kind:
                name = key
                break
    if match is None or name is None:
        raise InputError(
            f"{path}: no run entry has the options in this path, which must be"
            " full-history-session/MODEL/READING/FILE of the official script with"
            f" top{_ALL_SESSIONS}; name the entry with --entry longmemeval:task=s"
        )
    task = next(task for task, file in FILES.items() if file == match["file"])
    entry = f"longmemeval_{name}" if name else "longmemeval"
    return f"{entry}:task={task}", model


def _output(row: FileRow, questions: Mapping[str, Row], is_judged: bool) -> Output:
    name = row["question_id"]
    if name not in questions:
        raise InputError(f"{row}: LongMemEval has no question {name!r}")
    question = questions[name]
    notes: dict[str, Any] = {}
    if is_judged:
        label = row.get(_LABEL)
        judge = JUDGE.rpartition("/")[2]
        about = label if isinstance(label, dict) else {}
        is_right = about.get("label")
        if about.get("model") != judge or not isinstance(is_right, bool):
            raise InputError(
                f"{row}: '{_LABEL}' must be an object with the model {judge} and a"
                " label, true or false"
            )
        # A yes or no stands for the judge's reply.
        reply = "yes" if is_right else "no"
        notes = {"jury": make_jury(JUDGE, reply, {ANSWER: tasks.read_label(reply)})}
    return Output(
        id=name,
        prediction=row["hypothesis"],
        references=[str(question["answer"])],
        record={**tasks.make_record(question), "question": question["question"]},
        group=tasks.name_cluster(question),
        notes=notes,
        location=f"{row.path}:{row.number}",
    )


def _choose(paths: Sequence[Path]) -> Iterable[Path]:
    """Choose judged answers instead of the same answers without labels."""
    judged = set()
    for path in paths:
        if path.name.endswith(_JUDGED):
            judged.add(str(path).removesuffix(_JUDGED))
    return [path for path in paths if str(path) not in judged]


READER = OutputReader(
    "LongMemEval's answers and judged answers (…_testlog_…)", _FILE, _read, _choose
)
