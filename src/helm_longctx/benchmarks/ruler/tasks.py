"""RULER's thirteen tasks, tasks of needles that differ from them in one number, and the metrics.

Source: NVIDIA/RULER at c3f5e3b, scripts/synthetic.yaml (parameters), scripts/data/synthetic/constants.py (budgets),
scripts/config_tasks.sh (number of samples), scripts/eval/evaluate.py (`postprocess_pred`) and
scripts/eval/synthetic/constants.py (metrics). The official result is the mean over samples in percent, rounded to two
decimals.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from helm_longctx.benchmarks.ruler import generate, prompts
from helm_longctx.benchmarks.ruler.generate import ESSAYS, HOTPOTQA, SQUAD, WORDS
from helm_longctx.data.download import Source
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.tasks import STANDARD, Category, DataRoot, Template, read_benchmark, task_fields
from helm_longctx.tasks.benchmark import Sweep
from helm_longctx.tasks.generation import Samples, make_example, make_script
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.sentences import SENTENCE_TERMS
from helm_longctx.tasks.task import AnswerKind, Baseline, Example, Record, Scores, Settings, Task

_CONTROL = re.compile(r"[\x00-\x1f]")


def score_all(record: Record) -> Scores:
    """Return the share of the answers that the output contains, ignoring case (`string_match_all`)."""
    hits = _hits(record)
    return {"string_match_all": sum(hits) / len(hits)} if hits else {}


def score_any(record: Record) -> Scores:
    """Return whether the output contains one of the answers, ignoring case (`string_match_part`)."""
    hits = _hits(record)
    return {"string_match_part": float(any(hits))} if hits else {}


def _hits(record: Record) -> list[bool]:
    output = _CONTROL.sub("\n", record["prediction"].strip()).strip().lower()
    return [answer.lower() in output for answer in record["references"]]


SAMPLES = 500
NIAH = Template(prompts.NIAH_USER, prompts.NIAH_PREFIX, separator="")
NIAH_MULTI = Template(prompts.NIAH_MULTI_USER, prompts.NIAH_MULTI_PREFIX, separator="")
VT = Template("{example}" + prompts.VT_USER, prompts.VT_PREFIX, separator="")
CWE = Template("{example}" + prompts.CWE_USER, prompts.CWE_PREFIX, separator="")
FWE = Template(prompts.FWE_USER, prompts.FWE_PREFIX, separator="")
QA = Template(prompts.QA_USER, prompts.QA_PREFIX, separator="")
_ANSWERS: dict[Template, AnswerKind] = {VT: "chain", CWE: "frequency", FWE: "frequency", QA: "span"}

MANY_WORDS = STANDARD["128k"]
"""From this length on, lists of common words need more words than wonderwords has."""

NEEDLE_TOKENS, ANSWER_TOKENS = 128, 32
"""The official output budget of needles, which is enough for four answers, and its share for each of them."""


@take_sample
def load(task: Task, settings: Settings, root: DataRoot, samples: Samples) -> Iterator[Example]:
    """Draw the samples of a task."""
    script = make_script(task, settings, root, task.output_tokens(settings))
    for number, draw in enumerate(samples(script)):
        # Only a single needle has one depth; other tasks have several pieces of evidence.
        yield make_example(task, number, draw, draw.answers[0] if task.template is NIAH else None)


def _task(name: str, title: str, samples: Samples, template: Template, max_tokens: int, *sources: Source) -> Task:
    metric = "string_match_part" if template is QA else "string_match_all"
    return Task(
        name=name,
        title=title,
        template=template,
        sizes={length: length for length in STANDARD.values()},
        load=partial(load, samples=samples),
        score=score_any if template is QA else score_all,
        headline=(metric,),
        metrics=(metric,),
        max_tokens=max_tokens,
        num_samples=SAMPLES,
        sources=lambda length: tuple(each for each in sources if each is not WORDS or (length or 0) >= MANY_WORDS),
        baseline=Baseline(_ANSWERS.get(template, "lookup"), "0"),
        **task_fields(__package__),
    )


def _needles(name: str, title: str, haystack: str, **arguments: Any) -> Task:
    template = NIAH_MULTI if {"values", "queries"} & {*arguments} else NIAH
    samples = partial(generate.draw_needles, haystack=haystack, **arguments)
    # More than four answers need more tokens than the official budget.
    budget = max(NEEDLE_TOKENS, ANSWER_TOKENS * arguments.get("values", 1) * arguments.get("queries", 1))
    sources = (ESSAYS, SENTENCE_MODEL) if haystack == "essay" else ()
    return _task(f"niah_{name}", f"NIAH {title}", samples, template, budget, *sources)


_TASKS = (
    _needles("single_1", "Single 1", "noise"),
    _needles("single_2", "Single 2", "essay"),
    _needles("single_3", "Single 3", "essay", value_kind="uuids"),
    _needles("multikey_1", "Multi-key 1", "essay", keys=4),
    _needles("multikey_2", "Multi-key 2", "needle"),
    _needles("multikey_3", "Multi-key 3", "needle", key_kind="uuids", value_kind="uuids"),
    _needles("multivalue", "Multi-value", "essay", values=4),
    _needles("multiquery", "Multi-query", "essay", queries=4),
    _task("vt", "Variable Tracking", generate.track_variables, VT, 30),
    _task("cwe", "Common Words", generate.list_common_words, CWE, 120, WORDS),
    _task("fwe", "Frequent Words", generate.write_coded_texts, FWE, 50),
    _task("qa_1", "QA (SQuAD)", partial(generate.ask_questions, read=generate.read_squad), QA, 32, SQUAD),
    _task("qa_2", "QA (HotpotQA)", partial(generate.ask_questions, read=generate.read_hotpotqa), QA, 32, HOTPOTQA),
)

_MORE_NEEDLES = tuple(
    _needles(f"{part}_{number}", f"{number} {part.title()}", "essay", **{part: number})
    for part in ("keys", "values", "queries")
    for number in (2, 8, 16)
)
"""Needles as in RULER's tasks with four keys, values or queries. There are only 40 places for needles in essays."""


def _sweep(part: str, four: str, about: str) -> Sweep:
    """Return the tasks with 1 to 16 keys, values or queries, of which RULER has those with one and with four."""
    own = {1: "niah_single_2", 4: four}
    return Sweep(part.title(), about, {str(n): own.get(n, f"niah_{part}_{n}") for n in (1, 2, 4, 8, 16)})


_SWEEPS = (
    _sweep("keys", "niah_multikey_1", "Number of keys. One is asked for, and the needles of the others distract."),
    _sweep("values", "niah_multivalue", "Number of values of one key, which are all asked for."),
    _sweep("queries", "niah_multiquery", "Number of keys with one value each, which are all asked for."),
    Sweep(
        "Distractors",
        "What surrounds the needle: a repeated passage, essays, or other needles.",
        {"noise": "niah_single_1", "essays": "niah_single_2", "needles": "niah_multikey_2"},
    ),
)

_ALL = {task.name: task for task in (*_TASKS, *_MORE_NEEDLES)}
_SWEPT = tuple(_ALL[name] for name in dict.fromkeys(name for sweep in _SWEEPS for name in sweep.tasks.values()))


RULER = read_benchmark(
    __package__,
    (Category("", "", _TASKS), Category("needles", "Needle Complexity", _SWEPT, averaged=False)),
    sweeps=_SWEEPS,
    data=SENTENCE_TERMS,
)
