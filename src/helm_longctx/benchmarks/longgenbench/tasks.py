"""LongGenBench's one task. Levels are output tokens. A judge is asked about each check of an entry that a text has.

Source: mozhu621/LongGenBench at 62c0e86, Dataset/, Evalution/inference.py, Evalution/Run_*.sh (output budgets),
Evalution/eval.py, Evalution/results/static.ipynb (`analyze_json`), and for answers of API models
Dataset/Openai_batch_api_data_process.ipynb. A record has the row's columns, and the replies of a judge by part
(`once 7`) in `judge`, or the replies of several judges in `jury`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from statistics import fmean
from typing import Any

from helm_longctx.benchmarks.longgenbench.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.tasks import (
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    JsonArray,
    Judgement,
    Message,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Types,
    Variant,
    is_number,
    is_text,
    is_whole,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.benchmark import read_published
from helm_longctx.tasks.judge_scores import REPLIES, judge_scores

_REPOSITORY = "mozhu621/LongGenBench"
_COMMIT = "62c0e869219c225671a0b8f50217b0cd836b882b"
BUDGETS = {16384: 16000, 32768: 32000}
"""The output budget at each level, in tokens."""
KINDS = ("once", "range", "periodic")
"""The kinds of instructions: for one entry, for consecutive entries, and for entries at regular intervals."""
CHECKS = tuple(f"checks_{kind}" for kind in KINDS)
COLUMNS: Types = {
    "prefix": str,
    "type": str,
    "number": int,
    **dict.fromkeys(CHECKS, dict),
}


_pinned_file = partial(
    PinnedFile.of_repository, f"{_REPOSITORY}/{_COMMIT}/Dataset", target="longgenbench"
)
FILES = {
    16384: _pinned_file(
        "Dataset_short.json",
        "3cf98c4badc330a93d1010f57f6658b09f2ebc2e6428a3df083b652d902d96e8",
    ),
    32768: _pinned_file(
        "Dataset_long.json",
        "f61048da5ecfb1b717584af8b2dc5999198459e9b95aceedde2dcc6f5cdd35e7",
    ),
}


_CHECKS = Shape(
    "an object of texts by the numbers of entries",
    # Entries have shorter numbers, and Python refuses to convert a number of thousands of digits.
    lambda value: (
        isinstance(value, dict)
        and all(k.isdecimal() and len(k) < 10 and is_text(v) for k, v in value.items())
    ),
)
_RECORD_SHAPES = {
    "prefix": TEXT,
    "type": TEXT,
    "number": Shape(
        "a whole number from 1 to 9999",
        lambda value: is_whole(value) and 0 < value < 10_000,
    ),
    "average_checks": Shape(
        "a number above 0", lambda value: is_number(value) and value > 0
    ),
    **dict.fromkeys(CHECKS, _CHECKS),
}


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the prompts in file order, or only the first `num_samples` if that is given."""
    rows = JsonArray(root / FILES[settings.level].path, {"prompt": str, **COLUMNS})
    sample = list(islice(rows, task.sample(settings)))
    average = fmean(sum(len(row[name]) for name in CHECKS) for row in sample)
    for number, row in enumerate(sample):
        fields = {"input": row["prompt"]}
        tokens = task.output_tokens(settings)
        record = {**{name: row[name] for name in COLUMNS}, "average_checks": average}
        yield Example(
            id=f"{task.name}-{number}",
            fields=fields,
            references=[],
            source="official",
            record=record,
            answer_tokens=tokens,
        )


JUDGE = "together/llama-3.1-8b-instruct-turbo"
"""The default judge. The official one is Llama 3.1 8B Instruct on the authors' own server."""
_STOP = "*** finished"
SEPARATOR = "#*#"
_BY_KIND = tuple(f"judge_accuracy_{kind}" for kind in KINDS)
METRICS = (
    "judge_stic_2",
    "judge_stic_1",
    *_BY_KIND,
    "checks_made",
    "completion_rate",
    "output_words",
    "judge_stic_2_strict",
    "judge_spread",
)
_LEAST_BLOCKS = 40
_LEAST_WORDS = 2000
"""A text counts in the official mean number of words if it has more blocks and more words than these."""


def _split_text(record: ScorerInput) -> list[str]:
    """Split a text into its blocks. The prompt's last line is put before it, unless the text begins with an entry.

    Only completions are stopped at the stop sequence, so a chat's text is cut there.
    """
    text = record["prediction"].partition(_STOP)[0]
    if text.startswith(SEPARATOR):
        whole: str = text
    else:
        whole = record["prefix"] + text
    return whole.split(SEPARATOR)


