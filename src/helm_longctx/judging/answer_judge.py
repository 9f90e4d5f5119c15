"""The annotator that judges answers with language models. HELM runs it after the answers and before the metric."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, NotKeptError
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.metric import scored_record
from helm_longctx.helm_api import (
    AnnotatorSpec,
    AutoClient,
    BlackHoleCacheBackendConfig,
    RequestState,
    get_benchmark_output_path,
    get_class_by_name,
)
from helm_longctx.judging.judge import (
    Judge,
    JudgeReply,
    JudgeRequest,
    ask_judges,
    find_judges,
    parse_judges,
)
from helm_longctx.judging.keys.client import (
    UnavailableClient,
    check_judge,
    find_official_judge,
)
from helm_longctx.models.results import failure_of
from helm_longctx.redaction.abbreviation import describe_error, digest
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.judgement import ANSWER, Judgement
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import ScorerInput, Task

_log = logging.getLogger(__name__)

_NO_VERDICT: dict[str, Any] = {"replies": {}, "failed": 1.0}

_Replies = Mapping[str, Mapping[str, JudgeReply]]
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
        """The judges. They are looked up when answers are judged, so that questions can be made without a key."""
        names = self._judge.split("+") if self._is_named else self._find_official()
        return [_find_judge(name, self._client) for name in dict.fromkeys(names)]

    def _find_official(self) -> list[str]:
        """Return the official judge, or nothing if it cannot be asked."""
        try:
            official = find_official_judge(self.official, self._client.credentials)
        except (
            InputError
        ) as error:  # the answers are paid for, so no error may end the run
            _log.error("answers are not judged: %s", error)
            return []
        return [official] if official else []

    def questions(self, task: str, record: ScorerInput) -> dict[str, JudgeRequest]:
        """Make the questions about an answer, if it is judged, by part. A single part is `ANSWER`."""
        if task not in self.judgements:
            return {}
        own = self.judgements[task]
        prompts = own.prompts(record)
        if isinstance(prompts, str):
            prompts = {ANSWER: prompts}
        requests = {}
        for part, prompt in prompts.items():
            requests[part] = JudgeRequest(
                prompt,
                parse=lambda reply: own.read(reply, record) or None,
                max_tokens=own.max_tokens,
                temperature=own.temperature,
                top_p=own.top_p,
                seed=own.seed,
                readings=own.readings,
                system=own.system,
            )
        return requests

    def digest(self, task: str, record: ScorerInput) -> str:
        """Return the SHA-256 of the rubric. Runs with different rubrics cannot be compared."""
        rubric = self.judgements[task].rubric
        return digest(rubric if isinstance(rubric, str) else rubric(record))

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check each judge's deployment, key, model and settings, or raise an `InputError`."""
        # A wrong value in the environment is refused here, before a request is sent.
        settings_in_use()
        names = [] if judge == "auto" else parse_judges(judge)
        if credentials is None:
            return
        has_judge = judge != "auto" or find_official_judge(cls.official, credentials)
        for name in names:
            check_judge(name, credentials)
        if not has_judge:
            return
        preparations = set()
        for own in cls.judgements.values():
            if own.prepare:
                preparations.add(own.prepare)
        for prepare in preparations:
            prepare(DataRoot.find(get_benchmark_output_path()))

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """Return the annotation of one answer for the metric. Without a judge it is empty.

        Raises:
            NotKeptError: a judge's reply cannot be kept.
        """
        return self._annotations([request_state])[0]

    def annotate_all(self, request_states: list[RequestState]) -> list[dict[str, Any]]:
        """Return the annotations of all answers, each under the annotator's name."""
        return [
            {self.name: annotation} for annotation in self._annotations(request_states)
        ]

    def _annotations(self, states: list[RequestState]) -> list[dict[str, Any]]:
        all_questions = [self._questions(state) for state in states]
        are_silent: list[bool] = []
        asked: list[Mapping[str, JudgeRequest]] = []
        for state, questions in zip(states, all_questions, strict=True):
            is_silent = bool(questions) and self._is_silent(state)
            are_silent.append(is_silent)
            asked.append({} if is_silent else questions or {})
        all_replies = ask_judges(self._judges, asked)
        annotations: list[dict[str, Any]] = []
        for state, questions, is_silent, given in zip(
            states, all_questions, are_silent, all_replies, strict=True
        ):
            if questions is None:
                annotations.append(_NO_VERDICT)
                continue
            replies = self._answer_silence(state, questions) if is_silent else given
            has_verdict = bool(questions) or self._counts_silence(state, replies)
            annotations.append(self._verdicts(state, replies) if has_verdict else {})
        return annotations

    def _counts_silence(self, state: RequestState, replies: _Replies) -> bool:
        """Whether an answer without questions has verdicts all the same, because silence of its task counts."""
        own = self.judgements.get(state.instance.sub_split or "")
        return bool(own and own.counts_silence and replies and is_answered(state))

    def _questions(self, state: RequestState) -> dict[str, JudgeRequest] | None:
        """Return the questions about an answer: empty if it is not judged, None if it should be judged but cannot."""
        if not (self._judges and is_answered(state)):
            return {}
        try:
            return self.questions(*_task_and_record(state))
        except (
            Exception
        ) as error:  # the answers are paid for, so no error may end the run
            _log_once(self._logged, state, error)
            # Without a verdict of a judge that the user named, the judgement has failed. With `auto` it is optional.
            return None if self._is_named else {}

    def _is_silent(self, state: RequestState) -> bool:
        """Whether no judge is asked about an answer, because it is empty."""
        task, record = _task_and_record(state)
        return task in self.judgements and self.judgements[task].answers_silence(record)

    def _answer_silence(
        self,
        state: RequestState,
        questions: Iterable[str],
    ) -> _Replies:
        """Return the replies that stand for the judges' about an empty answer, to questions by part."""
        task, record = _task_and_record(state)
        own = self.judgements[task]
        text = own.silence_reply or ""
        reply = JudgeReply(
            text=text,
            verdict=own.read(text, record),
            error=None,
        )
        return {judge.name: dict.fromkeys(questions, reply) for judge in self._judges}

    def _verdicts(self, state: RequestState, replies: _Replies) -> dict[str, Any]:
        """Return the judges' replies and verdicts on one answer, as JSON data."""
        texts: dict[str, Any] = {}
        verdicts: dict[str, dict[str, Any]] = {}
        errors: dict[str, list[str]] = {}
        for judge, parts in replies.items():
            verdicts[judge] = {part: reply.verdict for part, reply in parts.items()}
            if ANSWER in parts:
                texts[judge] = parts[ANSWER].text
            else:
                texts[judge] = {part: reply.text for part, reply in parts.items()}
            if any(verdict is None for verdict in verdicts[judge].values()):
                errors[judge] = sorted(
                    {reply.error for reply in parts.values() if reply.error}
                )
        annotation = {
            "replies": texts,
            "verdicts": verdicts,
            "judges": {judge.name: judge.model for judge in self._judges},
            "rubric": self.digest(*_task_and_record(state)),
            "failed": len(errors) / len(replies),
        }
        if errors:
            annotation["errors"] = errors
        return annotation


