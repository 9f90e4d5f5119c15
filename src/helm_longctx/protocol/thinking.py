"""Reasoning in a model's output, which is not scored."""

from __future__ import annotations

THINKING_END = "</think>"


def without_thinking(output: str) -> str:
    """What follows the last `</think>`, stripped; all of an output that has none (HELMET eval.py:105).

    Reasoning that never ends is scored whole, as in the official code. HELM keeps what an API gives as reasoning apart
    (`GeneratedOutput.thinking`), where it is never scored.
    """
    _, end, answer = output.rpartition(THINKING_END)
    return answer.strip() if end else output
