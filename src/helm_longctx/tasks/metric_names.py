"""The statistics of a run: their names and meaning, and the scores that each average is made of."""

from functools import cache
from typing import Any

from helm_longctx.data.tables import read_table
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.request_settings import LIKELIHOOD, LONGPPL, PERPLEXITY
from helm_longctx.tasks.statistic_names import StatisticName, read_statistic
from helm_longctx.tasks.task import MAIN_METRIC, Task

DEPTHS = (0, 20, 40, 60, 80, 100)
"""Depths, in percent, at which scores are reported. An instance counts at the nearest depth."""

CONDITIONS: dict[str, tuple[str, str, bool | None]] = {
    row["name"]: (
        row["title"],
        row["description"],
        {"yes": True, "no": False}.get(row["lower_is_better"]),
    )
    for row in read_table(__package__, "conditions.csv")
}
"""Statistics about a run that are not scores: from name to title, description, and whether lower is better."""

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

_OF_ANSWERS = {
    f"{name}{end}": (f"{title}{when_title}", f"{about}{when}, in nats.", False)
    for name, title, about in (
        (
            MEAN_LOGPROB,
            "Log-probability of a token",
            "Mean log-probability of the tokens of the best gold answer",
        ),
        (
            ANSWER_LOGPROB,
            "Log-probability of an answer",
            "Log-probability of the most likely gold answer",
        ),
        (
            "any_answer_logprob",
            "Log-probability of any answer",
            "Logarithm of the sum of the gold answers' probabilities",
        ),
    )
    for end, when_title, when in (
        ("", "", " given the whole prompt"),
        (
            "_without_context",
            " without context",
            " given the prompt without its context",
        ),
        (
            "_gain",
            ": gain",
            " given the whole prompt, minus the same without its context",
        ),
    )
}
"""Statistics of runs with `metric=likelihood`; see `CONDITIONS`."""

LIKELIHOODS = {
    **_OF_ANSWERS,
    KEY_LOGPROB_SUM: (
        "Log-probability of key tokens",
        "Sum of the log-probabilities of a text's key tokens (LongPPL), in nats.",
        False,
    ),
}
"""Statistics of runs that score given texts; see `CONDITIONS`."""


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


PLAIN_NUMBERS = (
    *MEASURED,
    "jury_alpha",
    "cost",
    "price_date",
    "num_instances",
    "requests",
    "compactions",
    "fact_compactions",
)
"""Conditions that are neither shares nor numbers of tokens."""


def is_log_probability(name: str) -> bool:
    """Whether a statistic is a log-probability, in nats."""
    return read_statistic(name).metric in LIKELIHOODS


def is_share(benchmark: Benchmark, name: str) -> bool:
    """Whether people read a statistic in percent: scores and shares, but not counts, seconds and dollars."""
    if is_log_probability(name):
        return False
    if name in CONDITIONS:
        return name not in PLAIN_NUMBERS and not name.endswith("_tokens")
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
    of_tasks = []
    for task in benchmark.tasks:
        description = f"{task.title}: {headline_text(task)}."
        of_tasks.append(
            (task_score(task.name), task.title, description, False, "Score")
        )
    of_metrics = []
    for metric in benchmark.metrics:
        about = (metric.name, metric.title, metric.description, metric.lower_is_better)
        of_metrics.append(about)
    of_depths = []
    for depth in DEPTHS:
        title = f"Score at depth {depth} %"
        description = f"{headline} Evidence at {depth} % of the context."
        of_depths.append(
            (depth_score(depth), title, description, False, f"@ {depth} %")
        )
    of_runs = [(name, *about) for name, about in {**LIKELIHOODS, **CONDITIONS}.items()]
    names = (
        "name",
        "display_name",
        "description",
        "lower_is_better",
        "short_display_name",
    )
    rows = [
        (MAIN_METRIC, "Score", headline, False),
        *of_tasks,
        *of_metrics,
        *of_depths,
        *of_runs,
    ]
    return [dict(zip(names, row, strict=False)) for row in rows]


@cache
def nearest_depth(depth: float) -> int:
    """Return the depth in percent at which an answer counts."""
    return min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))
