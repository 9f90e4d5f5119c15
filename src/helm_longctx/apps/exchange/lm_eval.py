"""The results of lm-evaluation-harness: writes `results_*.json` and `samples_*.jsonl`, and reads the latter.

Source: EleutherAI/lm-evaluation-harness at 4e7e0d4, evaluator_utils.py (results), evaluator.py (config, samples),
loggers/evaluation_tracker.py (files).
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from helm_longctx._version import VERSION
from helm_longctx.apps.exchange.answers import RECORD, ForeignAnswer, make_runs
from helm_longctx.apps.exchange.export import (
    TaskResult,
    answer_record,
    folder_name,
    task_results,
)
from helm_longctx.data.jsonl import FileRow, JsonLines, find_nested
from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.boards import Suite
from helm_longctx.results.cells import score_numbers, unread_share
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import Result, Statistic
from helm_longctx.runs.records import Record
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import GENERATED_SOURCE, MAIN_METRIC, is_number, is_whole
from helm_longctx.writing import replace_file

_FILTER = "none"
"""The filter in the names of metrics. There is none, because our scorers read the whole answer."""

_SAMPLES = re.compile(r"samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[\d.-]+\.jsonl")
_UNSAFE = re.compile(r"[\"<>:/\\|?*\[\]]+")
"""Matches the characters that the harness replaces by `__` in a model's name (sanitize_model_name)."""


def write_results(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
) -> Iterator[tuple[Path, int]]:
    """Write a folder for each model with its results and its answers, and yield the files and their numbers of rows.

    Requests without an answer are in no file. `n-samples` has the numbers of all examples and of those with a score.

    Raises:
        InputError: a file of a run is damaged.
    """
    by_model: dict[str, dict[str, TaskResult]] = defaultdict(dict)
    for task_result in task_results(suite.boards, benchmarks):
        by_model[task_result.result.model][task_result.name] = task_result
    means: list[Result] = []
    for board in suite.boards:
        for category in board.categories:
            if category.has_score:
                means.append(category)
    date = datetime.now().isoformat().replace(":", "-")
    taken: set[str] = set()
    for model, by_name in by_model.items():
        results = list(by_name.values())
        # The harness's name. Some file systems do not distinguish small letters from capital letters.
        name = folder_name(_UNSAFE.sub("__", model))
        if name.casefold() in taken:
            name = folder_name(f"{name}-{digest(model)[:16]}")
        taken.add(name.casefold())
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"results_{date}.json"
        content = json.dumps(
            _results(model, results, means), indent=2, ensure_ascii=False
        )
        replace_file(path, content.encode())
        yield path, len(results)
        for result in results:
            samples = target / f"samples_{result.name}_{date}.jsonl"
            yield samples, _write_samples(samples, result)


