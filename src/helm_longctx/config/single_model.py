"""What commands share that ask one model about texts of their own: its configuration and its deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

from helm_longctx.config.load import load_config
from helm_longctx.config.options import read_options, split_names
from helm_longctx.config.shared import fill_registries
from helm_longctx.errors import bad_argument
from helm_longctx.tasks.registry import first_entry

if TYPE_CHECKING:
    from helm_longctx.config.plan import Plan
    from helm_longctx.config.schema import RunConfig


def load_single_model(
    command: str,
    options: Mapping[str, Any],
    suite: str,
    entries: Sequence[str] = (),
    fewest: int = 0,
) -> RunConfig:
    """Return the configuration of a command that asks one model.

    Args:
        options: the options of the command.
        suite: the name of the folder of all such commands.
        entries: run entries. Without any there is one that is not run: a plan has an entry, and finds the model and
            asks its server.
        fewest: the fewest models that must be given.

    Raises:
        InputError: there are several models or fewer, or an option is wrong.
    """
    names = split_names(options["model"] or [])
    if options["model_url"]:
        names.append(options["model_url"])
    if not fewest <= len(names) <= 1:
        raise bad_argument(
            command, "--model", ", ".join(names), "one model, by --model or --model-url"
        )
    entry = list(entries) or [f"{first_entry()}:length=4k"]
    return load_config(None, read_options({**options, "suite": suite, "entry": entry}))


def plan_single_model(config: RunConfig, prints: TextIO) -> Plan:
    """Return the plan of the configuration's run entries, all of one deployment.

    Args:
        prints: gets what HELM prints, such as where it looks for credentials.
    """
    from helm_longctx.config.plan import make_plan

    with redirect_stdout(prints):
        fill_registries(config.local_path)
        return make_plan(config)


def find_deployment(plan: Plan) -> str:
    """Return the deployment of a plan of one model."""
    return plan.specs[0].adapter_spec.model_deployment
