"""Tests of runs that cannot be judged again, and of results that take the place of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm.common.codec import to_json

from helm_longctx.errors import InputError
from helm_longctx.helm.run_specs import build_run_spec
from helm_longctx.locks import LOCK
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner import rejudge
from helm_longctx.runner.rejudge import Rejudger, _replace_run
from helm_longctx.tasks.entry import split_entry
from helm_longctx.tasks.registry import benchmark_of


@pytest.mark.parametrize("judge", [None, "longctx/lexical"])
@pytest.mark.parametrize(
    "entry",
    [
        "mrcr:needles=2,length=8k",
        "longproc:task=countdown,length=0.5k",
        "helmet_recall:length=8k",
    ],
)
def test_a_run_that_no_judge_scores(
    entry: str, judge: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without judged tasks ends in one line, whether a judge is named or not."""
    monkeypatch.delenv(MIRROR, raising=False)
    name, arguments = split_entry(entry)
    Path("run").mkdir()
    Path("run/run_spec.json").write_text(
        to_json(build_run_spec(benchmark_of(name), name, **arguments))
    )
    with pytest.raises(
        InputError, match="cannot be judged, because none of its tasks has a judge"
    ) as error:
        Rejudger(Path("out"), "s", Path("local")).specs([Path("run")], judge)
    assert "\n" not in str(error.value)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder, which a process has locked."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("stats.json", "scenario.json", LOCK):
        (folder / name).write_text(f'"old {name}"')
    return folder


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is interrupted just before the new folder gets its name."""
    rename = Path.rename

    def rename_or_stop(self: Path, to: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", rename_or_stop)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def change_stats(run: Path) -> None:
    """Write other statistics into a run."""
    (run / "stats.json").write_text("new")


@pytest.mark.parametrize("name", ["run", "other"])
def test_a_result_takes_a_place_whole(run: Path, name: str) -> None:
    """New results replace those of the run itself or of another one, keep the rest, and leave no lock or folder behind."""
    target = run.with_name(name)
    if name == "other":
        target.mkdir()
        (target / "earlier.json").write_text("1")
    _replace_run(run, target, change_stats)
    files = contents(target)
    assert files.pop("stats.json") == "new"
    assert files == {"scenario.json": '"old scenario.json"'}
    assert {path.name for path in run.parent.iterdir()} == {"run", name}


def test_a_run_has_a_folder_at_every_moment(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system can exchange two folders, no moment is without a run, even if the process is killed."""

    def rename(self: Path, to: Path) -> Path:
        raise AssertionError("a folder was renamed")

    monkeypatch.setattr(Path, "rename", rename)
    _replace_run(run, run, change_stats)
    assert contents(run)["stats.json"] == "new"


def test_an_interrupt_leaves_the_old_run(
    run: Path, interrupt: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On other systems a run gets its name back after an interrupt, before the temporary folder is removed."""
    monkeypatch.setattr(rejudge, "_exchange", lambda one, other: False)
    before = contents(run)
    with pytest.raises(KeyboardInterrupt):
        _replace_run(run, run, change_stats)
    assert contents(run) == before
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_an_interrupt_leaves_nothing_where_nothing_was(
    run: Path, interrupt: None
) -> None:
    """There is no old run to restore."""
    with pytest.raises(KeyboardInterrupt):
        _replace_run(run, run.with_name("other"), change_stats)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
