"""Tests that changes in the files of a run are found, and that unchanged files have no findings."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from helm.benchmark.runner import Runner

from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner.verification import find_faults, find_runs
from helm_longctx.runs.journal import NAME as JOURNAL
from helm_longctx.runs.records import RECORDS
from tests.runner.making import ENTRY, PlainClient, change, make_run
from tests.support.commands import Command
from tests.support.outputs import write_suite

PLAIN = ENTRY + "test/plain"
STATES = "scenario_state.json"
STATS = "stats.json"
ROWS = "per_instance_stats.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a complete run without an error."""
    return make_run(tmp_path_factory.mktemp("made"), PLAIN)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the run."""
    return Path(shutil.copytree(made, tmp_path / "run"))


def some_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every third request fail."""
    monkeypatch.setattr(
        PlainClient,
        "fails",
        staticmethod(lambda prompt: len(PlainClient.asked) % 3 == 0),
    )


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a run with failed requests, which keeps its journal."""
    some_fail(monkeypatch)
    return make_run(tmp_path, PLAIN)


@pytest.mark.parametrize(
    ("arguments", "runner"),
    [("", None), (",repeats=3", None), ("", Runner), (",task=json_kv", None)],
)
@pytest.mark.parametrize("fails", [False, True])
def test_runs_as_they_are(
    arguments: str,
    runner: type[Runner] | None,
    fails: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is found in runs with repeats, with failed requests, and of HELM's own runner."""
    if fails and runner:
        pytest.skip("HELM's runner ends at a failed request")
    if fails:
        some_fail(monkeypatch)
    options: dict[str, Any] = {"runner": runner} if runner else {}
    run = make_run(tmp_path, PLAIN.replace(",num", f"{arguments},num"), **options)
    assert list(find_faults(run)) == []


def test_an_old_run(tmp_path: Path) -> None:
    """Nothing is found in a run of an earlier version with a judge."""
    run = tmp_path / "run"
    shutil.unpack_archive(Path(__file__).parent.parent / "runs/old_run.zip", run)
    assert list(find_faults(run)) == []


def test_imported_runs(tmp_path: Path) -> None:
    """Nothing is found in runs that were made from other programs' files."""
    runs = find_runs(write_suite(tmp_path))
    assert runs
    assert [fault for run in runs for fault in find_faults(run)] == []


