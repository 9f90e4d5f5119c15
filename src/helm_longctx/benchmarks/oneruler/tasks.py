"""OneRuler's seven tasks in 26 languages, and their metrics. Each language is a category, so it has its own column.

Source: mungg/OneRuler at a3fe6af, config/synthetic.yaml (parameters), config/config_models.sh (lengths),
OneRuler/eval/evaluate.py (metrics).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from helm_longctx.benchmarks.oneruler import generate
from helm_longctx.benchmarks.oneruler.generate import LANGUAGES, NOUNS, Language, Lists, Material, Needles, Sample
from helm_longctx.data.download import Source
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import NO_TEMPLATE, STANDARD, Baseline, Category, DataRoot, Message, read_benchmark, task_fields
from helm_longctx.tasks.counting import CountTokens
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import Example, Record, Scores, Settings, Task

NONE = {row["code"]: tuple(row["none"].split("|")) for row in read_table(__package__, "languages.csv")}
"""What the output says if there is no number, by language."""

_ANSWER = re.compile(r"<Answer>.*?</Answer>")

Compare = Callable[[str, Sequence[str], str], bool]
"""(output, expected answers, language) → whether the output is right."""


def score(record: Record, compare: Compare, language: str) -> Scores:
    """Return whether the output is right: the whole output, and only its first `<Answer>` if it has one."""
    output, expected = record["prediction"], record["references"]
    answer = _ANSWER.search(output)
    return {
        "accuracy": float(compare(output, expected, language)),
        "accuracy_in_answer": float(compare(answer[0] if answer else output, expected, language)),
    }


def has_numbers(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has exactly the expected numbers, and no word for "none". Single digits are ignored."""
    text = unicodedata.normalize("NFKC", output)
    if any(word in text or _clean(word) in text for word in NONE[language]):
        return False
    numbers = dict.fromkeys(number for number in re.findall(r"\d+", text) if len(number) > 1)
    try:
        found, right = [int(number) for number in numbers], [int(number) for number in expected]
    except ValueError:  # a number in a file is no number, or has more digits than Python converts
        return False
    return bool(found) and len(found) == len(right) and set(found) == set(right)


def says_none(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has a word for "none", whatever else it says."""
    text = re.sub(r"\b\d\b", "", _clean(unicodedata.normalize("NFKC", output)))
    return any(_clean(word) in text for word in NONE[language])


def has_words(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has all expected words."""
    text = output.strip().lower()
    return all(word.strip().lower() in text for word in expected)


def _clean(text: str) -> str:
    return text.strip().lower().replace("\u200c", "").replace(" ", "")


QUESTION = 800
"""Most characters of the question at the end of a prompt."""

BEFORE = 120
"""Most characters of a needle before its number."""

_NUMBER = re.compile(r"\b\d{7}\b|(?<=\D)\d{7}(?=\D)")
_ITEM = re.compile(r"\d+\. (\S+)")
_QUOTED = re.compile(r"[\"“„«「『](.{1,40}?)[\"”“»」』]")


LIST = 50
"""Fewest items of a list of words. Other benchmarks' prompts have shorter lists."""


def find_numbers(messages: Sequence[Message]) -> str | None:
    """Return the numbers after the words that the question quotes; None if there are none."""
    text = messages[-1]["content"]
    asked = set(_QUOTED.findall(text[-QUESTION:]))
    found = [
        match[0]
        for match in _NUMBER.finditer(text)
        if any(word in text[max(0, match.start() - BEFORE) : match.start()] for word in asked)
    ]
    return ", ".join(dict.fromkeys(found)) or None


def find_words(messages: Sequence[Message]) -> str | None:
    """Return the ten most frequent words of the list; None if there is no long list."""
    items = _ITEM.findall(messages[-1]["content"])
    return ", ".join(word for word, _ in Counter(items).most_common(10)) if len(items) >= LIST else None


SIZES = {STANDARD[f"{k}k"]: k * 1000 for k in (8, 32, 64, 128)}

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


@take_sample
def load(task: Task, settings: Settings, root: DataRoot, language: Language, samples: Samples) -> Iterator[Example]:
    """Yield the samples of a task."""
    count = settings.count_tokens(task.name)
    drawn = samples(Material(language, root), task.sizes[settings.level], count, settings.seed)
    for number, sample in enumerate(drawn):
        # Only the needle of a single key has one depth.
        place = sample.prompt.find(sample.answers[0]) if task.argument == "niah_single" else -1
        depth = place / len(sample.prompt) if place >= 0 else None
        messages = [{"role": "user", "content": sample.prompt}]
        yield Example(f"{task.name}-{number}", {}, sample.answers, "official", depth, messages=messages)


def _task(
    language: Language, name: str, title: str, samples: Samples, compare: Compare, sources: tuple[Source, ...]
) -> Task:
    constant = NONE[language.code][0]
    return Task(
        name=name if language.code == MAIN else f"{language.code}_{name}",
        alias="" if language.code == MAIN else name,
        title=f"{language.title} {title}",
        template=NO_TEMPLATE,
        sizes=SIZES,
        load=partial(load, language=language, samples=samples),
        score=partial(score, compare=compare, language=language.code),
        sources=lambda length: sources,
        baseline=Baseline(find_numbers if name in NEEDLES else find_words, constant),
        **task_fields(__package__),
    )


def _category(language: Language) -> Category:
    needles = tuple(
        _task(
            language,
            name,
            title,
            partial(generate.hide_needles, kind),
            says_none if kind.absent else has_numbers,
            (language.book, language.niah, NOUNS),
        )
        for name, (title, kind) in NEEDLES.items()
    )
    words = (language.cwe, *([language.words] if language.words else []))
    lists = tuple(
        _task(language, name, title, partial(generate.list_words, kind), has_words, words)
        for name, (title, kind) in LISTS.items()
    )
    return Category(language.code, language.title, needles, variants=lists)


ONERULER = read_benchmark(__package__, tuple(map(_category, LANGUAGES)))
