"""Makes the requests of runs in the same way as the runner, and sends those without an answer as batches.

Requests to judges about the answers of runs can also be sent. The request cache keeps the judges' replies.
"""

from __future__ import annotations

import logging
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, TypeVar

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, Problem, failure_of_error
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.helm_api import (
    CACHE_DIR,
    AutoClient,
    Client,
    LocalContext,
    Request,
    RequestResult,
    RunSpec,
)
from helm_longctx.judging.answer_judge import is_answered, judge_names, judge_requests
from helm_longctx.judging.judge import JudgeRequest, make_judge
from helm_longctx.judging.keys.client import RenewingClient, judge_client
from helm_longctx.models.apis.batches import BatchFormat, Service, UnsureError
from helm_longctx.models.apis.caching import with_beginning
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.protocol import Body, without_prompt
from helm_longctx.models.apis.provider import Provider, providers
from helm_longctx.models.apis.sending import try_once
from helm_longctx.models.results import describe_failure, failure_of, make_failure
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.run_settings import MAX_COST
from helm_longctx.runner.asking import Asking, ask_all
from helm_longctx.runner.cache import DigestCacheConfig, DigestStore, digest_cache
from helm_longctx.runner.engine import PendingRequest
from helm_longctx.runner.prefixes import CHARACTERS, SharedPrefix, warming_pays
from helm_longctx.runner.prepared import PreparedRun
from helm_longctx.runner.programs import has_programs, open_steps
from helm_longctx.runner.resuming import find_answer, find_first_answer
from helm_longctx.runner.runner import LongContextRunner, Strategy, runner_arguments
from helm_longctx.runner.sending import find_client, make_sender
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.runs.ledger import BatchPart, Ledger, Receiver, ledgers

_log = logging.getLogger(__name__)

_Value = TypeVar("_Value")
_Ask = Callable[[Request], RequestResult]

_SETTLE = 30.0
"""Seconds after which the provider's list of batches contains a batch that an interrupted command has created."""

_THREADS = 4
"""Number of prompts that are truncated in parallel. It is the default of helm-run."""

PROBE = "Answer with one word."
"""Prompt of the small request that is sent on its own before a run's first batch."""

JudgeQuestions = Sequence[tuple[str, JudgeRequest]]


@dataclass(frozen=True)
class BatchPlan:
    """How requests are put into batches.

    Args:
        as_files: whether files for `vllm run-batch` are written, instead of batches for a provider.
        batch_size: largest number of requests in a batch. Without one, the provider's limit holds.
    """

    as_files: bool = False
    batch_size: int | None = None


def make_batch_runner(
    strategy: AsBatches,
    output_path: Path,
    suite: str,
    local_path: Path,
) -> LongContextRunner:
    """Return a runner that sends requests as batches. Raises an `InputError` if there is a limit on the cost."""
    arguments = runner_arguments(
        output_path, suite, local_path, _THREADS, skip_completed_runs=True
    )
    runner = LongContextRunner(**arguments, strategy=strategy)
    if (dollars := runner.limit.dollars) is not None:
        reason = f"{MAX_COST}={dollars:g} cannot limit batches, which are paid for as a whole"
        raise InputError(f"{reason}; unset it, and see `helm-longctx estimate`")
    return runner


