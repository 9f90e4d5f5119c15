"""Tests of run entries with methods: what they ask, what is refused, and methods of other packages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import Entry, parse_entry
from helm_longctx.tasks.methods import registry
from helm_longctx.tasks.methods.prompts import FACT_TOKENS, FACTS
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example
from tests.benchmarks.longbench_v2.fabricate import build_longbench_v2
from tests.support.commands import Command
from tests.support.tasks import load_asked

KV = "helmet_recall:task=json_kv,length=8k,num_samples=2"


def entry(text: str) -> Entry:
    return parse_entry(BENCHMARKS, text)


def load(text: str, folder: Path) -> list[Example]:
    return load_asked(text, DataRoot(folder, mirror=True))


def test_plain_is_the_default(tmp_path: Path) -> None:
    """An entry without a method has plain prompts, and `method=plain` has the same ones."""
    plain = load(KV, tmp_path)
    assert load(f"{KV},method=plain", tmp_path) == plain
    assert entry(KV).description == KV
    assert (entry(KV).settings.method, entry(KV).settings.method_arguments) == (
        "plain",
        {},
    )


def test_retrieval_keeps_the_prompt(tmp_path: Path) -> None:
    """With `retrieve` only the context changes: it has the best chunks, among them the one with the answer."""
    task = entry(KV).tasks[0]
    for before, after in zip(
        load(KV, tmp_path),
        load(f"{KV},method=retrieve,chunks=2,chunk_size=500", tmp_path),
        strict=True,
    ):
        assert (
            len(after.fields["context"]) <= 2 * 500 + 10 < len(before.fields["context"])
        )
        assert before.references[0] in after.fields["context"]
        assert replace(after, fields=before.fields) == replace(
            before, input_tokens=None, counter=None
        )
        prompt = task.prompt(after)
        start, end = prompt.context or (0, 0)
        assert prompt.user_turn[start:end] == after.fields["context"]


def test_a_closed_book_has_no_context(tmp_path: Path) -> None:
    """With `closed_book` the prompt is the same without the context."""
    task = entry(KV).tasks[0]
    for before, after in zip(
        load(KV, tmp_path), load(f"{KV},method=closed_book", tmp_path), strict=True
    ):
        context = before.fields["context"]
        assert task.prompt(after).user_turn == task.prompt(before).user_turn.replace(
            context, ""
        )


def test_facts_come_first(tmp_path: Path) -> None:
    """With `retrieve_reason` the first request is the prompt with a request for facts, and the second has only these."""
    parsed = entry(f"{KV},method=retrieve_reason")
    task = parsed.tasks[0]
    for before, after in zip(
        load(KV, tmp_path), load(parsed.description, tmp_path), strict=True
    ):
        plain = task.prompt(before)
        first = task.prompt(after)
        assert first.user_turn == plain.user_turn + FACTS
        assert first.context == plain.context
        assert after.follow_up
        second = after.follow_up.prompt("<think>Hm.</think> A fact [line 1]\n")
        assert second == plain.user_turn.replace(
            before.fields["context"], "A fact [line 1]"
        )
        completion = after.follow_up.prompt("A fact [line 1]", "completion")
        assert completion == plain.text("completion").replace(
            before.fields["context"], "A fact [line 1]"
        )
        assert after.follow_up.max_tokens == task.budget(parsed.settings) == 100
        assert task.budget(parsed.settings, after) == FACT_TOKENS
    assert parsed.max_tokens == FACT_TOKENS
    assert (
        entry(f"{KV},method=retrieve_reason,thinking_tokens=5").max_tokens
        == FACT_TOKENS + 5
    )


def test_official_reasoning(tmp_path: Path) -> None:
    """With `cot` the prompts are those of the official code, as in the task that is always asked so."""
    build_longbench_v2(tmp_path)
    cot, method = (
        entry(f"longbench_v2:mode={text}") for text in ("cot", "0shot,method=cot")
    )
    pairs = zip(
        load("longbench_v2:mode=cot", tmp_path),
        load("longbench_v2:method=cot", tmp_path),
        strict=True,
    )
    for one, other in pairs:
        assert cot.tasks[0].prompt(one) == method.tasks[0].prompt(other)
        assert (one.id, one.follow_up, one.references) == (
            other.id,
            other.follow_up,
            other.references,
        )
        assert cot.tasks[0].budget(cot.settings, one) == method.tasks[0].budget(
            method.settings, other
        )
    assert cot.max_tokens == method.max_tokens == 1024


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_both_prompts_are_printed(style: str, command: Command) -> None:
    """`prompts` prints the first request, and the texts of the second one around the facts."""
    assert command("prompts", KV, "--style", style) == 0
    plain = command.rows
    assert command("prompts", f"{KV},method=retrieve_reason", "--style", style) == 0
    for before, after in zip(plain, command.rows, strict=True):
        start, end = after["follow_up"]
        assert before["prompt"].startswith(start)
        assert before["prompt"].endswith(end)
        assert after["prompt"].endswith(FACTS)
        assert (after["max_tokens"], after["references"]) == (
            FACT_TOKENS,
            before["references"],
        )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"{KV},method=retrive",
            "method='retrive' is invalid; did you mean retrieve. Choose from plain, retrieve,",
        ),
        (f"{KV},chunks=3", "chunks='3' is an argument of method=retrieve; give both"),
        (
            f"{KV},method=closed_book,chunks=3",
            "chunks='3' is an argument of method=retrieve; give both",
        ),
        (
            f"{KV},method=retrieve,chunks=0",
            "chunks='0' is invalid; give a whole number from 1",
        ),
        (
            f"{KV},method=retrieve,chunk_size=x",
            "chunk_size='x' is invalid; give a whole number from 1",
        ),
        (
            "helmet_rag:length=8k,context=none,method=retrieve",
            "method=retrieve and context=none exclude each other",
        ),
        (
            "longbench:method=retrieve",
            "method=retrieve cannot ask gov_report, multi_news, vcsum, passage_count, lcc, because it needs a context"
            " and a question; choose from task=narrativeqa, task=qasper",
        ),
        (
            "mrcr:length=8k,method=retrieve",
            "cannot ask 2, 4, 8, because .*; benchmarks that have them: aa_lcr, ",
        ),
        (
            f"{KV},method=cot",
            "needs prompts for reasoning; benchmarks that have them: helmet, longbench_v2$",
        ),
        (
            f"{KV},method=question_only",
            "needs a prompt for the question alone; benchmarks that have them: helmet$",
        ),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    """A method that cannot ask a task, and an argument without its method, end in one line that says what to give."""
    with pytest.raises(InputError, match=told) as caught:
        entry(text)
    assert "\n" not in str(caught.value)


def test_what_an_example_must_have(tmp_path: Path) -> None:
    """Questions with messages of their own, and with two requests, are refused by their names before anything is sent."""
    (tmp_path / "questions.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "Who?"}], "answers": ["Ada"], "id": "q"}\n'
    )
    with pytest.raises(
        InputError,
        match="contains: q has messages, but method=retrieve needs a context",
    ):
        load(
            f"any_jsonl:metric=contains,length=8k,path={tmp_path},method=retrieve",
            tmp_path,
        )
    build_longbench_v2(tmp_path)
    with pytest.raises(
        InputError,
        match="cot itself has two requests, so method=retrieve_reason cannot ask it",
    ):
        load("longbench_v2:mode=cot,method=retrieve_reason", tmp_path)


def test_arguments_are_listed_where_they_are_taken() -> None:
    """Methods are arguments of tasks with a context and a question, and their own arguments come with them."""
    taken = {
        task.name
        for benchmark in BENCHMARKS
        for task in benchmark.tasks
        if "method" in task.all_arguments
    }
    assert {"json_kv", "nq", "hotpotwikiqa_mixup", "qa1"} <= taken
    assert not {"ruler_cwe", "infbench_sum", "2needle", "bfs_same_size"} & taken
    assert [*registry.METHOD_ARGUMENTS][:3] == ["chunks", "chunk_size", "max_requests"]
    assert {
        name for name, kind in registry.METHOD_ARGUMENTS.items() if kind is str
    } == {"system"}
