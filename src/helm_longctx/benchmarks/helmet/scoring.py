"""HELMET's metrics: pure functions that equal the official post-processing on any output.

Source: princeton-nlp/HELMET at 4526dfb, utils.py and the `post_process` functions of data.py.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from helm_longctx.benchmarks.helmet.verdicts import score_answer, score_summary
from helm_longctx.judging.verdicts import judge_scores
from helm_longctx.protocol.task import Record, Scores

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

ANSWER_METRICS = (
    "exact_match",
    "f1",
    "substring_exact_match",
    "rougeL_f1",
    "rougeL_recall",
    "rougeLsum_f1",
    "rougeLsum_recall",
)

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_UNGRADED = {"yes", "no", "noanswer"}


RANKING_CUTS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
RANKING_METRICS = (
    *(f"{name}@{k}" for name in ("NDCG", "MAP", "Recall", "P") for k in RANKING_CUTS),
    "MRR",
    "num_preds",
)


def score_json_kv(record: Record) -> Scores:
    """The better of the whole output and the line after `Corresponding value:`, metric by metric."""
    return _best_of_both(record, "corresponding value:")


def score_qa(record: Record) -> Scores:
    """The better of the whole output and the line after `Answer:`, metric by metric (default_post_process)."""
    return _best_of_both(record, "Answer:")


def score_narrativeqa(record: Record) -> Scores:
    """As `score_qa`; with replies of a `judge` or a `jury` also what they are worth."""
    return {**score_qa(record), **judge_scores(record, "judge_score", score_answer)}


def score_book_summary(record: Record) -> Scores:
    """As `score_qa`; with replies of a `judge` or a `jury` about `keypoints` also what they are worth."""
    return {**score_qa(record), **_judge_summary(record)}


def score_lexsum(record: Record) -> Scores:
    """As `score_book_summary`, with the line after `Summary:`."""
    return {**_best_of_both(record, "Summary:"), **_judge_summary(record)}


def _judge_summary(record: Record) -> Scores:
    return judge_scores(record, "judge_f1", partial(score_summary, keypoints=record.get("keypoints", ())))


def score_choice(record: Record) -> Scores:
    """The option's letter as the whole answer, or letter and option anywhere in the output."""
    scores = score_qa(record)
    if len(record["references"]) > 1:
        named = record["references"][1].lower() in record["prediction"].lower()
        scores["substring_exact_match"] = float(named)
        scores["exact_match"] = max(scores["exact_match"], float(named))
    return scores


def score_rerank(record: Record) -> Scores:
    """trec_eval's metrics of the ranking, by the record's `qrels` (passage id to grade), rounded to five digits.

    Cuts go up to the number of `passages` of the task's first query; without it to those of this one, at least ten.
    """
    ranking, qrels = parse_ranking(record["prediction"]), record.get("qrels")
    if not qrels:
        return {}
    passages = record.get("passages", max(10, len(qrels)))
    cuts = [k for k in RANKING_CUTS if k <= passages]
    lists = ",".join(map(str, cuts))
    measures = {f"{name}.{lists}" for name in ("ndcg_cut", "map_cut", "recall", "P")} | {"recip_rank"}
    (found,) = _trec_eval()({"q": qrels}, measures).evaluate({"q": ranking}).values()
    names = {"NDCG": "ndcg_cut", "MAP": "map_cut", "Recall": "recall", "P": "P"}
    at = {f"{name}@{k}": round(found[f"{measure}_{k}"], 5) for name, measure in names.items() for k in cuts}
    return {**at, "MRR": round(found["recip_rank"], 5), "num_preds": len(ranking)}


def parse_ranking(output: str) -> dict[str, int]:
    """Passage ids and how high they stand, from the longest chain `3 > 1 > 2` in the output.

    Longest in characters. Brackets, colons and every "id" are deleted first; an id given twice keeps its first place.
    Without any number the whole text is the one id.
    """
    text = re.sub(r"[\[\]:]", "", output).lower().replace("id", "")
    chains = [match[0] for match in re.finditer(r"(\d+)(?:\s*>\s*(\d+))*", text)]
    ids = max(chains, key=len).split(">") if chains else [text]
    if chains:
        ids = [number.strip() for number in ids if number.strip().isdigit()]
    ranking: dict[str, int] = {}
    for place, number in enumerate(ids):
        ranking.setdefault(number, len(ids) - place)
    return ranking


def score_icl(record: Record) -> Scores:
    """The text after `label:` alone."""
    return answer_metrics(parse_output(record["prediction"], "label:"), record["references"])


def score_ruler(record: Record) -> Scores:
    """The share of answers that occur in the output, in any letter case."""
    prediction, answers = record["prediction"].lower(), record["references"]
    return {"ruler_recall": sum(answer.lower() in prediction for answer in answers) / len(answers)} if answers else {}


def answer_metrics(prediction: str, references: Sequence[str]) -> Scores:
    """Exact match, F1, substring exact match and ROUGE, each the best over the references.

    Without a reference there is no score.
    """
    if not references:
        return {}
    rouge = [_rouge().score(target=reference, prediction=prediction) for reference in references]
    return {
        "exact_match": float(any(normalize_answer(prediction) == normalize_answer(r) for r in references)),
        "f1": max(f1(prediction, reference) for reference in references),
        "substring_exact_match": float(any(normalize_answer(r) in normalize_answer(prediction) for r in references)),
        **{f"{kind}_f1": max(score[kind].fmeasure for score in rouge) for kind in ("rougeL", "rougeLsum")},
        **{f"{kind}_recall": max(score[kind].recall for score in rouge) for kind in ("rougeL", "rougeLsum")},
    }


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1(prediction: str, reference: str) -> float:
    """Token F1; 0 if either side is yes, no or noanswer and the other is not the same."""
    given, gold = normalize_answer(prediction), normalize_answer(reference)
    if given != gold and not _UNGRADED.isdisjoint((given, gold)):
        return 0.0
    given_tokens, gold_tokens = given.split(), gold.split()
    shared = sum((Counter(given_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(given_tokens), shared / len(gold_tokens)
    return (2 * precision * recall) / (precision + recall)


def parse_output(output: str, prefix: str = "Answer:") -> str:
    """The rest of the line after the first `prefix`, else the first line; a repeated prefix is dropped once."""
    match = re.search(f"{prefix}(.*)", output, re.IGNORECASE) or re.match("(.*)", output)
    assert match  # the second pattern matches any text
    return re.sub(f"^{re.escape(prefix)}", "", match[1].strip(), flags=re.IGNORECASE).strip()


def _best_of_both(record: Record, prefix: str) -> Scores:
    raw = answer_metrics(record["prediction"], record["references"])
    parsed = answer_metrics(parse_output(record["prediction"], prefix), record["references"])
    return {name: max(value, parsed[name]) for name, value in raw.items()}


@cache
def _trec_eval() -> Any:
    from pytrec_eval import RelevanceEvaluator

    return RelevanceEvaluator


@cache
def _rouge() -> RougeScorer:
    # With it come NLTK and scikit-learn, a second that the table's readers need not wait.
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL", "rougeLsum"], use_stemmer=True)
