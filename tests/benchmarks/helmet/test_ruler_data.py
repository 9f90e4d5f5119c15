"""Generated rows in RULER's form hold their evidence once, at the stated depth, at any size."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet import prompts
from helm_longctx.benchmarks.helmet.data import recall
from helm_longctx.benchmarks.helmet.data.recall import Maker, _ruler, evidence_depth
from helm_longctx.data.jsonl import Row
from helm_longctx.tasks.prompt import Template

NEEDLE = Template(prompts.NIAH_USER, prompts.NIAH_PREFIX)
NEEDLES = Template(prompts.NIAH_MULTI_USER, prompts.NIAH_MULTI_PREFIX)
QUESTIONS = Template(prompts.RULER_QA_USER, prompts.RULER_QA_PREFIX)
NIAH: dict[str, Maker] = {
    "noise": partial(recall.hide_needles, haystack="noise"),
    "prose": partial(recall.hide_needles, haystack="prose"),
    "prose_uuid": partial(recall.hide_needles, haystack="prose", kind="uuids"),
    "multikey_prose": partial(recall.hide_needles, haystack="prose", keys=4),
    "multiquery": partial(recall.hide_needles, haystack="prose", keys=4, queries=4),
}
ANSWERS = {
    **dict.fromkeys([*NIAH.values()][:4], (NEEDLE, 1)),
    NIAH["multiquery"]: (NEEDLES, 4),
    recall.common_words: (Template(prompts.CWE_USER, prompts.CWE_PREFIX), 10),
    recall.frequent_words: (Template(prompts.FWE_USER, prompts.FWE_PREFIX), 3),
    recall.variable_tracking: (Template(prompts.VT_USER, prompts.VT_PREFIX), 5),
    recall.one_hop_questions: (QUESTIONS, 1),
    recall.two_hop_questions: (QUESTIONS, 1),
}
NO_DEPTH = {recall.common_words, recall.frequent_words, recall.variable_tracking}


def name(make: Maker) -> str:
    return next(
        (name for name, maker in NIAH.items() if maker is make),
        getattr(make, "__name__", ""),
    )


def makers(*chosen: Maker) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("make", chosen or list(ANSWERS), ids=name)


SINGLE = makers(*[*NIAH.values()][:3])
PLACED = makers(*(make for make in ANSWERS if make not in NO_DEPTH))
UNITS = st.integers(1, 300)
SEEDS = st.integers(0, 10**6)
DEPTHS = st.floats(0, 1)


def row_of(make: Maker, units: int = 100, seed: int = 0, depth: float = 0.5) -> Row:
    return make(units, random.Random(seed), depth)


def needles_in(row: Row) -> list[tuple[str, str, str]]:
    return re.findall(
        r"One of the special magic (numbers|uuids) for (\S+) is: ([\w-]+)\.",
        row["context"],
    )


def entries(text: str) -> list[str]:
    """Return the words of a numbered list, whose numbers count from one."""
    numbers, words = zip(*re.findall(r"(\d+)\. (\S+)", text), strict=True)
    assert list(numbers) == [str(n) for n in range(1, len(numbers) + 1)]
    return list(words)


def assigned(text: str) -> dict[str, list[str]]:
    """Return the variables by value after all assignments of the text were executed in order."""
    values: dict[str, str] = {}
    for name, source, number in re.findall(
        r"VAR ([A-Z]+) = (?:VAR ([A-Z]+)|(\d+))", text
    ):
        assert name not in values
        values[name] = number or values[source]
    return {
        value: [name for name in values if values[name] == value]
        for value in values.values()
    }


def documents(row: Row) -> list[str]:
    parts = re.split(r"(?:^|\n\n)Document (\d+):\n", row["context"])
    assert parts[1::2] == [str(n) for n in range(1, len(parts) // 2 + 1)]
    return parts[2::2]


@makers()
@given(units=UNITS, seed=SEEDS, depth=DEPTHS)
def test_any_size_has_its_answers(
    make: Maker, units: int, seed: int, depth: float
) -> None:
    """Every row has the template's fields and distinct answers that are in the context."""
    row = row_of(make, units, seed, depth)
    template, count = ANSWERS[make]
    assert len(set(row["answer"])) == len(row["answer"]) == count
    assert all(answer and answer in row["context"] for answer in row["answer"])
    fields, references = _ruler(row, "here", template.names)
    assert references == row["answer"]
    assert row["context"] in template.render(fields).text("completion")
    assert ("depth" in row) == (make not in NO_DEPTH)


