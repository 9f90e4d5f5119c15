from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.models.baselines import lexical
from helm_longctx.models.baselines.lexical import words
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import AnswerKind, Example, Task

TASKS = [task for benchmark in BENCHMARKS for task in benchmark.tasks]
KINDS = {
    task.name: task.baseline.kind
    for benchmark in BENCHMARKS
    for task in benchmark.tasks
    if task.baseline
}
RECALL = [
    task for task in TASKS if task.any_length and KINDS.get(task.name) == "lookup"
]
ICL = next(task for task in TASKS if KINDS.get(task.name) == "label")

TOPICS = {
    "7": (
        "my card was stolen",
        "block the card",
        "the card was lost in the street",
        "someone stole my card",
    ),
    "31": (
        "what is the weather like",
        "will it rain tomorrow",
        "weather in the north",
        "is it going to rain",
    ),
    "4": (
        "book a flight to rome",
        "find a flight for monday",
        "cheap flight please",
        "when does the flight leave",
    ),
}


def scored(task: Task, example: Example, form: str) -> float:
    """Return the main score of the lexical model's answer, as the metric computes it."""
    prompt = task.prompt(example).user_turn
    prefix = ""
    if form == "completion":
        prompt, prefix = (
            task.prompt(example).text("completion"),
            task.prompt(example).answer_prefix,
        )
    record = {
        "prediction": prefix + lexical.answer(prompt),
        "references": example.references,
    }
    return task.scores(record)["longctx_score"]


@pytest.mark.parametrize("form", ["chat", "completion"])
@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("the card someone stole", "7"),
        ("rain and weather tomorrow?", "31"),
        ("a flight on monday", "4"),
    ],
)
def test_labels_as_the_nearest_demonstrations(
    question: str, label: str, form: str
) -> None:
    """The label of the demonstrations that share the question's words is right in both forms."""
    fields = {CONTEXT: demonstrations(), "question": question}
    assert scored(ICL, Example("x", fields, [label], "hub"), form) == 1


def demonstrations() -> str:
    return "\n\n".join(
        f"{text}\nlabel: {label}" for label, texts in TOPICS.items() for text in texts
    )


def test_repeated_demonstration_votes_once() -> None:
    """A demonstration that occurs many times does not outvote several different ones."""
    context = "\n\n".join(
        ["what is abc\nlabel: 1"] * 100
        + [f"what is a word{i}\nlabel: 2" for i in range(9)]
    )
    assert lexical.nearest_label(context, "what is love") == "2"


def test_label_with_a_colon_is_whole() -> None:
    """A label name keeps its colon."""
    assert (
        lexical.nearest_label(
            "what cat\nlabel: ENTY:animal\n\nwho\nlabel: HUM:ind", "which cat"
        )
        == "ENTY:animal"
    )


def test_demonstration_with_an_empty_line() -> None:
    """Text before an empty line in a demonstration is not a demonstration without a label."""
    assert (
        lexical.nearest_label(
            "my card\n\nis lost\nlabel: 7\n\nrain\nlabel: 8", "card is lost"
        )
        == "7"
    )


def test_no_shared_word_gives_the_first_label() -> None:
    """Without a common word the answer is the first label, if there is a demonstration."""
    assert lexical.nearest_label(demonstrations(), "zzz") == "7"
    assert lexical.nearest_label("", "zzz") == ""


def test_all_values_of_a_key_in_order_once() -> None:
    """Every best line gives its value, and each value occurs once."""
    lines = ["fox is: 1.", "cow is: 2.", "fox is: 3.", "fox is: 1."]
    assert lexical.value_after(" ".join(lines), "fox") == "1, 3"


@pytest.mark.parametrize(
    "value",
    ["ffff12cd-0000-0000-0000-000000000000", "00000000-0000-0000-12cd-000000000000"],
)
def test_value_that_holds_a_piece_of_the_key(value: str) -> None:
    """A value is whole even if it contains a piece of the key."""
    key = "aaaaaaaa-12cd-4444-5555-bbbbbbbbbbbb"
    assert (
        lexical.value_after(f'{{\n "other": "x",\n "{key}": "{value}"\n}}', key)
        == value
    )


