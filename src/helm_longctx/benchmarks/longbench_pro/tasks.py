"""LongBench Pro's 25 tasks, with the prompts that ask for the answer alone and those that ask to think first.

Source: the hub data set caskcsg/LongBench-Pro; caskcsg/longcontext at 88fbeb8, LongBench-Pro/modules/data_loader.py
(columns), inference.py (`prepare_prompt`), utils.py (metrics), evaluation.py (`task_metric_config`, `calculate_metric`)
and README.md (budgets, repeats, temperature); Table 2 of arXiv 2601.02872 (which tasks need the whole text). A record
has the question's `language` and `difficulty`, and for summaries the annotation `similarity`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import combinations
from math import log2
from pathlib import Path
from typing import Literal

from helm_longctx.benchmarks.longbench_pro.prompts import PROMPT, SEPARATOR
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    STANDARD,
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    HubFile,
    JsonArray,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Types,
    Variant,
    is_number,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import text_group
from helm_longctx.tasks.words import cut, f1, find_rouge_l

_MARKERS = ("[Answer]", "[答案]")
"""What stands before the answer in an output."""
_CLASSES = ("english", "chinese", "easy", "moderate", "hard", "extreme")
_BY_CLASS = tuple(f"score_{name}" for name in _CLASSES)
"""The scores of the questions in a language or of a difficulty."""
_MOST_STEPS = 986
"""Steps after which the recursion of the package rouge fails when the official main.py calls it."""
_GOOD_SUMMARY = 0.65
"""The score above which the official pass@n counts a summary as right."""


_SIMILARITY = Shape(
    "an object with the number 'value'",
    lambda value: (
        isinstance(value, dict)
        and (value.get("value") is None or is_number(value["value"]))
    ),
)

_Compare = Callable[[Sequence[str], Sequence[str]], float]
"""(normalized answers, normalized lines of the output) → score"""


def normalize(text: str) -> str:
    """Convert a text to lower case, with single spaces."""
    return " ".join(text.lower().split())


def read_lines(output: str) -> list[str]:
    """Return the normalized lines after the last marker, or of the whole output if it has none."""
    marker = next((marker for marker in _MARKERS if marker in output), "")
    if marker:
        answer = output.rpartition(marker)[2]
    else:
        answer = output
    lines = []
    for line in answer.strip().lower().split("\n"):
        lines.append(normalize(line))
    return lines


def ndcg(answers: Sequence[str], lines: Sequence[str]) -> float:
    """Return the NDCG of the first lines, as many as there are answers, as pytrec_eval computes it.

    A line or an answer that stands several times has its last rank.
    """
    gains = {}
    for rank, answer in enumerate(answers):
        gains[answer] = len(answers) - rank
    ranks = {}
    for rank, line in enumerate(lines):
        ranks[line] = rank
    ranking = []
    for line in sorted(ranks, key=ranks.__getitem__):
        ranking.append(gains.get(line, 0))
    ideal = sorted(gains.values(), reverse=True)
    return _discount(ranking[: len(answers)]) / _discount(ideal)


def _discount(gains: Sequence[int]) -> float:
    total = 0.0
    for rank, gain in enumerate(gains):
        total += gain / log2(rank + 2)
    return total


def pairwise_accuracy(answers: Sequence[str], lines: Sequence[str]) -> float:
    """Return the share of the pairs of lines that are pairs of answers in their order."""
    if len(answers) < 2 or len(lines) < 2:
        return 0.0
    ranks = {}
    for rank, line in enumerate(lines):
        ranks[line] = rank
    right = 0
    for first, second in combinations(answers, 2):
        right += first in ranks and second in ranks and ranks[first] < ranks[second]
    return right / (len(lines) * (len(lines) - 1) // 2)


def _best_rouge_l(answers: Sequence[str], summary: str, is_chinese: bool) -> float:
    """Return ROUGE-L with the best answer; 0 if it cannot be computed for one of them."""
    if is_chinese:
        answers = [" ".join(cut(answer)) for answer in answers]
        summary = " ".join(cut(summary))
    scores = []
    for answer in answers:
        scores.append(find_rouge_l(summary, answer, _MOST_STEPS))
    if None in scores:
        return 0.0
    return max(score for score in scores if score is not None)


def _score_lines(record: ScorerInput, metric: str) -> MetricValues:
    """Return the score of an answer in lines, if the record has a reference."""
    output = record["prediction"].strip()
    answers = list(map(normalize, record["references"]))
    if not answers:
        return {}
    if output:
        value = _COMPARE[metric](answers, read_lines(output))
    else:
        value = 0.0
    # The official code counts what is out of range as a failure. Answers that are listed twice can be above 1.
    value = value if value <= 1 else 0.0
    return _scores(record, metric, value, value == 1)


def _score_summary(record: ScorerInput) -> MetricValues:
    """Return the mean of similarity and ROUGE-L, each with the best reference summary.

    Without a measured similarity, there is only ROUGE-L.
    """
    summary = normalize(record["prediction"])
    answers = list(map(normalize, record["references"]))
    if not answers:
        return {}
    if not summary:
        return {"rouge_l": 0.0, **_scores(record, "summary", 0.0, False)}
    rouge = _best_rouge_l(answers, summary, record.get("language") == "Chinese")
    similarity = (record.get("similarity") or {}).get("value")
    if similarity is None:
        return {"rouge_l": rouge}
    value = 0.5 * similarity + 0.5 * rouge
    # As above: the similarity of equal texts can be slightly above 1, and of others below 0.
    value = value if 0 <= value <= 1 else 0.0
    return {
        "rouge_l": rouge,
        "similarity": similarity,
        **_scores(record, "summary", value, value > _GOOD_SUMMARY),
    }


def _scores(
    record: ScorerInput,
    metric: str,
    value: float,
    passed: bool,
) -> MetricValues:
    classes = (str(record.get(name, "")).lower() for name in ("language", "difficulty"))
    return {
        metric: value,
        "passed": float(passed),
        **{f"score_{name}": value for name in classes if name in _CLASSES},
    }


_COMPARE: dict[str, _Compare] = {
    "ndcg": ndcg,
    "pairwise_accuracy": pairwise_accuracy,
    "accuracy": lambda answers, lines: float(answers[0] == lines[0]),
    "f1_score": lambda answers, lines: f1({*lines}, {*answers}),
    "sub_em": lambda answers, lines: (
        sum(answer in lines for answer in answers) / len(answers)
    ),
}


SOURCE = HubFile(
    "caskcsg/LongBench-Pro",
    "longbench_pro.json",
    "hub/caskcsg__LongBench-Pro/longbench_pro.json",
    commit="4996884deae51f5e5d23c88da9d857fc54e5fa15",
    sha256="92ff05f6088e212d06c5a731ab86000b69cee6a0900cbbd524a25851e3c30de0",
)

QuestionField = Literal["question_nonthinking", "question_thinking"]
"""The column with the question: it asks for the answer alone, or for reasoning first."""

_TEXTS = ("context", "language", "token_length", "secondary_task", "difficulty")
COLUMNS: Types = {
    "id": (str, int),
    **dict.fromkeys((*_TEXTS, "question_nonthinking", "question_thinking"), str),
    "answer": list,
}


class QuestionsByTask:
    """The questions of the file by task and length. One pass finds them, and only those that are asked for are kept."""

    def __init__(self, path: Path):
        self._rows = JsonArray(path, COLUMNS)
        self._places: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, row in enumerate(self._rows):
            self._places[row["secondary_task"], row["token_length"]].append(index)

    def select(self, task: str, length: str) -> Iterator[FileRow]:
        """Yield the questions of a task at a length in file order, by their names in the file."""
        return self._rows.rows(self._places.get((task, length), []))


_read = lru_cache(maxsize=1)(lambda path, modified: QuestionsByTask(path))


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    secondary_task: str,
    question: QuestionField,
) -> Iterator[Example]:
    """Load the questions of a task at a length in file order."""
    path = root / SOURCE.path
    # All tasks are in one file of 530 MB, so it is searched once for all of them.
    questions = _read(path, path.stat().st_mtime_ns if path.is_file() else 0)
    for row in questions.select(secondary_task, length_label(settings.level)):
        # The official code removes white space at the ends of the whole prompt.
        context = row["context"].lstrip()
        fields = {"context": context, "question": row[question].rstrip()}
        record = {}
        for name in task.record_shapes:
            if name in COLUMNS:
                record[name] = row[name]
        yield Example(
            id=str(row["id"]),
            fields=fields,
            references=row["answer"],
            source="hub",
            record=record,
            group=text_group(context),
        )


_OPTION = re.compile(r"^\s*\(?([A-Z])[.、):：）]\s*(.+)$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{4,}|[\u4e00-\u9fff]{2}")


def answer_lines(messages: Sequence[Message]) -> str | None:
    """Answer with the option whose words are most often in the text, or with the lines that share most words.

    There are as many lines as the question's own example has. Returns None if the prompt is not one of LongBench Pro's.
    """
    context, _, question = messages[-1]["content"].rpartition(SEPARATOR)
    marker = next((marker for marker in _MARKERS if marker in question), None)
    if not context or marker is None:
        return None
    options = dict(_OPTION.findall(question))
    if options:
        words = set(_find_words(context))
        shares = {}
        for letter, option in options.items():
            words_of_option = _find_words(option)
            shared = sum(word in words for word in words_of_option)
            shares[letter] = shared / max(len(words_of_option), 1)
        return f"{marker}\n{max(shares, key=lambda letter: shares[letter])}"
    asked = set(_find_words(question.partition(marker)[0]))
    # A dictionary has each line once.
    lines = dict.fromkeys(line.strip() for line in context.split("\n") if line.strip())
    count = max(3, question.rpartition(marker)[2].strip().count("\n") + 1)

    def count_shared(line: str) -> int:
        return len(asked.intersection(_find_words(line)))

    best = sorted(lines, key=count_shared, reverse=True)[:count]
    return "\n".join([marker, *best])


def _find_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


EMBEDDING_MODEL = "Qwen/Qwen3-Embedding-8B@1d8ad4ca9b3dd8059ad90a75d4983776a23d44af"
"""The official model for the similarity of summaries. The official code pins no commit."""
EMBEDDING_BYTES = 36 * 1024**3
"""Free GPU memory in bytes that it needs with 32-bit weights, as in the official code, and room for its inputs."""

_PER_LENGTH = 10
"""Questions of a task at a length: five in each language."""
SIZES = {
    STANDARD[label]: _PER_LENGTH
    for label in ("8k", "16k", "32k", "64k", "128k", "256k")
}

_ROWS = [*read_table(__package__, "tasks.csv")]
TASKS = {row["name"]: row["metric"] for row in _ROWS}

PARTIAL = tuple(row["name"] for row in _ROWS if row["needs"] == "a part")


def name_of(secondary_task: str) -> str:
    """Return a task's name from its name in the file: `t1_1` for `T1.1 Global Cohesive Retrieval`."""
    return secondary_task.partition(" ")[0].lower().replace(".", "_")


