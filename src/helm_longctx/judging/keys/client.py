"""Finds a judge's key, creates HELM clients that use it, and asks whether the judge exists.

A key is looked up in the variables of the judge's family and its host, in HELM's credentials, and in the variables of
its library. A judge is asked before a run sends anything to its model. The reply is not cached on disk, because a judge
that answered last month may be gone, but each judge is asked only once in a process.
"""

import inspect
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from helm.common.optional_dependencies import OptionalDependencyNotInstalled

from helm_longctx.environment import page_address, require
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of_error
from helm_longctx.helm.patches import apply_patches
from helm_longctx.helm_api import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENTS
from helm_longctx.helm_api import (
    AutoClient,
    BlackHoleCacheBackendConfig,
    Client,
    ModelDeployment,
    Request,
    RequestResult,
    get_class_by_name,
    get_model_deployment,
)
from helm_longctx.helm_log import helm_log
from helm_longctx.judging.judge import messages_before
from helm_longctx.models.apis.availability import Availability, ask_model, tiny_request
from helm_longctx.models.apis.oauth import PAGE, TokenError, find_tokens
from helm_longctx.models.apis.provider import client_provider, helm_clients, providers
from helm_longctx.models.apis.sending import limit_time
from helm_longctx.models.results import failure_of, make_failure
from helm_longctx.process_state import undo_at_end
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.redaction.logs import warn_once
from helm_longctx.redaction.text import redact, register_credentials, register_secret
from helm_longctx.run_settings import find_credentials, settings_in_use

FAMILIES = {
    "CLAUDE": r"claude|\banthropic\b",
    "LLAMA": r"llama|\bmeta\b",
    "GPT": r"gpt|\bo[1-9]\b|\bopenai\b",
}
"""The families of judges (their variables begin with these names), and patterns for models. The first match counts."""

_LIBRARIES = {
    **{name: client.key_prefix for name, client in helm_clients()},
    "OpenRouterClient": "OPENROUTER",
    "TogetherClient": "TOGETHER",
    "TogetherChatClient": "TOGETHER",
    "TogetherCompletionClient": "TOGETHER",
}
"""HELM's clients that need a key, and the prefix of the variable from which their library reads it."""

_IN_FILE = "the key in HELM's credentials file"

_SECONDS = 30.0
"""Longest wait for the reply, if calls have no shorter limit. A judge that needs longer is not known to be missing, so
the run begins."""

_INSTEAD = (
    f"give judge=DEPLOYMENT for another judge ({page_address('judges')} says how to"
    " choose one), or judge=none to run without judged scores"
)

_REASONS = {
    Failure.UNKNOWN_MODEL: "does not exist or was withdrawn",
    Failure.BAD_KEY: "refuses the key",
}
"""What errors say of a judge that no later call can reach."""

_KeySource = Callable[[str | None], str]
"""Function that returns the key to use now. It gets a key that was refused, or None, and returns another key than that
one, or the same if there is no other."""


@dataclass(frozen=True)
class _FoundKey:
    """A source of keys, and the name of the variable or file that it comes from, for logs and errors."""

    origin: str
    keys: _KeySource


class _UnavailableJudgeError(InputError):
    """A judge cannot be used because its key or the package of its client is missing."""


class _MissingPackageError(_UnavailableJudgeError):
    """A judge cannot be used because the package of its client is missing."""


def find_key(
    deployment: ModelDeployment,
    credentials: Mapping[str, Any],
) -> _FoundKey | None:
    """Find a client's key, None if it takes none or needs none and none is set, or raise an `InputError`."""
    needs = _needs(deployment)
    if needs is None:
        return None
    library, needed = needs
    prefixes = [*_judge_prefix(deployment), _host_prefix(deployment)]
    # As in HELM's `provide_api_key`, but names with dots are read, too. HOCON keeps their quotes.
    names = {
        name.strip('"'): key for name, key in credentials.get("deployments", {}).items()
    }
    # HOCON's `get` raises an error for a missing name without a default.
    in_file = credentials.get(f"{deployment.host_organization}ApiKey", None)
    in_file = in_file or names.get(deployment.name)
    key = _first_in_environment(prefixes)
    if not key and in_file:
        key = _make_fixed(_IN_FILE, in_file)
    if not key and library:
        key = _first_in_environment([library])
    if key is None and needed:
        raise missing_key_error(deployment)
    return key