def find_entries(blocks: list[str], name: str) -> dict[int, str]:
    """Return the first block of each number that follows an entry's name, such as `Week 7`."""
    entries: dict[int, str] = {}
    for block in blocks:
        match = re.search(rf"{re.escape(name)} (\d+)", block)
        if match and len(match[1]) < 10:
            entries.setdefault(int(match[1]), block)
    return entries


def judge_prompts(record: ScorerInput) -> dict[str, str]:
    """Return the judge's prompt for each check of an entry that the text has, by kind and number of the entry."""
    entries = find_entries(_split_text(record), record["type"])
    prompts = {}
    for kind, checks in zip(KINDS, CHECKS, strict=True):
        for number, event in record[checks].items():
            entry = entries.get(int(number))
            if entry is not None:
                prompt = JUDGE_PROMPT.format(entry=entry, event=event)
                prompts[f"{kind} {int(number)}"] = prompt
    return prompts


def is_yes(reply: Any) -> bool:
    """Return whether a reply contains "yes". As in the official code, any other reply is a no."""
    return isinstance(reply, str) and "yes" in reply.lower()


def score(record: ScorerInput) -> MetricValues:
    """Return how complete the text is, and how many checks the judge confirms, if the row has its columns."""
    if any(record.get(name) is None for name in COLUMNS):
        return {}
    blocks = _split_text(record)
    entries = find_entries(blocks, record["type"]).keys() & range(
        1, record["number"] + 1
    )
    scores = {"completion_rate": len(entries) / record["number"]}
    words = len(SEPARATOR.join(blocks).split())
    if len(blocks) > _LEAST_BLOCKS and words > _LEAST_WORDS:
        scores["output_words"] = words
    # Scores are relative to the checks of an average row, so that the mean over all rows is the official ratio of sums.
    checks = record.get("average_checks") or sum(len(record[name]) for name in CHECKS)
    if not checks:
        return scores
    asked = list(judge_prompts(record))
    judged = judge_scores(
        record, "judge_stic_2", partial(_score_replies, asked, checks)
    )
    return {
        **scores,
        "checks_made": len(asked) / checks,
        **judged,
    }


def _score_replies(asked: list[str], checks: float, replies: Any) -> MetricValues:
    """Score the replies of one judge by part. None may be missing. A text without entries to ask about scores 0."""
    if isinstance(replies, dict):
        given = [replies.get(part) for part in asked]
    else:
        given = [None]
    if not all(isinstance(reply, str) and reply for reply in given):
        return {}
    met = {}
    for part, reply in zip(asked, given, strict=True):
        met[part] = is_yes(reply)
    scores = {"judge_stic_2": sum(met.values()) / checks}
    for metric, kind in (("judge_stic_1", ""), *zip(_BY_KIND, KINDS, strict=True)):
        if of_kind := [value for part, value in met.items() if part.startswith(kind)]:
            scores[metric] = sum(of_kind) / len(of_kind)
    return scores


def write_entries(record: ScorerInput, tokens: int) -> str:
    """Return a text with all entries."""
    words = "word " * (tokens // record["number"])
    numbers = range(1, record["number"] + 1)
    return "".join(
        f"{SEPARATOR} {record['type']} {number}: {words}" for number in numbers
    )


_JUDGEMENT = Judgement(
    judge_prompts,
    lambda reply, record: {"met": float(is_yes(reply))},
    JUDGE_PROMPT,
    max_tokens=50,
    temperature=0.95,
    top_p=0.95,
    seed=42,
    readings=1,
    counts_silence=True,
    typical_answer=write_entries,
)


def write_headings(messages: Sequence[Message]) -> str | None:
    """Write 365 entries without a text. None if the prompt begins no entry."""
    name = re.search(
        rf"{re.escape(SEPARATOR)} (\D+) 1\b[^\n]*\Z", messages[-1]["content"]
    )
    return name and "".join(
        f"\n{SEPARATOR} {name[1]} {number}:" for number in range(2, 366)
    )


TEXTS = Task(
    name="texts",
    title="Texts",
    template=Template.whole("{input}"),
    sizes=BUDGETS,
    load=load,
    score=score,
    metrics=METRICS,
    max_tokens=BUDGETS,
    sources=lambda length: (FILES[length],) if length in FILES else (),
    variants={"paper": Variant(stop=(_STOP,), temperature=0.95)},
    official_judge=JUDGE,
    judgement=_JUDGEMENT,
    record_shapes={**REPLIES, **_RECORD_SHAPES},
    baseline=Baseline(write_headings, "The end."),
    **task_fields(__package__),
)

LONGGENBENCH = read_benchmark(
    __package__,
    (
        Category(
            "",
            "",
            (TEXTS,),
            judge="helm_longctx.benchmarks.longgenbench.judge.CheckAnnotator",
        ),
    ),
    published=partial(read_published, __package__, best=1),
)
