"""The schema of a run configuration of `helm-longctx run`: its run entries, models, judges and limits.

A configuration has no secrets, only the names of the environment variables that hold them. A `ValueError` of a
validator here says only what to give; `load.py` adds the file, the line, the key and the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from helm_longctx.config.source_map import SourceMap
from helm_longctx.errors import InputError, list_choices
from helm_longctx.redaction.text import SECRET_ARGUMENT
from helm_longctx.tasks.entry import WrittenEntry, read_times
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import (
    BENCHMARKS,
    BenchmarkProtocol,
    find_protocol,
    read_known_entries,
)
from helm_longctx.tasks.request_settings import SAMPLING
from helm_longctx.tasks.run_names import SUITE_NAME, is_suite_name
from helm_longctx.tasks.stop_rules import ALLOWED, Rule, parse_rule

MOST_INSTANCES = 1_000_000
"""Default of `helm-run`'s `-m`: all instances. HELM would draw a sample of its own from a run with more."""

NO_VALUE = "no_value"
"""Type of errors whose value is not printed because it may be a secret."""

BAD_TEXT = "bad_text"
"""Type of errors about what a text stands for. The error's context has the message, which names what is wrong."""

BAD_KEY = "bad_key"
"""Type of errors about a key of a mapping. The error's context has the key and the message."""

_VARIABLE = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}")
"""Matches secrets of letters and digits only. Names of variables that are as long have underscores."""

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_OWN_LOAD = {
    **dict.fromkeys(("dtype", "torch_dtype"), "dtype"),
    **{
        "attn_implementation": "attention",
        "revision": "revision",
        "trust_remote_code": "remote_code",
    },
    **{
        "pretrained_model_name_or_path": "path",
        "use_safetensors": "nothing: weights are safetensors",
    },
}
"""Arguments of `from_pretrained` that `load` does not take, and the keys for them."""

_MODEL_SAMPLING = (*SAMPLING, "repeats")
"""The arguments of run entries that a model can have for all its entries."""

_HAS_VARIABLE = re.compile(r"\$[A-Za-z_]")


@dataclass(frozen=True)
class EntryText:
    """A text of a configuration and the run entries that it stands for: one, or those of a benchmark's tables.

    The names of the entries are checked, and their arguments are not.
    """

    text: str
    entries: Sequence[WrittenEntry]


class OnCommandLine:
    """Marks a field that an option of the command line gives (`options.py`).

    Args:
        names: the spellings of the option, HELM's own among them; none for the field's name.
        many: how the option gives several values: separated by commas, by being repeated, or as repeated `NAME=VALUE`.
    """

    def __init__(
        self,
        *names: str,
        many: Literal["", "commas", "repeated", "pairs"] = "",
    ):
        self.names = names
        self.many = many


_OPTION = OnCommandLine()


class ConfigSection(BaseModel):
    """A mapping of a configuration. Unknown keys are refused, and values are not converted."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
    )

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
                raise _key_error(str(key), f"is not a key; {list_choices(key, fields)}")
        for name, field in fields.items():
            if field.is_required() and name not in values:
                raise _key_error(name, f"is missing; give {field.description}")
        return values


def _key_error(key: str, message: str) -> PydanticCustomError:
    """Return an error about one key. The error's location gets the key. The message says what to do."""
    return PydanticCustomError(BAD_KEY, "{message}", {"key": key, "message": message})


def _check(check: Callable[[Any], object]) -> AfterValidator:
    """Return a validator that runs a check and keeps the value. The check raises an error."""

    def validate(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(validate)


def _require(is_right: Callable[[Any], object], allowed: str) -> AfterValidator:
    """Return a validator of values that are right, whose error says what is allowed."""

    def check(value: Any) -> None:
        if not is_right(value):
            raise ValueError(allowed)

    return _check(check)


def _check_items(find_mistake: Callable[[str, Any], str]) -> AfterValidator:
    """Return a validator of mappings, of which a function says what is wrong with a name and its value, if anything."""

    def check(values: dict[str, Any]) -> None:
        for name, value in values.items():
            if mistake := find_mistake(name, value):
                raise _key_error(name, mistake)

    return _check(check)


def _is_secret(name: str, value: Any) -> bool:
    """Whether a name is one of a secret, and the value a text: not `max_num_batched_tokens=2048`."""
    return bool(SECRET_ARGUMENT.search(name)) and isinstance(value, str)


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name) or _RANDOM.fullmatch(name):
        allowed = (
            "the name of an environment variable that holds the secret, such as MY_KEY"
        )
        raise PydanticCustomError(
            NO_VALUE, "is not the name of a variable; give " + allowed
        )


