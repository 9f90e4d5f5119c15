"""The results of lm-evaluation-harness: writes `results_*.json` and `samples_*.jsonl`, and reads the latter.

Source: EleutherAI/lm-evaluation-harness at 4e7e0d4, evaluator_utils.py (results), evaluator.py (config, samples),
loggers/evaluation_tracker.py (files).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from helm_longctx._version import VERSION
from helm_longctx.errors import InputError
from helm_longctx.formats.answers import RECORD, Answer, make_runs
from helm_longctx.formats.task_results import TaskResult, best_of, task_results
from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.entry import group_name
from helm_longctx.protocol.outputs import Output, OutputReader, OutputRun
from helm_longctx.protocol.shapes import is_number, is_whole
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.conversation import to_text
from helm_longctx.runs.files import State
from helm_longctx.sources.jsonl import FileRow, JsonLines
from helm_longctx.statistics.intervals import Interval, mean_of_means

FILTER = "none"
"""The filter in the names of metrics. There is none, because our scorers read the whole answer."""

_SAMPLES = re.compile(r"samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[\d.-]+\.jsonl")
_UNSAFE = re.compile(r"[\"<>:/\\|?*\[\]]+")
"""Matches the characters that the harness replaces by `__` in a model's name (sanitize_model_name)."""

_COLUMNS = {"doc": dict, "resps": list}


def write_results(suite: Path, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write a folder for each model with its results and its answers, and yield the files and their numbers of rows.

    Requests without an answer are in no file. `n-samples` has the numbers of all examples and of those with a score.

    Raises:
        InputError: a file of a run is damaged.
    """
    by_model: dict[str, list[TaskResult]] = defaultdict(list)
    for (model, _), result in best_of(task_results(suite, benchmarks)).items():
        by_model[model].append(result)
    date = datetime.now().isoformat().replace(":", "-")
    for model, results in by_model.items():
        target = folder / _UNSAFE.sub("__", model)
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"results_{date}.json"
        path.write_text(json.dumps(_results(model, results), indent=2, ensure_ascii=False), encoding="utf-8")
        yield path, len(results)
        for result in results:
            samples = target / f"samples_{result.name}_{date}.jsonl"
            yield samples, _write_samples(samples, result)


def _results(model: str, results: Sequence[TaskResult]) -> dict[str, Any]:
    groups = _groups(results)
    directions = {result.name: dict(_directions(result)) for result in results}
    return {
        "results": {
            **{result.name: _task(result) for result in results},
            **{name: g for name, (g, _) in groups.items()},
        },
        "groups": {name: group for name, (group, _) in groups.items()},
        "group_subtasks": {name: members for name, (_, members) in groups.items()},
        "configs": {result.name: _config(result) for result in results},
        "versions": {result.name: result.entry.benchmark.comparability for result in results},
        "n-shot": {result.name: result.task.demonstrations(result.entry.settings) for result in results},
        "higher_is_better": {**directions, **{name: {MAIN_METRIC: True} for name in groups}},
        "n-samples": {
            result.name: {"original": result.num_examples, "effective": result.num_scored} for result in results
        },
        "config": {"model": "helm", "model_args": {"pretrained": model}, "batch_size": 1, "limit": None},
        "git_hash": None,
        "date": datetime.now().timestamp(),
        "model_source": "helm",
        "model_name": model,
        "model_name_sanitized": _UNSAFE.sub("__", model),
        "helm_longctx_version": VERSION,
    }


def _task(result: TaskResult) -> dict[str, Any]:
    """Return a task's metrics with their standard errors; `N/A` if an error cannot be computed."""
    values: dict[str, Any] = {"name": result.name, "alias": f"{result.task.title} {result.entry.label}".strip()}
    values["sample_len"] = result.num_scored
    for metric, score in result.metrics():
        values[f"{metric.name},{FILTER}"] = score.score
        values[f"{metric.name}_stderr,{FILTER}"] = "N/A" if score.error is None else score.error
    return values


def _directions(result: TaskResult) -> Iterator[tuple[str, bool | None]]:
    for metric, _ in result.metrics():
        yield metric.name, None if metric.lower_is_better is None else not metric.lower_is_better


def _groups(results: Iterable[TaskResult]) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Return the means of the categories with several tasks, and the names of their tasks."""
    members: dict[str, list[TaskResult]] = defaultdict(list)
    for result in results:
        category, entry = result.entry.category, result.entry
        if MAIN_METRIC in result.scores and len(category.tasks) > 1 and result.task in category.tasks:
            closed = entry.settings.context == "none"
            members[group_name(entry.benchmark, category.name, entry.label, closed)].append(result)
    return {name: (_group(name, rows), [row.name for row in rows]) for name, rows in members.items()}


def _group(name: str, results: Sequence[TaskResult]) -> dict[str, Any]:
    scores = [result.scores[MAIN_METRIC] for result in results]
    errors = [score.error for score in scores]
    # This is the error of an unweighted mean of independent means, in accordance with `mean_of_means`.
    spans = [Interval(0.0, -error, error, 1) for error in errors if error is not None]
    error = mean_of_means(spans).high if len(spans) == len(scores) else "N/A"
    mean = sum(score.score for score in scores) / len(scores)
    values = {f"{MAIN_METRIC},{FILTER}": mean, f"{MAIN_METRIC}_stderr,{FILTER}": error}
    return {"name": name, "alias": name, "sample_len": sum(result.num_scored for result in results), **values}


def _config(result: TaskResult) -> dict[str, Any]:
    adapter, settings = result.spec["adapter_spec"], result.entry.settings
    aggregations = [
        {"metric": name, "aggregation": "mean", "higher_is_better": better} for name, better in _directions(result)
    ]
    return {
        "task": result.name,
        "task_alias": result.task.title,
        "dataset_path": result.entry.benchmark.url,
        "output_type": "generate_until",
        "num_fewshot": result.task.demonstrations(settings),
        "metric_list": aggregations,
        "repeats": adapter.get("num_trials", 1),
        "generation_kwargs": {
            "until": list(result.task.variant(settings).stop),
            "temperature": adapter.get("temperature", 0.0),
            "max_gen_toks": result.task.budget(settings),
        },
        "metadata": _metadata(result),
    }


def _metadata(result: TaskResult) -> dict[str, Any]:
    """Return data for which the harness has no field: intervals, failures, and why the score is not comparable."""
    main = result.scores.get(MAIN_METRIC)
    return {
        "version": result.entry.benchmark.comparability,
        "revision": result.entry.benchmark.revision,
        "entry": result.entry.description,
        "interval_95": None if main is None or main.low is None else [main.low, main.high],
        "requests_without_answer": result.any_score.failed,
        "not_comparable": main.lacking if main else "",
        "judge": result.any_score.judge,
    }


def _write_samples(path: Path, result: TaskResult) -> int:
    """Write a line for each example with an answer. The repeats of an example are the responses of its line."""
    lines: dict[str, dict[str, Any]] = {}
    for state, row, record in result.answers():
        completions = (state.get("result") or {}).get("completions")
        if row is None or row.failure or not completions:
            continue
        about = json.loads(record)
        notes = about.pop("notes", {})
        line = lines.setdefault(state["instance"]["id"], _sample(len(lines), result, state, about))
        line["resps"][0].append(completions[0]["text"])
        line["filtered_resps"].append(completions[0]["text"])
        line["doc"]["answers"].append({"repeat": row.repeat, "notes": notes})
        values = {name: value for name, value in row.values.items() if name in result.task.metrics}
        line |= {name: value for name, value in values.items() if name not in line}
        if row.score is not None:
            line.setdefault(MAIN_METRIC, row.score)
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines.values())
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return len(lines)


def _sample(number: int, result: TaskResult, state: State, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line without responses. `doc` has the data that an import needs to score the answer again."""
    request, instance = state["request"], state["instance"]
    prompt = to_text(request.get("prompt", ""), request.get("messages"))
    sample = instance.get("extra_data") or {}
    doc = {
        "id": instance["id"],
        "question": sample.get("question"),
        "entry": result.entry.description,
        "group": sample.get("group"),
        "depth": sample.get("depth"),
        "tokens": sample.get("prompt_tokens", sample.get("input_tokens")),
        RECORD: record,
        "answers": [],
    }
    target = str(record["references"])
    return {
        "doc_id": number,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {}}},
        "resps": [[]],
        "filtered_resps": [],
        "filter": FILTER,
        "metrics": [metric.name for metric, _ in result.metrics()],
        "doc_hash": digest(json.dumps(doc, sort_keys=True, ensure_ascii=False)),
        "prompt_hash": (sample.get("full_prompt") or {}).get("sha256") or digest(prompt),
        "target_hash": digest(target),
    }


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    match = _SAMPLES.fullmatch(path.name)
    task = match["task"] if match else path.stem
    answers: list[Answer] = []
    filters: dict[object, object] = {}
    for row in JsonLines(path, _COLUMNS):
        # With several filters, an example has a line for each, with the same responses.
        if filters.setdefault(str(row.get("doc_id")), row.get("filter")) == row.get("filter"):
            answers += _answers(row, task)
    yield from make_runs(answers, entry)


