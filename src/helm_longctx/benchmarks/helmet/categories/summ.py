"""Summ: summaries of books and of legal documents."""

from functools import partial

from helm_longctx.benchmarks.helmet import prompts, records, scoring, verdicts
from helm_longctx.benchmarks.helmet.categories.common import infbench_file, make_task, text_sizes
from helm_longctx.benchmarks.helmet.data import books
from helm_longctx.benchmarks.helmet.data.length_tokenizer import LLAMA_2
from helm_longctx.benchmarks.helmet.release import release_file, repository_file
from helm_longctx.benchmarks.helmet.verdicts import JUDGE
from helm_longctx.data.download import Source
from helm_longctx.data.hub import HubDataset
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.task import Baseline, Loader, Scorer, Task
from helm_longctx.tasks.template import Template

_SUMMARY_RUBRIC = repository_file(
    "scripts/eval_gpt4_summ.py", "ad89dd22953326c4036772da97d00904dbaf74129b04e5ea9cc8f6cf75b70bde"
)


def _summary(
    name: str,
    title: str,
    template: Template,
    load: Loader,
    score: Scorer,
    max_tokens: int,
    around: int,
    *sources: Source,
) -> Task:
    # Only the judge needs the key points, so a run without a judge does not fetch them.
    *needed, keypoints = sources
    return make_task(
        name=name,
        title=title,
        template=template,
        sizes=text_sizes(max_tokens, around),
        unit="tokens of text",
        load=load,
        score=score,
        headline=("judge_f1",),
        metrics=(*scoring.ANSWER_METRICS, *verdicts.SUMMARY_METRICS),
        max_tokens=max_tokens,
        shots=2,
        sources=lambda length: (*needed, LLAMA_2),
        chat=True,
        arguments=("shots", "seed"),
        official_judge=JUDGE,
        judge_sources={"keypoints": keypoints, "rubric": _SUMMARY_RUBRIC},
        record_shapes=records.SUMMARY,
        baseline=Baseline("summary", "It is a long text."),
    )


SUMM = (
    _summary(
        "infbench_sum",
        "InfiniteBench Sum",
        Template(prompts.INFBENCH_SUM_USER, prompts.INFBENCH_SUM_PREFIX, separator="\n\n"),
        partial(books.load_infbench, convert=books.infbench_book, demo=prompts.INFBENCH_SUM_DEMO),
        scoring.score_book_summary,
        1200,
        200,
        infbench_file("longbook_sum_eng"),
        release_file("infbench/longbook_sum_eng_keypoints.jsonl"),
    ),
    _summary(
        "multi_lexsum",
        "Multi-LexSum",
        Template(prompts.LEXSUM_USER, prompts.LEXSUM_PREFIX, separator="\n\n"),
        books.load_lexsum,
        scoring.score_lexsum,
        400,
        300,
        HubDataset("allenai/multi_lexsum", {"train": 3177, "validation": 454}, parquet="v20230518", labelled=False),
        release_file("multi_lexsum/multi_lexsum_val.jsonl"),
    ),
)

CATEGORY = Category("summ", "Summ", SUMM, judge="helm_longctx.benchmarks.helmet.judge.RubricAnnotator")