def test_order_of_a_key_s_words() -> None:
    """A key with the same words in another order is another key."""
    assert lexical.value_after("red-light is: 1.\nlight-red is: 2.", "light-red") == "2"


def test_letters_whose_lower_case_is_longer() -> None:
    """Lines are found after letters whose lower case is two letters."""
    assert (
        lexical.value_after(
            "İ" * 50 + " no.\nfox is: 1.\ncow is: 2.\ndog is: 3.", "cow"
        )
        == "2"
    )


def test_line_without_a_value() -> None:
    """A line that has only the question's own words gives no value."""
    assert lexical.value_after("nothing here\nred fox", "fox red") == ""
    assert lexical.value_after("nothing here", "fox") == ""


@given(
    st.lists(st.sampled_from(["a", "b1", "İ", " ", ":", "\n", "\n\n", "\nlabel:"])).map(
        "".join
    ),
    st.text("ab1 \n"),
)
def test_never_raises_on_blocks(context: str, question: str) -> None:
    """Empty or repeated blocks and blocks without a label raise no error."""
    lexical.nearest_label(context, question)
    lexical.value_after(context, question)


@pytest.mark.parametrize("task", [ICL, RECALL[0]], ids=lambda task: task.name)
def test_a_long_prompt(task: Task) -> None:
    """A prompt of half a megabyte, about 128k tokens, has an answer; `bench/methods/lexical.py` measures the time."""
    context = "\n\n".join(
        f"the text number {i} of some words\nlabel: {i % 9}" for i in range(12_000)
    )
    fields = {CONTEXT: context, "question": "the text number 77", "demos": ""}
    prompt = task.template.render(fields).user_turn
    assert len(prompt) > 500_000
    assert lexical.answer(prompt)


PASSAGES = (
    "Document [1](Title: Lake Vel): The lake is deep. Fish live in it.\n\n"
    "Document [2](Title: Tower): Anna Karst built the tower in 1887. It is tall.\n\n"
    "Document [3](Title: Bridge): A bridge stands near the lake."
)


def test_span() -> None:
    """A span has names and numbers near the question's words, and numbers first if the question asks for one."""
    context = re.sub(r" \[\d\]", " ", PASSAGES)
    assert lexical.span(context, "who built the tower?").startswith("Anna Karst")
    assert lexical.span(context, "when was the tower built?").startswith("1887")
    assert (
        len(lexical.span("Ab Cd. " * 500 + "fox " + "Ef Gh " * 50, "fox").split())
        <= lexical.SPAN_WORDS
    )
    assert lexical.span("", "who?") == ""


def test_ranking() -> None:
    """A ranking has the ids of passages that share words with the query, best first, within the budget."""
    context = "\n\n".join(
        f"[ID: {n}] Document (Title: T): {'red fox ' * (n == 7)}fox {n}"
        for n in range(60)
    )
    ids = lexical.ranking(context, "red fox").split(" > ")
    assert ids[0] == "7"
    assert len(ids) == lexical.RANKED
    assert lexical.ranking("no passages", "red fox") == ""


def test_citation() -> None:
    """A citation quotes sentences with the number of their passage."""
    said = lexical.citation(PASSAGES, "who built the tower")
    assert said.startswith("Document") is False
    assert "Anna Karst built the tower in 1887 [2]." in said


def test_option() -> None:
    """The chosen option is near the question's words."""
    context = (
        "The fox ran to the barn.\nThe cat slept in the attic.\nThe attic burnt down."
    )
    assert (
        lexical.option(
            context, "where did the cat sleep", "A. barn\nB. attic\nC. lake\nD. moon"
        )
        == "B"
    )
    assert lexical.option(context, "?", "") == ""


