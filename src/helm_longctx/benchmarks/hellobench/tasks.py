"""HelloBench's five tasks, and the instructions that require a number of words. A judge scores a checklist.

Source: Quehry/HelloBench at d403282, data/, weighted_scores.txt, run.py, README.md (temperature, output budgets),
llm_judge.py (`gpt4o_ckwise_evaluation`) and results/scripts/compute.py (`compute_score_and_length_single`). A record
has the `checklists` and `weights` of its instruction, and the reply of a judge in `judge`, or the replies
of several in `jury`.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from helm_longctx.benchmarks.hellobench import prompts
from helm_longctx.data.fetch import ensure
from helm_longctx.data.tables import read_table
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonLines,
    Judgement,
    Message,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Variant,
    are_all,
    is_number,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.benchmark import Sweep
from helm_longctx.tasks.judge_scores import REPLIES, judge_scores
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.sentences import SENTENCE_TERMS, split_words

_REPOSITORY = "Quehry/HelloBench"
_COMMIT = "d403282968b0a61a4963a73c631d3fc1318f17d7"
LENGTHS = {
    "2k": 2000,
    "4k": 4000,
    "8k": 8000,
    "16k": 16000,
}
"""The numbers of words that the instructions of the length-constrained files require."""
_TOKENS_OF_A_WORD = 1.5
"""The approximate number of tokens of an English word."""
_USUAL_WORDS = 870
"""The mean number of words of the published answers to instructions without a required length."""

_pinned_file = partial(
    PinnedFile.of_repository, f"{_REPOSITORY}/{_COMMIT}", target="hellobench"
)
_ROWS = {row["name"]: row for row in read_table(__package__, "tasks.csv")}
"""The rows of the tasks by their names. Those of required words end in `k`."""
FILES = {
    name: _pinned_file(
        f"data/{'length_constrained' if name[-1] == 'k' else 'main'}_data/{name}.jsonl",
        row["sha256"],
    )
    for name, row in _ROWS.items()
}
WEIGHTS = _pinned_file(
    "weighted_scores.txt",
    "51c1a338434c96253476441f39d48fe28d9673d121eae98751329f760e889ff5",
)
"""The weights of the items of each category's checklist: a regression on people's scores."""

_WEIGHTS_SHAPE = Shape(
    "a list of positive numbers", are_all(lambda value: is_number(value) and value > 0)
)


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the instructions in file order."""
    for row, record in read_rows(task.name, root):
        tokens = round(
            _TOKENS_OF_A_WORD * LENGTHS.get(task.name.rpartition("_")[2], _USUAL_WORDS)
        )
        fields = {"input": row["instruction"]}
        yield Example(
            id=row["id"],
            fields=fields,
            references=[],
            source="official",
            record=record,
            answer_tokens=tokens,
        )


def read_rows(name: str, root: DataRoot) -> Iterator[tuple[FileRow, Mapping[str, Any]]]:
    """Yield the rows of a task's file, each with the checklist and the weights of its items."""
    path = root / WEIGHTS.path
    what = "not an assignment of a dictionary of lists"
    try:
        # The file is an assignment of a Python dictionary.
        weights = ast.literal_eval(
            path.read_text(encoding="utf-8").partition("=")[2].strip()
        )
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: {what}") from error
    if not isinstance(weights, dict):
        raise InputError(f"{path}: {what}")
    for category, own in weights.items():
        _WEIGHTS_SHAPE.check(f"{path}: the weights of {category!r}", own)
    for row in JsonLines(
        root / FILES[name].path,
        {
            "id": str,
            "category": str,
            "instruction": str,
            "checklists": list,
        },
    ):
        TEXTS.check(f"{row}: column 'checklists'", row["checklists"])
        own = weights.get(row["category"], ())
        if len(own) != len(row["checklists"]):
            raise InputError(
                f"{row}: {len(row['checklists'])} checklists, but {len(own)} weights in"
                f" {WEIGHTS.path}"
            )
        yield row, {"checklists": row["checklists"], "weights": own}


JUDGE = "openai/gpt-4o-2024-05-13"
"""The official judge is `gpt-4o` without a version; this is the first one."""
_MOST_WORDS = 16000

_MARKS = ("```json", "```python", "```", "\n", "\\")


