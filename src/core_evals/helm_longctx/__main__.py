"""The command that NeMo Evaluator starts: `python -m core_evals.helm_longctx '{"output_dir": …}'`.

With other arguments it is `eval-factory` (`core_evals.helm_longctx.command`).

It writes a configuration of `helm-longctx run` to the output folder and runs it in this process, so that signals reach
the run. The same command in the same folder continues a run that was interrupted.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from core_evals.helm_longctx.command import main as eval_factory
from core_evals.helm_longctx.jury import write_jury
from core_evals.helm_longctx.medical import INSTALL, MEDICAL, SPACY_MODEL
from core_evals.helm_longctx.settings import (
    CONFIGS,
    RUN,
    EvaluationRequest,
    list_judges,
    make_configuration,
    name_model,
)
from helm_longctx.cli.main import main as run_command
from helm_longctx.environment import is_installed
from helm_longctx.errors import InputError, PreconditionError
from helm_longctx.helm.errors import print_error
from helm_longctx.judging.keys.client import describe_key, family_of
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.counting import load_encoding
from helm_longctx.writing import replace_file


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
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    replace_file(folder / RUN, text.encode())
    organization = name_model(request["target"]["model_id"]).partition("/")[0]
    caches = Path(CONFIGS) / "cache"
    _link(folder.parent / "cache", caches)
    _link(folder.parent / "cache.db", caches / f"{organization}.sqlite")
    return folder / RUN


def _link(link: Path, target: Path) -> None:
    # NeMo Evaluator's adapter has a cache of its own.
    if not (link.exists() or link.is_symlink()):
        link.symlink_to(target)


def _log_judges(request: EvaluationRequest) -> None:
    """Log where the key of each judge with an address comes from, in the words of NVIDIA's fork.

    The other judges' keys are logged where they are found.
    """
    for judge in list_judges(request):
        if not isinstance(judge, dict) or "name" not in judge:
            continue
        source = judge.get("token_env") or judge.get("api_key_env")
        family = family_of(judge["name"])
        if source:
            about = describe_key(family, source, is_own=True)
        elif family:
            about = f"{family}_JUDGE_API_KEY is not set: no API key"
        else:
            about = "no API key"
        print(f"helm-longctx: {about} for model: {judge['name']}", file=sys.stderr)


def _require_modules(task: str) -> None:
    """Raise an error if a module of a medical task is missing, before anything is sent."""
    needs = MEDICAL[task].needs
    missing = [module for module in needs if not is_installed(module)]
    if missing:
        raise PreconditionError(
            f"config.params.task={task!r} needs {' and '.join(missing)}; install with: {INSTALL}"
        )


def main(text: str) -> None:
    """Run the evaluation that a request in JSON describes."""
    request = json.loads(text)
    try:
        name = request["params"]["task"]
        if name in MEDICAL:
            _require_modules(name)
            if MEDICAL[name].is_judged and not is_installed(SPACY_MODEL):
                download = f"python -m spacy download {SPACY_MODEL}"
                raise InputError(
                    f"config.params.task={name!r} needs a model of spaCy; install it with: {download}"
                )
        path = write_run(request)
        if name in MEDICAL and MEDICAL[name].takes_length:
            load_encoding("cl100k_base")
        _log_judges(request)
    except InputError as error:
        print_error(error)
        raise SystemExit(2) from None
    if os.environ.get("NEMO_EVALUATOR_LOG_LEVEL", "").upper() == "DEBUG":
        print(f"{path}:\n{path.read_text(encoding='utf-8')}", file=sys.stderr)
    # HELM's medical run entries take the folder as an argument.
    data = None if name in MEDICAL else request["extra"]["data_path"]
    settings = settings_in_use()
    if data:
        settings = replace(settings, mirror=Path(data).expanduser().resolve())
    sys.argv = ["helm-longctx", "run", str(path)]
    with settings.use():
        run_command()


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        main(sys.argv[1])
    else:
        eval_factory()
