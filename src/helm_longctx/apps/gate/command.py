"""`gate`: decide whether a candidate deployment is worse than a base, on identical requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_longctx.config.load import load_config
from helm_longctx.config.options import (
    FOLDERS,
    LIMITS,
    SELECTION,
    read_options,
    takes_options,
)
from helm_longctx.config.shared import Quiet, Verbose, set_log_levels
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.environment import require
from helm_longctx.errors import InputError, bad_argument

if TYPE_CHECKING:
    from helm_longctx.config.schema import RunConfig

_MAX_DROP = 2.0
"""Default of `--max-drop`, in points."""


@dataclass(frozen=True)
class _Subset:
    """A named choice of run entries.

    Args:
        entries: the run entries.
        max_drop: the default of `--max-drop`, in points: the sample can show it.
    """

    entries: Sequence[str]
    max_drop: float


_SUBSETS = {
    name: _Subset(**subset)
    for name, subset in read_yaml(
        Path(str(resources.files(__package__) / "gate.yaml"))
    ).items()
}
"""The named subsets. docs/gate.md has their power."""


_Base = Annotated[
    str,
    typer.Argument(
        metavar="BASE", help="Deployment that is trusted, as HELM knows it."
    ),
]
_Candidate = Annotated[
    str,
    typer.Argument(
        metavar="CANDIDATE",
        help="Deployment to check. BASE again measures run-to-run noise.",
    ),
]
_MaxDrop = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        max=99,
        help="Largest drop that is accepted, in points. [default: 2]",
    ),
]
_Power = Annotated[
    float,
    typer.Option(
        min=0.5,
        max=0.99,
        help="Probability with which a candidate without a drop must pass.",
    ),
]
_Noise = Annotated[
    float,
    typer.Option(
        min=0,
        max=100,
        help="Expected share of scores that differ without a drop, in percent.",
    ),
]


@takes_options(
    [
        *SELECTION[:-1],
        "judge",
        "judge_key",
        "max_eval_instances",
        *LIMITS,
        "suite",
        *FOLDERS,
    ],
    suite="Name of the gate. Another name asks everything again. [default: gate]",
    max_eval_instances="Maximum instances per run. [default: as --power needs]",
    dry_run="Only print the price, the sample and its power.",
)
def gate(
    base: _Base,
    candidate: _Candidate,
    subset: Annotated[
        str | None,
        typer.Option(help="Named sample instead of run entries: ci or ci-long."),
    ] = None,
    max_drop: _MaxDrop = None,
    power: _Power = 0.8,
    noise: _Noise = 5.0,
    logprobs: Annotated[
        bool,
        typer.Option("--logprobs", help="Compare distributions of tokens, not scores."),
    ] = False,
    max_divergence: Annotated[
        float,
        typer.Option(
            min=0,
            help="With --logprobs: largest mean divergence that is accepted, in nats."
            " 0: none beyond the noise of both.",
        ),
    ] = 0.05,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    r"""Decide whether CANDIDATE is worse than BASE, on identical requests in both orders.

    The exit status is 0 if it is no worse at each length, 1 if it is worse, and 3 if the sample cannot tell. It can be
    interrupted and repeated: no answer is paid for twice. With --logprobs a few questions are enough, and both must
    give log-probabilities of given texts or of their answers. Needs an extra: pip install 'helm-longctx\[report]'.
    """
    require("report", "gate")
    arguments = {
        "suite": "gate",
        **{name: value for name, value in options.items() if value is not None},
    }
    if chosen := _choose_subset(
        subset, arguments.keys() & {"tasks", "entry", "conf_path"}
    ):
        arguments["entry"] = list(chosen.entries)
    models = (base, candidate)
    configs = _load_configs(models, arguments)
    size = arguments.get("max_eval_instances")
    with set_log_levels(quiet, verbose) as prints:
        if logprobs:
            from helm_longctx.apps.gate.logprobs import compare_distributions

            most = None if size is None else int(size)
            raise typer.Exit(
                compare_distributions(
                    models, configs, most, power, max_divergence, prints
                )
            )
        from helm_longctx.apps.gate.asking import Goal
        from helm_longctx.apps.gate.scores import run_gate

        goal = Goal(
            margin=(max_drop or (chosen.max_drop if chosen else _MAX_DROP)) / 100,
            power=power,
            noise=noise / 100,
        )
        has_size = size is not None
        raise typer.Exit(run_gate(models, configs, goal, has_size, prints))


def _choose_subset(name: str | None, others: set[str]) -> _Subset | None:
    if name is None:
        return None
    if name not in _SUBSETS:
        raise bad_argument("gate", "subset", name, list(_SUBSETS))
    if others:
        other = f"--{min(others).replace('_', '-')}"
        raise InputError(
            f"gate: --subset {name} cannot be used together with {other}; give one of them"
        )
    return _SUBSETS[name]


def _load_configs(
    models: tuple[str, str],
    arguments: Mapping[str, Any],
) -> list[RunConfig]:
    configs = []
    for model, name in zip(models, ("BASE", "CANDIDATE"), strict=True):
        options = read_options({**arguments, "model": [model]})
        names = {**options.names, ("models", 0): name}
        configs.append(load_config(None, replace(options, names=names)))
    return configs
