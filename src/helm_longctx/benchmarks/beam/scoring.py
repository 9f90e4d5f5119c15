"""Makes the judge's requests, reads its replies, and compares orders of events.

Source: mohammadtavakoli78/BEAM at 2e44c8d, evaluation.py (`evaluate_*`, `parse_json_response`, `align_with_llm`,
`event_ordering_score`) and report_results.py. A record has the `rubric` and the `ability` of its question, and the
replies of a judge in `judge`, or those of several in `jury`.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from helm_longctx.tasks import InputError, Judgement, Record, Scores
from helm_longctx.tasks.judge_scores import JUDGED, judge_scores

JUDGE = "openai/gpt-4.1-mini-2025-04-14"
"""The official judge: `gpt-4.1-mini`."""

ORDERING = "event_ordering"
ABILITIES = (
    *("abstention", "contradiction_resolution", ORDERING, "information_extraction", "instruction_following"),
    *("knowledge_update", "multi_session_reasoning", "preference_following", "summarization", "temporal_reasoning"),
)
METRICS = (*JUDGED, "rubric_score", "event_f1", "event_score", *(f"judge_score_{each}" for each in ABILITIES))


def judge_prompts(record: Record) -> Mapping[str, str]:
    """Return the judge's requests: for each item of the rubric, and of an order for each line of the answer and item.

    The official code asks whether a line is an item only until one is found. All pairs are asked here, so that the
    requests do not wait for each other.
    """
    if "texts" not in record:
        raise InputError("the record has no texts of BEAM's code: get them with helm-longctx fetch beam")
    _, judge, _, (start, middle, end) = record["texts"]
    rubric, answer = record["rubric"], record["prediction"]
    prompts = {
        name_item(number): judge.replace("<rubric_item>", item).replace("<llm_response>", answer)
        for number, item in enumerate(rubric)
    }
    if record["ability"] == ORDERING:
        lines = _number_lines(answer)
        prompts |= {
            name_pair(lines[line], number): f"{start}{item}{middle}{line}{end}"
            for line in lines
            for number, item in enumerate(rubric)
        }
    return prompts


def name_item(item: int) -> str:
    """Return the name of the request about an item."""
    return f"item {item + 1}"


def name_pair(line: int, item: int) -> str:
    """Return the name of the request whether a line of the answer is an item."""
    return f"line {line + 1}, item {item + 1}"


def _number_lines(answer: str) -> dict[str, int]:
    """Return the distinct lines of an answer, each with its first place."""
    lines = answer.split("\n")
    return {line: number for number, line in reversed([*enumerate(lines)])}


def read_item(reply: Any) -> Any:
    """Return the score in a reply about an item as it stands there; None if there is none in 0…1."""
    if not isinstance(reply, str):
        return None
    text = reply.strip()
    if text.startswith("```") and (block := re.search(r"```(?:json)?\s*(\[.*\]|\{.*\})\s*```", text, re.DOTALL)):
        text = block[1].strip()
    try:
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            part = re.search(r"(\{.*?\}|\[.*?\])", text, re.DOTALL)
            found = json.loads(part[1]) if part else None
        score = found["score"]
        return score if 0 <= float(score) <= 1 else None
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


def is_same(reply: str) -> bool:
    """Return whether a reply says that a line is an item."""
    return "yes" in reply.lower()


def align(rubric: Sequence[str], answer: str, replies: Mapping[str, str]) -> list[str]:
    """Return the lines of an answer, each replaced by the first unused item that the judge takes for the same."""
    numbers, used = _number_lines(answer), set[int]()
    aligned = []
    for line in answer.split("\n"):
        free = (number for number in range(len(rubric)) if number not in used)
        found = next((item for item in free if is_same(replies[name_pair(numbers[line], item)])), None)
        aligned.append(line if found is None else rubric[found])
        used |= set() if found is None else {found}
    return aligned


def score_order(rubric: Sequence[str], lines: Sequence[str]) -> Scores:
    """Return Kendall's tau b of the events' ranks in 0…1, F1 of the events, and the product of both.

    Events of equal rank, as a single one, have no tau, and then only F1 is returned.
    """
    from scipy.stats import kendalltau

    found = len({*rubric} & {*lines})
    wrong, missed = sum(line not in rubric for line in lines), sum(item not in lines for item in rubric)
    precision = found / (found + wrong) if found + wrong else 0
    recall = found / (found + missed) if found + missed else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    union = list(dict.fromkeys([*rubric, *lines]))
    ranks = [{event: place for place, event in enumerate(events, 1)} for events in (rubric, lines)]
    scores = {"event_f1": float(f1)}
    own = [[rank.get(event, len(union) + 1) for event in union] for rank in ranks]
    # SciPy warns about a single event.
    tau = kendalltau(*own)[0] if len(union) > 1 else math.nan
    if math.isnan(tau):
        return scores
    return {"judge_score": float((tau + 1) / 2), "event_score": float((tau + 1) / 2 * f1), **scores}


def score_replies(record: Record, replies: Any) -> Scores:
    """Score the replies of a judge; nothing if one of them is missing or cannot be read."""
    rubric = record["rubric"]
    if not isinstance(replies, Mapping) or not rubric:
        return {}
    items = [read_item(replies.get(name_item(number))) for number in range(len(rubric))]
    if None in items:
        return {}
    mean = {"rubric_score": sum(map(float, items)) / len(items)}
    if record["ability"] != ORDERING:
        try:
            # The official code cuts off the fraction: 0.5 counts as 0, and a text such as "0.5" is an error.
            return {"judge_score": sum(map(int, items)) / len(items), **mean}
        except ValueError:
            return {}
    lines, numbers = _number_lines(record["prediction"]).values(), range(len(rubric))
    if any(not isinstance(replies.get(name_pair(line, item)), str) for line in lines for item in numbers):
        return {}
    return {**score_order(rubric, align(rubric, record["prediction"], replies)), **mean}


def score(record: Record) -> Scores:
    """Return the score, also under the name of the question's ability."""
    if "rubric" not in record or "ability" not in record:
        return {}
    scores = judge_scores(record, "judge_score", lambda replies: score_replies(record, replies))
    own = {f"judge_score_{record['ability']}": scores["judge_score"]} if "judge_score" in scores else {}
    return {**scores, **own}


def read_reply(reply: str, record: Record) -> Scores:
    """Return the score in a reply about an item; empty if there is none."""
    found = read_item(reply)
    return {} if found is None else {"score": float(found)}


JUDGEMENT = Judgement(
    judge_prompts,
    read_reply,
    lambda record: json.dumps([record.get("texts"), record["rubric"], record["ability"]]),
    max_tokens=4096,  # The official code sets no budget.
)
