"""HELMET's metrics, as pure functions, and the shapes of the fields of a record that they read besides the usual ones.

They give the official results for any output. Source: princeton-nlp/HELMET at 4526dfb, utils.py and the `post_process`
functions of data.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from helm_longctx.benchmarks.helmet.verdicts import score_answer, score_summary
from helm_longctx.tasks import (
    TEXTS,
    MetricValues,
    ScorerInput,
    Shape,
    are_all,
    is_number,
    is_whole,
)
from helm_longctx.tasks.judge_scores import REPLIES, judge_scores
from helm_longctx.tasks.words import english_words, make_rouge
from helm_longctx.tasks.words import f1 as word_f1

ANSWER_METRICS = (
    "exact_match",
    "f1",
    "substring_exact_match",
    "rougeL_f1",
    "rougeL_recall",
    "rougeLsum_f1",
    "rougeLsum_recall",
)

_ALL_OR_NOTHING = {"yes", "no", "noanswer"}


RANKING_CUTS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
RANKING_METRICS = (
    *(
        f"{name}@{k}"
        for name, k in product(("NDCG", "MAP", "Recall", "P"), RANKING_CUTS)
    ),
    "MRR",
    "num_preds",
)


def score_json_kv(record: ScorerInput) -> MetricValues:
    """Return the better score, for each metric, of the whole output and of the line after `Corresponding value:`."""
    return _best_of_both(record, "corresponding value:")


def score_qa(record: ScorerInput) -> MetricValues:
    """Return, for each metric, the better score of the whole output and the line after `Answer:`."""
    return _best_of_both(record, "Answer:")


def score_narrativeqa(record: ScorerInput) -> MetricValues:
    """Score like `score_qa`, and add the scores from the replies of a `judge` or a `jury`, if the record has them."""
    return {**score_qa(record), **judge_scores(record, "judge_score", score_answer)}


def score_book_summary(record: ScorerInput) -> MetricValues:
    """Score like `score_qa`, and add the scores from the replies of a `judge` or a `jury`, if the record has them."""
    return {**score_qa(record), **_judge_summary(record)}


def score_lexsum(record: ScorerInput) -> MetricValues:
    """Score like `score_book_summary`, with the line after `Summary:` as the answer."""
    return {**_best_of_both(record, "Summary:"), **_judge_summary(record)}


def _judge_summary(record: ScorerInput) -> MetricValues:
    return judge_scores(
        record,
        "judge_f1",
        partial(score_summary, keypoints=record.get("keypoints", ())),
    )


def score_choice(record: ScorerInput) -> MetricValues:
    """Score like `score_qa`, but also accept the letter with the option anywhere in the output."""
    scores = score_qa(record)
    if len(record["references"]) > 1:
        # Only the case is normalized (HELMET data.py:594). The result also replaces the substring match of the letter,
        # which nearly every text contains.
        names_option = record["references"][1].lower() in record["prediction"].lower()
        scores["substring_exact_match"] = float(names_option)
        scores["exact_match"] = max(scores["exact_match"], float(names_option))
    return scores


def can_read_ranking(record: ScorerInput) -> bool:
    """Whether an output has a number, as passages are named."""
    return re.search(r"\d", record["prediction"]) is not None


def score_rerank(record: ScorerInput) -> MetricValues:
    """Score the ranking with trec_eval, rounded to five digits. The record's `qrels` has a grade for each passage id.

    Cuts go up to `passages`: the number of passages of the task's first query in the official code. Without
    this field, they go up to this query's number of passages, but at least to ten.
    """
    from pytrec_eval import RelevanceEvaluator

    ranking = _parse_ranking(record["prediction"])
    qrels = record.get("qrels")
    if not qrels:
        return {}
    # Ten, because the headline is NDCG@10.
    passages = record.get("passages", max(10, len(qrels)))
    cuts = [k for k in RANKING_CUTS if k <= passages]
    lists = ",".join(map(str, cuts))
    measures = set()
    for name in ("ndcg_cut", "map_cut", "recall", "P"):
        measures.add(f"{name}.{lists}")
    # Each query is rounded by itself, because HELMET evaluates one query at a time (data.py:328, utils.py:224).
    evaluator = RelevanceEvaluator(
        {"q": _escape_names(qrels)}, measures | {"recip_rank"}
    )
    (values,) = evaluator.evaluate({"q": _escape_names(ranking)}).values()
    names = {
        "NDCG": "ndcg_cut",
        "MAP": "map_cut",
        "Recall": "recall",
        "P": "P",
    }
    scores = {}
    for name, measure in names.items():
        for k in cuts:
            scores[f"{name}@{k}"] = round(values[f"{measure}_{k}"], 5)
    return {
        **scores,
        "MRR": round(values["recip_rank"], 5),
        "num_preds": len(ranking),
    }


def _escape_names(grades: Mapping[str, int]) -> dict[str, int]:
    """Escape lone surrogates in the ids of passages. At these, trec_eval ends the process with a segmentation fault."""
    escaped = {}
    for name, grade in grades.items():
        escaped[name.encode(errors="backslashreplace").decode()] = grade
    return escaped


def _parse_ranking(output: str) -> dict[str, int]:
    """Parse the ranking `3 > 1 > 2` in an output: passage id to score, the highest first.

    The longest chain in the output counts, measured in characters. Brackets, colons and every "id" are removed first. A
    repeated id keeps its first rank. If there is no number, the whole text is the only id.
    """
    # HELMET utils.py:136. Words such as "did" lose their "id", too. That does not change numbers.
    text = re.sub(r"[\[\]:]", "", output).lower().replace("id", "")
    # Numbers with `>` between them; a number alone is a chain of one (HELMET utils.py:140).
    chains = []
    for match in re.finditer(r"(\d+)(?:\s*>\s*(\d+))*", text):
        chains.append(match[0])
    # The longest text and not the longest list: `100 > 200` beats `1 > 2 > 3` (HELMET utils.py:145).
    if chains:
        ids = max(chains, key=len).split(">")
    else:
        ids = [text]
    if chains:
        ids = [number.strip() for number in ids if number.strip().isdigit()]
    ranking: dict[str, int] = {}
    for rank, number in enumerate(ids):
        # trec_eval sorts by score, so the first one gets the highest.
        ranking.setdefault(number, len(ids) - rank)
    return ranking


def score_icl(record: ScorerInput) -> MetricValues:
    """Score only the text after `label:`."""
    # The whole output does not count here, unlike for most other tasks (HELMET data.py:455).
    return answer_metrics(
        parse_output(record["prediction"], "label:"), record["references"]
    )


def score_ruler(record: ScorerInput) -> MetricValues:
    """Return the share of answers that the output contains, regardless of case."""
    prediction = record["prediction"].lower()
    answers = record["references"]
    # Texts are compared without the normalization of other metrics (HELMET data.py:510).
    if not answers:
        return {}
    return {
        "ruler_recall": sum(answer.lower() in prediction for answer in answers)
        / len(answers)
    }


def answer_metrics(prediction: str, references: Sequence[str]) -> MetricValues:
    """Compute exact match, F1, substring exact match and ROUGE, each for the best reference.

    Without a reference there is no score.
    """
    if not references:
        return {}
    scorer = make_rouge("rougeL", "rougeLsum", stems=True)
    rouge = []
    for reference in references:
        rouge.append(scorer.score(target=reference, prediction=prediction))
    output = normalize_answer(prediction)
    golds = []
    for reference in references:
        golds.append(normalize_answer(reference))
    scores: MetricValues = {
        "exact_match": float(output in golds),
        "f1": max(f1(prediction, reference) for reference in references),
        # A reference that normalization leaves empty, such as "The", matches every text, as in HELMET (utils.py:82).
        "substring_exact_match": float(any(gold in output for gold in golds)),
    }
    kinds = ("rougeL", "rougeLsum")
    for kind in kinds:
        scores[f"{kind}_f1"] = max(score[kind].fmeasure for score in rouge)
    for kind in kinds:
        scores[f"{kind}_recall"] = max(score[kind].recall for score in rouge)
    return scores


def normalize_answer(text: str) -> str:
    """Convert to lower case and remove ASCII punctuation, articles and extra white space."""
    # Punctuation goes before the articles, so "a-the" becomes "athe", and that has no article (HELMET
    # utils.py:40).
    return " ".join(english_words(text))


def f1(prediction: str, reference: str) -> float:
    """Compute token F1; 0 if one side is yes, no or noanswer and the other side differs."""
    output = normalize_answer(prediction)
    gold = normalize_answer(reference)
    # A word in common does not make half an answer where the answer is yes or no (HELMET utils.py:53).
    if output != gold and not _ALL_OR_NOTHING.isdisjoint((output, gold)):
        return 0.0
    return word_f1(output.split(), gold.split())


def parse_output(output: str, prefix: str = "Answer:") -> str:
    """Return the rest of the line after the first `prefix`; without a prefix the first line.

    If the prefix is repeated at the start of the result, it is removed once.
    """
    # `.` ends at a line break, so an answer on the line after the prefix is empty (HELMET utils.py:124).
    match = re.search(f"{prefix}(.*)", output, re.IGNORECASE) or re.match(
        "(.*)", output
    )
    assert match  # the second pattern matches any text
    # Chat models sometimes repeat the prefix (HELMET utils.py:128).
    return re.sub(
        f"^{re.escape(prefix)}", "", match[1].strip(), flags=re.IGNORECASE
    ).strip()


def _best_of_both(record: ScorerInput, prefix: str) -> MetricValues:
    raw = answer_metrics(record["prediction"], record["references"])
    text = parse_output(record["prediction"], prefix)
    if text == record["prediction"]:
        return raw
    parsed = answer_metrics(text, record["references"])
    # Each metric takes its own maximum, so the F1 and the exact match of an answer can come from different texts
    # (HELMET data.py:660).
    best = {}
    for name, value in raw.items():
        best[name] = max(value, parsed[name])
    return best


_HIGHEST_GRADE = 1000
"""trec_eval keeps a table with an entry for each grade; a huge grade would exhaust the memory."""

_CITED = ("recall", "precision", "recall_shown", "precision_shown")


def _are_judged_citations(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    numbers = []
    for name in (*_CITED, "hidden"):
        if value.get(name) is not None:
            numbers.append(value[name])
    whole = isinstance(value.get("official"), bool) and "hidden" in value
    return all(map(is_number, numbers)) and (whole or "judge" not in value)


SUMMARY = {**REPLIES, "keypoints": TEXTS}
RANKING = {
    "qrels": Shape(
        f"an object of grades (whole numbers from 0 to {_HIGHEST_GRADE}) by passage id",
        lambda value: (
            isinstance(value, dict)
            and all(
                is_whole(grade) and 0 <= grade <= _HIGHEST_GRADE
                for grade in value.values()
            )
        ),
    ),
    "passages": Shape("a whole number", is_whole),
}
_CITATIONS = {
    "citations": Shape("the result of a judge of citations", _are_judged_citations)
}
_PAIRS = Shape(
    "a list of objects with 'short_answers', a list of texts",
    are_all(
        lambda pair: isinstance(pair, dict) and TEXTS.fits(pair.get("short_answers"))
    ),
)
CITATIONS = {
    "asqa": {**_CITATIONS, "qa_pairs": _PAIRS},
    "qampari": {
        **_CITATIONS,
        "answers": Shape("a list of lists of texts", are_all(TEXTS.fits)),
    },
}
"""The shapes of the citation tasks, by data set."""
