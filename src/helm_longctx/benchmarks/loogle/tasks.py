"""LooGLE's four tasks, their loader and metrics, and what its judge is asked.

Source: bigai-nlco/LooGLE at 6734382, Prediction/pred_gpt_models.py, pred_opensource_models.py, config/task2maxlen.json,
Evaluation/automatic_metrics.py, automatic_eval.py and llm_score.py; data.zip of the hub data set bigai-nlco/LooGLE at
b280201; rouge 1.0.1, rouge_score.py. Where the official code raises an error, the answer is wrong.
"""

import ast
import json
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from helm_longctx.benchmarks.loogle import prompts
from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubZip,
    InputError,
    JsonLines,
    Judgement,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import has_text, text_group
from helm_longctx.tasks.words import count_common, split_sentences

JUDGE = "openai/gpt-4-0613"
"""The official judge is `gpt-4` of 2023: this version or 0314."""

SIMILARITY = ("bleu1", "bleu4", "rouge1", "rouge2", "rougeL")
_MATCHES = ("exact_match", "partial_match", "exact_masks", "partial_masks", "masks")


def _score_text(record: ScorerInput, summary: bool) -> MetricValues:
    """Return BLEU, the recall of ROUGE, and the judge's score of an answer."""
    output = record["prediction"] or "None"
    reference = record["references"][0]
    judged = judge_scores(record, "judge_score", partial(read_verdict, summary=summary))
    bleu = {}
    for n in (1, 4):
        bleu[f"bleu{n}"] = _bleu(output, reference, n)
    rouge = {}
    for n in (1, 2):
        rouge[f"rouge{n}"] = _ngram_recall(output, reference, n)
    # The package's recursion ends the official run at long texts, so no limit is known.
    shared, _, wanted = count_common(output, reference, sys.maxsize - 1) or (0, 0, 1)
    return {
        **judged,
        **bleu,
        **rouge,
        "rougeL": shared / wanted,
    }


_filters_lock = threading.Lock()


def _bleu(output: str, reference: str, order: int) -> float:
    """Return the precision of n-grams of one order alone, with BLEU's penalty."""
    from nltk.translate.bleu_score import (
        sentence_bleu,
    )  # late, because nltk takes a second

    words, wanted = (text.replace("\n", " ").split() for text in (output, reference))
    # Python's filters are one list for all threads. Two that change it at once would leave it changed.
    with _filters_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about orders without a match: they are common
        weights = tuple(float(n == order) for n in range(1, 5))
        return float(sentence_bleu([wanted], words, weights=weights))


def _ngram_recall(output: str, reference: str, order: int) -> float:
    given = list(chain.from_iterable(split_sentences(output)))
    wanted = list(chain.from_iterable(split_sentences(reference)))
    if not given or not wanted:
        return 0.0
    gold = _list_ngrams(wanted, order)
    if gold:
        return len(_list_ngrams(given, order) & gold) / len(gold)
    return 0.0


def _list_ngrams(words: list[str], order: int) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(order)), strict=False))


def _read_masks(output: str) -> dict[Any, Any] | None:
    """Return the names by mask in an answer, or None if it is no dictionary."""
    try:
        # The official code evaluates the answer as Python code. That must not be done with a model's output.
        given = ast.literal_eval(output)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _can_read_masks(record: ScorerInput) -> bool:
    """Whether an answer is a dictionary of names by mask."""
    return _read_masks(record["prediction"]) is not None


def _score_cloze(record: ScorerInput) -> MetricValues:
    """Return how many masks an answer fills in, as a share and as numbers. Their sums make the official scores.

    There are no scores if the reference is no JSON object of names by mask.
    """
    try:
        masks = json.loads(record["references"][0])
    except (IndexError, ValueError):
        return {}
    if not isinstance(masks, dict) or not TEXTS.fits([*masks.values()]):
        return {}
    answers = _read_masks(record["prediction"]) or {}
    exact = sum(answers.get(mask) == name for mask, name in masks.items())
    partly = 0
    for mask, name in masks.items():
        answer = answers.get(mask)
        if isinstance(answer, str):
            partly += bool(set(name.split()).intersection(answer.split()))
    scores = {
        "exact_masks": float(exact),
        "partial_masks": float(partly),
        "masks": float(len(masks)),
    }
    if masks:
        scores["exact_match"] = exact / len(masks)
        scores["partial_match"] = partly / len(masks)
    return scores


def read_verdict(reply: Any, summary: bool = False) -> MetricValues:
    """Return the verdict `True` or `False` as 1 or 0, or a summary's grade from 0 to 100. Other replies have no score."""
    if not isinstance(reply, str):
        return {}
    if not summary:
        if reply in ("True", "False"):
            return {"judge_score": float(reply == "True")}
        return {}
    try:
        grade = int(reply)
    except ValueError:
        return {}
    if 0 <= grade <= 100:
        return {"judge_score": grade / 100}
    return {}


def _judge_answer(record: ScorerInput) -> str:
    """Make the user turn of the judge's prompt about an answer."""
    texts = {
        "question": record["question"],
        "reference": record["references"][0],
        "answer": record["prediction"],
    }
    return prompts.JUDGE.format(**texts)


