"""Tests of the records of a run: what they keep, and when HELM's files are read in their place."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.runs.files import FILES, INSTANCE_STATS, STATES
from helm_longctx.runs.records import (
    RECORDS,
    Record,
    find_difference,
    has_records,
    read_records,
)
from helm_longctx.runs.scores import read_scores
from helm_longctx.tasks.answer import Answer, Steps, Usage
from helm_longctx.tasks.logprobs import Distribution, Window
from helm_longctx.tasks.methods.method import ToolCall
from helm_longctx.tasks.sample import Sample
from tests.runner import making

ENTRY = "helmet_recall:length=8k,num_samples=3,task=json_kv,model=longctx/lexical"

_counts = st.integers(0, 10**6)
_usages = st.builds(Usage, _counts, _counts, _counts, _counts, _counts)
_texts = st.text(st.characters(exclude_categories=()), max_size=20)
_facts = {
    "failure": st.none() | st.sampled_from(Failure),
    "usage": st.none() | _usages,
    "served_model": st.none() | _texts,
    "sent": st.dictionaries(_texts, _counts, max_size=2),
    "first_token_seconds": st.none() | st.floats(0, 100),
    "is_reasoning_open": st.none() | st.booleans(),
    "is_repeating": st.none() | st.booleans(),
    "calls": st.none()
    | st.builds(lambda name: (ToolCall("1", name, {"a": 1}),), _texts),
    "steps": st.none()
    | st.builds(lambda usage: Steps(2, (usage,), {"compactions": 1}), _usages),
    "windows": st.none() | st.just((Window(-1.5, 1023),)),
    "distributions": st.none() | st.just(((Distribution("a", -0.1, {"a": -0.1}),),)),
}
_outputs = {
    "output": _texts,
    "thinking": st.none() | _texts,
    "finish_reason": st.sampled_from(["", "stop", "length"]),
}
answers = st.builds(
    Answer,
    **_facts,
    **_outputs,
    first=st.none() | st.builds(Answer, **_facts, **_outputs),
    error=_texts,
    seconds=st.none() | st.floats(0, 100),
    is_cached=st.booleans(),
)


@given(answers, _texts)
def test_a_record_comes_back(answer: Answer, text: str) -> None:
    """A record is the same after it was written and read, with any text and any facts."""
    record = Record(
        task="json_kv",
        instance="json_kv-1",
        repeat=2,
        sample=Sample("official", 50, 50, question=text),
        references=[text],
        request={"prompt": text, "max_tokens": 50},
        answer=answer,
        notes={"judge": {"failed": 0.0}},
        values={"longctx_score": 1.0},
    )
    back = Record.from_json(json.loads(json.dumps(record.to_json())))
    assert back.answer == record.answer
    assert back.to_json() == record.to_json()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a baseline with three questions."""
    making.register()
    return making.make_run(tmp_path_factory.mktemp("records"), ENTRY)


def test_records_have_what_helms_files_have(run: Path, tmp_path: Path) -> None:
    """Scores and answers are the same, whether they are read from the records or from HELM's files."""
    other = tmp_path / run.name
    shutil.copytree(run, other)
    (other / RECORDS).unlink()
    assert has_records(run)
    assert not has_records(other)
    assert read_scores(run) == read_scores(other)
    records = list(read_records(run))
    assert len(records) == 3
    assert all(record.answer.is_answered and record.answer.text for record in records)
    assert all(record.values["longctx_score"] is not None for record in records)
    for record, plain in zip(records, read_records(other), strict=True):
        assert (record.key, record.text, record.prompt, record.prompt_digest) == (
            plain.key,
            plain.text,
            plain.prompt,
            plain.prompt_digest,
        )
        assert record.answer == plain.answer


def test_helms_files_are_made_of_records(run: Path) -> None:
    """The states and the statistics in HELM's files are those that the records make, and most need no change."""
    records = list(read_records(run))
    states = json.loads((run / STATES).read_text())["request_states"]
    assert [record.to_state() for record in records] == states
    rows = json.loads((run / INSTANCE_STATS).read_text())
    assert [record.to_row() for record in records] == rows
    assert find_difference(run) is None


