"""LongBench Pro's 25 tasks, with the prompts that ask for the answer alone and those that ask to think first.

Source: caskcsg/longcontext at 88fbeb8, LongBench-Pro/modules/evaluation.py (`task_metric_config`) and README.md
(budgets, repeats, temperature); Table 2 of arXiv 2601.02872 (which tasks need the whole text).
"""

from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.longbench_pro.baseline import answer_lines
from helm_longctx.benchmarks.longbench_pro.data import SOURCE, load
from helm_longctx.benchmarks.longbench_pro.prompts import PROMPT
from helm_longctx.benchmarks.longbench_pro.scoring import (
    BY_CLASS,
    SIMILARITY,
    score_lines,
    score_summary,
)
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.task import TEXT, Baseline, Task, Variant
from helm_longctx.tasks.template import Template

EMBEDDING_MODEL = "Qwen/Qwen3-Embedding-8B@1d8ad4ca9b3dd8059ad90a75d4983776a23d44af"
"""The official model for the similarity of summaries. The official code pins no commit."""
EMBEDDING_BYTES = 36 * 1024**3
"""Free GPU memory in bytes that it needs with 32-bit weights, which the official code uses, and room for its inputs."""

PER_LENGTH = 10
"""Questions of a task at a length: five in each language."""
SIZES = {STANDARD[label]: PER_LENGTH for label in ("8k", "16k", "32k", "64k", "128k", "256k")}
BUDGET, THINKING_BUDGET = 1024, 8192

TASKS = {
    "T1.1 Global Cohesive Retrieval": "ndcg",
    "T1.2 Key-Snippet Retrieval": "ndcg",
    "T2.1 Global Timeline Reconstruction": "pairwise_accuracy",
    "T2.2 Local Causal Chain Sorting": "pairwise_accuracy",
    "T3.1 Multi-Doc Integration QA": "accuracy",
    "T3.2 Single-Hop Fact QA": "accuracy",
    "T4.1 Global-Coverage Constrained Summary": "summary",
    "T4.2 Query-Focused Summary": "summary",
    "T5.1 Full-Sentence Citation Alignment": "f1_score",
    "T5.2 Key-Statement Citation Alignment": "f1_score",
    "T6.1 Large-Scale Document Clustering": "sub_em",
    "T6.2 Targeted Subset Cluster Identification": "f1_score",
    "T6.3 Global Frequency Analysis": "pairwise_accuracy",
    "T7.1 Global Conflict & Inconsistency Localization": "f1_score",
    "T7.2 Targeted Rule or Condition Violation Detection": "f1_score",
    "T7.3 Comprehensive Error & Anomaly Sweep": "f1_score",
    "T8.1 Structured Multi-Source Consistency Verification": "sub_em",
    "T8.2 Single-Source Targeted Aggregation": "sub_em",
    "T8.3 Long-Context Procedural State Tracking": "sub_em",
    "T9.1 Dependency-Aware Multi-Version Impact Analysis": "f1_score",
    "T9.2 Localized Interface Change Detection": "f1_score",
    "T10.1 Large-Scale In-Context Rule Induction": "sub_em",
    "T10.2 Targeted Example-Based Rule Induction": "sub_em",
    "T11.1 Long-Range Entity & Commitment Tracking": "accuracy",
    "T11.2 Short-Range Reference Resolution & State Query": "accuracy",
}
"""The metric of each secondary task, by its name in the file."""

PARTIAL = ("t1_2", "t2_2", "t3_2", "t4_2", "t5_2", "t6_2", "t7_2", "t8_2", "t9_2", "t10_2", "t11_2")
"""The tasks that need only a part of the text."""

_SHAPES = {"language": TEXT, "difficulty": TEXT}


def name_of(secondary_task: str) -> str:
    """Return a task's name from its name in the file: `t1_1` for `T1.1 Global Cohesive Retrieval`."""
    return secondary_task.partition(" ")[0].lower().replace(".", "_")


def _task(secondary_task: str, metric: str) -> Task:
    is_summary, name = metric == "summary", name_of(secondary_task)
    return Task(
        name=name,
        title=secondary_task,
        template=Template(PROMPT, "", separator=""),
        load=partial(load, secondary_task=secondary_task, question="question_nonthinking"),
        score=score_summary if is_summary else partial(score_lines, metric=metric),
        headline=(metric,),
        metrics=(metric, "passed", *BY_CLASS, *(("rouge_l", "similarity") if is_summary else ())),
        max_tokens=BUDGET,
        sizes=SIZES,
        unit="questions",
        num_samples=PER_LENGTH,
        sources=lambda length: (SOURCE,),
        chat=True,
        variants={"paper": Variant(temperature=1.0)},
        official_judge=EMBEDDING_MODEL.partition("@")[0] if is_summary else None,
        cut="middle_joined",
        record_shapes=_SHAPES | ({"similarity": SIMILARITY} if is_summary else {}),
        repeats=3,
        trait="" if name in PARTIAL else "whole text",
        baseline=Baseline(answer_lines, "[Answer]\nA"),
    )


def _thinking(task: Task) -> Task:
    return replace(
        task,
        name=f"{task.name}_thinking",
        alias=task.name,
        title=f"{task.title}, thinking",
        load=partial(load, secondary_task=task.title, question="question_thinking"),
        max_tokens=THINKING_BUDGET,
    )


_TASKS = tuple(_task(*item) for item in TASKS.items())
_JUDGE = f"{__package__}.judge.SimilarityAnnotator"

LONGBENCH_PRO = read_benchmark(
    __package__,
    (
        Category("", "", _TASKS, judge=_JUDGE),
        Category("thinking", "Thinking", tuple(map(_thinking, _TASKS)), averaged=False, judge=_JUDGE),
    ),
)
