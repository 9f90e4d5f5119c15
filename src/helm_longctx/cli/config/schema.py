"""The schema of a run configuration of `helm-longctx run`: its run entries, models, judges and limits.

A configuration has no secrets, only the names of the environment variables that hold them. A `ValueError` of a
validator here says only what to give; `load.py` adds the file, the line, the key and the value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from helm_longctx.cli.config.places import Places
from helm_longctx.errors import list_choices
from helm_longctx.helm.names import SUITE_NAME, is_suite_name
from helm_longctx.models.apis.provider import find_provider, providers
from helm_longctx.redaction.text import SECRET_ARGUMENT
from helm_longctx.tasks.entry import read_times
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.stop_rules import ALLOWED, is_rule

MOST_INSTANCES = 1_000_000
"""Default of `helm-run`'s `-m`: all instances. HELM would draw a sample of its own from a run with more."""

NO_VALUE = "no_value"
"""Type of errors whose value is not printed because it may be a secret."""

BAD_KEY = "bad_key"
"""Type of errors about a key of a mapping. The error's context has the key and the message."""

_VARIABLE = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}")
"""Matches secrets of letters and digits only. Names of variables that are as long have underscores."""

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_HAS_VARIABLE = re.compile(r"\$[A-Za-z_]")


class Section(BaseModel):
    """A mapping of a configuration. Unknown keys are refused, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        """Check the keys of a mapping. pydantic's own errors do not list the allowed keys."""
        fields = cls.model_fields
        if isinstance(values, cls):
            return values
        if not isinstance(values, dict):
            raise ValueError(f"a mapping with the keys {', '.join(fields)}")
        for key in values:
            if key not in fields:
                raise key_error(str(key), f"is not a key; {list_choices(key, fields)}")
        for name, field in fields.items():
            if field.is_required() and name not in values:
                raise key_error(name, f"is missing; give {field.description}")
        return values


def key_error(key: str, message: str) -> PydanticCustomError:
    """Return an error about one key of a mapping, not about the whole mapping.

    Args:
        key: the key. It is added to the error's location.
        message: text that says what is wrong and what to do.
    """
    return PydanticCustomError(BAD_KEY, "{message}", {"key": key, "message": message})


def _check_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name) or _RANDOM.fullmatch(name):
        allowed = "the name of an environment variable that holds the secret, such as MY_KEY"
        raise PydanticCustomError(NO_VALUE, "is not the name of a variable; give " + allowed)
    return name


def _check_length(value: Any) -> Any:
    parse_length(value)
    return value


def _check_times(value: str) -> str:
    read_times("", "retry_cut", value)
    return value


def _check_suite(suite: str) -> str:
    if not is_suite_name(suite):
        raise ValueError(SUITE_NAME)
    return suite


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("ORGANIZATION/NAME or NAME of letters, digits, '.', '_' and '-'")
    return name


def _check_not_empty(values: Any) -> Any:
    if not values:
        raise ValueError("at least one")
    return values


def _check_rule(value: str) -> str:
    if not is_rule(value):
        raise ValueError(ALLOWED)
    return value


def _check_scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise ValueError("a text, a number, true or false")
    return value


def _check_header(name: str, value: str) -> None:
    if SECRET_ARGUMENT.search(name) and not _HAS_VARIABLE.search(value):
        raise key_error(name, f"has the name of a secret; give the name of its variable, as in '{name}: $VAR'")


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        _check_header(name, value)
    return headers


def _check_body(body: dict[str, Any]) -> dict[str, Any]:
    for name in body:
        if SECRET_ARGUMENT.search(name) and isinstance(body[name], str):
            raise key_error(name, "has the name of a secret; give secrets in headers")
    return body


Variable = Annotated[str, AfterValidator(_check_variable), Field(examples=["MY_KEY"])]
Length = Annotated[
    Any,
    AfterValidator(_check_length),
    Field(json_schema_extra={"type": ["string", "integer"]}, examples=["8k", "128k", 131072]),
]
Name = Annotated[str, AfterValidator(_check_name), Field(examples=["my/llama"])]
Suite = Annotated[str, AfterValidator(_check_suite)]
Times = Annotated[str, AfterValidator(_check_times), Field(examples=["4x"])]
Whole = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
# YAML has no type for paths, so only this type is converted from a text.
Folder = Annotated[Path, Field(strict=False)]
Scalar = Annotated[
    Any, AfterValidator(_check_scalar), Field(json_schema_extra={"type": ["string", "number", "boolean"]})
]


