"""Measures whether an answer comes from a confusing fact instead of the evidence.

LV-Eval adds sentences to the context that resemble the evidence but are about something else ("David Beckham …
physics" where the answer is Ludwig Beethoven). Its data contains these sentences (`confusing_facts`), but not the wrong
answers that they suggest, and its code has no metric for them. This metric is ours. An answer is confused if

1. at least half of its words occur in the confusing facts, and
2. more of its words occur only there than only in the true answer (first reference and keywords).

Words are distinct. They are the words that the F1 metric counts, without stop words and the question's words. There is
no value if the row has no confusing fact, or if the facts contain every word of the true answer, because words cannot
tell the two apart then. An answer without words of either, such as a refusal, is not confused.
"""

from collections.abc import Iterable

from helm_longctx.benchmarks.lv_eval.scoring import STOP_WORDS_EN, STOP_WORDS_ZH, field_text
from helm_longctx.errors import InputError
from helm_longctx.tasks.task import Record, Scores
from helm_longctx.tasks.words import chinese_words, english_words

CONFUSED = "confused"


def confusion(record: Record) -> Scores:
    """Compute `confused`, 1 or 0; empty if it cannot be decided.

    Args:
        record: `prediction`, `references`; `confusing_facts` (texts or one text), `language` ("zh", else English);
            and, if the row has them, `question` and `answer_keywords`.

    Raises:
        InputError: a field has the wrong type.
    """
    facts = record.get("confusing_facts") or []
    facts = [facts] if isinstance(facts, str) else facts
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        raise InputError("confusing_facts must be text, a list of texts or nothing")
    chinese = record.get("language") == "zh"
    question = _words([field_text(record, "question")], chinese)
    confusing = _words(facts, chinese) - question
    true = _words([*record["references"][:1], field_text(record, "answer_keywords")], chinese) - question
    if not confusing or true <= confusing:
        return {}
    output = _words([record["prediction"]], chinese) - question
    from_facts = 2 * len(output & confusing) >= len(output)
    return {CONFUSED: float(from_facts and len(output & (confusing - true)) > len(output & (true - confusing)))}


def _words(texts: Iterable[str], chinese: bool) -> set[str]:
    words, ignored = (chinese_words, STOP_WORDS_ZH) if chinese else (english_words, STOP_WORDS_EN)
    return {word for text in texts for word in words(text)} - ignored
