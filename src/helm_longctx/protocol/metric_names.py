"""Names of our statistics and what they mean, for the metric, the schema and the documentation."""

from __future__ import annotations

from typing import Any

from helm_longctx.failures import Failure
from helm_longctx.protocol.task import MAIN_METRIC, Benchmark, Task

DEPTHS = (0, 20, 40, 60, 80, 100)
"""Depths in percent by which scores are reported; an instance counts at the nearest."""

_OFFICIAL = {
    "exact_match": ("Exact match", "Whether the normalized answer equals a reference."),
    "f1": ("F1", "Token F1 with the best reference."),
    "substring_exact_match": ("Substring EM", "Whether the normalized output holds a reference."),
    "rougeL_f1": ("ROUGE-L F1", "ROUGE-L F1 with the best reference."),
    "rougeL_recall": ("ROUGE-L recall", "ROUGE-L recall with the best reference."),
    "rougeLsum_f1": ("ROUGE-Lsum F1", "ROUGE-Lsum F1 with the best reference."),
    "rougeLsum_recall": ("ROUGE-Lsum recall", "ROUGE-Lsum recall with the best reference."),
    "ruler_recall": ("RULER recall", "Share of the answers that the output holds."),
    "MRR": ("MRR", "One over the rank of the first relevant passage."),
    "num_preds": ("Items", "Number of items in the answer's list or ranking."),
    "str_em": ("String EM", "Share of the question's parts of which a short answer is in the output."),
    "str_hit": ("String hit", "Whether every part has a short answer in the output."),
    "length": ("Words", "Words of the output without its citations."),
    "qampari_prec": ("List precision", "Share of the listed answers that are right."),
    "qampari_rec": ("List recall", "Share of the right answers that are listed."),
    "qampari_rec_top5": ("List recall, top 5", "Right answers that are listed, of five or of all if there are fewer."),
    "qampari_f1": ("List F1", "F1 of the listed answers."),
    "qampari_f1_top5": ("List F1, top 5", "F1 with the recall of five."),
    "citation_rec": ("Citation recall", "Share of sentences that their citations support, by the official judge."),
    "citation_prec": ("Citation precision", "Share of citations that are needed, by the official judge."),
    "citation_rec_shown": ("Citation recall, shown", "As citation recall; only documents in the prompt can be cited."),
    "citation_prec_shown": ("Citation precision, shown", "As citation precision; only documents in the prompt."),
    "judge_citation_rec": ("Citation recall, other judge", "As citation recall, by another judge."),
    "judge_citation_prec": ("Citation precision, other judge", "As citation precision, by another judge."),
    "judge_citation_rec_shown": ("Citation recall, shown, other judge", "By another judge; documents in the prompt."),
    "judge_citation_prec_shown": (
        "Citation precision, shown, other judge",
        "By another judge; documents in the prompt.",
    ),
    "judge_score": ("Judged score", "The task's score by a judge; of citations by one that is not the official one."),
    "judge_f1": ("Judged F1", "F1 of key points and right sentences, 0 if the summary is not fluent."),
    "judge_recall": ("Judged recall", "Key points that the summary has, by a judge."),
    "judge_precision": ("Judged precision", "Sentences of the summary that are right, by a judge."),
    "judge_fluency": ("Judged fluency", "Whether the text is fluent, by a judge."),
    "judge_score_strict": ("Judged score, strict", "As the judged score; 0 for an answer without a verdict."),
    "judge_f1_strict": ("Judged F1, strict", "As the judged F1; 0 for a summary without a verdict."),
    "judge_spread": ("Judges' spread", "How far apart the judges of a jury are on an answer."),
    "f1_gated": ("Gated F1", "F1 of words, 0 if too few of the answer's keywords are in the output."),
    "f1_before_gate": ("F1 before the gate", "F1 of words, whatever the keywords."),
    "keyword_recall": ("Keyword recall", "Share of the answer's keywords that the output has."),
    "rouge_l": ("ROUGE-L", "ROUGE-L of Chinese words without uninformative ones."),
    "rouge_l_all_words": ("ROUGE-L, all words", "ROUGE-L of all Chinese words."),
    "confused": ("Confused", "Whether the answer comes from a confusing fact rather than from the true one."),
    "hidden_citations": ("Hidden citations", "Citations of documents that the prompt did not show."),
}

