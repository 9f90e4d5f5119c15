"""HELMET's judges as HELM annotators, which run between the requests and the metric."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.runner import get_benchmark_output_path
from helm.clients.auto_client import AutoClient

from helm_longctx.benchmarks.helmet import citations
from helm_longctx.benchmarks.helmet.data.alce import all_documents
from helm_longctx.benchmarks.helmet.rubrics import ANSWER, JUDGE, RUBRICS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError, shorten
from helm_longctx.extras import require
from helm_longctx.failures import failure_of
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.metric import scored_record
from helm_longctx.judging.calls import check_settings
from helm_longctx.judging.entailment import EntailmentJudge, find_entailment, is_deployment
from helm_longctx.judging.judge import Judge, JudgeRequest, Reply, find_judges, parse_judges
from helm_longctx.judging.jury import ask_judges
from helm_longctx.judging.keys.client import UnavailableClient, check_credentials, has_credentials
from helm_longctx.protocol.task import Record
from helm_longctx.redaction.text import redact
from helm_longctx.sources.root import DataRoot

_log = logging.getLogger(__name__)

_NO_VERDICT: dict[str, Any] = {"replies": {}, "failed": 1.0}


class RubricAnnotator(JudgeAnnotator):
    """Judges answers and summaries with one or several language models, by HELMET's rubrics.

    Args:
        judge: `auto` (the official judge if there is a key for it, else none), a HELM deployment, or several joined
            by `+`.
        auto_client: passed by HELM.
    """

    name = "jury"
    use_global_metric = True
    """Tells HELM to pass all answers at once, so that the judges are asked in parallel."""

    def __init__(self, judge: str, auto_client: AutoClient):
        self._is_named = judge != "auto"
        self._logged: set[str] = set()
        names = dict.fromkeys(judge.split("+")) if self._is_named else _official(auto_client.credentials)
        self._judges = [_find_judge(name, auto_client) for name in names]

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check that each judge is a deployment with a key, if it needs one.

        Raises:
            InputError: a judge is not a deployment or has no key, or a setting is wrong.
        """
        check_settings()
        for name in parse_judges(judge) if judge != "auto" else []:
            if credentials is not None:
                check_credentials(name, credentials)

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """The annotation of one answer, which the metric reads; empty if there is no judge. It never raises."""
        return self._annotations([request_state])[0]

    def annotate_all(self, request_states: list[RequestState]) -> list[dict[str, Any]]:
        """The annotations of all answers, each under the annotator's name."""
        return [{self.name: annotation} for annotation in self._annotations(request_states)]

    def _annotations(self, states: list[RequestState]) -> list[dict[str, Any]]:
        questions_by_answer = [self._questions(state) for state in states]
        replies_by_answer = ask_judges(self._judges, [questions or {} for questions in questions_by_answer])
        return [
            _NO_VERDICT if questions is None else _annotation(state, self._judges, replies) if questions else {}
            for state, questions, replies in zip(states, questions_by_answer, replies_by_answer, strict=True)
        ]

    def _questions(self, state: RequestState) -> dict[str, JudgeRequest] | None:
        """The questions about an answer: none if it is not judged, None if it cannot be judged although it should."""
        rubric = RUBRICS.get(state.instance.sub_split or "")
        if not (self._judges and rubric and _has_answer(state)):
            return {}
        try:
            record = _record(state)
            if absent := [name for name in rubric.needs if name not in record]:
                raise InputError(f"there is no {' and no '.join(absent)}: get it with helm-longctx fetch")
            return rubric.questions(_rubric_file(state, record), record)
        except Exception as error:  # the answers are paid for, so no error may end the run
            _log_once(self._logged, state, error)
            return None if self._is_named else {}


def _official(credentials: Mapping[str, Any]) -> list[str]:
    """The official judge if there is a key for it, else none.

    An incomplete key is surely a mistake, so the judge is used and its error is reported.
    """
    try:
        if has_credentials(JUDGE, credentials):
            return [JUDGE]
    except InputError:
        return [JUDGE]  # the error about the key is reported when the client is made
    _log.warning("answers are not judged: there is no key for %s; choose a judge with judge=", JUDGE)
    return []


