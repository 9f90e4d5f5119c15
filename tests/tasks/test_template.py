"""Tests of templates: rendered, and recognized again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.tasks.prompt import (
    CONTEXT,
    NO_TEMPLATE,
    Template,
    _split_template,
    fill,
)
from helm_longctx.tasks.registry import BENCHMARKS

TASKS = {
    task.template: task
    for benchmark in BENCHMARKS
    for task in benchmark.tasks
    if task.template is not NO_TEMPLATE
}.values()
"""A task for each template."""
# A single space between words: two of them separate the fields of some templates.
WORD = (
    st.text("abcxyz{}% 文é", min_size=1, max_size=30)
    .map(lambda text: " ".join(text.split()))
    .filter(bool)
)
MOST_FIELDS = max(len(task.template.names) for task in TASKS)

# Drawing texts takes longer than what is tested, so all templates get the same ones.


@given(
    words=st.lists(WORD, min_size=MOST_FIELDS, max_size=MOST_FIELDS),
    paragraphs=st.lists(WORD, max_size=5),
)
def test_a_prompt_is_taken_apart_again(words: list[str], paragraphs: list[str]) -> None:
    """The fields of a prompt in either form are recovered from its text, with each template."""
    for task in TASKS:
        template = task.template
        literals, names = _split_template(template.user)
        fields = dict(zip(template.names, words, strict=False))
        # Of two places side by side the later takes the text.
        fields[CONTEXT] = "\n\n".join(paragraphs)
        for name, literal in zip(names, literals[1:-1], strict=False):
            if not literal:
                fields[name] = ""
        prompt = template.render(fields)
        expected = {name: fields[name] for name in names}
        assert template.parse(prompt.user_turn) == expected, task.name
        expected = {name: fields[name] for name in template.names}
        assert template.parse(prompt.text("completion")) == expected, task.name


@given(context=st.text(), other=st.text())
def test_context_span(context: str, other: str) -> None:
    """The span is exactly where the context is in the user turn, with each template."""
    for task in TASKS:
        fields = dict.fromkeys(task.template.names, other) | {CONTEXT: context}
        prompt = task.template.render(fields)
        if CONTEXT not in task.template.names:
            assert prompt.context is None, task.name
            continue
        start, end = prompt.context
        assert prompt.user_turn[start:end] == context, task.name


def test_another_template_is_not_recognised() -> None:
    """A prompt of another form has no fields."""
    template = Template("Say {context} and {question}!", "Answer:")
    assert template.parse("Say something!") is None
    assert template.parse("") is None


def test_a_prompt_without_prefix_has_one_text() -> None:
    """A chat and a completion of a whole template have the same text, which nothing follows."""
    prompt = Template.whole("Say {context}!").render({"context": "hello"})
    assert prompt.text("chat") == prompt.text("completion") == "Say hello!"


def test_two_places_side_by_side() -> None:
    """If nothing separates two fields of a template, the later field takes the text."""
    template = Template("Go {demos}{context} Q: {question}", "A:")
    assert template.parse("Go abc Q: d") == {
        "demos": "",
        "context": "abc",
        "question": "d",
    }


PIECES = st.lists(
    st.sampled_from(["{{", "}}", "{a}", "{b}", "{ID}", "a", "\n", "%s", "$a", "\\1"])
)


@given(pieces=PIECES, values=st.tuples(st.text(), st.text(), st.integers()))
def test_a_template_of_a_file_is_filled_as_the_official_code_does(
    pieces: list[str], values: tuple[str, str, int]
) -> None:
    """A template whose fields are plain names is filled like `str.format`, and braces in values stay text."""
    fields = dict(zip(("a", "b", "ID"), values, strict=True))
    assert fill("".join(pieces), fields) == "".join(pieces).format(**fields)


@given(template=st.text("{}ab.[]!:0_ "))
def test_any_text_is_a_template(template: str) -> None:
    """Any text can be a template: nothing raises, and no attribute of a value is read."""
    assert "secret" not in fill(template, {"a": "x", "b": Exposed()})


class Exposed:
    b = "secret"

    def __str__(self) -> str:
        return "y"


@pytest.mark.parametrize(
    "place",
    [
        "{a.__class__}",
        "{a[0]}",
        "{a!r}",
        "{a:>99}",
        "{}",
        "{0}",
        "{b}",
        "{a",
        "a}",
        '{"a": 1}',
        "{{{a.b}}}",
    ],
)
def test_no_place_but_a_known_name(place: str) -> None:
    """Attributes, items, conversions, widths and unknown names in a template stay unchanged."""
    assert fill(f"<{place}>", {"a": "value"}) == f"<{place}>".replace(
        "{{{", "{{"
    ).replace("}}}", "}}")
