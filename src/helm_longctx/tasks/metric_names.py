"""The statistics of a run: their names and meaning, and the scores that each average is made of."""

from functools import cache
from typing import Any, Literal, NamedTuple

from helm_longctx.data.tables import read_table
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.request_settings import LIKELIHOOD, LONGPPL, PERPLEXITY
from helm_longctx.tasks.statistic_names import StatisticName, read_statistic
from helm_longctx.tasks.task import MAIN_METRIC, Task

DEPTHS = (0, 20, 40, 60, 80, 100)
"""Depths, in percent, at which scores are reported. An instance counts at the nearest depth."""


_LOWER_IS_BETTER = {"yes": True, "no": False, "": None}


class _RunStatistic(NamedTuple):
    """What a statistic of runs means.

    Args:
        lower_is_better: None if neither is better.
    """

    title: str
    description: str
    lower_is_better: bool | None
    unit: Literal["share", "tokens", "number", "nats"]


def _read_statistics(file: str) -> dict[str, _RunStatistic]:
    statistics = {}
    for row in read_table(__package__, file):
        statistics[row["name"]] = _RunStatistic(
            title=row["title"],
            description=row["description"],
            lower_is_better=_LOWER_IS_BETTER[row["lower_is_better"]],
            unit=row["unit"],  # type: ignore[arg-type]
        )
    return statistics


CONDITIONS = _read_statistics("conditions.csv")
"""Statistics about a run that are not scores."""

LIKELIHOODS = _read_statistics("likelihoods.csv")
"""Statistics of runs that score given texts."""

MEAN_LOGPROB = "token_logprob"
"""The mean log-probability of a token, in nats."""

ANSWER_LOGPROB = "answer_logprob"
"""The log-probability of a whole answer, in nats. Texts without answers have none."""

KEY_LOGPROB_SUM = "key_logprob_sum"
"""The sum of the log-probabilities of a text's key tokens, in nats."""

KEY_LOGPROB = "key_logprob"
"""The mean log-probability of the key tokens of all texts, in nats. Results have it; files of runs have its parts."""

KEY_TOKENS = "key_tokens"
"""The number of a text's key tokens."""

SCORE_NAMES = {
    "": "score",
    LIKELIHOOD: "likelihood",
    PERPLEXITY: "token probability",
    LONGPPL: "token probability (LongPPL)",
}
"""What the main score of a run is, by the run's `metric`. It is in 0 to 1, so it is not the perplexity itself."""


def window_logprob(end: int) -> str:
    """Return the name of the mean log-probability of a text's tokens in the window that ends before a position."""
    return str(StatisticName(MEAN_LOGPROB, window=end))


MEASURED = (
    *(
        "request_seconds",
        "first_token_seconds",
        "prefill_tokens_per_second",
        "decode_tokens_per_second",
    ),
    "peak_memory",
)
"""Statistics that differ each time that the same answers arrive."""

GENERATED_DATA = "generated_data"
"""The statistic that is 1 for questions that this package made in place of the benchmark's own."""

FAILURES = ("request_too_long", "request_refused", "request_failed")
"""Statistics that count requests without an answer."""


def is_log_probability(name: str) -> bool:
    """Whether a statistic is a log-probability, in nats."""
    return read_statistic(name).metric in LIKELIHOODS


def is_share(benchmark: Benchmark, name: str) -> bool:
    """Whether people read a statistic in percent: scores and shares, but not counts, seconds and dollars."""
    if is_log_probability(name):
        return False
    if name in CONDITIONS:
        return CONDITIONS[name].unit == "share"
    return all(
        metric.range == (0.0, 1.0)
        for metric in benchmark.metrics
        if metric.name == name
    )


def task_score(task: str) -> str:
    """Return the name of a task's score in the statistics of a run with several tasks."""
    return f"{task}_score"


def depth_score(percent: int) -> str:
    """Return the name of the score of the instances whose evidence is at a depth."""
    return str(StatisticName(MAIN_METRIC, depth=percent))


def pass_at(repeats: int) -> str:
    """Return the name of pass@k: the share of questions with at least one success in `repeats` answers."""
    return str(StatisticName("pass", repeats=repeats))


def headline_text(task: Task) -> str:
    """Return the official name of a task's headline metric, e.g. `f1` or `mean of f1, recall`, or why it has none."""
    if not task.headline:
        return f"none: {task.unscored}"
    if len(task.headline) == 1:
        return task.headline[0]
    return f"mean of {', '.join(task.headline)}"


def metric_fields(benchmark: Benchmark) -> list[dict[str, Any]]:
    """Return the schema entries of all statistics that runs of a benchmark can have."""
    headline = (
        "The task's official headline metric; of several tasks the unweighted mean."
    )
    fields = [_field(MAIN_METRIC, "Score", headline, False)]
    for task in benchmark.tasks:
        about = f"{task.title}: {headline_text(task)}."
        field = _field(task_score(task.name), task.title, about, False)
        fields.append({**field, "short_display_name": "Score"})
    for metric in benchmark.metrics:
        fields.append(
            _field(
                metric.name, metric.title, metric.description, metric.lower_is_better
            )
        )
    for depth in DEPTHS:
        about = f"{headline} Evidence at {depth} % of the context."
        field = _field(depth_score(depth), f"Score at depth {depth} %", about, False)
        fields.append({**field, "short_display_name": f"@ {depth} %"})
    for name, of_run in {**LIKELIHOODS, **CONDITIONS}.items():
        fields.append(
            _field(name, of_run.title, of_run.description, of_run.lower_is_better)
        )
    return fields


def _field(
    name: str,
    title: str,
    description: str,
    lower_is_better: bool | None,
) -> dict[str, Any]:
    return {
        "name": name,
        "display_name": title,
        "description": description,
        "lower_is_better": lower_is_better,
    }


@cache
def nearest_depth(depth: float) -> int:
    """Return the depth in percent at which an answer counts."""
    return min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))
