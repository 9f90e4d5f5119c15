"""The options of commands that take runs, made from the schema, and the values of a configuration that they give."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from helm_longctx.config.load import Options
from helm_longctx.config.places import KeyPath
from helm_longctx.config.schema import MOST_INSTANCES, Endpoint, LocalModel, OnCommandLine, RunConfig, Section
from helm_longctx.errors import InputError, bad_argument

SELECTION = ("tasks", "length", "argument", "entry", "conf_path", "model")
"""The options that say which runs."""

_ARTICLE = re.compile(r"^(the|an?) ")
"""The start of a description that the help of its option leaves out."""

_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""Names of models on a server that run entries can use unchanged."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Setting:
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
        text, default = _ARTICLE.sub("", self.field.description or "", count=1), self.field.default
        shown = isinstance(default, str | Path | int) and default not in (True, False, MOST_INSTANCES)
        about = about or f"{text[0].upper()}{text[1:]}." + (f" [default: {default}]" if shown else "")
        kind = list[str] if self.form.many in ("repeated", "pairs") else _kind(self.field.annotation)
        option = Annotated[kind | None, typer.Option(*self.names, help=about.replace("[", r"\["))]  # type: ignore[valid-type]
        return inspect.Parameter(self.parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)


def _kind(annotation: Any) -> type:
    """Return the type of an option: the field's type, or text if the command line has no such type."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return _kind(next(each for each in get_args(annotation) if each is not NoneType))
    return annotation if annotation in (bool, int, float) else str


def _find_settings(section: type[Section], path: tuple[str, ...] = ()) -> Iterator[Setting]:
    for name, field in section.model_fields.items():
        form = next((each for each in field.metadata if isinstance(each, OnCommandLine)), None)
        if form:
            yield Setting((*path, name), form, field)
        if name == "models":
            yield from _find_settings(Endpoint, ("models",))
            yield from _find_settings(LocalModel, ("models",))
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _find_settings(field.annotation, (*path, name))


SETTINGS = {setting.parameter: setting for setting in _find_settings(RunConfig)}
"""All settings with an option, by the names of their parameters, in the order of the schema."""


def takes_options(*names: str, **helps: str) -> Callable[[Command], Command]:
    """Give a command options of a configuration, whose values it gets in `**options`.

    Args:
        names: the parameters, keys of `SETTINGS`; none stands for all.
        helps: the help of options that mean something else in this command.
    """

    def add(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        made = [SETTINGS[name].make_parameter(helps.get(name, "")) for name in names or SETTINGS]
        # The options of the schema stand between a command's own arguments and its last options.
        parameters = sorted([*own, *made], key=lambda each: (each.kind, each in own))
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return add


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Return the given values of options as a configuration file has them, and each option's key path."""
    values: dict[str, Any] = {}
    names: dict[KeyPath, str] = {}
    given = {name: arguments[name] for name in SETTINGS if arguments.get(name) is not None}
    found: list[tuple[KeyPath, str, Any]] = []
    for setting, value in ((SETTINGS[name], value) for name, value in given.items()):
        option, many = setting.names[0], setting.form.many
        if setting.path[0] == "models":
            continue
        if many == "pairs":
            found += [((*setting.path, key), shown, each) for key, shown, each in _read_pairs(setting, value)]
        else:
            found.append((setting.path, option, split_names([value]) if many == "commas" else value))
    for path, option, value in [*found, *_list_models(given)]:
        place: Any = values
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value
        names[path] = option
    # In `values` the models are still a mapping from their numbers.
    if "models" in values:
        values["models"] = list(values["models"].values())
    return Options(values, names)


def _list_models(given: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield the models: first from `--model`, then from `--model-path`, then from `--model-url`."""
    models = split_names(given.get("model", []))
    for number, name in enumerate(models):
        yield ("models", number), "--model", name
    keys = {name: SETTINGS[name] for name in given if SETTINGS[name].path[0] == "models" and name != "model"}
    paths, url = given.get("model_path", []), "model_url" in keys
    if keys and not (paths or url):
        raise InputError(
            "--model-url is missing; give a server's address, --model-path for a folder, or --model for a model that"
            " HELM knows"
        )
    for name, setting in keys.items():
        is_local = setting.path[-1] in LocalModel.model_fields and name != "model_url" and bool(paths)
        if not is_local and not url:
            raise InputError(f"{setting.names[0]} belongs to --model-url, not to --model-path; leave it out")
        numbers = range(len(models), len(models) + len(paths)) if is_local else [len(models) + len(paths)]
        for number in numbers:
            value = paths[number - len(models)] if name == "model_path" else given[name]
            if setting.form.many == "pairs":
                for key, option, each in _read_pairs(setting, value):
                    yield ("models", number, setting.path[-1], key), option, each
            else:
                yield ("models", number, setting.path[-1]), setting.names[0], value
    if url:
        served = given.get("model_name", "model")
        # Run entries can use the name of a model on its server, or one that is made of it.
        made = "endpoint/" + re.sub(r"[^\w.-]+", "-", served, flags=re.ASCII)
        place = ("models", len(models) + len(paths), "name")
        yield place, "--model-name", served if _NAME.fullmatch(served) else made


def _read_pairs(setting: Setting, pairs: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, the option and the value of each `NAME=VALUE`."""
    option = setting.names[0]
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise bad_argument("run", option, pair, "NAME=VALUE")
        yield key, f"{option} {key}", int(text) if text.isdigit() else text


def split_names(texts: list[str]) -> list[str]:
    """Split texts, each of which is a name, or several names separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]