def _find_judge(name: str, client: AutoClient) -> Judge:
    """Find a judge. If that fails, return one that answers nothing, so that the other judges of a jury go on."""
    try:
        return find_judges(name, client)[0]
    except Exception as error:  # the constructors of HELM's clients raise many kinds
        why = _reason(error)
        _log.error("answers are not judged by %s: %s", name, why)
        return Judge(name, name, UnavailableClient(why))


def _reason(error: Exception) -> str:
    """The reason why a judge cannot be used, without secrets."""
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {shorten(redact(str(error)))}"


def _has_answer(state: RequestState) -> bool:
    return state.result is not None and failure_of(state.result) is None


def _log_once(logged: set[str], state: RequestState, error: Exception) -> None:
    what = str(error) if isinstance(error, InputError) else type(error).__name__
    if what not in logged:
        _log.error("%s and perhaps others are not judged: %s", state.instance.id, what)
    logged.add(what)


def _record(state: RequestState) -> Record:
    return {**scored_record(state), "question": (state.instance.extra_data or {}).get("question")}


def _rubric_file(state: RequestState, record: Record) -> Path:
    """The path of the official script: in the present data root, or where it was at the time of the run."""
    file = _data_root() / HELMET.task(state.instance.sub_split or "").judge_sources["rubric"].paths[0]
    return file if file.is_file() else Path(record["rubric"])


def _data_root() -> DataRoot:
    return DataRoot.find(get_benchmark_output_path())


def _annotation(state: RequestState, judges: list[Judge], replies: Mapping[str, Mapping[str, Reply]]) -> dict[str, Any]:
    """The judges' replies and verdicts on one answer, as JSON data."""
    rubric, record = RUBRICS[state.instance.sub_split or ""], _record(state)
    texts = {
        judge: parts[ANSWER].text if ANSWER in parts else {part: reply.text for part, reply in parts.items()}
        for judge, parts in replies.items()
    }
    failed = [judge for judge, parts in replies.items() if any(reply.verdict is None for reply in parts.values())]
    errors = {judge: sorted({r.error for r in replies[judge].values() if r.error}) for judge in failed}
    return {
        "replies": texts,
        "verdicts": {judge: {part: r.verdict for part, r in parts.items()} for judge, parts in replies.items()},
        "judges": {judge.name: judge.model for judge in judges},
        "rubric": rubric.digest(_rubric_file(state, record)),
        "failed": len(failed) / len(replies),
        **({"errors": errors} if errors else {}),
    }


class CitationAnnotator(JudgeAnnotator):
    """Judges which cited documents support an answer.

    Args:
        judge: `auto` (the official NLI model if a GPU has room for it, else none), a HELM deployment, or an NLI model
            on the hub.
        auto_client: passed by HELM; used for a deployment.
        file_storage_path: passed by HELM; the folder in which verdicts are kept.
    """

    name = "citations"

    def __init__(self, judge: str, auto_client: AutoClient, file_storage_path: str):
        self._entailment: EntailmentJudge | None = None
        self._unavailable = False
        self._logged: set[str] = set()
        try:
            self._entailment = find_entailment(judge, auto_client, Path(file_storage_path))
        except Exception as error:  # the constructors of HELM's clients raise many kinds
            self._unavailable = True
            _log.error("citations are not judged: %s", _reason(error))

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check that a deployment has a key, if it needs one, and that the packages for an NLI model are installed.

        Raises:
            InputError: the key or a package is missing.
        """
        if judge not in ("auto", "none"):
            require("judges" if is_deployment(judge) else "citations", f"judge={judge!r}")
        if credentials is not None and is_deployment(judge):
            check_credentials(judge, credentials)

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """The annotation, which the metric reads; empty if there is no judge.

        It never raises, because HELM would end the run.
        """
        has_answer = _has_answer(request_state)
        if self._entailment is None or not has_answer:
            return {"failed": True} if self._unavailable and has_answer else {}
        try:
            return _judge_citations(request_state, self._entailment)
        except Exception as error:  # the answers are paid for, so no error may end the run
            _log_once(self._logged, request_state, error)
            return {"failed": True}


def _judge_citations(state: RequestState, entailment: EntailmentJudge) -> dict[str, Any]:
    record = scored_record(state)
    where = record["documents"]
    documents = all_documents(where["file"], where["item"], _data_root())

    def is_shown(number: int) -> bool:
        return number < where["shown"] and (
            not state.prompt_truncated or documents[number]["text"] in state.request.prompt
        )

    return citations.judge_record({**record, "docs": documents}, entailment, is_shown)
