"""Generates rows of RULER's tasks without needles, at any length.

The format is the same as in HELMET's files, which were made with the scripts of hsiehjackson/RULER. The text is our
own. A row has the official columns, and `depth` if its evidence stands at one place. Word lists and chains are spread
over the text, so they have none.
"""

import math
import random
import string
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from wonderwords import RandomWord

from helm_longctx.benchmarks.helmet.data.needles import NOISE, word_keys
from helm_longctx.benchmarks.helmet.prompts import CWE_PREFIX, CWE_USER, VT_PREFIX, VT_USER
from helm_longctx.data.jsonl import Row
from helm_longctx.tasks.template import CONTEXT

COMMON_WORDS = 10
COMMON_REPEATS, UNCOMMON_REPEATS = 30, 3
"""How often common and uncommon words are repeated: RULER's freq_cw and freq_ucw."""

_EXAMPLE_UNCOMMON_WORDS = 30
_EXAMPLE_COMMON_REPEATS, _EXAMPLE_UNCOMMON_REPEATS = 10, 3

FREQUENT_WORDS = 3
NOISE_WORD = "..."
_CODE_LENGTH = 6
_ZETA_2 = math.pi**2 / 6

HOPS = 4
_EXAMPLE_LINES = 10
_EXAMPLE_VALUE = 99_999  # never drawn for a row, so that the example cannot contain a row's value


def common_words(uncommon: int, rng: random.Random, depth: float) -> Row:
    """Make a row of cwe: a numbered list of ten frequent words and `uncommon` rare words."""
    example_size = COMMON_WORDS + _EXAMPLE_UNCOMMON_WORDS
    words = _sample_words(example_size + COMMON_WORDS + uncommon, rng)
    example, example_answer = _word_list(words[:example_size], _EXAMPLE_COMMON_REPEATS, _EXAMPLE_UNCOMMON_REPEATS, rng)
    context, answer = _word_list(words[example_size:], COMMON_REPEATS, UNCOMMON_REPEATS, rng)
    worked = f"{CWE_USER.format(example='', context=example)}\n{CWE_PREFIX} {_number_words(example_answer)}"
    return {CONTEXT: context, "example": worked, "answer": answer}


def frequent_words(words: int, rng: random.Random, depth: float) -> Row:
    """Make a row of fwe: about `words` coded words, whose frequencies follow Zipf's law with exponent 2.

    The most frequent word is noise. As in RULER, the frequencies are the expected ones and not drawn, so that chance
    cannot change their order.
    """
    share = words / _ZETA_2
    # Ranks at which a word would appear less than once are left out.
    counts = [int(share / rank**2) for rank in range(1, math.isqrt(int(share)) + 1)]
    # In a short text the first ranks would have the same frequency. These minima keep them apart.
    least = range(FREQUENT_WORDS + 2, 1, -1)
    counts = [max(pair) for pair in zip_longest(counts, least, fillvalue=0)]
    # The noise is the most frequent "word", which the question asks to ignore (RULER's fwe).
    codes = [NOISE_WORD, *_codes(len(counts) - 1, string.ascii_lowercase, _CODE_LENGTH, rng)]
    text = [code for code, count in zip(codes, counts, strict=True) for _ in range(count)]
    rng.shuffle(text)
    return {CONTEXT: " ".join(text), "answer": codes[1 : FREQUENT_WORDS + 1]}


def variable_tracking(lines: int, rng: random.Random, depth: float) -> Row:
    """Make a row of vt: a chain of assignments, in order, at random places in a repeated passage."""
    value = rng.randrange(10_000, _EXAMPLE_VALUE)
    context, names = _chain(lines, value, 5, rng)
    row = {CONTEXT: context, "query": str(value), "num_v": len(names), "example": _chain_example()}
    return {**row, "answer": names}


def one_hop_questions(documents: int, rng: random.Random, depth: float) -> Row:
    """Make a row of qa_1, in SQuAD's format: paragraphs without titles. The question is about the one at `depth`."""
    # Linked documents share names. Only one of each pair is used, so that an answer stands in one place.
    target, *others = (rng.choice((near, far)) for near, far, _ in _stories(max(1, documents), rng))
    return _questions([document.text for document in others], target.text, target.question, target.answer, depth)