class AsBatches(Strategy):
    """Sends the requests without an answer as batches, and ends there. Complete runs are skipped.

    Attributes:
        has_programs: whether requests of the runs follow from the replies to others.
    """

    completes = False
    purpose = "sent as batches"

    def __init__(self, plan: BatchPlan):
        self._plan = plan
        self.has_programs = False

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Send the requests that have no answer and are in no batch."""
        deployment = spec.adapter_spec.model_deployment
        context = runner.executor.context
        assert isinstance(context, LocalContext)
        client: Any = find_client(context, deployment)
        receiver = Receiver(
            deployment, _need_service(client, deployment, self._plan.as_files)
        )
        with runner.prepare(spec) as prepared, Ledger(prepared.path) as ledger:
            # Programs of methods wait for these requests; the next round sends those that follow from their replies.
            run = prepared
            if has_programs(prepared.requests):
                self.has_programs = True
                run = replace(prepared, requests=open_steps(prepared))
            # The run's own sender stops after the requests that fill the cache.
            settings = runner.settings

            def ask(request: Request) -> RequestResult:
                return make_sender(context, deployment, settings)(request).result

            submission = _Submission(receiver, client, ask, ledger)
            names = {run.name(run.requests[number]): number for number in run.order()}
            shared: Mapping[int, SharedPrefix] = {}
            pending = submission.pending(_find_unanswered(run, names))
            if pending and not self._plan.as_files:
                shared = _fill_cache(
                    run, client.provider, [*pending.values()], _THREADS
                )
            left = _find_unanswered(run, names).items()
            unanswered = {}
            for name, number in left:
                unanswered[name] = _Unsent.of(run.requests[number], shared.get(number))
            submission.send_all(unanswered, self._plan.batch_size)
            answered = len(names) - len(unanswered)
            _log.info(
                f"{len(names)} requests: {answered} answered, {submission.summary()}"
            )


def _find_unanswered(run: PreparedRun, names: Mapping[str, int]) -> dict[str, int]:
    numbers = {}
    for name, number in names.items():
        if not find_first_answer(run.requests[number], run.journal):
            numbers[name] = number
    return numbers


@dataclass(frozen=True)
class _Unsent:
    """A request for a batch, perhaps elided, the function that makes it whole, and its instance's name for the log."""

    request: Request
    whole: Callable[[], Request]
    instance: str

    @staticmethod
    def of(stored: StoredRequest, beginning: SharedPrefix | None) -> _Unsent:
        """Return a request of a run. It shares a beginning with others if the provider's cache has it."""
        shared = beginning.characters if beginning else 0
        whole = lambda: with_beginning(stored.whole(), shared, in_batch=True)  # noqa: E731
        return _Unsent(stored.request, whole, str(stored.state.instance.id))


