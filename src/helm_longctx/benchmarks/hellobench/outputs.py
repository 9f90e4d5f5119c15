"""Reads the files of answers and of judged answers that HelloBench's scripts write.

Source: Quehry/HelloBench at d403282, run.py and llm_judge.py (the formats), and results/scripts/compute.py
(which answers are scored).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from helm_longctx.benchmarks.hellobench.tasks import (
    FILES,
    JUDGE,
    WEIGHTS,
    read_rows,
    score_reply,
)
from helm_longctx.data.fetch import ensure
from helm_longctx.tasks import DataRoot, InputError, JsonLines
from helm_longctx.tasks.judge_scores import ANSWER
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun, make_jury

_FILE = re.compile(rf"(?P<task>{'|'.join(FILES)})_results\.jsonl")
_JUDGED = "checklist_wise_evaluation"
"""The column of the judge's scores. A file of answers lacks it."""


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise InputError(
            f"{path}: not a name of HelloBench's files: TASK_results.jsonl; {', '.join(FILES)}"
        )
    name = match["task"]
    rows = list(
        JsonLines(
            path,
            {
                "id": str,
                "instruction": str,
                "response": str,
            },
        )
    )
    # The files do not say which weights an answer has, so the official script reads the data, too.
    root = DataRoot.find()
    ensure((FILES[name], WEIGHTS), root, "helm-longctx fetch hellobench")
    records = {row["id"]: record for row, record in read_rows(name, root)}
    is_judged = _JUDGED in rows[0]
    outputs = []
    for row in rows:
        if row["id"] not in records:
            raise InputError(f"{row}: HelloBench has no instruction {row['id']!r}")
        # The list of scores stands for the judge's reply.
        reply = json.dumps(row.get(_JUDGED), ensure_ascii=False)
        record = {**records[row["id"]], "question": row["instruction"]}
        notes = {}
        if is_judged:
            verdicts = {ANSWER: score_reply(record["weights"], reply) or None}
            notes["jury"] = make_jury(JUDGE, reply, verdicts)
        outputs.append(
            Output(
                id=row["id"],
                prediction=row["response"],
                references=[],
                record=record,
                prompt=row["instruction"],
                notes=notes,
                location=f"{path}:{row.number}",
            )
        )
    if name[-1] == "k":
        own = "hellobench_words"
    else:
        own = "hellobench"
    own += f":task={name}" if is_judged else f":task={name},judge=none"
    # The official scripts name the folder after the model.
    model = path.resolve().parent.name
    yield OutputRun(
        entry=entry or own,
        model=model,
        outputs=outputs,
    )


def _choose(paths: Sequence[Path]) -> Iterable[Path]:
    """Choose judged answers instead of the same model's plain ones."""
    judged = set()
    names = set()
    for path in paths:
        with path.open("rb") as file:
            if f'"{_JUDGED}"'.encode() in file.readline():
                judged.add(path)
                names.add((path.parent.name, path.name))
    chosen = []
    for path in paths:
        if path in judged or (path.parent.name, path.name) not in names:
            chosen.append(path)
    return chosen


READER = OutputReader(
    "HelloBench's answers and judged answers (TASK_results.jsonl)",
    _FILE,
    _read,
    _choose,
)
