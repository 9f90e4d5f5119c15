"""The parts of RULER's haystacks that are made faster than in the official scripts, and bad input."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from nltk.tokenize.punkt import PunktTokenizer

from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.benchmarks.ruler.generate import draw_chain, track_variables, write_uuid
from helm_longctx.benchmarks.ruler.haystacks import ESSAYS, KeyWords, key_words, read_essays
from helm_longctx.benchmarks.ruler.scoring import score_all, score_any
from helm_longctx.benchmarks.ruler.search import Script
from helm_longctx.errors import InputError
from helm_longctx.protocol import sentences
from helm_longctx.protocol.loading import load_examples
from helm_longctx.protocol.task import Settings
from helm_longctx.sources.root import DataRoot
from tests import punkt
from tests.fabricate_words import words


@pytest.fixture
def essays(tmp_path: Path) -> Iterator[tuple[DataRoot, list[str]]]:
    """A file of essays and its words."""
    rng = random.Random(2)
    text = " ".join(f"{words(rng, rng.randint(1, 9)).capitalize()}{rng.choice('..!?:')}" for _ in range(900))
    (tmp_path / ESSAYS.path).parent.mkdir()
    (tmp_path / ESSAYS.path).write_bytes(orjson.dumps({"text": text.replace(".", ".\n", 200)}))
    with punkt.installed(tmp_path / "nltk"):
        yield DataRoot(tmp_path, mirror=True), text.split()


def test_sentences_are_those_of_the_text_alone(essays, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever numbers of words were asked for before, more and fewer, the sentences are NLTK's."""
    root, every = essays
    monkeypatch.setattr(sentences, "MARGIN", 400)
    shared = read_essays(root)
    for count in (500, 1200, 1199, 40, 3000, len(every) + 700, 2500, 1):
        text = " ".join((every * 2)[:count])
        assert shared.sentences(count) == PunktTokenizer("english").tokenize(text), count


def test_key_words_are_in_alphabetical_order() -> None:
    """Pairs made one at a time are the sorted pairs, also of adjectives that begin with another one."""
    adjectives, nouns = ["old", "old-fashioned", "ad hoc", "a", "blue", "old", "b"], ["zoo", "age", "c-clamp", "f"]
    pairs = KeyWords(adjectives, nouns)
    assert [pairs[number] for number in range(pairs.count)] == sorted({f"{a}-{n}" for a in adjectives for n in nouns})


def test_key_words_of_the_package() -> None:
    """The package's pairs ascend everywhere where it is looked."""
    pairs, rng = key_words(), random.Random(5)
    places = sorted(rng.sample(range(pairs.count), 3000))
    found = [pairs[place] for place in places]
    assert found == sorted(found)
    assert pairs.count > 6_000_000


@pytest.mark.parametrize("content", [b"[]", b"{}", b"{", b'{"text": 3}'])
def test_malformed_essays(content: bytes, tmp_path: Path) -> None:
    """A malformed file is named in one line."""
    (tmp_path / "ruler_source").mkdir()
    (tmp_path / ESSAYS.path).write_bytes(content)
    task = BENCHMARK.task("niah_single_2")
    settings = Settings(length=4096, num_samples=1, counter=len)
    with pytest.raises(InputError, match=r"PaulGrahamEssays\.json does not have niah_single_2's format"):
        list(load_examples(task, settings, DataRoot(tmp_path, mirror=True)))


def test_a_length_without_room_is_refused(tmp_path: Path) -> None:
    """The official script never ends where no sample fits."""
    task = BENCHMARK.task("niah_single_1")
    with pytest.raises(InputError, match="no sample of RULER fits into 4096 tokens"):
        list(task.load(task, Settings(length=4096, counter=lambda *texts: 5000), DataRoot(tmp_path, mirror=True)))


def test_scores() -> None:
    """Case and control characters do not matter; each answer counts, or one is enough."""
    record = {"prediction": "\x00 ABC\x07and 12 ", "references": ["abc", "12", "x", "\nand"]}
    assert score_all(record) == {"string_match_all": 0.75}
    assert score_any({**record, "references": ["x", "abc"]}) == {"string_match_part": 1.0}
    assert score_any({**record, "references": ["x"]}) == {"string_match_part": 0.0}
    assert score_all({**record, "references": []}) == {}


def test_variables_with_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The official script draws two values before it fails at them. Its search, which tries nothing again, ends then."""
    rng, names, drawn = random.Random(0), iter("AABCDE"), []
    monkeypatch.setattr(rng, "choices", lambda *_, **__: next(names))

    def draw_value() -> str:
        drawn.append("12345")
        return drawn[-1]

    with pytest.raises(IndexError):
        draw_chain(rng, 1, draw_value, 20)
    assert len(drawn) == 2
    template = BENCHMARK.task("vt").template
    script = Script(
        template, lambda *texts: len(" ".join(texts)) // 4, 4096, 30, 35, DataRoot(Path("absent"), mirror=True)
    )
    with pytest.raises(InputError, match=r"two variables have the same name.*use another seed"):
        next(track_variables(script))


def test_uuids() -> None:
    """They are those of the standard library."""
    rng = random.Random(4)
    numbers = [*(1 << bit for bit in range(128)), *(rng.getrandbits(128) for _ in range(50))]
    assert [write_uuid(number) for number in numbers] == [str(UUID(int=number, version=4)) for number in numbers]
