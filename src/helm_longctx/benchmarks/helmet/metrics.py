"""What HELMET's metrics mean, by their official names."""

from __future__ import annotations

from helm_longctx.benchmarks.helmet.scoring import RANKING_CUTS
from helm_longctx.tasks.benchmark import Metric
from helm_longctx.tasks.judge_scores import SPREAD, STRICT

_RANKINGS = {
    "NDCG": "Normalized discounted cumulative gain of the ranking, by trec_eval.",
    "MAP": "Mean average precision of the ranking, by trec_eval.",
    "Recall": "Share of the relevant passages that the ranking contains, by trec_eval.",
    "P": "Share of the ranking's passages that are relevant, by trec_eval.",
}

METRICS = (
    Metric("exact_match", "Exact match", "Whether the normalized answer equals a reference.", success=True),
    Metric("f1", "F1", "Token F1 with the best reference."),
    Metric(
        "substring_exact_match", "Substring EM", "Whether the normalized output contains a reference.", success=True
    ),
    Metric("rougeL_f1", "ROUGE-L F1", "ROUGE-L F1 with the best reference."),
    Metric("rougeL_recall", "ROUGE-L recall", "ROUGE-L recall with the best reference."),
    Metric("rougeLsum_f1", "ROUGE-Lsum F1", "ROUGE-Lsum F1 with the best reference."),
    Metric("rougeLsum_recall", "ROUGE-Lsum recall", "ROUGE-Lsum recall with the best reference."),
    Metric("ruler_recall", "RULER recall", "Share of the answers that the output contains."),
    Metric("MRR", "MRR", "Reciprocal rank of the first relevant passage."),
    Metric("num_preds", "Items", "Number of items in the answer's list or ranking.", range=None, lower_is_better=None),
    Metric("str_em", "String EM", "Share of the question's parts for which the output contains a short answer."),
    Metric("str_hit", "String hit", "Whether the output contains a short answer for every part.", success=True),
    Metric("length", "Words", "Number of words of the output without its citations.", range=None, lower_is_better=None),
    Metric("qampari_prec", "List precision", "Share of the listed answers that are right."),
    Metric("qampari_rec", "List recall", "Share of the right answers that are listed."),
    Metric(
        "qampari_rec_top5",
        "List recall, top 5",
        "Number of right answers listed, up to five, divided by five, or by all right answers if there are fewer.",
    ),
    Metric("qampari_f1", "List F1", "F1 of the listed answers."),
    Metric("qampari_f1_top5", "List F1, top 5", "F1 of the list precision and the top-5 list recall."),
    Metric(
        "citation_rec", "Citation recall", "Share of sentences that their citations support, by the official judge."
    ),
    Metric("citation_prec", "Citation precision", "Share of citations that are needed, by the official judge."),
    Metric(
        "citation_rec_shown",
        "Citation recall, shown",
        "Citation recall where only documents in the prompt can be cited, by the official judge.",
    ),
    Metric(
        "citation_prec_shown",
        "Citation precision, shown",
        "Citation precision where only documents in the prompt can be cited, by the official judge.",
    ),
    Metric(
        "judge_citation_rec",
        "Citation recall, other judge",
        "Share of sentences that their citations support, by another judge.",
    ),
    Metric(
        "judge_citation_prec",
        "Citation precision, other judge",
        "Share of citations that are needed, by another judge.",
    ),
    Metric(
        "judge_citation_rec_shown",
        "Citation recall, shown, other judge",
        "Citation recall where only documents in the prompt can be cited, by another judge.",
    ),
    Metric(
        "judge_citation_prec_shown",
        "Citation precision, shown, other judge",
        "Citation precision where only documents in the prompt can be cited, by another judge.",
    ),
    Metric(
        "judge_score",
        "Judged score",
        "The score by a judge. With citations, it is the mean of correctness, recall and precision, by another judge.",
    ),
    Metric("judge_f1", "Judged F1", "F1 of the judged recall and precision; 0 if the summary is not fluent."),
    Metric("judge_recall", "Judged recall", "Share of the key points that the summary covers, by a judge."),
    Metric("judge_precision", "Judged precision", "Share of the summary's sentences that are right, by a judge."),
    Metric("judge_fluency", "Judged fluency", "Whether the text is fluent, by a judge."),
    STRICT,
    Metric("judge_f1_strict", "Judged F1, strict", "The judged F1, with 0 for a summary without a verdict."),
    SPREAD,
    Metric(
        "hidden_citations",
        "Hidden citations",
        "Number of citations of documents that the prompt did not contain.",
        range=None,
        lower_is_better=True,
    ),
    *(
        Metric(f"{name}@{cut}", f"{name}@{cut}", f"{about} The ranking is cut at rank {cut}.")
        for name, about in _RANKINGS.items()
        for cut in RANKING_CUTS
    ),
)
