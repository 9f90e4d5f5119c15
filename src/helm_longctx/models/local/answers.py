"""The text of an answer from the tokens of a local model, with its reasoning apart.

Many tokenizers have the marks around reasoning as special tokens, which decoding usually drops: reasoning and answer
would be one text. Here they stay until the output is split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helm_longctx.tasks.reasoning import (
    TABLE,
    may_contain_reasoning,
    special_marks,
    split_reasoning,
)

_TAIL = 64
"""Tokens at the end of a prompt in which an opening mark is looked for."""


@dataclass(frozen=True)
class _LocalAnswer:
    """What a local model has written.

    Args:
        text: the answer; the whole output if it has no reasoning between marks, or reasoning without an end.
        reasoning: the reasoning, or None if there is none between special tokens.
        is_open: whether the reasoning has no end.
        is_suspected: whether the output begins with a special token that no known model has around its reasoning.
    """

    text: str
    reasoning: str | None = None
    is_open: bool = False
    is_suspected: bool = False


class AnswerDecoder:
    """Decodes the tokens of answers.

    Args:
        tokenizer: a tokenizer of transformers.
    """

    def __init__(self, tokenizer: Any):
        self._names = _find_special_tokens(tokenizer)
        # Engines can have tokenizers of other packages, such as mistral-common's.
        named = []
        for name in ("bos", "eos", "pad", "unk"):
            named.append(getattr(tokenizer, f"{name}_token", None))
        self._plain = {name for name in named if name} - special_marks()

    def decode(
        self,
        tokenizer: Any,
        tokens: Sequence[int],
        prompt: Sequence[int],
    ) -> _LocalAnswer:
        """Return the answer in the tokens of an output.

        Args:
            prompt: the tokens of the prompt. They can end with the opening mark of the reasoning.
        """
        text = tokenizer.decode([*tokens], skip_special_tokens=True)
        opening = self._find_opening(tokenizer, prompt)
        if not opening and self._names.keys().isdisjoint(tokens):
            return _LocalAnswer(text)
        return self._split(tokenizer, tokens, text, opening)

    def read(
        self,
        tokenizer: Any,
        whole: str,
        prompt: Sequence[int],
    ) -> str:
        """Return the text of an output that was decoded with all special tokens, for callers that take only a text.

        The marks around reasoning stay in it, so that whoever scores the text can remove the reasoning.
        """
        opening = self._find_opening(tokenizer, prompt)
        marked = self._without(whole, {*self._names.values()} - special_marks())
        split = split_reasoning(f"{opening}{marked}")
        if split.reasoning is not None and (
            not opening or split.is_open or split.answer
        ):
            return f"{opening}{marked}"
        return self._without(whole, set(self._names.values()))

    def _split(
        self,
        tokenizer: Any,
        tokens: Sequence[int],
        text: str,
        opening: str,
    ) -> _LocalAnswer:
        marks = special_marks()
        marked = self._join(tokenizer, tokens, {*self._names.values()} - marks)
        split = split_reasoning(f"{opening}{marked}")
        if split.is_open:
            return _LocalAnswer(text, split.reasoning, is_open=True)
        if split.reasoning is not None:
            special = set(self._names.values())
            return _LocalAnswer(
                self._without(split.answer, special).strip(),
                self._without(split.reasoning, special).strip(),
            )
        # A chat template can put an end to the reasoning itself, and other special tokens can be unknown marks.
        whole = self._join(tokenizer, tokens, self._plain)
        return _LocalAnswer(text, is_suspected=may_contain_reasoning(whole))

    def _join(
        self,
        tokenizer: Any,
        tokens: Sequence[int],
        dropped: set[str],
    ) -> str:
        kept = []
        for token in tokens:
            if self._names.get(token, "") not in dropped:
                kept.append(token)
        return str(tokenizer.decode(kept, skip_special_tokens=False))

    @staticmethod
    def _without(text: str, names: set[str]) -> str:
        for name in names:
            text = text.replace(name, "")
        return text

    @staticmethod
    def _find_opening(tokenizer: Any, prompt: Sequence[int]) -> str:
        """Return the opening mark at the end of a prompt, or empty if there is none."""
        tail = tokenizer.decode([*prompt[-_TAIL:]], skip_special_tokens=False).rstrip()
        openings = (marks.opening for marks in TABLE if marks.is_prefilled)
        for opening in openings:
            if tail.endswith(opening.rstrip()):
                return opening
        return ""


def _find_special_tokens(tokenizer: Any) -> dict[int, str]:
    """Return the special tokens of a tokenizer by their ids: those that decoding drops."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {}
    for number, token in added.items():
        if token.special:
            special[number] = token.content
    names = tokenizer.convert_ids_to_tokens([*tokenizer.all_special_ids])
    return {**special, **dict(zip(tokenizer.all_special_ids, names, strict=True))}