def test_lead_frequent_and_chain() -> None:
    """The lead, frequent and chain strategies give first sentences, the most frequent words, and passed-on values."""
    text = " ".join(f"Sentence number {n} is here." for n in range(100))
    assert lexical.lead(text, "").startswith("Sentence number 0 is here.")
    assert 20 < len(lexical.lead(text, "").split()) <= 200
    assert lexical.frequent("1. cat 2. dog 3. cat 4. red-fox 5. cat 6. dog", "").split(
        ", "
    )[:2] == ["cat", "dog"]
    assert lexical.frequent("abc ... abc xyz ... abc xyz pqr lmn", "").split(", ")[
        :2
    ] == [
        "abc",
        "xyz",
    ]
    assignments = (
        "VAR A = 12 noise. VAR B = VAR A\nVAR X = 99 VAR C = VAR B VAR Y = VAR X"
    )
    assert lexical.chain(assignments, "12") == "A, B, C"


@given(st.text(), st.text())
def test_nothing_raises(context: str, question: str) -> None:
    """No strategy raises an error, whatever a prompt contains."""
    for strategy in lexical._STRATEGIES.values():
        strategy(context, question)
    lexical.option(context, question, question)


ODD = ["", "word", "no match at all", "İ" * 200 + " fox. ß İX Fox\n\nfox İİ", "\n\n" * 50, ". " * 50, "A" * 5000, "A. " * 2000,
    "1 " * 2000, "Document [1](Title: x): ", "[ID: 3] Document: fox", "1. a 2. a", "VAR A = fox VAR A = VAR A"]  # fmt: skip


@pytest.mark.parametrize("context", ODD)
@pytest.mark.parametrize(
    "question", ["", "fox", "who is the İ fox?", "when 1 fox", "(.*"]
)
def test_odd_texts_are_answered(context: str, question: str) -> None:
    """Empty, repeated and odd letters make no strategy fail."""
    for strategy in lexical._STRATEGIES.values():
        assert isinstance(strategy(context, question), str)
    assert lexical.option(context, question, "A. fox\nB. \nC. .\nD. İ") in "ABCD"


HEADS: dict[AnswerKind, str] = {
    "lookup": "{n}. ",
    "span": "Document (Title: Lake): ",
    "ranking": "[ID: {n}] Document: ",
    "citation": "Document [{n}](Title: The town of Some{n}): ",
    "summary": "",
}


def passages(kind: AnswerKind, count: int) -> str:
    """Return a passage with rare words among others, as the kind's task shows them."""
    texts = ["The lake Vel was dug by Anna Karst in 1887. Today it is deep."]
    texts += (
        f"The town of Some{n} has a fox number {n}. There it is."
        for n in range(1, count)
    )
    return "\n\n".join(HEADS[kind].format(n=n) + text for n, text in enumerate(texts))