def _judge_summary(record: ScorerInput) -> str:
    """Make the judge's prompt about a summary."""
    return prompts.JUDGE_SUMMARY.format(record["references"][0], record["prediction"])


# The official code asks once. It leaves out other replies about answers, and ends at others about summaries.
_JUDGEMENT = Judgement(
    _judge_answer,
    lambda reply, record: read_verdict(reply),
    prompts.JUDGE_SYSTEM + prompts.JUDGE,
    max_tokens=10,
    readings=1,
    system=prompts.JUDGE_SYSTEM,
    silence_reply="False",
)
_SUMMARY_JUDGEMENT = Judgement(
    _judge_summary,
    lambda reply, record: read_verdict(reply, summary=True),
    prompts.JUDGE_SUMMARY,
    max_tokens=10,
    readings=1,
    silence_reply="0",
)


_COMMIT = "b280201c5ab12cab9fd0d3a4de0c45830db8cd00"
"""The commit that the maintainers name for the rows with labels of the kinds of questions (bigai-nlco/LooGLE#15).

The hub's loading script (the official code calls it) reads data.zip: `TASK.json`, with one text on each line and the
columns `input`, `title`, `qa_pairs` and `output`.
"""
COLUMNS: Types = {
    "input": str,
    "qa_pairs": (str, list),
    "output": str,
}
SUMMARY = "longdep_summarization"
CLOZE = "shortdep_cloze"


class LoogleTask(NamedTuple):
    """A task: its title, output budget, largest number of questions, and the answer of the null model."""

    title: str
    max_tokens: int
    questions: int
    constant: str


ROWS = {
    "shortdep_qa": LoogleTask("Short QA", 300, 6000, "It is not known."),
    "longdep_qa": LoogleTask("Long QA", 500, 6000, "It is not known."),
    SUMMARY: LoogleTask("Summaries", 500, 516, "The paper proves a theorem."),
    CLOZE: LoogleTask("Cloze", 50, 6000, "{}"),
}
"""The tasks by their official names. The README counts 6,000 questions of all tasks, and 516 papers."""


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield a task's questions in the order of the texts, each with all of its text. A summary has no question."""
    for number, row in enumerate(JsonLines(task.only_file(settings, root), COLUMNS)):
        text = {"context": row["input"]}
        group = text_group(row["input"])
        if task.name == SUMMARY:
            yield Example(
                id=f"{number}-0",
                fields=text,
                references=[row["output"]],
                source="hub",
                group=group,
            )
            continue
        pairs: Any = row["qa_pairs"]
        try:
            if isinstance(pairs, str):
                pairs = ast.literal_eval(pairs)
            for index, pair in enumerate(pairs):
                answer: Any = pair["A"]
                type_of_answer = dict if task.name == CLOZE else str
                if not isinstance(pair["Q"], str) or not isinstance(
                    answer, type_of_answer
                ):
                    raise TypeError
                reference: Any = answer
                if isinstance(answer, dict):
                    reference = json.dumps(answer, ensure_ascii=False)
                yield Example(
                    id=f"{number}-{index}",
                    fields={**text, "question": pair["Q"]},
                    references=[reference],
                    source="hub",
                    group=group,
                )
        except (ValueError, SyntaxError, TypeError, KeyError) as error:
            raise InputError(
                f"{row}: column 'qa_pairs' must be a list of objects with Q and A"
            ) from error


def _task(name: str, judgement: Judgement | None) -> Task:
    row = ROWS[name]
    score = _score_cloze
    if judgement:
        score = partial(_score_text, summary=name == SUMMARY)
    source = HubZip(
        "bigai-nlco/LooGLE",
        "data.zip",
        f"data/{name}.json",
        f"loogle/{name}.json",
        commit=_COMMIT,
        other_members=(f"data/{name}.jsonl",),
    )
    return Task(
        name=name,
        title=row.title,
        template=Template.whole(prompts.PROMPTS[name]),
        load=load,
        score=score,
        scorers=score_silence(score) if judgement else {},
        can_read=has_text if judgement else _can_read_masks,
        headline=("judge_score",) if judgement else ("exact_match",),
        metrics=(*JUDGED, *SIMILARITY) if judgement else _MATCHES,
        max_tokens=row.max_tokens,
        num_samples=row.questions,
        sources=lambda length: (source,),
        official_judge=JUDGE if judgement else None,
        judgement=judgement,
        record_shapes=REPLIES if judgement else {},
        baseline=Baseline("summary" if name == SUMMARY else "span", row.constant),
        **task_fields(__package__),
    )


_TASKS = (
    _task("shortdep_qa", _JUDGEMENT),
    _task("longdep_qa", _JUDGEMENT),
    _task(SUMMARY, _SUMMARY_JUDGEMENT),
    _task(CLOZE, None),
)

LOOGLE = read_benchmark(
    __package__,
    [Category("", "", _TASKS, judge=f"{__package__}.judge.AgreementAnnotator")],
)
