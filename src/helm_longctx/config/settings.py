"""Makes the settings of a process from a configuration: its limits, and the keys of its judges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from helm_longctx.config.schema import CredentialNames, RunConfig
from helm_longctx.config.source_map import KeyPath
from helm_longctx.models.apis.prices import read_prices
from helm_longctx.redaction.text import register_secret
from helm_longctx.run_settings import (
    MAX_COST,
    PRICES,
    TIMEOUT,
    TRIES,
    Credentials,
    RunSettings,
    read_variable,
    settings_in_use,
)


@dataclass(frozen=True)
class _KeyName:
    """A variable that a configuration names for a part of a judge's credentials.

    Args:
        family: the judge's family, as in `Keys`.
        credential: the part, a field of `Credentials`.
        path: where the configuration has the name.
    """

    family: str
    credential: str
    variable: str
    path: KeyPath

    @property
    def usual(self) -> str:
        """The variable that is read where no configuration names one."""
        return f"{self.prefix}_{self.credential.upper()}"

    @property
    def prefix(self) -> str:
        """How all usual variables of the judge start."""
        return f"{self.family.upper()}_JUDGE"


def make_settings(config: RunConfig) -> RunSettings:
    """Return the settings in use with the limits of a configuration and the keys of its judges.

    Raises:
        InputError: a key or the file of prices is missing, or an environment variable has a wrong value.
    """
    limits = config.limits
    settings = replace(settings_in_use(), judge_keys=_read_keys(config))
    if limits.request_timeout is not None:
        settings = replace(settings, request_timeout=limits.request_timeout)
    if limits.max_retries is not None:
        settings = replace(settings, tries=limits.max_retries + 1)
    if limits.max_cost is not None:
        settings = replace(settings, max_cost=limits.max_cost)
    if limits.prices is not None:
        with config.source_map.at(("limits", "prices")):
            read_prices(limits.prices)
        settings = replace(settings, prices=limits.prices)
    return settings


def list_limits(config: RunConfig) -> dict[str, str]:
    """Return the environment variables that give another command the limits of a configuration."""
    limits = config.limits
    variables = {}
    if limits.request_timeout is not None:
        variables[TIMEOUT] = _format(limits.request_timeout)
    if limits.max_cost is not None:
        variables[MAX_COST] = _format(limits.max_cost)
    if limits.max_retries is not None:
        variables[TRIES] = str(limits.max_retries + 1)
    if limits.prices is not None:
        variables[PRICES] = str(limits.prices)
    return variables


def list_key_variables(config: RunConfig) -> dict[str, str]:
    """Return, for each usual variable of a judge's key, the variable that the configuration names for it."""
    return {name.usual: name.variable for name in _list_key_names(config)}


def _read_keys(config: RunConfig) -> dict[str, Credentials]:
    """Return the credentials of those judges for which the configuration names variables."""
    values: dict[str, dict[str, Any]] = {}
    for name in _list_key_names(config):
        value = read_variable(name.variable)
        if not value and not config.dry_run:
            about = f"={name.variable}: this environment variable is not set; set it, or name another one"
            raise config.source_map.error(name.path, about)
        values.setdefault(name.prefix, {})[name.credential] = value
    keys = {}
    for prefix, parts in values.items():
        credentials = Credentials(**parts)
        register_secret(credentials.api_key)
        register_secret(credentials.client_secret)
        keys[prefix] = credentials
    return keys


def _list_key_names(config: RunConfig) -> Iterator[_KeyName]:
    keys = config.judge.keys
    for family in type(keys).model_fields:
        names = getattr(keys, family)
        path = ("judge", "keys", family)
        if isinstance(names, CredentialNames):
            for credential in type(names).model_fields:
                variable = getattr(names, credential)
                if variable:
                    yield _KeyName(
                        family=family,
                        credential=credential,
                        variable=variable,
                        path=(*path, credential),
                    )
        elif names:
            yield _KeyName(
                family=family,
                credential="api_key",
                variable=names,
                path=path,
            )


def _format(number: float) -> str:
    """Return a number with all its digits, but 25.0 as 25."""
    return str(int(number) if float(number).is_integer() else number)
