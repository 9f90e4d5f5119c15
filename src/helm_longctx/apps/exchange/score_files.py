"""Writes a suite's scores as the official code of each benchmark does, where the benchmark knows how."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from helm_longctx.apps.exchange.export import folder_name, task_results
from helm_longctx.errors import InputError
from helm_longctx.helm_api import get_class_by_name
from helm_longctx.results.boards import Suite
from helm_longctx.tasks.benchmark import Benchmark


def write_files(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
) -> Iterator[tuple[Path, int]]:
    """Write the files of each model, and yield them with their numbers of scores.

    Runs under other conditions, such as a method or a context that is left out, are in none.

    Raises:
        InputError: the suite has no score of a benchmark whose official code writes such files.
    """
    writers = {}
    for benchmark in benchmarks:
        if benchmark.score_files:
            writers[benchmark.name] = get_class_by_name(benchmark.score_files)
    scores: dict[tuple[str, str], dict[tuple[str, int], float]] = defaultdict(dict)
    for task_result in task_results(suite.boards, benchmarks):
        result = task_result.result
        is_plain = not result.folder and result.context == "full" and not result.metric
        if result.benchmark not in writers or not is_plain:
            continue
        if result.has_score and result.length:
            of_model = scores[result.benchmark, result.model]
            of_model[result.task, result.length] = 100 * result.interval.mean
    if not scores:
        names = ", ".join(writers)
        raise InputError(f"export: the suite has no score of {names}")
    for (name, model), of_model in scores.items():
        for path in writers[name](of_model, folder / folder_name(model)):
            yield path, len(of_model)
