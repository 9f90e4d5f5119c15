"""Judges the answers of a run again without asking the model."""

import ctypes
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from helm.benchmark.runner import Runner, set_benchmark_output_path

from helm_longctx.errors import DamagedRunError, InputError, is_format_error
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.helm.codec import from_json
from helm_longctx.helm.run_specs import make_annotators, make_metrics, make_scenario
from helm_longctx.helm_api import Request, RequestState, RunSpec, ScenarioState
from helm_longctx.locks import LOCK, lock_run
from helm_longctx.models.results import parse_result
from helm_longctx.runner.runner import evaluate, runner_arguments
from helm_longctx.runner.spool import WholePromptAnnotations
from helm_longctx.runs.files import (
    RUN_SPEC,
    SCENARIO,
    STATES,
    find_runs,
    read_json,
    read_undamaged,
)
from helm_longctx.runs.ledger import check_nothing_in_batches
from helm_longctx.runs.prompts import stored_prompt, with_text
from helm_longctx.runs.records import (
    make_records,
    read_run_states,
    write_run,
)
from helm_longctx.tasks.entry import arguments_of, check_entry
from helm_longctx.tasks.run_names import read_run_name
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.writing import explain_full_disk


@dataclass(frozen=True)
class _Rejudgment:
    """The outcome of judging a run again. A verdict is one judge's opinion of one answer.

    Args:
        folder: the folder of the result.
        verdicts: number of verdicts.
        recovered: the number of verdicts minus that before.
        missing: number of verdicts that a judge failed to give.
    """

    folder: Path
    verdicts: int
    recovered: int
    missing: int


class Rejudger(Runner):
    """HELM's runner without the requests: it reads the model's answers from the run's files."""

    def __init__(
        self,
        output_path: Path,
        suite: str,
        local_path: Path,
    ):
        set_benchmark_output_path(str(output_path))  # where annotators look for data
        # Judges have their own limit of parallel calls.
        super().__init__(
            **runner_arguments(
                output_path, suite, local_path, parallelism=4, exit_on_error=True
            )
        )

    def specs(self, runs: Iterable[Path], judge: str | None) -> dict[Path, RunSpec]:
        """Return the run spec of each result, by the folder of its run. With `judge`, its name contains the judge.

        Raises an `InputError` if a run cannot be judged in this way, two results would have the same name, or another
        judge has judged the same answers in the suite of the results.
        """
        specs: dict[Path, RunSpec] = {}
        for run in dict.fromkeys(runs):
            spec = _with_judge(_load_spec(run), judge)
            if rivals := [
                other.name
                for other, result in specs.items()
                if result.name == spec.name
            ]:
                both = f"runs {rivals[0]} and {run.name} would both be written to {spec.name}"
                raise InputError(
                    f"{both}; judge them in two commands, each with its own --to"
                )
            suite = Path(self.runs_path)
            asked = read_run_name(spec.name).without("judge")
            for folder in suite.iterdir() if judge and suite.is_dir() else ():
                # HELM would average over the two judges.
                if folder.name == spec.name:
                    continue
                if read_run_name(folder.name).without("judge") == asked:
                    other = f"this suite has {folder.name}, which has another judge"
                    raise InputError(
                        f"to={suite.name!r}: {other}; give a suite of its own"
                    )
            check_annotators(
                spec.annotators or [], self.annotator_executor.factory.credentials
            )
            specs[run] = spec
        return specs

    def rejudge(self, run: Path, spec: RunSpec) -> _Rejudgment:
        """Judge a run's answers again, compute its statistics again, and write the result to this runner's suite.

        Raises an `InputError` if the run cannot be read or is in use by another process, or the disk is full.
        """
        target = Path(self.runs_path) / spec.name

        def whole_request(state: RequestState) -> Request:
            sample = Sample.from_json(state.instance.extra_data)
            # Judges read the whole prompt only if it was cut.
            if not (state.prompt_truncated and sample.full_prompt):
                return state.request
            return with_text(
                state.request,
                stored_prompt(run, sample.full_prompt["sha256"], state.instance.id),
            )

        with ExitStack() as stack:
            # With the run's own judge both are the same folder, so this is a set.
            for folder in {run.resolve(), target.resolve()}:
                if folder.is_dir():
                    stack.enter_context(lock_run(folder))
                    check_nothing_in_batches(folder)
            stack.enter_context(explain_full_disk(target, f"{run} is unchanged"))
            before = load_state(run)
            # The old verdicts are another judge's, or `judge=none` means no verdicts.
            states = []
            for request_state in before.request_states:
                states.append(replace(request_state, annotations=None))
            state = replace(
                before, annotator_specs=spec.annotators, request_states=states
            )
            state = WholePromptAnnotations(
                self.annotator_executor, whole_request
            ).execute(state)
            stats, instance_stats = evaluate(self, spec, state)
            write = partial(
                write_run,
                spec=spec,
                scenario=read_json(run / SCENARIO),
                stats=stats,
                records=make_records(state.request_states, instance_stats),
            )
            _replace_run(run, target, write)
        old_verdicts, _ = _count_verdicts(before)
        verdicts, missing = _count_verdicts(state)
        return _Rejudgment(
            folder=target,
            verdicts=verdicts,
            recovered=max(0, verdicts - old_verdicts),
            missing=missing,
        )