Api = Annotated[
    str,
    AfterValidator(lambda name: find_provider(name).name),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(providers()))),
]


class Endpoint(Section):
    """A model on a server. The server is asked about it before the run."""

    name: Name = Field(description="the model's name in run entries and tables: ORGANIZATION/NAME")
    url: str = Field(description="the server's address, with or without the route, such as http://localhost:8000/v1")
    type: Literal["chat", "completions", "both"] | None = Field(
        default=None, description="the form of requests. Default: all forms that the server answers"
    )
    api: Api = Field(default="openai", description="the server's protocol")
    model: str | None = Field(
        default=None, description="the model's name on the server. Default: found by `name` in the server's list"
    )
    api_key_env: Variable | None = Field(default=None, description="the NAME of the environment variable with the key")
    token_env: Variable | None = Field(
        default=None,
        description="the START of the names of the variables of an OAuth client: NAME_CLIENT_ID, NAME_CLIENT_SECRET,"
        " NAME_TOKEN_URL, and perhaps NAME_SCOPE",
    )
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default={}, description="HTTP headers of each request; `$NAME` in a value stands for an environment variable"
    )
    extra_body: Annotated[dict[str, Any], AfterValidator(_check_body)] = Field(
        default={}, description="additional fields in the body of each request"
    )
    nvcf: bool = Field(default=False, description="whether the address is a function in NVIDIA Cloud Functions")
    context: Length | None = Field(
        default=None,
        description="context window in tokens. Default: the window that the server reports",
    )
    tokenizer: str | None = Field(
        default=None,
        description="the tokenizer: hub name, folder, or name in HELM. Default: the tokenizer of the server's model",
    )
    reasoning_effort: str | None = Field(
        default=None, description="the reasoning effort, with the value that the provider expects, such as low"
    )
    thinking_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0, description="additional tokens of each answer for reasoning"
    )
    stream: bool = Field(default=False, description="whether answers are streamed")
    requests_per_minute: Positive | None = Field(default=None, description="maximum requests per minute")
    tokens_per_minute: Positive | None = Field(default=None, description="maximum tokens per minute")


def _is_mapping(value: Any) -> str:
    return "name" if isinstance(value, str) else "mapping"


Model = Annotated[
    Annotated[str, Tag("name")] | Annotated[Endpoint, Tag("mapping")],
    Discriminator(_is_mapping),
    Field(description="the name of a model or deployment that HELM knows, or a mapping with name and url"),
]


class ClientCredentials(Section):
    """Client credentials of OAuth 2.0, as the NAMES of the variables that hold them."""

    client_id: Variable = Field(description="the NAME of the variable with the client's id")
    client_secret: Variable = Field(description="the NAME of the variable with the client's secret")
    token_url: Variable = Field(description="the NAME of the variable with the address of the token server")
    scope: Variable | None = Field(default=None, description="the NAME of the variable with the scope")


Key = Annotated[
    Annotated[Variable, Tag("name")] | Annotated[ClientCredentials, Tag("mapping")],
    Discriminator(_is_mapping),
]


class Keys(Section):
    """Keys of judges, for each family of judges the NAME of a variable, or the NAMES of up to four OAuth variables."""

    gpt: Key | None = Field(default=None, description="for judges whose name contains gpt, o1 to o9 or openai")
    llama: Key | None = Field(default=None, description="for judges whose name contains llama or meta")
    claude: Key | None = Field(default=None, description="for judges whose name contains claude or anthropic")


class Judge(Section):
    """The judges of answers, and their keys."""

    judges: Annotated[list[Model], AfterValidator(_check_not_empty)] = Field(
        default=["auto"], description="auto, none, or one or several models; several models are a jury"
    )
    keys: Keys = Field(default=Keys(), description="the NAMES of the variables with the judges' keys")

    @model_validator(mode="after")
    def _check_alone(self) -> Judge:
        for word in ("auto", "none"):
            if word in self.judges and len(self.judges) > 1:
                raise key_error(
                    "judges", f"has {word!r} together with other judges; give {word!r} alone, or only models"
                )
        return self


