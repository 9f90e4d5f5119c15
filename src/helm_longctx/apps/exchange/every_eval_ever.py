"""Writes results for sites that collect them: in the schema of Every Eval Ever, and as `.eval_results` of the hub.

Sources: evaleval/every_eval_ever at 9bce413, schemas/eval.schema.json and schemas/instance_level_eval.schema.json,
version 0.3.0; https://huggingface.co/docs/hub/eval-results, whose files are made and checked by huggingface_hub.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from helm_longctx._version import VERSION
from helm_longctx.apps.exchange.export import (
    TaskResult,
    folder_name,
    question_source,
    task_results,
)
from helm_longctx.data.yaml_files import dump_yaml
from helm_longctx.documents.numbers import format_amount, format_ends
from helm_longctx.environment import require_modules
from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.boards import Suite, label
from helm_longctx.results.cells import score_numbers, unread_share
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import Statistic
from helm_longctx.results.statistics.level import LEVEL, LEVEL_TEXT
from helm_longctx.runs.files import STATS
from helm_longctx.runs.records import Record
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.benchmark import Benchmark, Metric
from helm_longctx.tasks.task import MAIN_METRIC
from helm_longctx.writing import replace_file, replacing

_SCHEMA = "0.3.0"


def write_logs(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
) -> Iterator[tuple[Path, int]]:
    """Write an object and the lines of its answers for each run, and yield the files and their numbers of results.

    The paths are the same as in the project's data set: `data/<benchmark>/<developer>/<model>/<uuid>.json`. An answer
    without a score has no line, because the schema's `score` is a number. `details` has the number of such answers.

    Raises:
        InputError: a file of a run is damaged.
    """
    now = str(int(time.time()))
    by_run: dict[Path, list[TaskResult]] = {}
    for result in task_results(suite.boards, benchmarks):
        results_of_run = by_run.setdefault(result.run.path, [])
        if result.result.has_score:
            results_of_run.append(result)
    for results in by_run.values():
        if not results:
            continue
        run = results[0].run.name
        about = results[0].entry.benchmark.name
        developer, _, model = results[0].result.model.rpartition("/")
        # The data set needs a name of this form. It is the same for each export of a run.
        name = str(
            uuid.UUID(bytes=hashlib.sha256(run.encode()).digest()[:16], version=4)
        )
        developer = folder_name(developer or "unknown")
        stem = folder / "data" / about / developer / folder_name(model) / name
        stem.parent.mkdir(parents=True, exist_ok=True)
        identity = f"{run}/{now}"
        samples = stem.with_name(f"{stem.name}_samples.jsonl")
        lines = 0
        # One answer at a time is in memory.
        with (
            replacing(samples) as part,
            part.open("w", encoding="utf-8", errors="replace") as file,
        ):
            for result in results:
                for asked, row in result.answers():
                    if row.score is not None:
                        line = _sample(identity, result, asked, row, row.score)
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                        lines += 1
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
        replace_file(path, json.dumps(log, indent=2, ensure_ascii=False).encode())
        yield path, len(log["evaluation_results"])
        yield samples, lines


def _log(identity: str, now: str, results: Sequence[TaskResult]) -> dict[str, Any]:
    benchmark = results[0].entry.benchmark
    model = results[0].result.model
    evaluations = []
    for result in results:
        for metric, score in result.metrics():
            evaluations.append(_result(result, metric, score))
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": identity,
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": f"{benchmark.title} in HELM",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "model_info": _model(model),
        "eval_library": {
            "name": "helm-longctx",
            "version": results[0].run.package or VERSION,
        },
        "evaluation_results": evaluations,
    }


def _model(name: str) -> dict[str, Any]:
    developer, _, short = name.rpartition("/")
    return {
        "name": short,
        "id": name,
        "developer": developer or "unknown",
        "additional_details": {
            "deployment_type": "unknown",
            "model_availability": "unknown",
        },
    }


def _result(result: TaskResult, metric: Metric, score: Statistic) -> dict[str, Any]:
    adapter = result.run.spec["adapter_spec"]
    benchmark = result.entry.benchmark
    config: dict[str, Any] = {
        "evaluation_description": metric.description,
        "metric_id": f"{benchmark.name}.{metric.name}",
        "metric_name": metric.title,
        "lower_is_better": bool(metric.lower_is_better),
    }
    if metric.range:
        low, high = metric.range
        config |= {
            "metric_unit": "proportion",
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        }
    if result.result.judges:
        names: list[str] = []
        for jury in sorted(result.result.judges):
            names += jury.split("+")
        config["llm_scoring"] = {
            "judges": [{"model_info": _model(name)} for name in names],
            "input_prompt": f"See {benchmark.url}",
        }
    return {
        "evaluation_result_id": f"{result.name}/{metric.name}",
        "evaluation_name": result.name,
        "source_data": _source(result),
        "metric_config": config,
        "score_details": _score(result, metric, score),
        "generation_config": {
            "generation_args": {
                "temperature": adapter.get("temperature", 0.0),
                "max_tokens": result.task.budget(result.entry.settings),
            },
            "additional_details": {
                "run_entry": result.entry.description,
                "repeats": str(adapter.get("num_trials", 1)),
            },
        },
    }


def _source(result: TaskResult) -> dict[str, Any]:
    """Return where the questions are from. Those of our generator have no address."""
    if not result.result.is_generated:
        return {
            "dataset_name": result.name,
            "source_type": "url",
            "url": [result.entry.benchmark.url],
        }
    return {
        "dataset_name": f"{result.name}, generated",
        "source_type": "other",
        "additional_details": {"source": result.questions},
    }


def _score(result: TaskResult, metric: Metric, score: Statistic) -> dict[str, Any]:
    """Return a score with its interval, and the number of requests without an answer. These are not in the score.

    The details of the headline have its bounds because of cut answers, and its value without known errors.
    """
    interval = score.interval
    if interval.n:
        uncertainty: dict[str, Any] = {"num_samples": interval.n}
    else:
        uncertainty = {}
    if not math.isnan(score.error):
        uncertainty["standard_error"] = {"value": score.error, "method": "clustered"}
    if not math.isnan(interval.low):
        ends = {"lower": interval.low, "upper": interval.high}
        uncertainty["confidence_interval"] = {
            **ends,
            "confidence_level": LEVEL,
            "method": "wilson or student",
        }
    details = {
        "requests_without_answer": str(result.result.failed),
        "examples": str(result.num_examples),
    }
    if result.caveats:
        details["not_comparable"] = result.caveats
        details["not_comparable_because"] = "; ".join(describe(result.result.caveats))
    if metric.name == MAIN_METRIC:
        numbers = {
            **score_numbers(result.result),
            "unread": unread_share(result.result),
        }
        for name, value in numbers.items():
            if value is not None:
                details[name] = f"{value:.6g}"
    return {
        "score": interval.mean,
        "details": details,
        "uncertainty": uncertainty,
    }


def _sample(
    identity: str,
    result: TaskResult,
    asked: Record,
    row: Score,
    score: float,
) -> dict[str, Any]:
    prompt = asked.prompt
    references = asked.references
    text = asked.text
    source = {
        "source": "output.raw",
        "extracted_value": text,
        "extraction_method": "custom",
    }
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": identity,
        "model_id": result.result.model,
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
                **source,
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": score, "is_correct": score == 1.0},
        "metadata": {
            "repeat": str(row.repeat + 1),
            **({} if row.depth is None else {"depth": str(row.depth)}),
        },
    }


_GENERATED_DATASET = "helm-longctx/generated"
"""Stands in `.eval_results` for the data set of generated questions. No data set of the hub has this name."""

_DATASET = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)")


def write_eval_results(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
) -> Iterator[tuple[Path, int]]:
    """Write `MODEL/.eval_results/BENCHMARK.yaml` for each of the user's models, and yield the files.

    Only benchmarks whose data set is on the hub have a file, because an entry names the data set. Scores of generated
    questions name `_GENERATED_DATASET` instead, so the hub lists them on no benchmark's page. Values are in percent,
    as on the hub. `notes` has the interval and the reasons why a score is not comparable.

    Raises:
        InputError: huggingface_hub is too old, or no benchmark of the suite is on the hub.
    """
    require_modules(
        ("huggingface_hub._eval_results",), "eval-results", "huggingface_hub>=1.3"
    )
    from huggingface_hub import (
        EvalResultEntry,
        eval_result_entries_to_yaml,
        parse_eval_result_entries,
    )

    written = 0
    for board in suite.boards:
        matches = map(_DATASET.fullmatch, board.benchmark.data)
        # The user's own questions are on no hub.
        dataset = next(
            (match[1] for match in matches if match and not board.folder), ""
        )
        for model in board.own_models if dataset else []:
            entries = []
            for length, task in product(board.lengths, board.benchmark.tasks):
                result = board.score(model, task.name, length)
                if result is None:
                    continue
                assert result.run is not None
                interval = result.interval
                made = (result.run.path / STATS).stat().st_mtime
                date = datetime.fromtimestamp(made, timezone.utc)
                ends = format_ends(interval)
                notes = [f"{LEVEL_TEXT} interval {ends}, n={interval.n}"]
                share = unread_share(result)
                if share:
                    notes.append(
                        f"{format_amount(100 * share)} % of the answers unread"
                    )
                if result.is_generated:
                    notes.append(
                        f"questions by {question_source(result, board.benchmark)}"
                    )
                notes += describe(result.caveats)
                task_id = result.task
                if result.length:
                    task_id += f"_{label(result.length)}"
                entries.append(
                    EvalResultEntry(
                        dataset_id=_GENERATED_DATASET
                        if result.is_generated
                        else dataset,
                        task_id=task_id,
                        value=round(100 * interval.mean, 2),
                        date=date.isoformat(timespec="seconds"),
                        notes=f"helm-longctx {VERSION}: {'; '.join(notes)}",
                    )
                )
            rows = eval_result_entries_to_yaml(entries)
            assert parse_eval_result_entries(rows) == entries
            path = (
                folder
                / folder_name(model)
                / ".eval_results"
                / f"{board.file_name}.yaml"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, dump_yaml(rows).encode())
            written += 1
            yield path, len(rows)
    if not written:
        names = ", ".join(board.name for board in suite.boards)
        raise InputError(
            "export: eval-results needs a benchmark whose data set is on the hub, and"
            f" not only {names}"
        )
