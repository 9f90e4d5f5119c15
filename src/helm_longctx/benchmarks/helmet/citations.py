"""Answers with citations: correctness, and whether the cited documents support what an answer says.

Source: princeton-nlp/HELMET at 4526dfb, eval_alce.py, as eval.py calls it (citations on, three at most).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helm_longctx.benchmarks.helmet.scoring import normalize_answer
from helm_longctx.errors import InputError
from helm_longctx.judging.entailment import Entailment, Verdict
from helm_longctx.protocol.task import Record, Scores

MOST_CITATIONS = 3
SHORTEST_SENTENCE = 5
OFFICIAL = ("citation_rec", "citation_prec")
METRICS = (
    *OFFICIAL,
    *(f"{name}_shown" for name in OFFICIAL),
    *(f"judge_{name}" for name in OFFICIAL),
    *(f"judge_{name}_shown" for name in OFFICIAL),
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

Document = Mapping[str, Any]


def score_asqa(record: Record) -> Scores:
    """Of each part of the question, whether a short answer is in the output; and the citations' scores."""
    text = remove_citations(clean_output(record["prediction"]))
    scores: Scores = {"length": len(text.split())}
    if record.get("qa_pairs"):
        said = normalize_answer(text)
        parts = [any(normalize_answer(a) in said for a in pair["short_answers"]) for pair in record["qa_pairs"]]
        scores |= {"str_em": sum(parts) / len(parts), "str_hit": float(all(parts))}
    return {**scores, **_citation_scores(record, scores.get("str_em"))}


def score_qampari(record: Record) -> Scores:
    """The comma-separated answers against the right ones, each of several names; and the citations' scores."""
    text = remove_citations(clean_output(record["prediction"]))
    scores: Scores = {"length": len(text.split())}
    if record.get("answers"):
        listed = [answer for answer in map(normalize_answer, _items(text)) if answer]
        right = [{normalize_answer(name) for name in names} for names in record["answers"]]
        every = set().union(*right)
        hits = sum(not names.isdisjoint(listed) for names in right)
        precision = sum(answer in every for answer in listed) / len(listed) if listed else 0.0
        recall, top5 = hits / len(right), min(5, hits) / min(5, len(right))
        scores |= {
            "num_preds": len(listed),
            "qampari_prec": precision,
            "qampari_rec": recall,
            "qampari_rec_top5": top5,
            "qampari_f1": _harmonic(precision, recall),
            "qampari_f1_top5": _harmonic(precision, top5),
        }
    return {**scores, **_citation_scores(record, scores.get("qampari_rec_top5"))}


def judge_record(record: Record, entailment: Entailment, shown: Callable[[int], bool]) -> dict[str, Any]:
    """What the scores of a judged answer are made from, as plain data.

    Args:
        record: with `docs`, all documents that an answer could cite.
        shown: whether the prompt showed the document of that number, from 0.
    """
    claims = _claims(clean_output(record["prediction"]), record["question"], listed=bool(record.get("answers")))
    official = judge_citations(claims, record["docs"], entailment, lambda number: number < len(record["docs"]))
    honest = judge_citations(claims, record["docs"], entailment, lambda number: number >= 0 and shown(number))
    numbers = [number for claim in claims for number in claim.cited]
    return {
        "judge": entailment.name,
        "official": entailment.official,
        "failed": official.failed or honest.failed,
        "recall": official.recall,
        "precision": official.precision,
        "recall_shown": honest.recall,
        "precision_shown": honest.precision,
        "hidden": sum(not (number >= 0 and shown(number)) for number in numbers),
    }


@dataclass(frozen=True)
class Claim:
    """A sentence, or a listed answer with its question.

    Args:
        text: without citations.
        cited: numbers of documents, from 0; `[0]` is -1, the last document.
    """

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True)
class Citations:
    """How an answer's citations support it, 0…1; None where there is nothing to judge, or a verdict is missing."""

    recall: float | None = None
    precision: float | None = None
    failed: bool = False


