"""Questions to be answered with citations have the right documents, records and demonstrations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.helmet.data.passages import all_documents, write_documents
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from tests.support.tasks import load

ASQA = "helmet/alce/asqa_eval_gtr_top2000.json"


def test_documents_that_no_prompt_shows_can_be_read(mirror: DataRoot) -> None:
    """A record leads to all documents of its item, of which the prompt shows the first eight."""
    for example in load("helmet_cite:task=asqa,length=4k,num_samples=9", mirror):
        where = example.record["documents"]
        documents = all_documents(where["file"], where["item"], mirror)
        assert (len(documents), where["shown"]) == (12, 8)
        shown = [
            document["text"] in example.fields["context"] for document in documents
        ]
        assert shown[:8] == [True] * 8
        assert example.fields["context"].count("Document [") == 8


def test_records_are_small(mirror: DataRoot) -> None:
    """A record has what the metrics read and no documents."""
    for task, column in (("asqa", "qa_pairs"), ("qampari", "answers")):
        (example, *_) = load(f"helmet_cite:task={task},length=4k,num_samples=1", mirror)
        assert set(example.record) == {column, "question", "documents"}
        assert example.references
        assert "docs" not in json.dumps(example.record)


def test_a_demonstration_belongs_to_a_row_of_the_file(mirror: DataRoot) -> None:
    """A smaller sample does not change an item's demonstrations, since they are drawn for the whole file in order."""
    demos = {
        count: {
            example.fields["question"]: example.fields["demo_text"]
            for example in load(
                f"helmet_cite:task=qampari,length=8k,num_samples={count}", mirror
            )
        }
        for count in (5, 50)
    }
    assert demos[5].items() <= demos[50].items()
    assert len(set(demos[50].values())) > 5


def test_a_document_is_text() -> None:
    """Braces in a document or in the prompt file's template reach no attribute and raise nothing."""
    docs = [{"title": "{ID}", "text": "{text.__class__} {"}]
    shown = write_documents(
        docs, "[{ID}]({title}): {text} {title.__class__}", Path("x.json")
    )
    assert shown == "[1]({ID}): {text.__class__} { {title.__class__}"


def test_malformed_files(tmp_path: Path, mirror: DataRoot) -> None:
    """The error names the file and says what is wrong."""
    root = DataRoot(tmp_path, mirror=True)
    (tmp_path / "helmet/alce").mkdir(parents=True)
    (tmp_path / "helmet/prompts").mkdir()
    prompt = tmp_path / "helmet/prompts/asqa_revised.json"
    data = tmp_path / ASQA
    prompt.write_text("{}")
    with pytest.raises(InputError, match=r"asqa_revised\.json: not a prompt file"):
        load("helmet_cite:task=asqa,length=4k", root)
    prompt.write_bytes((mirror / "helmet/prompts/asqa_revised.json").read_bytes())
    for text, message in {
        "": "the file has no rows",
        "[]": "the file has no rows",
        '[{"question": "q"}]': "item 1: column 'docs' must be list",
        '[{"question": "q", "docs": [{"text": "x"}]}]': "documents with title and text",
        '[{"question": "q", "docs": [], }]': "item 1: not a JSON object",
    }.items():
        data.write_text(text)
        _forget()
        with pytest.raises(InputError, match=message):
            load("helmet_cite:task=asqa,length=4k", root)
    with pytest.raises(InputError, match="shots=5 is invalid; give 0 to 4"):
        load("helmet_cite:task=asqa,length=4k,shots=5", mirror)


def _forget() -> None:
    from helm_longctx.benchmarks.helmet.data import passages

    passages._open.cache_clear()
