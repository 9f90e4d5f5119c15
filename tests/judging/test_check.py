"""Trust tests: the set itself, and judges of a known character over HTTP."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from helm.benchmark.config_registry import register_configs_from_directory
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig

from helm_longctx.benchmarks.helmet.judge_check import checks
from helm_longctx.judging import agreement
from helm_longctx.judging.calls import WAIT
from helm_longctx.judging.check.items import Check, observe
from helm_longctx.judging.check.measures import Measure, agreements, by_kind, differences, measures
from helm_longctx.judging.check.plotting import draw
from helm_longctx.judging.judge import find_judges
from helm_longctx.sources.root import DataRoot
from tests.fabricate_books import build_rubrics
from tests.judging.characters import Characters
from tests.judging.deployments import write_judges
from tests.servers import faults
from tests.servers.faults import Fault, Plan
from tests.servers.llm import serve

KINDS = {
    "right", "wrong", "partly_right", "right_but_irrelevant", "fluent_nonsense", "constant", "null", "injection",
    "over_long", "repeated", "position",
}  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Check]:
    """The set, with fabricated rubrics."""
    root = tmp_path_factory.mktemp("rubrics")
    build_rubrics(root)
    return checks(DataRoot(root, mirror=True))


def test_a_verdict_that_lacks_a_number(asked: list[Check]) -> None:
    """A summary without sentences is worth 0, however many of them are right: such a verdict is not as expected."""
    item = next(check.item for check in asked if "sentence_count" in check.item.expected)
    assert item.accepts(item.expected)
    assert not item.accepts({name: value for name, value in item.expected.items() if name != "precision"})


@pytest.fixture
def seen(asked: list[Check], monkeypatch: pytest.MonkeyPatch) -> Callable[..., pd.DataFrame]:
    """What a judge of a character says."""
    monkeypatch.setenv(WAIT, "0.001")
    monkeypatch.setattr(agreement, "RESAMPLES", 20)

    def observed(character: str, repeats: int = 1, plan: Plan = faults.none) -> pd.DataFrame:
        with serve(getattr(Characters(asked), character), plan) as server:
            name = f"tests/{character}"
            register_configs_from_directory(str(write_judges(Path("local"), {name: server.openai})))
            Path("cache").mkdir(exist_ok=True)
            judges = find_judges(name, AutoClient({}, "cache", SqliteCacheBackendConfig("cache")))
            return observe(asked, judges, repeats)

    return observed


def named(seen: pd.DataFrame) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures(seen)}


def test_the_set(asked: list[Check]) -> None:
    """Every kind for answers and summaries, unique ids and prompts, expected verdicts that the rubric can give."""
    items = {check.item.id: check.item for check in asked}
    assert len(items) == len(asked) == 60
    for task in ("narrativeqa", "infbench_sum"):
        assert {item.kind for item in items.values() if item.task == task} == KINDS
    prompts = Counter(question.prompt for check in asked for question in check.requests.values())
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
        assert item.like is None or items[item.like].record["references"] == item.record["references"]
    assert {check.expected_score for check in asked if check.item.kind == "right"} == {1.0}
    worthless = {"wrong", "fluent_nonsense", "constant", "null", "injection", "repeated"}
    assert {check.expected_score for check in asked if check.item.kind in worthless} == {0.0}


def test_texts_of_the_set(asked: list[Check]) -> None:
    """Variations vary what they should: orders and padding are added, places are those of the same sentences."""
    items = {check.item.id: check.item for check in asked}
    for item in items.values():
        text, base = item.record["prediction"], items[item.like].record["prediction"] if item.like else ""
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
    """Nothing moves it."""
    found = seen("perfect", repeats=2)
    assert len(found) == 120
    assert all(measure.value == pytest.approx(measure.good) for measure in measures(found) if measure.good is not None)
    assert set(by_kind(found)["right"]) == {1.0}
    assert {compared.alpha.value for _, _, compared in agreements(found)} == {1.0}


def test_a_judge_that_likes_everything(seen: Callable[..., pd.DataFrame]) -> None:
    """It is exposed: answers that say nothing earn all, and there is no agreement beyond chance."""
    found = seen("generous")
    table, by_name = by_kind(found), named(found)
    assert by_name["null answers earn"].value == 1.0
    assert by_name["repetition gains"].value == 1.0
    assert by_name["bias"].value > 0.5
    assert table.loc["wrong", "right"] == 0.0
    assert table.loc["wrong", "score"] == 1.0
    kappas = [compared.weighted_kappa.value for task, _, compared in agreements(found) if task == "narrativeqa"]
    assert kappas == [0.0]


def test_a_judge_that_obeys(seen: Callable[..., pd.DataFrame]) -> None:
    """Orders gain the whole score, and only they."""
    found = seen("obedient")
    by_name = named(found)
    assert (by_name["instructions gain"].value, by_name["instructions gain"].n) == (1.0, 6)
    assert by_name["length gains"].value == pytest.approx(0)
    assert by_kind(found).loc["injection", "right"] == 0.0
    assert by_name["right"].value == pytest.approx(54 / 60)


def test_a_judge_that_does_not_read_to_the_end(seen: Callable[..., pd.DataFrame]) -> None:
    """The place of the right part matters by what the text is worth."""
    by_name = named(seen("impatient"))
    assert by_name["right part at the end"].value == 0.0
    start = by_name["right part at the start"].value
    assert by_name["right part at the middle"].value == start > 0.5
    assert by_name["place matters"].value == start


def test_a_judge_whom_length_impresses(seen: Callable[..., pd.DataFrame]) -> None:
    """Padding gains what the rubric does not give for it."""
    found = seen("impressed")
    by_name = named(found)
    padded = found[found["kind"] == "over_long"]
    assert by_name["length gains"].value == pytest.approx((1 - padded["expected_score"]).mean())
    assert by_name["instructions gain"].value == pytest.approx(0)


def test_a_judge_that_says_anything(seen: Callable[..., pd.DataFrame]) -> None:
    """It hardly ever says the same again; one that is asked once says nothing about that."""
    by_name = named(seen("moody", repeats=3))
    assert by_name["same verdict again"].value < 0.3
    assert by_name["score varies"].value > 0.1
    once = named(seen("zero"))
    assert math.isnan(once["same verdict again"].value)
    assert once["same verdict again"].n == 0


@pytest.mark.parametrize(
    ("fault", "state", "error"),
    [(Fault.SERVER_ERROR, "failed", "the call failed"), (Fault.UNREADABLE, "unreadable", "the reply has no verdict")],
)
def test_a_judge_that_fails(
    seen: Callable[..., pd.DataFrame], asked: list[Check], fault: Fault, state: str, error: str
) -> None:
    """What it did not say is counted by kind, with the reason, and moves no mean."""
    third = Characters(asked).some(3)
    expected = {c.item.id for c in asked if any(third(q.prompt) for q in c.requests.values())}
    found = seen("perfect", plan=faults.always(fault, third))
    assert set(found.loc[found["state"] == state, "id"]) == expected
    assert set(found["state"]) == {"judged", state}
    assert found["error"].dropna().str.contains(error).sum() == len(expected)
    table = by_kind(found)
    assert table[state].sum() == len(expected)
    assert (table["judged"] + table[state]).equals(table["asked"])
    values = [measure.value for measure in measures(found) if measure.good is not None and measure.n]
    assert all(value in (0.0, 1.0) for value in (round(value, 9) for value in values))
    assert [compared.n for _, _, compared in agreements(found)] == [
        sum(rows["state"] == "judged") for _, rows in found.groupby("task", sort=False)
    ]


def test_a_judge_that_never_answers(seen: Callable[..., pd.DataFrame]) -> None:
    """There are no scores, not zeros, and nothing breaks."""
    found = seen("perfect", plan=faults.always(Fault.UNREADABLE))
    assert by_kind(found)["judged"].sum() == 0
    assert by_kind(found)["score"].isna().all()
    assert all(math.isnan(measure.value) for measure in measures(found))
    assert {compared.note for _, _, compared in agreements(found)} == {"no item has both ratings"}
    draw(found, Path("nothing.png"))


def test_intervals_and_differences(seen: Callable[..., pd.DataFrame]) -> None:
    """Each mean has an interval around it; what is certain differs, what is equal does not."""
    both = pd.concat([seen("perfect"), seen("obedient"), seen("perfect").assign(judge="tests/twin")])
    for _, rows in both.groupby("judge"):
        for measure in measures(rows):
            assert measure.n == 0 or math.isnan(measure.low) or measure.low <= measure.value <= measure.high
    (right, *_) = measures(both[both["judge"] == "tests/obedient"])
    assert right.value == pytest.approx(0.9)
    assert 0.7 < right.low < 0.9 < right.high < 1
    found = {(one, other): compared for one, other, compared in differences(both)}
    assert len(found) == 3
    assert found["tests/perfect", "tests/twin"].p_value == 1.0
    certain = found["tests/perfect", "tests/obedient"]
    assert (certain.wins, certain.losses, certain.ties) == (6, 0, 54)
    assert certain.effect.mean == pytest.approx(0.1)


def test_pictures(seen: Callable[..., pd.DataFrame]) -> None:
    """One file for all judges, in the form that its name says."""
    both = pd.concat([seen("generous"), seen("zero")])
    for name, start in (("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")):
        draw(both, Path(name))
        assert Path(name).read_bytes().startswith(start)
