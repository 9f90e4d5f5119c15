"""RULER v2's twelve tasks.

Source: NVIDIA-NeMo/Gym at 07d6b0d, benchmarks/ruler2/prepare.py (parameters, number of samples, metrics); NVIDIA/RULER
at 4809570 (branch rulerv2-ns), README.md (output budget, temperature).
"""

from collections.abc import Iterator
from functools import partial

from helm_longctx.benchmarks.ruler2 import prompts, scoring
from helm_longctx.benchmarks.ruler2.baselines import choose_letter, copy_question, find_document
from helm_longctx.benchmarks.ruler2.generate import Samples, draw_needles, number_documents, number_questions
from helm_longctx.benchmarks.ruler2.material import HOTPOTQA, MMLU
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.generation import Script
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.task import TEXT_GROUP, AnswerKind, Baseline, Example, Scorer, Settings, Strategy, Task
from helm_longctx.tasks.template import Template

SAMPLES, MAX_TOKENS = 100, 16384

_ALL = partial(scoring.score_match, combine=scoring.match_all)
_PART = partial(scoring.score_match, combine=scoring.match_part)
_LAST = partial(scoring.score_match, combine=scoring.match_last)


def load(task: Task, settings: Settings, root: DataRoot, samples: Samples, evidence: str) -> Iterator[Example]:
    """Draw the samples of a task.

    Args:
        evidence: the start of the only piece of evidence, with placeholders for the first answer and the question;
            empty if there are several pieces.

    Raises:
        InputError: there is no tokenizer, or a file is malformed.
    """
    if settings.counter is None:
        raise InputError(f"{task.name}: count_with is missing; give the name or the folder of a tokenizer")
    # The length counts the prompt alone.
    script = Script(task.template, settings.counter, settings.level, 0, settings.seed, root)
    for number, draw in enumerate(samples(script, task.sample(settings))):
        fields, answers = draw.all_fields, draw.answers
        place = (
            fields["context"].find(evidence.format(answer=answers[0], query=draw.fields["query"])) if evidence else -1
        )
        depth = place / len(fields["context"]) if place >= 0 else None
        # All tasks ask the same questions of HotpotQA.
        group = f"{TEXT_GROUP}hotpotqa {number}" if HOTPOTQA in task.sources(settings.length) else ""
        yield Example(f"{task.name}-{number}", fields, answers, "official", depth=depth, group=group)


def _task(
    name: str,
    title: str,
    template: str,
    samples: Samples,
    score: Scorer,
    kind: AnswerKind | Strategy,
    constant: str = "0",
    evidence: str = "",
) -> Task:
    source = {"mk_niah_basic": (), "mv_niah_basic": ()}.get(name, (HOTPOTQA,) if name.startswith("qa") else (MMLU,))
    metric = "accuracy" if score is scoring.score_letter else "match"
    return Task(
        name=name,
        title=title,
        template=Template(template, "", separator=""),
        sizes={length: length for length in STANDARD.values()},
        unit="tokens",
        load=partial(load, samples=samples, evidence=evidence),
        score=score,
        headline=(metric,),
        metrics=(metric,),
        max_tokens=MAX_TOKENS,
        num_samples=SAMPLES,
        sources=lambda length: source,
        any_length=True,
        chat=True,
        arguments=("seed", "count_with"),
        cut="nothing",
        baseline=Baseline(kind, constant),
    )


def _solve(name: str, title: str, problem: str, ending: str) -> Task:
    samples = partial(number_questions, wanted="letter", problem=problem, ending=ending)
    return _task(
        f"mk_niah_{name}",
        f"Multi-key NIAH, {title}",
        prompts.SOLVE_CONTEXT + problem,
        samples,
        scoring.score_letter,
        choose_letter,
        "\\boxed{A}",
        evidence="Question {query}: ",
    )


def _copy(name: str, title: str, template: str, samples: Samples, score: Scorer = _ALL, evidence: str = "") -> Task:
    return _task(name, title, template, samples, score, copy_question, evidence=evidence)


def _ask(name: str, title: str, template: str, wanted: str, kind: AnswerKind | Strategy, evidence: str = "") -> Task:
    samples = partial(number_documents, wanted=wanted)
    return _task(f"qa_{name}", f"QA, {title}", template, samples, _PART, kind, evidence=evidence)


_questions = partial(number_questions, wanted="text")
_ordered = partial(number_questions, wanted="text", repeats=4)

_TASKS = (
    _task(
        "mk_niah_basic",
        "Multi-key NIAH, Basic",
        prompts.NEEDLE_ONE,
        partial(draw_needles, values=1),
        _ALL,
        "lookup",
        evidence="{answer}",
    ),
    _copy("mk_niah_easy", "Multi-key NIAH, Easy", prompts.COPY_ONE, _questions, evidence="Question {query}: "),
    _solve("medium", "Medium", prompts.SOLVE_STEPS, prompts.COPIED + prompts.SOLUTION),
    _solve("hard", "Hard", prompts.SOLVE, prompts.SOLUTION),
    _task(
        "mv_niah_basic",
        "Multi-value NIAH, Basic",
        prompts.NEEDLE_ALL,
        partial(draw_needles, values=4),
        _ALL,
        "lookup",
    ),
    _copy(
        "mv_niah_easy",
        "Multi-value NIAH, Easy",
        prompts.COPY_ALL,
        partial(number_questions, wanted="texts", repeats=4),
    ),
    _copy("mv_niah_medium", "Multi-value NIAH, Medium", prompts.COPY_STEPS, _ordered, _LAST),
    _copy("mv_niah_hard", "Multi-value NIAH, Hard", prompts.COPY_ONE, _ordered),
    _ask("basic", "Basic", prompts.FIND_TEXT, "text", find_document, evidence="Document {answer}:"),
    _ask("easy", "Easy", prompts.FIND_ANSWER, "documents", find_document),
    _ask("medium", "Medium", prompts.ANSWER_STEPS, "answer", "span"),
    _ask("hard", "Hard", prompts.ANSWER, "answer", "span"),
)

RULER2 = read_benchmark(__package__, (Category("", "", _TASKS),))
