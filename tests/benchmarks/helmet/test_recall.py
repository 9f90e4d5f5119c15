"""Recall tasks without official files are generated, fit the length and have the answer at the recorded depth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from helm_longctx.benchmarks.helmet.data import recall
from helm_longctx.benchmarks.helmet.data.recall import evidence_depth
from helm_longctx.benchmarks.helmet.release import LLAMA_2
from helm_longctx.benchmarks.helmet.tasks import HELMET, RULER
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.counting import estimate_llama2_tokens
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example, Task
from tests.support.tasks import entry_of

WITHOUT_DEPTH = ("ruler_cwe", "ruler_fwe", "ruler_vt")
TASKS = pytest.mark.parametrize(
    "task", [HELMET.task("json_kv"), *RULER], ids=lambda task: task.name
)
EMPTY = DataRoot(Path("nowhere"), mirror=False)


def examples(
    task: Task, length: int | str, more: str = "", root: DataRoot = EMPTY
) -> list[Example]:
    entry = parse_entry(
        BENCHMARKS, f"{entry_of(task)}:task={task.name},length={length}{more}"
    )
    return list(task.load(task, entry.settings, root))


def prompt(task: Task, example: Example) -> str:
    return task.prompt(example).text("completion")


@TASKS
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(length=st.integers(4096, 40000), seed=st.integers(0, 1000))
def test_any_length_is_filled_but_not_exceeded(
    task: Task, length: int, seed: int
) -> None:
    """The prompt and its output fit, fill at least four fifths of the length, and have their tokens recorded."""
    for example in examples(task, length, f",num_samples=2,seed={seed}"):
        tokens = estimate_llama2_tokens(prompt(task, example))
        assert example.input_tokens == tokens
        assert example.counter == "estimate"
        assert example.source == "generated"
        assert 0.8 * length < tokens + task.max_tokens <= length


@TASKS
def test_1m(task: Task) -> None:
    """The generated rows also fill the longest length."""
    (example,) = examples(task, "1m", ",num_samples=1")
    assert example.input_tokens
    assert 0.9 * 2**20 < example.input_tokens + task.max_tokens <= 2**20


@pytest.mark.parametrize("official", [False, True])
def test_more_demonstrations_than_there_are_are_refused(
    mirror: DataRoot, official: bool
) -> None:
    """Too many demonstrations are refused, where the official code silently sends fewer."""
    task = HELMET.task("json_kv")
    root = mirror if official else EMPTY
    assert examples(task, "8k", ",shots=2,num_samples=1", root)[0].source == (
        "official" if official else "generated"
    )
    with pytest.raises(
        InputError, match=r"shots=9, but there are only \d demonstrations"
    ):
        examples(task, "8k", ",shots=9,num_samples=1", root)


@TASKS
def test_answers_stand_at_their_depth(task: Task) -> None:
    """The evidence is in the context once, at the recorded depth, and depths go evenly from start to end."""
    made = examples(task, "16k", ",num_samples=12")
    if task.name in WITHOUT_DEPTH:
        assert {example.depth for example in made} == {None}
        return
    assert [example.depth for example in made] == [0, 0.2, 0.4, 0.6, 0.8, 1.0] * 2
    for example in made:
        context = example.fields["context"]
        assert all(context.count(answer) == 1 for answer in example.references)
        if len(example.references) == 1:
            assert evidence_depth(context, example.references) == pytest.approx(
                example.depth, abs=0.03
            )
        several = task.template.user.startswith("Some special")
        assert len(set(example.references)) == (4 if several else 1)


@TASKS
def test_the_seed_decides(task: Task) -> None:
    """The same seed gives the same examples, and another seed gives other examples."""
    first, again, other = (
        examples(task, "4k", f",num_samples=3,seed={seed}") for seed in (1, 1, 2)
    )
    assert first == again
    assert first[0].fields != other[0].fields
    assert {example.id for example in first} == {f"{task.name}-{n}" for n in range(3)}


def test_json_kv_is_json() -> None:
    """The key-value context is a JSON object with the official number of pairs, and it holds the question and the
    answer."""
    for example in examples(HELMET.task("json_kv"), "8k", ",num_samples=6"):
        pairs = json.loads(example.fields["context"].removeprefix("JSON data:\n"))
        assert len(pairs) == 105
        assert pairs[example.fields["question"]] == example.references[0]
        assert example.fields["demos"].count("Corresponding value: ") == 2


@pytest.mark.parametrize("shots", [0, 1, 2])
def test_shots_are_demonstrations(shots: int) -> None:
    """`shots` is the number of key-value demonstrations."""
    (example,) = examples(HELMET.task("json_kv"), "4k", f",num_samples=1,shots={shots}")
    assert example.fields["demos"].count("Key: ") == shots


def test_llama_2_tokens_are_the_ruler_where_they_are(tmp_path: Path) -> None:
    """The tokens of HELMET's tokenizer are counted if it is in the data root."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        "", "isolated"
    )  # each character is a token
    (tmp_path / LLAMA_2.path).parent.mkdir(parents=True)
    tokenizer.save(str(tmp_path / LLAMA_2.path))
    task = HELMET.task("ruler_niah_mv")
    for example in examples(
        task, "8k", ",num_samples=2", DataRoot(tmp_path, mirror=True)
    ):
        assert example.input_tokens == len(prompt(task, example))
        assert example.counter == "meta-llama/Llama-2-7b-hf"
        assert 0.9 * 8192 < example.input_tokens + task.max_tokens <= 8192


