"""The tasks of `any_jsonl`: the same questions, scored by one metric or another."""

from helm_longctx.benchmarks.any_jsonl.data import DISTRACTORS, QUESTIONS, RUBRIC, load
from helm_longctx.benchmarks.any_jsonl.prompts import PROMPT
from helm_longctx.benchmarks.any_jsonl.scoring import COMPARE, JUDGEMENT, score, score_judged
from helm_longctx.tasks import STANDARD, TEXT, Baseline, Category, Metric, Task, read_benchmark
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES

BUDGET = 512
"""The output budget in tokens; HELM's `num_output_tokens=` changes it."""
MAX_SAMPLES = 100_000
"""A limit on the number of questions, larger than any file needs."""
RUBRIC_TASK = "rubric"
JUDGE = "openai/gpt-4o-2024-05-13"
"""The judge if the run entry names none. It is also HELMET's judge."""

METRICS = (
    Metric("contains", "Contains", "Whether the output contains an accepted answer, ignoring case.", success=True),
    Metric("exact_match", "Exact match", "Whether the output has the same words as an accepted answer.", success=True),
    Metric("f1", "F1", "F1 of the words of the output with the best answer."),
    Metric("rouge_l", "ROUGE-L", "ROUGE-L of the output with the best answer, by the package rouge."),
)
"""The metrics that need no judge. For each of them there is a task whose score it is."""
GRADE = Metric("judge_score", "Judged score", "The judge's grade by the rubric, divided by ten.")


def _task(name: str, title: str, headline: Metric, judged: bool = False) -> Task:
    return Task(
        name=name,
        title=title,
        template=PROMPT,
        sizes={length: length for length in STANDARD.values()},
        unit="tokens",
        load=load,
        score=score_judged if judged else score,
        headline=(headline.name,),
        metrics=(*COMPARE, *(JUDGED if judged else ())),
        max_tokens=BUDGET,
        num_samples=MAX_SAMPLES,
        own_files=(QUESTIONS, DISTRACTORS, *((RUBRIC,) if judged else ())),
        any_length=True,
        chat=True,
        arguments=("path", "count_with"),
        official_judge=JUDGE if judged else None,
        judgement=JUDGEMENT if judged else None,
        record_shapes={**REPLIES, "rubric": TEXT} if judged else {},
        baseline=Baseline("label_or_span", "I do not know."),
    )


_TASKS = (
    *(_task(metric.name, metric.title, metric) for metric in METRICS),
    _task(RUBRIC_TASK, "Rubric", GRADE, judged=True),
)

ANY_JSONL = read_benchmark(
    __package__, (Category("", "", _TASKS[:1], _TASKS[1:], judge=f"{__package__}.judge.RubricAnnotator"),)
)
