"""Judging a run's answers again, without asking the model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.run_spec import RunSpec, get_run_spec_function
from helm.benchmark.runner import Runner, set_benchmark_output_path
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.codec import from_json
from helm.common.request import Request
from helm.proxy.services.service import CACHE_DIR

from helm_longctx.benchmarks import benchmark_of
from helm_longctx.errors import InputError
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.locks import LOCK, lock_run
from helm_longctx.protocol.entry import arguments_of
from helm_longctx.protocol.sample import Sample
from helm_longctx.running.annotating import WholePromptAnnotations
from helm_longctx.running.cache import with_digest_cache
from helm_longctx.running.disk import name_full_disk
from helm_longctx.runs.conversation import with_text
from helm_longctx.runs.prompts import stored_prompt
from helm_longctx.runs.results import evaluated, write_json


@dataclass(frozen=True)
class Rejudgment:
    """A run that was judged again. A verdict is what one judge says of one answer.

    Args:
        folder: of the result.
        given: verdicts that there are.
        recovered: how many more they are than before.
        missing: verdicts that a judge owes.
    """

    folder: Path
    given: int
    recovered: int
    missing: int


class Rejudger(Runner):
    """HELM's runner without its first half: what a run's model answered is read from the run's files."""

    def __init__(self, output_path: Path, suite: str, local_path: Path):
        set_benchmark_output_path(str(output_path))  # annotators find data there
        cache = local_path / CACHE_DIR
        cache.mkdir(parents=True, exist_ok=True)
        spec = ExecutionSpec(
            url=None,
            auth=None,  # only for a proxy server
            local_path=str(local_path),
            parallelism=4,  # threads of HELM's; judges have a limit of their own
            sqlite_cache_backend_config=SqliteCacheBackendConfig(str(cache)),
        )
        super().__init__(
            execution_spec=with_digest_cache(spec),
            output_path=str(output_path),
            suite=suite,
            skip_instances=False,
            cache_instances=False,
            cache_instances_only=False,
            skip_completed_runs=False,
            exit_on_error=True,
        )

    def specs(self, runs: Iterable[Path], judge: str | None) -> dict[Path, RunSpec]:
        """For each run, by its folder, the spec of its result; a judge that is given is part of its name.

        Args:
            judge: as in a run entry; None for each run's own.

        Raises:
            InputError: a run cannot be judged so, or two results would have one name.
        """
        specs: dict[Path, RunSpec] = {}
        for run in dict.fromkeys(runs):
            spec = _judged_by(_read(run / "run_spec.json", RunSpec), judge)
            if rivals := [other.name for other, its in specs.items() if its.name == spec.name]:
                raise InputError(
                    f"runs {rivals[0]} and {run.name} would both be written to {spec.name}; judge them in two "
                    "commands, each with its own --to"
                )
            check_annotators(spec.annotators or [], self.annotator_executor.factory.credentials)
            specs[run] = spec
        return specs

    def rejudge(self, run: Path, spec: RunSpec) -> Rejudgment:
        """Judge a run's answers again and make its statistics anew.

        Args:
            run: its folder.
            spec: of the result, which goes to the runner's suite.

        Raises:
            InputError: the run cannot be read, is in use by another process, or the disk is full.
        """
        target = Path(self.runs_path) / spec.name
        with ExitStack() as stack:
            for folder in {run.resolve(), target.resolve()}:
                if folder.is_dir():
                    stack.enter_context(lock_run(folder))
            stack.enter_context(name_full_disk(target, f"{run} is as it was"))
            before = _read(run / "scenario_state.json", ScenarioState)
            state = _unjudged(before, spec.annotators)
            state = WholePromptAnnotations(self.annotator_executor, partial(_whole_request, run)).execute(state)
            stats, each = evaluated(self, spec, state)
            files = {"run_spec": spec, "scenario_state": state, "stats": stats, "per_instance_stats": each}
            _place(run, target, files)
        (given_before, _), (given, missing) = _verdicts(before), _verdicts(state)
        return Rejudgment(target, given, max(0, given - given_before), missing)


def _verdicts(state: ScenarioState) -> tuple[int, int]:
    """How many verdicts a run has, and how many are missing."""
    given = missing = 0
    for note in (note for each in state.request_states for note in (each.annotations or {}).values() if note):
        judges = len(note.get("judges", ())) or 1
        failed = round(float(note.get("failed", 0)) * judges)
        given, missing = given + judges - failed, missing + failed
    return given, missing


def _unjudged(state: ScenarioState, annotators: list[AnnotatorSpec] | None) -> ScenarioState:
    """The answers without what was said of them: nobody may be asked now, and the old verdicts are another judge's."""
    answers = [replace(each, annotations=None) for each in state.request_states]
    return replace(state, annotator_specs=annotators, request_states=answers)


def judged_runs(suite: Path) -> Iterator[Path]:
    """The finished runs of a suite that have a judge.

    Raises:
        InputError: a run's spec cannot be read.
    """
    for path in sorted(suite.glob("*/scenario_state.json")):
        if _read(path.parent / "run_spec.json", RunSpec).annotators:
            yield path.parent


def _whole_request(run: Path, state: RequestState) -> Request:
    """Whole only where it was cut: what a model was shown is asked of no other prompt."""
    stored = Sample.from_json(state.instance.extra_data).full_prompt if state.prompt_truncated else None
    return (
        with_text(state.request, stored_prompt(run, stored["sha256"], state.instance.id)) if stored else state.request
    )


def _judged_by(spec: RunSpec, judge: str | None) -> RunSpec:
    if judge is None:
        if not spec.annotators:
            raise InputError(f"run {spec.name} has no judge; name one with --judge")
        return spec
    entry = spec.scenario_spec.args.get("entry", "")
    function = get_run_spec_function(entry)
    if function is None:
        raise InputError(f"run {spec.name} is not of this package")
    taken = arguments_of(benchmark_of(entry))
    arguments = {name: value for name, value in spec.scenario_spec.args.items() if name in taken}
    annotators: list[AnnotatorSpec] = function(**arguments, judge=judge).annotators or []
    return replace(spec, name=_named(spec.name, judge), annotators=annotators)


def _named(run: str, judge: str) -> str:
    """The run's name with the judge where its entry has it: after our arguments, before HELM's."""
    entry, _, rest = run.partition(":")
    parts = [part for part in rest.split(",") if not part.startswith("judge=")]
    arguments = arguments_of(benchmark_of(entry))
    ours = sum(part.partition("=")[0] in arguments for part in parts)
    parts.insert(ours, f"judge={judge.replace('/', '_')}")
    return f"{entry}:{','.join(parts)}"


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        return from_json(path.read_bytes(), kind)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__}); make that run again") from error


def _place(run: Path, target: Path, files: dict[str, Any]) -> None:
    """The run with other files, put in its place whole."""
    with tempfile.TemporaryDirectory(prefix=".rejudged-", dir=target.parent) as name:
        made, before = Path(name) / "run", Path(name) / "before"
        shutil.copytree(run, made, ignore=shutil.ignore_patterns(f"{LOCK}*"))
        for stem, content in files.items():
            write_json(made / f"{stem}.json", content)
        try:
            if target.exists():
                target.rename(before)
            made.rename(target)
        except BaseException:  # an interrupt, too: what was there goes back before this folder is removed
            if before.exists() and not target.exists():
                before.rename(target)
            raise
