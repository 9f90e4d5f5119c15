"""HELMET's questions to a judge. The rubrics are read from the official scripts; this package has no copy.

Source: princeton-nlp/HELMET at 4526dfb, scripts/eval_gpt4_longqa.py and scripts/eval_gpt4_summ.py; for sampling
settings also model_utils.py OpenAIModel. We wrote the stories, questions, answers and verdicts in judge_check.jsonl,
with which judges are checked.
"""

import ast
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path

from helm_longctx.benchmarks.helmet.scoring import parse_output
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.helmet.verdicts import (
    PARTS,
    read_answer,
    read_part,
    score_answer,
    score_summary,
)
from helm_longctx.data.fetch import ensure
from helm_longctx.judging.check_items import Check, KnownVerdict
from helm_longctx.judging.judge import JudgeRequest, VerdictFields
from helm_longctx.tasks import DataRoot, InputError, JsonLines, ScorerInput
from helm_longctx.tasks.judge_scores import ANSWER
from helm_longctx.tasks.prompt import fill


@dataclass(frozen=True)
class Rubric:
    """How a task's answers are judged.

    Args:
        prompts: for each part of the judgement, the name of the question's template in the official script.
        max_tokens: most tokens of a reply.
        fields: (scored record) → values for the templates' placeholders.
        needs: the fields that the record must have for this; `rubric` is the script's path.
        read: (part, reply) → the verdict, or None.
    """

    prompts: Mapping[str, str]
    max_tokens: int
    fields: Callable[[ScorerInput], Mapping[str, object]]
    needs: tuple[str, ...]
    read: Callable[[str, str], VerdictFields | None]

    def questions(self, script: Path, record: ScorerInput) -> dict[str, JudgeRequest]:
        """Make the questions about a record, by part.

        Args:
            script: the official script, or a file with the same constants. It is parsed, never executed.

        Raises:
            InputError: the script lacks a template.
        """
        templates = _constants(script)
        fields = self.fields(record)
        if absent := [name for name in self.prompts.values() if name not in templates]:
            raise InputError(
                f"{script}: it assigns no text to {', '.join(absent)}; is it HELMET's script?"
            )
        requests = {}
        for part, name in self.prompts.items():
            requests[part] = JudgeRequest(
                prompt=fill(templates[name], fields),
                parse=partial(self.read, part),
                max_tokens=self.max_tokens,
                # HELMET scripts/eval_gpt4_longqa.py and eval_gpt4_summ.py; top_p is the default of model_utils.py
                # OpenAIModel.
                temperature=0.1,
                top_p=0.9,
                seed=42,
            )
        return requests

    def digest(self, script: Path) -> str:
        """Return the SHA-256 of the templates, in the order of the parts."""
        templates = _constants(script)
        texts = "\0".join(templates.get(name, "") for name in self.prompts.values())
        return hashlib.sha256(texts.encode()).hexdigest()


def _answer(record: ScorerInput) -> dict[str, object]:
    # The answer is put on one line first, so that several lines are judged as a whole (HELMET
    # scripts/eval_gpt4_longqa.py).
    output = parse_output(record["prediction"].replace("\n", " "))
    # The references stay a list: the official prompt contains Python's notation of it.
    return {
        "question": record["question"],
        "correct_answers": record["references"],
        "parsed_output": output,
    }


def _summary_rubric(
    suffix: str,
    expert: Callable[[ScorerInput], str],
    *needs: str,
) -> Rubric:
    def fields(record: ScorerInput) -> dict[str, object]:
        summary = record["prediction"].strip()
        points = enumerate(record["keypoints"], 1)
        keypoints = "\n".join(f"{number}. {point}" for number, point in points)
        # The templates of the three parts call the summary by different names.
        return {
            "text": summary,
            "summary": summary,
            "keypoints": keypoints,
            "expert_summary": expert(record),
        }

    return Rubric(
        prompts={part: f"{part}_prompt{suffix}" for part in PARTS},
        max_tokens=4096,
        fields=fields,
        needs=("rubric", "keypoints", *needs),
        read=read_part,
    )


RUBRICS = {
    "narrativeqa": Rubric(
        {ANSWER: "judge_prompt"},
        2048,
        _answer,
        ("rubric",),
        lambda part, reply: read_answer(reply),
    ),
    "infbench_sum": _summary_rubric("_book", lambda record: record["references"][0]),
    "multi_lexsum": _summary_rubric(
        "", lambda record: record["long_summary"], "long_summary"
    ),
}
"""The rubrics, by task."""


@cache
def _constants(script: Path) -> dict[str, str]:
    """Return the strings that a Python file assigns to names at its top level."""
    try:
        # The file is parsed and not imported, because no downloaded code is executed.
        module = ast.parse(script.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"{script}: HELMET's script cannot be parsed ({type(error).__name__})"
        ) from error
    constants = {}
    for statement in module.body:
        if not isinstance(statement, ast.Assign) or not isinstance(
            statement.value, ast.Constant
        ):
            continue
        value = statement.value.value
        for target in statement.targets:
            if isinstance(value, str) and isinstance(target, ast.Name):
                constants[target.id] = value
    return constants


_ITEMS = Path(
    str(resources.files("helm_longctx.benchmarks.helmet") / "judge_check.jsonl")
)

_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "task": str,
    "kind": str,
    "record": dict,
    "expected": dict,
}


def checks(root: DataRoot) -> list[Check]:
    """Load the set and fill in the official rubrics. They are downloaded if they are missing.

    Raises:
        InputError: the rubrics are missing and the data root is a mirror, or a download fails.
    """
    items = []
    for row in JsonLines(_ITEMS, _COLUMNS):
        items.append(KnownVerdict(**row))
    rubrics = {}
    for item in items:
        rubrics[item.task] = HELMET.task(item.task).judge_sources["rubric"]
    command = "helm-longctx fetch helmet_longqa:length=8k helmet_summ:length=8k"
    ensure(rubrics.values(), root, command)
    checks = []
    for item in items:
        script = root / rubrics[item.task].paths[0]
        requests = RUBRICS[item.task].questions(script, item.record)
        checks.append(
            Check(
                item=item,
                requests=requests,
                score=partial(_SCORERS[item.task], item.record),
            )
        )
    return checks


_SCORERS: dict[str, Callable[[ScorerInput, Mapping[str, str]], float | None]] = {
    "narrativeqa": lambda record, replies: score_answer(replies[ANSWER]).get(
        "judge_score"
    ),
    "infbench_sum": lambda record, replies: score_summary(
        replies, record["keypoints"]
    ).get("judge_f1"),
}