class Limits(Section):
    """Limits of the runs. The defaults are the same as for `helm-run` (docs/running.md)."""

    max_eval_instances: Whole = Field(default=MOST_INSTANCES, description="maximum instances per run, drawn by HELM")
    max_cost: Positive | None = Field(default=None, description="maximum cost of all requests to models, in dollars")
    prices: Folder | None = Field(
        default=None, description="YAML file of prices, for models whose prices are not known"
    )
    request_timeout: Positive | None = Field(
        default=None, description="timeout per request in seconds, retries included"
    )
    max_retries: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="maximum retries of a request that fails temporarily"
    )
    stop_when: Annotated[str, AfterValidator(_check_rule)] | None = Field(
        default=None, description=f"stop when a question is decided: {ALLOWED}"
    )


class RunConfig(Section):
    """A run configuration. It has exactly one of `tasks`, `entries`, `conf_paths` and `protocols`."""

    suite: Suite = Field(default="default", description="name of the suite, as for helm-run")
    output_path: Folder = Field(default=Path("benchmark_output"), description="HELM's output folder")
    local_path: Folder = Field(
        default=Path("prod_env"), description="the folder with HELM's YAML files and credentials"
    )
    tasks: Annotated[list[str], AfterValidator(_check_not_empty)] | None = Field(
        default=None,
        description="run entries, such as helmet_rag, or benchmarks, which stand for the run entries of their published"
        " tables; each is run at each of `lengths`",
    )
    lengths: Annotated[list[Length], AfterValidator(_check_not_empty)] | None = Field(
        default=None, description="the lengths of `tasks`; tasks without lengths are run once"
    )
    arguments: dict[str, Scalar] = Field(
        default={},
        description="arguments of run entries, for each of `tasks` or `protocols` that takes them, such as num_samples",
    )
    entries: Annotated[list[str], AfterValidator(_check_not_empty)] | None = Field(
        default=None, description="run entries with arguments, such as helmet_rag:length=8k, also HELM's own"
    )
    conf_paths: Annotated[list[Folder], AfterValidator(_check_not_empty)] | None = Field(
        default=None, description="files of run entries, as for helm-run"
    )
    protocols: Annotated[list[str], AfterValidator(_check_not_empty)] | None = Field(
        default=None, description="names of reported protocols, such as deepseek mrcr 1m mmr (docs/reproduce.md)"
    )
    models: list[Model] = Field(default=[], description="the models; not needed if every entry names a model")
    retry_cut: Times | None = Field(
        default=None,
        description="the factor by which the output budget of cut answers is multiplied in a second run, such as 4x",
    )
    judge: Judge = Field(default=Judge(), description="the judges of answers, for entries that are judged")
    limits: Limits = Field(default=Limits(), description="the limits of the runs")
    parallelism: Whole = Field(default=4, description="concurrent requests, as helm-run's -n")
    dry_run: bool = Field(default=False, description="only print the runs and an estimate of their cost")

    _places: Places = PrivateAttr(default_factory=Places)

    @property
    def places(self) -> Places:
        """The places of the values, for errors."""
        return self._places

    @model_validator(mode="after")
    def _check_selection(self) -> RunConfig:
        ways = ("tasks", "entries", "conf_paths", "protocols")
        chosen = [way for way in ways if getattr(self, way) is not None]
        if not chosen:
            raise key_error("tasks", f"is missing; give one of {', '.join(ways)}")
        if len(chosen) > 1:
            raise key_error(chosen[1], f"is given together with {chosen[0]}; give one of {', '.join(ways)}")
        for key, owners in {"lengths": ("tasks",), "arguments": ("tasks", "protocols")}.items():
            if getattr(self, key) and chosen[0] not in owners:
                where = " and ".join(owners)
                raise key_error(key, f"belongs to {where}, not to {chosen[0]}; give {key} only with {where}")
        return self
