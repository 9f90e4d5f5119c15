"""HELM's records are compared with what this package uses, before anything runs."""

from __future__ import annotations

import dataclasses
import importlib
from importlib import metadata

import pytest

from helm_longctx.cli import doctor
from helm_longctx.helm import versions
from tests.support.commands import Command

PATHS = sorted(versions._FIELDS)


def rename_field(path: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give HELM's record another name for one of its fields."""
    module, _, name = path.partition(":")
    old = getattr(importlib.import_module(module), name)
    fields = [
        (f"{one.name}_new" if one.name == field else one.name, object)
        for one in dataclasses.fields(old)
    ]
    monkeypatch.setattr(f"{module}.{name}", dataclasses.make_dataclass(name, fields))
    versions.check_records.cache_clear()


def test_the_installed_helm_has_all_fields() -> None:
    """HELM's records have every field that this package reads or sets."""
    assert list(versions.find_changed_records()) == []
    versions.check_records()


@pytest.mark.parametrize("path", PATHS)
def test_a_renamed_field_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record with a renamed field ends in one line with the record, the field and both versions."""
    name = path.partition(":")[2]
    for field in versions._FIELDS[path]:
        with monkeypatch.context() as patched:
            rename_field(path, field, patched)
            with pytest.raises(RuntimeError) as error:
                versions.check_records()
    versions.check_records.cache_clear()
    line = str(error.value)
    assert f"{name} has no field {versions._FIELDS[path][-1]}" in line
    assert f"crfm-helm {metadata.version('crfm-helm')}, but helm-longctx" in line
    assert "\n" not in line


def test_doctor_compares_versions_with_the_range(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor says that a version is outside of the range, and what to install."""
    real = metadata.version
    monkeypatch.setattr(
        doctor.metadata,
        "version",
        lambda name: "0.9.0" if name == "crfm-helm" else real(name),
    )
    assert command("doctor", "--no-network", "--no-run") == 1
    assert "BROKEN  versions: crfm-helm 0.9.0; helm-longctx needs crfm-helm<0.6" in (
        command.out
    )


def test_doctor_names_a_changed_record(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor names a record of HELM that lacks a field."""
    path = "helm.benchmark.adaptation.request_state:RequestState"
    rename_field(path, "result", monkeypatch)
    assert command("doctor", "--no-network", "--no-run") == 1
    assert "BROKEN  versions: HELM's RequestState has no field result" in command.out
    versions.check_records.cache_clear()
