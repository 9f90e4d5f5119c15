"""Writes results in the schema of Every Eval Ever, version 0.3.0: an object for each run, and a line for each answer.

Source: evaleval/every_eval_ever at 9bce413, schemas/eval.schema.json and schemas/instance_level_eval.schema.json.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from helm_longctx._version import VERSION
from helm_longctx.formats.task_results import TaskResult, task_results
from helm_longctx.protocol.benchmark import Benchmark, Metric
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.report.export import Score
from helm_longctx.runs.conversation import to_text
from helm_longctx.runs.files import State
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.statistics.intervals import LEVEL

SCHEMA = "0.3.0"

_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


def write_logs(suite: Path, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write an object and the lines of its answers for each run, and yield the files and their numbers of results.

    The paths are those of the project's data set: `data/<benchmark>/<developer>/<model>/<uuid>.json`. An answer without
    a score has no line, because the schema's `score` is a number. `details` has the number of such answers.

    Raises:
        InputError: a file of a run is damaged.
    """
    now = str(int(time.time()))
    for _, group in groupby(task_results(suite, benchmarks), key=lambda result: result.folder):
        results = [result for result in group if MAIN_METRIC in result.scores]
        if not results:
            continue
        run, about = results[0].any_score.run, results[0].entry.benchmark.name
        developer, _, model = results[0].any_score.model.rpartition("/")
        stem = folder / "data" / about / (developer or "unknown") / model / _uuid(run)
        stem.parent.mkdir(parents=True, exist_ok=True)
        identity = f"{run}/{now}"
        samples = stem.with_name(f"{stem.name}_samples.jsonl")
        lines = _write_samples(samples, identity, results)
        log = _log(identity, now, results)
        if lines:
            log["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": samples.relative_to(folder).as_posix(),
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(samples.read_bytes()).hexdigest(),
                "total_rows": lines,
            }
        path = stem.with_name(f"{stem.name}.json")
        path.write_text(json.dumps(log, indent=2, ensure_ascii=False), encoding="utf-8")
        yield path, len(log["evaluation_results"])
        yield samples, lines


def _uuid(run: str) -> str:
    """Return a name of the form that the data set needs, the same for each export of a run."""
    return str(uuid.UUID(bytes=hashlib.sha256(run.encode()).digest()[:16], version=4))


def _log(identity: str, now: str, results: Sequence[TaskResult]) -> dict[str, Any]:
    benchmark, model = results[0].entry.benchmark, results[0].any_score.model
    return {
        "schema_version": SCHEMA,
        "evaluation_id": identity,
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": f"{benchmark.title} in HELM",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "model_info": _model(model),
        "eval_library": {"name": "helm-longctx", "version": results[0].any_score.package or VERSION},
        "evaluation_results": [
            _result(result, metric, score) for result in results for metric, score in result.metrics()
        ],
    }


def _model(name: str) -> dict[str, Any]:
    developer, _, short = name.rpartition("/")
    return {"name": short, "id": name, "developer": developer or "unknown", "additional_details": _UNKNOWN}


def _result(result: TaskResult, metric: Metric, score: Score) -> dict[str, Any]:
    adapter, benchmark = result.spec["adapter_spec"], result.entry.benchmark
    return {
        "evaluation_result_id": f"{result.name}/{metric.name}",
        "evaluation_name": result.name,
        "source_data": {"dataset_name": result.name, "source_type": "url", "url": [benchmark.url]},
        "metric_config": _metric(result, metric, score),
        "score_details": _score(result, score),
        "generation_config": {
            "generation_args": {
                "temperature": adapter.get("temperature", 0.0),
                "max_tokens": result.task.budget(result.entry.settings),
            },
            "additional_details": {"run_entry": result.entry.description, "repeats": str(adapter.get("num_trials", 1))},
        },
    }


def _metric(result: TaskResult, metric: Metric, score: Score) -> dict[str, Any]:
    config: dict[str, Any] = {
        "evaluation_description": metric.description,
        "metric_id": f"{result.entry.benchmark.name}.{metric.name}",
        "metric_name": metric.title,
        "lower_is_better": bool(metric.lower_is_better),
    }
    if metric.range:
        low, high = metric.range
        config |= {"metric_unit": "proportion", "score_type": "continuous", "min_score": low, "max_score": high}
    if score.judge:
        judges = [{"model_info": _model(name)} for name in score.judge.split("+")]
        config["llm_scoring"] = {"judges": judges, "input_prompt": f"See {result.entry.benchmark.url}"}
    return config


def _score(result: TaskResult, score: Score) -> dict[str, Any]:
    """Return a score with its interval, and the number of requests without an answer, which are not in the score."""
    uncertainty: dict[str, Any] = {} if score.instances is None else {"num_samples": score.instances}
    if score.error is not None:
        uncertainty["standard_error"] = {"value": score.error, "method": "clustered"}
    if score.low is not None and score.high is not None:
        ends = {"lower": score.low, "upper": score.high}
        uncertainty["confidence_interval"] = {**ends, "confidence_level": LEVEL, "method": "wilson or student"}
    details = {"requests_without_answer": str(score.failed or 0), "examples": str(result.num_examples)}
    details |= {"not_comparable": score.lacking} if score.lacking else {}
    return {"score": score.score, "details": details, "uncertainty": uncertainty}


def _write_samples(path: Path, identity: str, results: Sequence[TaskResult]) -> int:
    """Write a line for each answer with a score, one in memory at a time, and return their number."""
    count = 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for result in results:
            for state, row, record in result.answers():
                if row is not None and row.score is not None:
                    line = _sample(identity, result, state, row, json.loads(record)["references"])
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    count += 1
    return count


def _sample(
    identity: str, result: TaskResult, state: State, row: InstanceScore, references: list[str]
) -> dict[str, Any]:
    request, text = state["request"], state["result"]["completions"][0]["text"]
    prompt = to_text(request.get("prompt", ""), request.get("messages"))
    score = row.score or 0.0
    return {
        "schema_version": SCHEMA,
        "evaluation_id": identity,
        "model_id": row.model,
        "evaluation_name": result.name,
        "evaluation_result_id": f"{result.name}/{MAIN_METRIC}",
        "sample_id": row.instance,
        "sample_hash": digest(prompt + "\n".join(references)),
        "interaction_type": "single_turn",
        "input": {"raw": prompt, "reference": references},
        "output": {"raw": [text]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": text,
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": score, "is_correct": score == 1.0},
        "metadata": {"repeat": str(row.repeat + 1), **({} if row.depth is None else {"depth": str(row.depth)})},
    }
