"""The faster parts of RULER's haystacks equal the official scripts', and bad input is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from nltk.tokenize.punkt import PunktTokenizer

from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.benchmarks.ruler.tasks import (
    ESSAYS,
    draw_chain,
    read_essays,
    score_all,
    score_any,
    track_variables,
    write_uuid,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks import sentences
from helm_longctx.tasks.generation import KeyWords, Script, key_words
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.support import punkt
from tests.support.fabricate_words import words


@pytest.fixture
def essays(tmp_path: Path) -> Iterator[tuple[DataRoot, list[str]]]:
    """Write a file of essays and return its data root and its words."""
    rng = random.Random(2)
    text = " ".join(
        f"{words(rng, rng.randint(1, 9)).capitalize()}{rng.choice('..!?:')}"
        for _ in range(900)
    )
    (tmp_path / ESSAYS.path).parent.mkdir()
    (tmp_path / ESSAYS.path).write_bytes(
        orjson.dumps({"text": text.replace(".", ".\n", 200)})
    )
    with punkt.installed(tmp_path / "nltk"):
        yield DataRoot(tmp_path, mirror=True), text.split()


def test_sentences_are_those_of_the_text_alone(
    essays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentences are NLTK's, whatever numbers of words were asked for before."""
    root, every = essays
    monkeypatch.setattr(sentences, "_MARGIN", 400)
    shared = read_essays(root)
    for count in (500, 1200, 1199, 40, 3000, len(every) + 700, 2500, 1):
        text = " ".join((every * 2)[:count])
        assert shared.sentences(count) == PunktTokenizer("english").tokenize(text), (
            count
        )


def test_key_words_are_in_alphabetical_order() -> None:
    """Pairs that are made one at a time equal the sorted pairs, also if one adjective begins with another one."""
    adjectives = ["old", "old-fashioned", "ad hoc", "a", "blue", "old", "b"]
    nouns = ["zoo", "age", "c-clamp", "f"]
    pairs = KeyWords(adjectives, nouns)
    assert [pairs[number] for number in range(pairs.count)] == sorted(
        {f"{a}-{n}" for a in adjectives for n in nouns}
    )


def test_key_words_of_the_package() -> None:
    """The package's pairs are in ascending order at 3000 random places."""
    pairs = key_words()
    rng = random.Random(5)
    places = sorted(rng.sample(range(pairs.count), 3000))
    placed_pairs = [pairs[position] for position in places]
    assert placed_pairs == sorted(placed_pairs)
    assert pairs.count > 6_000_000


@pytest.mark.parametrize("content", [b"[]", b"{}", b"{", b'{"text": 3}'])
def test_malformed_essays(content: bytes, tmp_path: Path) -> None:
    """The error names a malformed file in one line."""
    (tmp_path / "ruler_source").mkdir()
    (tmp_path / ESSAYS.path).write_bytes(content)
    task = BENCHMARK.task("niah_single_2")
    settings = Settings(length=4096, num_samples=1, counter=len)
    with pytest.raises(
        InputError, match=r"PaulGrahamEssays\.json does not have niah_single_2's format"
    ):
        list(load_examples(task, settings, DataRoot(tmp_path, mirror=True)))


def test_a_length_without_room_is_refused(tmp_path: Path) -> None:
    """A length into which no sample fits is refused, where the official script never ends."""
    task = BENCHMARK.task("niah_single_1")
    with pytest.raises(InputError, match="no sample fits into 4096 tokens"):
        list(
            task.load(
                task,
                Settings(length=4096, counter=lambda *texts: 5000),
                DataRoot(tmp_path, mirror=True),
            )
        )


def test_scores() -> None:
    """Case and control characters do not matter; one task scores each answer, and the other needs only one."""
    record = {
        "prediction": "\x00 ABC\x07and 12 ",
        "references": ["abc", "12", "x", "\nand"],
    }
    assert score_all(record) == {"string_match_all": 0.75}
    assert score_any({**record, "references": ["x", "abc"]}) == {
        "string_match_part": 1.0
    }
    assert score_any({**record, "references": ["x"]}) == {"string_match_part": 0.0}
    assert score_all({**record, "references": []}) == {}


def test_variables_with_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal names end in an error after two drawn values, as in the official script, and end the generation."""
    rng = random.Random(0)
    names = iter("AABCDE")
    drawn = []
    monkeypatch.setattr(rng, "choices", lambda *_, **__: next(names))

    def draw_value() -> str:
        drawn.append("12345")
        return drawn[-1]

    with pytest.raises(IndexError):
        draw_chain(rng, 1, draw_value, 20)
    assert len(drawn) == 2
    template = BENCHMARK.task("vt").template
    script = Script(
        template,
        lambda *texts: len(" ".join(texts)) // 4,
        4096,
        30,
        35,
        DataRoot(Path("absent"), mirror=True),
    )
    with pytest.raises(
        InputError, match=r"two variables have the same name.*use another seed"
    ):
        next(track_variables(script))


def test_uuids() -> None:
    """The UUIDs equal the standard library's."""
    rng = random.Random(4)
    numbers = [
        *(1 << bit for bit in range(128)),
        *(rng.getrandbits(128) for _ in range(50)),
    ]
    assert [write_uuid(number) for number in numbers] == [
        str(UUID(int=number, version=4)) for number in numbers
    ]
