"""The set with which judges are checked: answers and summaries with known verdicts, judged by HELMET's rubrics.

We wrote the stories, questions, answers and verdicts in judge_check.jsonl.
"""

from collections.abc import Mapping
from functools import partial
from importlib import resources
from pathlib import Path

from helm_longctx.benchmarks.helmet.rubrics import RUBRICS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.helmet.verdicts import score_answer, score_summary
from helm_longctx.data.fetch import ensure
from helm_longctx.data.jsonl import JsonLines
from helm_longctx.data.root import DataRoot
from helm_longctx.judging.check_items import Check, Item
from helm_longctx.tasks.judge_scores import ANSWER
from helm_longctx.tasks.task import Record

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
    return [_check(item, root / rubrics[item.task].paths[0]) for item in items]


def _check(item: Item, rubric: Path) -> Check:
    return Check(item, RUBRICS[item.task].questions(rubric, item.record), partial(_SCORERS[item.task], item.record))


def _answer(record: Record, replies: Mapping[str, str]) -> float | None:
    return score_answer(replies[ANSWER]).get("judge_score")


def _summary(record: Record, replies: Mapping[str, str]) -> float | None:
    return score_summary(replies, record["keypoints"]).get("judge_f1")


_SCORERS = {"narrativeqa": _answer, "infbench_sum": _summary}