def _needs(deployment: ModelDeployment) -> tuple[str | None, bool] | None:
    """Return the variable's prefix that a client's library reads, and whether it needs a key, or None if it takes none."""
    spec = deployment.client_spec
    # Our clients read the variables themselves.
    if "api_key_env" in spec.args or "token_env" in spec.args:
        return None
    if "api_key" in spec.args:
        register_secret(str(spec.args["api_key"]))
        return None
    try:
        client = get_class_by_name(spec.class_name)
    except (ImportError, OptionalDependencyNotInstalled) as error:
        why = f"its client cannot be loaded: {error}"
        for provider in providers().values():
            if spec.class_name.rpartition(".")[2] in provider.helm_clients:
                package = provider.package
                why = f"its client needs {package}; install with: pip install '{provider.install}'"
        raise _MissingPackageError(f"judge={deployment.name}: {why}") from None
    parameter = inspect.signature(client.__init__).parameters.get("api_key")
    if parameter is None:
        return None
    own = getattr(client, "provider", None)
    if own:
        # The key of our client's library is for no other address.
        if spec.args.get("base_url"):
            return (None, False)
        return (own.key_prefix, True)
    bases = []
    for base in client.__mro__:
        if base.__module__.startswith("helm.clients."):
            bases.append(base)
    names = [base.__name__ for base in bases]
    # Grok's client inherits from OpenAI's. So its library needs a key, but it must not get the one for OpenAI.
    library = _LIBRARIES.get(names[0]) if names else None
    is_required = parameter.default is inspect.Parameter.empty
    return library, is_required or any(name in _LIBRARIES for name in names)


def _judge_prefix(deployment: ModelDeployment) -> list[str]:
    """Return the prefix of the judge's own variables, in a list; an empty list for a model of another family."""
    family = family_of(f"{deployment.name} {deployment.model_name or ''}")
    return [f"{family}_JUDGE"] if family else []


def family_of(name: str) -> str | None:
    """Return the family of a judge by its name, such as `GPT`, or None if it belongs to none of `FAMILIES`."""
    for family, pattern in FAMILIES.items():
        if re.search(pattern, name.lower()):
            return family
    return None


def describe_key(family: str | None, origin: str, is_own: bool) -> str:
    """Say where a judge's key comes from, for the log, in the words of NVIDIA's fork of HELM, for which people search.

    Args:
        family: the judge's family, as in `FAMILIES`.
        origin: the variable's name, `PREFIX_CLIENT_ID` or `PREFIX_JUDGE` for tokens, or the file.
        is_own: whether the key is for the judge alone.
    """
    source = origin if origin == _IN_FILE else f"environment variable {origin}"
    if family and not is_own:
        return f"{family}_JUDGE_API_KEY is not set, setting to {source}: Using the main API key"
    label = f"{family} judge" if family else "judge"
    is_token = origin.endswith(("_CLIENT_ID", "_JUDGE"))
    return f"Using {label} {'OAuth tokens' if is_token else 'API key'} from {source}"


def _host_prefix(deployment: ModelDeployment) -> str:
    return re.sub(r"\W", "_", deployment.host_organization).upper()


def _first_in_environment(prefixes: list[str]) -> _FoundKey | None:
    for prefix in prefixes:
        if tokens := find_tokens(prefix):
            return _FoundKey(f"{prefix}_CLIENT_ID", tokens.current)
        if key := find_credentials(prefix).api_key:
            return _make_fixed(f"{prefix}_API_KEY", key)
    return None


def _make_fixed(origin: str, key: str) -> _FoundKey:
    """Return a source with a single key."""
    register_secret(key)
    return _FoundKey(origin, lambda refused: key)


def lacks_key(deployment: ModelDeployment, credentials: Mapping[str, Any]) -> bool:
    """Whether a client could have a key (perhaps its server needs one), and none is set. Raises as `find_key`."""
    if _needs(deployment) is None or find_key(deployment, credentials) is not None:
        return False
    provider = client_provider(deployment.client_spec.class_name)
    return not (
        provider and provider.client.takes_tokens and find_tokens(provider.key_prefix)
    )


def missing_key_error(deployment: ModelDeployment) -> _UnavailableJudgeError:
    """Return the error for a judge that needs a key and has none. It names the variables that can have the key."""
    library = (_needs(deployment) or (None, False))[0]
    prefixes = list(
        dict.fromkeys(
            filter(
                None, [*_judge_prefix(deployment), _host_prefix(deployment), library]
            )
        )
    )
    keys = ", ".join(f"{prefix}_API_KEY" for prefix in prefixes)
    return _UnavailableJudgeError(
        f"judge={deployment.name} needs a key, but none is set; set {keys},"
        f" {prefixes[0]}_CLIENT_ID with {prefixes[0]}_CLIENT_SECRET and {prefixes[0]}_TOKEN_URL,"
        f" or {deployment.host_organization}ApiKey in HELM's credentials.conf; see {PAGE}"
    )


