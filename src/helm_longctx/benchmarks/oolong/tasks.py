"""OOLONG's tasks: ten data sets of classified texts, with and without labels, transcripts of games, and OOLONG-Pairs.

Source: abertsch72/oolong at adbf1cb; arXiv 2511.02817, tables 1 and 4; arXiv 2512.24601v2, appendix D.1.
"""

from functools import partial

from helm_longctx.benchmarks.oolong import data, pairs, scoring
from helm_longctx.benchmarks.oolong.baselines import answer_pairs, answer_real, answer_synth
from helm_longctx.benchmarks.oolong.prompts import INPUT, PAIR_CONDITIONS
from helm_longctx.tasks import TEXT, Baseline, Category, Task, Template, Variant, read_benchmark, task_fields

TEST = {
    "agnews": "AGNews",
    "app_reviews": "App Reviews",
    "formality": "Formality",
    "imdb": "IMDB",
    "metaphors": "Metaphors",
    "multinli": "MultiNLI",
    "negation": "Negation",
    "yahoo": "Yahoo Topics",
}
"""The data sets whose questions are the published score."""

VALIDATION = {"spam": "Spam", "trec_coarse": "TREC"}

_LENGTHS = {1 << power: 1 << power for power in range(10, 23)}
"""1k to 4m."""

_EPISODES = {number * data.EPISODE_TOKENS: number for number in (1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 24)}

_REAL_SAMPLES = 1000
"""No length has as many questions on transcripts, so all of them are asked."""

_task = partial(
    Task,
    template=Template(INPUT, "", separator=""),
    # The official code sends no temperature, and the default of most APIs is 1.
    variants={"paper": Variant(temperature=1.0), "api": Variant(temperature=1.0)},
    **task_fields(__package__),
)


def _synth_task(name: str, column: str) -> Task:
    split = "test" if name in TEST else "validation"
    return _task(
        name=name if column == data.TEXT else f"{name}_labels",
        alias=name,
        title={**TEST, **VALIDATION}[name] + ("" if column == data.TEXT else ", labels given"),
        load=partial(data.load_synth, column=column),
        score=partial(scoring.score, credit=scoring.credit_synth),
        record_shapes={"answer_type": TEXT},
        sizes=_LENGTHS,
        unit="tokens",
        num_samples=data.QUESTIONS,
        sources=lambda length: (data.find_synth_rows(length, split, column),),
        baseline=Baseline(answer_synth, "Label: spam"),
    )


def _synth_category(name: str, title: str, column: str) -> Category:
    tasks, variants = (tuple(_synth_task(each, column) for each in names) for names in (TEST, VALIDATION))
    return Category(name, title, tasks, variants=variants, averaged=not name)


_DND = _task(
    name="dnd",
    title="Critical Role",
    load=data.load_real,
    score=partial(scoring.score, credit=scoring.credit_real),
    sizes=_EPISODES,
    unit="episodes",
    num_samples=_REAL_SAMPLES,
    sources=lambda length: (data.find_real_rows(length),),
    baseline=Baseline(answer_real, "\\boxed{0}"),
)

_PAIRS = _task(
    name="user_pairs",
    title="Pairs of users",
    load=pairs.load_pairs,
    score=pairs.score_pairs,
    headline=("f1",),
    metrics=("f1", "exact"),
    sizes={length: length for length in _LENGTHS if length <= 1 << 20},
    unit="tokens",
    num_samples=len(PAIR_CONDITIONS),
    variants={"paper": Variant(temperature=1.0)},
    sources=lambda length: tuple(
        data.find_synth_rows(length, "validation", column) for column in (data.TEXT, data.LABELLED_TEXT)
    ),
    baseline=Baseline(answer_pairs, "(1, 2)"),
)

_CATEGORIES = (
    _synth_category("", "OOLONG-synth", data.TEXT),
    Category("real", "OOLONG-real", (_DND,)),
    Category("pairs", "OOLONG-Pairs", (_PAIRS,)),
    _synth_category("labels", "OOLONG-synth with Labels", data.LABELLED_TEXT),
)

OOLONG = read_benchmark(__package__, _CATEGORIES)
