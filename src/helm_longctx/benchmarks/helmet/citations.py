"""Scores answers with citations: their correctness, and whether the cited documents support them.

Source: princeton-nlp/HELMET at 4526dfb, eval_alce.py, called by eval.py with citations on and at most three of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from helm_longctx.benchmarks.helmet.scoring import normalize_answer
from helm_longctx.tasks import MetricValues, ScorerInput
from helm_longctx.tasks.sentences import split_sentences

if TYPE_CHECKING:
    from helm_longctx.judging.entailment import EntailmentJudge

_MOST_CITATIONS = 3
_SHORTEST_SENTENCE = 5
OFFICIAL = ("citation_rec", "citation_prec")
METRICS = (
    *(
        f"{by}{name}{of}"
        for by, of, name in product(("", "judge_"), ("", "_shown"), OFFICIAL)
    ),
    "judge_score",
    "hidden_citations",
)
ASQA_METRICS = ("str_em", "str_hit", "length")
QAMPARI_METRICS = (
    "qampari_rec_top5",
    "qampari_rec",
    "qampari_prec",
    "qampari_f1",
    "qampari_f1_top5",
    "num_preds",
    "length",
)

_Document = Mapping[str, Any]


def score_asqa(record: ScorerInput) -> MetricValues:
    """Compute the share of the question's parts with a short answer in the output, and the scores of the citations."""
    # Correctness is measured without citations (HELMET eval_alce.py:525); the judge gets the text with them.
    text = _remove_citations(_clean_output(record["prediction"]))
    scores: MetricValues = {"length": len(text.split())}
    if record.get("qa_pairs"):
        answer = normalize_answer(text)
        parts = []
        for pair in record["qa_pairs"]:
            # A part counts if one of its short answers stands anywhere in the text.
            short_answers = map(normalize_answer, pair["short_answers"])
            parts.append(any(short_answer in answer for short_answer in short_answers))
        scores |= {"str_em": sum(parts) / len(parts), "str_hit": float(all(parts))}
    return {**scores, **_citation_scores(record, scores.get("str_em"))}


def score_qampari(record: ScorerInput) -> MetricValues:
    """Compute precision, recall and F1 of the comma-separated answers, and the scores of the citations.

    Each correct answer has several names.
    """
    text = _remove_citations(_clean_output(record["prediction"]))
    scores: MetricValues = {"length": len(text.split())}
    if record.get("answers"):
        # Only items of which nothing is left are dropped; repeated items count each time (HELMET eval_alce.py:456).
        answers = []
        for answer in map(normalize_answer, _items(text)):
            if answer:
                answers.append(answer)
        correct = []
        for names in record["answers"]:
            correct.append({normalize_answer(name) for name in names})
        all_names = set(chain.from_iterable(correct))
        hits = sum(not names.isdisjoint(answers) for names in correct)
        precision = 0.0
        if answers:
            precision = sum(answer in all_names for answer in answers) / len(answers)
        # Questions have many answers, so the official headline asks for five of them (HELMET eval_alce.py:464).
        recall = hits / len(correct)
        top5 = min(5, hits) / min(5, len(correct))
        scores |= {
            "num_preds": len(answers),
            "qampari_prec": precision,
            "qampari_rec": recall,
            "qampari_rec_top5": top5,
            "qampari_f1": _harmonic(precision, recall),
            "qampari_f1_top5": _harmonic(precision, top5),
        }
    return {**scores, **_citation_scores(record, scores.get("qampari_rec_top5"))}


def judge_record(
    record: ScorerInput,
    entailment: EntailmentJudge,
    is_shown: Callable[[int], bool],
) -> dict[str, Any]:
    """Judge the citations of an answer. The result is JSON data from which the scores are computed.

    Args:
        record: a scored record with `docs`, all documents that an answer can cite.
        is_shown: (number from 0) → whether the prompt contained that document.
    """
    is_listed = bool(record.get("answers"))
    claims = _claims(
        _clean_output(record["prediction"]), record["question"], listed=is_listed
    )
    documents = record["docs"]

    def is_in_file(number: int) -> bool:
        # The official code compares with all 2,000 documents of the file, not with those in the prompt (HELMET
        # eval_alce.py:372). A number below 0 passes, because Python counts it from the end of the list.
        return number < len(documents)

    def is_in_prompt(number: int) -> bool:
        return number >= 0 and is_shown(number)

    official = judge_citations(claims, documents, entailment, is_in_file)
    # The official code also accepts citations of documents that the prompt did not contain, so both are reported.
    shown = judge_citations(claims, documents, entailment, is_in_prompt)
    hidden = 0
    for claim in claims:
        hidden += sum(not is_in_prompt(number) for number in claim.cited)
    return {
        "judge": entailment.name,
        "official": entailment.official,
        "failed": official.failed or shown.failed,
        "recall": official.recall,
        "precision": official.precision,
        "recall_shown": shown.recall,
        "precision_shown": shown.precision,
        "hidden": hidden,
    }


@dataclass(frozen=True)
class Claim:
    """A statement with its citations: a sentence, or the question with one answer of a list.

    Args:
        text: the statement without citations.
        cited: numbers of the cited documents, from 0. The citation `[0]` is -1, in the official code the last document.
    """

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True)
class _Citations:
    """Recall and precision of an answer's citations, 0…1, or None if there is nothing to judge or a verdict is missing."""

    recall: float | None = None
    precision: float | None = None
    failed: bool = False


