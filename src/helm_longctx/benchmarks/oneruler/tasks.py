"""OneRuler's seven tasks in 26 languages: needles in a book, and lists of words of which some are frequent.

Each language is a category, so it has its own column. A language needs files of the repository: a book, nouns, a
dictionary and two prompts. `languages.csv` has the languages with the name of each book and the SHA-256 of each file.
All random numbers of a task come from one seed, in the official order. Source: mungg/OneRuler at a3fe6af,
config/synthetic.yaml (parameters), config/config_models.sh (lengths), OneRuler/synthetic/niah.py and
common_words_extraction.py, OneRuler/eval/evaluate.py (metrics).
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import quote

from helm_longctx.data.download import Source, place_file
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    NO_TEMPLATE,
    STANDARD,
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    InputError,
    Message,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Task,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.counting import CountTokens
from helm_longctx.tasks.generation import all_words, hide_at_depths, number_words
from helm_longctx.tasks.prompt import fill
from helm_longctx.tasks.sampling import take_sample

WITHOUT_MODEL = frozenset({"st", "sw"})
"""Languages for which Stanza has no model. The official code then splits after full stops, and so do we."""

_END = re.compile(r"(?<=[?.!])\s+")


def _find_sentences(code: str, book: str, root: DataRoot) -> list[str]:
    """Return the sentences of a book: those in `oneruler/sentences/<code>.json` if it exists, or else Stanza's.

    Stanza needs minutes for a long book, so its sentences are written into that file unless the data is in a mirror.

    Args:
        book: the text with single spaces.

    Raises:
        InputError: the file is malformed, or Stanza or its model of the language is missing.
    """
    path = root / f"oneruler/sentences/{code}.json"
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        TEXTS.check(str(path), stored)
        return list(stored)
    if code in WITHOUT_MODEL:
        sentences_of_book = []
        for sentence in _END.split(book.strip()):
            sentences_of_book.append(sentence.strip())
        return sentences_of_book
    try:
        stanza = import_module("stanza")
        pipeline = stanza.Pipeline(
            lang=code,
            processors="tokenize",
            download_method=None,
        )
    except Exception as error:  # without a model Stanza raises errors of several kinds
        raise InputError(
            f"the book in {code} cannot be split into sentences"
            f' ({type(error).__name__}): install stanza, run python -c "import stanza;'
            f" stanza.download('{code}')\", or write the sentences as a JSON list to"
            f" {path}"
        ) from error
    sentences = []
    for sentence in pipeline(book).sentences:
        sentences.append(sentence.text.strip())
    if not root.mirror:
        with place_file(path) as (part, record):
            record |= {"made_by": "stanza"}
            part.write_text(json.dumps(sentences, ensure_ascii=False), encoding="utf-8")
    return sentences


_REPOSITORY = "mungg/OneRuler"
_COMMIT = "a3fe6af862dc4b30794afc0a8f3d4f60758cecfa"


def _pin(path: str, name: str, sha256: str) -> PinnedFile:
    url = f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/OneRuler/data/{quote(path)}"
    return PinnedFile(f"oneruler/{name}", url, sha256)


NOUNS = _pin(
    "vocab/100_noun_list_translated.tsv",
    "nouns.tsv",
    "c2938f218054a8d80b7048d70bb9140647ac448b4fc1f0735633d5479d785dba",
)
"""A hundred nouns in all languages: the keys of needles."""


class _Language(NamedTuple):
    """A language and its files.

    Args:
        words: words with their parts of speech, or None for English: its words are in the package wonderwords.
    """

    code: str
    title: str
    book: PinnedFile
    niah: PinnedFile
    cwe: PinnedFile
    words: PinnedFile | None


def _language(row: dict[str, str]) -> _Language:
    code = row["code"]
    title = row["title"]
    words = _pin(
        f"vocab/dictionaries/{title}/{title}.csv",
        f"dictionaries/{code}.csv",
        row["words_sha256"],
    )
    return _Language(
        code,
        title,
        book=_pin(
            f"books/{code}/{row['book']}", f"books/{code}.txt", row["book_sha256"]
        ),
        niah=_pin(
            f"prompt/{code}/niah.txt", f"prompt/{code}/niah.txt", row["niah_sha256"]
        ),
        cwe=_pin(f"prompt/{code}/cwe.txt", f"prompt/{code}/cwe.txt", row["cwe_sha256"]),
        words=words if row["words_sha256"] else None,
    )


LANGUAGES = tuple(map(_language, read_table(__package__, "languages.csv")))


class Material:
    """Reads the files of a language, each when it is needed."""

    def __init__(self, language: _Language, root: DataRoot):
        self.language = language
        self._root = root

    @property
    def space(self) -> str:
        """What stands between sentences."""
        return "" if self.language.code in _WITHOUT_SPACES else " "

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences of the book. Raises an `InputError` if there are none."""
        book = re.sub(r"\s+", " ", self._read(self.language.book))
        sentences = _find_sentences(self.language.code, book, self._root)
        if not sentences:
            raise InputError(
                f"{self._root / self.language.book.path}: the book has no sentences"
            )
        return sentences

    @cached_property
    def nouns(self) -> list[str]:
        """The nouns in this language, in file order."""
        import pandas as pd

        table = pd.read_csv(self._root / NOUNS.path, sep="\t")
        nouns = []
        for noun in table[self.language.code].dropna():
            nouns.append(str(noun).strip())
        return nouns

    @cached_property
    def texts(self) -> dict[str, str]:
        """The parts of a prompt about needles, by name."""
        parts = json.loads(self._read(self.language.niah))
        if not isinstance(parts, dict):
            raise InputError(
                f"{self._root / self.language.niah.path}: not a JSON object"
            )
        texts = {}
        for name, text in parts.items():
            texts[str(name)] = str(text)
        return texts

    @cached_property
    def list_prompt(self) -> str:
        """The prompt about common words."""
        return self._read(self.language.cwe)

    @cached_property
    def words(self) -> list[str]:
        """The nouns, adjectives and verbs of the language, sorted."""
        if self.language.words is None:
            return all_words()
        import pandas as pd

        table = pd.read_csv(
            self._root / self.language.words.path, dtype={"words": str}, header=0
        )
        table = table.dropna(subset=["words"])
        table = table[~table["words"].str.contains(r"\d", regex=True)]
        return sorted(
            set(table[table["pos"].isin(["noun", "adjective", "verb"])]["words"])
        )

    def _read(self, file: PinnedFile) -> str:
        return Path(self._root / file.path).read_text(encoding="utf-8")


