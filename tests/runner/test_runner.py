"""Tests that our runner's results equal HELM's, that its files are small, and that failed requests are counted."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.presentation.run_display import write_run_display_json
from helm.benchmark.presentation.schema import Schema
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner, RunnerError
from helm.benchmark.scenarios.scenario import Input, Instance, create_scenario

from helm_longctx.errors import InputError
from helm_longctx.helm.adapter import TooLongError
from helm_longctx.helm.codec import from_json
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.runner import LongContextRunner, asking
from helm_longctx.runner.asking import GIVE_UP
from helm_longctx.runner.spool import Spool, adapt
from helm_longctx.runs.journal import NAME
from helm_longctx.runs.lookup import full_prompt
from helm_longctx.runs.prompts import LIMIT, read_prompts
from helm_longctx.tasks.metric_names import MEASURED
from tests.runner.making import (
    ENTRY,
    PlainClient,
    make_run,
    make_runner,
    means,
    read,
    spec_of,
)
from tests.support.loads import count_loads

PLAIN = ENTRY + "test/plain"


def state_of(run: Path) -> ScenarioState:
    return from_json((run / "scenario_state.json").read_bytes(), ScenarioState)


def one(prompts: list[str]) -> str:
    """Return a prompt in the middle, by which a client is told to fail."""
    return sorted(prompts)[len(prompts) // 2]


def without_times(rows: Any) -> Any:
    return [
        {
            **row,
            "stats": [
                stat for stat in row["stats"] if stat["name"]["name"] not in MEASURED
            ],
        }
        for row in rows
    ]


@pytest.mark.parametrize("at_most", [1000, 5])
def test_the_same_as_helms_own(tmp_path: Path, at_most: int) -> None:
    """Every statistic, instance and answer equals HELM's in the same order, and shortened texts can be restored."""
    ours = make_run(tmp_path / "ours", PLAIN, at_most=at_most)
    stock = make_run(tmp_path / "stock", PLAIN, Runner, at_most=at_most)
    assert means(ours) == means(stock)
    assert without_times(read(ours, "per_instance_stats")) == without_times(
        read(stock, "per_instance_stats")
    )
    assert [read(ours, name) for name in ("run_spec", "scenario")] == [
        read(stock, name) for name in ("run_spec", "scenario")
    ]
    for lean, whole in zip(
        state_of(ours).request_states, state_of(stock).request_states, strict=True
    ):
        instance = lean.instance
        assert (
            full_prompt(ours, instance.id)
            == full_prompt(stock, instance.id)
            == whole.request.prompt
        )
        assert len(instance.input.text) <= LIMIT
        assert instance.references == whole.instance.references
        extra = {
            name: value
            for name, value in instance.extra_data.items()
            if name != "full_prompt"
        }
        assert extra == whole.instance.extra_data
        assert replace(lean.request, prompt="") == replace(whole.request, prompt="")
        assert lean.result == whole.result
    assert not (ours / NAME).exists()


def test_no_text_of_a_prompt_is_in_memory(tmp_path: Path) -> None:
    """Short prompts are in the spool, too, and the files have them whole."""
    number = 300
    words = "fog lies on the water. " * 340
    rows = [
        {
            "context": f"{context_number} {words}",
            "question": "Where?",
            "answers": ["here"],
        }
        for context_number in range(number)
    ]
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    model = "model=longctx/lexical,model_deployment=test/plain"
    spec = spec_of(
        f"any_jsonl:path={tmp_path},length=8k,count_with=longctx/words,{model}"
    )
    runner = make_runner(tmp_path)
    scenario = create_scenario(spec.scenario_spec)
    with Spool(tmp_path) as spool:
        runner.adapt(spec, scenario, spool)  # imports and caches
        tracemalloc.start()
        requests = runner.adapt(spec, scenario, spool)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(requests) == number
        assert held < number * len(words)
        for asked, row in zip(requests, rows, strict=True):
            written = asked.to_file_state(asked.state)
            assert (
                row["context"]
                in written.request.prompt
                == asked.text()
                == asked.whole().prompt
            )
            assert row["context"] in written.instance.input.text


def test_an_elided_prompt_shows_its_answer(tmp_path: Path) -> None:
    """A shortened prompt in HELM's files has the head, the tail and the evidence."""
    run = make_run(tmp_path, PLAIN.replace("length", "task=json_kv,length"))
    for state in state_of(run).request_states:
        assert state.instance.references[0].output.text in state.request.prompt
        assert state.request.prompt.startswith("JSON data:")