_contents = st.recursive(
    st.none() | st.booleans() | st.integers() | _texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3)
    ),
    max_leaves=6,
)


@given(answers, _texts, st.dictionaries(_texts, _contents), _contents)
def test_any_state_comes_back(
    answer: Answer, text: str, unknown: dict[str, object], value: object
) -> None:
    """A request state of HELM is made again from its record, also with fields and values that no record knows."""
    record = Record(
        task="json_kv",
        instance="json_kv-1",
        repeat=0,
        sample=Sample("official", 50, 50, question=text),
        references=[text],
        request={"prompt": text},
        answer=answer,
    )
    state = record.to_state()
    state["unknown"] = unknown
    state["instance"] |= {"unknown": value}
    del state["num_train_instances"]
    again = Record.from_state(json.loads(json.dumps(state)))
    back = Record.from_json(json.loads(json.dumps(again.to_json())))
    assert json.dumps(back.to_state(), sort_keys=True) == json.dumps(
        state, sort_keys=True
    )


@pytest.mark.parametrize("name", [STATES, INSTANCE_STATS])
def test_changed_files_count_more_than_older_records(
    run: Path, tmp_path: Path, name: str
) -> None:
    """Where another program has changed one of HELM's files, the records are not used."""
    other = tmp_path / run.name
    shutil.copytree(run, other)
    path = other / name
    path.write_text(path.read_text().replace("json_kv-1", "json_kv-100"))
    assert not has_records(other)


def test_records_that_unpack_to_too_much(run: Path, tmp_path: Path) -> None:
    """Records that unpack to more than HELM's files hold are refused, and never fill the memory."""
    other = tmp_path / run.name
    shutil.copytree(run, other)
    path = other / RECORDS
    stamp, *lines, end = (
        zstandard.ZstdDecompressor()
        .stream_reader(path.open("rb"))
        .read()
        .splitlines(keepends=True)
    )
    most = 4 * sum((other / name).stat().st_size for name in (STATES, INSTANCE_STATS))
    times = 2 * (most + (1 << 20)) // len(lines[0])
    block = b" " * (1 << 20)
    bombs = (
        [stamp, *[lines[0]] * times, b'{"records": %d}\n' % times],
        [stamp, *[block] * 400, b"\n", end],
        [*[block] * 400],
    )
    for bomb in bombs:
        packed = zstandard.ZstdCompressor().chunker(chunk_size=1 << 16)
        with path.open("wb") as file:
            for piece in bomb:
                file.writelines(packed.compress(piece))
            file.writelines(packed.finish())
        tracemalloc.start()
        with pytest.raises(InputError, match=f"{RECORDS} cannot be read"):
            list(read_records(other))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100 << 20


def test_damaged_records(run: Path, tmp_path: Path) -> None:
    """Records that are cut off or changed are an error that names the file."""
    other = tmp_path / run.name
    shutil.copytree(run, other)
    path = other / RECORDS
    whole = path.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        b"no records",
        whole[:40] + b"\0" * 40 + whole[80:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=RECORDS):
            list(read_records(other))


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("name", [*FILES, RECORDS])
def test_a_process_that_ends_while_it_writes_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever file is not written, the same command asks nothing again, and completes the run from its journal."""
    making.register()
    replace = os.replace

    def end(source: Path, target: Path) -> None:
        if Path(target).name == name:
            raise Killed
        replace(source, target)

    entry = f"{ENTRY},model_deployment=test/plain"
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", end)
        with pytest.raises(Killed):
            making.make_run(tmp_path, entry)
    asked = len(making.PlainClient.asked)
    run = making.make_run(tmp_path, entry, skip_completed_runs=True)
    assert len(making.PlainClient.asked) == asked
    assert has_records(run)
    assert len(list(read_records(run))) == 3
    assert find_difference(run) is None