@makers()
def test_the_generator_decides(make: Maker) -> None:
    """The same seed gives the same row, and another seed gives another row."""
    assert row_of(make) == row_of(make)
    assert row_of(make)["context"] != row_of(make, seed=1)["context"]


@makers()
def test_length_grows_with_units(make: Maker) -> None:
    """The length of the context grows about linearly with the units."""
    assert (
        1.5
        < len(row_of(make, 400)["context"]) / len(row_of(make, 200)["context"])
        < 2.5
    )


@PLACED
@pytest.mark.parametrize("depth", [0, 0.5, 1])
def test_evidence_stands_at_its_depth(make: Maker, depth: float) -> None:
    """The context has each answer once, and the first one stands at the row's depth."""
    row = row_of(make, 200, depth=depth)
    assert row["depth"] == depth
    assert all(row["context"].count(answer) == 1 for answer in row["answer"])
    assert evidence_depth(row["context"], row["answer"][:1]) == pytest.approx(
        depth, abs=0.03
    )


@SINGLE
@given(units=UNITS, seed=SEEDS, depth=DEPTHS)
def test_one_needle(make: Maker, units: int, seed: int, depth: float) -> None:
    """The only needle has the key in the question, and its value is the answer and has the kind that the prompt
    says."""
    row = row_of(make, units, seed, depth)
    assert needles_in(row) == [
        (row["type_needle_v"] + "s", row["query"], row["answer"][0])
    ]
    form = (
        r"\d{7}"
        if row["type_needle_v"] == "number"
        else r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}"
    )
    assert re.fullmatch(form, row["answer"][0])


def test_noise_is_repeated() -> None:
    """The repeated haystack has one passage for each unit, and the needle is on its own line."""
    lines = row_of(NIAH["noise"], 50)["context"].split("\n")
    assert Counter(lines)[recall.texts()["noise"]] == 50
    assert len(lines) == 51


@given(units=UNITS, seed=SEEDS, depth=DEPTHS)
def test_one_of_four_keys(units: int, seed: int, depth: float) -> None:
    """The context has four keys with a number each, and the question asks for one of them."""
    row = row_of(NIAH["multikey_prose"], units, seed, depth)
    values = {key: value for _, key, value in needles_in(row)}
    assert len(values) == len(set(values.values())) == len(needles_in(row)) == 4
    assert row["answer"] == [values[row["query"]]]


@given(units=UNITS, seed=SEEDS, depth=DEPTHS)
def test_all_of_four_keys(units: int, seed: int, depth: float) -> None:
    """The context has four keys with a number each, and the question asks for all of them in the order of the
    answers."""
    row = row_of(NIAH["multiquery"], units, seed, depth)
    values = {key: value for _, key, value in needles_in(row)}
    first, second, third, fourth = re.fullmatch(
        r"(\S+), (\S+), (\S+), and (\S+)", row["query"]
    ).groups()
    assert len(needles_in(row)) == 4
    assert row["answer"] == [values[key] for key in (first, second, third, fourth)]


@given(units=UNITS, seed=SEEDS)
def test_common_words_are_common(units: int, seed: int) -> None:
    """Ten words occur thirty times, and all other words occur three times."""
    row = row_of(recall.common_words, units, seed)
    counts = Counter(entries(row["context"]))
    assert {word for word, count in counts.items() if count == 30} == set(row["answer"])
    assert sorted(counts.values()) == [3] * units + [30] * 10


def test_common_words_example_is_solved() -> None:
    """The worked example has RULER's frequencies and the right answer, and shares no word with the row."""
    row = row_of(recall.common_words)
    example, solution = row["example"].split(prompts.CWE_PREFIX)
    counts = Counter(entries(example.split("\n")[1]))
    assert {word for word, count in counts.items() if count == 10} == set(
        entries(solution)
    )
    assert sorted(counts.values()) == [3] * 30 + [10] * 10
    assert not set(counts) & set(entries(row["context"]))


def test_common_words_do_not_end() -> None:
    """A context with more words than the list has distinct compounds, too."""
    counts = Counter(entries(row_of(recall.common_words, 20_000)["context"]))
    assert len(counts) == 20_010
    assert max(map(len, counts)) < 60


