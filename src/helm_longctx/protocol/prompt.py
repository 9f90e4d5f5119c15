"""What a model is asked: messages, the start of the answer, and which text may be cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Form = Literal["chat", "completion"]
Message = Mapping[str, str]
"""`role` (system, user or assistant) and `content`."""


@dataclass(frozen=True)
class Prompt:
    """A prompt in both forms that a model can take.

    The chat form is `messages`. The completion form exists for a single user turn: the turn, the separator, the answer
    prefix.

    Args:
        messages: the conversation; the last message is the user's.
        separator: what stands between the user turn and the answer prefix in the completion form.
        answer_prefix: how the answer begins; a completion prompt ends with it.
        context: [start, end) in characters of the text in the last message that may be cut; None if nothing may be.
    """

    messages: Sequence[Message]
    separator: str = ""
    answer_prefix: str = ""
    context: tuple[int, int] | None = None

    @staticmethod
    def of_text(
        text: str, separator: str = "", answer_prefix: str = "", context: tuple[int, int] | None = None
    ) -> Prompt:
        """A prompt of one user turn."""
        return Prompt([{"role": "user", "content": text}], separator, answer_prefix, context)

    def with_system(self, content: str) -> Prompt:
        """The prompt behind a system message."""
        return replace(self, messages=[{"role": "system", "content": content}, *self.messages])

    @property
    def has_one_turn(self) -> bool:
        """Whether the prompt is a user turn alone, which also has a completion form."""
        return len(self.messages) == 1

    @property
    def user_turn(self) -> str:
        """The last message's text."""
        return self.messages[-1]["content"]

    def text(self, form: Form) -> str:
        """The last user turn; in completion form with the answer prefix at its end."""
        return self.user_turn + self.separator + self.answer_prefix if form == "completion" else self.user_turn
