"""The settings of a process's work: limits, data, judges. Nothing else reads our environment variables.

They are made once: from a configuration where there is one (`config.settings.make_settings`), and otherwise from the
environment. Where our own code calls, they are passed. HELM makes scenarios, clients and annotators by the names of
their classes, and passes nothing of ours to them. So these read the settings of the work in progress
(`settings_in_use`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from helm_longctx.errors import InputError

MEBIBYTE = 1 << 20

TIMEOUT = "HELM_LONGCTX_TIMEOUT"
TRIES = "HELM_LONGCTX_TRIES"
WAIT = "HELM_LONGCTX_WAIT"
MAX_REPLY = "HELM_LONGCTX_MAX_REPLY"
MAX_COST = "HELM_LONGCTX_MAX_COST"
PRICES = "HELM_LONGCTX_PRICES"
MIRROR = "HELM_LONGCTX_DATA"
SANDBOX = "HELM_LONGCTX_SANDBOX"
TOKEN_TIMEOUT = "HELM_LONGCTX_TOKEN_TIMEOUT"  # noqa: S105 - the name of a variable
JUDGE_WAIT = "HELM_LONGCTX_JUDGE_WAIT"
JUDGE_TIMEOUT = "HELM_LONGCTX_JUDGE_TIMEOUT"
JUDGE_READINGS = "HELM_LONGCTX_JUDGE_READINGS"
JUDGE_PARALLEL = "HELM_LONGCTX_JUDGE_PARALLEL"
WORKERS = "HELM_LONGCTX_WORKERS"
GPUS = "HELM_LONGCTX_GPUS"

_REPOSITORY = "_REPO"
"""The end of the name of a variable that gives another repository of a data set."""

_MOST = 1e6
"""Every number is below this one."""


@dataclass(frozen=True)
class JudgeSettings:
    """How judges are asked.

    Args:
        wait: longest wait in seconds after the first failed call. It doubles with each further one.
        timeout: seconds that a call may take. Providers' libraries would wait ten minutes.
        readings: number of replies to request until one has a verdict.
        parallel: number of calls at the same time.
    """

    wait: float = 2.0
    timeout: float = 300.0
    readings: int = 3
    parallel: int = 8


@dataclass(frozen=True)
class Credentials:
    """A key, or a client for which a server makes tokens. What is not set is an empty text."""

    api_key: str = field(default="", repr=False)
    client_id: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)
    token_url: str = ""
    scope: str = ""


@dataclass(frozen=True)
class RunSettings:
    """The settings of a process's work.

    Args:
        request_timeout: seconds that a request may take with all its attempts. A million tokens take a server minutes
            to read.
        tries: number of attempts at a request that fails temporarily. By default they take as long as HELM's own.
        wait: seconds before the second attempt; doubled before each further one.
        max_reply: mebibytes that a reply of a server may have after decompression.
        max_cost: dollars that the requests of a process may cost. None sets no limit.
        prices: a YAML file of prices (`models.apis.prices.read_prices`).
        mirror: the folder of data into which nothing is downloaded.
        sandbox: the sandbox in which programs of models may be run. Empty allows none.
        token_timeout: seconds in which a server has to make a token.
        workers: number of tasks that Ray runs at the same time, by default one for each CPU.
        draws_samples: whether the work draws samples of its own on purpose, as a gate does for two deployments.
        gpus: GPUs of a task of Ray whose model runs in its process. It can be a fraction.
        judge_keys: a configuration's own credentials by the prefix of the variables that they replace (`GPT_JUDGE`).
        repositories: by the variable that a data set names, the repository from which it is downloaded instead.
    """

    request_timeout: float = 1800.0
    tries: int = 6
    wait: float = 5.0
    max_reply: float = 64.0
    max_cost: float | None = None
    prices: Path | None = None
    mirror: Path | None = None
    sandbox: str = ""
    token_timeout: float = 60.0
    workers: int | None = None
    draws_samples: bool = False
    gpus: float = 1.0
    judge: JudgeSettings = JudgeSettings()
    judge_keys: Mapping[str, Credentials] = field(default_factory=dict)
    repositories: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def max_reply_bytes(self) -> int:
        """The most bytes of a decompressed reply."""
        return int(self.max_reply * MEBIBYTE)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use these settings while the block runs."""
        global _in_use
        before = _in_use
        _in_use = self
        try:
            yield
        finally:
            _in_use = before


# One value for the process, not one for each thread: requests are sent by threads of our own and of HELM, and calls of
# `evaluate` take turns.
_in_use: RunSettings | None = None


def settings_in_use() -> RunSettings:
    """Return the settings of the work in progress. Without work of ours, as in HELM's commands, the environment has them.

    Raises:
        InputError: an environment variable has a wrong value.
    """
    return _read_settings() if _in_use is None else _in_use


def _read_settings() -> RunSettings:
    """Return the settings in the environment, with defaults for variables that are not set or empty.

    Raises:
        InputError: an environment variable has a wrong value.
    """
    defaults = RunSettings()
    judge = JudgeSettings(
        wait=_read_number(JUDGE_WAIT) or defaults.judge.wait,
        timeout=_read_number(JUDGE_TIMEOUT) or defaults.judge.timeout,
        readings=_read_whole(JUDGE_READINGS) or defaults.judge.readings,
        parallel=_read_whole(JUDGE_PARALLEL) or defaults.judge.parallel,
    )
    repositories = {}
    for name, value in os.environ.items():
        if name.endswith(_REPOSITORY):
            repositories[name] = value
    return RunSettings(
        request_timeout=_read_number(TIMEOUT) or defaults.request_timeout,
        tries=_read_whole(TRIES) or defaults.tries,
        wait=_read_number(WAIT) or defaults.wait,
        max_reply=_read_number(MAX_REPLY) or defaults.max_reply,
        max_cost=_read_number(MAX_COST),
        prices=_read_path(PRICES),
        mirror=_read_path(MIRROR),
        sandbox=os.environ.get(SANDBOX, ""),
        token_timeout=_read_number(TOKEN_TIMEOUT) or defaults.token_timeout,
        workers=_read_whole(WORKERS),
        gpus=_read_number(GPUS) or defaults.gpus,
        judge=judge,
        repositories=repositories,
    )


def find_credentials(prefix: str) -> Credentials:
    """Return the credentials in the variables that start with a prefix, or those that a configuration has for it."""
    configured = settings_in_use().judge_keys.get(prefix)
    if configured is not None:
        return configured
    values = {}
    for credential in fields(Credentials):
        values[credential.name] = read_variable(f"{prefix}_{credential.name.upper()}")
    return Credentials(**values)


def read_variable(name: str) -> str:
    """Return the value of a variable that a user names, for example for a key, without surrounding spaces.

    It is empty if the variable is not set.
    """
    return os.environ.get(name, "").strip()


def check_repository_setting(name: str) -> None:
    """Raise a `ValueError` if a variable does not have the name of one for a repository."""
    if not name.endswith(_REPOSITORY):
        raise ValueError(
            f"setting={name!r} is invalid; give a name that ends in {_REPOSITORY}"
        )


def _read_path(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value) if value else None


def _read_whole(name: str) -> int | None:
    number = _read_number(name, is_whole=True)
    return None if number is None else int(number)


def _read_number(name: str, is_whole: bool = False) -> float | None:
    """Return the number in a variable. Returns None if it is not set or empty. A number is never 0."""
    value = os.environ.get(name)
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < _MOST or (is_whole and number % 1):
        kind = "whole number" if is_whole else "number"
        raise InputError(f"{name}={value!r} is invalid; give a {kind} above 0")
    return number
