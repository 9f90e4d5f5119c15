"""Pages, contexts that grow by pages, long answers and faulty rows of OfficeQA."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.officeqa import prompts
from helm_longctx.benchmarks.officeqa.documents import (
    DocumentPage,
    PagedDocument,
    make_context,
    write_tables,
)
from helm_longctx.benchmarks.officeqa.scoring import is_right
from helm_longctx.benchmarks.officeqa.tasks import DOCUMENTS, OFFICEQA, QUESTIONS
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.benchmarks.officeqa.fabricate import PAGES, build_officeqa

PRO = OFFICEQA.task("pro_questions")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_officeqa(tmp_path_factory.mktemp("officeqa")), mirror=True)


def load(root: DataRoot, name: str, length: int) -> list[Example]:
    """Load the questions of OfficeQA Pro or Full."""
    return list(
        load_examples(OFFICEQA.task(f"{name}_questions"), Settings(length), root)
    )


def test_tables() -> None:
    """A cell over rows or columns is repeated, and neither numbers nor marks of Markdown change what a cell says."""
    (table,) = write_tables(
        "<table><tr><th colspan=2>Year</th><th>a|b</th></tr>"
        "<tr><td rowspan='2'>1901</td><td>1,024</td></tr><tr><td>x<br>y</td><td>n</td></tr></table>"
    )
    assert table.splitlines() == [
        "| Year | Year | a\\|b |",
        "| --- | --- | --- |",
        "| 1901 | 1,024 |  |",
        "| 1901 | x y | n |",
    ]
    assert write_tables("<table></table>") == ["```html\n<table></table>\n```"]
    (wide,) = write_tables(f"<table><td colspan={'9' * 5000}>1<tr><td>2</table>")
    assert len(wide) < 1000


def test_oracle_pages_and_their_neighbours(root: DataRoot) -> None:
    """The length 0k has the source pages alone, and a longer context has all pages of a shorter one."""
    (first, second) = load(root, "pro", 0)
    assert re.findall("PAGE (\\d+)", first.fields["context"]) == ["3"]
    assert re.findall("PAGE (\\d+)", second.fields["context"]) == ["3", "9", "5"]
    assert second.fields["context"].count("### treasury_bulletin_") == 2
    (whole, _) = load(root, "pro", 32768)
    numbers = [str(number) for number in range(1, PAGES + 1)]
    assert re.findall("PAGE (\\d+)", whole.fields["context"]) == numbers
    assert first.depth == pytest.approx(0.1, abs=0.1)
    assert whole.depth is not None
    assert 0.1 < whole.depth < 0.3
    assert second.depth is None


@given(st.integers(0, 4000), st.integers(0, 4000))
def test_contexts_are_nested(fewer: int, more: int) -> None:
    """A context of more tokens has the pages of one of fewer, and stays within its tokens beside the wanted pages."""
    pages = make_pages()
    source = PagedDocument("x", pages, frozenset({3, 11}))
    fewer, more = sorted((fewer, more))
    wanted = sum(estimate_tokens(pages[number - 1].text) for number in (3, 11))
    kept = []
    for tokens in (fewer, more):
        context = make_context([source, source], tokens + 2 * wanted)
        kept.append(re.findall("PAGE \\d+", context.text))
        assert estimate_tokens(context.text) <= 1.1 * (tokens + 2 * wanted) + 100
    assert len(kept[0]) <= len(kept[1])
    assert {*kept[0]} <= {*kept[1]}


def make_pages() -> list[DocumentPage]:
    """Return twelve pages of the same size."""
    text = "word " * 90
    return [
        DocumentPage(number, f"--- PAGE {number} ---\n\n{text}")
        for number in range(1, 13)
    ]


def test_questions_and_system_message(root: DataRoot) -> None:
    """OfficeQA Pro has the hard questions, Full all, and each is sent after the system message."""
    assert [example.id for example in load(root, "pro", 0)] == ["UID0001", "UID0002"]
    full = load(root, "full", 0)
    assert [example.id for example in full] == ["UID0001", "UID0002", "UID0003"]
    assert PRO.variant(Settings(0)).system == prompts.SYSTEM
    assert (
        parse_entry([OFFICEQA], "officeqa:length=1m,method=agent").settings.method
        == "agent"
    )
    sizes = {name: len(files.paths) for name, files in DOCUMENTS.items()}
    assert sizes == {"pro": 188, "full": 285}


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_answer_has_a_score(gold: str, answer: str) -> None:
    """Every answer has a score with each tolerance, and a larger tolerance never lowers it."""
    scores = PRO.score({"references": [gold], "prediction": answer})
    assert sorted(scores.values()) == [*scores.values()]


@pytest.mark.parametrize("piece", ["<FINAL_ANSWER>", "1,", "[", "(1", "\n "])
def test_long_answers_take_no_time(piece: str) -> None:
    """An answer of half a million characters is scored at once, also tags that do not close."""
    text = piece * (500_000 // len(piece))
    start = time.process_time()
    is_right("[8, 152]", text)
    is_right("[8, 152]", f"<FINAL_ANSWER>{text}</FINAL_ANSWER>")
    assert time.process_time() - start < 5


def test_a_long_list_is_split_at_once() -> None:
    """A list of sixty groups of digits is compared with a list of ten numbers, for which it can be split in billions of ways."""
    gold = f"[{', '.join(['123'] * 10)}]"
    answer = f"[{','.join(['123'] * 60)}]"
    start = time.process_time()
    assert not is_right(gold, answer)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("treasury_bulletin_1941_01.txt", "../secret.txt", "no name of an issue"),
        ("january-1941", "january-1942", "must name pages of the source files"),
        ("page=3", "page=99", "has no page 99"),
    ],
)
def test_malformed_rows_are_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """A question whose files or pages do not exist is refused in one line that names the file."""
    build_officeqa(tmp_path)
    path = tmp_path / QUESTIONS.path
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    with pytest.raises(InputError, match=message) as caught:
        load(DataRoot(tmp_path, mirror=True), "pro", 0)
    assert "\n" not in str(caught.value)
