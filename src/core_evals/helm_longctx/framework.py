"""Makes `framework.yml`, in which NeMo Evaluator finds the evaluations of this package.

NeMo Evaluator reads the file without importing the package, so the file is stored in the package, and `make reference`
writes it. NeMo Evaluator fills in the command with Jinja and runs it in bash. Jinja's `tojson` escapes quotes, so the
JSON in single quotes is one word.
"""

from typing import Any

import yaml

from core_evals.helm_longctx.medical import MEDICAL
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.lengths import STANDARD, length_label
from helm_longctx.tasks.registry import BENCHMARKS

LONGEST_DEFAULT = STANDARD["128k"]
"""Upper limit of the default length: the length of the publications' main tables."""

PARAMS = (
    "task",
    "limit_samples",
    "parallelism",
    "request_timeout",
    "max_retries",
    "max_new_tokens",
    "temperature",
    "top_p",
)
"""Parameters of NeMo Evaluator that the command takes."""

EXTRA = {
    **dict.fromkeys(
        (
            "length",
            "subject",
            "task",
            "condition",
            "subset",
            "style",
            "num_train_trials",
            "num_output_tokens",
        )
    ),
    **dict.fromkeys(("max_length", "tokenizer", "arguments", "data_path", "judge")),
    "gpt_judge_api_key": "GPT_JUDGE_API_KEY",
    "llama_judge_api_key": "LLAMA_JUDGE_API_KEY",
    "claude_judge_api_key": "CLAUDE_JUDGE_API_KEY",
}
"""The parameters in `extra`, with their defaults. docs/eval-factory.md explains them."""

_HEADER = "# Made from the task tables by `make reference`; do not edit.\n"

_INTERCEPTORS = "target.api_endpoint.adapter_config.interceptors"
_REUSE = "selectattr('config.reuse_cached_responses', 'true')"

# Until version 0.2.4, NeMo Evaluator also took the name of the key's variable as `api_key`.
_TARGET = {
    "url": "target.api_endpoint.url",
    "model_id": "target.api_endpoint.model_id",
    "type": "target.api_endpoint.type",
    "api_key": "target.api_endpoint.api_key_name | default(target.api_endpoint.api_key)",
    "mode": "target.api_endpoint.adapter_config.mode",
    "interceptors": f"{_INTERCEPTORS} | selectattr('enabled') | map(attribute='name') | list",
    "reuses_responses": f"{_INTERCEPTORS} | {_REUSE} | list | length > 0",
}


def make_framework() -> str:
    """Return the content of `framework.yml`."""
    parts = {
        "output_dir": "config.output_dir",
        "params": _mapping({name: f"config.params.{name}" for name in PARAMS}),
        "extra": _mapping({name: f"config.params.extra.{name}" for name in EXTRA}),
        "target": _mapping(_TARGET),
    }
    medical = [
        _evaluation(name, task.description, name, {}) for name, task in MEDICAL.items()
    ]
    own = []
    for benchmark in BENCHMARKS:
        for name, category in benchmark.entries.items():
            length = default_length(benchmark, category)
            about = (
                f"{benchmark.title} {category.title}".strip()
                + f": {', '.join(t.argument for t in category.tasks)}"
            )
            extra = {} if length is None else {"length": length_label(length)}
            own.append(_evaluation(name, about, name, extra))
    content = {
        "framework": {
            "name": "helm_longctx",
            "pkg_name": "helm_longctx",
            "full_name": "helm-longctx: long-context benchmarks for HELM, and HELM's medical tasks",
            "description": "HELMET, LV-Eval and other long-context benchmarks, equal to their official code, in HELM",
        },
        "defaults": {
            "command": f"python -m core_evals.helm_longctx '{{{{ {_mapping(parts)} | tojson }}}}'",
            "config": {"params": {"parallelism": 4, "extra": EXTRA}},
            "target": {"api_endpoint": {"adapter_config": {"mode": "client"}}},
        },
        "evaluations": own + medical,
    }
    return _HEADER + yaml.safe_dump(
        content, sort_keys=False, width=120, allow_unicode=True
    )


def _mapping(expressions: dict[str, str]) -> str:
    """Return a Jinja expression for a mapping of expressions."""
    return (
        "{"
        + ", ".join(
            f'"{key}": ({expression})' for key, expression in expressions.items()
        )
        + "}"
    )


def _evaluation(
    name: str, about: str, task: str, extra: dict[str, Any]
) -> dict[str, Any]:
    params = {"task": task} | ({"extra": extra} if extra else {})
    config = {
        "type": name,
        "supported_endpoint_types": ["chat", "completions"],
        "params": params,
    }
    return {"name": name, "description": about, "defaults": {"config": config}}


def default_length(benchmark: Benchmark, category: Category) -> int | None:
    """Return the longest length up to 128k at which all tasks of a category exist; None if there are no lengths."""
    if benchmark.axis is None:
        return None
    common = [
        length
        for length in benchmark.lengths
        if all(task.exists_at(length) for task in category.tasks)
    ]
    return max(
        (length for length in common if length <= LONGEST_DEFAULT), default=max(common)
    )
