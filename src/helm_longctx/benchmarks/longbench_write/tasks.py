"""LongBench-Write's tasks, and LongWrite-Ruler.

Source: THUDM/LongWriter at 3fcfdff, evaluation/pred.py (temperature, output budget).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.longbench_write import scoring
from helm_longctx.benchmarks.longbench_write.data import COMMIT, FILES, REPOSITORY, RUBRIC, load
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms
from helm_longctx.tasks.judge_scores import REPLIES, SPREAD
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.task import TEXT, Baseline, Shape, Task, Variant, is_whole
from helm_longctx.tasks.template import Template

BUDGET = 32768
LONGEST_REQUEST = 1000
REQUIRED_LENGTH = Shape("a whole number from 1 on", lambda value: is_whole(value) and value > 0)

_REQUIRED = re.compile(r"(?<!\d)(\d{2,5})\s*-?(?:words?\b|字)")


def repeat_request(messages: Sequence[Message]) -> str | None:
    """Repeat a short request until it has the number of words that it names; None if it names none."""
    request = messages[-1]["content"]
    # Requests have no fixed words. The limit on their length tells them from the prompts of other benchmarks.
    required = _REQUIRED.findall(request) if len(request) <= LONGEST_REQUEST else []
    if not required:
        return None
    return "\n".join([request] * max(max(map(int, required)) // max(scoring.count_words(request), 1), 1))


def _task(name: str, title: str, samples: int) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template("{input}", "", separator=""),
        load=load,
        score=scoring.score,
        headline=scoring.HEADLINE,
        metrics=scoring.METRICS,
        max_tokens=BUDGET,
        num_samples=samples,
        sources=lambda length: (FILES[name],),
        chat=True,
        variants={"paper": Variant(temperature=0.5)},
        official_judge=scoring.JUDGE,
        judge_sources={"rubric": RUBRIC},
        cut="nothing",
        record_shapes={"length": REQUIRED_LENGTH, **REPLIES, "rubric": TEXT},
        baseline=Baseline(repeat_request, "Once upon a time."),
    )


REQUESTS = _task("requests", "Requests", 120)
ENGLISH = _task("english_requests", "English requests", 60)
RULER = replace(
    _task("longwrite_ruler", "LongWrite-Ruler", 48),
    score=scoring.score_text_length,
    headline=(),
    metrics=scoring.LENGTH_METRICS,
    official_judge=None,
    judge_sources={},
    record_shapes={"length": REQUIRED_LENGTH},
    unscored="its result is the length of the longest text, the maximum of output_words",
)
ANNOTATOR = "helm_longctx.benchmarks.longbench_write.judge.QualityAnnotator"

_metric = partial(Metric, range=None)
"""A metric without bounds: a judge can give grades that its rubric does not allow."""

LONGBENCH_WRITE = Benchmark(
    name="longbench_write",
    title="LongBench-Write",
    description="LongWriter: Unleashing 10,000+ Word Generation from Long Context LLMs (arXiv 2408.07055)",
    revision=f"{REPOSITORY}@{COMMIT[:7]}",
    comparability=2,
    url=f"https://github.com/{REPOSITORY}/tree/{COMMIT[:7]}/evaluation",
    data={
        "https://github.com/THUDM/LongWriter": Terms("Apache-2.0"),
    },
    categories=(
        Category("", "", (REQUESTS,), judge=ANNOTATOR),
        Category("english", "English", (ENGLISH,), averaged=False, judge=ANNOTATOR),
        Category("ruler", "Ruler", (RULER,), averaged=False),
    ),
    metrics=(
        Metric("length_score", "Length score", "How close the text is to the required length (S_l in the paper)."),
        _metric("judge_score", "Quality score", "Mean of the judge's six grades, rescaled to between 0 and 1 (S_q)."),
        _metric("output_words", "Words", "Number of English words and Chinese characters.", lower_is_better=None),
        *(_metric(*row, "A grade of the judge, rescaled to between 0 and 1.") for row in scoring.GRADES.items()),
        *(
            _metric(name, name.replace("_", " ").capitalize(), "The score of requests in this class of length.")
            for name in scoring.BY_CLASS
        ),
        _metric("judge_score_strict", "Quality score, strict", "The quality score, with 0 for a text without grades."),
        replace(SPREAD, range=None),
    ),
    axis=None,
)
