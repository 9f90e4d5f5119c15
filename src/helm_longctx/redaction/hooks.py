"""Redacts secrets in HELM's logs and in the errors of its clients."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT, ModelDeployment
from helm.clients.auto_client import AutoClient
from helm.common.request import Request, RequestResult

from helm_longctx.redaction.logs import redact_logs, redact_uncaught
from helm_longctx.redaction.text import redact, register_arguments, register_credentials, register_environment


def install_redaction() -> None:
    """Redact the logs, errors and warnings of this process. Idempotent."""
    register_environment()
    register_deployments()
    redact_logs()
    redact_uncaught()
    redact_requests()


def register_deployments() -> None:
    """Register the secrets in the client arguments of all deployments, also of those that are registered later."""
    for deployment in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.values():
        register_arguments(deployment.client_spec.args)
    if hasattr(ModelDeployment, "redacts"):
        return
    init = ModelDeployment.__post_init__

    @functools.wraps(init)
    def registering(self: ModelDeployment) -> None:
        register_arguments(self.client_spec.args)
        init(self)

    ModelDeployment.__post_init__, ModelDeployment.redacts = registering, True


def redact_requests() -> None:
    """Register the credentials of every client that HELM creates, and redact the errors in their results.

    HELM stores errors in `scenario_state.json`. All its clients are created and called through `AutoClient`.
    """
    if hasattr(AutoClient, "redacts"):
        return
    init, make_request = AutoClient.__init__, AutoClient.make_request

    @functools.wraps(init)
    def registering(self: AutoClient, credentials: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        register_credentials(credentials)
        init(self, credentials, *args, **kwargs)

    @functools.wraps(make_request)
    def redacting(self: AutoClient, request: Request) -> RequestResult:
        result = make_request(self, request)
        return replace(result, error=redact(result.error)) if result.error else result

    AutoClient.__init__, AutoClient.make_request, AutoClient.redacts = registering, redacting, True