def judge_client(
    deployment: str,
    client: AutoClient,
    seconds: float | None = None,
) -> Client:
    """Create a HELM client for a judge's deployment, with the judge's own credentials (`check_credentials`).

    The client attempts each request once, or twice if the key is refused and another key is available, within some
    seconds. If the judge has a key, the client raises no errors but `InputError`: it returns them in results, without
    secrets.
    """
    apply_patches()  # HELM's Slurm workers do not load the plugin, so it has not done so
    register_credentials(client.credentials)
    record = get_model_deployment(deployment)
    seconds = seconds or settings_in_use().judge.timeout
    key_source = find_key(record, client.credentials)
    if key_source is None:
        for prefix in _judge_prefix(record):
            credentials = find_credentials(prefix)
            if credentials.api_key or credentials.client_id:
                helm_log.warning(
                    f"judge {deployment}: its client takes no key, so {prefix}_* are not used"
                )
        # HELM's AutoClient has no public way to get one deployment's client.
        return limit_time(client._get_client(deployment), seconds)
    family = family_of(f"{deployment} {record.model_name or ''}")
    is_own = key_source.origin.startswith(f"{family}_JUDGE")
    about = describe_key(family, key_source.origin, is_own)
    helm_log.info(f"{about} for model: {deployment}")

    def build(key: str) -> Client:
        # HELM's `provide_api_key` looks the key up under this name.
        credentials = {**client.credentials, f"{record.host_organization}ApiKey": key}
        # The judge gets a client of its own, because AutoClient keeps one for each deployment, with the key that it had
        # first.
        own = AutoClient(
            credentials, client.file_storage_path, client.cache_backend_config
        )
        return limit_time(own._get_client(deployment), seconds)

    return RenewingClient(build, key_source.keys, key_source.origin)


class RenewingClient(Client):
    """Sends requests with the current key. A request whose key is refused is sent once more with a new key."""

    def __init__(
        self,
        build: Callable[[str], Client],
        keys: _KeySource,
        origin: str,
    ):
        self._build = build
        self._keys = keys
        self._origin = origin
        self._lock = threading.Lock()
        self._built: tuple[str, Client] | None = None
        self._useless: str | None = None

    def make_request(self, request: Request) -> RequestResult:
        """Send a request, or raise an `InputError`. Errors have no secrets, and a refused key is not retried."""
        try:
            key = self._keys(None)
            result = self._send(request, key)
            # If a new key is refused as well, the problem is not the key: do not request more keys.
            if _is_refusal(result) and key != self._useless:
                new = self._keys(key)
                result = self._send(request, new) if new != key else result
                self._useless = new if _is_refusal(result) else None
        except TokenError as error:
            return make_failure(
                Failure.BAD_KEY if error.refused else Failure.TEMPORARY, str(error)
            )
        if _is_refusal(result):
            return make_failure(
                Failure.BAD_KEY, f"{self._origin} was refused: {result.error}"
            )
        if result.error:
            return replace(result, error=redact(result.error))
        return result

    def current(self) -> Client:
        """Return the client with the current key. Raises a `TokenError` if no token could be obtained."""
        return self._client(self._keys(None))

    def _send(self, request: Request, key: str) -> RequestResult:
        try:
            return self._client(key).make_request(request)
        except InputError:
            raise
        except (
            Exception
        ) as error:  # clients raise errors of any type, and they may quote the key
            return make_failure(
                failure_of_error(error), f"{type(error).__name__}: {error}"
            )

    def _client(self, key: str) -> Client:
        with self._lock:
            # One client is kept, because each has a pool of connections of its own.
            if self._built is None or self._built[0] != key:
                self._built = (key, self._build(key))
            return self._built[1]


def _is_refusal(result: RequestResult) -> bool:
    return failure_of(result) is Failure.BAD_KEY


class UnavailableClient(Client):
    """Stands for a client that cannot be created. Every request fails with the reason."""

    def __init__(self, reason: str):
        self._reason = reason

    def make_request(self, request: Request) -> RequestResult:
        """Raise an `InputError` with the reason."""
        raise InputError(self._reason)


def check_credentials(deployment: str, credentials: Mapping[str, Any]) -> None:
    """Raise an `InputError`, without values, if a judge lacks a key or a part of its OAuth variables."""
    find_key(get_model_deployment(deployment), credentials)


