"""The annotator that judges answers with language models. HELM runs it after the answers and before the metric."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.runner import get_benchmark_output_path
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.object_spec import get_class_by_name

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.metric import scored_record
from helm_longctx.judging.judge import (
    Judge,
    JudgeRequest,
    Reply,
    ask_judges,
    check_settings,
    find_judges,
    parse_judges,
)
from helm_longctx.judging.keys.client import UnavailableClient, check_judge, find_official_judge
from helm_longctx.models.results import failure_of
from helm_longctx.redaction.abbreviation import describe_error, digest
from helm_longctx.tasks.judgement import ANSWER, Judgement
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Record, Task

_log = logging.getLogger(__name__)

_NO_VERDICT: dict[str, Any] = {"replies": {}, "failed": 1.0}

Replies = Mapping[str, Mapping[str, Reply]]
"""Replies by judge and question."""


class AnswerAnnotator(JudgeAnnotator):
    """Judges answers with one or several language models, as the tasks' judgements say.

    A benchmark whose questions depend on more than an answer's record defines them in a subclass.

    Args:
        judge: `auto` (the official judge; none if there is no key for it), a HELM deployment, or several joined by `+`.
    """

    name = "jury"
    use_global_metric = True
    """With this attribute HELM passes all answers at once, so that they can be judged in parallel."""
    official: ClassVar[str]
    """The benchmark's own judge, a HELM deployment."""
    judgements: ClassVar[Mapping[str, Judgement]] = {}
    """How the answers are judged, by task."""

    def __init__(self, judge: str, auto_client: AutoClient):
        self._judge = judge
        self._client = auto_client
        self._is_named = judge != "auto"
        self._logged: set[str] = set()

    @cached_property
    def _judges(self) -> list[Judge]:
        """The judges. They are found when answers are judged, so that questions can be made without a key."""
        try:
            found = (
                None
                if self._is_named
                else find_official_judge(self.official, self._client.credentials)
            )
        except InputError as error:  # the answers are paid for, so no error may end the run
            _log.error("answers are not judged: %s", error)
            found = None
        names = self._judge.split("+") if self._is_named else filter(None, [found])
        return [_find_judge(name, self._client) for name in dict.fromkeys(names)]

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make the questions about an answer by part, of which a single one is `ANSWER`, if it is judged."""
        if task not in self.judgements:
            return {}
        own = self.judgements[task]
        prompts = own.prompts(record)
        return {
            part: JudgeRequest(
                prompt,
                lambda reply: own.read(reply, record) or None,
                own.max_tokens,
                own.temperature,
                own.top_p,
                own.seed,
                own.readings,
                own.system,
            )
            for part, prompt in ({ANSWER: prompts} if isinstance(prompts, str) else prompts).items()
        }

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the rubric. Runs with different rubrics cannot be compared."""
        rubric = self.judgements[task].rubric
        return digest(rubric if isinstance(rubric, str) else rubric(record))

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check each judge's deployment, key, model and settings, or raise an `InputError`."""
        check_settings()
        names = [] if judge == "auto" else parse_judges(judge)
        if credentials is None:
            return
        has_judge = judge != "auto" or find_official_judge(cls.official, credentials)
        for name in names:
            check_judge(name, credentials)
        for prepare in {
            own.prepare for own in cls.judgements.values() if own.prepare and has_judge
        }:
            prepare(DataRoot.find(get_benchmark_output_path()))

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """Return the annotation of one answer, which the metric reads; empty if there is no judge. Never raises."""
        return self._annotations([request_state])[0]

    def annotate_all(self, request_states: list[RequestState]) -> list[dict[str, Any]]:
        """Return the annotations of all answers, each under the annotator's name."""
        return [{self.name: annotation} for annotation in self._annotations(request_states)]

    def _annotations(self, states: list[RequestState]) -> list[dict[str, Any]]:
        questions_by_answer = [self._questions(state) for state in states]
        silent = [
            bool(questions) and self._is_silent(state)
            for state, questions in zip(states, questions_by_answer, strict=True)
        ]
        replies_by_answer = ask_judges(
            self._judges,
            [
                {} if is_silent else questions or {}
                for questions, is_silent in zip(questions_by_answer, silent, strict=True)
            ],
        )
        annotations: list[dict[str, Any]] = []
        for state, questions, is_silent, asked in zip(
            states, questions_by_answer, silent, replies_by_answer, strict=True
        ):
            replies = self._answer_silence(state, questions or {}) if is_silent else asked
            own = self.judgements.get(state.instance.sub_split or "")
            has_verdict = questions or (
                own and own.counts_silence and replies and is_answered(state)
            )
            judged = self._verdicts(state, replies) if has_verdict else {}
            annotations.append(_NO_VERDICT if questions is None else judged)
        return annotations

    def _questions(self, state: RequestState) -> dict[str, JudgeRequest] | None:
        """Return the questions about an answer: empty if it is not judged, None if it should be judged but cannot."""
        if not (self._judges and is_answered(state)):
            return {}
        try:
            return self.questions(*_task_and_record(state))
        except Exception as error:  # the answers are paid for, so no error may end the run
            log_once(self._logged, state, error)
            # Without a verdict of a judge that the user named, the judgement has failed. With `auto` it is optional.
            return None if self._is_named else {}

    def _is_silent(self, state: RequestState) -> bool:
        """Whether no judge is asked about an answer, because it is empty."""
        task, record = _task_and_record(state)
        return task in self.judgements and self.judgements[task].answers_silence(record)

    def _answer_silence(self, state: RequestState, questions: Iterable[str]) -> Replies:
        """Return the replies that stand for the judges' about an empty answer, to questions by part."""
        task, record = _task_and_record(state)
        own = self.judgements[task]
        text = own.silence_reply or ""
        reply = Reply(text=text, verdict=own.read(text, record), error=None)
        return {judge.name: dict.fromkeys(questions, reply) for judge in self._judges}

    def _verdicts(self, state: RequestState, replies: Replies) -> dict[str, Any]:
        """Return the judges' replies and verdicts on one answer, as JSON data."""
        texts = {
            judge: parts[ANSWER].text
            if ANSWER in parts
            else {part: reply.text for part, reply in parts.items()}
            for judge, parts in replies.items()
        }
        failed = [
            judge
            for judge, parts in replies.items()
            if any(reply.verdict is None for reply in parts.values())
        ]
        errors = {
            judge: sorted({r.error for r in replies[judge].values() if r.error}) for judge in failed
        }
        return {
            "replies": texts,
            "verdicts": {
                judge: {part: r.verdict for part, r in parts.items()}
                for judge, parts in replies.items()
            },
            "judges": {judge.name: judge.model for judge in self._judges},
            "rubric": self.digest(*_task_and_record(state)),
            "failed": len(failed) / len(replies),
            **({"errors": errors} if errors else {}),
        }