COMMON = 10
"""Number of frequent words in a list."""

_SHORT_LIST = 8000
"""Up to this number of tokens, lists repeat their words less often."""

_WITHOUT_SPACES = ("zh", "ja")
_PERIODS = {
    "zh": "。",
    "ja": "。",
    "fa": "۔",
}


class OneRulerSample(NamedTuple):
    """A prompt and its answers."""

    prompt: str
    answers: list[str]


class _Needles(NamedTuple):
    """A task about needles.

    Args:
        absent: whether another key is asked for, one that the text does not have.
    """

    keys: int = 1
    values: int = 1
    queries: int = 1
    absent: bool = False


def hide_needles(
    needles: _Needles,
    material: Material,
    tokens: int,
    count: CountTokens,
    seed: int,
) -> Iterator[OneRulerSample]:
    """Yield samples of a task about needles without end."""
    random = Random(seed)
    sentences = fill_length(material.sentences, tokens, count)
    template = _make_template(material, needles.queries)
    period = _PERIODS.get(material.language.code, ".")
    while True:
        keys = random.sample(material.nouns, needles.keys)
        values = []
        for _ in keys:
            drawn = [random.randint(10**6, 10**7 - 1) for _ in range(needles.values)]
            values.append([str(number) for number in drawn])
        hidden = []
        for key, own in zip(keys, values, strict=True):
            for value in own:
                needle = fill(
                    material.texts["needle_numbers"], {"key": key, "value": value}
                )
                hidden.append(needle.rstrip() + period)
        Random(seed).shuffle(hidden)
        context = material.space.join(
            hide_at_depths(sentences, [[needle] for needle in hidden], random)
        )
        asked = random.sample(range(needles.keys), needles.queries)
        queries = [keys[number] for number in asked]
        answers: list[str] = []
        for number in asked:
            answers += values[number]
        if needles.absent:
            while (other := random.choice(material.nouns)) in keys:
                pass
            queries = [other]
            answers = [material.texts["none"]]
        fields = {}
        for number, query in enumerate(queries, 1):
            fields[f"query{number}"] = query
        yield OneRulerSample(fill(template, {"context": context, **fields}), answers)


