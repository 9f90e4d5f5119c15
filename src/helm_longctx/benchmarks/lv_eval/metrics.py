"""What LV-Eval's metrics mean, and their ingredients."""

from __future__ import annotations

from helm_longctx.protocol.task import Metric

METRICS = (
    Metric("f1", "F1", "Token F1 with the best reference."),
    Metric("f1_gated", "Gated F1", "F1 of words, 0 if too few of the answer's keywords are in the output."),
    Metric("f1_before_gate", "F1 before the gate", "F1 of words, whatever the keywords."),
    Metric("keyword_recall", "Keyword recall", "Share of the answer's keywords that the output has."),
    Metric("rouge_l", "ROUGE-L", "ROUGE-L of Chinese words without uninformative ones."),
    Metric("rouge_l_all_words", "ROUGE-L, all words", "ROUGE-L of all Chinese words."),
    Metric(
        "confused",
        "Confused",
        "Whether the answer comes from a confusing fact rather than from the true one.",
        lower_is_better=True,
    ),
)
