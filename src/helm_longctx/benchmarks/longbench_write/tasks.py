"""LongBench-Write's tasks, and LongWrite-Ruler.

Source: THUDM/LongWriter at 3fcfdff, evaluation/pred.py (temperature, output budget).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from helm_longctx.benchmarks.longbench_write import scoring
from helm_longctx.benchmarks.longbench_write.data import FILES, RUBRIC, load
from helm_longctx.tasks import Baseline, Category, Message, Task, Template, Variant, read_benchmark
from helm_longctx.tasks.judge_scores import REPLIES
from helm_longctx.tasks.task import TEXT, Shape, is_whole

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
        judgement=scoring.JUDGEMENT,
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
    judgement=None,
    judge_sources={},
    record_shapes={"length": REQUIRED_LENGTH},
    unscored="its result is the length of the longest text, the maximum of output_words",
)
ANNOTATOR = "helm_longctx.benchmarks.longbench_write.judge.QualityAnnotator"


LONGBENCH_WRITE = read_benchmark(
    __package__,
    (
        Category("", "", (REQUESTS,), judge=ANNOTATOR),
        Category("english", "English", (ENGLISH,), averaged=False, judge=ANNOTATOR),
        Category("ruler", "Ruler", (RULER,), averaged=False),
    ),
)
