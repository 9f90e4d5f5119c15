"""Makes the run entries of a configuration, and checks each of them once.

tasks, protocols, entries, files of entries ─► drafts ─► checked, with a judge ─► one for each sampling
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from helm_longctx.config.models import ConfiguredModel
from helm_longctx.config.schema import EntryText, RunConfig
from helm_longctx.config.source_map import KeyPath
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.helm.command_line import read_conf
from helm_longctx.helm.run_specs import check_run_entry, list_arguments
from helm_longctx.helm_api import get_class_by_name
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.tasks.entry import Entry, WrittenEntry
from helm_longctx.tasks.entry_data import check_own_questions
from helm_longctx.tasks.registry import OURS, BenchmarkProtocol, read_single_entry
from helm_longctx.tasks.request_settings import GIVEN_TEXTS

_MODEL = ("model", "model_deployment")


@dataclass(frozen=True)
class PlannedEntry:
    """A checked run entry, its key path in the configuration, and the model that it names, if any."""

    text: str
    path: KeyPath
    model: str = ""


@dataclass(frozen=True)
class _Draft:
    """A run entry that is not checked.

    Args:
        path: the key path of the entry.
        paths: the key paths of those arguments that stand elsewhere.
        protocol: the name of the protocol whose entry it is, if any.
    """

    written: WrittenEntry
    path: KeyPath
    paths: Mapping[str, KeyPath] = field(default_factory=dict)
    protocol: str = ""

    @property
    def name(self) -> str:
        return self.written.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.written.arguments

    @property
    def has_lengths(self) -> bool:
        return self.name in OURS and OURS[self.name].axis is not None

    @property
    def model(self) -> str:
        """The model that the entry names. It is empty if the entry names no model or a group of models."""
        named = [str(self.arguments[key]) for key in _MODEL if key in self.arguments]
        # To HELM a word without a slash is a group of models (helm/benchmark/run.py:51).
        return named[0] if named and "/" in named[0] else ""

    def with_arguments(self, arguments: Mapping[str, Any]) -> _Draft:
        """Return the draft with these arguments in place of its own."""
        return replace(self, written=self.written._replace(arguments=arguments))


def plan_entries(
    config: RunConfig,
    models: Sequence[ConfiguredModel],
    root: DataRoot,
) -> list[PlannedEntry]:
    """Return the run entries of a configuration, each once.

    Args:
        models: the configuration's models (`expand_models`).
        root: where the data of protocols are.

    Raises:
        InputError: an entry has an invalid part, or no model.
    """
    planned: dict[str, PlannedEntry] = {}
    protocols: dict[str, list[Entry]] = {}
    for draft in _add_retries(config, _draft_entries(config)):
        entry = _check(config, draft)
        if draft.protocol and entry:
            protocols.setdefault(draft.protocol, []).append(entry)
        judge = _choose_judge(config, entry)
        judged = draft.with_arguments({**judge, **draft.arguments})
        for asked in _add_models(config, judged, models):
            text = asked.written.text
            planned_entry = PlannedEntry(text=text, path=draft.path, model=asked.model)
            planned.setdefault(text, planned_entry)
    if not config.generated:
        check_own_questions(protocols, root)
    return list(planned.values())


def _draft_entries(config: RunConfig) -> Iterator[_Draft]:
    if config.tasks is not None:
        yield from _combine_tasks(config, config.tasks)
    if config.protocols:
        yield from _combine_protocols(config, config.protocols)
    for number, text in enumerate(config.entries or []):
        for written in text.entries:
            yield _Draft(written=written, path=("entries", number))
    for number, file in enumerate(config.conf_paths or []):
        path = ("conf_paths", number)
        with config.source_map.at(path):
            entries = [read_single_entry(entry) for entry in read_conf(str(file))]
        for written in entries:
            yield _Draft(written=written, path=path)


def _combine_tasks(config: RunConfig, tasks: Sequence[EntryText]) -> Iterator[_Draft]:
    """Yield the entries of tasks at each length, with the configuration's arguments that they take."""
    drafts = []
    allowed: list[list[str]] = []
    for number, text in enumerate(tasks):
        for written in text.entries:
            draft = _Draft(written=written, path=("tasks", number))
            with config.source_map.at(draft.path):
                allowed.append(list_arguments(written))
            drafts.append(draft)
    # At least one task takes each argument, and at least one has lengths if lengths are given.
    taken: dict[str, None] = {}
    for names in allowed:
        taken |= dict.fromkeys(names)
    taken.pop("length", None)
    _check_arguments(config, taken, "is an argument that none of the tasks takes")
    if config.lengths and not any(draft.has_lengths for draft in drafts):
        raise config.source_map.error(
            ("lengths",), " is given, but no task has lengths; leave it out"
        )
    for draft, names in zip(drafts, allowed, strict=True):
        yield from _add_lengths(config, _add_arguments(config, draft, names))