def two_hop_questions(documents: int, rng: random.Random, depth: float) -> Row:
    """Make a row of qa_2, in HotpotQA's format: titled paragraphs.

    One paragraph, at a random place, leads to the one at `depth`, which has the answer.
    """
    others = max(1, documents - 1)
    (first, second, question), *stories = _stories(1 + others // 2, rng)
    rest = [document for near, far, _ in stories for document in (near, far)][: others - 1]
    texts = [f"{document.title}\n{document.text}" for document in (first, *rest)]
    rng.shuffle(texts)
    return _questions(texts, f"{second.title}\n{second.text}", question, second.answer, depth)


@cache
def _words() -> list[str]:
    words = RandomWord().filter(include_categories=["adjective", "noun", "verb"])
    return sorted({word.lower() for word in words if word.isascii() and word.isalpha()})


def _sample_words(count: int, rng: random.Random) -> list[str]:
    """Draw distinct words, and compounds as well if the list has fewer than `count`."""
    words = _words()
    return rng.sample([*words, *word_keys(max(0, count - len(words)), rng)], count)


def _word_list(words: list[str], often: int, rarely: int, rng: random.Random) -> tuple[str, list[str]]:
    """Make a numbered list, and return it with its common words."""
    common = words[:COMMON_WORDS]
    entries = common * often + words[COMMON_WORDS:] * rarely
    rng.shuffle(entries)
    return _number_words(entries), common


def _number_words(words: list[str]) -> str:
    return " ".join(f"{number}. {word}" for number, word in enumerate(words, 1))


def _codes(count: int, letters: str, length: int, rng: random.Random) -> list[str]:
    """Draw distinct strings of random letters."""
    codes: dict[str, None] = {}  # a set would have another order in each run
    while len(codes) < count:
        codes["".join(rng.choices(letters, k=length))] = None
    return list(codes)


def _chain(lines: int, value: int, length: int, rng: random.Random) -> tuple[str, list[str]]:
    """Make a chain in noise, and return it with the names of its variables, of `length` letters each."""
    names = _codes(HOPS + 1, string.ascii_uppercase, length, rng)
    values = [str(value), *(f"VAR {name}" for name in names)]
    text = [NOISE] * max(len(names), lines)
    places = sorted(rng.sample(range(len(text)), len(names)))
    # `values` has one element more, the name after the last link.
    for place, name, assigned in zip(places, names, values, strict=False):
        text[place] = f"VAR {name} = {assigned} {NOISE}"
    return "\n".join(text), names


@cache
def _chain_example() -> str:
    """Return the worked example, the same in all rows, as in RULER. No row has its names, which are shorter."""
    context, names = _chain(_EXAMPLE_LINES, _EXAMPLE_VALUE, 3, random.Random("example"))
    fields = {"context": context, "query": str(_EXAMPLE_VALUE), "num_v": len(names)}
    return f"{VT_USER.format(example='', **fields)}\n{VT_PREFIX.format(**fields)} {' '.join(names)}"


class _Document(NamedTuple):
    title: str
    text: str
    question: str
    answer: str


def _stories(count: int, rng: random.Random) -> list[tuple[_Document, _Document, str]]:
    """Make pairs of linked documents, each with the question that needs both. A name appears in only one pair."""
    # Numbers of names are drawn without repetition, so that no two stories share a name.
    names = iter(rng.sample(range(math.prod(map(len, _NAME_LETTERS))), count * len(_NAMED)))
    return [_story({kind: form.format(_name(next(names))) for kind, form in _NAMED.items()}, rng) for _ in range(count)]


def _story(facts: dict[str, str], rng: random.Random) -> tuple[_Document, _Document, str]:
    year = rng.randrange(1700, 1900)
    facts["person"] = f"{rng.choice(_FIRST_NAMES)} {facts['person']}"
    facts |= {"year": str(year), "later": str(year + rng.randrange(20, 60)), "number": str(rng.randrange(14, 40))}
    facts |= {"trade": rng.choice(_TRADES), "goods": rng.choice(_GOODS), "habit": rng.choice(_HABITS)}
    first, second, question = rng.choice(_STORIES)
    near, far = (_Document(*(part.format_map(facts) for part in document)) for document in (first, second))
    return near, far, question.format_map(facts)


def _name(number: int) -> str:
    """Return the name with this number. All names have the same length, so that none contains another."""
    name = ""
    for alphabet in _NAME_LETTERS:
        number, place = divmod(number, len(alphabet))
        name += alphabet[place]
    return name


def _questions(others: list[str], target: str, question: str, answer: str, depth: float) -> Row:
    place = round(depth * len(others))
    texts = enumerate([*others[:place], target, *others[place:]], 1)
    context = "\n\n".join(f"Document {number}:\n{text}" for number, text in texts)
    return {CONTEXT: context, "question": question, "answer": [answer], "depth": depth}


_NAME_LETTERS = ("BDFGHKLMNPRSTV", "aeiou", "lmnrs", "bdgkptv", "aeiou", "lmnrs", "aeiou", "lnrt")
_NAMED = {"person": "{}", "town": "{}", "river": "{}", "school": "{} Academy", "novel": "The Road to {}",
          "company": "{} & Sons"}  # fmt: skip
_FIRST_NAMES = ("Agnes", "Conrad", "Dora", "Edwin", "Flora", "Hugo", "Ida", "Jonas", "Lydia", "Magnus", "Nora", "Oscar")
_TRADES = ("surveyor", "botanist", "composer", "printer", "goldsmith", "clockmaker", "physician", "bookbinder")
_GOODS = ("barometers", "writing paper", "rowing boats", "church organs", "woollen blankets", "garden tools")
_HABITS = ("kept a diary of the weather", "wrote long letters to the newspapers", "collected pressed ferns",
           "walked to market every Saturday", "taught neighbours to play chess", "grew prize pears")  # fmt: skip

# fmt: off
_PERSON = _Document(
    "{person}",
    "{person} was a {trade} of some renown, born in {year} in {town}. The eldest of a large family, {person} learned "
    "the trade from an uncle and was in business alone from the age of {number}. A first large commission came in "
    "{later} and was much discussed at the time. In later years {person} {habit}, and left no pupils.",
    "In which town was {person} born?", "{town}")
_TOWN = _Document(
    "{town}",
    "{town} is a market town of some {number} hundred people, which lies on the {river}, a river known for its "
    "floods. The town was given its charter in {year}. It lived from the making of {goods} until the railway came "
    "in {later}, and has since been a quiet place with a weekly market and a small museum.",
    "On which river does {town} lie?", "{river}")
_NOVEL = _Document(
    "{novel}",
    "{novel} is a novel in {number} chapters, written by {person} and first printed in {year}. It tells of a {trade} "
    "who loses a fortune in {goods} and sets out to win it back. Critics found the ending too hasty, but readers were "
    "fond of it, and a second edition followed in {later}.",
    "Who wrote the novel {novel}?", "{person}")
_AUTHOR = _Document(
    "{person}",
    "{person} was an author of novels and essays, born in {year} to the family of a {trade}. {person} was educated at "
    "{school}, and lived from writing from {later} on. Of {number} published pieces most appeared in monthly "
    "magazines. Friends recall that {person} {habit}, whatever else there was to do.",
    "At which school was {person} educated?", "{school}")
_COMPANY = _Document(
    "{company}",
    "{company} was a maker of {goods}, with up to {number} workers in a single long workshop. It was founded in {year} "
    "by {person}, who led it alone until {later}. The firm won medals at two exhibitions, but its prices were thought "
    "high, and it was sold when the demand for {goods} declined.",
    "Who founded {company}?", "{person}")

_STORIES = (
    (_PERSON, _TOWN, "On which river does the town lie in which {person} was born?"),
    (_NOVEL, _AUTHOR, "At which school was the author of the novel {novel} educated?"),
    (_COMPANY, _PERSON, "In which town was the founder of {company} born?"),
)
# fmt: on
