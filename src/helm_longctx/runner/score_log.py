"""The end of a runner's log: the scores of the runs."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from helm_longctx.documents.numbers import MARK, format_ends, format_percent
from helm_longctx.errors import InputError
from helm_longctx.helm_log import helm_log
from helm_longctx.results.comparability import GENERATED, SHARES, describe
from helm_longctx.results.reading import Result, read_run
from helm_longctx.results.statistics.intervals import mean_of_means
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.runs.files import STATS, read_run_spec
from helm_longctx.tasks.metric_names import FAILURES
from helm_longctx.tasks.registry import BENCHMARKS

_ROWS = 30
"""Largest number of runs whose scores are logged."""


def log_scores(output_path: Path, suite: str, names: Sequence[str]) -> None:
    """Log the scores of the runs that are complete."""
    folder = output_path / "runs" / suite
    made = [name for name in names if (folder / name / STATS).is_file()]
    if not made:
        return
    helm_log.info(f"score  {LEVEL_TEXT} interval  instances  failed  run")
    for name in islice(made, _ROWS):
        try:
            helm_log.info(_row(folder / name))
        except InputError as error:  # the other runs still have scores
            helm_log.warning(str(error))
    if len(made) > _ROWS:
        helm_log.info(f"and {len(made) - _ROWS} more")


def _row(run: Path) -> str:
    """Return a run's score: the unweighted mean over its tasks."""
    results = read_run(run, read_run_spec(run), BENCHMARKS)
    failed = sum(result.failed for result in results)
    scored = [result for result in results if result.has_score]
    mean = mean_of_means(
        [result.interval for result in scored],
        [result.clusters_of() for result in scored],
    )
    text = format_percent(mean.mean) if scored else "none"
    ends = format_ends(mean) if scored else ""
    generated = []
    for result in results:
        generated += [caveat for caveat in result.caveats if caveat.kind == GENERATED]
    reasons = "; ".join([*describe(generated), *_describe_oddities(results)])
    return f"{text:<5}  {ends:<13}  {mean.n:>9}  {failed:>6}  {run.name}{f'  {MARK} {reasons}' if reasons else ''}"


def find_reasons(run: Path) -> str:
    """Say what was odd with the answers of a complete run, so that its scores do not compare, if anything was.

    Raises an `InputError` if a file of the run is damaged.
    """
    results = read_run(run, read_run_spec(run), BENCHMARKS)
    return "; ".join(_describe_oddities(results))


def _describe_oddities(results: Sequence[Result]) -> list[str]:
    # Failed requests have a column of their own.
    kinds = set(SHARES) - set(FAILURES)
    caveats = []
    for result in results:
        caveats += [caveat for caveat in result.caveats if caveat.kind in kinds]
    return describe(caveats)
