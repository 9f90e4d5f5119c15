"""GraphWalks' metrics: the overlap of two sets of nodes.

Source: `f1` as NVIDIA-NeMo/Gym at 07d6b0d computes it (resources_servers/graphwalks/app.py); `f1_card` and
`f1_card_2026` as the code on the card of the hub data set openai/graphwalks does, before 2026-02-27 and at be6cc6e.
"""

import re

from helm_longctx.tasks.task import Record, Scores
from helm_longctx.tasks.words import f1

_LIST = re.compile(r"Final Answer:\s*\[(.*)\]")
_CARD_LIST = re.compile(r"Final Answer: ?\[.*\]")
_CARD_2026_LIST = re.compile(r"\[.*\]")


def score(record: Record) -> Scores:
    """Compute F1 of the nodes in the last line that is not empty, and F1 as the two codes of the card do."""
    expected = {*record["references"]}
    answer = _LIST.search(record["prediction"].strip().split("\n")[-1])
    found = _nodes(answer[1]) if answer else set()
    are_empty = answer is not None and not found | expected
    return {
        "f1": 1.0 if are_empty else f1(found, expected),
        "f1_card": _card_f1(record["prediction"], expected),
        "f1_card_2026": _card_2026_f1(record["prediction"], expected),
    }


def _card_2026_f1(prediction: str, expected: set[str]) -> float:
    """Compute F1 as the card's code does since 2026-02-27. The last line counts, even if it is empty."""
    line = prediction.split("\n")[-1]
    answer = _CARD_2026_LIST.search(line) if "Final Answer:" in line else None
    if answer is None:
        return 0.0
    found = _nodes(answer[0].strip("[]"))
    return f1(found, expected) if found | expected else 1.0


def _card_f1(prediction: str, expected: set[str]) -> float:
    """Compute F1 as the card's code did before 2026-02-27.

    It reads the words before the list as a part of the first node, and gives 1 if no node is shared.
    """
    answer = _CARD_LIST.search(prediction.split("\n")[-1])
    if answer is None:
        return 0.0
    found = _nodes(answer[0].strip("[]"))
    return f1(found, expected) if found & expected else 1.0


def _nodes(text: str) -> set[str]:
    return {item.strip() for item in text.split(",") if item.strip()}
