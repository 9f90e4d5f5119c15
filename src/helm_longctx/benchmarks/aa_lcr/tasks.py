"""AA-LCR's task, in versions 1.0 and 1.1."""

from dataclasses import replace

from helm_longctx.benchmarks.aa_lcr import data
from helm_longctx.benchmarks.aa_lcr.prompts import PROMPT, PROMPT_1_1
from helm_longctx.benchmarks.aa_lcr.scoring import JUDGE, JUDGE_1_1, JUDGEMENT, JUDGEMENT_1_1, score, score_1_1
from helm_longctx.tasks import Baseline, Category, Task, Template, read_benchmark
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES

_QUESTIONS = Task(
    name="questions",
    title="Questions",
    # The prompt has no answer prefix, so chats and completions have the same text.
    template=Template(PROMPT, "", separator=""),
    sizes={},
    unit="questions",
    load=data.load,
    score=score,
    headline=("judge_score",),
    metrics=JUDGED,
    max_tokens=data.BUDGET,
    num_samples=data.QUESTIONS,
    sources=lambda length: (data.SOURCE,),
    chat=True,
    official_judge=JUDGE,
    judgement=JUDGEMENT,
    cut="nothing",
    record_shapes=REPLIES,
    repeats=data.REPEATS,
    baseline=Baseline("span", "It is not known."),
)

_QUESTIONS_1_1 = replace(
    _QUESTIONS,
    name="questions_v1_1",
    title="Questions, version 1.1",
    template=Template(PROMPT_1_1, "", separator=""),
    load=data.load_1_1,
    score=score_1_1,
    sources=lambda length: (data.QUESTIONS_1_1, data.DOCUMENTS_1_1),
    official_judge=JUDGE_1_1,
    judgement=JUDGEMENT_1_1,
)

AA_LCR = read_benchmark(
    __package__,
    (
        Category("", "", (_QUESTIONS,), judge=f"{__package__}.judge.VerdictAnnotator"),
        Category("v1_1", "1.1", (_QUESTIONS_1_1,), averaged=False, judge=f"{__package__}.judge.VerdictAnnotator11"),
    ),
)
