"""The function that NeMo Evaluator calls after the command."""

from pathlib import Path

import yaml
from nemo_evaluator.api.api_dataclasses import EvaluationResult

from core_evals.helm_longctx.results import read_results, write_files
from core_evals.helm_longctx.settings import CONFIGS, RUN
from helm_longctx.config.load import load_config
from helm_longctx.errors import InputError
from helm_longctx.writing import replace_file


def parse_output(output_dir: str) -> EvaluationResult:
    """Write the files of the output folder, and return the scores of the run.

    Args:
        output_dir: the folder that the command has written to.

    Raises:
        InputError: there are no results, or a file is damaged.
    """
    folder = Path(output_dir)
    suite = folder / "runs" / load_config(folder / CONFIGS / RUN).suite
    results = read_results(suite)
    if not results["tasks"]:
        raise InputError(
            f"{suite} has no finished run; the log of the command says why"
        )
    write_files(suite, folder)
    evaluation = yaml.safe_load(
        (folder / "run_config.yml").read_text(encoding="utf-8")
    ) | {"results": results}
    text = yaml.safe_dump(evaluation, sort_keys=False, allow_unicode=True)
    replace_file(folder / "evaluation_config.yaml", text.encode())
    return EvaluationResult.model_validate(results)
