"""Sends requests to judges, about the answers of runs, as batches. The request cache keeps the judges' replies."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.run_spec import RunSpec
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.request import Request, RequestResult
from helm.proxy.services.service import CACHE_DIR

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.judging.answer_judge import is_answered, judge_names, judge_requests
from helm_longctx.judging.judge import JudgeRequest, make_judge
from helm_longctx.judging.keys.client import RenewingClient, judge_client
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.protocol import failure_result
from helm_longctx.models.apis.sending import try_once
from helm_longctx.runner.batches.submission import (
    AsBatches,
    Plan,
    Submission,
    Unsent,
    service_name,
    wrap_provider_errors,
)
from helm_longctx.runner.cache import DigestCacheConfig, DigestStore, digest_cache
from helm_longctx.runner.rejudge import load_object
from helm_longctx.runner.resuming import find_answer
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runs.files import STATES
from helm_longctx.runs.ledger import Ledger, Receiver

_log = logging.getLogger(__name__)

Questions = Sequence[tuple[str, JudgeRequest]]


class JudgeClients:
    """The clients with which `helm-run` asks judges: with the judges' keys and the request cache."""

    def __init__(self, local_path: Path, credentials: Any):
        self._folder, self._credentials = local_path / CACHE_DIR, credentials
        self._clients: dict[str, Client] = {}

    def client(self, deployment: str) -> Any:
        """Return the client of a judge, with the key that is valid now.

        Raises:
            InputError: the client cannot be made: a package or a key is missing, or an argument is wrong.
        """
        with wrap_provider_errors(f"judge {deployment} cannot be asked", InputError):
            if deployment not in self._clients:
                self._clients[deployment] = judge_client(deployment, self._helm_client)
            client = self._clients[deployment]
            # Batches need the provider's client itself. It is looked up each time, because its token expires.
            return client.current() if isinstance(client, RenewingClient) else client

    @cached_property
    def _helm_client(self) -> AutoClient:
        self._folder.mkdir(parents=True, exist_ok=True)
        return AutoClient(self._credentials, str(self._folder), digest_cache(str(self._folder)))


def reply_store(client: ProviderClient) -> DigestStore:
    """Return the part of the request cache that has a client's replies."""
    config = client.cache.config
    # `JudgeClients` makes every client with this cache.
    assert isinstance(config, DigestCacheConfig)
    return config.open_store()


class JudgesAsBatches(AsBatches):
    """Sends requests to judges about existing answers, which are in the runner's journal or in a complete run."""

    def __init__(self, plan: Plan, local_path: Path):
        super().__init__(plan)
        self._local_path = local_path

    def skips(self, runner: LongContextRunner, spec: RunSpec) -> bool:
        """Return no, because verdicts of a complete run can be missing."""
        return False

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Send the requests to judges that have no reply and are in no batch."""
        if not spec.annotators:
            _log.info(f"{spec.name} has no judge")
            return
        (annotator,) = spec.annotators
        credentials = runner.annotator_executor.factory.credentials
        check_annotators([annotator], credentials)
        names, clients = judge_names(annotator, credentials), JudgeClients(self._local_path, credentials)
        if not names:
            raise InputError(f"judge={annotator.args['judge']} cannot be asked in batches; make the run directly")
        services = [service_name(clients.client(name), name, self._plan.as_files) for name in names]
        if runner.is_made(spec):
            complete: ScenarioState = load_object(runner.run_path(spec) / STATES, ScenarioState)
            # A complete run also contains the old verdicts, which must not be used.
            every = [replace(state, annotations=None) for state in complete.request_states]
        else:
            with runner.prepare(spec) as run:
                every = [replace(each.state, result=find_answer(each, run.journal)) for each in run.requests]
        states = [state for state in every if is_answered(state)]
        if not states:
            raise InputError("there are no answers to judge; first give `helm-longctx batch collect`, or make the run")
        questions = [
            (str(state.instance.id), request) for state in states for request in judge_requests(annotator, state)
        ]
        with Ledger(runner.run_path(spec)) as ledger:
            for name, service in zip(names, services, strict=True):
                self._send(Receiver(name, service, True), clients.client(name), questions, ledger)

    def _send(self, receiver: Receiver, client: ProviderClient, questions: Questions, ledger: Ledger) -> None:
        unsent: dict[str, Unsent] = {}
        for instance, question in questions:
            recorder = _Recorder(client)
            make_judge(receiver.deployment, recorder).ask(question)
            # Requests to judges are never elided, so the whole request is the request itself.
            unsent |= {name: Unsent(sent, partial(replace, sent), instance) for name, sent in recorder.unsent.items()}
        submission = Submission(receiver, client, lambda request: try_once(client.make_request, request).result, ledger)
        submission.send_all(unsent, self._plan.batch_size)
        about = f"{len(questions)} questions to {receiver.deployment}"
        _log.info(f"{about}: {len(unsent)} without a reply, {submission.summary()}")


class _Recorder(Client):
    """Replaces a judge's client: it returns replies from the cache, and stores the requests without a reply."""

    def __init__(self, client: ProviderClient):
        self._client, self._store = client, reply_store(client)
        self.unsent: dict[str, Request] = {}

    def make_request(self, request: Request) -> RequestResult:
        """Return the reply in the cache, or else a failure that is not retriable."""
        key = self._client.cache_key(request)
        if self._store.contains(key):
            return self._client.make_request(request)
        self.unsent[self._store.name(key)] = request
        # After a temporary failure the judge would wait and ask again.
        return failure_result(Failure.BAD_REQUEST, "there is no reply yet")