def judge_prompt(record: ScorerInput) -> str:
    """Make the user turn of the judge's prompt. The words and punctuation marks of the text are joined by spaces."""
    checklists = record.get("checklists")
    if not checklists or not record.get("weights"):
        raise InputError("the record has no checklists or no weights")
    items = []
    for number, item in enumerate(checklists):
        items.append({"checklist_id": number, "checklist_content": item})
    return prompts.JUDGE.format(
        instruction=record["question"],
        response=" ".join(split_words(record["prediction"])[:_MOST_WORDS]),
        checklists=json.dumps(items, ensure_ascii=False),
        num_checklist=len(checklists),
    )


def read_scores(reply: Any, items: int) -> list[float] | None:
    """Return the scores of a checklist in the order of the reply, or None if one cannot be read or is not in 0…1."""
    if not isinstance(reply, str):
        return None
    for mark in _MARKS:
        reply = reply.replace(mark, "")
    try:
        scores = []
        for item in json.loads(reply):
            scores.append(float(item["evaluation_score"]))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None
    # This also leaves out NaN: `float` and Python's JSON parser accept it.
    is_allowed = len(scores) == items and all(0 <= score <= 1 for score in scores)
    return scores if is_allowed else None


def score_reply(weights: Sequence[float], reply: Any) -> MetricValues:
    """Return the weighted sum of a reply's scores, plain and rescaled, or nothing if the reply has no scores.

    Args:
        weights: the weights of the checklist's items. Their sum is 100.
    """
    if weights:
        scores = read_scores(reply, len(weights))
    else:
        scores = None
    if scores is None:
        return {}
    total = sum(score * weight for score, weight in zip(scores, weights, strict=True))
    return {"judge_score": total / 100, "rescaled_score": (total - 75) * 4 / 100}


def score(record: ScorerInput) -> MetricValues:
    """Return the judge's score, and the number of words if NLTK's data is installed."""
    judged = judge_scores(
        record, "judge_score", partial(score_reply, record.get("weights") or ())
    )
    try:
        return {**judged, "output_words": len(split_words(record["prediction"]))}
    except InputError:
        return judged


_JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: score_reply(record["weights"], reply),
    lambda record: json.dumps(
        [prompts.SYSTEM, prompts.JUDGE, record["checklists"], record["weights"]]
    ),
    max_tokens=4096,
    temperature=0.8,
    seed=42,
    readings=3,
    system=prompts.SYSTEM,
    prepare=lambda root: ensure(
        [SENTENCE_MODEL], root, "helm-longctx fetch hellobench"
    ),
)

_MATERIAL = re.compile(
    r"\n\[[A-Z][\w ]*\]:\s*(.+?)\s*(?:\[Text End\]\s*)?\n\[Requirements\]:\n1\. ",
    re.DOTALL,
)


def _copy_material(messages: Sequence[Message]) -> str | None:
    """Return the text, question or topic of an instruction, or None if it has no such part and requirements after it."""
    match = _MATERIAL.search(messages[-1]["content"])
    return match[1] if match else None


def _task(name: str) -> Task:
    return Task(
        name=name,
        title=_ROWS[name]["title"],
        template=Template.whole("{input}"),
        load=load,
        score=score,
        max_tokens={"heuristic_text_generation_16k": 24000}.get(name, 16384),
        num_samples=int(_ROWS[name]["samples"]),
        sources=lambda length: (FILES[name], WEIGHTS),
        variants={"paper": Variant(temperature=0.8)},
        official_judge=JUDGE,
        judgement=_JUDGEMENT,
        judge_sources={"sentences": SENTENCE_MODEL},
        record_shapes={
            "checklists": TEXTS,
            "weights": _WEIGHTS_SHAPE,
            **REPLIES,
        },
        baseline=Baseline(_copy_material, "Once upon a time."),
        **task_fields(__package__),
    )


_LAST = "heuristic_text_generation"
_TASKS, _WORDS = (
    tuple(_task(name) for name in FILES if (name[-1] == "k") == required)
    for required in (False, True)
)
_ANNOTATOR = "helm_longctx.benchmarks.hellobench.judge.ChecklistAnnotator"
_CATEGORIES = (
    Category("", "", _TASKS, judge=_ANNOTATOR),
    Category("words", "Required Words", _WORDS, averaged=False, judge=_ANNOTATOR),
)

HELLOBENCH = read_benchmark(
    __package__,
    _CATEGORIES,
    sweeps=(
        Sweep(
            "Required words",
            "The number of words that the same instructions require; `free` requires none.",
            {"free": _LAST, **{label: f"{_LAST}_{label}" for label in LENGTHS}},
        ),
    ),
    data=SENTENCE_TERMS,
)
