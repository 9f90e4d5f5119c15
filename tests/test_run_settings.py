"""Settings are objects, which are made once and passed."""

from __future__ import annotations

import os
import pickle
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.run_settings import (
    GPUS,
    JUDGE_PARALLEL,
    MAX_COST,
    MAX_REPLY,
    MIRROR,
    PRICES,
    SANDBOX,
    TIMEOUT,
    TRIES,
    WORKERS,
    Credentials,
    JudgeSettings,
    RunSettings,
    find_credentials,
    settings_in_use,
)


def test_settings_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings in use come before variables, in all threads, and end with the block, also after an error."""
    monkeypatch.setenv(TIMEOUT, "50")
    before = dict(os.environ)
    seen = []
    with suppress(KeyError), RunSettings(request_timeout=60).use():
        with replace(settings_in_use(), tries=2).use():
            thread = threading.Thread(target=lambda: seen.append(settings_in_use()))
            thread.start()
            thread.join()
            assert seen == [RunSettings(request_timeout=60, tries=2)]
        assert settings_in_use() == RunSettings(request_timeout=60)
        assert dict(os.environ) == before
        raise KeyError
    assert settings_in_use().request_timeout == 50


def test_each_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variable has a typed field. Without variables, the fields have their defaults."""
    for name in list(os.environ):
        if name.startswith("HELM_LONGCTX_"):
            monkeypatch.delenv(name)
    assert settings_in_use() == RunSettings()
    values = {
        TIMEOUT: "2.5",
        TRIES: "1",
        MAX_REPLY: "0.5",
        MAX_COST: "0.25",
        PRICES: "prices.yaml",
        MIRROR: "data",
        SANDBOX: "bubblewrap",
        WORKERS: "12",
        GPUS: "0.5",
        JUDGE_PARALLEL: "2",
        "HELM_LONGCTX_HELMET_REPO": "my/copy",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = settings_in_use()
    assert settings == RunSettings(
        request_timeout=2.5,
        tries=1,
        max_reply=0.5,
        max_cost=0.25,
        prices=Path("prices.yaml"),
        mirror=Path("data"),
        sandbox="bubblewrap",
        workers=12,
        gpus=0.5,
        judge=JudgeSettings(parallel=2),
        repositories={"HELM_LONGCTX_HELMET_REPO": "my/copy"},
    )
    assert settings.max_reply_bytes == 1 << 19
    # Workers of Ray get the object itself.
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        (MAX_COST, "0", "number"),
        (MAX_COST, "free", "number"),
        (TIMEOUT, "-1", "number"),
        (TRIES, "0", "whole number"),
        (TRIES, "1.5", "whole number"),
        (WORKERS, "nan", "whole number"),
    ],
)
def test_a_wrong_value_is_refused(
    name: str, value: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 0 is not taken for a variable that is not set, and no other wrong value is replaced by a default."""
    monkeypatch.setenv(name, value)
    with pytest.raises(
        InputError, match=f"^{name}='{value}' is invalid; give a {kind} above 0$"
    ):
        settings_in_use()


def test_a_limit_of_nothing_is_a_limit() -> None:
    """A limit of 0 dollars differs from no limit."""
    assert RunSettings(max_cost=0).max_cost is not None
    assert RunSettings().max_cost is None


def test_credentials_of_a_configuration_hide_all_variables_of_their_prefix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A configuration's key replaces every variable of the judge's family, and no other one."""
    monkeypatch.setenv("GPT_JUDGE_CLIENT_ID", "an id")
    monkeypatch.setenv("CLAUDE_JUDGE_API_KEY", " a key ")
    keys = {"GPT_JUDGE": Credentials(api_key="own")}
    with RunSettings(judge_keys=keys).use():
        assert find_credentials("GPT_JUDGE") == Credentials(api_key="own")
        assert find_credentials("CLAUDE_JUDGE") == Credentials(api_key="a key")
    assert find_credentials("GPT_JUDGE") == Credentials(client_id="an id")


def test_settings_do_not_show_keys() -> None:
    """The text of settings, which an error or a log can have, names no secret."""
    secret = Credentials(
        api_key="a secret", client_id="a secret", client_secret="a secret"
    )
    settings = RunSettings(
        judge_keys={"GPT_JUDGE": secret}, repositories={"ANY_REPO": "a secret"}
    )
    assert "a secret" not in repr(settings)
