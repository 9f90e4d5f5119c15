"""LongQA: questions about books and scripts."""

from functools import partial

from helm_longctx.benchmarks.helmet import asking, prompts, scoring, verdicts
from helm_longctx.benchmarks.helmet.categories.common import infbench_file, make_task, text_sizes
from helm_longctx.benchmarks.helmet.data import books
from helm_longctx.benchmarks.helmet.data.length_tokenizer import LLAMA_2
from helm_longctx.benchmarks.helmet.release import repository_file
from helm_longctx.benchmarks.helmet.verdicts import JUDGE
from helm_longctx.data.download import Source
from helm_longctx.data.hub import HubDataset
from helm_longctx.data.release import PinnedFile
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.judge_scores import REPLIES
from helm_longctx.tasks.task import AnswerKind, Baseline, Loader, Scorer, Task
from helm_longctx.tasks.template import Template

_JUDGED_ANSWER = (*scoring.ANSWER_METRICS, *verdicts.ANSWER_METRICS)


def _long_qa(
    name: str,
    title: str,
    template: Template,
    load: Loader,
    score: Scorer,
    headline: str,
    max_tokens: int,
    *sources: Source,
    rubric: PinnedFile | None = None,
    answer: AnswerKind = "span",
) -> Task:
    return make_task(
        name=name,
        title=title,
        template=template,
        sizes=text_sizes(max_tokens),
        unit="tokens of text",
        load=load,
        score=score,
        headline=(headline,),
        metrics=_JUDGED_ANSWER if rubric else scoring.ANSWER_METRICS,
        max_tokens=max_tokens,
        shots=2,
        sources=lambda length: (*sources, LLAMA_2),
        chat=True,
        arguments=("shots", "seed", "context"),
        official_judge=JUDGE if rubric else None,
        judge_sources={"rubric": rubric} if rubric else {},
        record_shapes=REPLIES if rubric else {},
        baseline=Baseline(answer, "A"),
        question_only=asking.BOOK_CHOICE if answer == "choice" else asking.BOOK_QUESTION,
    )


_NARRATIVEQA_ROWS = {"train": 32747, "test": 10557}
_NARRATIVEQA_COLUMNS = {"train": ("question", "answers"), "test": ("document.text", "question", "answers")}
LONGQA = (
    _long_qa(
        "narrativeqa",
        "NarrativeQA",
        Template(prompts.NARRATIVEQA_USER, prompts.NARRATIVEQA_PREFIX),
        books.load_narrativeqa,
        scoring.score_narrativeqa,
        "judge_score",
        100,
        HubDataset(
            "narrativeqa",
            _NARRATIVEQA_ROWS,
            repo="deepmind/narrativeqa",
            columns=_NARRATIVEQA_COLUMNS,
            labelled=False,
        ),
        rubric=repository_file(
            "scripts/eval_gpt4_longqa.py", "9297b773cdfda8bc4f7bd52ebdac35bbd5cfefc3b3f716730dc8fdf6b910c3b7"
        ),
    ),
    _long_qa(
        "infbench_qa",
        "InfiniteBench QA",
        Template(prompts.INFBENCH_QA_USER, prompts.INFBENCH_PREFIX, separator="\n\n"),
        partial(books.load_infbench, convert=books.infbench_question, demo=prompts.INFBENCH_QA_DEMO),
        scoring.score_qa,
        "rougeL_f1",
        10,
        infbench_file("longbook_qa_eng"),
    ),
    _long_qa(
        "infbench_choice",
        "InfiniteBench MC",
        Template(prompts.INFBENCH_CHOICE_USER, prompts.INFBENCH_PREFIX, separator="\n\n"),
        partial(books.load_infbench, convert=books.infbench_choice, demo=prompts.INFBENCH_CHOICE_DEMO),
        scoring.score_choice,
        "exact_match",
        10,
        infbench_file("longbook_choice_eng"),
        answer="choice",
    ),
)

CATEGORY = Category("longqa", "LongQA", LONGQA, judge="helm_longctx.benchmarks.helmet.judge.RubricAnnotator")
