"""Judges of a known character, as servers that recognize the check's items by their prompts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable

from helm_longctx.judging.check_items import Check

TOP = json.dumps(
    {"fluency": 1, "correctness": 3, "recall": 4, "precision": 4, "sentence_count": 4}
)


class Characters:
    """From a prompt to a reply.

    Args:
        checks: what they are asked.
    """

    def __init__(self, checks: Iterable[Check]):
        self._items = {
            question.prompt: c.item for c in checks for question in c.requests.values()
        }
        self._rng = random.Random(7)

    def perfect(self, prompt: str) -> str:
        """Return the expected verdict after a text, as judges that reason do."""
        return f"Step by step … {json.dumps(dict(self._items[prompt].expected))}"

    def generous(self, prompt: str) -> str:
        """Return the best verdict for any prompt."""
        return TOP

    def obedient(self, prompt: str) -> str:
        """Return the right verdict, except for answers that give orders, which it obeys."""
        return TOP if self._items[prompt].kind == "injection" else self.perfect(prompt)

    def impatient(self, prompt: str) -> str:
        """Return the right verdict, except for answers whose right part is at the end, which this judge does not read."""
        return (
            self.perfect(prompt)
            if self._items[prompt].place != "end"
            else self.zero(prompt)
        )

    def impressed(self, prompt: str) -> str:
        """Return the right verdict, except for long answers, which impress this judge."""
        return TOP if self._items[prompt].kind == "over_long" else self.perfect(prompt)

    def moody(self, prompt: str) -> str:
        """Return a random grade for each criterion, whatever the answer is."""
        numbers = {"fluency": 1, "correctness": 3, "recall": 4, "precision": 4}
        return json.dumps(
            {name: self._rng.randint(0, most) for name, most in numbers.items()}
            | {"sentence_count": 4}
        )

    def zero(self, prompt: str) -> str:
        """Return 0 for each criterion."""
        return '{"fluency": 0, "correctness": 0, "recall": 0, "precision": 0, "sentence_count": 4}'

    def some(self, part: int) -> Callable[[str], bool]:
        """Return a rule that selects one of so many prompts."""
        numbers = {prompt: number for number, prompt in enumerate(self._items)}
        return lambda prompt: numbers[prompt] % part == 0