_HEADERS = _check_items(
    lambda name, value: (
        f"has the name of a secret; give the name of its variable, as in '{name}: $VAR'"
        if _is_secret(name, value) and not _HAS_VARIABLE.search(value)
        else ""
    )
)
_BODY = _check_items(
    lambda name, value: (
        "has the name of a secret; give secrets in headers"
        if _is_secret(name, value)
        else ""
    )
)
_LOAD = _check_items(
    lambda name, value: (
        f"has a key of its own; give {_OWN_LOAD[name]}"
        if name in _OWN_LOAD
        else "has the name of a secret; set HF_TOKEN" * _is_secret(name, value)
    )
)
_DRAWING = _check_items(
    lambda name, _: (
        ""
        if name in _MODEL_SAMPLING
        else f"is not a key; {list_choices(name, _MODEL_SAMPLING)}"
    )
)
_NOT_EMPTY = _require(bool, "at least one")


_TEXT = WithJsonSchema({"type": "string"})
"""The type in the schema of a field that has what a text stands for."""


def _parse(parse: Callable[[str], object]) -> PlainValidator:
    """Return a validator that makes a field's value of a text. The error of the function says what is wrong."""

    def validate(value: Any) -> object:
        if not isinstance(value, str):
            raise PydanticKnownError("string_type")
        try:
            return parse(value)
        except InputError as error:
            raise PydanticCustomError(
                BAD_TEXT, "{message}", {"message": str(error)}
            ) from None

    return PlainValidator(validate)


def _write_text(value: EntryText | BenchmarkProtocol | Rule) -> str:
    return value.text


_AS_TEXT = PlainSerializer(_write_text)
"""Writes a value as the text of which it was made, so that a configuration can be written to a file."""


def _read_entries(text: str) -> EntryText:
    return EntryText(text=text, entries=read_known_entries(text))


def _read_protocol(text: str) -> BenchmarkProtocol:
    return find_protocol(text, BENCHMARKS)


def _read_rule(text: str) -> Rule:
    try:
        return parse_rule(text)
    except InputError:
        raise ValueError(ALLOWED) from None


_Variable = Annotated[str, _check(_check_variable), Field(examples=["MY_KEY"])]
_LENGTH_SCHEMA = {"type": ["string", "integer"], "examples": ["8k", "128k", 131072]}
_Length = Annotated[Any, _check(parse_length), WithJsonSchema(_LENGTH_SCHEMA)]
"""A length as it is written, as a part of run entries."""

_Window = Annotated[int, PlainValidator(parse_length), WithJsonSchema(_LENGTH_SCHEMA)]
_Name = Annotated[
    str,
    _require(
        _NAME.fullmatch,
        "ORGANIZATION/NAME or NAME of letters, digits, '.', '_' and '-'",
    ),
    Field(examples=["my/llama"]),
]
_EndpointName = Annotated[
    _Name, AfterValidator(lambda name: name if "/" in name else f"endpoint/{name}")
]
"""A name with an organization, as HELM needs it."""

SuiteName = Annotated[str, _require(is_suite_name, SUITE_NAME)]
_Rule = Annotated[Rule, _parse(_read_rule), _TEXT, _AS_TEXT]
_Texts = Annotated[list[str], _NOT_EMPTY]
_Entry = Annotated[EntryText, _parse(_read_entries), _TEXT, _AS_TEXT]
_Entries = Annotated[list[_Entry], _NOT_EMPTY]
_Protocol = Annotated[BenchmarkProtocol, _parse(_read_protocol), _TEXT, _AS_TEXT]
_Protocols = Annotated[list[_Protocol], _NOT_EMPTY]
_Lengths = Annotated[list[_Length], _NOT_EMPTY]
_Times = Annotated[
    str,
    _check(lambda value: read_times("", "retry_cut", value)),
    Field(examples=["4x"]),
]
_Whole = Annotated[int, Field(ge=1)]
_Positive = Annotated[float, Field(gt=0)]
# YAML has no type for paths, so only this type is converted from a text.
_Folder = Annotated[Path, Field(strict=False)]
_Folders = Annotated[list[_Folder], _NOT_EMPTY]
_Scalar = Annotated[
    Any,
    _require(
        lambda value: isinstance(value, str | int | float),
        "a text, a number, true or false",
    ),
    Field(json_schema_extra={"type": ["string", "number", "boolean"]}),
]


