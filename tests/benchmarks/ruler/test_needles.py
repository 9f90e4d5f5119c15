"""Tasks with more and more needles work from the run to the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helm_longctx.apps.report.build import write_report
from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.results.boards import read_suite
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import Settings
from tests.benchmarks.ruler.fabricate import build_sources, counter
from tests.runner.making import make_runner, spec_of
from tests.support import punkt

ENTRY = "ruler_needles:length=8k,num_samples=3,count_with=longctx/words"


def test_sweeps_differ_in_one_number() -> None:
    """Each level has its task in the category, and its script differs in only one argument from the script for one
    needle."""
    category = BENCHMARK.entries["ruler_needles"]
    names = {name for sweep in BENCHMARK.sweeps for name in sweep.tasks.values()}
    assert names == {task.name for task in category.tasks}
    assert not category.averaged
    own = BENCHMARK.task("niah_single_2").load.keywords["samples"].keywords  # type: ignore[attr-defined]
    for sweep in BENCHMARK.sweeps[:3]:
        for level, name in list(sweep.tasks.items())[1:]:
            arguments = BENCHMARK.task(name).load.keywords["samples"].keywords  # type: ignore[attr-defined]
            assert arguments == {**own, sweep.title.lower(): int(level)}


@pytest.mark.parametrize(
    ("name", "needles", "answers"),
    [
        ("keys_16", 16, 1),
        ("values_16", 16, 16),
        ("queries_16", 16, 16),
        ("keys_2", 2, 1),
    ],
)
def test_needles_are_in_the_text(
    tmp_path: Path, name: str, needles: int, answers: int
) -> None:
    """The text has as many needles as the name says, the answers are among them, and the budget has 32 tokens for each
    answer."""
    with punkt.installed(tmp_path / "nltk"):
        root = DataRoot(build_sources(tmp_path), mirror=True)
        task = BENCHMARK.task(f"niah_{name}")
        settings = Settings(length=12288, num_samples=2, counter=counter("byte_level"))
        for example in task.load(task, settings, root):
            matches = re.findall(
                r"magic numbers for (.+?) is: (\d+)", example.fields["context"]
            )
            assert len(matches) == needles
            assert len(example.references) == answers
            assert set(example.references) <= {value for _, value in matches}
            assert task.max_tokens == max(128, 32 * answers)


def test_the_word_search_over_complexity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lexical baseline finds single needles and all values of a key but only one of several keys, and the report
    has its curve."""
    monkeypatch.setenv(MIRROR, str(build_sources(tmp_path / "mirror")))
    with punkt.installed(tmp_path / "nltk"):
        make_runner(tmp_path).run_all([spec_of(f"{ENTRY},model=longctx/lexical")])
    suite = tmp_path / "benchmark_output/runs/s"
    (board,) = read_suite(suite, [find_benchmark("ruler")]).boards
    scores = {
        task.name: board.score("longctx/lexical", task.name, 8192)
        for task in BENCHMARK.tasks
    }
    means = {name: result.interval.mean for name, result in scores.items() if result}
    assert len(means) == 15
    assert {name: mean for name, mean in means.items() if mean < 1} == {
        "niah_queries_2": 1 / 2,
        "niah_multiquery": 1 / 4,
        "niah_queries_8": 1 / 8,
        "niah_queries_16": 1 / 16,
    }
    write_report(
        suite,
        [find_benchmark("ruler")],
        tmp_path / "site",
        "html",
        published=False,
        server="",
    )
    rows = json.loads(
        (tmp_path / "site/data/complexity-ruler-8k-curves.json").read_bytes()
    )
    curve = {row["level"]: row["score"] for row in rows if row["part"] == "Queries"}
    assert curve == {"1": 1, "2": 0.5, "4": 0.25, "8": 0.125, "16": 0.0625}
    assert (
        "complexity-ruler-8k-queries"
        in (tmp_path / "site/ruler-complexity.html").read_text()
    )
