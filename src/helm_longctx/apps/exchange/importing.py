"""Reads files of other programs into a suite: answers become runs, and scores without answers published results."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.runner import remove_per_instance_stats_nans, remove_stats_nans
from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Output, Reference

from helm_longctx.apps.exchange import inspect_logs, lm_eval, tables
from helm_longctx.apps.exchange.answers import resolve_entry
from helm_longctx.apps.exchange.export import LONGEST_NAME
from helm_longctx.data.unpack import gunzip
from helm_longctx.errors import InputError, bad_argument, is_format_error, shorten
from helm_longctx.failures import failure_of_text
from helm_longctx.helm.run_specs import make_entry_spec
from helm_longctx.helm_api import (
    GeneratedOutput,
    Input,
    Instance,
    PerInstanceStats,
    Request,
    RequestResult,
    RequestState,
    RunSpec,
    ScenarioState,
    Stat,
    get_class_by_name,
)
from helm_longctx.models.results import make_failure
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.suite import add_rows
from helm_longctx.runs.files import SCENARIO
from helm_longctx.runs.prompts import (
    elide_texts,
    evidence_of,
    instance_names,
    write_prompts,
)
from helm_longctx.runs.records import make_records, write_run
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import MOST_REPEATS, Entry
from helm_longctx.tasks.entry_data import digest_own_files
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.outputs import (
    PACKED,
    OutputReader,
    OutputRun,
    OutputScore,
    RunOrScore,
)
from helm_longctx.tasks.outputs import Output as ForeignOutput
from helm_longctx.tasks.publications import Published
from helm_longctx.tasks.run_names import add_argument
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import (
    GENERATED_SOURCE,
    TEXTS,
    Shape,
    Task,
    is_number,
    is_text,
    is_whole,
)

_MODEL = re.compile(r"[\w.-]+/[\w.:-]+")
"""Matches a model's name in HELM: an organization and a name."""

_ORGANIZATION = "imported"
"""The organization of a model whose name has none."""


class Imported(NamedTuple):
    """The result of an import.

    Args:
        scores: number of scores without answers, by the benchmark's name.
        left_out: number of scores that the runs have already.
    """

    runs: dict[Path, int]
    scores: dict[str, int]
    left_out: int


def find_readers(benchmarks: Iterable[Benchmark]) -> dict[str, OutputReader]:
    """Return the readers by the names of their formats: first readers of benchmarks, then readers of programs."""
    readers = {}
    for benchmark in benchmarks:
        if benchmark.outputs:
            readers[benchmark.name] = get_class_by_name(benchmark.outputs)
    programs = {
        "inspect": inspect_logs.READER,
        "lm-eval": lm_eval.READER,
        "csv": tables.READER,
    }
    return {**readers, **programs}