_Sampling = Annotated[
    Annotated[Literal["model"], Tag("name")]
    | Annotated[dict[str, _Scalar], _DRAWING, Tag("mapping")],
    Discriminator(lambda value: "name" if isinstance(value, str) else "mapping"),
    Field(
        description=f"how tokens are drawn: {', '.join(_MODEL_SAMPLING)}, which entries"
        " can replace, or `model` for the values in the model's generation_config.json"
    ),
]


def _check_api(name: str) -> str:
    from helm_longctx.models.apis.provider import find_provider  # this imports HELM

    return find_provider(name).name


def _list_apis(schema: dict[str, Any]) -> None:
    from helm_longctx.models.apis.provider import providers

    schema["enum"] = list(providers())


_Api = Annotated[str, AfterValidator(_check_api), Field(json_schema_extra=_list_apis)]


class Endpoint(ConfigSection):
    """A model on a server. The server is asked about it before the run."""

    name: _EndpointName = Field(
        description="the model's name in run entries and tables: ORGANIZATION/NAME"
    )
    url: Annotated[str, OnCommandLine("--model-url")] = Field(
        description="the server's address, with or without the route, such as"
        " http://localhost:8000/v1"
    )
    type: Annotated[
        Literal["chat", "completions", "both"] | None, OnCommandLine("--model-type")
    ] = Field(
        default=None,
        description="the form of requests: chat, completions or both. Default: all"
        " forms that the server answers",
    )
    api: _Api = Field(default="openai", description="the server's protocol")
    model: Annotated[str | None, OnCommandLine("--model-name")] = Field(
        default=None,
        description="the model's name on the server. Default: found in the server's list",
    )
    api_key_env: Annotated[_Variable | None, _OPTION] = Field(
        default=None,
        description="the NAME of the environment variable with the server's key",
    )
    token_env: _Variable | None = Field(
        default=None,
        description="the START of the names of the variables of an OAuth client:"
        " NAME_CLIENT_ID, NAME_CLIENT_SECRET, NAME_TOKEN_URL, and perhaps NAME_SCOPE",
    )
    headers: Annotated[dict[str, str], _HEADERS] = Field(
        default={},
        description="HTTP headers of each request; `$NAME` in a value stands for an"
        " environment variable",
    )
    extra_body: Annotated[dict[str, Any], _BODY] = Field(
        default={}, description="additional fields in the body of each request"
    )
    nvcf: bool = Field(
        default=False,
        description="whether the address is a function in NVIDIA Cloud Functions",
    )
    context: Annotated[_Window | None, _OPTION] = Field(
        default=None,
        description="the model's context window in tokens, such as 128k. Default: the"
        " window that the server reports",
    )
    tokenizer: Annotated[str | None, _OPTION] = Field(
        default=None,
        description="the tokenizer: hub name, folder, or name in HELM. Default: the"
        " tokenizer of the server's model",
    )
    reasoning_effort: Annotated[str | None, _OPTION] = Field(
        default=None,
        description="the reasoning effort of the server's model, with the value that"
        " its provider expects, such as low",
    )
    thinking_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0, description="additional tokens of each answer for reasoning"
    )
    sampling: _Sampling = {}
    stream: bool = Field(default=False, description="whether answers are streamed")
    requests_per_minute: _Positive | None = Field(
        default=None, description="maximum requests per minute"
    )
    tokens_per_minute: _Positive | None = Field(
        default=None, description="maximum tokens per minute"
    )


