"""The command that NeMo Evaluator starts: `python -m core_evals.helm_longctx '{"output_dir": …}'`.

It writes a configuration of `helm-longctx run` to the output folder and runs it in this process, so that signals reach
the run. The same command in the same folder continues a run that was interrupted.
"""

import json
import os
import sys
from pathlib import Path

import yaml

from core_evals.helm_longctx.jury import write_jury
from core_evals.helm_longctx.medical import INSTALL, MEDICAL, SPACY_MODEL
from core_evals.helm_longctx.settings import (
    CONFIGS,
    RUN,
    EvaluationRequest,
    make_configuration,
)
from helm_longctx.cli.main import main as run_command
from helm_longctx.data.root import ENVIRONMENT
from helm_longctx.environment import EnvironmentValues, is_installed, require_modules
from helm_longctx.errors import InputError
from helm_longctx.helm.errors import print_error


def write_run(request: EvaluationRequest) -> Path:
    """Write the configuration of a request, and return its file.

    Raises:
        InputError: a parameter is invalid.
    """
    config = make_configuration(request)
    folder = Path(request["output_dir"]) / CONFIGS
    folder.mkdir(parents=True, exist_ok=True)
    write_jury(config, folder)
    values = config.model_dump(mode="json", exclude_defaults=True)
    (folder / RUN).write_text(
        yaml.safe_dump(values, sort_keys=False, allow_unicode=True), encoding="utf-8"
    )
    link = folder.parent / "cache"
    if not (link.exists() or link.is_symlink()):  # NeMo Evaluator's adapter has its own
        link.symlink_to(Path(CONFIGS) / "cache")
    return folder / RUN


def main(text: str) -> None:
    """Run the evaluation that a request in JSON describes."""
    request = json.loads(text)
    try:
        name = request["params"]["task"]
        if name in MEDICAL:
            require_modules(
                MEDICAL[name].needs, f"config.params.task={name!r}", INSTALL
            )
            if MEDICAL[name].is_judged and not is_installed(SPACY_MODEL):
                download = f"python -m spacy download {SPACY_MODEL}"
                raise InputError(
                    f"config.params.task={name!r} needs a model of spaCy; install it with: {download}"
                )
        path = write_run(request)
    except InputError as error:
        print_error(error)
        raise SystemExit(2) from None
    if os.environ.get("NEMO_EVALUATOR_LOG_LEVEL", "").upper() == "DEBUG":
        print(f"{path}:\n{path.read_text(encoding='utf-8')}", file=sys.stderr)
    data = request["extra"]["data_path"]
    values = {ENVIRONMENT: str(Path(data).expanduser().resolve())} if data else {}
    sys.argv = ["helm-longctx", "run", str(path)]
    with EnvironmentValues(values).use():
        run_command()


if __name__ == "__main__":
    main(sys.argv[1])