@pytest.mark.parametrize("kind", HEADS)
def test_long_context_is_never_tokenized(
    kind: AnswerKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of characters that are cut into words does not grow with the context."""
    read = 0

    def counted(text: str) -> list[str]:
        nonlocal read
        read += len(text)
        return words(text)

    monkeypatch.setattr(lexical, "words", counted)
    counts = []
    for size in (500, 8000):
        read = 0
        assert lexical._STRATEGIES[kind](passages(kind, size), "who dug the lake Vel?")
        counts.append(read)
    assert counts[1] <= counts[0] + 100


def test_span_takes_the_best_passage_first() -> None:
    """Names of the passage with the rarest words come first, without a sentence's first word."""
    assert lexical.span(passages("span", 300), "who dug the lake Vel?").startswith(
        "Anna Karst"
    )
    assert lexical.span(passages("span", 300), "when was the lake Vel dug?").startswith(
        "1887"
    )
    context = "Document 1:\nThe fox is red.\n\nDocument 2:\nIn it the Élan Vital of Bergson is told; told in vain."
    assert lexical.span(context, "whose vital force is told?") == "Élan Vital Bergson"


def test_span_in_a_text_without_paragraphs() -> None:
    """A book of one paragraph is searched by its sentences."""
    book = (
        " ".join(f"Then Peter{n} came to the house." for n in range(2000))
        + " The wolf was killed by Old Mary. End."
    )
    assert lexical.span(book, "who killed the wolf?").startswith("Old Mary")


def test_ranking_by_rare_words() -> None:
    """A passage with the rare word is ranked before passages with the common one."""
    context = "[ID: 7] Document: the fox\n\n[ID: 8] Document: the fox sleeps\n\n[ID: 9] Document: the fox of Vel"
    assert lexical.ranking(context, "fox of Vel").startswith("9 > 7")


def test_option_across_lines() -> None:
    """Words count as neighbours even if a line break is between them."""
    context = "\n".join(
        [
            "He went to",
            "the barn",
            *["and so on"] * 9,
            "the cat",
            "slept in",
            "the attic",
            *["on"] * 9,
        ]
    )
    assert (
        lexical.option(
            context, "where did the cat sleep", "A. barn\nB. lake\nC. moon\nD. attic"
        )
        == "D"
    )


def test_lead_begins_with_whole_words() -> None:
    """Every quoted place begins where a sentence does."""
    text = " ".join(
        f"Start{n} of a sentence, which goes on and on." for n in range(400)
    )
    said = lexical.lead(text, "")
    assert said.count("Start") == lexical.PARTS
    assert all(part.startswith("Start") for part in said.split(". "))
    assert len(lexical.lead("word " * 5000, "").split()) <= 200


def test_chain_follows_the_order() -> None:
    """A variable counts only if its source had the value before, and each variable is named once."""
    assert (
        lexical.chain(
            "VAR C = VAR B VAR A = 12 VAR B = VAR A VAR B = VAR A VAR D = 123", "12"
        )
        == "A, B"
    )


@pytest.mark.parametrize("form", ["chat", "completion"])
@pytest.mark.parametrize("kind", ["span", "ranking"])
def test_demonstrations_are_not_answered_from(kind: AnswerKind, form: str) -> None:
    """Solved examples before the context are not taken for a part of it."""
    task = next(
        task
        for task in TASKS
        if KINDS.get(task.name) == kind and "{demos}{context}" in task.template.user
    )
    shown = HEADS[kind].format(n=5) + "Kiri dug the lake Vel."
    demo = f"{shown}\n\nQuestion: who?\n{task.template.prefix} 5\n\n"
    fields = {
        CONTEXT: passages(kind, 9),
        "question": "who dug the lake Vel?",
        "demos": demo * 2,
    }
    prompt = task.template.render(fields).text(form)
    said = lexical.answer(prompt)
    assert said.startswith("Anna Karst" if kind == "span" else "0 >")
    assert "Kiri" not in said
    assert "5" not in said.split(" > ")[:2]


@pytest.mark.parametrize("form", ["chat", "completion"])
def test_cites_documents_of_the_whole_context(form: str) -> None:
    """If the context follows the question, all of it is searched, and no demonstration's documents are cited."""
    task = next(
        task for task in TASKS if KINDS.get(task.name) == "citation" and task.shots
    )
    demo = "Do.\n\nQuestion: who dug?\n\nDocument [9](Title: T): Kiri dug the lake.\n\nAnswer: Kiri [9].\n\n\n"
    fields = {
        CONTEXT: PASSAGES,
        "question": "who built the tower?",
        "demo_text": demo,
        "instruction": "Do.",
    }
    prompt = task.template.render(fields).text(form)
    said = lexical.answer(prompt)
    assert said.startswith("Anna Karst built the tower in 1887 [2].")
    assert "Kiri" not in said


def test_context_with_an_answer_s_prefix() -> None:
    """A context without demonstrations stays whole."""
    assert lexical._without_demonstrations("one\n\ntwo", "Answer:") == "one\n\ntwo"
    assert (
        lexical._without_demonstrations(
            "Q\nAnswer: x\n\nNow read:\n\none\n\ntwo", "Answer:"
        )
        == "one\n\ntwo"
    )


@given(st.text("ab1- _.é文\n", max_size=40), st.text("ab1-_é", min_size=1, max_size=3))
def test_terms_are_found_as_a_pattern_finds_them(text: str, term: str) -> None:
    """A term is found where no character of a word stands beside it, also if it overlaps with one that is not whole."""
    pattern = rf"(?<!\w){re.escape(term)}(?!\w)"
    starts = [match.start() for match in re.finditer(pattern, text)]
    assert list(lexical._find_whole(text, term)) == starts


def test_a_term_that_overlaps_with_a_part_of_a_word() -> None:
    """A term is found although it begins in another occurrence that is a part of a word."""
    assert list(lexical._find_whole("x1-1-1", "1-1")) == [3]
