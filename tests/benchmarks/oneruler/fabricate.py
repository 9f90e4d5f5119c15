"""Fabricates OneRuler's files in all languages, and a tokenizer; the same on every machine."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers

from helm_longctx.benchmarks.oneruler.tasks import (
    COMMON,
    LANGUAGES,
    NONE,
    NOUNS,
    WITHOUT_MODEL,
)
from tests.support.fabricate import words

SENTENCES = 40
RECORD: dict[str, Any] = {}

_LETTERS = {
    "zh": "山水人天地日月",
    "ja": "あいうえお山川",
    "ko": "가나다라마바",
    "hi": "कखगमनल",
    "fa": "ابپتسم",
    "ru": "абвгде",
}
_STOPS = {"zh": "。", "ja": "。", "hi": "।", "fa": "۔"}

CODES = re.findall(
    r"\w+",
    "en ko pl zh vi ja ta hu fr no uk ru de es sv fi cs sr pt it fa sw nl st hi da",
)
"""The languages in the order of the official code's table of words for none, in which the cases of scores were made."""


def build_oneruler(root: Path) -> Path:
    """Write the files of all languages, with the sentences of those for which Stanza has a model."""
    nouns = {
        language.code: [_word(language.code, f"noun {n}") for n in range(30)]
        for language in LANGUAGES
    }
    # A language can lack a noun, and nouns can have spaces around them.
    nouns["st"][3], nouns["de"][5] = "", f" {nouns['de'][5]} "
    codes = ["en", "definition", *(code for code in nouns if code != "en")]
    rows = [
        codes,
        *(
            [nouns[code][n] if code in nouns else "A thing." for code in codes]
            for n in range(30)
        ),
    ]
    _write(root / NOUNS.path, "".join("\t".join(row) + "\n" for row in rows))
    for language in LANGUAGES:
        book = _book(language.code)
        _write(root / language.book.path, book)
        _write(
            root / language.niah.path,
            json.dumps(_texts(language.code), ensure_ascii=False),
        )
        _write(
            root / language.cwe.path,
            f"List in {language.code} {{{{x}}}}.\n\n<List> {{context}} </List>\n\nTen?{{query}}\n",
        )
        if language.words:
            _write(root / language.words.path, _dictionary(language.code))
        if language.code not in WITHOUT_MODEL:
            sentences = split_sentences(re.sub(r"\s+", " ", book))
            _write(
                root / f"oneruler/sentences/{language.code}.json",
                json.dumps(sentences, ensure_ascii=False),
            )
    return root


def split_sentences(book: str) -> list[str]:
    """Split a book by a rule that stands for Stanza's models."""
    return [
        part.strip() for part in re.split(r"(?<=[.!?。।۔])\s*", book) if part.strip()
    ]


def tokenizer() -> Tokenizer:
    """Return a tokenizer whose tokens are bytes, and a few pairs of them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "t"), ("1", "0"), (".", "Ġ")]
    tokens = [*alphabet, *("".join(pair) for pair in merges)]
    bpe = Tokenizer(
        models.BPE({token: number for number, token in enumerate(tokens)}, merges)
    )
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return bpe


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _word(code: str, seed: str) -> str:
    rng = random.Random(f"{code} {seed}")
    return (
        "".join(rng.choices(_LETTERS[code], k=5))
        if code in _LETTERS
        else words(rng, 1).strip("%{}' ") + f"{code}a"
    )


def _book(code: str) -> str:
    rng = random.Random(code)
    stop = _STOPS.get(code, ".")
    space = "" if code in ("zh", "ja") else " "
    lines = []
    for number in range(SENTENCES):
        text = space.join(
            _word(code, f"{number} {n}") for n in range(rng.randint(2, 9))
        )
        lines.append(text + ("!" if number % 7 == 0 else stop))
    return "\n\n".join(lines) + "\n"


def _texts(code: str) -> dict[str, str]:
    question = f"<Question {code}> Which numbers of"
    return {
        "task": f"Read this in {code}.\n\n<text>\n{{context}}\n</text>\n\n",
        "needle_words": 'The word for "{key}" is: {value} ',
        "needle_numbers": f'The number in {code} for "{{key}}" is: {{value}} ',
        "question_single_numbers": f'{question} "{{query1}}"?',
        "question_single_words": "",
        "question_multi_numbers": f'{question} "{{query1}}" and "{{query2}}"? ',
        "question_multi_words": "",
        "please_list": "List all.",
        "if_no_numbers": f'If there is none, answer "{NONE[code][0]}".</Question>\n\n\n',
        "if_no_words": "",
        "answer_prefix": "Answer in this form:\n",
        "answer_words": "",
        "answer_numbers": "<Answer> List all numbers here </Answer>",
        "none": NONE[code][0],
    }


def _dictionary(code: str) -> str:
    rows = [
        (_word(code, f"word {n}"), ("noun", "adjective", "verb", "other")[n % 4])
        for n in range(400)
    ]
    return "words,pos\n" + "".join(
        f"{word},{pos}\n"
        for word, pos in [*rows, ("null", "noun"), ("a1", "noun"), rows[0]]
    )


def score_cases() -> list[tuple[str, str, list[str], str]]:
    """Return cases for the metrics: kind of task, language, expected answers, output."""
    cases = []
    for code in CODES:
        none = NONE[code]
        for expected in (["1234567"], ["1234567", "7654321"], ["x"]):
            outputs = [
                "", "1234567", "7654321, 1234567", "<Answer> 1234567 </Answer> 99", "1234567 1234567 5", "１２３４５６７", none[0],
                none[-1].upper(), none[0].replace(" ", ""), f"{none[0]} 1234567", f"<Answer>{none[0]}</Answer>", "9" * 5000,
                "123\u200c4567", "<Answer>\n1234567\n</Answer>", "x 1234567", f" {none[0][:2]} ",
            ]  # fmt: skip
            cases += [
                (kind, code, expected, output)
                for kind in ("niah_single", "niah_none")
                for output in outputs
            ]
    words = [f"Wort{n}" for n in range(COMMON)]
    outputs = [
        ", ".join(words),
        ", ".join(words).upper(),
        ", ".join(words[:-1]),
        "",
        "<Answer>" + " ".join(words) + "</Answer>",
    ]
    return [*cases, *(("cwe", "de", words, output) for output in outputs)]