class LocalModels(ConfigSection):
    """Models of transformers that run in this process: folders, or revisions of a name on the hub."""

    path: Annotated[str, OnCommandLine("--model-path", many="repeated")] = Field(
        description="a folder with a model's weights, folders as checkpoints/step-*, or"
        " a name on the hub"
    )
    name: _Name | None = Field(
        default=None,
        description="the model's name in tables. Default: the last two parts of the path",
    )
    revision: Annotated[str | list[str] | None, _OPTION] = Field(
        default=None,
        description="the commit, tag or branch on the hub; a list stands for several models",
    )
    step: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="the step of training. Default: the number in step-1000,"
        " checkpoint-500 and the like",
    )
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32", "auto"] | None, _OPTION
    ] = Field(
        default=None,
        description="the type of the weights. Default: bfloat16 on a GPU, and float32 elsewhere",
    )
    attention: Annotated[str | None, _OPTION] = Field(
        default=None,
        description="the implementation of attention, such as flash_attention_2."
        " Default: transformers' own",
    )
    load: Annotated[dict[str, Any], _LOAD, OnCommandLine("--load", many="pairs")] = (
        Field(
            default={},
            description="further arguments of from_pretrained, such as"
            " attn_implementation's settings",
        )
    )
    adapter: Annotated[str | None, _OPTION] = Field(
        default=None,
        description="a PEFT adapter for the model: a folder, or a name on the hub",
    )
    remote_code: Annotated[bool, OnCommandLine("--remote-code")] = Field(
        default=False,
        description="run the model's code on the hub; needs a commit as revision",
    )
    engine: Annotated[Literal["transformers", "vllm", "sglang"], _OPTION] = Field(
        default="transformers",
        description="the program that runs the model in this process",
    )
    batch_size: Annotated[int, Field(ge=1)] = Field(
        default=16,
        description="maximum prompts that are answered together; fewer if memory runs out",
    )
    sampling: _Sampling = {}
    context: _Window | None = Field(
        default=None,
        description="the model's context window in tokens. Default: the positions in"
        " its config.json",
    )

    @model_validator(mode="after")
    def _check_code(self) -> LocalModels:
        if self.remote_code and not (
            isinstance(self.revision, str) and _COMMIT.fullmatch(self.revision)
        ):
            raise _key_error(
                "remote_code",
                "runs code from the hub; give it only with a commit of 40 hexadecimal"
                " digits as revision",
            )
        return self


def _find_tag(value: Any) -> str:
    if isinstance(value, str):
        return "name"
    if isinstance(value, LocalModels) or (isinstance(value, dict) and "path" in value):
        return "local"
    return "mapping"


ModelOrEndpoint = Annotated[
    Annotated[str, Tag("name")] | Annotated[Endpoint, Tag("mapping")],
    Discriminator(_find_tag),
    Field(
        description="the name of a model or deployment that HELM knows, or a mapping"
        " with name and url"
    ),
]

_AskedModel = Annotated[
    Annotated[str, Tag("name")]
    | Annotated[Endpoint, Tag("mapping")]
    | Annotated[LocalModels, Tag("local")],
    Discriminator(_find_tag),
    Field(
        description="a name that HELM knows, or a mapping with name and url, or one with path"
    ),
]


class CredentialNames(ConfigSection):
    """Client credentials of OAuth 2.0, as the NAMES of the variables that hold them."""

    client_id: _Variable = Field(
        description="the NAME of the variable with the client's id"
    )
    client_secret: _Variable = Field(
        description="the NAME of the variable with the client's secret"
    )
    token_url: _Variable = Field(
        description="the NAME of the variable with the address of the token server"
    )
    scope: _Variable | None = Field(
        default=None, description="the NAME of the variable with the scope"
    )


KeyNames = Annotated[
    Annotated[_Variable, Tag("name")] | Annotated[CredentialNames, Tag("mapping")],
    Discriminator(_find_tag),
]


class Keys(ConfigSection):
    """Keys of judges, for each family of judges the NAME of a variable, or the NAMES of up to four OAuth variables."""

    gpt: KeyNames | None = Field(
        default=None,
        description="for judges whose name contains gpt, o1 to o9 or openai",
    )
    llama: KeyNames | None = Field(
        default=None, description="for judges whose name contains llama or meta"
    )
    claude: KeyNames | None = Field(
        default=None, description="for judges whose name contains claude or anthropic"
    )


