"""Files of a user's own questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.fabricate_words import write

ROW = {
    "context": "The pump came from {Ada}.",
    "question": "Who sent the pump?",
    "answers": ["Ada Ltd", "Ada"],
}
WORDS = 9


def write_questions(folder: Path, *rows: dict[str, Any], distractors: int = 0) -> Path:
    """A folder of questions, with as many distractors of nine words each."""
    write(folder / "questions.jsonl", rows)
    if distractors:
        texts = [
            " ".join(
                f"word{number}x{context_number}" for context_number in range(WORDS)
            )
            for number in range(distractors)
        ]
        write(folder / "distractors.jsonl", [{"text": text} for text in texts])
    return folder
