"""`rejudge`: other judges, or the same once more, for answers that are there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.cli.options import LocalPath, OutputPath, Suite
from helm_longctx.cli.registries import fill_registries
from helm_longctx.errors import InputError
from helm_longctx.report.suite import suite_folder


def rejudge(
    suite: Suite,
    runs: Annotated[list[str] | None, typer.Argument(help="Names of runs; all that have a judge if none.")] = None,
    judge: Annotated[str | None, typer.Option(help="Another judge, as in run entries; the run's own if none.")] = None,
    to: Annotated[str | None, typer.Option(help="The suite that the results go to; needed with --judge.")] = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Judge the answers of finished runs again, without asking the model; the judge's own replies are cached too.

    With the run's own judge only calls that failed are made again, and the run's files are replaced. Standard error
    says how many verdicts were recovered, and how many are still missing.
    HELM_LONGCTX_JUDGE_READINGS=6 also asks again what no reply could be read of.
    """
    folder = suite_folder(output_path, suite)
    if judge and (to or suite) == suite:
        raise InputError(f"judge={judge!r} needs --to: in one suite HELM takes the mean over a model's judges")
    from helm_longctx.running.rejudge import Rejudger, judged_runs

    fill_registries(local_path)
    chosen = [folder / run for run in runs] if runs else list(judged_runs(folder))
    if absent := [run.name for run in chosen if not (run / "scenario_state.json").is_file()]:
        raise InputError(f"runs={', '.join(absent)!r}: suite {suite} has no such finished run")
    if not chosen:
        raise InputError(f"suite {suite} has no run with a judge; name a run and --judge")
    rejudger = Rejudger(output_path, to or suite, local_path)
    for run, spec in rejudger.specs(chosen, judge).items():
        result = rejudger.rejudge(run, spec)
        count = f"{result.verdicts} verdicts given" if judge else f"{result.recovered} verdicts recovered"
        print(f"{run.name}: {count}, {result.missing} still missing", file=sys.stderr)
        print(result.folder, flush=True)