class JudgeSection(ConfigSection):
    """The judges of answers, and their keys."""

    judges: Annotated[
        list[ModelOrEndpoint], _NOT_EMPTY, OnCommandLine("--judge", many="commas")
    ] = Field(
        default=["auto"],
        description="the judges: auto, none, or one or several models; several are a jury",
    )
    keys: Annotated[Keys, OnCommandLine("--judge-key", many="pairs")] = Field(
        default=Keys(),
        description="the NAMES of the variables with the judges' keys, by the family of"
        " judges, such as gpt=MY_KEY",
    )

    @property
    def names(self) -> list[str]:
        """The judges' names in HELM."""
        names = []
        for judge in self.judges:
            names.append(judge if isinstance(judge, str) else judge.name)
        return names

    @model_validator(mode="after")
    def _check_alone(self) -> JudgeSection:
        for word in ("auto", "none"):
            if word in self.judges and len(self.judges) > 1:
                raise _key_error(
                    "judges",
                    f"has {word!r} together with other judges; give {word!r} alone, or only models",
                )
        if any(isinstance(judge, Endpoint) and judge.sampling for judge in self.judges):
            raise _key_error(
                "judges",
                "has a sampling, but a benchmark says how its judge is sampled; leave it out",
            )
        return self


class _Limits(ConfigSection):
    """Limits of the runs. The defaults are the same as for `helm-run` (docs/running.md)."""

    max_eval_instances: Annotated[
        _Whole, OnCommandLine("--max-eval-instances", "-m")
    ] = Field(
        default=MOST_INSTANCES, description="maximum instances per run, drawn by HELM"
    )
    max_cost: Annotated[_Positive | None, _OPTION] = Field(
        default=None, description="maximum cost of all requests to models, in dollars"
    )
    prices: Annotated[_Folder | None, _OPTION] = Field(
        default=None,
        description="YAML file of prices by deployment or model, for unknown prices",
    )
    request_timeout: Annotated[_Positive | None, _OPTION] = Field(
        default=None, description="timeout per request in seconds, retries included"
    )
    max_retries: Annotated[Annotated[int, Field(ge=0)] | None, _OPTION] = Field(
        default=None, description="maximum retries of a request that fails temporarily"
    )
    batch_size: Annotated[_Whole | None, _OPTION] = Field(
        default=None,
        description="maximum requests in a batch. Default: the provider's limit",
    )
    stop_when: Annotated[_Rule | None, _OPTION] = Field(
        default=None,
        description=f"the question that ends the runs when it is decided: {ALLOWED}",
    )