def import_files(
    paths: Iterable[Path],
    suite: Path,
    benchmarks: Sequence[Benchmark],
    format: str | None = None,
    entry: str = "",
    model: str = "",
) -> Imported:
    """Read files, and all files of known formats in folders, and write their results into a suite.

    Nothing is written before all files have been read.

    Args:
        format: a key of `find_readers`, or None to choose it by the files' names.
        entry: the run entry of the answers, instead of that in the files.

    Raises:
        InputError: a file is malformed, or does not name its task.
    """
    imported: list[RunOrScore] = []
    for path in paths:
        imported += _read(path, find_readers(benchmarks), format, entry)
    named = []
    for run in imported:
        if not isinstance(run, OutputRun):
            continue
        if not run.outputs:
            raise InputError(f"{run.entry}: there are no answers")
        start = run.outputs[0].location
        own = _check_entry(benchmarks, run.entry, start)
        _check_answers(own, run)
        name = model or run.model
        if not _MODEL.fullmatch(name):
            # For a path, only the last part is used.
            last = name.rstrip("/").rpartition("/")[2]
            if not re.fullmatch(r"[\w.:-]+", last):
                about = f"model {shorten(name)} is not a name; give --model, such as meta/llama-3.1-8b"
                raise InputError(f"{start}: {about}")
            name = f"{_ORGANIZATION}/{last}"
        named.append((own, run, name))
    scores = []
    for score in imported:
        if isinstance(score, OutputScore):
            scores.append(score)
    # Runs and scores are the same if model, entry, task, length and context are.
    answered = set()
    for own, run, _ in named:
        settings = own.settings
        key = (
            run.model,
            own.name,
            own.tasks[0].name,
            settings.length,
            settings.context,
        )
        answered.add(key)
    alone = []
    left_out = 0
    for score in scores:
        row = score.row
        tasks = (*row.scores, *row.metrics)
        keys = []
        for task in tasks:
            keys.append((row.model, score.entry, task, row.length, score.context))
        if answered.isdisjoint(keys):
            alone.append(score)
        else:
            left_out += len(row.scores)
    rows = _published_rows(benchmarks, alone, model)
    for benchmark in benchmarks:
        if benchmark.name in rows:
            add_rows(benchmark, suite, rows[benchmark.name])
    folders = {}
    for run_entry, run, name in named:
        folders[import_run(suite, run_entry, run, name)] = len(run.outputs)
    counts = dict.fromkeys(rows, 0)
    for name, added in rows.items():
        for row in added:
            counts[name] += len(row.scores)
    return Imported(
        runs=folders,
        scores=counts,
        left_out=left_out,
    )


def _read(
    path: Path,
    readers: Mapping[str, OutputReader],
    format: str | None,
    entry: str,
) -> Iterator[RunOrScore]:
    """Yield the content of a file or of the files in a folder. A file has the first format that matches its name."""
    if format is not None and format not in readers:
        raise bad_argument("import", "format", format, readers)
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    seen: set[Path] = set()
    for reader in [readers[format]] if format else readers.values():
        for file in reader.files(path):
            if file not in seen and (format or reader.fits(file)):
                seen.add(file)
                with _open_plain(file) as plain:
                    yield from _read_file(reader, plain, entry, shown=file)
    if not seen:
        known = "; ".join(f"{name}: {reader.title}" for name, reader in readers.items())
        raise InputError(
            f"{path}: no file has a known name ({known}); give --format for another name"
        )


def _read_file(
    reader: OutputReader,
    plain: Path,
    entry: str,
    shown: Path,
) -> Iterator[RunOrScore]:
    """Yield the content of a file.

    Args:
        shown: the file that errors name instead of an unpacked copy.
    """
    try:
        yield from reader.read(plain, entry)
    except InputError as error:
        if plain == shown:
            raise
        raise InputError(str(error).replace(str(plain), str(shown))) from error
    except Exception as error:  # an unexpected structure
        if not is_format_error(error):
            raise
        about = f"not in the format of {reader.title} ({type(error).__name__})"
        raise InputError(f"{shown}: {about}") from error


@contextmanager
def _open_plain(file: Path) -> Iterator[Path]:
    """Yield a file as it is, or an unpacked copy of a gzip file for as long as it is read.

    The copy's folder has the name of the file's folder, because lm-evaluation-harness names models by folders.
    """
    if file.suffix != PACKED:
        yield file
        return
    with TemporaryDirectory(prefix="helm_longctx_import") as temporary:
        folder = Path(temporary) / file.resolve().parent.name
        folder.mkdir()
        plain = folder / file.stem
        gunzip(file, plain)
        yield plain


def _check_entry(benchmarks: Sequence[Benchmark], text: str, location: str) -> Entry:
    try:
        return resolve_entry(benchmarks, text)
    except InputError as error:
        raise InputError(f"{location}: {error}") from error


