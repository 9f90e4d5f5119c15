"""OneRuler's seven tasks in 26 languages. Each language is a category, so tables have a column for it.

Source: mungg/OneRuler at a3fe6af, config/synthetic.yaml (parameters), config/config_models.sh (lengths).
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from helm_longctx.benchmarks.oneruler import generate, scoring
from helm_longctx.benchmarks.oneruler.baselines import find_numbers, find_words
from helm_longctx.benchmarks.oneruler.data import LANGUAGES, NOUNS, Language, Material
from helm_longctx.benchmarks.oneruler.generate import Lists, Needles, Sample
from helm_longctx.data.download import Source
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.counting import CountTokens
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.task import Baseline, Example, Settings, Task
from helm_longctx.tasks.template import NO_TEMPLATE

SIZES = {STANDARD[f"{k}k"]: k * 1000 for k in (8, 32, 64, 128)}
"""The number of tokens at each length."""

MAIN = "en"
"""The language whose tasks have their names without a language, as the page's table has them."""

Samples = Callable[[Material, int, CountTokens, int], Iterator[Sample]]
"""(files, tokens, counter, seed) → samples in the official order."""

NEEDLES = {
    "niah_single": ("Single NIAH", Needles()),
    "niah_none": ("None-NIAH", Needles(keys=4, absent=True)),
    "niah_multikey": ("Multi-Key NIAH", Needles(keys=4)),
    "niah_multivalue": ("Multi-Value NIAH", Needles(values=4)),
    "niah_multiquery": ("Multi-Query NIAH", Needles(keys=2, queries=2)),
}
LISTS = {
    "cwe": ("Common Words", Lists(common=20, other=10, short_common=10, short_other=5)),
    "cwe_easy": ("Common Words, Easy", Lists(common=30, other=3, short_common=10, short_other=1)),
}


def load(task: Task, settings: Settings, root: DataRoot, language: Language, samples: Samples) -> Iterator[Example]:
    """Yield the samples of a task.

    Raises:
        InputError: there is no tokenizer, or a file is missing or malformed.
    """
    if settings.counter is None:
        raise InputError(f"{task.name}: count_with is missing; give the name or the folder of a tokenizer")
    drawn = samples(Material(language, root), task.sizes[settings.level], settings.counter, settings.seed)
    for number, sample in enumerate(islice(drawn, task.sample(settings))):
        # Only the needle of a single key has one depth.
        place = sample.prompt.find(sample.answers[0]) if task.argument == "niah_single" else -1
        yield Example(
            id=f"{task.name}-{number}",
            fields={},
            references=sample.answers,
            source="official",
            depth=place / len(sample.prompt) if place >= 0 else None,
            messages=[{"role": "user", "content": sample.prompt}],
        )


def _task(
    language: Language, name: str, title: str, samples: Samples, compare: scoring.Compare, sources: tuple[Source, ...]
) -> Task:
    constant = scoring.NONE[language.code][0]
    return Task(
        name=name if language.code == MAIN else f"{language.code}_{name}",
        alias="" if language.code == MAIN else name,
        title=f"{language.title} {title}",
        template=NO_TEMPLATE,
        sizes=SIZES,
        unit="tokens",
        load=partial(load, language=language, samples=samples),
        score=partial(scoring.score, compare=compare, language=language.code),
        headline=("accuracy",),
        metrics=("accuracy", "accuracy_in_answer"),
        max_tokens=512,
        num_samples=50,
        sources=lambda length: sources,
        chat=True,
        arguments=("seed", "count_with"),
        cut="nothing",
        baseline=Baseline(find_numbers if name in NEEDLES else find_words, constant),
    )


def _category(language: Language) -> Category:
    needles = tuple(
        _task(
            language,
            name,
            title,
            partial(generate.hide_needles, kind),
            scoring.says_none if kind.absent else scoring.has_numbers,
            (language.book, language.niah, NOUNS),
        )
        for name, (title, kind) in NEEDLES.items()
    )
    words = (language.cwe, *([language.words] if language.words else []))
    lists = tuple(
        _task(language, name, title, partial(generate.list_words, kind), scoring.has_words, words)
        for name, (title, kind) in LISTS.items()
    )
    return Category(language.code, language.title, needles, variants=lists)


ONERULER = read_benchmark(__package__, tuple(map(_category, LANGUAGES)))