def test_several_headlines(
    tmp_path: Path, mirror: DataRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is found in a run whose score is the mean of several metrics' means."""
    monkeypatch.setenv(MIRROR, str(mirror.path))
    entry = "helmet_cite:task=asqa,length=8k,num_samples=3,judge=none,model=longctx/lexical,model_deployment=test/plain"
    assert list(find_faults(make_run(tmp_path, entry))) == []


def set_means(content: list[dict], means: Mapping[int, float]) -> None:
    for number, mean in means.items():
        content[number].update(mean=mean)


@pytest.mark.parametrize("changed", [slice(1), slice(-1, None), slice(None)])
def test_each_changed_mean(changed: slice, run: Path) -> None:
    """Each changed mean in the statistics of the run is found and named: the first one, the last one, and all of them."""
    rows = json.loads((run / STATS).read_bytes())
    means = {}
    expected = []
    for number in range(len(rows))[changed]:
        row = rows[number]
        means[number] = row["mean"] + 0.001
        name = row["name"]
        expected.append((name["name"], name.get("sub_split"), row["mean"]))
    change(run / STATS, partial(set_means, means=means))
    faults = list(find_faults(run))
    assert len(faults) == len(expected)
    for name, task, mean in expected:
        said = f"is {mean + 0.001}, but {ROWS} gives {mean}"
        named = f"{STATS}: {name} test"
        assert any(
            fault.startswith(named) and said in fault and (task or "") in fault
            for fault in faults
        ), (name, task)


def rename(content: Any) -> None:
    content[0]["name"]["name"] = "other"


def raise_scores(content: Any) -> None:
    """Double the value of a statistic in all its fields."""
    stat = next(stat for stat in content[0]["stats"] if stat["mean"])
    stat.update({name: stat[name] * 2 for name in ("mean", "sum", "min", "max")})


ATTACKS: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "a new statistic": (STATS, rename, "but no answer has it"),
    "a statistic is missing": (STATS, lambda content: content.pop(), "is missing, but"),
    "an answer's mean": (
        ROWS,
        lambda content: content[0]["stats"][-1].update(mean=7.5),
        "and the sum",
    ),
    "an answer's statistic": (ROWS, raise_scores, f"but {ROWS} gives"),
    "an answer's statistics are missing": (
        ROWS,
        lambda content: content.pop(),
        f"{ROWS}: instance ",
    ),
    "an answer's statistics twice": (
        ROWS,
        lambda content: content.append(content[0]),
        "is there 2 times",
    ),
    "an answer is missing": (
        STATES,
        lambda content: content["request_states"].pop(),
        f"{STATES}: instance ",
    ),
    "another repeat": (
        STATES,
        lambda content: content["request_states"][0].update(train_trial_index=1),
        STATES,
    ),
    "an answer as a failure": (
        STATES,
        lambda content: content["request_states"][0]["result"].update(
            success=False, error="x"
        ),
        "only one of them has an answer",
    ),
    "no answers": (
        STATES,
        lambda content: content.pop("request_states"),
        "cannot be read",
    ),
    "other types": (
        STATS,
        lambda content: content.append({"name": 5}),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_changes(name: str, run: Path) -> None:
    """Each change of a file is found."""
    file, edit, message = ATTACKS[name]
    change(run / file, edit)
    assert any(message in fault for fault in find_faults(run)), list(find_faults(run))


def test_a_file_that_is_cut_off(run: Path) -> None:
    """A file that is cut off is named."""
    (run / STATS).write_bytes((run / STATS).read_bytes()[:-2])
    assert list(find_faults(run)) == [f"{STATS}: missing or cut off; repeat that run"]


def test_damaged_records(run: Path) -> None:
    """Records that are cut off are named."""
    path = run / RECORDS
    path.write_bytes(path.read_bytes()[:-20])
    (fault,) = find_faults(run)
    assert RECORDS in fault


def test_records_with_other_statistics(run: Path) -> None:
    """Records that fit the sizes of HELM's files, and have other statistics, are found."""
    path = run / RECORDS
    packed = io.BytesIO(path.read_bytes())
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    content = reader.read().decode("ascii")
    assert '"longctx_score":1.0' in content
    content = content.replace('"longctx_score":1.0', '"longctx_score":0.5', 1)
    path.write_bytes(zstandard.compress(content.encode("ascii")))
    (fault,) = find_faults(run)
    assert fault == f"{RECORDS}: record 1 differs from {STATES} or {ROWS}"


def test_changed_prompts(run: Path) -> None:
    """Changed prompts are found by their digests."""
    path = run / "prompts.zst"
    data = path.read_bytes()
    path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    assert any("the stored prompts are damaged" in fault for fault in find_faults(run))


def test_a_changed_journal(failing: Path) -> None:
    """The changed line of a journal is named."""
    path = failing / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([lines[0], lines[1].replace(b'"text": "', b'"text": "x'), *lines[2:]])
    )
    (fault, *_) = find_faults(failing)
    assert fault.endswith(
        f"{JOURNAL} is damaged in line 2; remove this line, and its answer is requested again"
    )


def test_an_answer_that_is_not_in_the_journal(failing: Path) -> None:
    """An answer that was changed after it arrived is found."""

    def edit(content: Any) -> None:
        state = next(
            state for state in content["request_states"] if state["result"]["success"]
        )
        state["result"]["completions"][0]["text"] = "another answer"

    change(failing / STATES, edit)
    (fault,) = find_faults(failing)
    assert fault.startswith(f"{STATES}: the answer to instance ")
    assert fault.endswith("is not in the journal")


def test_the_command(command: Command, made: Path, tmp_path: Path) -> None:
    """`doctor --suite` prints one line per run or finding, sets the status, and leaves out other folders."""
    output = tmp_path / "output"
    suite = Path(shutil.copytree(made.parents[2], output)) / "runs/s"
    (suite / "groups").mkdir()
    options = ["doctor", "--suite", "s", "-o", output]
    assert command(*options) == 0, command.err
    assert command.out == f"ok      run: {made.name}\n"
    change(suite / made.name / STATS, lambda content: content[0].update(mean=7))
    assert command(*options) == 1
    assert command.out.startswith(f"BROKEN  run: {made.name}: {STATS}: ")
    assert command.out.count("\n") == 1
    unfinished = suite / "unfinished"
    unfinished.mkdir()
    (unfinished / JOURNAL).write_text('["a"]\n')
    assert command(*options) == 1
    assert f"{JOURNAL} is damaged in line 1" in command.out
    assert command("doctor", "--suite", "x", "-o", output) == 2
