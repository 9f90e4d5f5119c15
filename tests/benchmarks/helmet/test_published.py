"""The category means equal the means that HELMET's authors published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.results.reading import reference_results
from helm_longctx.results.reference import write_reference
from helm_longctx.tasks.lengths import STANDARD


def test_all_cells_are_there() -> None:
    """There are seven categories and five lengths, with 59 models at 128k and 63 models at each other length."""
    rows = HELMET.published()
    assert {row.category for row in rows} == {category.name for category in HELMET.categories if category.averaged}
    counts = Counter(row.length for row in rows if row.category == "recall")
    assert counts == {STANDARD[label]: 59 if label == "128k" else 63 for label in ("8k", "16k", "32k", "64k", "128k")}
    assert all(0 <= score <= 1 for row in rows for score in row.scores.values())


def test_each_model_has_its_properties() -> None:
    """Each published model has its properties once; 58 models are from Table 15, and seven are only on the project
    page."""
    models = HELMET.models()
    assert models.keys() == {row.model for row in HELMET.published()}
    assert Counter(each.source for each in models.values()) == {"Table 15": 58, "project page": 7}
    assert sum(each.instruct for each in models.values()) == 39
    assert sum(each.window is not None for each in models.values()) == len(models)
    assert {each.active for each in models.values() if "/" in each.parameters} == {12, 14}


def test_rows_of_earlier_versions(tmp_path: Path) -> None:
    """A suite can be read although its rows say which models are instruction-tuned."""
    write_reference(HELMET, tmp_path, ["ProLong"])
    path = tmp_path / "published_helmet/published.json"
    path.write_bytes(orjson.dumps([{**row, "instruct": True} for row in orjson.loads(path.read_bytes())]))
    assert len(reference_results(tmp_path, [HELMET])) == 5 * 7


@pytest.mark.parametrize(("length", "printed"), [("8k", 65.5), ("32k", 66.2), ("128k", 64.8)])
def test_averages(length: str, printed: float) -> None:
    """The mean over categories is the printed average."""
    scores = [
        row.scores[""] for row in HELMET.published() if (row.model, row.length) == ("GPT-4o-08", STANDARD[length])
    ]
    assert 100 * sum(scores) / 7 == pytest.approx(printed, abs=0.06)


def test_some_are_written(tmp_path: Path) -> None:
    """Models are chosen by pattern and length, a row has only its category's score, and no row is added twice."""
    for _ in range(2):
        assert write_reference(HELMET, tmp_path, ["gpt-4o-*", "ProLong"], STANDARD["128k"]) == 4 * 7
    found = reference_results(tmp_path, [HELMET])
    assert len(found) == 4 * 7
    assert write_reference(HELMET, tmp_path, ["ProLong"], STANDARD["8k"]) == 7
    assert len(reference_results(tmp_path, [HELMET])) == 5 * 7
    (rerank,) = [each for each in found if (each.entry, each.model) == ("helmet_rerank", "published/GPT-4o-08")]
    assert (rerank.task, rerank.length, rerank.interval.mean) == ("", STANDARD["128k"], 0.5)
    assert rerank.statistics.keys() == {"longctx_score", "published"}
    with pytest.raises(InputError, match=r"model='GPT-9'; choose from GPT-4, "):
        write_reference(HELMET, tmp_path, ["GPT-9"])


def test_published_results_cost_one_folder(tmp_path: Path) -> None:
    """The published results are one run of HELM without groups, whose page names the source."""
    write_reference(HELMET, tmp_path)
    (run,) = tmp_path.iterdir()
    spec, scenario = (orjson.loads((run / f"{name}.json").read_bytes()) for name in ("run_spec", "scenario"))
    assert (run.name, spec["name"], spec["groups"]) == ("published_helmet", "published_helmet", [])
    assert HELMET.url in scenario["description"]
