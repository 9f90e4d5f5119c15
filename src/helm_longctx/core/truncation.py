"""Fitting a prompt into its length and the deployment's window, by the task's rule.

HELMET cuts the end of the context, LV-Eval the middle of the prompt.

Source: princeton-nlp/HELMET at 4526dfb, model_utils.py tokenize (local models) and OpenAIModel.prepare_inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from helm.benchmark.model_deployment_registry import ModelDeployment, get_model_deployment
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, get_tokenizer_config
from helm.common.object_spec import get_class_by_name

from helm_longctx.core.middle import RESERVED, Cut, middle_cutter
from helm_longctx.core.style import Form
from helm_longctx.errors import InputError

CHAT_BUFFER = 100
"""Tokens left free for what a chat API puts around a user turn (HELMET model_utils.py, buffer)."""

# A byte-level tokenizer gives no more tokens than bytes, but for a few special ones at the ends.
_SPECIAL_TOKENS = 8


@dataclass(frozen=True)
class CutTokenizer:
    """What truncation needs of a tokenizer.

    Args:
        count: tokens of a prompt, with the special ones that the model gets.
        drop_end: a text without its last n tokens.
        drop_middle: a text in at most n tokens of its start and end, and whether it was cut.
    """

    count: Callable[[str], int]
    drop_end: Callable[[str, int], str]
    drop_middle: Cut


@dataclass(frozen=True)
class Truncator:
    """Cuts prompts for one deployment.

    Args:
        window: the deployment's window in tokens, output included; None if it gives none, and then nothing is cut.
        tokenizer: makes the tokenizer when the first prompt could be too long.
    """

    window: int | None
    tokenizer: Callable[[], CutTokenizer]

    @staticmethod
    def for_deployment(name: str) -> Truncator:
        """By the limits and the tokenizer of a HELM deployment."""
        deployment = get_model_deployment(name)
        limits = (
            deployment.max_sequence_length,
            deployment.max_request_length,
            deployment.max_sequence_and_generated_tokens_length,
        )
        known = [limit for limit in limits if limit is not None]
        window = min(known) if known and deployment.tokenizer_name else None
        return Truncator(window, cache(lambda: _cut_tokenizer(deployment)))

    def fit(self, prompt: str, extra: Mapping[str, Any], max_tokens: int, form: Form) -> tuple[str, bool]:
        """The prompt, its context cut at the end if it is too long, and whether it was cut.

        Args:
            extra: the instance's `extra_data`: `length`, `context_span`, and `thinking_tokens`, by which a thinking
                model's output may exceed the length (HELMET eval.py:69).
            max_tokens: the output budget, which the length includes.

        Raises:
            InputError: the window leaves no room, or the deployment's tokenizer cannot be used for cutting.
        """
        if self.window is None:
            return prompt, False
        if extra.get("cut") == "middle":
            return self._without_middle(prompt, max_tokens)
        length = extra["length"] + extra.get("thinking_tokens", 0)
        limit = min(self.window, length) - max_tokens - (CHAT_BUFFER if form == "chat" else 0)
        if limit <= 0:
            raise InputError(f"a window of {self.window} tokens leaves no room beside max_tokens={max_tokens}")
        if len(prompt) < limit and len(prompt.encode()) + _SPECIAL_TOKENS <= limit:
            return prompt, False
        tokenizer = self.tokenizer()
        excess = tokenizer.count(prompt) - limit
        if excess <= 0:
            return prompt, False
        start, end = extra["context_span"]
        return prompt[:start] + tokenizer.drop_end(prompt[start:end], excess) + prompt[end:], True

    def _without_middle(self, prompt: str, max_tokens: int) -> tuple[str, bool]:
        assert self.window is not None
        limit = self.window - max(RESERVED, max_tokens + CHAT_BUFFER)
        if len(prompt) < limit and len(prompt.encode()) + _SPECIAL_TOKENS <= limit:
            return prompt, False
        return self.tokenizer().drop_middle(prompt, limit)


def _cut_tokenizer(deployment: ModelDeployment) -> CutTokenizer:
    assert deployment.tokenizer_name
    config = get_tokenizer_config(deployment.tokenizer_name)
    kind = config.tokenizer_spec.class_name if config else "none"
    if config and kind in _KINDS:
        return _KINDS[kind](config)
    raise InputError(
        f"deployment {deployment.name!r} has tokenizer {deployment.tokenizer_name!r} ({kind}), by which prompts cannot"
        f" be cut; allowed: {', '.join(_KINDS)}, or a deployment without tokenizer_name, which is never cut"
    )


def _hugging_face(config: TokenizerConfig) -> CutTokenizer:
    spec = config.tokenizer_spec
    arguments = {"pretrained_model_name_or_path": config.name, **spec.args}
    wrapped = get_class_by_name(spec.class_name).get_tokenizer(helm_tokenizer_name=config.name, **arguments)

    def count(text: str) -> int:
        with wrapped as tokenizer:
            return len(tokenizer(text)["input_ids"])

    def drop_end(text: str, tokens: int) -> str:
        with wrapped as tokenizer:
            offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        return text[: offsets[-tokens][0]] if tokens <= len(offsets) else ""

    # Without HELM's lock, which would make threads wait for each other: this tokenizer's settings never change.
    with wrapped as shared:
        return CutTokenizer(count, drop_end, middle_cutter(shared))


def _tiktoken(config: TokenizerConfig) -> CutTokenizer:
    import tiktoken

    encoding = tiktoken.get_encoding(config.name.split("/")[-1])

    def drop_end(text: str, tokens: int) -> str:
        return str(encoding.decode(encoding.encode(text, disallowed_special=())[:-tokens]))

    def count(text: str) -> int:
        return len(encoding.encode(text, disallowed_special=()))

    return CutTokenizer(count, drop_end, middle_cutter(encoding))


_KINDS: Mapping[str, Callable[[TokenizerConfig], CutTokenizer]] = {
    "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer": _hugging_face,
    "helm.tokenizers.tiktoken_tokenizer.TiktokenTokenizer": _tiktoken,
}
