"""Tests of how long a request may take for a deployment, and of clients that cannot be made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.common.local_context import LocalContext

from helm_longctx.errors import InputError
from helm_longctx.models.apis.sending import Sender
from helm_longctx.run_settings import TIMEOUT, RunSettings, settings_in_use
from helm_longctx.runner.sending import make_sender

OPENAI = "helm.clients.openai_client.OpenAIClient"


def sender(folder: Path, class_name: str, **arguments: Any) -> Sender:
    name = (
        f"test/{class_name.rpartition('.')[2]}-{'-'.join(map(str, arguments.values()))}"
    )
    spec = ClientSpec(class_name, arguments)
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical")
    )
    return make_sender(LocalContext(str(folder)), name, settings_in_use())


@pytest.mark.parametrize(
    ("class_name", "arguments", "limit"),
    [
        (OPENAI, {"api_key": "sk"}, RunSettings.request_timeout),
        (OPENAI, {"api_key": "sk", "timeout": 7}, RunSettings.request_timeout),
        (OPENAI, {"api_key": "sk", "timeout": 7200}, 7200),
        ("tests.runner.making.PlainClient", {}, RunSettings.request_timeout),
        ("helm_longctx.models.baselines.clients.NullClient", {}, None),
    ],
)
def test_limits(
    class_name: str, arguments: dict[str, Any], limit: float | None, tmp_path: Path
) -> None:
    """A deployment can allow more time than others, and a model in this process has no limit."""
    assert sender(tmp_path, class_name, **arguments).limit == limit


def test_a_wrong_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong setting is refused by name."""
    monkeypatch.setenv(TIMEOUT, "soon")
    with pytest.raises(
        InputError, match=f"{TIMEOUT}='soon' is invalid; give a number above 0"
    ):
        sender(tmp_path, "helm_longctx.models.baselines.clients.NullClient")


@pytest.mark.parametrize(
    ("class_name", "arguments", "error"),
    [
        (OPENAI, {}, "bad_key: .*api_key"),
        (OPENAI, {"api_key": "sk", "no_such": 1}, "bad_request: .*no_such"),
        ("no.such.Client", {}, "missing_package: No module named 'no'"),
    ],
)
def test_clients_that_cannot_be_made(
    class_name: str,
    arguments: dict[str, Any],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that cannot be made ends in one line that names the deployment and what is missing."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=rf"test/\w+-\S* cannot be asked: {error}"):
        sender(tmp_path, class_name, **arguments)