def judge_citations(
    claims: Sequence[Claim],
    documents: Sequence[_Document],
    entailment: EntailmentJudge,
    citable: Callable[[int], bool],
) -> _Citations:
    """Compute recall and precision of citations (compute_autoais).

    A claim is supported if its cited documents together entail it. A citation of a supported claim is needed if its
    document alone entails the claim, or if the claim's other documents do not. Recall is the share of supported claims,
    precision the share of needed citations. The judge is called three times, so that it can work in batches.

    Args:
        citable: (number) → whether the document can be cited. A claim with any other citation is not supported, and its
            citations are left out of the precision.
    """
    if not claims:
        return _Citations()
    # All citations of a claim are checked, also those after the third (HELMET eval_alce.py:372 and 377).
    valid = []
    for claim in claims:
        if claim.cited and all(map(citable, claim.cited)):
            valid.append(claim)
    used = []
    for claim in valid:
        used.append((claim.text, claim.cited[:_MOST_CITATIONS]))
    together = _ask(entailment, documents, used)
    # Precision is only examined where the documents together support the claim (HELMET eval_alce.py:398).
    several = []
    needed = 0
    for pair, supported in zip(used, together, strict=True):
        if supported and len(pair[1]) > 1:
            several.append(pair)
        # The only citation of a supported claim is needed.
        elif supported and len(pair[1]) == 1:
            needed += 1
    single: list[tuple[str, tuple[int, ...]]] = []
    rest: list[tuple[str, tuple[int, ...]]] = []
    for text, cited in several:
        for number in cited:
            # A document can be cited twice. Only its first citation is removed, as by `list.remove` in HELMET
            # eval_alce.py:409.
            first = cited.index(number)
            single.append((text, (number,)))
            rest.append((text, cited[:first] + cited[first + 1 :]))
    alone = _ask(entailment, documents, single)
    others = []
    for pair, verdict in zip(rest, alone, strict=True):
        if verdict is False:
            others.append(pair)
    without = _ask(entailment, documents, others)
    # A missing verdict is not a "no": the answer then has no score, and the failure is counted.
    if None in (*together, *alone, *without):
        return _Citations(failed=True)
    # Of several citations, those are needed that suffice alone, or without which the others do not suffice.
    needed += sum(map(bool, alone)) + sum(not verdict for verdict in without)
    total = sum(len(cited) for _, cited in used)
    # Recall is over all claims, precision only over the citations of valid ones (HELMET eval_alce.py:378 and 424).
    return _Citations(
        sum(map(bool, together)) / len(claims), needed / total if total else 0.0
    )


def _clean_output(text: str) -> str:
    """Put the text on one line, and remove the end-of-turn mark."""
    return re.sub(r"\n+", " ", text).replace("<|im_end|>", "")


def _remove_citations(text: str) -> str:
    """Remove citations such as `[12]`. As in the official code, all other `]` and ` |` are removed, too."""
    # The brackets are removed in three steps, so that "]" without "[" is removed, too (HELMET utils.py:44).
    return (
        re.sub(r"\[\d+", "", re.sub(r" \[\d+", "", text))
        .replace(" |", "")
        .replace("]", "")
    )


def _claims(output: str, question: str, listed: bool) -> list[Claim]:
    if listed:
        # An item alone is no statement that a document could support (HELMET eval_alce.py:346).
        sentences = []
        for item in _items(output):
            sentences.append(f"{question} {item.strip()}")
    else:
        # NLTK takes "1." for a sentence; the official code drops such short ones (HELMET eval_alce.py:351).
        sentences = []
        for s in split_sentences(output):
            if len(s.strip()) >= _SHORTEST_SENTENCE:
                sentences.append(s)
    claims = []
    for sentence in sentences:
        cited = []
        for mark in re.findall(r"\[\d+", sentence):
            cited.append(int(mark[1:]) - 1)
        claims.append(Claim(_remove_citations(sentence).strip(), tuple(cited)))
    return claims


def _items(text: str) -> list[str]:
    # The ends are stripped in this order, each kind once, as in HELMET eval_alce.py:346.
    return text.rstrip().rstrip(".").rstrip(",").split(",")


def _ask(
    entailment: EntailmentJudge,
    documents: Sequence[_Document],
    asked: Sequence[tuple[str, tuple[int, ...]]],
) -> list[bool | None]:
    def write(document: _Document) -> str:
        if "sent" in document:
            text = document["sent"]
        else:
            text = document["text"]
        return f"Title: {document['title']}\n{text}"

    pairs = []
    for text, cited in asked:
        pairs.append(("\n".join(write(documents[number]) for number in cited), text))
    return entailment.entails(pairs) if pairs else []


def _harmonic(one: float, other: float) -> float:
    if one + other:
        return 2 * one * other / (one + other)
    return 0.0


def _citation_scores(record: ScorerInput, correct: float | None) -> MetricValues:
    """Return the scores from a judge's result. Only the official judge's scores have the official names."""
    result = record.get("citations")
    if not result or "judge" not in result:
        return {}
    # Scores by different judges must not be averaged, so they have different names.
    prefix = "" if result["official"] else "judge_"
    scores: MetricValues = {}
    for short, name in (("rec", "recall"), ("prec", "precision")):
        for suffix in ("", "_shown"):
            value = result.get(f"{name}{suffix}")
            if value is not None:
                scores[f"{prefix}citation_{short}{suffix}"] = value
    parts = [correct, *(scores.get(f"{prefix}{name}") for name in OFFICIAL)]
    present = [part for part in parts if part is not None]
    if prefix and len(present) == len(parts):
        scores["judge_score"] = sum(present) / len(present)
    return {**scores, "hidden_citations": result["hidden"]}
