"""Writes `.eval_results/*.yaml`, with which a model's page on the hub shows scores.

Source: https://huggingface.co/docs/hub/eval-results. The files are made and checked by huggingface_hub.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import product
from pathlib import Path

import yaml

from helm_longctx._version import VERSION
from helm_longctx.apps.exchange.answer_rows import folder_name
from helm_longctx.documents.numbers import range_text
from helm_longctx.environment import require_modules
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Suite, label
from helm_longctx.results.comparability import describe
from helm_longctx.runs.files import STATS
from helm_longctx.tasks.benchmark import Benchmark

_DATASET = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)")


def write_results(suite: Suite, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `MODEL/.eval_results/BENCHMARK.yaml` for each of the user's models, and yield the files.

    Only benchmarks whose data set is on the hub have a file, because an entry names the data set. Values are in
    percent, as on the hub. `notes` has the interval and the reasons why a score is not comparable.

    Raises:
        InputError: huggingface_hub is too old, or no benchmark of the suite is on the hub.
    """
    require_modules(("huggingface_hub._eval_results",), "eval-results", "huggingface_hub>=1.3")
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries

    written = 0
    for board in suite.boards:
        matches = map(_DATASET.fullmatch, board.benchmark.data)
        # The user's own questions are on no hub.
        dataset = next((match[1] for match in matches if match and not board.folder), "")
        for model in board.own_models if dataset else []:
            places = product(board.lengths, (task.name for task in board.benchmark.tasks))
            entries = []
            for result in filter(None, (board.score(model, task, length) for length, task in places)):
                assert result.run is not None
                interval, made = result.interval, (result.run.path / STATS).stat().st_mtime
                ends = f"95 % interval {range_text(interval.low, interval.high)}, n={interval.n}"
                entries.append(
                    EvalResultEntry(
                        dataset_id=dataset,
                        task_id="_".join(filter(None, (result.task, label(result.length) if result.length else ""))),
                        value=round(100 * interval.mean, 2),
                        date=datetime.fromtimestamp(made, timezone.utc).isoformat(timespec="seconds"),
                        notes=f"helm-longctx {VERSION}: {'; '.join([ends, *describe(result.caveats)])}",
                    )
                )
            rows = eval_result_entries_to_yaml(entries)
            assert parse_eval_result_entries(rows) == entries
            path = folder / folder_name(model) / ".eval_results" / f"{board.file_name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(rows, sort_keys=False, allow_unicode=True), encoding="utf-8")
            written += 1
            yield path, len(rows)
    if not written:
        names = ", ".join(board.name for board in suite.boards)
        raise InputError(f"export: eval-results needs a benchmark whose data set is on the hub, and not only {names}")