class RunConfig(ConfigSection):
    """A run configuration. It has exactly one of `tasks`, `entries`, `conf_paths` and `protocols`."""

    suite: Annotated[SuiteName, _OPTION] = Field(
        default="default", description="name of the suite, as for helm-run"
    )
    output_path: Annotated[_Folder, OnCommandLine("--output-path", "-o")] = Field(
        default=Path("benchmark_output"), description="HELM's output folder"
    )
    local_path: Annotated[_Folder, _OPTION] = Field(
        default=Path("prod_env"),
        description="the folder with HELM's YAML files and credentials.conf",
    )
    tasks: Annotated[_Entries | None, OnCommandLine(many="commas")] = Field(
        default=None,
        description="run entries, such as helmet_rag, or benchmarks, for all run"
        " entries of their published tables; each is run at each length",
    )
    lengths: Annotated[
        _Lengths | None, OnCommandLine("--length", "--lengths", many="commas")
    ] = Field(
        default=None,
        description="the lengths of the tasks, such as 8k,128k; tasks without lengths are run once",
    )
    arguments: Annotated[
        dict[str, _Scalar], OnCommandLine("--argument", many="pairs")
    ] = Field(
        default={},
        description="arguments of run entries, for each task or protocol that takes"
        " them, such as num_samples=10",
    )
    entries: Annotated[
        _Entries | None,
        OnCommandLine("--entry", "--run-entries", "-r", many="repeated"),
    ] = Field(
        default=None,
        description="run entries with arguments, such as helmet_rag:length=8k, also HELM's own",
    )
    conf_paths: Annotated[
        _Folders | None,
        OnCommandLine("--conf-path", "--conf-paths", "-c", many="repeated"),
    ] = Field(default=None, description="files of run entries, as for helm-run")
    protocols: Annotated[
        _Protocols | None, OnCommandLine("--protocol", many="repeated")
    ] = Field(
        default=None,
        description="names of reported protocols, such as deepseek mrcr 1m mmr (docs/reproduce.md)",
    )
    generated: Annotated[bool, OnCommandLine("--generated")] = Field(
        default=False,
        description="run protocols also on questions that this package generates"
        " because the benchmark's own are missing; their scores are never compared with"
        " published numbers",
    )
    models: Annotated[
        list[_AskedModel], OnCommandLine("--model", "--models-to-run", many="repeated")
    ] = Field(
        default=[],
        description="the models, such as a/b,c/d; not needed if every entry names a model",
    )
    groups: Annotated[dict[str, str], OnCommandLine("--group", many="pairs")] = Field(
        default={},
        description="recipes with the patterns of their training runs, such as"
        " recipe-a=ckpt/a-seed*, for compare and the report",
    )
    retry_cut: Annotated[_Times | None, _OPTION] = Field(
        default=None,
        description="the factor by which the output budget of cut answers is multiplied"
        " in a second run, such as 4x",
    )
    judge: JudgeSection = Field(
        default=JudgeSection(),
        description="the judges of answers, for entries that are judged",
    )
    limits: _Limits = Field(default=_Limits(), description="the limits of the runs")
    parallelism: Annotated[
        _Whole, OnCommandLine("--parallelism", "--num-threads", "-n")
    ] = Field(default=4, description="concurrent requests, as helm-run's -n")
    batch: Annotated[Literal["wait", "send", "files"] | None, _OPTION] = Field(
        default=None,
        description="send requests in batches: wait (for the answers), send (and end)"
        " or files (for `vllm run-batch`); the same command goes on",
    )
    dry_run: Annotated[bool, OnCommandLine("--dry-run")] = Field(
        default=False, description="only print the runs and an estimate of their cost"
    )

    watch: Annotated[_Folder | None, _OPTION] = Field(
        default=None,
        description="a folder whose checkpoints are run as soon as they are complete, until Ctrl-C",
    )
    log_to: Annotated[_Texts | None, OnCommandLine("--log-to", many="repeated")] = (
        Field(
            default=None,
            description="where scores are logged, with intervals and steps:"
            " wandb:PROJECT, mlflow:ADDRESS, tensorboard:FOLDER or trackio:PROJECT",
        )
    )

    _source_map: SourceMap = PrivateAttr(default_factory=SourceMap)

    @property
    def source_map(self) -> SourceMap:
        """Where the values stand, for errors."""
        return self._source_map

    @model_validator(mode="after")
    def _check_selection(self) -> RunConfig:
        ways = ("tasks", "entries", "conf_paths", "protocols")
        chosen = []
        for way in ways:
            if getattr(self, way) is not None:
                chosen.append(way)
        if not chosen:
            raise _key_error("tasks", f"is missing; give one of {', '.join(ways)}")
        if len(chosen) > 1:
            raise _key_error(
                chosen[1],
                f"is given together with {chosen[0]}; give one of {', '.join(ways)}",
            )
        allowed = {
            "lengths": ("tasks",),
            "arguments": ("tasks", "protocols"),
            "generated": ("protocols",),
        }
        for key, owners in allowed.items():
            if getattr(self, key) and chosen[0] not in owners:
                where = " and ".join(owners)
                raise _key_error(
                    key,
                    f"belongs to {where}, not to {chosen[0]}; give {key} only with {where}",
                )
        return self

    @model_validator(mode="after")
    def _check_batch(self) -> RunConfig:
        if self.batch is None:
            return self
        others = {
            "watch": self.watch,
            "max_cost": self.limits.max_cost,
            "stop_when": self.limits.stop_when,
        }
        for name, value in others.items():
            if value is not None:
                raise _key_error(
                    "batch",
                    f"is given together with {name}, which looks at answers one by one;"
                    " leave one of them out",
                )
        return self
