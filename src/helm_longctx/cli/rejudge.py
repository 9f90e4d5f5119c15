"""`rejudge`: judge the answers of finished runs again, with the same judges or others."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.config.shared import (
    LocalPath,
    OutputPath,
    SuiteOption,
    fill_registries,
    hide_chatter,
)
from helm_longctx.errors import DamagedRunError, InputError, describe_count
from helm_longctx.interruptions import describe_kept, stoppable
from helm_longctx.results.suite import suite_folder, suite_path


def rejudge(
    suite: SuiteOption,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Names of runs. [default: all runs with a judge]"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Another judge, as in run entries. [default: the run's own]"),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(help="Suite to write the results to. Required with --judge."),
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Judge the answers of finished runs again, without asking the model. The judge's replies are cached.

    With the run's own judge, only failed calls are repeated, and the run's files are replaced. Standard error says how
    many verdicts were recovered and how many are still missing. With HELM_LONGCTX_JUDGE_READINGS=6, calls whose replies
    could not be parsed are repeated, too. A damaged run is left out, unless it was named.
    """
    folder = suite_folder(output_path, suite)
    if to is not None:
        suite_path(output_path, to)  # a path would lead out of the folder of the suites
    if judge and (to or suite) == suite:
        raise InputError(
            f"judge={judge!r} needs --to: HELM averages over the judges of a model in one suite"
        )
    from helm_longctx.helm_api import CACHE_DIR
    from helm_longctx.runner.rejudge import Rejudger, judged_runs

    fill_registries(local_path)
    if runs:
        folders = [folder / run for run in runs]
    else:
        folders = list(judged_runs(folder))
    if absent := [
        run.name for run in folders if not (run / "scenario_state.json").is_file()
    ]:
        raise InputError(
            f"runs={', '.join(absent)!r}: suite {suite} has no such finished run"
        )
    if not folders:
        raise InputError(
            f"suite {suite} has no run with a judge; name a run and --judge"
        )
    with hide_chatter():
        rejudger = Rejudger(output_path, to or suite, local_path)
    without: list[str] = []
    damaged: list[DamagedRunError] = []
    specs = rejudger.specs(folders, judge)
    cache = local_path / CACHE_DIR
    for run, spec in specs.items():
        try:
            with hide_chatter(), stoppable(lambda: describe_kept(cache)):
                result = rejudger.rejudge(run, spec)
        except DamagedRunError as error:
            # A run that was named must not be left out.
            if runs:
                raise
            damaged.append(error)
            print(f"left out: {error}", file=sys.stderr)
            continue
        count = f"{describe_count(result.recovered, 'verdict')} recovered"
        if judge:
            count = f"{describe_count(result.verdicts, 'verdict')} given"
        print(f"{run.name}: {count}, {result.missing} still missing", file=sys.stderr)
        # Judging can take hours, so each result is printed at once.
        print(result.folder, flush=True)
        if result.missing and not result.verdicts:
            without.append(run.name)
    if len(damaged) == len(specs):
        raise damaged[0]
    if without:
        raise InputError(
            f"no judge gave a verdict in {', '.join(without)}; run the command again later"
        )
