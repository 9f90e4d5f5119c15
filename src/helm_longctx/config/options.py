"""The options of commands that take a configuration, made from its schema (`OnCommandLine`), and their values."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic import PlainValidator
from pydantic.fields import FieldInfo

from helm_longctx.config.schema import (
    MOST_INSTANCES,
    ConfigSection,
    Endpoint,
    LocalModels,
    OnCommandLine,
    RunConfig,
)
from helm_longctx.config.source_map import KeyPath
from helm_longctx.errors import InputError, bad_argument

SELECTION = ("tasks", "length", "argument", "entry", "conf_path", "model")
"""The options that say which runs."""

MODEL = (
    "model",
    "model_url",
    "model_name",
    "model_type",
    "api_key_env",
    "context",
    "tokenizer",
)
"""The options of a model that answers chats."""

LIMITS = ("max_cost", "prices", "request_timeout", "max_retries", "parallelism")
"""The options that limit what is sent."""

FOLDERS = ("output_path", "local_path", "dry_run")
"""The options of commands that write runs, or print only the plan."""

_ARTICLE = re.compile(r"^(the|an?) ")
"""The start of a description that the help of its option leaves out."""

_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""Names of models on a server that run entries can use unchanged."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Options:
    """Values of the command's options, and the option of each key path. The values replace those in the file."""

    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[KeyPath, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Setting:
    """A field of the schema that an option gives, with its key path, in which models have no number."""

    path: tuple[str, ...]
    form: OnCommandLine
    field: FieldInfo

    @property
    def names(self) -> tuple[str, ...]:
        """The spellings of the option."""
        return self.form.names or (f"--{self.path[-1].replace('_', '-')}",)

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return self.names[0].lstrip("-").replace("-", "_")

    def make_parameter(self, about: str = "") -> inspect.Parameter:
        """Return the command's parameter, whose value is None if the option is not given."""
        text = _ARTICLE.sub("", self.field.description or "", count=1)
        default = self.field.default
        shown = isinstance(default, str | Path | int) and default not in (
            True,
            False,
            MOST_INSTANCES,
        )
        about = about or f"{text[0].upper()}{text[1:]}." + (
            f" [default: {default}]" if shown else ""
        )
        if self.form.many in ("repeated", "pairs"):
            kind: Any = list[str]
        else:
            kind = _kind(self.field.annotation)
        declared = typer.Option(*self.names, help=about.replace("[", r"\["))
        option = Annotated[kind | None, declared]
        return inspect.Parameter(
            self.parameter,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=option,
        )


def _kind(annotation: Any) -> type:
    """Return an option's type: the field's type, or text if the command line has no such type or the field reads it."""
    if any(
        isinstance(datum, PlainValidator)
        for datum in getattr(annotation, "__metadata__", ())
    ):
        return str
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return _kind(next(arg for arg in get_args(annotation) if arg is not NoneType))
    if annotation in (bool, int, float):
        return annotation
    return str


def _find_settings(
    section: type[ConfigSection],
    path: tuple[str, ...] = (),
) -> Iterator[_Setting]:
    for name, info in section.model_fields.items():
        forms = (datum for datum in info.metadata if isinstance(datum, OnCommandLine))
        form = next(forms, None)
        if form:
            yield _Setting(
                path=(*path, name),
                form=form,
                field=info,
            )
        if name == "models":
            yield from _find_settings(Endpoint, ("models",))
            yield from _find_settings(LocalModels, ("models",))
        if isinstance(info.annotation, type) and issubclass(
            info.annotation, ConfigSection
        ):
            yield from _find_settings(info.annotation, (*path, name))


SETTINGS = {setting.parameter: setting for setting in _find_settings(RunConfig)}
"""All settings with an option, by the names of their parameters, in the order of the schema."""


def takes_options(
    names: Sequence[str] = (),
    **helps: str,
) -> Callable[[_Command], _Command]:
    """Give a command options of a configuration, whose values it gets in `**options`.

    Args:
        names: the parameters, keys of `SETTINGS`; none stands for all.
        helps: the help of options that mean something else in this command.
    """

    def add(command: _Command) -> _Command:
        signature = inspect.signature(command, eval_str=True)
        own = []
        for parameter in signature.parameters.values():
            if parameter.kind is not parameter.VAR_KEYWORD:
                own.append(parameter)
        made = []
        for name in names or SETTINGS:
            made.append(SETTINGS[name].make_parameter(helps.get(name, "")))
        # The options of the schema stand between a command's own arguments and its last options.
        parameters = sorted(
            [*own, *made], key=lambda parameter: (parameter.kind, parameter in own)
        )
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return add


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Return the given values of options as a configuration file has them, and each option's key path."""
    values: dict[str, Any] = {}
    names: dict[KeyPath, str] = {}
    given = {}
    for name in SETTINGS:
        if arguments.get(name) is not None:
            given[name] = arguments[name]
    for path, option, value in chain(_list_others(given), _list_models(given)):
        section: Any = values
        for key in path[:-1]:
            section = section.setdefault(key, {})
        section[path[-1]] = value
        names[path] = option
    # In `values` the models are still a mapping from their numbers.
    if "models" in values:
        values["models"] = list(values["models"].values())
    return Options(values, names)


def _list_others(given: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield the key path, the option and the value of what options say about anything but models."""
    for name, value in given.items():
        setting = SETTINGS[name]
        if setting.path[0] == "models":
            continue
        if setting.form.many == "pairs":
            for key, option, part in _read_pairs(setting, value):
                yield (*setting.path, key), option, part
        elif setting.form.many == "commas":
            yield setting.path, setting.names[0], split_names([value])
        else:
            yield setting.path, setting.names[0], value


def _list_models(given: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield what options say about models, in the order `--model`, `--model-path`, `--model-url`."""
    models = split_names(given.get("model", []))
    for number, name in enumerate(models):
        yield ("models", number), "--model", name
    keys = {}
    for name in given:
        if SETTINGS[name].path[0] == "models" and name != "model":
            keys[name] = SETTINGS[name]
    paths = given.get("model_path", [])
    url = "model_url" in keys
    if keys and not (paths or url):
        raise InputError(
            "--model-url is missing; give a server's address, --model-path for a"
            " folder, or --model for a model that HELM knows"
        )
    for name, setting in keys.items():
        is_local = (
            setting.path[-1] in LocalModels.model_fields
            and name != "model_url"
            and bool(paths)
        )
        if not is_local and not url:
            raise InputError(
                f"{setting.names[0]} belongs to --model-url, not to --model-path; leave it out"
            )
        if is_local:
            numbers: Sequence[int] = range(len(models), len(models) + len(paths))
        else:
            numbers = [len(models) + len(paths)]
        for number in numbers:
            if name == "model_path":
                value = paths[number - len(models)]
            else:
                value = given[name]
            if setting.form.many == "pairs":
                for key, option, part in _read_pairs(setting, value):
                    yield ("models", number, setting.path[-1], key), option, part
            else:
                yield ("models", number, setting.path[-1]), setting.names[0], value
    if url:
        served = given.get("model_name", "model")
        # Run entries can use the name of a model on its server, or one that is made of it.
        made = "endpoint/" + re.sub(r"[^\w.-]+", "-", served, flags=re.ASCII)
        path = ("models", len(models) + len(paths), "name")
        yield path, "--model-name", served if _NAME.fullmatch(served) else made


def _read_pairs(setting: _Setting, pairs: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, the option and the value of each `NAME=VALUE`."""
    option = setting.names[0]
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise bad_argument("run", option, pair, "NAME=VALUE")
        yield key, f"{option} {key}", int(text) if text.isdigit() else text


def split_names(texts: list[str]) -> list[str]:
    """Split texts, each of which is a name, or several names separated by commas."""
    names: list[str] = []
    for text in texts:
        for name in text.split(","):
            if name.strip():
                names.append(name.strip())
    return names