def _published_rows(
    benchmarks: Sequence[Benchmark],
    scores: Iterable[OutputScore],
    model: str,
) -> dict[str, list[Published]]:
    """Return the scores as published results, by benchmark: scores of one model, category and length are in one row."""
    rows: dict[str, dict[tuple[str, str, int | None], Published]] = defaultdict(dict)
    for score in scores:
        benchmark = next(owner for owner in benchmarks if score.entry in owner.entries)
        row = replace(score.row, model=model or score.row.model)
        if score.context != "full":
            raise InputError(
                f"{score.location}: a closed-book score can only be imported with its answers"
            )
        if not row.model:
            raise InputError(f"{score.location}: it names no model; give --model")
        if row.length is None:
            length = ""
        else:
            length = f",length={length_label(row.length)}"
        for task in filter(None, row.scores):
            argument = f"{benchmark.task_argument}={benchmark.task(task).argument}"
            _check_entry(
                benchmarks, f"{score.entry}:{argument}{length}", score.location
            )
        key = (row.model, row.category, row.length)
        rows[benchmark.name][key] = rows[benchmark.name].get(key, row).update(row)
    return {name: list(by_key.values()) for name, by_key in rows.items()}


SOURCE = "imported"
"""`Sample.source` of imported answers, and the tag of their runs."""


_SHAPES = {
    # A text with a lone surrogate cannot be a name in files.
    "id": Shape(
        "a text in UTF-8",
        lambda value: (
            is_text(value) and not any("\ud800" <= c <= "\udfff" for c in value)
        ),
    ),
    "references": TEXTS,
    "repeat": Shape(
        f"a whole number below {MOST_REPEATS}, counted from 0",
        lambda value: is_whole(value) and 0 <= value < MOST_REPEATS,
    ),
    # No prompt has a billion tokens.
    "input_tokens": Shape(
        "a number of tokens",
        lambda value: value is None or (is_whole(value) and 0 <= value <= 10**9),
    ),
    "depth": Shape(
        "a finite number",
        lambda value: value is None or (is_number(value) and isfinite(value)),
    ),
    "notes": Shape(
        "an object of objects",
        lambda value: (
            isinstance(value, Mapping)
            and all(isinstance(note, Mapping) for note in value.values())
        ),
    ),
}
"""The values of an `Output` that any file can have, whatever its task."""


