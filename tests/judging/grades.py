"""A judge that grades by a digest of the prompt, in the format that our rubrics request."""

from __future__ import annotations

import hashlib
import json


def grade(prompt: str) -> str:
    """Return the verdict on a prompt, always the same, after some text with an example such as judges quote."""
    number = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    part = prompt.partition("\n")[0].partition("_")[0]
    verdicts = {
        "fluency": {"fluency": int(number % 5 > 0)},
        "recall": {"supported": [1], "recall": number % 4},
        "precision": {"precision": number % 6, "sentence_count": 5 + number % 3},
    }
    verdict = verdicts.get(
        part, {"fluency": int(number % 5 > 0), "correctness": number % 4}
    )
    return f'As in {{"fluency": 0}} I say:\n{json.dumps(verdict)}'
