"""What `evaluate` returns: the scores and answers of its runs, as tables."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import escape_invisible
from helm_longctx.results.boards import Board, make_boards
from helm_longctx.results.cells import (
    find_longppl,
    find_perplexity,
    notes,
    score_tables,
)
from helm_longctx.results.comparability import describe
from helm_longctx.results.comparison import SharedTable
from helm_longctx.results.reading import Result
from helm_longctx.tasks.metric_names import SCORE_NAMES, headline_text
from helm_longctx.tasks.registry import BENCHMARKS

if TYPE_CHECKING:
    import pandas as pd

    from helm_longctx.tasks.task import Task


@dataclass(frozen=True)
class EvaluationResult:
    """The results of a call of `evaluate`. Shown in a notebook or a terminal, it is the table of `helm-longctx run`."""

    suite: Path
    results: tuple[Result, ...]

    @cached_property
    def _boards(self) -> list[Board]:
        return make_boards(self.results, BENCHMARKS)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The scores, a row for each model, task or mean, and length.

        Runs with `metric=perplexity` have two rows: `token probability`, in 0 to 1, and `perplexity`, at least 1. Those
        with `metric=longppl` have `LongPPL`, too, if a text has key tokens.
        `score` and its interval, `low` to `high`, are in 0 to 1, and NaN if unknown; `n` counts questions. `mark` is `†`
        if a score is not comparable with published ones, and `reason` says why.
        """
        import pandas as pd

        from helm_longctx.documents.numbers import MARK

        rows = []
        for board in self._boards:
            tasks = {task.name: task for task in board.benchmark.tasks}
            for key, result in board.results.items():
                values = {_name_metric(board, tasks.get(key.part)): result.interval}
                if (perplexity := find_perplexity(result)) is not None:
                    values["perplexity"] = perplexity
                if (longppl := find_longppl(result)) is not None:
                    values["LongPPL"] = longppl
                for metric, interval in values.items():
                    rows.append(
                        {
                            "model": key.model,
                            "benchmark": board.benchmark.name,
                            "task": key.part,
                            "length": key.length,
                            "metric": metric,
                            "score": interval.mean,
                            "low": interval.low,
                            "high": interval.high,
                            "n": interval.n,
                            "mark": MARK if result.caveats else "",
                            "reason": "; ".join(describe(result.caveats)),
                        }
                    )
        columns = (
            "model",
            "benchmark",
            "task",
            "length",
            "metric",
            "score",
            "low",
            "high",
            "n",
            "mark",
            "reason",
        )
        return pd.DataFrame(rows, columns=list(columns))

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers, a row for each question, with depth, prompt tokens, seconds and finish reason."""
        import pandas as pd

        from helm_longctx.apps.exchange.export import answers

        return pd.DataFrame(
            [answer._asdict() for answer in answers(self.results, BENCHMARKS)]
        )

    def compare(self, other: EvaluationResult | None = None) -> pd.DataFrame:
        """Compare the models with each other and with another result's models, on the questions that both answered.

        Returns:
            A row for each pair of models and each part: the paired difference with its interval, in 0 to 1, the
            p-value, and the p-value adjusted by Holm's method. `one_failed` and `other_failed` are the shares of
            questions without an answer, `failed_p` says whether they differ, and `failed_as_wrong` and
            `failed_as_right` are the differences with these questions as wrong and as right.

        Raises:
            InputError: both have a model of the same name, or they have no question in common.
        """
        import pandas as pd

        results = [self.results, other.results if other else ()]
        own, others = ({row.model for row in rows} for rows in results)
        if shared := sorted(own & others):
            raise InputError(
                f"compare: both results have the model {shared[0]!r}; give one of them a name="
            )
        table = SharedTable(
            make_boards(sum(results, ()), BENCHMARKS), sorted(own) + sorted(others)
        )
        rows: list[dict[str, Any]] = []
        for pairing in table.pairings():
            comparison = pairing.comparison
            failures = comparison.failures
            rows.append(
                {
                    "one": pairing.one,
                    "other": pairing.other,
                    "by": pairing.by,
                    "part": pairing.part,
                    "difference": comparison.effect.mean,
                    "low": comparison.effect.low,
                    "high": comparison.effect.high,
                    "n": comparison.effect.n,
                    "wins": comparison.wins,
                    "losses": comparison.losses,
                    "p": comparison.p_value,
                    "adjusted_p": pairing.decision.adjusted,
                    "better": pairing.better,
                    "verdict": pairing.decision.verdict,
                    "one_failed": failures.one.share if failures else 0.0,
                    "other_failed": failures.other.share if failures else 0.0,
                    "failed_p": failures.p_value if failures else math.nan,
                    "failed_as_wrong": (
                        failures.as_wrong if failures else comparison
                    ).effect.mean,
                    "failed_as_right": (
                        failures.as_right if failures else comparison
                    ).effect.mean,
                }
            )
        return pd.DataFrame(rows)

    def compare_groups(
        self,
        groups: Mapping[str, Sequence[str]],
        other: EvaluationResult | None = None,
        run_noise: float | str | None = None,
    ) -> pd.DataFrame:
        """Compare recipes by several training runs of each, over runs and questions.

        Args:
            groups: the names of the models of each recipe, or patterns such as `a-seed*`.
            other: another result with further runs.
            run_noise: an assumption in place of the estimate: the standard deviation between runs in points, or the
                name of the group whose runs give it. Without it, a recipe with one run is not told from another.

        Returns:
            A row for each benchmark and pair of recipes, with the columns of `compare --group --json`, in 0 to 1.

        Raises:
            InputError: a pattern matches no model, or the runs share no question.
        """
        import pandas as pd

        from helm_longctx.results.run_groups import compare_groups, find_groups, to_json

        results = self.results + (other.results if other else ())
        boards = make_boards(results, BENCHMARKS)
        models = list(dict.fromkeys(result.model for result in results))
        run_groups = find_groups(groups, models)
        noise = None if run_noise is None else str(run_noise)
        rows = []
        for board in boards:
            if board.own_models:
                content = to_json(compare_groups([board], run_groups, run_noise=noise))
                rows += [
                    {"benchmark": board.name, **row} for row in content["pairings"]
                ]
        return pd.DataFrame(rows)

    def report(self) -> Path:
        """Write the report of the suite, and return the file of its first page.

        Raises:
            InputError: the extra `report` is not installed.
        """
        from helm_longctx.apps.report.build import write_report
        from helm_longctx.environment import require
        from helm_longctx.results.suite import report_path

        require("report", "report")
        folder = report_path(self.suite.parents[1], self.suite.name)
        return write_report(
            self.suite, BENCHMARKS, folder, "html", published=True, server=""
        )

    def __repr__(self) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            print_blocks(score_tables(self._boards))
            for line in notes(self._boards):
                print(escape_invisible(line))
        return printed.getvalue()

    def _repr_html_(self) -> str:
        return f'<pre style="line-height: normal">{html.escape(repr(self))}</pre>'


def _name_metric(board: Board, task: Task | None) -> str:
    """Return the name of the main score of a task, or of a mean of tasks without one."""
    if board.metric:
        return SCORE_NAMES[board.metric]
    return headline_text(task) if task else "mean"
