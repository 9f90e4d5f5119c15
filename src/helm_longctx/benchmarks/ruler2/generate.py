"""Draws RULER v2's samples: the same as the official scripts draw with the same tokenizer and seed.

Source: NVIDIA-NeMo/Gym at 07d6b0d, benchmarks/ruler2/sources: prepare_niah.py, prepare_mmlu.py, prepare_qa.py
(`read_hotpotqa`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from random import Random
from typing import NamedTuple

from helm_longctx.benchmarks.ruler2 import prompts
from helm_longctx.tasks import TEXTS, DataRoot, FileRow, HubDataset, InputError, JsonLines, Types, are_all, is_text
from helm_longctx.tasks.generation import Draw, Script, cut_ends, draw_below, hide, join_texts, key_words, write_needles

_MMLU_COLUMNS: Types = {"question": str, "choices": list, "answer": int}
_CONTEXT_COLUMNS: Types = {"context": dict}
_QUESTION_COLUMNS: Types = {**_CONTEXT_COLUMNS, "question": str, "answer": str, "supporting_facts": dict}

MMLU = HubDataset(
    "cais/mmlu",
    {"test": 14042, "auxiliary_train": 99842},
    config="all",
    columns={split: tuple(_MMLU_COLUMNS) for split in ("test", "auxiliary_train")},
    labelled=False,
)
HOTPOTQA = HubDataset(
    "hotpotqa/hotpot_qa",
    {"validation": 7405, "train": 90447},
    config="distractor",
    columns={"validation": tuple(_QUESTION_COLUMNS), "train": tuple(_CONTEXT_COLUMNS)},
    labelled=False,
)

LETTERS = "ABCD"


class Question(NamedTuple):
    """A question of MMLU with its options, and the letter of the right one."""

    text: str
    letter: str


class Asked(NamedTuple):
    """A question of HotpotQA, its answer, the paragraphs that support it, and those that come with it."""

    text: str
    answer: str
    documents: list[str]
    related: list[str]


def read_mmlu(root: DataRoot) -> tuple[list[Question], list[Question]]:
    """Read the questions that are asked, and those that surround them."""
    test, train = ([*map(_read_question, JsonLines(root / path, _MMLU_COLUMNS))] for path in MMLU.paths)
    return test, train


def _read_question(row: FileRow) -> Question:
    choices = row["choices"]
    if not are_all(is_text)(choices) or len(choices) != len(LETTERS) or row["answer"] not in range(len(LETTERS)):
        raise InputError(
            f"{row}: column 'choices' must be a list of four texts, and 'answer' the number of one, from 0"
        )
    options = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=True))
    return Question(re.sub(r"\s+", " ", f"{row['question']}\n{options}"), LETTERS[row["answer"]])


def read_hotpotqa(root: DataRoot) -> tuple[list[Asked], list[str]]:
    """Read the questions, and the paragraphs that surround them, each once in the order of the file."""
    questions, context = (root / path for path in HOTPOTQA.paths)
    texts = dict.fromkeys(text for row in JsonLines(context, _CONTEXT_COLUMNS) for _, text in _read_paragraphs(row))
    asked = []
    for row in JsonLines(questions, _QUESTION_COLUMNS):
        titles = row["supporting_facts"].get("title")
        TEXTS.check(f"{row}: the titles of 'supporting_facts'", titles)
        paragraphs = [*_read_paragraphs(row)]
        own = [text for title, text in paragraphs if title in titles]
        related = [text for title, text in paragraphs if title not in titles]
        if not own:
            raise InputError(f"{row}: 'supporting_facts' names no title of 'context'")
        asked.append(Asked(row["question"], row["answer"], own, related))
    return asked, [*texts]


def _read_paragraphs(row: FileRow) -> Iterator[tuple[str, str]]:
    titles, sentences = row["context"].get("title"), row["context"].get("sentences")
    if not (are_all(is_text)(titles) and are_all(are_all(is_text))(sentences) and len(titles) == len(sentences)):
        raise InputError(f"{row}: column 'context' must have as many lists of 'sentences' as texts in 'title'")
    for title, parts in zip(titles, sentences, strict=True):
        yield title, f"{title}\n{''.join(parts)}"


Samples = Callable[[Script, int], Iterator[Draw]]
"""(script, number of samples) → the samples of a task in the official order."""

DIGITS, KEY_DIGITS = 10, 7
"""Digits of the numbers in needles, and of the numbers of questions and documents."""

EXAMPLES = 5


def draw_number(rng: Random, digits: int = KEY_DIGITS) -> str:
    """Draw a number with so many digits."""
    least = 10 ** (digits - 1)
    return str(least + draw_below(rng, 9 * least))


def draw_needles(script: Script, count: int, values: int) -> Iterator[Draw]:
    """Yield needles among other needles.

    Args:
        values: number of values of each key.
    """
    rng, words = Random(script.seed), key_words()

    def draw(number: int, size: int) -> Draw:
        key = words.draw(rng)
        answers = [draw_number(rng, DIGITS) for _ in range(values)]
        needles = [(key, answer) for answer in answers]
        rng.shuffle(needles)
        if values == 1:
            lines = [(words.draw(rng), draw_number(rng, DIGITS)) for _ in range(size)]
        else:
            numbers = [draw_number(rng, DIGITS) for _ in range(size)]
            keys = [words.draw(rng) for _ in range(-(-size // values))] * values
            lines = [*zip(keys, numbers, strict=False)]
            rng.shuffle(lines)
        # The first needle gets the last place.
        lines = hide(lines, needles[::-1], rng)
        # The official script draws the key that is asked for, though there is only one.
        rng.sample(range(1), 1)
        kind = "numbers" if values > 1 else "number"
        return Draw({"type_needle_v": kind, "query": key}, write_needles(lines, prompts.NEEDLE), answers)

    return islice(script.draw_all(draw, 5), count)


def number_questions(
    script: Script, count: int, wanted: str, repeats: int = 1, problem: str = "", ending: str = ""
) -> Iterator[Draw]:
    """Yield numbered questions, of which the text or the answer is asked for.

    Args:
        wanted: "text", "texts" (of all questions with the number) or "letter".
        repeats: how many questions have the same number.
        problem: the task of an example before a question; empty if there are no examples.
        ending: what an example has after it.
    """
    rng, (asked, haystack) = Random(script.seed), read_mmlu(script.root)
    parts = cache(lambda place: cut_ends(haystack[place].text))

    def draw(number: int, size: int) -> Draw:
        often = -(-size // len(haystack))
        places = [place // often for place in rng.sample(range(len(haystack) * often), size)]
        numbers = [draw_number(rng) for _ in range(-(-(size + 1) // repeats))] * repeats
        rng.shuffle(numbers)
        *numbers, own = numbers[: size + 1]
        lines = [*zip(numbers, places, strict=True)]
        rng.shuffle(lines)
        examples = rng.sample(lines, EXAMPLES) if problem else []
        place = rng.randint(0, len(lines))
        lines.insert(place, (own, -1))
        question = asked[number]
        questions = [question if place < 0 else haystack[place] for n, place in lines if n == own]
        order = sum(n == own for n, _ in lines[: place + 1]) if repeats > 1 else 0
        texts = (_write(prompts.QUESTION, n, parts(k) if k >= 0 else cut_ends(question.text)) for n, k in lines)
        write = (problem + ending).format
        solved = [write(query=n, question=haystack[k].text, letter=haystack[k].letter) for n, k in examples]
        fields = {
            "query": own,
            "order": prompts.ORDER.format(ordinal=write_ordinal(order)) if order else "",
            "example": prompts.EXAMPLES.format(examples="\n\n".join(solved)) if solved else "",
        }
        answers = {"text": [question.text], "texts": [each.text for each in questions], "letter": [question.letter]}
        return Draw(fields, join_texts(texts, "\n\n"), answers[wanted])

    size = script.search_size(draw, 10)
    # The official script draws the questions after its search, and another number of samples gives other questions.
    for number in rng.sample(range(len(asked)), min(len(asked), count)):
        yield script.draw_fitting(draw, number, size, 10)


def write_ordinal(number: int) -> str:
    """Write a number as `1st`, as the package inflect does."""
    last = number % 100
    return f"{number}{'th' if 10 < last < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(last % 10, 'th')}"


def number_documents(script: Script, count: int, wanted: str) -> Iterator[Draw]:
    """Yield numbered paragraphs with a question. There are no more samples than questions.

    Args:
        wanted: "text" (the number of a paragraph that is repeated), "documents" (the numbers of the paragraphs that
            support the answer) or "answer".
    """
    rng, (asked, haystack) = Random(script.seed), read_hotpotqa(script.root)
    parts = cache(lambda place: cut_ends(haystack[place]))
    known = {text: place for place, text in enumerate(haystack)}

    def draw(number: int, size: int) -> Draw:
        question = asked[number]
        own = [(draw_number(rng), text) for text in question.documents]
        related = [(draw_number(rng), text) for text in question.related]
        # The official code subtracts all of the question's paragraphs, also those that the haystack lacks.
        others = len(haystack) - len({*question.documents, *question.related})
        if others < 1:
            raise ValueError("there are too few paragraphs")
        often = -(-size // others)
        places = [place // often for place in rng.sample(range(len(haystack) * often), size)]
        documents = [(draw_number(rng), haystack[place]) for place in places] + own + related
        rng.shuffle(documents)
        texts = (
            _write(prompts.DOCUMENT, n, parts(known[text]) if text in known else cut_ends(text))
            for n, text in documents
        )
        answers = {"text": [own[0][0]], "documents": [n for n, _ in own], "answer": [question.answer]}
        query = own[0][1] if wanted == "text" else question.text
        return Draw({"query": query}, join_texts(texts, "\n\n"), answers[wanted])

    return islice(script.draw_all(draw, 5), min(count, len(asked)))


def _write(template: str, number: str, parts: Sequence[str]) -> list[str]:
    """Write a numbered text, as parts that spaces join. The parts stay the same objects, so they are looked up fast."""
    start, *rest = parts
    return [*template.format(number=number, text=start).split(" ", 1), *rest]
