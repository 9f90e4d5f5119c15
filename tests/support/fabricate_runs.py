"""Fabricates runs of any size as HELM's runner writes them, with one request in memory at a time."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    Input,
    Instance,
    Output,
    Reference,
)
from helm.common.general import asdict_without_nones
from helm.common.object_spec import parse_object_spec
from helm.common.request import GeneratedOutput, Request, RequestResult

import helm_longctx.plugin  # noqa: F401  # our run entries
from helm_longctx.tasks.sample import Sample

ENGLISH = [
    "harbour ",
    "surveyor ",
    "late ",
    "in the year ",
    "few were there, ",
    "lamps ",
    "on the water. ",
    "and ",
    "fog ",
]
CHINESE = [
    "那一年",
    "秋天，",
    "测量员",
    "沿着河岸",
    "走到港口，",
    "人寥寥无几；",
    "雾气很重。",
    "灯火",
    "在水面上",
]
SUFFIX = "\nCorresponding value:"
ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=longctx/null"


def long_prompts(
    count: int, characters: int, words: list[str] = ENGLISH
) -> Iterator[tuple[str, str]]:
    """Yield different prompts of this number of characters with their answers, whose depth goes from 0 to 1."""
    rng = random.Random(1)
    paragraphs = ["".join(rng.choices(words, k=200)) + "\n" for _ in range(400)]
    for number in range(count):
        text = "".join(
            rng.choices(paragraphs, k=characters // min(map(len, paragraphs)) + 1)
        )[:characters]
        answer = f"{rng.getrandbits(64):016x}"
        at = characters * number // max(count - 1, 1)
        yield f"{text[:at]} <key> is {answer}. {text[at:]}\n\nQuestion: <key>", answer


def write_run(suite: Path, entry: str, prompts: Iterable[tuple[str, str]]) -> Path:
    """Write a run of a one-task entry on these prompts with right answers, and return its folder."""
    (spec,) = construct_run_specs(parse_object_spec(entry))
    run = suite / spec.name.replace("/", "_")
    run.mkdir(parents=True)
    task = spec.scenario_spec.args.get("task") or spec.scenario_spec.args["dataset"]
    scores = []
    with (run / "scenario_state.json").open("w") as file:
        file.write(
            f'{{\n  "adapter_spec": {_indented(spec.adapter_spec, 2)},\n  "request_states": [\n'
        )
        for number, (prompt, answer) in enumerate(prompts):
            state = _state(spec, task, f"{task}-{number}", prompt, answer)
            file.write((",\n" if number else "") + "    " + _indented(state, 4))
            scores.append(PerInstanceStats(state.instance.id, None, 0, [_score(task)]))
        file.write('\n  ],\n  "annotator_specs": []\n}')
    scenario = {
        "name": spec.groups[0],
        "description": "Fabricated.",
        "tags": ["long_context"],
        "definition_path": "",
    }
    files = {
        "run_spec": spec,
        "scenario": scenario,
        "per_instance_stats": scores,
        "stats": [_score(task)],
    }
    for name, content in files.items():
        (run / f"{name}.json").write_text(_indented(content, 0))
    return run


def _state(
    spec: RunSpec, task: str, name: str, prompt: str, answer: str
) -> RequestState:
    budget = spec.adapter_spec.max_tokens
    extra = Sample(
        "generated",
        budget,
        budget,
        length=131072,
        question="<key>",
        answer_prefix=SUFFIX,
    ).to_json()
    instance = Instance(
        Input(prompt),
        [Reference(Output(answer), [CORRECT_TAG])],
        "test",
        task,
        id=name,
        extra_data=extra,
    )
    request = Request(
        model=spec.adapter_spec.model,
        model_deployment=spec.adapter_spec.model_deployment,
        prompt=prompt + SUFFIX,
    )
    result = RequestResult(
        True,
        [],
        [GeneratedOutput(f" {answer}", 0.0, [])],
        cached=False,
        request_time=0.1,
    )
    return RequestState(
        instance,
        None,
        None,
        0,
        None,
        request,
        result,
        num_train_instances=0,
        prompt_truncated=False,
    )


def _score(task: str) -> Stat:
    return Stat(MetricName("longctx_score", split="test", sub_split=task)).add(1.0)


def _indented(content: Any, by: int) -> str:
    plain = (
        [asdict_without_nones(part) for part in content]
        if isinstance(content, list)
        else content
    )
    plain = plain if isinstance(plain, (list, dict)) else asdict_without_nones(plain)
    return json.dumps(plain, indent=2).replace("\n", "\n" + " " * by)


def repeat_run(suite: Path, characters: int = 500) -> Path:
    """A run that asks two questions twice; the first answer to each is right, the second wrong."""
    run = write_run(suite, ENTRY, long_prompts(2, characters))
    states = json.loads((run / "scenario_state.json").read_text())
    again = copy.deepcopy(states["request_states"])
    for state in again:
        state["train_trial_index"], state["result"]["completions"][0]["text"] = (
            1,
            "wrong",
        )
    states["request_states"] += again
    rows = json.loads((run / "per_instance_stats.json").read_text())
    stats = [{**rows[0]["stats"][0], "mean": 0.0}]
    rows += [{**row, "train_trial_index": 1, "stats": stats} for row in rows]
    for name, content in (("scenario_state", states), ("per_instance_stats", rows)):
        (run / f"{name}.json").write_text(json.dumps(content, indent=2))
    return run
