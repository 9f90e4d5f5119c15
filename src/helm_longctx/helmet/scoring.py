"""HELMET's metrics: pure functions that equal the official post-processing on any output.

Source: princeton-nlp/HELMET at 4526dfb, utils.py and the `post_process` functions of data.py.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from helm_longctx.core.task import Record, Scores

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


def score_json_kv(record: Record) -> Scores:
    """The better of the whole output and the line after `Corresponding value:`, metric by metric."""
    return _best_of_raw_and_parsed(record, "corresponding value:")


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


def _best_of_raw_and_parsed(record: Record, prefix: str) -> Scores:
    raw = answer_metrics(record["prediction"], record["references"])
    parsed = answer_metrics(parse_output(record["prediction"], prefix), record["references"])
    return {name: max(value, parsed[name]) for name, value in raw.items()}


@cache
def _rouge() -> RougeScorer:
    # With it come NLTK and scikit-learn, a second that the table's readers need not wait.
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL", "rougeLsum"], use_stemmer=True)