class _Submission:
    """Sends requests of one run to one receiver. Raises an `InputError` if earlier batches cannot be listed."""

    def __init__(
        self,
        receiver: Receiver,
        client: ProviderClient,
        ask: _Ask,
        ledger: Ledger,
    ):
        self._receiver = receiver
        self._client = client
        self._ask = ask
        self._ledger = ledger
        self._service = find_service(receiver.service, client, ledger.path.parent)
        self._sent: dict[str, Body] = {}
        self._waiting = self._unsendable = 0
        settle(ledger, receiver, self._service)

    def send_all(self, requests: Mapping[str, _Unsent], batch_size: int | None) -> None:
        """Send those in no batch. Raises an `InputError` if the model cannot be asked, or no batch can be created."""
        pending = self.pending(requests)
        self._waiting = len(requests) - len(pending)
        if pending and self._service.has_server:
            # A tiny request with the run's parameters is sent on its own. A wrong key or model then shows at once, not
            # after a day, and the client learns what the model refuses.
            request = next(iter(pending.values())).request
            if request.messages is None:
                messages = None
            else:
                messages = [{"role": "user", "content": PROBE}]
            # It has a unique number, because an answer from the cache would prove nothing.
            tiny = replace(
                request,
                prompt="" if messages else PROBE,
                messages=messages,
                random=uuid.uuid4().hex,
            )
            result = self._ask(tiny)
            kind = failure_of(result)
            # Other failures, such as a rate limit, say nothing about the requests in a batch.
            if kind and (kind.ends_run or kind is Failure.BAD_REQUEST):
                raise InputError(
                    f"the model cannot be asked: {describe_failure(result)}"
                )
        # OpenAI takes requests of one route in a batch.
        routes = {}
        for name, unsent in pending.items():
            routes[name] = self._client.route(unsent.request)
        for route in dict.fromkeys(routes.values()):
            of_route = {}
            for name, unsent in pending.items():
                if routes[name] == route:
                    of_route[name] = unsent
            self._send_route(
                route, of_route, batch_size or self._service.format.most_requests
            )

    def pending(self, requests: Mapping[str, _Value]) -> dict[str, _Value]:
        """Return those requests that are in no batch."""
        waiting: set[str] = set()
        for part in self._ledger.open_parts:
            waiting.update(part.requests)
        left = {}
        for name, value in requests.items():
            if name not in waiting:
                left[name] = value
        return left

    def summary(self) -> str:
        """Return how many requests were not sent, and why, for the log."""
        if self._unsendable:
            unsendable = f", {self._unsendable} cannot be sent"
        else:
            unsendable = ""
        return f"{self._waiting} already in batches{unsendable}"

    def _send_route(
        self,
        route: str,
        unsent: Mapping[str, _Unsent],
        most_requests: int,
    ) -> None:
        # The user's number cannot exceed the provider's limit.
        limits = replace(
            self._service.format,
            most_requests=min(most_requests, self._service.format.most_requests),
        )
        with tempfile.TemporaryDirectory(
            prefix=".batch-", dir=self._ledger.path.parent
        ) as folder:
            for names, path in _write_files(
                self._lines(route, unsent), limits, Path(folder)
            ):
                # The body of a request is needed only once, so it is removed from memory here.
                requests = {}
                for name in names:
                    requests[name] = (unsent[name].request, self._sent.pop(name))
                # The batch is announced before it is created. If the process dies in between, `settle` looks for the
                # batch, and no request is paid for twice.
                part = self._ledger.announce(self._receiver, route, requests)
                with path.open("rb") as file:
                    batch = self._create(part, file)
                _log.info(
                    f"batch {batch}: {len(names)} requests, {path.stat().st_size / 1e6:.1f} MB"
                )

    def _lines(
        self,
        route: str,
        requests: Mapping[str, _Unsent],
    ) -> Iterator[tuple[str, bytes]]:
        for name, unsent in requests.items():
            try:
                body = self._client.body(unsent.whole())
                line = self._service.line(name, route, body)
            except InputError:
                raise
            except Exception as error:  # helm-run will count the request as failed
                self._unsendable += 1
                _log.warning(
                    f"request for {unsent.instance} cannot be sent: {describe_error(error)}"
                )
                continue
            self._sent[name] = without_prompt(body)
            yield name, line

    def _create(self, part: BatchPart, file: IO[bytes]) -> str:
        try:
            batch = self._service.create(part, file)
        except UnsureError as error:
            raise InputError(
                "it is not known whether a batch was created"
                f" ({_reason(error.__cause__ or error)}); run the same command again:"
                " it looks for the batch"
            ) from error
        # The disk is full, or a file cannot be written. The batch may exist, so it stays announced.
        except OSError:
            raise
        except Exception as error:
            self._ledger.set_absent(part)
            raise InputError(
                f"{part.deployment}: no batch can be created: {_reason(error)}"
            ) from error
        self._ledger.set_batch(part, batch)
        return batch


def _write_files(
    lines: Iterable[tuple[str, bytes]],
    limits: BatchFormat,
    folder: Path,
) -> Iterator[tuple[list[str], Path]]:
    """Write requests, one of which is in memory at a time, into files within the limits.

    Yields the names of the requests in each file, and the file. The next file overwrites it.
    """
    path = folder / "requests"
    left = iter(lines)
    following = next(left, None)
    while following:
        names: list[str] = []
        with path.open("wb") as file:
            while following:
                name, line = following
                # The separator and the end count, because the limit is for the whole file.
                size = file.tell() + len(line) + len(limits.between) + len(limits.end)
                if names and (
                    len(names) >= limits.most_requests or size > limits.most_bytes
                ):
                    break
                file.write(limits.between if names else limits.start)
                file.write(line)
                names.append(name)
                following = next(left, None)
            file.write(limits.end)
        yield names, path