def judge_citations(
    claims: Sequence[Claim], documents: Sequence[Document], entailment: Entailment, citable: Callable[[int], bool]
) -> Citations:
    """Recall and precision of citations (compute_autoais).

    A claim is supported if the documents that it cites entail it together. A citation counts if its claim is supported
    and either the document alone entails it or the others do not. The judge is asked in three rounds, so that it can
    work in batches.

    Args:
        citable: whether a number can be cited. A claim that cites another is unsupported; its citations do not count.
    """
    if not claims:
        return Citations()
    valid = [claim for claim in claims if claim.cited and all(map(citable, claim.cited))]
    used = [(claim.text, claim.cited[:MOST_CITATIONS]) for claim in valid]
    together = _ask(entailment, documents, used)
    several = [pair for pair, supported in zip(used, together, strict=True) if supported and len(pair[1]) > 1]
    single = [(text, (number,)) for text, cited in several for number in cited]
    alone = _ask(entailment, documents, single)
    doubtful = [(text, cited, n) for text, cited in several for n in cited]
    others = [
        (t, _without(cited, n)) for (t, cited, n), verdict in zip(doubtful, alone, strict=True) if verdict is False
    ]
    without = _ask(entailment, documents, others)
    if None in (*together, *alone, *without):
        return Citations(failed=True)
    # One citation of a supported claim counts; of several those that are enough alone, or without which it fails.
    needed = sum(1 for (_, cited), supported in zip(used, together, strict=True) if supported and len(cited) == 1)
    needed += sum(map(bool, alone)) + sum(not verdict for verdict in without)
    total = sum(len(cited) for _, cited in used)
    return Citations(sum(map(bool, together)) / len(claims), needed / total if total else 0.0)


def clean_output(text: str) -> str:
    """On one line, without an end-of-turn mark."""
    return re.sub(r"\n+", " ", text).replace("<|im_end|>", "")


def remove_citations(text: str) -> str:
    """Without `[12]`, and without every other `]` and ` |`."""
    return re.sub(r"\[\d+", "", re.sub(r" \[\d+", "", text)).replace(" |", "").replace("]", "")


def split_sentences(text: str) -> list[str]:
    """Sentences by NLTK.

    Raises:
        InputError: its data is not installed.
    """
    from nltk import sent_tokenize

    try:
        sentences: list[str] = sent_tokenize(text)
    except LookupError as error:
        raise InputError("NLTK's punkt_tab is missing; get it with: python -m nltk.downloader punkt_tab") from error
    return sentences


def _claims(output: str, question: str, listed: bool) -> list[Claim]:
    if listed:
        sentences = [f"{question} {item.strip()}" for item in _items(output)]
    else:
        sentences = [s for s in split_sentences(output) if len(s.strip()) >= SHORTEST_SENTENCE]
    return [
        Claim(remove_citations(s).strip(), tuple(int(mark[1:]) - 1 for mark in re.findall(r"\[\d+", s)))
        for s in sentences
    ]


def _items(text: str) -> list[str]:
    return text.rstrip().rstrip(".").rstrip(",").split(",")


def _ask(
    entailment: Entailment, documents: Sequence[Document], asked: Sequence[tuple[str, tuple[int, ...]]]
) -> list[Verdict]:
    pairs = [("\n".join(_passage(documents[number]) for number in cited), text) for text, cited in asked]
    return entailment.entails(pairs) if pairs else []


def _passage(document: Document) -> str:
    return f"Title: {document['title']}\n{document['sent'] if 'sent' in document else document['text']}"


def _without(cited: tuple[int, ...], number: int) -> tuple[int, ...]:
    place = cited.index(number)
    return cited[:place] + cited[place + 1 :]


def _harmonic(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one + other else 0.0


def _citation_scores(record: Record, correct: float | None) -> Scores:
    """By what the judge found: the official names are the official judge's alone."""
    judged = record.get("citations")
    if not judged or "judge" not in judged:
        return {}
    prefix = "" if judged["official"] else "judge_"
    found = {
        f"{prefix}citation_{short}{suffix}": judged[f"{name}{suffix}"]
        for short, name in (("rec", "recall"), ("prec", "precision"))
        for suffix in ("", "_shown")
        if judged.get(f"{name}{suffix}") is not None
    }
    parts = [correct, *(found.get(f"{prefix}{name}") for name in OFFICIAL)]
    known = [part for part in parts if part is not None]
    mean = {"judge_score": sum(known) / len(known)} if prefix and len(known) == len(parts) else {}
    return {**found, **mean, "hidden_citations": judged["hidden"]}
