"""Tests that a faulty row of each benchmark's files ends in one line that says what is wrong with it.

A row of the table changes a row of the fabricated data (`tests/benchmarks/<name>/fabricate.py`). What is not a row of JSON is
tested beside its benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import Settings
from tests.benchmarks.ruler.fabricate import counter
from tests.support.fabricated import fabricated

_WITHOUT_LENGTH = Settings(None)


@dataclass(frozen=True)
class FaultyRows:
    """Rows of a file that cannot be used.

    Args:
        benchmark: the name of the benchmark.
        task: the name of the task that reads the file.
        changes: changed columns of the first row, each with what the error says, as a regular expression.
        settings: the settings of the task.
        file: the place of the file among those that the task reads.
        has_other_columns: whether the row keeps the columns that are not changed.
    """

    benchmark: str
    task: str
    changes: list[tuple[dict[str, Any], str]]
    settings: Settings = _WITHOUT_LENGTH
    file: int = 0
    has_other_columns: bool = True

    @property
    def title(self) -> str:
        """The name of the test."""
        return f"{self.benchmark} {self.task} {self.file}"


MISSING = object()
"""Stands for a column that is left out."""

BUILDERS = fabricated("build_{name}")

_8K = Settings(8192)
_32K = Settings(32768)
_64K = Settings(65536)
_128K = Settings(131072)
_COUNTED = Settings(6000, num_samples=4, counter=counter("byte_level"))

TABLE = [
    FaultyRows(
        benchmark="ada_leval",
        task="stackselect",
        settings=_8K,
        changes=[
            (
                {"all_answers": ["a", 1]},
                "row 1 of .*'all_answers' must be a list of texts",
            ),
        ],
    ),
    FaultyRows(
        benchmark="ada_leval",
        task="textsort",
        settings=_8K,
        changes=[
            (
                {"answer": "[1, 2"},
                "row 1 of .*'answer' must be a list of whole numbers",
            ),
            ({"answer": ["1"]}, "row 1 of .*'answer' must be a list of whole numbers"),
        ],
    ),
    FaultyRows(
        benchmark="agentlongbench",
        task="count_frequency_env",
        settings=Settings(32768),
        changes=[
            (change, r"count_frequency_env\.jsonl")
            for change in (
                {"question_type": "Intersection"},
                {"answer": {"a": 1}},
                {"messages": [{"role": "tool", "content": "x"}]},
                {"messages": [{"role": "assistant", "content": None}]},
                {
                    "messages": [
                        {"role": "assistant", "content": "", "tool_calls": [{}]}
                    ]
                },
            )
        ],
    ),
    FaultyRows(
        benchmark="babilong",
        task="qa1",
        settings=Settings(0),
        changes=[
            (
                {"input": MISSING},
                "qa1.jsonl:1: column 'input' must be str, found nothing",
            ),
            (
                {"question": MISSING},
                "qa1.jsonl:1: column 'question' must be str, found nothing",
            ),
            (
                {"target": MISSING},
                "qa1.jsonl:1: column 'target' must be str, found nothing",
            ),
        ],
    ),
    FaultyRows(
        benchmark="beam",
        task="questions",
        settings=Settings(131072, chats="full"),
        changes=[
            ({"probing_questions": "[1]"}, "100K\\.jsonl"),
            ({"chat": {"turns": 1}}, "100K\\.jsonl"),
            ({"chat": 5}, "must be a list of lists of messages"),
            ({"chat": [[]]}, "must be a list of lists of messages"),
            ({"chat": [["x"]]}, "must be a list of lists of messages"),
            ({"probing_questions": "{'x': [{}]}"}, "100K\\.jsonl"),
        ],
    ),
    FaultyRows(
        benchmark="cl_bench",
        task="tasks",
        changes=[
            (
                {"messages": [{"role": "user"}]},
                "column 'messages' must be a list of objects with role and content",
            ),
            ({"messages": ["text"]}, "column 'messages' must be a list of objects"),
            (
                {"messages": [{"role": "assistant", "content": "x"}]},
                "the last one the user's",
            ),
            (
                {"metadata": {"id": "x"}},
                "column 'metadata' must have a task_id, found id",
            ),
            ({"rubrics": "text"}, "column 'rubrics' must be list, found str"),
        ],
    ),
    FaultyRows(
        benchmark="corpusqa",
        task="real_estate_en",
        settings=_128K,
        changes=[
            ({"prompt": []}, "row 1 of .*column 'prompt' must be a list of objects"),
            (
                {"prompt": [{"role": "user"}]},
                "column 'prompt' must be a list of objects",
            ),
            (
                {"prompt": [{"role": "tool", "content": "x"}]},
                "column 'prompt' must be a list of objects",
            ),
            (
                {"prompt": [{"role": "system", "content": "x"}]},
                "the last one the user's",
            ),
            ({"prompt": "text"}, "column 'prompt' must be list, found str"),
            (
                {"answer": None},
                "column 'answer' must be str or int or float or list, found NoneType",
            ),
            ({"id": 3}, "column 'id' must be str, found int"),
        ],
    ),
    FaultyRows(
        benchmark="flenqa",
        task="pir",
        settings=Settings(250),
        has_other_columns=False,
        changes=[
            (
                {"text": "x"},
                "column 'dataset' must be str, found nothing; its columns are 'text'",
            ),
        ],
    ),
    FaultyRows(
        benchmark="flenqa",
        task="pir",
        settings=Settings(250),
        changes=[
            (
                {"dataset": "PIR", "ctx_size": 250, "facts": "one text"},
                "a row of PIR needs facts",
            ),
        ],
    ),
    FaultyRows(
        benchmark="hellobench",
        task="chat",
        changes=[
            (
                {"category": "sport"},
                "3 checklists, but 0 weights in hellobench/weighted_scores.txt",
            ),
            ({"checklists": ["a"]}, "1 checklists, but 3 weights"),
            ({"checklists": [1, 2, 3]}, "column 'checklists' must be a list of texts"),
            ({"instruction": None}, "column 'instruction' must be str"),
        ],
    ),
    FaultyRows(
        benchmark="helmet2",
        task="bfs",
        settings=_8K,
        changes=[
            ({"answer": [3]}, "column 'answer' must be"),
        ],
    ),
    FaultyRows(
        benchmark="helmet2",
        task="multiple_choice",
        settings=_64K,
        changes=[
            ({"answer": "E"}, "column 'answer' must be"),
        ],
    ),
    FaultyRows(
        benchmark="infinite_bench",
        task="passkey",
        changes=[
            ({"context": None}, "column 'context' must be str"),
            (
                {"answer": []},
                "the answer must be text, a number, or a list of them that is not empty",
            ),
        ],
    ),
    FaultyRows(
        benchmark="infinite_bench",
        task="math_calc",
        changes=[
            ({"answer": []}, "the answer must be text, a number"),
        ],
    ),
    FaultyRows(
        benchmark="infinite_bench",
        task="code_debug",
        changes=[
            ({"options": ["a", "b"]}, "column 'options' must be a list of four texts"),
        ],
    ),
    FaultyRows(
        benchmark="infinite_bench",
        task="code_run",
        changes=[
            ({"input": "What?"}, "column 'input' has no text of the form"),
        ],
    ),
    FaultyRows(
        benchmark="infinite_bench",
        task="math_find",
        changes=[
            ({"input": "What?"}, "column 'input' has no text of the form"),
        ],
    ),
    FaultyRows(
        benchmark="leval",
        task="tpo",
        changes=[
            (
                {"outputs": ["A"]},
                r"row 1 of .*tpo.jsonl: columns 'instructions' and 'outputs' must be lists",
            ),
        ],
    ),
    FaultyRows(
        benchmark="locomo",
        task="qa",
        changes=[
            (change, r"locomo10\.json")
            for change in (
                {"qa": [{"question": "Q", "category": 6, "answer": "A"}]},
                {"qa": [{"question": "Q", "category": 1}]},
                {"conversation": {}},
                {"conversation": {"session_1": [{"speaker": "Ann"}]}},
            )
        ],
    ),
    FaultyRows(
        benchmark="longbench_pro",
        task="t1_1",
        settings=_8K,
        changes=[
            ({"context": None}, "column 'context' must be str, found NoneType"),
            ({"answer": "A"}, "column 'answer' must be list, found str"),
            ({"answer": [1]}, "has answers that are not strings"),
            (
                {"question_thinking": 3},
                "column 'question_thinking' must be str, found int",
            ),
            ({"token_length": 8192}, "column 'token_length' must be str, found int"),
        ],
    ),
    FaultyRows(
        benchmark="longbench_write",
        task="requests",
        changes=[
            ({"length": MISSING}, "column 'length' must be int"),
            ({"prompt": 1}, "column 'prompt' must be str"),
            ({"length": 0}, "length must be a whole number from 1 on, found 0"),
        ],
    ),
    FaultyRows(
        benchmark="longcodebench",
        task="qa",
        settings=_32K,
        has_other_columns=False,
        changes=[
            (
                {"question": "x"},
                "column 'prompt' must be str, found nothing; its columns are 'question'",
            ),
        ],
    ),
    FaultyRows(
        benchmark="longcodebench",
        task="qa",
        settings=_32K,
        changes=[
            (
                {"prompt": "x"},
                "row 1 of .*: column 'prompt' must contain the text of column 'repo_text'",
            ),
        ],
    ),
    FaultyRows(
        benchmark="longgenbench",
        task="texts",
        settings=Settings(16384),
        changes=[
            (
                {"checks_once": {"x": "a"}},
                "checks_once must be an object of texts by the numbers of entries",
            ),
            (
                {"checks_range": {"1": 2}},
                "checks_range must be an object of texts by the numbers of entries",
            ),
            ({"number": 0}, "number must be a whole number from 1 to 9999, found 0"),
            ({"prefix": None}, "column 'prefix' must be str"),
        ],
    ),
    FaultyRows(
        benchmark="longmemeval",
        task="s",
        changes=[
            (
                {"question_type": "other"},
                "question_type must be one of single-session-user, .* found 'other'",
            ),
            ({"question": None}, "item 1: column 'question' must be str"),
            ({"answer": ["x"]}, "item 1: column 'answer' must be str or int or float"),
            (
                {"answer": " "},
                "answer must be a text that is not empty or a number, found ' '",
            ),
            (
                {"answer": float("nan")},
                "answer must be a text that is not empty or a number, found nan",
            ),
            (
                {"haystack_dates": []},
                "must be lists of the same length, with at least one session",
            ),
            ({"haystack_dates": [1, 2]}, "haystack_dates must be a list of texts"),
            (
                {"haystack_sessions": ["x", []]},
                "a session must be a list of turns with the texts 'role' and 'content'",
            ),
            (
                {"haystack_sessions": [[{"role": "user"}], []]},
                "a session must be a list of turns",
            ),
        ],
    ),
    FaultyRows(
        benchmark="loogle",
        task="longdep_qa",
        has_other_columns=False,
        changes=[
            (
                {"context": "x", "question": "y"},
                "column 'input' must be str, found nothing; its columns are 'context', 'question'",
            ),
        ],
    ),
    FaultyRows(
        benchmark="loogle",
        task="longdep_qa",
        changes=[
            (
                {"qa_pairs": "[{'Q': 1}]"},
                "row 1 of .*: column 'qa_pairs' must be a list of objects",
            ),
        ],
    ),
    FaultyRows(
        benchmark="lv_eval",
        task="lic_mixup",
        settings=Settings(16384),
        changes=[
            ({"input": None}, "lic_mixup_16k.jsonl:1: column 'input' must be str"),
            ({"answers": "y"}, "lic_mixup_16k.jsonl:1: column 'answers' must be list"),
            (
                {"answers": ["y", 1]},
                "row 1 of .*lic_mixup_16k.jsonl: column 'answers' must be a list of texts",
            ),
            (
                {"answer_keywords": ["k"]},
                "lic_mixup_16k.jsonl:1: column 'answer_keywords' must be str or NoneType",
            ),
        ],
    ),
    FaultyRows(
        benchmark="oolong",
        task="agnews",
        settings=_8K,
        changes=[
            ({"answer": "spam"}, r"row 1 of .*column 'answer' must be a list such as"),
            ({"answer": "[]"}, "column 'answer' must be a list"),
            ({"answer": "[datetime.date(2023, 1)]"}, "column 'answer' must be a list"),
            ({"answer": "[" * 500}, "column 'answer' must be a list"),
            ({"question": None}, "column 'question' must be str"),
            ({"dataset": "another"}, "no row can be used for agnews"),
        ],
    ),
    FaultyRows(
        benchmark="ruler2",
        task="mk_niah_easy",
        settings=_COUNTED,
        changes=[
            ({"choices": ["a"]}, "column 'choices' must be a list of four texts"),
        ],
    ),
    FaultyRows(
        benchmark="ruler2",
        task="mk_niah_easy",
        settings=_COUNTED,
        file=1,
        changes=[
            ({"answer": 4}, "and 'answer' the number of one, from 0"),
            ({"question": None}, "column 'question' must be str"),
        ],
    ),
    FaultyRows(
        benchmark="ruler2",
        task="qa_easy",
        settings=_COUNTED,
        file=1,
        changes=[
            (
                {"context": {"title": ["a"], "sentences": []}},
                "as many lists of 'sentences'",
            ),
            ({"context": {"title": ["a"], "sentences": [["b"]]}}, "too few paragraphs"),
        ],
    ),
    FaultyRows(
        benchmark="ruler2",
        task="qa_easy",
        settings=_COUNTED,
        changes=[
            (
                {"context": {"title": ["a"], "sentences": ["b"]}},
                "as many lists of 'sentences'",
            ),
            (
                {"supporting_facts": {}},
                "the titles of 'supporting_facts' must be a list of",
            ),
            ({"supporting_facts": {"title": ["?"]}}, "names no title of 'context'"),
        ],
    ),
    FaultyRows(
        benchmark="squality",
        task="summaries",
        changes=[
            (
                {"questions": [{"question_text": "Who?", "responses": [{}]}]},
                r"row 1 of .*test.jsonl: a story needs passage_id, .* \('response_text'\)",
            ),
        ],
    ),
]


def is_list(text: str) -> bool:
    """Return whether a file has its rows as a list, and not as lines."""
    return text.startswith("[")


def read_first_row(text: str) -> dict[str, Any]:
    """Return the first row of a file's text."""
    if is_list(text):
        return json.loads(text)[0]
    line, _, _ = text.partition("\n")
    return json.loads(line)


