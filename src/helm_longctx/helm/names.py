"""Checks the names of run entries and suites before HELM, whose import takes a second, is imported."""

from importlib.metadata import entry_points

from helm_longctx.errors import InputError, find_similar, shorten
from helm_longctx.tasks.entry import check_category
from helm_longctx.tasks.registry import (
    BENCHMARKS,
    OURS,
    is_benchmark,
    read_entries,
    read_helms_names,
)

SUITE_NAME = "a folder's name of at most 255 bytes, without '/', line breaks and other control characters"
"""What the name of a suite is."""


def is_suite_name(name: str) -> bool:
    """Whether a folder of a suite can have the name, on common file systems and in lines of text."""
    is_single = name not in ("", ".", "..") and "/" not in name
    return is_single and name.isprintable() and len(name.encode()) <= 255


def check_name(name: str) -> None:
    """Check the name of a run entry. Raises an `InputError` if neither this package nor HELM can have it."""
    if name not in OURS and not is_benchmark(name) and not may_be_helms(name):
        raise unknown_entry(name)


def unknown_entry(name: str) -> InputError:
    """Return an error about a name that is no run entry. It names the most similar one."""
    # Commas separate tasks, so `--tasks ruler:task=vt,count_with=x` has the task `count_with=x`.
    if "=" in name:
        advice = "give it by --argument (in YAML: arguments), or the whole entry by --entry (in YAML: entries)"
        return InputError(
            f"{shorten(name)} is not a run entry but an argument; {advice}"
        )
    similar = find_similar(name, [*OURS, *(benchmark.name for benchmark in BENCHMARKS)])
    question = f"did you mean {similar[0]}? Give" if similar else "give"
    allowed = "a name in the lists of `helm-longctx list`, or a run entry of HELM's own"
    return InputError(f"{shorten(name)} is not a run entry; {question} {allowed}")


def check_single(name: str) -> None:
    """Raise an `InputError` if a name stands for several run entries of a benchmark. HELM takes only single ones."""
    check_category(name)
    if is_benchmark(name):
        names = ", ".join(written.name for written in read_entries(name))
        raise InputError(
            f"{name} is a benchmark, and helm-run takes only run entries; give {names}"
        )


def may_be_helms(name: str) -> bool:
    """Whether HELM or another plugin can have a run entry of a name. The names of plugins are not known yet."""
    if "=" in name:
        return False
    has_plugins = any(
        point.value != "helm_longctx.plugin" for point in entry_points(group="helm")
    )
    return has_plugins or name in read_helms_names()