def import_run(
    suite: Path,
    entry: Entry,
    run: OutputRun,
    model: str,
) -> Path:
    """Write a run of the answers to one task, replace an earlier import of them, and return its folder.

    Raises:
        InputError: a run with this name was made here.
    """
    (task,) = entry.tasks
    own_files = digest_own_files(entry.tasks, entry.settings.path)
    spec = make_entry_spec(entry, own_files)
    repeats = max((output.repeat for output in run.outputs), default=0) + 1
    adapter = replace(
        spec.adapter_spec,
        model=model,
        model_deployment=model,
        num_trials=repeats,
    )
    name = add_argument(spec.name, "model", model.replace("/", "_"))
    spec = replace(spec, name=name, adapter_spec=adapter)
    folder = suite / spec.name.replace("/", "_")
    size = len(folder.name.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NAME:
        about = f"{shorten(folder.name)}: the run's name has {size} bytes, and {LONGEST_NAME} are allowed"
        raise InputError(f"{about}; give a shorter --model")
    path = folder / SCENARIO
    if (
        folder.is_dir()
        and any(folder.iterdir())
        and not (path.is_file() and f'"{SOURCE}"' in path.read_text("utf-8"))
    ):
        raise InputError(
            f"{folder} is a run that was made here; import into another suite, or name"
            " another --model"
        )
    folder.mkdir(parents=True, exist_ok=True)
    states = list(_states(spec, entry, task, run.outputs))
    # The states have only excerpts of the prompts.
    prompts = []
    for output in sorted(run.outputs, key=lambda output: output.repeat):
        prompts.append(output.prompt)
    keys = []
    for state, prompt in zip(states, prompts, strict=True):
        keys.append((state.instance.id or "", state.instance.sub_split, digest(prompt)))
    write_prompts(folder, zip(instance_names(keys), prompts, strict=True))
    state = ScenarioState(spec.adapter_spec, states, spec.annotators)
    stats: list[Stat] = []
    rows: list[PerInstanceStats] = []
    for metric in spec.metric_specs:
        # Our metrics use neither HELM's services nor a cache of their own.
        result = create_metric(metric).evaluate(state, None, "", 1)
        stats += result.aggregated_stats
        rows += result.per_instance_stats
    files = dict.fromkeys(output.location.rpartition(":")[0] for output in run.outputs)
    about = f"Answers from {', '.join(Path(file).name for file in files)}, scored here."
    name = str(spec.scenario_spec.args["entry"])
    scenario = {
        "name": name,
        "description": about,
        "tags": [SOURCE],
        "definition_path": "",
    }
    write_run(
        folder,
        spec=spec,
        scenario=scenario,
        stats=remove_stats_nans(stats),
        records=make_records(states, remove_per_instance_stats_nans(rows)),
    )
    return folder


def _check_answers(entry: Entry, run: OutputRun) -> None:
    """Check that the answers to one task can be scored.

    Raises:
        InputError: an answer lacks a field that the task's scorer reads, or is in the file twice.
    """
    (task,) = entry.tasks
    for output in run.outputs:
        for name, shape in _SHAPES.items():
            shape.check(f"{output.location}: {name}", getattr(output, name))
        task.check_record(output.record, output.location)
    first_outputs: dict[tuple[str, int], ForeignOutput] = {}
    for output in run.outputs:
        first = first_outputs.setdefault((output.id, output.repeat), output)
        if first is not output:
            raise InputError(
                f"{output.location}: the example {output.id!r} has an answer in"
                f" {first.location}; number its repeats"
            )


def _states(
    spec: RunSpec,
    entry: Entry,
    task: Task,
    outputs: Iterable[ForeignOutput],
) -> Iterator[RequestState]:
    """Yield the request states. Repeats of an example share an instance object: HELM's metrics rely on that."""
    instances: dict[str, Instance] = {}
    for output in sorted(outputs, key=lambda output: output.repeat):
        instance = instances.setdefault(output.id, _instance(entry, task, output))
        request = Request(
            model=spec.adapter_spec.model,
            model_deployment=spec.adapter_spec.model_deployment,
            prompt=output.prompt,
            temperature=spec.adapter_spec.temperature,
            max_tokens=spec.adapter_spec.max_tokens,
        )
        if output.prediction is None:
            error = output.error or "the file has no answer"
            result = make_failure(output.failure or failure_of_text(error), error)
        else:
            completion = GeneratedOutput(
                text=output.prediction,
                logprob=0,
                tokens=[],
                finish_reason={"reason": output.finish_reason}
                if output.finish_reason
                else None,
            )
            result = RequestResult(
                success=True,
                embedding=[],
                completions=[completion],
                cached=False,
            )
        yield RequestState(
            instance=instance,
            reference_index=None,
            request_mode=None,
            train_trial_index=output.repeat,
            output_mapping=None,
            request=elide_texts(request, _evidence(output)),
            result=result,
            num_train_instances=0,
            prompt_truncated=False,
            annotations=dict(output.notes) or None,
        )


def _instance(entry: Entry, task: Task, output: ForeignOutput) -> Instance:
    budget = task.budget(entry.settings)
    sample = Sample(
        source=GENERATED_SOURCE if output.is_generated else SOURCE,
        max_tokens=budget,
        run_max_tokens=budget,
        chat=task.chat,
        cut=task.cut,
        question=output.record.get("question"),
        depth=output.depth,
        prompt_tokens=output.input_tokens,
        record={**output.record, **task.record_fields(entry.settings)},
        group=output.group,
        style="chat" if task.chat else "completion",
        full_prompt={"sha256": digest(output.prompt), "characters": len(output.prompt)},
    )
    return Instance(
        input=elide_texts(Input(text=output.prompt), _evidence(output)),
        references=[
            Reference(Output(text=text), tags=[CORRECT_TAG])
            for text in output.references
        ],
        split=TEST_SPLIT,
        sub_split=task.name,
        id=output.id,
        extra_data=sample.to_json(),
    )


def _evidence(output: ForeignOutput) -> list[str]:
    return evidence_of(
        output.references,
        Sample(
            source="",
            max_tokens=0,
            run_max_tokens=0,
            record=output.record,
        ),
    )
