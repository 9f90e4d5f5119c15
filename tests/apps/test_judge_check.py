"""Tests of the judge check: the set itself, and judges of a known character over HTTP."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helm.benchmark.config_registry import register_configs_from_directory
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig

from helm_longctx.apps.judge_checks.measures import (
    Measure,
    _gain,
    agreements,
    by_kind,
    differences,
    measures,
    plot_judges,
)
from helm_longctx.benchmarks.helmet.rubrics import checks
from helm_longctx.data.root import DataRoot
from helm_longctx.documents.plots import write_picture
from helm_longctx.judging.check_items import Check, observe
from helm_longctx.judging.judge import find_judges
from helm_longctx.run_settings import JUDGE_WAIT
from tests.judging.characters import Characters
from tests.judging.deployments import write_judges
from tests.support.fabricate_books import build_rubrics
from tests.support.servers import faults
from tests.support.servers.faults import Fault, Plan
from tests.support.servers.llm import serve

KINDS = {
    "right", "wrong", "partly_right", "right_but_irrelevant", "fluent_nonsense", "constant", "null", "injection",
    "over_long", "repeated", "position",
}  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Check]:
    """Return the set, with fabricated rubrics."""
    root = tmp_path_factory.mktemp("rubrics")
    build_rubrics(root)
    return checks(DataRoot(root, mirror=True))


def test_a_verdict_that_lacks_a_number(asked: list[Check]) -> None:
    """A verdict that lacks a number is not as expected, because a summary without sentences would be worth 0."""
    item = next(
        check.item for check in asked if "sentence_count" in check.item.expected
    )
    assert item.accepts(item.expected)
    assert not item.accepts(
        {name: value for name, value in item.expected.items() if name != "precision"}
    )


@pytest.fixture(scope="module")
def said() -> dict[tuple[str, int], pd.DataFrame]:
    """Return what judges without faults have said, by their character and the number of repetitions."""
    return {}


@pytest.fixture
def seen(
    asked: list[Check],
    said: dict[tuple[str, int], pd.DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., pd.DataFrame]:
    """Ask a judge of a character about the set, and return what it says."""
    monkeypatch.setenv(JUDGE_WAIT, "0.001")

    def observed(
        character: str, repeats: int = 1, plan: Plan = faults.none
    ) -> pd.DataFrame:
        if plan is not faults.none:
            return ask(character, repeats, plan)
        key = (character, repeats)
        if key not in said:
            said[key] = ask(character, repeats, plan)
        return said[key].copy()

    def ask(character: str, repeats: int, plan: Plan) -> pd.DataFrame:
        with serve(getattr(Characters(asked), character), plan) as server:
            name = f"tests/{character}"
            register_configs_from_directory(
                str(write_judges(Path("local"), {name: server.openai}))
            )
            Path("cache").mkdir(exist_ok=True)
            judges = find_judges(
                name, AutoClient({}, "cache", SqliteCacheBackendConfig("cache"))
            )
            return observe(asked, judges, repeats)

    return observed


def named(seen: pd.DataFrame) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures(seen)}


def test_the_set(asked: list[Check]) -> None:
    """The set has every kind for answers and summaries, unique ids and prompts, and verdicts that the rubric can give."""
    items = {check.item.id: check.item for check in asked}
    assert len(items) == len(asked) == 60
    for task in ("narrativeqa", "infbench_sum"):
        assert {item.kind for item in items.values() if item.task == task} == KINDS
    prompts = Counter(
        question.prompt for check in asked for question in check.requests.values()
    )
    assert set(prompts.values()) == {1}
    for check in asked:
        item = check.item
        names = {"narrativeqa": {"fluency", "correctness"}}.get(
            item.task, {"fluency", "recall", "precision", "sentence_count"}
        )
        assert set(item.expected) == names
        assert set(item.tolerance) <= names
        assert 0 <= check.expected_score <= 1
        assert item.expected["fluency"] in (0, 1)
        assert (
            item.like is None
            or items[item.like].record["references"] == item.record["references"]
        )
    assert {check.expected_score for check in asked if check.item.kind == "right"} == {
        1.0
    }
    worthless = {
        "wrong",
        "fluent_nonsense",
        "constant",
        "null",
        "injection",
        "repeated",
    }
    assert {
        check.expected_score for check in asked if check.item.kind in worthless
    } == {0.0}


def test_texts_of_the_set(asked: list[Check]) -> None:
    """Variations change what they should: orders and padding are added, and places have the same sentences."""
    items = {check.item.id: check.item for check in asked}
    for item in items.values():
        text = item.record["prediction"]
        base = items[item.like].record["prediction"] if item.like else ""
        if item.kind == "injection":
            assert text.startswith(base)
            assert base
        if item.kind == "over_long":
            assert text.startswith(base)
            assert len(text.split()) >= 2 * len(base.split()) > 0
        if item.place and item.like:
            assert sorted(text.split()) == sorted(base.split())
            assert text != base


def test_a_judge_that_is_right(seen: Callable[..., pd.DataFrame]) -> None:
    """A judge that is always right has perfect measures."""
    summary = seen("perfect", repeats=2)
    assert len(summary) == 120
    assert all(
        measure.value == pytest.approx(measure.good)
        for measure in measures(summary)
        if measure.good is not None
    )
    assert set(by_kind(summary)["right"]) == {1.0}
    assert {compared.alpha.value for _, _, compared in agreements(summary)} == {1.0}


def test_a_judge_that_likes_everything(seen: Callable[..., pd.DataFrame]) -> None:
    """A judge that likes everything is exposed: answers without information get full scores, with no agreement."""
    summary = seen("generous")
    table = by_kind(summary)
    by_name = named(summary)
    assert by_name["null answers earn"].value == 1.0
    assert by_name["repetition gains"].value == 1.0
    assert by_name["bias"].value > 0.5
    assert table.loc["wrong", "right"] == 0.0
    assert table.loc["wrong", "score"] == 1.0
    kappas = [
        compared.weighted_kappa.value
        for task, _, compared in agreements(summary)
        if task == "narrativeqa"
    ]
    assert kappas == [0.0]


def test_a_judge_that_obeys(seen: Callable[..., pd.DataFrame]) -> None:
    """For a judge that obeys, only orders gain, and they gain the whole score."""
    summary = seen("obedient")
    by_name = named(summary)
    assert (by_name["instructions gain"].value, by_name["instructions gain"].n) == (
        1.0,
        6,
    )
    assert by_name["length gains"].value == pytest.approx(0)
    assert by_kind(summary).loc["injection", "right"] == 0.0
    assert by_name["right"].value == pytest.approx(54 / 60)


def test_a_judge_that_does_not_read_to_the_end(
    seen: Callable[..., pd.DataFrame],
) -> None:
    """For a judge that does not read to the end, the place of the right part matters."""
    by_name = named(seen("impatient"))
    assert by_name["right part at the end"].value == 0.0
    start = by_name["right part at the start"].value
    assert by_name["right part at the middle"].value == start > 0.5
    assert by_name["place matters"].value == start


def test_a_judge_whom_length_impresses(seen: Callable[..., pd.DataFrame]) -> None:
    """For a judge that length impresses, padding gains what the rubric does not give for it."""
    summary = seen("impressed")
    by_name = named(summary)
    padded = summary[summary["kind"] == "over_long"]
    assert by_name["length gains"].value == pytest.approx(
        (1 - padded["expected_score"]).mean()
    )
    assert by_name["instructions gain"].value == pytest.approx(0)


def test_a_judge_that_says_anything(seen: Callable[..., pd.DataFrame]) -> None:
    """A judge with random verdicts seldom repeats a verdict, and a judge that is asked once has no consistency."""
    by_name = named(seen("moody", repeats=3))
    assert by_name["same verdict again"].value < 0.3
    assert by_name["score varies"].value > 0.1
    once = named(seen("zero"))
    assert math.isnan(once["same verdict again"].value)
    assert once["same verdict again"].n == 0


@pytest.mark.parametrize(
    ("fault", "state", "error"),
    [
        (Fault.SERVER_ERROR, "failed", "the call failed"),
        (Fault.UNREADABLE, "unreadable", "the reply has no verdict"),
    ],
)
def test_a_judge_that_fails(
    seen: Callable[..., pd.DataFrame],
    asked: list[Check],
    fault: Fault,
    state: str,
    error: str,
) -> None:
    """Missing verdicts of a judge that fails are counted by kind, with the reason, and are in no mean."""
    third = Characters(asked).some(3)
    expected = {
        c.item.id for c in asked if any(third(q.prompt) for q in c.requests.values())
    }
    summary = seen("perfect", plan=faults.always(fault, third))
    assert set(summary.loc[summary["state"] == state, "id"]) == expected
    assert set(summary["state"]) == {"judged", state}
    assert summary["error"].dropna().str.contains(error).sum() == len(expected)
    table = by_kind(summary)
    assert table[state].sum() == len(expected)
    assert (table["judged"] + table[state]).equals(table["asked"])
    values = [
        measure.value
        for measure in measures(summary)
        if measure.good is not None and measure.n
    ]
    assert all(value in (0.0, 1.0) for value in (round(value, 9) for value in values))
    assert [compared.n for _, _, compared in agreements(summary)] == [
        sum(rows["state"] == "judged")
        for _, rows in summary.groupby("task", sort=False)
    ]


def test_a_judge_that_never_answers(seen: Callable[..., pd.DataFrame]) -> None:
    """A judge that never answers has no scores instead of zeros, and the tables are still made."""
    summary = seen("perfect", plan=faults.always(Fault.UNREADABLE))
    assert by_kind(summary)["judged"].sum() == 0
    assert by_kind(summary)["score"].isna().all()
    assert all(math.isnan(measure.value) for measure in measures(summary))
    assert {compared.note for _, _, compared in agreements(summary)} == {
        "no item has both ratings"
    }
    write_picture(plot_judges(summary), Path("nothing.png"))


def test_intervals_and_differences(seen: Callable[..., pd.DataFrame]) -> None:
    """Each mean has an interval around it; different judges differ significantly, and equal ones do not."""
    both = pd.concat(
        [seen("perfect"), seen("obedient"), seen("perfect").assign(judge="tests/twin")]
    )
    for _, rows in both.groupby("judge"):
        for measure in measures(rows):
            assert (
                measure.n == 0
                or math.isnan(measure.low)
                or measure.low <= measure.value <= measure.high
            )
    (right, *_) = measures(both[both["judge"] == "tests/obedient"])
    assert right.value == pytest.approx(0.9)
    assert 0.7 < right.low < 0.9 < right.high < 1
    compared_pairs = {
        (one, other): compared for one, other, compared in differences(both)
    }
    assert len(compared_pairs) == 3
    assert compared_pairs["tests/perfect", "tests/twin"].p_value == 1.0
    certain = compared_pairs["tests/perfect", "tests/obedient"]
    assert (certain.wins, certain.losses, certain.ties) == (6, 0, 54)
    assert certain.effect.mean == pytest.approx(0.1)


def test_pictures(seen: Callable[..., pd.DataFrame]) -> None:
    """The picture of all judges is one file in the format of its name."""
    both = pd.concat([seen("generous"), seen("zero")])
    for name, start in (("p.png", b"\x89PNG"), ("p.svg", b"<svg"), ("p.pdf", b"%PDF")):
        write_picture(plot_judges(both), Path(name))
        assert Path(name).read_bytes().startswith(start)


def gains_of(gains: Sequence[float]) -> Measure:
    """Return the measure of instructions that change scores of wrong answers (0.5 instead of 0) by these gains."""
    rows = [
        {
            "id": f"{kind} {number}",
            "like": like,
            "kind": kind,
            "score": 0.5 + gain,
            "expected_score": 0.0,
        }
        for number, added in enumerate(gains)
        for kind, like, gain in (
            ("wrong", None, 0.0),
            ("injection", f"wrong {number}", added),
        )
    ]
    rest = {
        "state": "judged",
        "right": False,
        "repeat": 0,
        "place": None,
        "verdict": "",
    }
    judged = pd.DataFrame([row | rest for row in rows])
    # All measures of a judge take four times as long.
    return _gain(judged, "injection", "instructions gain", "")


@pytest.mark.parametrize(
    "gains", [[0.0] * 7 + [1 / 3], [-1 / 3] + [0.0] * 7, [1 / 3] * 5, [0.0] * 6]
)
def test_the_interval_of_a_gain_does_not_depend_on_its_sign(gains: list[float]) -> None:
    """The interval of a gain has a width and contains 0, also if all gains have one sign or are equal."""
    gain_interval = gains_of(gains)
    reverse = gains_of([-gain for gain in gains])
    assert gain_interval.low < 0 < gain_interval.high
    assert gain_interval.high - gain_interval.low > 0.05
    assert (reverse.low, reverse.high) == pytest.approx(
        (-gain_interval.high, -gain_interval.low)
    )


def test_a_judge_without_bias_is_seldom_called_biased() -> None:
    """A judge without bias differs from 0 in at most 5 % of rounds, and a judge with a clear bias is found."""
    random = np.random.default_rng(0)
    rounds = 300
    steps = [-1 / 3, 0.0, 1 / 3]
    chances = [0.1, 0.8, 0.1]
    wrong = [gains_of(list(random.choice(steps, 8, p=chances))) for _ in range(rounds)]
    assert sum(row.low > 0 or row.high < 0 for row in wrong) / rounds <= 0.05
    assert gains_of([1 / 3] * 7 + [0.0]).low > 0
