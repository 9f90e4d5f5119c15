"""CorpusQA's four domains at four lengths.

Source: Tongyi-Zhiwen/CorpusQA at f5b5764, src/infer.py (temperature), src/eval.py (domains) and CorpusQA_paper.pdf
(Tables 2 and 3: lengths, numbers of questions).
"""

import re
from collections.abc import Sequence
from functools import partial

from helm_longctx.benchmarks.corpusqa.data import QUESTION, load, source_of
from helm_longctx.benchmarks.corpusqa.scoring import JUDGE, JUDGEMENT, score
from helm_longctx.tasks import NO_TEMPLATE, Baseline, Category, Message, Task, read_benchmark
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES
from helm_longctx.tasks.lengths import parse_length

SIZES = {
    parse_length(label): tokens
    for label, tokens in {"128k": 92_500, "1m": 905_000, "4m": 3_710_000, "10m": 7_840_000}.items()
}
"""The mean number of tokens of the documents at each length."""
BUDGET = 8192
"""The output budget in tokens; the official code sets none."""

DOMAINS = {
    "financial_zh": ("Finance, Chinese", 83),
    "financial_en": ("Finance, English", 83),
    "education_en": ("Education", 82),
    "real_estate_en": ("Real Estate", 81),
}
"""Title and number of questions of each domain."""

_WORD = re.compile(r"[^\W\d_]{4,}|[\u4e00-\u9fff]{2}")
_SHOWN = 200


def answer_line(messages: Sequence[Message]) -> str | None:
    """Answer with the line that shares most words with the question; None if the prompt is not one of CorpusQA's."""
    documents, _, asked = messages[-1]["content"].rpartition(QUESTION)
    if not documents or "The answer is:" not in asked:
        return None
    words = set(_WORD.findall(asked.partition("\n")[0].lower()))
    best = max(documents.split("\n"), key=lambda line: len(words.intersection(_WORD.findall(line.lower()))))
    return f"The answer is: {best.strip()[:_SHOWN]}"


def _task(name: str) -> Task:
    title, questions = DOMAINS[name]
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        load=partial(load, domains=tuple(DOMAINS)),
        score=score,
        headline=("judge_score",),
        metrics=JUDGED,
        max_tokens=BUDGET,
        sizes=SIZES,
        unit="tokens of documents",
        num_samples=questions,
        sources=lambda length: (source_of(length),),
        chat=True,
        official_judge=JUDGE,
        judgement=JUDGEMENT,
        cut="nothing",
        record_shapes=REPLIES,
        baseline=Baseline(answer_line, "The answer is: []"),
    )


CORPUSQA = read_benchmark(
    __package__, (Category("", "", tuple(map(_task, DOMAINS)), judge=f"{__package__}.judge.EquivalenceAnnotator"),)
)
