"""Tests that files of an earlier version (see `make_earlier_files.py`) are read, and that no answer is asked for again.

Nothing listens at the address of the deployment, so a request that is sent fails.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
import zstandard

from helm_longctx import __version__
from helm_longctx.apps.exchange.command import export_suite
from helm_longctx.errors import InputError
from helm_longctx.tasks.registry import BENCHMARKS
from tests.runner import served
from tests.runner.making import make_run, means, read
from tests.runs.make_earlier_files import ADDRESS, DIVIDED, ENTRY, FAILED

SUITE = Path("benchmark_output/runs/s")


@pytest.fixture(autouse=True)
def earlier_files() -> None:
    """Unpack the files into the working folder, and register the deployment."""
    shutil.unpack_archive(Path(__file__).parent / "earlier_files.zip", ".")
    served.register("test/earlier", ADDRESS)


def answers(run: Path) -> dict[str, str]:
    """Return the text of each answer that a run has, by its instance."""
    states = read(run, "scenario_state")["request_states"]
    return {state["instance"]["id"]: state["result"]["completions"][0]["text"] for state in states}


def texts(run: Path) -> bytes:
    """Return the prompts of a run. Versions of Zstandard compress them differently."""
    with (run / "prompts.zst").open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


def test_the_request_cache_has_the_answers() -> None:
    """A run that is repeated in another folder gets all answers from the cache, and the same scores."""
    (earlier,) = (
        path.parent
        for path in SUITE.glob("*samples=3,style*/stats.json")
        if "seed" not in path.parent.name
    )
    shutil.move(earlier, "earlier")
    run = make_run(Path.cwd(), ENTRY)
    found = means(run)
    before = means(Path("earlier"))
    assert (found | before, answers(run)) == (found, answers(Path("earlier")))
    assert {name for name, *_ in found.keys() - before.keys()} == {"answer_empty"}, (
        "only new statistics are added"
    )
    for name in ("prompts.json", "scenario.json"):
        assert (run / name).read_bytes() == Path("earlier", name).read_bytes()
    assert texts(run) == texts(Path("earlier"))
    spec, earlier_spec = (
        (folder / "run_spec.json").read_text() for folder in (run, Path("earlier"))
    )
    assert spec.replace(f'"package": "{__version__}"', '"package": "1.0.0rc1"') == earlier_spec


@pytest.mark.parametrize(
    ("entry", "name", "journals"), [(FAILED, "seed=7", "*.jsonl"), (DIVIDED, "seed=8", "shards/*")]
)
def test_an_unfinished_run_is_continued(entry: str, name: str, journals: str) -> None:
    """A run continues with the answers in the journal, also of a shard, and the claim of a killed process stops nobody."""
    (journal,) = (
        path for path in next(SUITE.glob(f"*{name}*")).glob(journals) if path.suffix == ".jsonl"
    )
    count = len(journal.read_text().splitlines())
    assert count
    with pytest.raises(
        InputError, match=rf"Connection refused.* at {ADDRESS}; {count} answers are kept"
    ):
        make_run(Path.cwd(), entry, cache=False)


MENDED = {
    "averages.csv": ("low", "high"),
    "wide_helmet.csv": tuple(
        f"{mean}_{end}" for mean in ("overall", "helmet_recall") for end in ("low", "high")
    ),
}
"""Columns that differ from earlier versions, whose intervals of means of means were too narrow near 0 and 1."""


def test_an_export_is_the_same() -> None:
    """Every table of the complete run has the same rows as before, in the columns that it had, up to rounding."""
    for path in [*SUITE.glob("*seed=*")]:
        shutil.rmtree(path)
    list(export_suite("csv", SUITE, BENCHMARKS, Path("now")))
    names = sorted(path.name for path in Path("export").iterdir())
    assert names == sorted(path.name for path in Path("now").iterdir())
    for name in names:
        before = rows(Path("export", name))
        columns = [each for each in before[0] if each not in MENDED.get(name, ())]
        assert [[_round(row[column]) for column in columns] for row in rows(Path("now", name))] == [
            [_round(row[column]) for column in columns] for row in before
        ]


def _round(cell: str) -> str | float:
    """Return a number with nine digits; another text unchanged."""
    try:
        return float(f"{float(cell):.9g}")
    except ValueError:
        return cell


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