def _results(
    model: str,
    results: Sequence[TaskResult],
    means: Iterable[Result],
) -> dict[str, Any]:
    directions = {}
    for result in results:
        directions[result.name] = dict(_directions(result))
    tasks: dict[str, dict[str, Any]] = {}
    for result in results:
        title = f"{result.task.title} {result.entry.label}".strip()
        tasks[result.name] = {
            "name": result.name,
            "alias": title,
            "sample_len": result.result.interval.n,
        }
        for metric, score in result.metrics():
            tasks[result.name] |= _values(metric.name, score)
    # The means of the categories with several tasks, and the names of their tasks.
    groups: dict[str, dict[str, Any]] = {}
    subtasks: dict[str, list[str]] = {}
    by_result = {}
    for result in results:
        by_result[id(result.result)] = result
    for mean in means:
        if mean.model != model:
            continue
        members = []
        for part in mean.parts:
            if id(part) in by_result:
                members.append(by_result[id(part)])
        if members and len(members[0].entry.category.tasks) > 1:
            entry = members[0].entry
            name = group_name(
                entry.benchmark,
                entry.category.name,
                entry.label,
                closed=mean.context == "none",
                judge=mean.runs[0].judge,
                folder=mean.folder,
                metric=mean.metric,
            )
            groups[name] = {
                "name": name,
                "alias": name,
                "sample_len": mean.interval.n,
                **_values(MAIN_METRIC, mean),
            }
            subtasks[name] = [member.name for member in members]
    shots = {}
    samples = {}
    for result in results:
        shots[result.name] = result.task.demonstrations(result.entry.settings)
        samples[result.name] = {
            "original": result.num_examples,
            "effective": result.result.interval.n,
        }
    return {
        "results": {**tasks, **groups},
        "groups": groups,
        "group_subtasks": subtasks,
        "configs": {result.name: _config(result) for result in results},
        "versions": {
            result.name: result.entry.benchmark.comparability for result in results
        },
        "n-shot": shots,
        "higher_is_better": {
            **directions,
            **{name: {MAIN_METRIC: True} for name in groups},
        },
        "n-samples": samples,
        "config": {
            "model": "helm",
            "model_args": {"pretrained": model},
            "batch_size": 1,
            "limit": None,
        },
        "git_hash": None,
        "date": datetime.now().timestamp(),
        "model_source": "helm",
        "model_name": model,
        "model_name_sanitized": _UNSAFE.sub("__", model),
        "helm_longctx_version": VERSION,
    }


def _directions(result: TaskResult) -> Iterator[tuple[str, bool | None]]:
    for metric, _ in result.metrics():
        yield (
            metric.name,
            None if metric.lower_is_better is None else not metric.lower_is_better,
        )


def _values(metric: str, score: Statistic | Result) -> dict[str, Any]:
    """Return a mean and its standard error, `N/A` if it cannot be computed, by the harness's names."""
    error = "N/A" if math.isnan(score.error) else score.error
    return {
        f"{metric},{_FILTER}": score.interval.mean,
        f"{metric}_stderr,{_FILTER}": error,
    }


def _config(result: TaskResult) -> dict[str, Any]:
    adapter = result.run.spec["adapter_spec"]
    settings = result.entry.settings
    interval = result.result.interval
    benchmark = result.entry.benchmark
    aggregations = []
    for name, better in _directions(result):
        aggregation = {
            "metric": name,
            "aggregation": "mean",
            "higher_is_better": better,
        }
        aggregations.append(aggregation)
    return {
        "task": result.name,
        "task_alias": result.task.title,
        "dataset_path": result.questions,
        "output_type": "generate_until",
        "num_fewshot": result.task.demonstrations(settings),
        "metric_list": aggregations,
        "repeats": adapter.get("num_trials", 1),
        "generation_kwargs": {
            "until": list(result.task.variant(settings).stop),
            "temperature": adapter.get("temperature", 0.0),
            "max_gen_toks": result.task.budget(settings),
        },
        # Data for which the harness has no field.
        "metadata": {
            "version": benchmark.comparability,
            "revision": benchmark.revision,
            "entry": result.entry.description,
            "interval_95": None
            if math.isnan(interval.low)
            else [interval.low, interval.high],
            "requests_without_answer": result.result.failed,
            "questions": result.questions,
            "not_comparable": result.caveats,
            "not_comparable_because": describe(result.result.caveats),
            **score_numbers(result.result),
            "unread": unread_share(result.result),
            "judge": "+".join(sorted(result.result.judges)),
        },
    }


