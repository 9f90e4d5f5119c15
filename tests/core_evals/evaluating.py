"""Runs the real `nemo-evaluator` against local servers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

import core_evals.helm_longctx
from tests.support.programs import BIN, run

SAMPLES = Path(core_evals.helm_longctx.__file__).parent / "test_cases"

KEY = "nvapi-0123456789abcdef"

MOST_SECONDS = 1800


def evaluate(
    folder: Path,
    task: str,
    target: dict[str, Any],
    extra: dict[str, Any] | None = None,
    **variables: str,
) -> dict[str, Any]:
    """Run a task with `nemo-evaluator run_eval`, and return its `results.yml`.

    A medical task is run with its sample, in which only hosts, keys and the places of data are changed.

    Args:
        folder: where the command is started; the output folder `out` is made in it.
        target: values of the endpoint.
        extra: the parameters in `extra`.
    """
    sample = SAMPLES / f"test_case_nim_llama_3_1_8b_{task}.yml"
    config: dict[str, Any] = {"config": {"type": task, "params": {"parallelism": 4}}}
    endpoint = {"model_id": "nvdev/tiny"}
    if sample.exists():
        config = yaml.safe_load(sample.read_text(encoding="utf-8"))
        endpoint = config["target"]["api_endpoint"]
    params = config["config"]["params"]
    params["extra"] = params.get("extra", {}) | (extra or {})
    endpoint = {**endpoint, "api_key_name": "NGC_KEY", **target}
    config["target"] = {"api_endpoint": endpoint}
    (folder / "run.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    options = ("run_eval", "--run_config", "run.yml", "--output_dir", folder / "out")
    variables = {
        "NGC_KEY": KEY,
        "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0",
        "PYTHONUNBUFFERED": "1",
        **variables,
    }
    folders = [variables.get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    # The harness's command is `python …`, as in an environment that is active.
    variables["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = run(
        "nemo-evaluator",
        *options,
        folder=folder,
        # The command and the harness that it starts import HELM, torch and spaCy. A busy
        # machine takes minutes for these 13 s of processor time.
        wait=lambda program: program.wait(MOST_SECONDS),
        **variables,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    results: dict[str, Any] = yaml.safe_load(
        (folder / "out/results.yml").read_text(encoding="utf-8")
    )
    return results


def shown_scores(folder: Path, group: str) -> dict[str, str]:
    """Return the scores of a group's table in `helm-server`, with three digits, by the columns' titles."""
    (suite,) = (path for path in folder.glob("out/runs/*") if not path.is_symlink())
    done = run(
        "helm-longctx",
        "summarize",
        "--suite",
        suite.name,
        "--output-path",
        folder / "out",
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    path = suite / f"groups/{group}.json"
    tables = json.loads(path.read_text(encoding="utf-8"))
    return {
        header["value"]: cell["value"].partition(" ")[0]
        for table in tables
        for row in table["rows"]
        for header, cell in zip(table["header"], row, strict=True)
        if header["value"] != "Model" and isinstance(cell.get("value"), str)
    }


def scores_of(results: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """Return the statistics of a task or group in a `results.yml`."""
    scores: dict[str, Any] = results["results"][kind][name]["metrics"]["score"][
        "scores"
    ]
    return scores