class ModelAnnotator(JudgeAnnotator):
    """Annotates answers with one model, which need not be a language model."""

    def __init__(self, what: str, find: Callable[[], Any]):
        """Find the model; None for none. `what` the annotator does stands in the log if that fails."""
        self._model = None
        self._unavailable = False
        self._logged = set[str]()
        try:
            self._model = find()
        except Exception as error:  # the answers are paid for, so no error may end the run
            self._unavailable = True
            _log.error("%s: %s", what, explain(error))

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """Return the annotation that the metric reads; empty if there is no model or no answer. Never raises."""
        if self._model is None or not is_answered(request_state):
            # With `auto` and without a GPU there is no model, which is no failure.
            return {"failed": True} if self._unavailable and is_answered(request_state) else {}
        try:
            return self.judge(request_state, self._model)
        except Exception as error:  # as above
            log_once(self._logged, request_state, error)
            return {"failed": True}

    @abstractmethod
    def judge(self, state: RequestState, model: Any) -> dict[str, Any]:
        """Return the annotation of an answer. It may raise any error."""


def make_annotator(*tasks: Task) -> type[AnswerAnnotator]:
    """Return the annotator of tasks that have the same official judge."""
    (judge,) = {task.official_judge for task in tasks}

    class TasksAnnotator(AnswerAnnotator):
        """Judges the answers of some tasks."""

        official = str(judge)
        judgements = {task.name: task.judgement for task in tasks if task.judgement}  # noqa: RUF012  # never changed

    return TasksAnnotator


def judge_requests(spec: AnnotatorSpec, state: RequestState) -> list[JudgeRequest]:
    """Return an annotator's requests about an answer, without a judge, or raise an `InputError`."""
    annotator: type[Any] = get_class_by_name(spec.class_name)
    # An entailment model judges passages and claims, and has no such questions.
    if not issubclass(annotator, AnswerAnnotator):
        return []
    task, record = _task_and_record(state)
    own = annotator.judgements.get(task)
    if own is not None and own.answers_silence(record):
        return []
    asks_nobody = AutoClient({}, "", BlackHoleCacheBackendConfig())
    return [*annotator(**spec.args, auto_client=asks_nobody).questions(task, record).values()]


def typical_answer(spec: AnnotatorSpec, task: str, record: Record, tokens: int) -> str:
    """Return a text of about so many tokens in place of an answer of a task, for estimates."""
    own = getattr(get_class_by_name(spec.class_name), "judgements", {}).get(task)
    return (
        str(own.typical_answer(record, tokens)) if own and own.typical_answer else "word " * tokens
    )


def judge_names(spec: AnnotatorSpec, credentials: Mapping[str, Any] | None = None) -> list[str]:
    """Return the deployments that an annotator asks about answers, or raise an `InputError`.

    There are none if it is no `AnswerAnnotator`. `auto` is the official judge on its usual host, or with the content of
    HELM's credentials file on the host with a key.
    """
    annotator: type[Any] = get_class_by_name(spec.class_name)
    if not issubclass(annotator, AnswerAnnotator):
        return []
    if (judge := spec.args["judge"]) != "auto":
        return list(dict.fromkeys(judge.split("+")))
    found = (
        annotator.official
        if credentials is None
        else find_official_judge(annotator.official, credentials)
    )
    return [found] if found else []


def is_answered(state: RequestState) -> bool:
    """Whether there is an answer to judge."""
    return state.result is not None and failure_of(state.result) is None


def explain(error: Exception) -> str:
    """Return the reason why a judge cannot be used, without secrets."""
    text = describe_error(error)
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"


def log_once(logged: set[str], state: RequestState, error: Exception) -> None:
    """Log why an answer is not judged. Each reason is logged once."""
    what = str(error) if isinstance(error, InputError) else type(error).__name__
    if what not in logged:
        _log.error("answer %s (and perhaps others) is not judged: %s", state.instance.id, what)
    logged.add(what)


def _task_and_record(state: RequestState) -> tuple[str, Record]:
    """Return an answer's task, and its scored record with the question."""
    sample = Sample.from_json(state.instance.extra_data)
    return state.instance.sub_split or "", {
        **scored_record(state, sample),
        "question": sample.question,
    }


def _find_judge(name: str, client: AutoClient) -> Judge:
    """Return a judge. If it cannot be used, return one that never answers, so that a jury's other judges can go on."""
    try:
        check_judge(name, client.credentials)
        return find_judges(name, client)[0]
    except Exception as error:  # the constructors of HELM's clients raise many kinds
        why = explain(error)
        _log.error("answers are not judged by %s: %s", name, why)
        return Judge(name, name, UnavailableClient(why))