def _write_samples(path: Path, result: TaskResult) -> int:
    """Write a line for each example with an answer. The repeats of an example are the responses of its line."""
    lines: dict[str, dict[str, Any]] = {}
    for asked, row in result.answers():
        if not asked.answer.is_answered:
            continue
        about = json.loads(answer_record(asked))
        notes = about.pop("notes", {})
        line = lines.setdefault(row.instance, _sample(len(lines), result, asked, about))
        line["resps"][0].append(asked.text)
        line["filtered_resps"].append(asked.text)
        line["doc"]["answers"].append({"repeat": row.repeat, "notes": notes})
        values = {}
        for name, value in row.values.items():
            if name in result.task.metrics:
                values[name] = value
        for name, value in values.items():
            if name not in line:
                line[name] = value
        if row.score is not None:
            line.setdefault(MAIN_METRIC, row.score)
    text = "".join(
        f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines.values()
    )
    replace_file(path, text.encode(errors="surrogatepass"))
    return len(lines)


def _sample(
    number: int,
    result: TaskResult,
    asked: Record,
    record: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a line without responses. `doc` has the data that an import needs to score the answer again."""
    prompt = asked.prompt
    sample = asked.sample or Sample(
        source="",
        max_tokens=0,
        run_max_tokens=0,
    )
    doc: dict[str, Any] = {
        "id": asked.key[1],
        "model": result.result.model,
        "question": sample.question,
        "entry": result.entry.description,
        "group": sample.group,
        "depth": sample.depth,
        "source": sample.source,
        "tokens": sample.input_tokens
        if sample.prompt_tokens is None
        else sample.prompt_tokens,
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
        "filter": _FILTER,
        "metrics": [metric.name for metric, _ in result.metrics()],
        "doc_hash": digest(json.dumps(doc, sort_keys=True, ensure_ascii=False)),
        "prompt_hash": (sample.full_prompt or {}).get("sha256") or digest(prompt),
        "target_hash": digest(target),
    }


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    match = _SAMPLES.fullmatch(path.name)
    task = match["task"] if match else path.stem
    answers: list[ForeignAnswer] = []
    filters: dict[object, object] = {}
    for row in JsonLines(path, {"doc": dict, "resps": list}):
        # With several filters, an example has a line for each, with the same responses.
        if filters.setdefault(str(row.get("doc_id")), row.get("filter")) == row.get(
            "filter"
        ):
            answers += _answers(row, task)
    yield from make_runs(answers, entry)


def _answers(row: FileRow, task: str) -> Iterator[ForeignAnswer]:
    location = f"{row.path}:{row.number}"
    doc = row["doc"]
    responses = row["resps"]
    if responses and isinstance(responses[0], list):
        responses = responses[0]
    own = doc.get(RECORD)
    model = str(doc.get("model") or "") if isinstance(own, dict) else ""
    model = model or row.path.resolve().parent.name.replace("__", "/", 1)
    prompt = find_nested(row, "arguments", "gen_args_0", "arg_0") or ""
    if not isinstance(prompt, str):
        prompt = json.dumps(prompt, ensure_ascii=False)
    for number, text in enumerate(responses or [None]):
        if text is not None and not isinstance(
            text, str
        ):  # null: the model gave no answer
            raise InputError(
                f"{location}: resps must be a list of a list of texts; only generated"
                " answers can be read"
            )
        if isinstance(own, dict):
            about = doc["answers"][number]
        else:
            about = {"repeat": number}
        fields = {**doc, "target": doc.get("target", row.get("target"))}
        if isinstance(own, dict):
            fields[RECORD] = {**own, "notes": about["notes"]}
        output = Output(
            id=str(doc.get("id") or row.get("doc_id")),
            prediction=None,
            references=(),
            prompt=prompt,
            repeat=about["repeat"],
            input_tokens=doc["tokens"] if is_whole(doc.get("tokens")) else None,
            group=str(doc.get("group") or ""),
            depth=doc["depth"] if is_number(doc.get("depth")) else None,
            is_generated=doc.get("source") == GENERATED_SOURCE,
            location=location,
        )
        yield ForeignAnswer(
            task=task,
            text=text,
            fields=fields,
            output=output,
            model=model,
        )


READER = OutputReader(
    "samples of lm-evaluation-harness (samples_TASK_DATE.jsonl)", _SAMPLES, _read
)