def _make_template(material: Material, queries: int) -> str:
    """Return the prompt with fields for the context and the queries."""
    texts = material.texts
    question = texts[f"question_{'single' if queries == 1 else 'multi'}_numbers"]
    parts = [question, texts["please_list"], texts["if_no_numbers"]]
    return (
        texts["task"]
        + material.space.join(parts)
        + material.space.join([texts["answer_prefix"], texts["answer_numbers"]])
    )


def fill_length(sentences: Sequence[str], tokens: int, count: CountTokens) -> list[str]:
    """Return the first sentences of a book that have up to this number of tokens. A short book is repeated."""
    sums = [0, *accumulate(map(count, sentences))]
    low = 0
    high = len(sentences) * (tokens // sums[-1] + 1)
    best = 0
    least = float("inf")
    # Sentences without tokens make several numbers equally good. The search finds the official one of them.
    while low <= high:
        middle = (low + high) // 2
        books, rest = divmod(middle, len(sentences))
        total = books * sums[-1] + sums[rest]
        if total <= tokens and tokens - total < least:
            best = middle
            least = tokens - total
        low, high = (middle + 1, high) if total < tokens else (low, middle - 1)
    return (list(sentences) * (best // len(sentences) + 1))[:best]


class _Lists(NamedTuple):
    """A task about lists: how often frequent and other words occur, in long lists and in lists up to `_SHORT_LIST`."""

    common: int
    other: int
    short_common: int
    short_other: int


def _list_words(
    lists: _Lists,
    material: Material,
    tokens: int,
    count: CountTokens,
    seed: int,
) -> Iterator[OneRulerSample]:
    """Yield samples of a task about lists without end.

    A list grows by one word until it has more tokens than the limit, so the last one is too long. The next sample
    begins with a list that is five words shorter.
    """
    random = Random(seed)
    words = list(material.words)
    Random(seed).shuffle(words)
    times = lists[2:] if tokens <= _SHORT_LIST else lists[:2]
    size = 1
    sample = OneRulerSample("", [])
    while True:
        total = 0
        while total < tokens:
            drawn = random.sample(words, size)
            common = drawn[:COMMON]
            other = drawn[COMMON:]
            items = common * times[0] + other * times[1]
            Random(seed).shuffle(items)
            context = " ".join(number_words(items))
            sample = OneRulerSample(
                fill(material.list_prompt, {"context": context, "query": ""}), common
            )
            total = count(sample.prompt)
            if total > tokens:
                size -= 1
                break
            size += 1
            if size > len(words):
                size = len(words)
                break
        yield sample
        size -= 5


NONE = {
    row["code"]: tuple(row["none"].split("|"))
    for row in read_table(__package__, "languages.csv")
}
"""What the output says if there is no number, by language."""

_START = "<Answer>"
_STOP = "</Answer>"

_Compare = Callable[[str, Sequence[str], str], bool]
"""(output, expected answers, language) → whether the output is right."""


def score(record: ScorerInput, compare: _Compare, language: str) -> MetricValues:
    """Return whether the output is right: the whole output, and only its first `<Answer>` if it has one."""
    output = record["prediction"]
    expected = record["references"]
    answer = find_answer(output) or output
    return {
        "accuracy": float(compare(output, expected, language)),
        "accuracy_in_answer": float(compare(answer, expected, language)),
    }


def find_answer(output: str) -> str:
    """Return the first answer in tags that begins and ends in one line, or empty without any.

    It is what the official pattern "<Answer>.*?</Answer>" finds, but that one's time is quadratic in a line of tags.
    """
    for line in output.split("\n"):
        start = line.find(_START)
        stop = line.find(_STOP, start + len(_START))
        if start >= 0 and stop >= 0:
            return line[start : stop + len(_STOP)]
    return ""


def has_numbers(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has exactly the expected numbers, and no word for "none". Single digits are ignored."""
    text = unicodedata.normalize("NFKC", output)
    if any(word in text or _clean(word) in text for word in NONE[language]):
        return False
    numbers = dict.fromkeys(
        number for number in re.findall(r"\d+", text) if len(number) > 1
    )
    try:
        given = [int(number) for number in numbers]
        right = [int(number) for number in expected]
    except (
        ValueError
    ):  # a number in a file is no number, or has more digits than Python converts
        return False
    return bool(given) and len(given) == len(right) and set(given) == set(right)


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

_BEFORE = 120
"""Most characters of a needle before its number."""

_NUMBER = re.compile(r"\b\d{7}\b|(?<=\D)\d{7}(?=\D)")
_ITEM = re.compile(r"(?<!\d)\d+\. (\S+)")
_QUOTED = re.compile(r"[\"“„«「『](.{1,40}?)[\"”“»」』]")


_LIST = 50
"""Fewest items of a list of words. Other benchmarks' prompts have shorter lists."""


def _find_numbers(messages: Sequence[Message]) -> str | None:
    """Return the numbers after the words that the question quotes, or None if there are none."""
    text = messages[-1]["content"]
    asked = set(_QUOTED.findall(text[-QUESTION:]))
    numbers: dict[str, None] = {}
    for match in _NUMBER.finditer(text):
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        if any(word in before for word in asked):
            numbers[match[0]] = None
    return ", ".join(numbers) or None


def _find_words(messages: Sequence[Message]) -> str | None:
    """Return the ten most frequent words of the list, or None if there is no long list."""
    items = _ITEM.findall(messages[-1]["content"])
    if len(items) < _LIST:
        return None
    return ", ".join(word for word, _ in Counter(items).most_common(10))


_SIZES = {STANDARD[f"{k}k"]: k * 1000 for k in (8, 32, 64, 128)}

_MAIN = "en"
"""The language whose tasks have their names without a language, as the page's table has them."""

_Samples = Callable[[Material, int, CountTokens, int], Iterator[OneRulerSample]]
"""(files, tokens, counter, seed) → samples in the official order."""

NEEDLES = {
    "niah_single": ("Single NIAH", _Needles()),
    "niah_none": ("None-NIAH", _Needles(keys=4, absent=True)),
    "niah_multikey": ("Multi-Key NIAH", _Needles(keys=4)),
    "niah_multivalue": ("Multi-Value NIAH", _Needles(values=4)),
    "niah_multiquery": ("Multi-Query NIAH", _Needles(keys=2, queries=2)),
}
LISTS = {
    "cwe": (
        "Common Words",
        _Lists(
            common=20,
            other=10,
            short_common=10,
            short_other=5,
        ),
    ),
    "cwe_easy": (
        "Common Words, Easy",
        _Lists(
            common=30,
            other=3,
            short_common=10,
            short_other=1,
        ),
    ),
}


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    language: _Language,
    samples: _Samples,
) -> Iterator[Example]:
    """Yield the samples of a task."""
    count = settings.count_tokens(task.name)
    drawn = samples(
        Material(language, root), task.sizes[settings.level], count, settings.seed
    )
    for number, sample in enumerate(drawn):
        # Only the needle of a single key has one depth.
        if task.argument == "niah_single":
            start = sample.prompt.find(sample.answers[0])
        else:
            start = -1
        if start >= 0:
            depth = start / len(sample.prompt)
        else:
            depth = None
        messages = [{"role": "user", "content": sample.prompt}]
        yield Example(
            id=f"{task.name}-{number}",
            fields={},
            references=sample.answers,
            source="official",
            depth=depth,
            messages=messages,
        )


def _task(
    language: _Language,
    name: str,
    title: str,
    samples: _Samples,
    compare: _Compare,
    sources: tuple[Source, ...],
) -> Task:
    constant = NONE[language.code][0]
    return Task(
        name=name if language.code == _MAIN else f"{language.code}_{name}",
        alias="" if language.code == _MAIN else name,
        title=f"{language.title} {title}",
        template=NO_TEMPLATE,
        sizes=_SIZES,
        load=partial(load, language=language, samples=samples),
        score=partial(score, compare=compare, language=language.code),
        sources=lambda length: sources,
        baseline=Baseline(_find_numbers if name in NEEDLES else _find_words, constant),
        **task_fields(__package__),
    )


def _category(language: _Language) -> Category:
    needles = tuple(
        _task(
            language,
            name,
            title,
            partial(hide_needles, kind),
            says_none if kind.absent else has_numbers,
            (language.book, language.niah, NOUNS),
        )
        for name, (title, kind) in NEEDLES.items()
    )
    words = (language.cwe, *([language.words] if language.words else []))
    lists = tuple(
        _task(language, name, title, partial(_list_words, kind), has_words, words)
        for name, (title, kind) in LISTS.items()
    )
    return Category(
        name=language.code,
        title=language.title,
        tasks=needles,
        variants=lists,
    )


ONERULER = read_benchmark(__package__, tuple(map(_category, LANGUAGES)))