def settle(ledger: Ledger, receiver: Receiver, service: Service) -> None:
    """Find batches whose identifiers were lost in an interruption. Raises an `InputError` if they cannot be listed."""
    doubtful = ledger.doubtful_parts(receiver)
    if not doubtful:
        return
    about = f"an interrupted command may have created {len(doubtful)} batches"
    _log.info(f"{about}; they are looked for in {_SETTLE:g} seconds")
    time.sleep(_SETTLE)
    # The runs of a suite have batches of the same size, which could be confused.
    others: set[str] = set()
    for other in ledgers(ledger.path.parent.parent.iterdir()):
        others.update(part.batch for part in other.parts if part.batch)
    for part in doubtful:
        with wrap_provider_errors(f"{part.deployment}: its batches cannot be listed"):
            search = service.find(part, others)
        if search.batch:
            ledger.set_batch(part, search.batch)
            others.add(search.batch)
        elif search.is_final:
            ledger.set_absent(part)
        else:
            about = "a batch that may belong to this run has not ended"
            _log.warning(f"{about}; its requests are not sent again before that")


class ProviderError(InputError):
    """A provider cannot be asked, or its reply cannot be read. The cause is an error of the provider's package."""


@contextmanager
def wrap_provider_errors(
    what: str,
    kind: type[InputError] = ProviderError,
) -> Iterator[None]:
    """Raise an error of a provider's package as an `InputError` of a kind, whose line starts with `what`."""
    try:
        yield
    except (InputError, OSError):
        raise
    except Exception as error:
        raise kind(f"{what}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    return str(Problem(failure_of_error(error), describe_error(error)))


def _fill_cache(
    run: PreparedRun,
    provider: Provider,
    numbers: Sequence[int],
    parallelism: int,
) -> dict[int, SharedPrefix]:
    """Send one request of each group with a shared beginning directly, where that makes the batch cheaper.

    The requests of a batch are answered at the same time, so each pays for the beginning that they share. If one of
    them is sent directly before, the others read the beginning from the cache. Returns the beginning that each request
    of these groups finds there; none if the group's first request failed.
    """
    tokens = [run.requests[number].characters // CHARACTERS for number in numbers]
    pays = warming_pays(run.spending.prices, provider.batch_write_price, tokens)
    beginnings = dict(zip(numbers, run.beginnings(numbers, pays), strict=True))
    # Of each group the first request in the given order.
    first = {}
    for number, beginning in reversed(beginnings.items()):
        if beginning:
            first[beginning] = number
    pending = []
    for beginning, number in first.items():
        pending.append(PendingRequest(run.requests[number], beginning, in_batch=True))
    if not pending:
        return {}
    asking = Asking(run.sender, run.journal, run.spending, len(pending))
    # A small request before the batch shows whether the model can be asked at all.
    try:
        states = ask_all(pending, asking, parallelism)
    except InputError as error:
        _log.warning(f"the provider's cache is not filled: {error}")
        return {}
    asking.finish()
    warm = set()
    for beginning, state in zip(first, states, strict=True):
        if state.result and state.result.success:
            warm.add(beginning)
    warmed = {}
    for number, beginning in beginnings.items():
        if beginning in warm:
            warmed[number] = beginning
    return warmed


def find_service(name: str, client: ProviderClient, run_path: Path) -> Service:
    """Return a service by its recorded name. Raises an `InputError` if no installed provider has it any more."""
    services: dict[str, type[Service]] = {}
    for provider in providers().values():
        for service in (provider.batches, provider.batch_files):
            if service:
                services[service.name] = service
    if name not in services:
        raise InputError(
            f"there is no batch service {name!r}; choose from {', '.join(services)}"
        )
    return services[name](client, run_path)


def _need_service(client: Client, deployment: str, as_files: bool) -> str:
    """Return the name of the service for a deployment's batches, or raise an `InputError` if it has none."""
    if name := _find_service_name(client, as_files):
        return name
    clients = []
    for provider in providers().values():
        if provider.batch_files if as_files else provider.batches:
            clients.append(provider.client.__name__)
    raise InputError(
        f"{deployment} has no batches; use a deployment with {' or '.join(clients)} of"
        " helm_longctx.models.apis"
    )


def _find_service_name(client: Client, as_files: bool) -> str:
    """Return the name of the service for a client's batches, empty if it has none."""
    provider: Provider | None = getattr(client, "provider", None)
    if provider is None:
        return ""
    service = provider.batch_files if as_files else provider.batches
    return service.name if service else ""


class JudgeClients:
    """The clients with which `helm-run` asks judges: with the judges' keys and the request cache."""

    def __init__(self, local_path: Path, credentials: Any):
        self._folder = local_path / CACHE_DIR
        self._credentials = credentials
        self._clients: dict[str, Client] = {}

    def client(self, deployment: str) -> Any:
        """Return a judge's client with the key that is valid now. Raises an `InputError` if it cannot be made."""
        with wrap_provider_errors(f"judge {deployment} cannot be asked", InputError):
            if deployment not in self._clients:
                self._clients[deployment] = judge_client(deployment, self._helm_client)
            client = self._clients[deployment]
            # Batches need the provider's client itself. It is looked up each time, because its token expires.
            if isinstance(client, RenewingClient):
                return client.current()
            return client

    @cached_property
    def _helm_client(self) -> AutoClient:
        self._folder.mkdir(parents=True, exist_ok=True)
        return AutoClient(
            self._credentials, str(self._folder), digest_cache(str(self._folder))
        )


def reply_store(client: ProviderClient) -> DigestStore:
    """Return the part of the request cache that has a client's replies."""
    config = client.cache.config
    # `JudgeClients` makes every client with this cache.
    assert isinstance(config, DigestCacheConfig)
    return config.open_store()


class JudgesAsBatches(AsBatches):
    """Sends requests to judges about the answers of unfinished runs. Judges without batches are left to the run."""

    def __init__(self, plan: BatchPlan, local_path: Path):
        super().__init__(plan)
        self._local_path = local_path

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Send the requests to judges that have no reply and are in no batch."""
        if not spec.annotators:
            return
        (annotator,) = spec.annotators
        credentials = runner.annotator_executor.factory.credentials
        check_annotators([annotator], credentials)
        names = judge_names(annotator, credentials)
        clients = JudgeClients(self._local_path, credentials)
        services = []
        for name in names:
            services.append(
                _find_service_name(clients.client(name), self._plan.as_files)
            )
        if not (services and all(services)):
            _log.info(f"{spec.name}: its judge has no batches and is asked directly")
            return
        states = []
        with runner.prepare(spec) as run:
            for asked in run.requests:
                state = replace(asked.state, result=find_answer(asked, run.journal))
                if is_answered(state):
                    states.append(state)
        questions = []
        for state in states:
            instance = str(state.instance.id)
            for request in judge_requests(annotator, state):
                questions.append((instance, request))
        with Ledger(runner.run_path(spec)) as ledger:
            for name, service in zip(names, services, strict=True):
                receiver = Receiver(name, service, True)
                client = clients.client(name)
                _send_questions(
                    receiver, client, questions, ledger, self._plan.batch_size
                )


def _send_questions(
    receiver: Receiver,
    client: ProviderClient,
    questions: JudgeQuestions,
    ledger: Ledger,
    batch_size: int | None,
) -> None:
    unsent: dict[str, _Unsent] = {}
    for instance, question in questions:
        recorder = _Recorder(client)
        make_judge(receiver.deployment, recorder).ask(question)
        # Requests to judges are never elided, so the whole request is the request itself.
        for name, sent in recorder.unsent.items():
            unsent[name] = _Unsent(sent, partial(replace, sent), instance)
    submission = _Submission(
        receiver,
        client,
        lambda request: try_once(client.make_request, request).result,
        ledger,
    )
    submission.send_all(unsent, batch_size)
    about = f"{len(questions)} questions to {receiver.deployment}"
    _log.info(f"{about}: {len(unsent)} without a reply, {submission.summary()}")


class _Recorder(Client):
    """Replaces a judge's client: it returns replies from the cache, and stores the requests without a reply."""

    def __init__(self, client: ProviderClient):
        self._client = client
        self._store = reply_store(client)
        self.unsent: dict[str, Request] = {}

    def make_request(self, request: Request) -> RequestResult:
        """Return the reply in the cache, or else a failure that is not retriable."""
        key = self._client.cache_key(request)
        if self._store.contains(key):
            return self._client.make_request(request)
        self.unsent[self._store.name(key)] = request
        # After a temporary failure the judge would wait and ask again.
        return make_failure(Failure.BAD_REQUEST, "there is no reply yet")
