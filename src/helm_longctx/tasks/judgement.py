"""How language models judge a task's answers, as data. The annotator that asks them is in `judging/answer_judge.py`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from helm_longctx.data.root import DataRoot

_Scorer = TypeVar("_Scorer")

AS_PUBLISHED = "as_published"
"""The value of `scorer` with which a judge is asked about empty answers, too, as the official code does."""

_SILENCE_IS_WRONG = "silence_is_wrong"
"""The default value: an empty answer gets `Judgement.silence_reply`, and no judge is asked."""


def score_silence(score: _Scorer) -> dict[str, _Scorer]:
    """Return the scorers of a task whose judge is not asked about empty answers by default."""
    return {_SILENCE_IS_WRONG: score, AS_PUBLISHED: score}


ANSWER = "answer"
"""The name of the part about which a judge is asked, if it is asked about one part only."""


@dataclass(frozen=True)
class Judgement:
    """What a judge is asked about an answer, and how its replies are read. The judge is `Task.official_judge`.

    The functions get the scored record, with the field `question`.

    Args:
        prompts: (record) → the prompt, or the prompts by part. Raises an `InputError` if the record is incomplete.
        read: (reply, record) → the grades in a reply by name; none of them if the reply has no verdict.
        rubric: all that decides about grades besides the answer, or (record) → the same. Runs with different rubrics
            cannot be compared.
        temperature, top_p, seed: sampling of the judge. Without a seed, none is sent.
        readings: how many replies are requested until one has a verdict, by default as `JudgeSettings` says.
        counts_silence: whether an answer about which there is nothing to ask has a verdict, too.
        silence_reply: the reply that stands for a judge's about each part of an empty answer, with which it is wrong.
            Judges call some empty answers right. None if the judge is always asked.
        typical_answer: (record, tokens) → a text of about so many tokens about which as much is asked as about a usual
            answer; for estimates. None if any text is one.
        prepare: fetches what the prompts need, before anything is sent.
    """

    prompts: Callable[[Mapping[str, Any]], str | Mapping[str, str]]
    read: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
    rubric: str | Callable[[Mapping[str, Any]], str]
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    readings: int | None = None
    system: str = ""
    counts_silence: bool = False
    silence_reply: str | None = None
    typical_answer: Callable[[Mapping[str, Any], int], str] | None = None
    prepare: Callable[[DataRoot], None] | None = None

    def answers_silence(self, record: Mapping[str, Any]) -> bool:
        """Whether no judge is asked about the answer in a record, because it is empty."""
        is_asked = self.silence_reply is None or record.get("scorer") == AS_PUBLISHED
        return not is_asked and not str(record["prediction"]).strip()
