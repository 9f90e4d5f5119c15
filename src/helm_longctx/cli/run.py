"""`run`: make and judge the runs that a YAML file or options describe, or watch a folder of checkpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from helm_longctx.cli.batch import print_states, show_batch_log
from helm_longctx.config.estimates import print_estimates
from helm_longctx.config.load import load_config
from helm_longctx.config.options import read_options, takes_options
from helm_longctx.config.schema import LocalModels, RunConfig
from helm_longctx.config.shared import Quiet, Verbose, fill_registries, set_log_levels
from helm_longctx.errors import InputError, describe_count
from helm_longctx.interruptions import stoppable

if TYPE_CHECKING:
    from helm_longctx.apps.exchange.loggers import Target
    from helm_longctx.apps.reproduction.protocols import Reproduction
    from helm_longctx.config.plan import Plan
    from helm_longctx.runner.estimate import Estimate
    from helm_longctx.runner.stopping import Stop

_ADVICE = "give --prices, or in YAML limits.prices"

_CHECKPOINT_SECONDS = 5.0
"""Seconds for which a checkpoint's files must stay as they are before it counts as complete."""

_Schema = Annotated[
    bool,
    typer.Option(
        "--schema", is_eager=True, help="Print the JSON schema of the YAML file."
    ),
]


@takes_options()
def run(
    config: Annotated[
        Path | None,
        typer.Argument(help="Configuration in YAML. Options replace its values."),
    ] = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    schema: _Schema = False,
    **options: Any,
) -> None:
    """Run and judge what a YAML file or options describe, and print the scores.

    Everything is checked before anything is sent. It can be interrupted and repeated: no answer is paid for twice.
    """
    if schema:
        print(json.dumps(RunConfig.model_json_schema(), indent=2))
        return
    make_configured_runs(config, options, quiet, verbose)


def make_configured_runs(
    path: Path | None,
    arguments: Mapping[str, Any],
    quiet: bool,
    verbose: bool,
    reproduction: Reproduction | None = None,
) -> None:
    """Make the runs of a file and of the command's options, or print them in a dry run, or raise an `InputError`.

    Args:
        reproduction: the published numbers with which the runs are compared. By default they are those of the
            configuration's protocols.
    """
    with set_log_levels(quiet, verbose) as prints:
        config = load_config(path, read_options(arguments))
        if config.batch and not quiet:
            show_batch_log()
        targets = _read_targets(config)

        def make(config: RunConfig) -> None:
            _run(config, targets, prints, reproduction)

        if config.watch is None:
            make(config)
        elif config.watch.is_dir():
            watch(config, config.watch, make)
        else:
            raise config.source_map.error(
                ("watch",),
                f"={str(config.watch)!r} is not a folder; give one with checkpoints",
            )


def _read_targets(config: RunConfig) -> list[Target]:
    """Return where scores are logged, or raise an `InputError` before anything is sent."""
    targets = []
    for number, text in enumerate(config.log_to or []):
        from helm_longctx.apps.exchange.loggers import parse_target

        with config.source_map.at(("log_to", number)):
            targets.append(parse_target(text))
    return targets


def _run(
    config: RunConfig,
    targets: Sequence[Target],
    prints: TextIO,
    given: Reproduction | None,
) -> None:
    from helm_longctx.apps.reproduction.protocols import Reproduction
    from helm_longctx.config.plan import make_plan  # this imports HELM
    from helm_longctx.config.settings import make_settings

    reproduction = given or Reproduction(config.protocols or ())
    with make_settings(config).use():
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            plan = make_plan(config)
            estimates = plan.estimates() if config.dry_run or config.protocols else []
        reproduction.print_numbers(has_numbers=config.dry_run)
        if config.dry_run:
            _print_plan(plan, estimates)
            return
        print_estimates(estimates, _ADVICE)
        if config.batch and not _answer_in_batches(plan, prints):
            return
        with redirect_stdout(prints):
            failure, stops = _make_runs(plan)
        _print_scores(plan, has_failed=failure is not None)
        if targets:
            _log_scores(plan, targets)
        for stop in stops:
            print(stop)
        if failure:
            raise failure
        reproduction.print_comparison(plan.folder, plan.deployments)


def _print_plan(plan: Plan, estimates: list[Estimate]) -> None:
    print(f"{describe_count(len(plan.specs), 'run')}:")
    for spec in plan.specs:
        print(f"  {spec.name}")
    print("\nThe same runs with HELM's command:\n")
    for command in plan.commands():
        print(f"{command}\n")
    for endpoint in plan.missing:
        print(
            f"No request was sent to {endpoint.url}: the estimate uses the values in"
            " the configuration."
        )
    print_estimates(estimates, _ADVICE)
    if later := len(plan.retries):
        print(
            f"Not in the estimate: {describe_count(later, 'run')} for cut answers; how"
            " many these are is known after the other runs."
        )
    if others := len(plan.specs) - len(estimates) - later:
        print(
            f"Not in the estimate: {describe_count(others, 'run')} of HELM's other"
            " scenarios."
        )


