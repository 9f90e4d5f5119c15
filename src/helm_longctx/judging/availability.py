"""Asks whether judges exist, before a run sends anything to its model.

A judge is asked with one tiny request, not by its provider's list of models: hosts list models that they do not serve,
Azure lists models instead of deployments, and some servers have no list. The reply is not cached on disk, because a
judge that answered last month may be gone, but each judge is asked only once in a process.
"""

from __future__ import annotations

import inspect
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from helm.benchmark.model_deployment_registry import ModelDeployment, get_model_deployment
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.object_spec import get_class_by_name
from helm.common.request import Request

from helm_longctx.errors import InputError, shorten
from helm_longctx.failures import Failure, failure_of, failure_of_error
from helm_longctx.judging.calls import request_once
from helm_longctx.judging.judge import messages_before
from helm_longctx.judging.keys.client import check_credentials, judge_client
from helm_longctx.judging.keys.find import LIBRARIES, UnavailableJudgeError, find_key, judge_prefix
from helm_longctx.redaction.text import redact

SECONDS = 30.0
"""Longest wait for the reply. A judge that needs longer is not known to be missing, so the run begins."""

INSTEAD = (
    "give judge=DEPLOYMENT for another judge (docs/judges.md says how to choose one), or judge=none to run without"
    " judged scores"
)

PROMPT = "Reply with the word yes."
"""The request. Its output limit is 16 tokens, because OpenAI's newer models refuse a smaller one."""

_MISSING: dict[Failure | None, str] = {
    Failure.UNKNOWN_MODEL: "does not exist or was withdrawn",
    Failure.BAD_KEY: "refuses the key",
}
"""What errors say of a judge that no later call can reach. All other failures may pass, so they do not end a run."""


def check_judge(deployment: str, credentials: Mapping[str, Any]) -> None:
    """Check that a judge has its key and that its server knows the model.

    Args:
        deployment: name of a HELM deployment.
        credentials: content of HELM's credentials file.

    Raises:
        InputError: the judge has no key, or its server answers that there is no such model or that the key is wrong.
    """
    check_credentials(deployment, credentials)
    if reason := _outcome(deployment, credentials).reason:
        raise InputError(f"judge={deployment} {reason}; {INSTEAD}")


def find_official_judge(official: str, credentials: Mapping[str, Any]) -> str | None:
    """Return the deployment that `judge=auto` stands for: the official judge, on the first host that answers.

    Args:
        official: the official judge's deployment. Deployments of the same model on other hosts are tried after it.

    Returns:
        None, after a warning, if there is no key for any of them: answers are then not judged.

    Raises:
        InputError: there is a key, but the official judge does not exist any more. Another judge is never taken
            instead.
    """
    outcomes = {name: _outcome(name, credentials) for name in _hosts(official, credentials)}
    if not outcomes:
        _warn_once(f"answers are not judged: there is no key for the official judge {official}; {INSTEAD}")
        return None
    # A failure that may pass says nothing about the official host, but another host must have answered.
    found = next((name for name, outcome in outcomes.items() if outcome.failure is None), None)
    # The official host with a temporary failure is better than none: the run begins and asks again later.
    if found is None and official in outcomes and not outcomes[official].reason:
        found = official
    if found is None:
        said = "; ".join(f"{name} {outcome.reason or 'does not answer'}" for name, outcome in outcomes.items())
        raise InputError(f"judge=auto: the official judge cannot be asked: {said}; {INSTEAD}")
    if found != official:
        hlog(f"judge=auto: the official judge is asked at {found}")
    return found


@cache
def _warn_once(text: str) -> None:
    """Log a warning only once. The runner and the annotator of each run both look for the judge."""
    hwarn(text)


def _hosts(official: str, credentials: Mapping[str, Any]) -> Iterator[str]:
    """Yield the official judge's deployments that have a key, or need none."""
    from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENTS

    model = get_model_deployment(official).model_name
    for name in dict.fromkeys((official, *(each.name for each in DEPLOYMENTS.values() if each.model_name == model))):
        record = get_model_deployment(name)
        try:
            found = find_key(record, credentials)
        except UnavailableJudgeError:
            continue
        # The key of a judge's family belongs to one host. No other host may see it unless the user names that host.
        is_of_family = found is not None and any(found.origin.startswith(prefix) for prefix in judge_prefix(record))
        if name == official or not is_of_family:
            yield name


@dataclass(frozen=True)
class _Outcome:
    """What a judge replied.

    Args:
        failure: None if it answered, or was not asked because it is not on a server.
        error: text of the failure, without secrets.
    """

    failure: Failure | None = None
    error: str = ""

    @property
    def reason(self) -> str:
        """Why no later call can succeed; empty if one may."""
        return f"{_MISSING[self.failure]} ({shorten(self.error)})" if self.failure in _MISSING else ""


_outcomes: dict[str, _Outcome] = {}
_lock = threading.Lock()


def _outcome(deployment: str, credentials: Mapping[str, Any]) -> _Outcome:
    record = get_model_deployment(deployment)
    with _lock:  # HELM makes annotators in several threads
        # The key is the whole record and not the name, because a deployment can be registered anew with another
        # address.
        key = repr(record)
        if key not in _outcomes:
            _outcomes[key] = _ask(record, credentials)
        return _outcomes[key]


def _ask(record: ModelDeployment, credentials: Mapping[str, Any]) -> _Outcome:
    try:
        if not _is_server(record):
            return _Outcome()
        # HELM's client wants a folder for files, which this request does not need.
        with tempfile.TemporaryDirectory() as folder:
            client = judge_client(record.name, AutoClient(credentials, folder, BlackHoleCacheBackendConfig()), SECONDS)
            messages = messages_before(record)
            request = Request(
                record.model_name or record.name, record.name, prompt=PROMPT, messages=messages, max_tokens=16
            )
            result = request_once(client, request)
    except Exception as error:  # the constructors of HELM's clients raise many kinds
        return _Outcome(failure_of_error(error), redact(str(error)))
    return _Outcome(failure_of(result), redact(result.error or ""))


def _is_server(record: ModelDeployment) -> bool:
    """Return whether a deployment is asked over a network. A local model would only be loaded for the question."""
    client = get_class_by_name(record.client_spec.class_name)
    has_address = "base_url" in inspect.signature(client.__init__).parameters
    return has_address or any(base.__name__ in LIBRARIES for base in client.__mro__)