def _answers(row: FileRow, task: str) -> Iterator[Answer]:
    """Yield the responses of a line. Each of them is a repeat."""
    place, doc = f"{row.path}:{row.number}", row["doc"]
    responses = row["resps"][0] if row["resps"] and isinstance(row["resps"][0], list) else row["resps"]
    model, own = row.path.resolve().parent.name.replace("__", "/", 1), doc.get(RECORD)
    for number, text in enumerate(responses or [None]):
        if not isinstance(text, str) and responses:
            raise InputError(f"{place}: resps must be a list of a list of texts; only generated answers can be read")
        about = doc["answers"][number] if isinstance(own, dict) else {"repeat": number}
        fields = {**doc, "target": doc.get("target", row.get("target"))}
        fields |= {RECORD: {**own, "notes": about["notes"]}} if isinstance(own, dict) else {}
        output = Output(
            id=str(doc.get("id") or row.get("doc_id")),
            prediction=None,
            references=(),
            prompt=_prompt(row),
            repeat=about["repeat"],
            input_tokens=doc["tokens"] if is_whole(doc.get("tokens")) else None,
            group=str(doc.get("group") or ""),
            depth=doc["depth"] if is_number(doc.get("depth")) else None,
        )
        yield Answer(place, task, text, fields, output, model)


def _prompt(row: FileRow) -> str:
    arguments = row.get("arguments")
    first = arguments.get("gen_args_0") if isinstance(arguments, dict) else None
    prompt = first.get("arg_0") if isinstance(first, dict) else None
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False) if prompt else ""


READER = OutputReader("samples of lm-evaluation-harness (samples_TASK_DATE.jsonl)", _SAMPLES, _read)