def make_row(row: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the changed columns, without those that are left out."""
    changed = row | change
    return {name: value for name, value in changed.items() if value is not MISSING}


@pytest.fixture(scope="module")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a callable that makes a benchmark's fabricated data once."""

    @cache
    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        BUILDERS[name](folder)
        return folder

    return make


@pytest.mark.parametrize("faulty", TABLE, ids=lambda faulty: faulty.title)
def test_faulty_rows(
    faulty: FaultyRows,
    make_folder: Callable[[str], Path],
    subtests: pytest.Subtests,
) -> None:
    """The error says in one line what is wrong with the row."""
    folder = make_folder(faulty.benchmark)
    task = find_benchmark(faulty.benchmark).task(faulty.task)
    path = folder / task.paths(faulty.settings.length)[faulty.file]
    text = path.read_text(encoding="utf-8")
    row = read_first_row(text) if faulty.has_other_columns else {}
    for change, message in faulty.changes:
        changed = make_row(row, change)
        path.write_text(json.dumps([changed] if is_list(text) else changed))
        with subtests.test(message=message):
            with pytest.raises(InputError, match=message) as error:
                list(
                    load_examples(task, faulty.settings, DataRoot(folder, mirror=True))
                )
            assert "\n" not in str(error.value)
    path.write_text(text, encoding="utf-8")
