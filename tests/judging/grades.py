"""A judge that grades by a digest of what it is asked, in the words that our rubrics ask for."""

from __future__ import annotations

import hashlib
import json


def grade(prompt: str) -> str:
    """The same prompt has the same verdict; a little talk stands before it, with an example as judges quote it."""
    number = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    part = prompt.partition("\n")[0].partition("_")[0]
    verdicts = {
        "fluency": {"fluency": int(number % 5 > 0)},
        "recall": {"supported": [1], "recall": number % 4},
        "precision": {"precision": number % 6, "sentence_count": 5 + number % 3},
    }
    verdict = verdicts.get(part, {"fluency": int(number % 5 > 0), "correctness": number % 4})
    return f'As in {{"fluency": 0}} I say:\n{json.dumps(verdict)}'