@pytest.mark.parametrize("client", ["test/plain", "test/raising"])
def test_a_failing_request_is_counted(
    client: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failed request is counted, no prompt is in the log or files, and the same command sends only it again."""
    caplog.set_level("INFO")
    undisturbed = make_run(tmp_path / "undisturbed", ENTRY + client)
    bad = one(PlainClient.asked)
    monkeypatch.setattr(
        PlainClient, "fails", staticmethod(lambda prompt: prompt == bad)
    )
    run = make_run(tmp_path, ENTRY + client)
    failed = [
        row["mean"]
        for row in read(run, "stats")
        if row["name"]["name"] == "request_failed"
    ]
    assert max(failed) == pytest.approx(1 / 3)
    (state,) = (
        state for state in state_of(run).request_states if not state.result.success
    )
    assert full_prompt(run, state.instance.id) == bad
    assert len(state.result.error) < 500
    assert bad[3000:3500] not in caplog.text
    assert f"request for {state.instance.id} failed" in caplog.text
    PlainClient.asked.clear()
    monkeypatch.setattr(PlainClient, "fails", staticmethod(lambda prompt: False))
    assert make_run(tmp_path, ENTRY + client, skip_completed_runs=True) == run
    assert PlainClient.asked == [bad]
    assert means(run) == means(undisturbed)
    make_run(tmp_path, ENTRY + client, skip_completed_runs=True)
    assert PlainClient.asked == [bad]


def test_helms_page_of_a_run_with_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HELM's summarizer reads a run with a failure, whose failed request has an empty prediction."""
    make_run(tmp_path / "first", PLAIN)
    bad = one(PlainClient.asked)
    monkeypatch.setattr(
        PlainClient, "fails", staticmethod(lambda prompt: prompt == bad)
    )
    run = make_run(tmp_path, PLAIN)
    spec = from_json((run / "run_spec.json").read_bytes(), RunSpec)
    write_run_display_json(str(run), spec, Schema([], [], [], []), skip_completed=False)
    texts = [
        prediction["predicted_text"] for prediction in read(run, "display_predictions")
    ]
    assert len(texts) == 12
    assert texts.count("") == 1


@pytest.mark.parametrize(
    ("entry", "failed"),
    [(PLAIN, GIVE_UP), (PLAIN.replace("length", "task=json_kv,length"), 3)],
)
def test_nothing_answered(
    entry: str, failed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that never answers makes no run, and gets few requests."""
    monkeypatch.setattr(PlainClient, "fails", staticmethod(lambda prompt: True))
    with pytest.raises(
        InputError,
        match=r"1 of 1 runs were not made: .* requests failed, the last ones in a row: bad_request",
    ) as told:
        make_run(tmp_path, entry)
    (said,) = re.findall(r"(\d+) requests failed", str(told.value))
    # What was in flight when it was given up fails too.
    assert failed <= int(said) <= len(PlainClient.asked) <= failed + 4
    assert not list(tmp_path.rglob("stats.json"))


def test_progress_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a terminal the log reports the progress of a run from time to time."""
    caplog.set_level("INFO")
    make_run(tmp_path / "short", PLAIN)
    line = r"(\d+) of 12 requests, 0 failed, [\d,]+ input tokens per second, [\d:]+ left; \d in flight, the oldest for"
    assert not re.findall(line, caplog.text)
    monkeypatch.setattr(asking, "_LOG_EVERY", 0.0)
    make_run(tmp_path / "long", PLAIN)
    numbers = [int(number) for number in re.findall(line, caplog.text)]
    assert [numbers[0], numbers[-1]] == [1, 12]
    assert numbers == sorted(numbers)


def test_annotators_see_whole_prompts(tmp_path: Path) -> None:
    """Annotators see whole prompts, and the files have their annotations without the prompts."""
    run = make_run(
        tmp_path, PLAIN, annotators=[AnnotatorSpec("tests.runner.making.PromptSize")]
    )
    for state in state_of(run).request_states:
        assert state.annotations["prompt_size"]["characters"] == len(
            full_prompt(run, state.instance.id)
        )
        assert len(state.request.prompt) <= LIMIT


@pytest.mark.parametrize("flag", ["cache_instances", "dry_run"])
def test_helms_flags(flag: str, tmp_path: Path) -> None:
    """Runs with HELM's flags for instances, and dry runs, are made as HELM makes them."""
    ours = make_run(tmp_path / "ours", PLAIN, **{flag: True})
    stock = make_run(tmp_path / "stock", PLAIN, Runner, **{flag: True})
    assert sorted(path.name for path in ours.iterdir()) == sorted(
        path.name for path in stock.iterdir()
    )
    assert [state.request for state in state_of(ours).request_states] == [
        state.request for state in state_of(stock).request_states
    ]


def test_errors_that_are_no_input_errors(tmp_path: Path) -> None:
    """HELM reports other errors of a run, and the journal keeps the answers."""
    with pytest.raises(RunnerError, match="Failed runs"):
        make_run(
            tmp_path, PLAIN, annotators=[AnnotatorSpec("tests.runner.making.Broken")]
        )
    assert len(PlainClient.asked) == 12
    make_run(tmp_path, PLAIN)
    assert len(PlainClient.asked) == 12


def test_both_kinds_of_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A refused run and a run with another error are both named in one line, and the log has the reason once."""
    monkeypatch.setattr(
        PlainClient, "fails", staticmethod(lambda prompt: '"' in prompt[:200])
    )
    refused = spec_of(PLAIN.replace("length", "task=json_kv,length"))
    broken = spec_of(PLAIN, annotators=[AnnotatorSpec("tests.runner.making.Broken")])
    with pytest.raises(InputError) as told:
        make_runner(tmp_path).run_all([broken, refused])
    why = str(told.value)
    assert why.startswith(
        f"1 of 2 runs were not made: {refused.name}: their errors are in the log"
    )
    assert (
        caplog.text.count(f"{refused.name}: 3 requests failed, the last ones in a row")
        == 1
    )
    assert f'Failed runs: ["{broken.name}"]; {broken.name}: ' in why


def test_instances_that_share_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts of sub-splits that share an id are found by their names, and the id alone is refused with the names."""
    instances_of = LongContextScenario.iter_instances

    def numbered(*arguments: Any) -> Iterator[Instance]:
        return (
            replace(instance, id=instance.id.rpartition("-")[2])
            for instance in instances_of(*arguments)
        )

    monkeypatch.setattr(LongContextScenario, "iter_instances", numbered)
    tasks = ("json_kv", "ruler_niah_mk_2", "ruler_niah_mk_3", "ruler_niah_mv")
    names = [f"1#{number}:{task}" for number, task in enumerate(tasks, 1)]
    for runner in (LongContextRunner, Runner):
        run = make_run(tmp_path / runner.__name__, PLAIN, runner)
        assert (
            len({full_prompt(run, name) for name in names} & set(PlainClient.asked))
            == 4
        )
        with pytest.raises(
            InputError,
            match=f"instance='1' is invalid; give one of {', '.join(names)}, which share",
        ):
            full_prompt(run, "1")


def test_refusals_are_counted_over_all_batches(tmp_path: Path) -> None:
    """Prompts that are too long are reported once for the whole run, although instances are adapted in batches."""

    class Refusing:
        adapter_spec = AdapterSpec()

        def adapt(
            self, instances: list[Instance], parallelism: int
        ) -> list[RequestState]:
            raise TooLongError(
                [("a", len(instance.input.text)) for instance in instances]
            )

    instances = [
        Instance(Input("x" * n), [], split="test", id=str(n)) for n in (3, 9, 4)
    ]
    message = "3 instances of a are up to 9 tokens too long"
    with Spool(tmp_path) as spool:
        stored = spool.load("scenario", instances)
        with pytest.raises(TooLongError, match=message):
            adapt(stored, Refusing(), 1, spool, lambda total, prompts: range(total))  # type: ignore[arg-type]


def test_models_share_their_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of one entry that follow each other read its questions once, and equal runs that are made alone."""
    names = []
    for length in ("4k", "8k"):
        for deployment in ("test/plain", "test/cached"):
            names.append(
                f"helmet_recall:task=json_kv,length={length},num_samples=3,"
                f"model=longctx/lexical,model_deployment={deployment}"
            )
    runner = make_runner(tmp_path / "together")
    with count_loads(monkeypatch) as loads:
        runner.run_all([spec_of(name) for name in names])
        assert loads == ["json_kv", "json_kv"]
        loads.clear()
        runner.run_all([spec_of(names[0])])
        assert loads == ["json_kv"]
    for name in names:
        together = tmp_path / "together/benchmark_output/runs/s" / spec_of(name).name
        alone = make_run(tmp_path / "alone", name)
        assert means(together) == means(alone)
        assert list(read_prompts(together)) == list(read_prompts(alone))
