"""The set with which judges are checked: answers and summaries with known verdicts, judged by HELMET's rubrics.

We wrote the stories, questions, answers and verdicts in judge_check.jsonl.
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path

from helm_longctx.benchmarks.helmet.rubrics import RUBRICS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.helmet.verdicts import score_answer, score_summary
from helm_longctx.data.fetch import ensure
from helm_longctx.judging.check_items import Check, Item
from helm_longctx.tasks import DataRoot, JsonLines, Record
from helm_longctx.tasks.judge_scores import ANSWER

ITEMS = Path(str(resources.files("helm_longctx.benchmarks.helmet") / "judge_check.jsonl"))

_COLUMNS: dict[str, type | tuple[type, ...]] = {"id": str, "task": str, "kind": str, "record": dict, "expected": dict}


def checks(root: DataRoot) -> list[Check]:
    """Load the set and fill in the official rubrics, which are downloaded if they are missing.

    Raises:
        InputError: the rubrics are missing and the data root is a mirror, or a download fails.
    """
    items = [Item(**row) for row in JsonLines(ITEMS, _COLUMNS)]
    rubrics = {task: HELMET.task(task).judge_sources["rubric"] for task in dict.fromkeys(item.task for item in items)}
    ensure(rubrics.values(), root, "helm-longctx fetch helmet_longqa:length=8k helmet_summ:length=8k")
    return [
        Check(
            item,
            RUBRICS[item.task].questions(root / rubrics[item.task].paths[0], item.record),
            partial(_SCORERS[item.task], item.record),
        )
        for item in items
    ]


_SCORERS: dict[str, Callable[[Record, Mapping[str, str]], float | None]] = {
    "narrativeqa": lambda record, replies: score_answer(replies[ANSWER]).get("judge_score"),
    "infbench_sum": lambda record, replies: score_summary(replies, record["keypoints"]).get("judge_f1"),
}
