"""Tests of what `reproduce` says of the versions of data that published numbers used."""

from __future__ import annotations

import pytest

from helm_longctx.apps.reproduction.data_versions import DataVersion, find_data_versions
from helm_longctx.tasks.registry import BENCHMARKS, find_protocol
from tests.support.commands import Command

PAGE = "https://huggingface.co/datasets/openai/mrcr"


def test_the_version_of_a_protocol() -> None:
    """A protocol names the pages, the pinned commits, and since when the publisher has these files."""
    _, protocol = find_protocol("openai mrcr v2 8-needle 64k-128k", BENCHMARKS)
    (version,) = find_data_versions(protocol)
    assert version.text == f"{PAGE} at f4c69fa, as it is since 2025-12-05"


@pytest.mark.parametrize(
    ("published", "is_earlier"),
    [
        ("2025-12-04", True),
        ("2025-12-05", False),
        ("2026-03-05", False),
        ("2025-11", True),
        ("2025-12", False),
        ("unknown", False),
    ],
)
def test_numbers_of_an_earlier_day_used_other_files(
    published: str, is_earlier: bool
) -> None:
    """What was published before a change used an earlier version; a month of the change tells nothing."""
    version = DataVersion(PAGE, "f4c69fa", "2025-12-05")
    assert bool(version.describe_use(published)) == is_earlier
    assert not DataVersion(PAGE, "f4c69fa", "").describe_use(published)


def test_reproduce_names_the_version(command: Command) -> None:
    """`reproduce` prints the version that is read here, and which published numbers used an earlier one."""
    assert command("reproduce", "openai graphwalks bfs 128k") == 0
    page = "https://huggingface.co/datasets/openai/graphwalks"
    assert f"Data: {page} at f338bb2, as it is since 2026-02-27" in command.out
    assert f"so it used an earlier version of {page}" in command.out