FAILURE_METRICS = {Failure.TOO_LONG: "request_too_long", Failure.REFUSED: "request_refused"}
"""Failures that are counted apart: they say something of the model, and come again."""

OTHER_FAILURES = "request_failed"

CONDITIONS = {
    "request_too_long": (
        "Too long",
        "Share of requests that the server refused because they exceed the model's context; not in the means.",
        True,
    ),
    "request_refused": (
        "Refused",
        "Share of requests that a content policy or filter left without an answer; not in the means.",
        True,
    ),
    "request_failed": (
        "Failed requests",
        "Share of requests without an answer for another reason; not in the means.",
        True,
    ),
    "request_cached": ("From the cache", "Share of answers that came from HELM's request cache.", None),
    "judge_failed": (
        "Failed judgements",
        "Share of answers without a judge's verdict, of a jury the share of its verdicts; not in the means.",
        True,
    ),
    "jury_alpha": ("Jury's agreement", "Krippendorff's alpha of the scores that a jury's judges gave.", False),
    "prompt_cut": ("Cut prompts", "Share of prompts whose context was cut to fit.", None),
    "subsampled": (
        "Drawn by -m",
        "Share of instances that HELM's -m drew from more; the benchmark's sample is another.",
        None,
    ),
    "generated_data": ("Generated data", "Share of instances that were generated, not read from official files.", None),
    "depth": ("Depth", "Where the evidence stands in the context, from 0 (start) to 1 (end).", None),
    "input_tokens": ("Input tokens", "Length of the prompt in Llama 2 tokens, or their estimate.", None),
    "prompt_tokens": (
        "Prompt tokens",
        "Tokens of the prompt by the deployment's tokenizer, where it was read whole to see whether it fits.",
        None,
    ),
    "request_seconds": ("Seconds", "Seconds a request.", True),
    "published": ("Published", "1 for a score that its authors published; it was not run here.", None),
    "num_instances": ("Instances", "Number of instances.", None),
}
"""Statistics that say how a run went: name to title, description, whether lower is better."""


def task_score(task: str) -> str:
    """The name of a task's score among a run's statistics, where a run has several tasks."""
    return f"{task}_score"


def depth_score(percent: int) -> str:
    """The name of the score over instances whose evidence stands at a depth."""
    return f"{MAIN_METRIC}_at_depth_{percent}"


def headline_text(task: Task) -> str:
    """What a task's score is, by its official names."""
    return task.headline[0] if len(task.headline) == 1 else f"mean of {', '.join(task.headline)}"


def metric_fields(benchmark: Benchmark) -> list[dict[str, Any]]:
    """A schema entry for every statistic that a benchmark's runs can have."""
    headline = "The task's official headline metric, 0 to 1; of several tasks the unweighted mean."
    official = dict.fromkeys(name for task in benchmark.tasks for name in task.metrics)
    return [
        _field(MAIN_METRIC, "Score", headline, False),
        *(
            _field(task_score(t.name), t.title, f"{t.title}: {headline_text(t)}.", False, "Score")
            for t in benchmark.tasks
        ),
        *(_field(name, *_OFFICIAL.get(name, (name, name)), False) for name in official),
        *(
            _field(depth_score(d), f"Score at depth {d} %", f"{headline} Evidence at {d} % of the context.", False)
            for d in DEPTHS
        ),
        *(_field(name, *about) for name, about in CONDITIONS.items()),
    ]


def _field(name: str, title: str, about: str, lower: bool | None, short: str | None = None) -> dict[str, Any]:
    field = {"name": name, "display_name": title, "description": about, "lower_is_better": lower}
    return {**field, "short_display_name": short} if short else field
