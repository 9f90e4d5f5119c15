"""The names of run groups for HELM's pages, tables and exports. Nothing is read back out of them."""

import hashlib
import os
import re

from helm_longctx.tasks.benchmark import Benchmark

CLOSED_BOOK = "closed"
"""Part of the names of run groups without context. It distinguishes them from the others."""

_JUDGED_BY = "_judged_by_"
"""Separates a run group from its judge, if that is not the official one."""

_IN_FOLDER = "_in_folder_"
"""Separates a run group from the folder of the user's own files."""

_LONGEST_PART = 60
"""Most characters of a judge or a folder in a run group, because a run group is a file name."""

_SLASH = "--"
"""Replaces slashes in a run group."""


def group_name(
    benchmark: Benchmark,
    name: str,
    label: str,
    closed: bool = False,
    judge: str = "",
    folder: str = "",
    metric: str = "",
) -> str:
    """Return the run group of a category or task at a length.

    Examples: `helmet_rag_8k`; `helmet_closed_rag_8k` without context; `helmet_summ_8k_judged_by_vllm--judge`;
    `any_jsonl_8k_in_folder_my-test`.

    Args:
        judge: the judge, if it is not the official one.
        folder: the `folder_name` of the user's own files, if there are any.
        metric: one of `GIVEN_TEXTS`, or empty for the official metrics. The name lacks it if the benchmark has no
            other one.
    """
    shown_metric = "" if metric == benchmark.tasks[0].metric else metric
    parts = (benchmark.name, shown_metric, CLOSED_BOOK if closed else "", name, label)
    group = "_".join(part for part in parts if part)
    if folder:
        group += f"{_IN_FOLDER}{_file_name(folder)}"
    if judge:
        group += f"{_JUDGED_BY}{_file_name(judge)}"
        # The digest tells the judges `a/b` and `a--b` apart.
        group += f"~{_digest(judge)}" if _SLASH in judge else ""
    return group


def _file_name(text: str) -> str:
    """Return a part of a run group. It is also a file name."""
    return shorten_name(text.replace("/", _SLASH), _LONGEST_PART)


def folder_name(path: str | None) -> str:
    """Return the name of the folder of the user's own files, in tables and run groups. It is empty for None."""
    if path:
        return re.sub(r"[^\w./~-]", "-", os.path.normpath(path))
    return ""


def shorten_name(name: str, limit: int) -> str:
    """Return a name of at most `limit` characters: its start and a digest, if it is longer."""
    digest = _digest(name)
    if len(name) <= limit:
        return name
    return f"{name[: limit - len(digest) - 1]}~{digest}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
