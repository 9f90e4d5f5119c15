"""Checks the names of run entries before HELM, whose import takes a second, is imported."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.tasks.registry import OURS, read_helms_names


def check_name(name: str, is_helms: Callable[[str], bool]) -> None:
    """Check the name of a run entry.

    Args:
        is_helms: whether HELM has an entry of a name.

    Raises:
        InputError: neither this package nor HELM has it.
    """
    # Commas separate tasks, so `--tasks ruler:task=vt,count_with=x` has the task `count_with=x`.
    if "=" in name:
        advice = "give it by --argument (in YAML: arguments), or the whole entry by --entry (in YAML: entries)"
        raise InputError(f"{shorten(name)} is not a run entry but an argument; {advice}")
    if name not in OURS and not is_helms(name):
        raise InputError(f"{shorten(name)} is not a run entry; give one of HELM's own, or {list_choices(name, OURS)}")


def may_be_helms(name: str) -> bool:
    """Whether HELM or another plugin can have a run entry of a name. The names of plugins are not known yet."""
    has_plugins = any(point.value != "helm_longctx.plugin" for point in entry_points(group="helm"))
    return has_plugins or name in read_helms_names()
