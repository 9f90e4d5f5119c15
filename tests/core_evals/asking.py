"""Makes requests of NeMo Evaluator as the command of `framework.yml` hands them over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core_evals.helm_longctx.framework import EXTRA, PARAMS
from core_evals.helm_longctx.settings import EvaluationRequest

TARGET: dict[str, Any] = {
    "url": "http://localhost:8000/v1/chat/completions",
    "model_id": "nvdev/meta/llama-3.3-70b-instruct",
    "type": "chat",
    "api_key": None,
    "mode": "client",
    "interceptors": ["caching", "endpoint", "response_stats"],
    "reuses_responses": True,
}


def ask(
    folder: Path | str = "out", target: dict[str, Any] | None = None, **changes: Any
) -> EvaluationRequest:
    """Return a request with the defaults and these changes, which are parameters or otherwise values of `extra`."""
    params: dict[str, Any] = {**dict.fromkeys(PARAMS), "parallelism": 4}
    extra: dict[str, Any] = dict(EXTRA)
    for name, value in changes.items():
        (params if name in params else extra)[name] = value
    if not changes.keys() <= {*params, *EXTRA}:
        raise ValueError(changes)
    return {
        "output_dir": str(folder),
        "params": params,
        "extra": extra,
        "target": TARGET | (target or {}),
    }
