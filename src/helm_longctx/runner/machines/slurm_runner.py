"""`helm-run --runner-class-name helm_longctx.runner.machines.slurm_runner.SlurmRunner`: a Slurm job for each run.

HELM's `SlurmRunner` submits the jobs and waits for them, but its jobs load no plugins, so they do not know our models.
The jobs of this runner load plugins and use `LongContextRunner`.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from helm_longctx.helm.codec import from_json

# The module above must be imported before HELM's.
# isort: split
import helm.benchmark.slurm_runner as helm_slurm
from helm.benchmark.config_registry import register_builtin_configs_from_helm_package
from helm.benchmark.run import load_entry_point_plugins
from helm.common.hierarchical_logger import setup_default_logging

from helm_longctx.errors import InputError
from helm_longctx.helm.errors import print_error
from helm_longctx.helm.patches import apply_slurm_patch
from helm_longctx.helm_api import RunSpec, register_configs_from_directory
from helm_longctx.runner.runner import LongContextRunner


class SlurmRunner(helm_slurm.SlurmRunner, LongContextRunner):
    """HELM's runner for Slurm, with jobs that load plugins and make runs as `LongContextRunner` does.

    Raises a `RuntimeError` if this version of HELM submits its jobs in another way.
    """

    def __init__(self, *arguments: Any, **options: Any):
        apply_slurm_patch(__name__)
        super().__init__(*arguments, **options)


def main() -> None:
    """Make one run. This is the command of a Slurm job, with the options of HELM's.

    Raises a `SystemExit` if the run has bad input. The message is printed.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--slurm-runner-spec-path", type=Path, required=True)
    parser.add_argument("--run-spec-path", type=Path, required=True)
    paths = parser.parse_args()
    setup_default_logging(None)
    runner_spec = from_json(
        paths.slurm_runner_spec_path.read_text(), helm_slurm.SlurmRunnerSpec
    )
    register_builtin_configs_from_helm_package()
    register_configs_from_directory(runner_spec.execution_spec.local_path)
    load_entry_point_plugins()
    runner = LongContextRunner(**replace(runner_spec, exit_on_error=True).to_kwargs())
    try:
        runner.run_one(from_json(paths.run_spec_path.read_text(), RunSpec))
    except InputError as error:
        print_error(error)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