def _task(secondary_task: str, thinks: bool = False) -> Task:
    metric = TASKS[secondary_task]
    name = name_of(secondary_task)
    is_summary = metric == "summary"
    if thinks:
        question: QuestionField = "question_thinking"
    else:
        question = "question_nonthinking"
    return Task(
        name=f"{name}_thinking" if thinks else name,
        alias=name if thinks else "",
        title=f"{secondary_task}, thinking" if thinks else secondary_task,
        template=Template.whole(PROMPT),
        load=partial(load, secondary_task=secondary_task, question=question),
        score=_score_summary if is_summary else partial(_score_lines, metric=metric),
        headline=(metric,),
        metrics=(
            metric,
            "passed",
            *_BY_CLASS,
            *(("rouge_l", "similarity") if is_summary else ()),
        ),
        max_tokens=8192 if thinks else 1024,
        sizes=SIZES,
        num_samples=_PER_LENGTH,
        sources=lambda length: (SOURCE,),
        variants={"paper": Variant(temperature=1.0)},
        official_judge=EMBEDDING_MODEL.partition("@")[0] if is_summary else None,
        record_shapes={"language": TEXT, "difficulty": TEXT}
        | ({"similarity": _SIMILARITY} if is_summary else {}),
        trait="" if secondary_task in PARTIAL else "whole text",
        baseline=Baseline(answer_lines, "[Answer]\nA"),
        **task_fields(__package__),
    )


_JUDGE = f"{__package__}.judge.SimilarityAnnotator"

LONGBENCH_PRO = read_benchmark(
    __package__,
    (
        Category("", "", tuple(map(_task, TASKS)), judge=_JUDGE),
        Category(
            "thinking",
            "Thinking",
            tuple(_task(t, thinks=True) for t in TASKS),
            averaged=False,
            judge=_JUDGE,
        ),
    ),
)
