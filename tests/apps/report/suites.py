"""Fabricates suites for the report: models of different skill, with failures, cut prompts and hostile texts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from helm.benchmark.run_spec_factory import construct_run_specs
from helm.common.general import asdict_without_nones
from helm.common.object_spec import parse_object_spec

import helm_longctx.plugin  # noqa: F401  # our run entries
from helm_longctx.tasks.metric_names import task_score
from helm_longctx.tasks.registry import BENCHMARKS, benchmark_of
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Task

HOSTILE = "青岛 </script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> {{7*7}} \u2028"
"""A text that would run a script or break a page that does not escape it."""

DEPTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def write_suite(
    suite: Path,
    entries: Iterable[str],
    skills: dict[str, float],
    instances: int = 12,
    text: str = HOSTILE,
) -> None:
    """Write a run of each entry by each model, whose answers are right with a probability that its skill and length give.

    Judged answers also have the task's other metrics, which are higher on average if the answer is right.
    """
    for entry in entries:
        for model, skill in skills.items():
            write_run(
                suite,
                f"{entry}{',' if ':' in entry else ':'}model={model}",
                model,
                skill,
                instances,
                text,
            )


def write_run(
    suite: Path,
    entry: str,
    model: str,
    skill: float,
    instances: int,
    text: str = HOSTILE,
    flaws: bool = False,
) -> Path:
    """Write a run in HELM's files, and return its folder.

    Args:
        flaws: whether every third answer is cut, and every fifth question has each error that a rule finds in its task.
    """
    (spec,) = construct_run_specs(
        parse_object_spec(entry.replace(f"model={model}", "model=longctx/null"))
    )
    content = json.dumps(asdict_without_nones(spec)).replace("longctx/null", model)
    plain = json.loads(content.replace("longctx_null", model.replace("/", "_")))
    run = suite / plain["name"].replace("/", "_")
    run.mkdir(parents=True)
    arguments = plain["scenario_spec"]["args"]
    answers = list(
        _answers(
            arguments,
            plain["adapter_spec"]["num_trials"],
            model,
            skill,
            instances,
            text,
        )
    )
    if flaws:
        answers = [
            _with_flaws(number, *answer) for number, answer in enumerate(answers)
        ]
    states = {
        "adapter_spec": plain["adapter_spec"],
        "request_states": [state for state, _ in answers],
    }
    rows = [row for _, row in answers]
    files = {
        "run_spec": plain,
        "per_instance_stats": rows,
        "stats": list(_means(rows)),
        "scenario_state": states,
    }
    files["scenario"] = {
        "name": plain["groups"][0],
        "description": "Fabricated.",
        "tags": [],
        "definition_path": "",
    }
    for name, content in files.items():
        (run / f"{name}.json").write_text(json.dumps(content, indent=2))
    return run


def _answers(
    arguments: dict[str, Any],
    trials: int,
    model: str,
    skill: float,
    instances: int,
    text: str,
) -> Iterator[tuple[Any, Any]]:
    benchmark = benchmark_of(arguments["entry"])
    category = benchmark.entries[arguments["entry"]]
    length = arguments.get("length")
    chosen = arguments.get(benchmark.task_argument)
    rng = random.Random(f"{arguments['entry']} {length} {model}")
    named = [
        task
        for task in (*category.tasks, *category.variants)
        if task.argument == str(chosen)
    ]
    for task in named or category.tasks:
        for number, repeat in product(range(instances), range(trials)):
            ease = random.Random(f"{task.name} {number} {length}").random()
            middle = 0.25 if DEPTHS[number % 6] in (0.4, 0.6) else 0.0
            loss = 0.012 * ((length or 8192) // 8192)
            chance = skill - loss - middle + 0.5 * (ease - 0.5)
            yield _answer(
                task, number, repeat, rng.random() < chance, rng.random() < 0.04, text
            )


def _answer(
    task: Task, number: int, repeat: int, is_right: bool, fails: bool, extra: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"{task.name}-{number}"
    answer = f"Pier {number} {extra}"
    depth = DEPTHS[number % 6]
    question = f"Which harbour? {number // 6}"
    prompt = f"{'fog on the water. ' * 300}{answer}{' lamps and few were there.' * 300}\n{question}"
    sample = Sample(
        "official", 50, 50, question=question, depth=depth, input_tokens=7000
    )
    text = answer if is_right else f"I do not know. {extra}"
    result = {
        "success": not fails,
        "completions": [] if fails else [{"text": text, "logprob": 0, "tokens": []}],
    }
    if fails:
        result |= {"error": f"503 {extra}", "facts": {"failure": "temporary"}}
    references = [{"output": {"text": answer}, "tags": ["correct"]}]
    instance = {
        "input": {"text": prompt},
        "references": references,
        "split": "test",
        "sub_split": task.name,
        "id": name,
    }
    state = {
        "instance": {**instance, "extra_data": sample.to_json()},
        "train_trial_index": repeat,
        "request": {"model": "m", "model_deployment": "m", "prompt": prompt},
        "result": {**result, "embedding": [], "cached": False, "request_time": 1.0},
    }
    values: dict[str, float] = {
        "depth": depth,
        "request_failed": float(fails),
        "prompt_cut": float(number % 5 == 0),
    }
    scores = dict.fromkeys(
        ("longctx_score", task_score(task.name), *task.headline), float(is_right)
    )
    values |= (
        {}
        if fails
        else {
            **_other_metrics(task, number, is_right),
            **scores,
            "output_tokens": 40.0,
            "cost": 0.02,
        }
    )
    stats = [_stat(metric, task.name, [value]) for metric, value in values.items()]
    return state, {"instance_id": name, "train_trial_index": repeat, "stats": stats}


def _with_flaws(
    number: int, state: dict[str, Any], row: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    task = state["instance"]["sub_split"]
    rules = [
        erratum.rule
        for benchmark in BENCHMARKS
        for erratum in benchmark.errata()
        if erratum.task == task and erratum.rule
    ]
    if rules and number % 5 == 0:
        state["instance"]["extra_data"]["errata"] = rules
    if state["result"]["completions"]:
        row["stats"].append(_stat("output_truncated", task, [float(number % 3 == 0)]))
    return state, row


def _other_metrics(task: Task, number: int, is_right: bool) -> dict[str, float]:
    names = [
        name
        for name in task.metrics
        if task.official_judge and not name.startswith("judge_")
    ]
    noise = random.Random(f"{task.name} {number} {is_right}")
    return {name: round(0.6 * noise.random() + 0.2 * is_right, 3) for name in names}


def _means(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        for stat in row["stats"]:
            values.setdefault(
                (stat["name"]["name"], stat["name"]["sub_split"]), []
            ).append(stat["mean"])
    for (metric, task), task_values in values.items():
        yield _stat(metric, task, task_values)


def _stat(metric: str, task: str, values: list[float]) -> dict[str, Any]:
    name = {"name": metric, "split": "test", "sub_split": task}
    mean = sum(values) / len(values)
    spread = {"min": min(values), "max": max(values), "variance": 0.0, "stddev": 0.0}
    return {
        "name": name,
        "count": len(values),
        "sum": sum(values),
        "sum_squared": 0.0,
        "mean": mean,
        **spread,
    }
