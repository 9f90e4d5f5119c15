"""OneRuler's files are downloaded and read, what is missing is named, and lengths are filled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.oneruler import tasks
from helm_longctx.benchmarks.oneruler.tasks import (
    LANGUAGES,
    ONERULER,
    Material,
    fill_length,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.counting import make_counter
from helm_longctx.tasks.task import Settings
from tests.benchmarks.oneruler.fabricate import build_oneruler, tokenizer
from tests.data.pinned import fetch_fabricated

BY_CODE = {language.code: language for language in LANGUAGES}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_oneruler(tmp_path_factory.mktemp("oneruler"))


def test_prompts_are_downloaded(root: Path, tmp_path: Path) -> None:
    """Files come from a server, and content without the official digest is refused."""
    language = BY_CODE["sr"]
    fetched = fetch_fabricated([language.niah, language.cwe], root, tmp_path)
    assert Material(language, fetched).texts == json.loads(
        (root / language.niah.path).read_text(encoding="utf-8")
    )


def test_addresses_are_ascii() -> None:
    """Names of books with other letters are escaped in addresses, and no two files have the same place."""
    files = [file for language in LANGUAGES for file in language[2:] if file]
    assert all(file.url.isascii() for file in files)
    assert len({file.path for file in files}) == len(files) == 103


def test_a_tokenizer_is_needed(root: Path) -> None:
    """Without a tokenizer the error says which argument is missing."""
    task = ONERULER.task("de_niah_single")
    with pytest.raises(InputError, match="de_niah_single: count_with is missing"):
        list(task.load(task, Settings(8192), DataRoot(root, mirror=True)))


def test_sentences_without_stanza(root: Path, tmp_path: Path) -> None:
    """A language with a model of Stanza needs it or a file of sentences; the two without one are split by a rule."""
    for code in ("de", "sw"):
        language = BY_CODE[code]
        (tmp_path / language.book.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / language.book.path).write_bytes(
            (root / language.book.path).read_bytes()
        )
    mirror = DataRoot(tmp_path, mirror=True)
    with pytest.raises(
        InputError,
        match=r"the book in de cannot be split into sentences .*stanza.download\('de'\)",
    ):
        Material(BY_CODE["de"], mirror).sentences  # noqa: B018
    assert len(Material(BY_CODE["sw"], mirror).sentences) > 20


@pytest.mark.parametrize("content", ["[1]", "{}"])
def test_a_malformed_file_of_sentences_is_named(
    root: Path, tmp_path: Path, content: str
) -> None:
    """A file of sentences that is not a list of texts is refused."""
    language = BY_CODE["de"]
    for path, text in (
        (language.book.path, "Ein Satz."),
        ("oneruler/sentences/de.json", content),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"de\.json must be a list of texts"):
        Material(language, DataRoot(tmp_path, mirror=True)).sentences  # noqa: B018


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(0, 100))
def test_a_length_is_filled(sizes: list[int], tokens: int) -> None:
    """The sentences fit into the length, one more would not, and a short book starts again."""
    sentences = ["x" * size for size in sizes]
    filled = fill_length(sentences, tokens, lambda *texts: sum(map(len, texts)))
    assert filled == (sentences * 101)[: len(filled)]
    assert (
        sum(map(len, filled))
        <= tokens
        < sum(map(len, filled)) + len(sentences[len(filled) % len(sentences)])
    )


@given(st.text(), st.lists(st.text(), max_size=3), st.sampled_from(sorted(BY_CODE)))
def test_any_output_is_scored(output: str, expected: list[str], code: str) -> None:
    """Every output gets both scores, whatever is in it and in the expected answers."""
    for compare in (tasks.has_numbers, tasks.has_words, tasks.says_none):
        scores = tasks.score(
            {"prediction": output, "references": expected}, compare, code
        )
        assert scores.keys() == {"accuracy", "accuracy_in_answer"}


def test_the_lexical_baseline_finds_needles(root: Path) -> None:
    """The baseline answers questions about a single key from what stands before the numbers."""
    counter = make_counter(tokenizer())
    for name in ("niah_single", "niah_multivalue"):
        task = ONERULER.task(f"fr_{name}")
        (example,) = task.load(
            task,
            Settings(8192, num_samples=1, counter=counter),
            DataRoot(root, mirror=True),
        )
        answer = task.baseline.kind(example.messages)
        assert (
            task.score({"prediction": answer, "references": example.references})[
                "accuracy"
            ]
            == 1
        ), name
