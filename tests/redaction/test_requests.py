"""Tests of what is redacted in a client's results, and since when a deployment's keys are known."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
)
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.request import ErrorFlags, GeneratedOutput, Request, RequestResult

from helm_longctx.helm.patches import apply_patches
from helm_longctx.redaction.text import MARK, redact

KEY = "deployment-key-Zq7Zq7"


class EchoClient(Client):
    """A client that repeats its key in its answer and in its error."""

    def __init__(self, api_key: str):
        self._key = api_key

    def make_request(self, request: Request) -> RequestResult:
        """Return an answer or an error that contains the key."""
        completion = GeneratedOutput(text=self._key, logprob=0, tokens=[])
        flags = ErrorFlags(is_retriable=False)
        success = request.prompt == "answer"
        return RequestResult(
            success,
            [],
            [completion],
            False,
            error=f"wrong: {self._key}",
            error_flags=flags,
        )


def deployment() -> ModelDeployment:
    return ModelDeployment(
        "test/echo", ClientSpec(f"{__name__}.EchoClient", {"api_key": KEY})
    )


def test_errors_are_redacted_and_answers_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors are redacted, and answers are not, because an answer is evidence, as docs/security.md says."""
    apply_patches()
    monkeypatch.setitem(DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT, "test/echo", deployment())
    client = AutoClient({}, str(tmp_path), BlackHoleCacheBackendConfig())
    for prompt in ("answer", "error"):
        request = Request(
            model="test/echo", model_deployment="test/echo", prompt=prompt
        )
        result = client.make_request(request)
        assert (result.completions[0].text, result.error) == (KEY, f"wrong: {MARK}")


def test_keys_are_known_before_a_client_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The keys of deployments that exist before the hooks and of later ones are known before a client is made."""
    apply_patches()
    deployment()
    assert redact(f"wrong: {KEY}") == f"wrong: {MARK}"
    there = ModelDeployment("test/there", ClientSpec("none", {}))
    there.client_spec.args["api_key"] = "other-key-Zq7Zq7"
    monkeypatch.setitem(DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT, "test/there", there)
    assert "other-key-Zq7Zq7" in redact("other-key-Zq7Zq7")
    unpatched = inspect.unwrap(ModelDeployment.__post_init__)
    monkeypatch.setattr(ModelDeployment, "__post_init__", unpatched)
    apply_patches()
    assert redact("other-key-Zq7Zq7") == MARK