def _add_arguments(
    config: RunConfig,
    draft: _Draft,
    allowed: Collection[str],
) -> _Draft:
    """Return the draft with those of the configuration's arguments that are allowed and that it lacks."""
    shared = {}
    paths: dict[str, KeyPath] = {}
    for key, value in config.arguments.items():
        if key in allowed and key not in draft.arguments:
            shared[key] = value
            paths[key] = ("arguments", key)
    return replace(
        draft.with_arguments({**shared, **draft.arguments}),
        paths=paths,
    )


def _add_lengths(config: RunConfig, draft: _Draft) -> Iterator[_Draft]:
    """Yield the draft at each of the configuration's lengths, or as it is if it needs none of them."""
    if not draft.has_lengths or "length" in draft.arguments:
        yield draft
        return
    if not config.lengths:
        raise config.source_map.error(
            ("lengths",),
            f" is missing, and {draft.name} has lengths; give a list such as [8k, 128k]",
        )
    for number, length in enumerate(config.lengths):
        yield replace(
            draft.with_arguments({"length": length, **draft.arguments}),
            paths={**draft.paths, "length": ("lengths", number)},
        )


def _combine_protocols(
    config: RunConfig,
    protocols: Sequence[BenchmarkProtocol],
) -> Iterator[_Draft]:
    """Yield the entries of protocols. The configuration's arguments replace the protocols' own."""
    for number, reported in enumerate(protocols):
        path = ("protocols", number)
        protocol = reported.protocol
        if not protocol.entries:
            raise config.source_map.error(
                path, f": {protocol.name!r} cannot be run ({protocol.obstacle})"
            )
        for written in reported.written_entries:
            allowed = list_arguments(written)
            _check_arguments(config, allowed, f"is not an argument of {written.name}")
            arguments = {**written.arguments, **config.arguments}
            yield _Draft(
                written=written._replace(arguments=arguments),
                path=path,
                protocol=protocol.name,
            )


def _check_arguments(config: RunConfig, allowed: Collection[str], problem: str) -> None:
    """Raise an `InputError` with a problem if an argument of the configuration is not allowed."""
    for key in config.arguments:
        if key not in allowed:
            choices = list_choices(key, allowed)
            raise config.source_map.error(("arguments", key), f" {problem}; {choices}")


def _add_retries(config: RunConfig, drafts: Iterable[_Draft]) -> Iterator[_Draft]:
    """Yield each entry and, if `retry_cut` is given, after it the one that asks again for its cut answers."""
    is_used = False
    for draft in drafts:
        yield draft
        is_ours = draft.name in OURS and "retry_cut" not in draft.arguments
        if config.retry_cut and is_ours:
            is_used = True
            yield draft.with_arguments(
                {**draft.arguments, "retry_cut": config.retry_cut}
            )
    if config.retry_cut and not is_used:
        given = f"={config.retry_cut} is given, but all entries are HELM's own, which do not take it; leave it out"
        raise config.source_map.error(("retry_cut",), given)


def _add_models(
    config: RunConfig,
    draft: _Draft,
    models: Sequence[ConfiguredModel],
) -> Iterator[_Draft]:
    """Yield an entry as it is for all models without a sampling, and one for each model with a sampling."""
    if draft.model:
        yield draft
        return
    if not models:
        allowed = "a list of names of models, or of mappings with name and url"
        text = shorten(draft.written.text)
        raise config.source_map.error(
            ("models",), f" is missing, and {text} names no model; give {allowed}"
        )
    if not all(configured.has_sampling for configured in models):
        yield draft
    # A sampling is a part of a run's entry, so a model with one has entries of its own.
    for configured in models:
        if not configured.has_sampling:
            continue
        path = (*configured.path, "sampling")
        with config.source_map.at(path):
            sampling = configured.sampling
        drawn = draft
        if draft.arguments.get("metric") not in GIVEN_TEXTS:
            drawn = draft.with_arguments({**sampling, **draft.arguments})
        _check(config, replace(drawn, path=path, paths={}))
        yield drawn.with_arguments({**drawn.arguments, "model": configured.name})


def _check(config: RunConfig, draft: _Draft) -> Entry | None:
    """Check an entry, and return what it is if it is ours.

    Raises:
        InputError: the entry is wrong. The error has the place of the argument that is wrong.
    """
    try:
        return check_run_entry(draft.written)
    except InputError as error:
        path = draft.paths.get(error.argument, draft.path)
        raise config.source_map.error(path, f": {error}") from error


def _choose_judge(config: RunConfig, entry: Entry | None) -> dict[str, str]:
    """Return the argument `judge` of an entry with the configuration's judges, or empty if they cannot judge the entry.

    Citations keep their NLI model: language models judge them only if the entry itself has the argument `judge`.
    """
    judges = "+".join(config.judge.names)
    if judges == "auto" or entry is None or "judge" in entry.arguments:
        return {}
    if entry.metric:  # the model writes nothing that can be judged
        return {}
    annotator = entry.category.judge
    if not annotator or not any("judge" in task.all_arguments for task in entry.tasks):
        return {}
    if judges == "none" or issubclass(get_class_by_name(annotator), AnswerAnnotator):
        return {"judge": judges}
    return {}
