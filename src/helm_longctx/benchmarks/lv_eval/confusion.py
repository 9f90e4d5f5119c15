"""Whether an answer was taken from a confusing fact instead of the evidence.

LV-Eval puts sentences into the context that speak of something like the question, but of another subject ("David
Beckham … physics" where the answer is Ludwig Beethoven). Its data holds these sentences (`confusing_facts`), not the
wrong answer that they suggest, and its code has no metric for them; this one is ours. An answer is confused if

1. at least half of its words stand in the confusing facts, and
2. more of its words stand only there than only in the true answer (first reference and keywords).

Words are distinct, are those that the F1 metric counts, and leave out the metric's uninformative ones and the
question's. No value if the row has no confusing fact, or one that holds every word of the true answer: then words
cannot tell. An answer that says nothing of either (a refusal) is not confused.
"""

from __future__ import annotations

from collections.abc import Iterable

from helm_longctx.benchmarks.lv_eval.scoring import text_of
from helm_longctx.benchmarks.lv_eval.words import STOP_WORDS_EN, STOP_WORDS_ZH, chinese_words, english_words
from helm_longctx.errors import InputError
from helm_longctx.protocol.task import Record, Scores

CONFUSED = "confused"


def confusion(record: Record) -> Scores:
    """`confused`, 1 or 0; empty where it cannot be said.

    Args:
        record: `prediction`, `references`; `confusing_facts` (texts or one text), `language` ("zh", else English),
            `question` and `answer_keywords`, where the row has them.

    Raises:
        InputError: one of them is something else.
    """
    facts = record.get("confusing_facts") or []
    facts = [facts] if isinstance(facts, str) else facts
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        raise InputError("confusing_facts must be text, a list of texts or nothing")
    chinese = record.get("language") == "zh"
    question = _words([text_of(record, "question")], chinese)
    told = _words(facts, chinese) - question
    true = _words([*record["references"][:1], text_of(record, "answer_keywords")], chinese) - question
    if not told or true <= told:
        return {}
    given = _words([record["prediction"]], chinese) - question
    from_facts = 2 * len(given & told) >= len(given)
    return {CONFUSED: float(from_facts and len(given & (told - true)) > len(given & (true - told)))}


def _words(texts: Iterable[str], chinese: bool) -> set[str]:
    words, ignored = (chinese_words, STOP_WORDS_ZH) if chinese else (english_words, STOP_WORDS_EN)
    return {word for text in texts for word in words(text)} - ignored