def _count_verdicts(state: ScenarioState) -> tuple[int, int]:
    """Return how many verdicts a run has and how many are missing."""
    verdicts = missing = 0
    for request_state in state.request_states:
        for note in (request_state.annotations or {}).values():
            if not note:
                continue
            judges = len(note.get("judges", ())) or 1
            # `failed` is the share of a jury's judges without a verdict.
            failed = round(float(note.get("failed", 0)) * judges)
            verdicts += judges - failed
            missing += failed
    return verdicts, missing


def judged_runs(suite: Path) -> Iterator[Path]:
    """Yield the folders of finished runs with a judge. Runs with a damaged run spec are left out with a warning.

    Raises an `InputError` if all run specs are damaged.
    """
    for run, spec in read_undamaged(find_runs(suite), _load_spec):
        if spec.annotators and (run / STATES).is_file():
            yield run


def _load_spec(run: Path) -> RunSpec:
    spec = load_object(run / RUN_SPEC, RunSpec)
    assert isinstance(spec, RunSpec)
    return spec


def _with_judge(spec: RunSpec, judge: str | None) -> RunSpec:
    """Return the run spec for judging again. It has the classes of today, because the spec may have older paths."""
    asked = read_entry(spec)
    if asked is None:
        raise InputError(f"run {spec.name} is not a run of this package; leave it out")
    benchmark = asked.benchmark
    if not any(task.has_judge for task in asked.tasks):
        raise InputError(
            f"run {spec.name} cannot be judged, because none of its tasks has a judge; leave it out"
        )
    if judge is None and not spec.annotators:
        raise InputError(f"run {spec.name} has no judge; name one with --judge")
    arguments = {**asked.arguments, "judge": judge or asked.settings.judge}
    entry = check_entry(benchmark, asked.name, arguments)
    run_name = spec.name
    if judge:
        plain = read_run_name(spec.name).without("judge")
        shown = judge.replace("/", "_")
        run_name = str(
            plain.with_argument("judge", shown, ours=arguments_of(benchmark))
        )
    return replace(
        spec,
        name=run_name,
        scenario_spec=replace(
            spec.scenario_spec, class_name=make_scenario(entry).class_name
        ),
        metric_specs=make_metrics(entry),
        annotators=make_annotators(entry),
        groups=entry.groups if judge else spec.groups,
    )


def load_object(path: Path, kind: Any) -> Any:
    """Read an object of HELM, or a list of them (`list[Stat]`). Raises a `DamagedRunError` if that fails."""
    with _parsing(path):
        return from_json(path.read_bytes(), kind)


@contextmanager
def _parsing(path: Path) -> Iterator[None]:
    """Raise a `DamagedRunError` for an error of HELM's codec in the block, which raises groups of errors."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not (isinstance(error, OSError) or is_format_error(error)):
            raise
        raise DamagedRunError(
            f"{path} cannot be read ({type(error).__name__}); repeat that run"
        ) from error


def load_state(run: Path) -> ScenarioState:
    """Read the state of a finished run with what is known of its answers, which HELM's codec leaves out.

    Raises:
        InputError: the run's files cannot be read.
    """
    spec = _load_spec(run)
    states = []
    with _parsing(run / STATES):
        for plain in read_run_states(run):
            result = plain.get("result")
            states.append(
                replace(
                    from_json(json.dumps(plain), RequestState),
                    result=parse_result(result) if result else None,
                )
            )
    return ScenarioState(spec.adapter_spec, states, spec.annotators)


_CURRENT_FOLDER = -100
_EXCHANGE = 2
"""Linux's numbers for `AT_FDCWD` and `RENAME_EXCHANGE`."""


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, and return whether the system can.

    With two steps, a process that is killed between them would leave no run.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system than Linux
        return False
    names = [os.fsencode(one), os.fsencode(other)]
    status: int = rename(
        _CURRENT_FOLDER, names[0], _CURRENT_FOLDER, names[1], _EXCHANGE
    )
    return status == 0


def _replace_run(run: Path, target: Path, change: Callable[[Path], None]) -> None:
    """Copy a run, change the copy, and put it to `target` in one step, so that the folder is never incomplete."""
    with tempfile.TemporaryDirectory(prefix=".rejudged-", dir=target.parent) as name:
        new = Path(name) / "new"
        old = Path(name) / "old"
        shutil.copytree(run, new, ignore=shutil.ignore_patterns(f"{LOCK}*"))
        change(new)
        if target.exists() and _exchange(new, target):
            return
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:  # also an interrupt: restore the old run before the temporary folder is removed
            if old.exists() and not target.exists():
                old.rename(target)
            raise