@TASKS
def test_official_files_come_first(task: Task, mirror: DataRoot) -> None:
    """The rows of the official file are the examples, with their depth, if the file is there."""
    made = examples(task, "8k", root=mirror)
    assert len(made) == 100
    assert {example.source for example in made} == {"official"}
    evident = task.name not in WITHOUT_DEPTH
    assert evident == any(example.depth is not None for example in made)


@pytest.mark.parametrize(
    ("given", "depth"), [(0.4, 0.4), (1, 1), (None, 0.5), ("0.4", 0.5), (40, 0.5)]
)
def test_depth_of_official_rows(given: object, depth: float, tmp_path: Path) -> None:
    """The file's depth is taken if it is a share; otherwise the answer is looked for."""
    row = {
        "context": "0123456789ANSWER    ",
        "query": "q",
        "type_needle_v": "number",
        "answer": ["ANSWER"],
        "depth": given,
    }
    task = HELMET.task("ruler_niah_mk_2")
    path = tmp_path / task.paths(8192)[0]
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(row))
    (example,) = examples(task, "8k", root=DataRoot(tmp_path, mirror=True))
    assert example.depth == depth


GOOD = {"json_kv": {"context": "c", "question": "q", "answer": "a", "demos": [["k", "v"]], "num_kvs": 1},
        "ruler_niah_mk_2": {"context": "c", "query": "q", "type_needle_v": "number", "answer": ["a"]}}  # fmt: skip


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("json_kv", "", "has no rows"),
        ("json_kv", "\n \n", "has no rows"),
        ("json_kv", "{", ":1: not a JSON object"),
        ("json_kv", "[]", "not a JSON object but list"),
        ("json_kv", json.dumps(GOOD["json_kv"])[:-9], ":1: not a JSON object"),
        ("json_kv", json.dumps(GOOD["json_kv"]) + "\nx", ":2: not a JSON object"),
        (
            "json_kv",
            json.dumps({**GOOD["json_kv"], "context": 3}),
            "column 'context' must be str, found int",
        ),
        (
            "json_kv",
            json.dumps({**GOOD["json_kv"], "answer": None}),
            "column 'answer' must be str or list, found NoneType",
        ),
        (
            "json_kv",
            json.dumps({**GOOD["json_kv"], "answer": []}),
            "column 'answer' must be a string or a list",
        ),
        (
            "json_kv",
            json.dumps({**GOOD["json_kv"], "demos": [1]}),
            "column 'demos' must be a list of [key, value]",
        ),
        (
            "json_kv",
            json.dumps({"context": "c"}),
            "column 'question' must be str, found nothing",
        ),
        ("ruler_niah_mk_2", json.dumps({**GOOD["ruler_niah_mk_2"], "answer": "a"}), ""),
        (
            "ruler_niah_mk_2",
            json.dumps({**GOOD["ruler_niah_mk_2"], "answer": [1]}),
            "column 'answer' must be a string",
        ),
        (
            "ruler_niah_mk_2",
            json.dumps({"context": "c", "query": "q", "type_needle_v": "n"}),
            "column 'outputs'",
        ),
        ("ruler_niah_mk_2", "\xff", "the text is not UTF-8"),
    ],
)
def test_malformed_files(task: str, text: str, message: str, tmp_path: Path) -> None:
    """The error names a malformed or truncated file, its line and its column, and nothing is generated instead."""
    row = HELMET.task(task)
    path = tmp_path / row.paths(8192)[0]
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    if not message:
        assert examples(row, "8k", root=DataRoot(tmp_path, mirror=True))
        return
    with pytest.raises(InputError) as caught:
        examples(row, "8k", root=DataRoot(tmp_path, mirror=True))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_log_says_how_far_estimated_lengths_are_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without Llama 2's tokenizer one line names the measured error of generated prompts, however many there are."""
    recall._tell_error_of_estimate.cache_clear()
    for _ in range(2):
        examples(HELMET.task("json_kv"), 4096, ",num_samples=1")
    told = [record.getMessage() for record in caplog.records]
    (line,) = [text for text in told if "are estimated" in text]
    assert "ruler_niah_mk_3 is 5 % longer, ruler_niah_mv 6 % shorter" in line