def check_judge(deployment: str, credentials: Mapping[str, Any]) -> None:
    """Raise an `InputError` if a judge has no key, or its server refuses the key or has no such model."""
    check_credentials(deployment, credentials)
    availability = _availability(deployment, credentials)
    record = get_model_deployment(deployment)
    if availability.failure is Failure.BAD_KEY and lacks_key(record, credentials):
        raise missing_key_error(record)
    if availability.exists is False:
        raise InputError(f"judge={deployment} {_explain(availability)}; {_INSTEAD}")


def find_official_judge(official: str, credentials: Mapping[str, Any]) -> str | None:
    """Return the deployment that `judge=auto` stands for: the official judge, on the first host that answers.

    It is None, after a warning, if there is no key for any host: answers are then not judged. Another judge is never
    taken instead: a judge that does not exist any more, or a missing extra `judges`, raises an `InputError`.
    """
    names = list(_hosts(official, credentials))
    if not names:
        # The runner and the annotator of each run both look for the judge.
        why = f"there is no key for the official judge {official}"
        try:
            find_key(get_model_deployment(official), credentials)
        except _MissingPackageError as error:
            why = str(error)
        except _UnavailableJudgeError:  # without a key
            pass
        warn_once(f"answers are not judged: {why}; {_INSTEAD}")
        return None
    require("judges", f"judge=auto ({official})")
    hosts = {}
    for name in names:
        hosts[name] = _availability(name, credentials)
    # A failure that may pass says nothing about the official host, but another host must have answered.
    chosen = next((name for name, host in hosts.items() if host.exists), None)
    # The official host with a temporary failure is better than none: the run begins and asks again later.
    if chosen is None and official in hosts and hosts[official].exists is None:
        chosen = official
    if chosen is None:
        said = "; ".join(f"{name} {_explain(host)}" for name, host in hosts.items())
        raise InputError(
            f"judge=auto: the official judge cannot be asked: {said}; {_INSTEAD}"
        )
    if chosen != official:
        helm_log.info(f"judge=auto: the official judge is asked at {chosen}")
    return chosen


def _hosts(official: str, credentials: Mapping[str, Any]) -> Iterator[str]:
    """Yield the official judge's deployments that have a key, or need none."""
    model = get_model_deployment(official).model_name
    others = [
        record.name for record in DEPLOYMENTS.values() if record.model_name == model
    ]
    for name in dict.fromkeys((official, *others)):
        record = get_model_deployment(name)
        try:
            key = find_key(record, credentials)
        except _UnavailableJudgeError:
            continue
        # The key of a judge's family belongs to one host. No other host may see it unless the user names that host.
        is_of_family = key is not None and key.origin.startswith(
            tuple(_judge_prefix(record))
        )
        if name == official or not is_of_family:
            yield name


def _explain(availability: Availability) -> str:
    words = _REASONS.get(availability.failure or Failure.UNKNOWN)
    if words:
        return f"{words} ({availability.reason})"
    return "does not answer"


_found: dict[str, Availability] = {}
_lock = threading.Lock()


def _availability(deployment: str, credentials: Mapping[str, Any]) -> Availability:
    record = get_model_deployment(deployment)
    with _lock:  # HELM makes annotators in several threads
        # The key is the whole record and not the name, because a deployment can be registered anew with another
        # address.
        key = repr(record)
        if key not in _found:
            _found[key] = _ask(record, credentials)
            # A judge can have a key, or a server, when the next command begins.
            undo_at_end(partial(_found.pop, key, None))
        return _found[key]


def _ask(record: ModelDeployment, credentials: Mapping[str, Any]) -> Availability:
    try:
        own = get_class_by_name(record.client_spec.class_name)
        has_address = "base_url" in inspect.signature(own.__init__).parameters
        # A local model would only be loaded for the question.
        if not (
            has_address or any(base.__name__ in _LIBRARIES for base in own.__mro__)
        ):
            return Availability()
        # HELM's client wants a folder for files. This request does not need it.
        with tempfile.TemporaryDirectory() as folder:
            clients = AutoClient(credentials, folder, BlackHoleCacheBackendConfig())
            seconds = min(_SECONDS, settings_in_use().judge.timeout)
            client = judge_client(record.name, clients, seconds)
            model = record.model_name or record.name
            messages = messages_before(record)
            return ask_model(client, tiny_request(model, record.name, messages))
    except Exception as error:  # the constructors of HELM's clients raise many kinds
        return Availability(failure_of_error(error), describe_error(error))
