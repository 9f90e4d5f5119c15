"""Language models that judge answers, as HELM runs them: an annotator between the answers and the metric."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from helm.benchmark.adaptation.request_state import RequestState
from helm.clients.auto_client import AutoClient

from helm_longctx.errors import InputError, shorten
from helm_longctx.failures import failure_of
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.metric import scored_record
from helm_longctx.judging.judge import Judge, Question, Reply, check_judges, find_judges
from helm_longctx.judging.jury import ask_all
from helm_longctx.judging.keys.client import UnavailableClient, check_credentials, has_credentials
from helm_longctx.judging.settings import check_settings
from helm_longctx.judging.verdicts import ANSWER
from helm_longctx.protocol.sample import Sample
from helm_longctx.protocol.task import Record
from helm_longctx.redaction.text import redacted

_log = logging.getLogger(__name__)

_UNJUDGED: dict[str, Any] = {"replies": {}, "failed": 1.0}


class AnswerAnnotator(JudgeAnnotator):
    """What one or several language models say of answers. A benchmark says in a subclass what they are asked.

    Args:
        judge: `auto` (the official judge where there is a key for it, else nobody), a HELM deployment, or several
            with `+` between them.
        auto_client: given by HELM.
    """

    name = "jury"
    use_global_metric = True
    """HELM then hands over all answers at once."""
    official: ClassVar[str]
    """The benchmark's own judge, a HELM deployment."""

    def __init__(self, judge: str, auto_client: AutoClient):
        self._named = judge != "auto"
        self._told: set[str] = set()
        names = dict.fromkeys(judge.split("+")) if self._named else _available(self.official, auto_client.credentials)
        self._judges = [_found(name, auto_client) for name in names]

    @abstractmethod
    def questions(self, task: str, record: Record) -> dict[str, Question]:
        """What a judge is asked about an answer, by part; a single part is `ANSWER`. Empty if a task is not judged.

        Args:
            task: its name.
            record: the scored record, with the `question`.

        Raises:
            InputError: the record or the rubric lacks something.
        """

    @abstractmethod
    def digest(self, task: str, record: Record) -> str:
        """SHA-256 of the rubric: runs that were judged by another cannot be compared."""

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Every judge that is named is a deployment, and has a key if it needs one.

        Raises:
            InputError: one is not, or has none; or a setting is wrong.
        """
        check_settings()
        for name in check_judges(judge) if judge != "auto" else []:
            if credentials is not None:
                check_credentials(name, credentials)

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """What the metric reads of one answer; it never raises. Empty if nobody judges."""
        return self._annotations([request_state])[0]

    def annotate_all(self, request_states: list[RequestState]) -> list[dict[str, Any]]:
        """As `annotate`, of every answer, each under the annotator's name."""
        return [{self.name: annotation} for annotation in self._annotations(request_states)]

    def _annotations(self, states: list[RequestState]) -> list[dict[str, Any]]:
        asked = [self._questions(state) for state in states]
        found = ask_all(self._judges, [questions or {} for questions in asked])
        return [
            _UNJUDGED if questions is None else self._annotation(state, replies) if questions else {}
            for state, questions, replies in zip(states, asked, found, strict=True)
        ]

    def _questions(self, state: RequestState) -> dict[str, Question] | None:
        """What to ask about an answer: nothing if it is not judged; None if it should be and cannot."""
        if not (self._judges and is_answered(state)):
            return {}
        try:
            return self.questions(*_judged(state))
        except Exception as error:  # whatever it is, the answers are paid for
            log_once(self._told, state, error)
            return None if self._named else {}

    def _annotation(self, state: RequestState, replies: Mapping[str, Mapping[str, Reply]]) -> dict[str, Any]:
        """What was asked of whom, and what they said, as plain data."""
        texts = {
            judge: parts[ANSWER].text if ANSWER in parts else {part: reply.text for part, reply in parts.items()}
            for judge, parts in replies.items()
        }
        failed = [judge for judge, parts in replies.items() if any(reply.verdict is None for reply in parts.values())]
        errors = {judge: sorted({r.error for r in replies[judge].values() if r.error}) for judge in failed}
        return {
            "replies": texts,
            "verdicts": {judge: {part: r.verdict for part, r in parts.items()} for judge, parts in replies.items()},
            "judges": {judge.name: judge.model for judge in self._judges},
            "rubric": self.digest(*_judged(state)),
            "failed": len(failed) / len(replies),
            **({"errors": errors} if errors else {}),
        }


def is_answered(state: RequestState) -> bool:
    """Whether there is an answer to judge."""
    return state.result is not None and failure_of(state.result) is None


def explain(error: Exception) -> str:
    """Why a judge cannot be had."""
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {shorten(redacted(str(error)))}"


def log_once(told: set[str], state: RequestState, error: Exception) -> None:
    """Log why an answer is not judged, each reason once.

    Args:
        told: reasons that were logged; this one is added.
    """
    what = str(error) if isinstance(error, InputError) else type(error).__name__
    if what not in told:
        _log.error("%s, and maybe others, are not judged: %s", state.instance.id, what)
    told.add(what)


def _judged(state: RequestState) -> tuple[str, Record]:
    """An answer's task, and the record that is scored, with its question."""
    question = Sample.from_json(state.instance.extra_data).question
    return state.instance.sub_split or "", {**scored_record(state), "question": question}


def _available(official: str, credentials: Mapping[str, Any]) -> list[str]:
    """The official judge where there is a key for it, or half of one, which nobody means; else nobody."""
    try:
        if has_credentials(official, credentials):
            return [official]
    except InputError:
        return [official]  # and what is missing is said when it is to be had
    _log.warning("answers are not judged: there is no key for %s; name a judge with judge=", official)
    return []


def _found(name: str, client: AutoClient) -> Judge:
    """A judge, or in its place one that has no answer to anything: the others of its jury have theirs."""
    try:
        return find_judges(name, client)[0]
    except Exception as error:  # clients raise what they like when they are made
        why = explain(error)
        _log.error("answers are not judged by %s: %s", name, why)
        return Judge(name, name, UnavailableClient(why))