class ModelAnnotator(JudgeAnnotator):
    """Annotates answers with one model. It need not be a language model."""

    def __init__(self, what: str, find: Callable[[], Any]):
        """Find the model, if there is one. `what` describes the annotator in the log if loading fails."""
        self._model = None
        self._unavailable = False
        self._logged = set[str]()
        try:
            self._model = find()
        except (
            Exception
        ) as error:  # the answers are paid for, so no error may end the run
            self._unavailable = True
            _log.error("%s: %s", what, explain(error))

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """Return the annotation for the metric. Without a model or an answer it is empty.

        Raises:
            NotKeptError: a judge's reply cannot be kept. Every other error is in the annotation.
        """
        if not is_answered(request_state):
            return {}
        if self._model is None:
            # With `auto` and without a GPU there is no model. That is no failure.
            return {"failed": True} if self._unavailable else {}
        try:
            return self.judge(request_state, self._model)
        except NotKeptError:
            raise
        except Exception as error:  # as above
            _log_once(self._logged, request_state, error)
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
    return [
        *annotator(**spec.args, auto_client=asks_nobody)
        .questions(task, record)
        .values()
    ]


def typical_answer(
    spec: AnnotatorSpec,
    task: str,
    record: ScorerInput,
    tokens: int,
) -> str:
    """Return a text of about so many tokens in place of an answer of a task, for estimates."""
    own = getattr(get_class_by_name(spec.class_name), "judgements", {}).get(task)
    if own and own.typical_answer:
        return str(own.typical_answer(record, tokens))
    return "word " * tokens


def judge_names(
    spec: AnnotatorSpec,
    credentials: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the deployments that an annotator asks about answers, or raise an `InputError`.

    There are none if it is no `AnswerAnnotator`. `auto` is the official judge on its usual host, or with the content of
    HELM's credentials file on the host with a key.
    """
    annotator: type[Any] = get_class_by_name(spec.class_name)
    if not issubclass(annotator, AnswerAnnotator):
        return []
    judge = spec.args["judge"]
    if judge != "auto":
        return list(dict.fromkeys(judge.split("+")))
    official: str | None = annotator.official
    if credentials is not None:
        official = find_official_judge(annotator.official, credentials)
    return [official] if official else []


def is_answered(state: RequestState) -> bool:
    """Whether there is an answer to judge."""
    return state.result is not None and failure_of(state.result) is None


def explain(error: Exception) -> str:
    """Return the reason why a judge cannot be used, without secrets."""
    text = describe_error(error)
    if isinstance(error, InputError):
        return text
    return f"{type(error).__name__}: {text}"


def _log_once(logged: set[str], state: RequestState, error: Exception) -> None:
    """Log why an answer is not judged. Each reason is logged once."""
    if isinstance(error, InputError):
        what = str(error)
    else:
        what = type(error).__name__
    if what not in logged:
        _log.error(
            "answer %s (and perhaps others) is not judged: %s", state.instance.id, what
        )
    logged.add(what)


def _task_and_record(state: RequestState) -> tuple[str, ScorerInput]:
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
