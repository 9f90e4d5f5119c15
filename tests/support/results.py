"""Results of models on fabricated questions."""

from __future__ import annotations

from collections.abc import Callable

from helm_longctx.results.reading import Result, interval_of
from helm_longctx.runs.shown_models import ShownModel
from tests.support.scores import make_score

DEPTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def result(
    model: str,
    task: str,
    score: Callable[[int, float], float | None],
    questions: int = 30,
    length: int = 8192,
) -> Result:
    """A model's scores on questions at six depths; a question without a score has failed."""
    rows = tuple(
        make_score(
            score(question, depth),
            f"{task}-{6 * question + index}",
            run=f"run-{model}",
            entry="helmet_rag",
            task=task,
            length=length,
            group=f"{task}: {question}",
            depth=depth,
        )
        for question in range(questions)
        for index, depth in enumerate(DEPTHS)
    )
    return Result(
        "helmet",
        "helmet_rag",
        task,
        ShownModel(model),
        length,
        "full",
        interval_of(rows),
        answers=rows,
    )