def _answer_in_batches(plan: Plan, prints: TextIO) -> bool:
    """Send and collect batches. Print those that are open, and return whether there are none."""
    from helm_longctx.runner.batches.rounds import answer_in_batches
    from helm_longctx.runner.batches.submission import BatchPlan

    config = plan.config
    # It is not known yet which answers are asked again.
    later = plan.retries
    with redirect_stdout(prints):
        batches = answer_in_batches(
            [spec for spec in plan.specs if spec not in later],
            BatchPlan(
                as_files=config.batch == "files", batch_size=config.limits.batch_size
            ),
            config.output_path,
            config.suite,
            config.local_path,
            waits=config.batch == "wait",
        )
    if not batches.are_open:
        return True
    print_states(batches)
    print("Run the same command again when the batches have ended.")
    return False


def _make_runs(plan: Plan) -> tuple[InputError | None, Sequence[Stop]]:
    """Make the runs. If some fail, return an error that names them. Also return how questions ended."""
    from helm_longctx.config.plan import make_runner
    from helm_longctx.helm_api import RunnerError
    from helm_longctx.results.run_groups import write_groups
    from helm_longctx.runner.stopping import run_until_decided

    config = plan.config
    if config.groups:
        patterns = {name: text.split(",") for name, text in config.groups.items()}
        write_groups(plan.folder, patterns)
    runner = make_runner(config)
    rule = config.limits.stop_when
    try:
        if rule:
            return None, run_until_decided(runner, plan.specs, rule)
        runner.run_all(list(plan.specs))
    except InputError as error:
        return error, ()
    except RunnerError as error:
        return InputError(str(error)), ()
    return None, ()


def _print_scores(plan: Plan, has_failed: bool) -> None:
    """Print the scores, the runs that were made, where they are, and the next commands."""
    from helm_longctx.results.boards import make_suite
    from helm_longctx.results.cells import print_scores
    from helm_longctx.results.reading import read_results
    from helm_longctx.runs.files import STATS
    from helm_longctx.runs.journal import NAME as JOURNAL
    from helm_longctx.tasks.registry import BENCHMARKS

    config = plan.config
    folder = plan.folder
    made = []
    for spec in plan.specs:
        if (folder / spec.name / STATS).is_file():
            made.append(spec.name)
    if not made:
        return
    results = read_results(folder, BENCHMARKS, keep_answers=False)
    print_scores(folder, make_suite(results, BENCHMARKS))
    unfinished = []
    for name in made:
        if (folder / name / JOURNAL).is_file():
            unfinished.append(name)
    options = f"--suite {config.suite} --output-path {config.output_path}"
    print(f"Intervals and plots: helm-longctx report {options}")
    print(f"Tables as files: helm-longctx export {options}")
    # A run that could not be made again keeps its earlier results.
    origin = ", from this or an earlier command" if has_failed else ""
    print(f"{len(made)} of {len(plan.specs)} runs are in {folder}{origin}.")
    if unfinished:
        print(
            f"Requests without an answer remain in {', '.join(unfinished)}; repeat the"
            " command to send them again."
        )


def _log_scores(plan: Plan, targets: Sequence[Target]) -> None:
    """Log the scores of a suite to other programs, and print where."""
    from helm_longctx.apps.exchange.loggers import log_scores
    from helm_longctx.results.boards import read_suite
    from helm_longctx.tasks.registry import BENCHMARKS

    boards = read_suite(plan.folder, BENCHMARKS, keep_answers=False).boards
    print(*log_scores(boards, targets, plan.config.suite), sep="\n")


def watch(config: RunConfig, folder: Path, make: Callable[[RunConfig], None]) -> None:
    """Make the runs of each checkpoint that a folder has or gets, until Ctrl-C. A failed one is tried no more."""
    print(f"Waiting for checkpoints in {folder}; Ctrl-C ends it.", flush=True)
    with stoppable(
        lambda: "no longer waiting for checkpoints; the same command goes on"
    ):
        for model in _find_new(folder):
            print(f"{model.path} is complete.", flush=True)
            try:
                make(
                    config.model_copy(
                        update={"models": [*config.models, model], "watch": None}
                    )
                )
            except InputError as error:
                print(f"{model.path}: {error}", flush=True)


def _find_new(folder: Path) -> Iterator[LocalModels]:
    """Yield each folder with a complete model that stays as it is, by step, and again if the model changes."""
    from helm_longctx.config.local_models import (  # this imports HELM
        expand,
        find_missing,
        find_order,
    )
    from helm_longctx.models.local.folders import stamp_folder

    before: dict[Path, str] = {}
    made: dict[Path, str] = {}
    while True:
        now = {}
        for checkpoint in sorted(folder.glob("*")):
            if checkpoint.is_dir() and not find_missing(checkpoint):
                now[checkpoint] = stamp_folder(checkpoint)
        models: list[LocalModels] = []
        for checkpoint, stamp in now.items():
            if before.get(checkpoint) == stamp and made.get(checkpoint) != stamp:
                models += expand(LocalModels(path=str(checkpoint)))
        for model in sorted(models, key=lambda model: find_order(str(model.name))):
            made[Path(model.path)] = now[Path(model.path)]
            yield model
        before = now
        time.sleep(_CHECKPOINT_SECONDS)
