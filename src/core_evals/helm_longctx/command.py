"""`eval-factory`: NeMo Evaluator's command, which also takes the configurations of NVIDIA's fork of HELM.

The fork's examples name the key's variable `api_key`. NeMo Evaluator calls it `api_key_name` since version 0.2.5, and
ends with a traceback at the other name. This command renames it in a copy of the file and passes everything else on.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from helm_longctx.data.yaml_files import load_yaml
from helm_longctx.environment import require_modules
from helm_longctx.errors import InputError
from helm_longctx.helm.errors import print_error
from helm_longctx.writing import replace_page

_OLD_NAME = "api_key"
_NEW_NAME = "api_key_name"

_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def main() -> None:
    """Run NeMo Evaluator with the arguments of this process."""
    try:
        require_modules(
            ("nemo_evaluator",), "eval-factory", "helm-longctx[eval-factory]"
        )
        with tempfile.TemporaryDirectory() as folder:
            _rename_key(sys.argv, Path(folder))
            _run_nemo_evaluator()
    except InputError as error:
        print_error(error)
        raise SystemExit(2) from None


def _rename_key(arguments: list[str], folder: Path) -> None:
    """Let `--run_config` name a copy with NeMo Evaluator's name of the key, if the file has the fork's name.

    Raises:
        InputError: the value is a key and no name of a variable.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--run_config", type=Path)
    path = parser.parse_known_args(arguments)[0].run_config
    if path is None or not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        config = load_yaml(file)
    endpoint = _endpoint(config)
    if _OLD_NAME not in endpoint:
        return
    name = endpoint.pop(_OLD_NAME)
    endpoint.setdefault(_NEW_NAME, name)
    if name is not None and not _VARIABLE.fullmatch(str(name)):
        raise InputError(
            f"{path}: target.api_endpoint.{_OLD_NAME} is not the name of an environment variable;"
            " set the key in a variable and give its name"
        )
    print(
        f"helm-longctx: {path}: {_OLD_NAME} is read as {_NEW_NAME}, its name in NeMo Evaluator",
        file=sys.stderr,
    )
    copy = folder / path.name
    replace_page(copy, yaml.safe_dump(config, sort_keys=False).encode())
    for number, argument in enumerate(arguments):
        if argument == "--run_config":
            arguments[number + 1] = str(copy)
        elif argument.startswith("--run_config="):
            arguments[number] = f"--run_config={copy}"


def _endpoint(config: Any) -> dict[str, Any]:
    """Return the mapping `target.api_endpoint`; an empty one if the file has none."""
    for name in ("target", "api_endpoint"):
        config = config.get(name) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}


def _run_nemo_evaluator() -> None:
    from nemo_evaluator.core import entrypoint
    from nemo_evaluator.core.utils import MisconfigurationError
    from pydantic import ValidationError

    # By this name NeMo Evaluator does not warn that it will drop the other one.
    sys.argv[0] = "nemo-evaluator"
    try:
        entrypoint.run_eval()
    except MisconfigurationError as error:
        raise InputError(str(error)) from None
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_input=False, include_url=False):
            path_text = ".".join(map(str, problem["loc"]))
            problems.append(f"{path_text}: {problem['msg']}")
        raise InputError("; ".join(problems)) from None
    except RuntimeError as error:
        # The command has printed why it failed, and the error repeats all that it printed.
        if not str(error).startswith("Evaluation failed!"):
            raise
        raise SystemExit(1) from None
