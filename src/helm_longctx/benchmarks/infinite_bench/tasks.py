"""∞Bench's twelve tasks with the prompts of three families of models.

Source: OpenBMB/InfiniteBench at 88b3daa, src/eval_gpt4.py, src/eval_yarn_mistral.py and src/eval_utils.py.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from helm_longctx.benchmarks.infinite_bench import prompts, scoring
from helm_longctx.benchmarks.infinite_bench.data import find_source, load
from helm_longctx.tasks import NO_TEMPLATE, Category, Task, Template, Variant, choices, read_benchmark
from helm_longctx.tasks.task import AnswerKind, Baseline


class Row(NamedTuple):
    """A task: its published title, number of examples, output budget of base models, metric and baseline answers.

    Retrieve.Number has none: the baselines cannot tell its prompts from HELMET's needles.
    """

    title: str
    samples: int
    max_tokens: int
    metric: str
    compare: scoring.Compare
    kind: AnswerKind | None
    constant: str


ROWS = {
    "passkey": Row("Retrieve.PassKey", 590, 6, "accuracy", scoring.has_first_digits, "span", "12345"),
    "number_string": Row("Retrieve.Number", 590, 12, "accuracy", scoring.has_first_digits, None, ""),
    "kv_retrieval": Row("Retrieve.KV", 500, 50, "accuracy", scoring.has_word, "lookup", "0"),
    "longbook_sum_eng": Row("En.Sum", 103, 1200, "rougeLsum", choices.rouge_l_sum, "summary", "It is a long book."),
    "longbook_qa_eng": Row("En.QA", 351, 40, "f1", scoring.best_english_f1, "span", "the"),
    "longbook_choice_eng": Row("En.MC", 229, 40, "accuracy", choices.find_choice, "choice", "A"),
    "longdialogue_qa_eng": Row("En.Dia", 200, 40, "accuracy", scoring.has_name, "frequency", "JOHN"),
    "longbook_qa_chn": Row("Zh.QA", 189, 40, "f1", choices.best_character_f1, "span", "的"),
    "code_debug": Row("Code.Debug", 394, 5, "accuracy", scoring.find_function, "choice", "A."),
    "code_run": Row("Code.Run", 400, 5, "accuracy", scoring.has_last_number, "span", "0"),
    "math_calc": Row("Math.Calc", 50, 30000, "value_share", scoring.count_values, "span", "0"),
    "math_find": Row("Math.Find", 350, 3, "accuracy", scoring.has_first_number, "span", "0"),
}
"""The tasks by their official names."""

API_TOKENS = 4096
"""Output budget of chats. The official code sets none; GPT-4 Turbo, which it asks, writes at most this many tokens."""


def _task(name: str, suffix: str, templates: Mapping[str, str], variant: Variant, chat: bool) -> Task:
    row, compare = ROWS[name], ROWS[name].compare
    conversation = name not in templates
    if conversation:
        # GPT-4 repeats the first number of the expression before the values (`get_score_one_math_calc`).
        compare = partial(scoring.count_values, skipped=1)
    return Task(
        name=name + suffix,
        alias=name if suffix else "",
        title=row.title,
        template=NO_TEMPLATE if conversation else Template(templates[name], "", separator=""),
        load=load,
        score=partial(scoring.score, metric=row.metric, compare=compare),
        headline=(row.metric,),
        metrics=(row.metric,),
        max_tokens=API_TOKENS if chat else row.max_tokens,
        num_samples=row.samples,
        sources=lambda length: (find_source(name),),
        chat=chat,
        variants={"paper": Variant(temperature=variant.temperature) if conversation else variant},
        # The expression stands in the last turn, and only a first turn can be cut.
        cut="nothing" if conversation else "middle_joined",
        baseline=Baseline(row.kind, row.constant) if row.kind and not conversation else None,
    )


def _category(name: str, title: str, templates: Mapping[str, str], variant: Variant, chat: bool) -> Category:
    """Return the tasks with the prompts of a family of models."""
    tasks = (_task(task, f"_{name}" if name else "", templates, variant, chat) for task in ROWS)
    return Category(name, title, tuple(tasks), averaged=not name)


_CATEGORIES = (
    _category("", "", prompts.CHAT, Variant(system=prompts.SYSTEM, temperature=1.0), chat=True),
    _category("base", "Base Models", prompts.BASE, Variant(), chat=False),
    _category("claude", "Claude", prompts.CLAUDE, Variant(temperature=1.0), chat=True),
)

INFINITE_BENCH = read_benchmark(__package__, _CATEGORIES)