@given(units=st.integers(1, 3000), seed=SEEDS)
def test_frequent_words_are_in_strict_order(units: int, seed: int) -> None:
    """The three answers are, after the dots, the most frequent words in strict order."""
    row = row_of(recall.frequent_words, units, seed)
    (noise, most), *coded = Counter(row["context"].split(" ")).most_common()
    counts = [
        most,
        *(count for _, count in coded[:3]),
        coded[3][1] if len(coded) > 3 else 0,
    ]
    assert noise == recall.NOISE_WORD
    assert [word for word, _ in coded[:3]] == row["answer"]
    assert all(more > fewer for more, fewer in pairwise(counts))
    assert all(re.fullmatch("[a-z]{6}", word) for word, _ in coded)


def test_frequencies_are_zipf() -> None:
    """The k-th word occurs 1/k² times as often as the first word."""
    counts = [
        count
        for _, count in Counter(
            row_of(recall.frequent_words, 50_000)["context"].split()
        ).most_common(8)
    ]
    assert [count / counts[0] for count in counts] == pytest.approx(
        [1 / k**2 for k in range(1, 9)], rel=0.01
    )


@given(units=UNITS, seed=SEEDS)
def test_the_chain_resolves(units: int, seed: int) -> None:
    """The assignments, executed in order, give the wanted value to the answers and to no other variable."""
    row = row_of(recall.variable_tracking, units, seed)
    assert assigned(row["context"]) == {row["query"]: row["answer"]}
    assert row["num_v"] == len(row["answer"]) == 5


def test_the_chain_is_spread() -> None:
    """The assignments stand in different places of the noise."""
    places = [
        row_of(recall.variable_tracking, 300, seed)["context"].index("VAR")
        for seed in range(20)
    ]
    row = row_of(recall.variable_tracking, 300)
    assert len(set(places)) > 15
    assert row["context"].count(recall.texts()["noise"]) == 300
    assert evidence_depth(row["context"], row["answer"][-1:]) > 0.4


def test_the_chain_example_is_solved() -> None:
    """The worked example resolves to its answer, and shares neither its value nor its variables with the row."""
    row = row_of(recall.variable_tracking)
    example, solution = row["example"].split(", they are: ")
    ((value, names),) = assigned(example).items()
    assert solution.split() == names
    assert example.endswith(f"5 variables are assigned the value {value}")
    assert value != row["query"]
    assert not set(names) & set(row["answer"])


@given(units=UNITS, seed=SEEDS, depth=DEPTHS)
def test_one_document_answers(units: int, seed: int, depth: float) -> None:
    """Exactly one document has the name in the question, and it alone has the answer."""
    row = row_of(recall.one_hop_questions, units, seed, depth)
    texts = documents(row)
    assert len(texts) == units
    (asked,) = [text for text in texts if row["answer"][0] in text]
    assert [text for text in texts if subject(row["question"]) in text] == [asked]
    assert texts.index(asked) == round(depth * (units - 1))


@given(units=UNITS, seed=SEEDS, depth=DEPTHS)
def test_two_documents_answer(units: int, seed: int, depth: float) -> None:
    """One document has the name in the question and the title of another document, which alone has the answer."""
    row = row_of(recall.two_hop_questions, units, seed, depth)
    texts = documents(row)
    assert len(texts) == max(2, units)
    (second,) = [text for text in texts if row["answer"][0] in text]
    (first,) = [text for text in texts if subject(row["question"]) in text]
    assert first != second
    assert second.split("\n")[0] in first
    assert row["answer"][0] not in first
    assert subject(row["question"]) not in second
    assert texts.index(second) == round(depth * (len(texts) - 1))


@makers(recall.one_hop_questions, recall.two_hop_questions)
def test_questions_are_of_several_kinds(make: Maker) -> None:
    """The rows of a file ask several kinds of questions."""
    asked = {
        re.sub(subject(q), "…", q)
        for q in (row_of(make, 4, seed)["question"] for seed in range(60))
    }
    assert len(asked) == (5 if make is recall.one_hop_questions else 3)


def subject(question: str) -> str:
    """Return the name that a question is about, which is its last words with a capital."""
    (name,) = re.findall(
        r"(?<!^)((?:The Road to )?[A-Z]\w+(?: & Sons| [A-Z]\w+)?)", question
    )
    return name
