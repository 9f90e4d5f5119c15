"""What this package takes of HELM is compared with the installed HELM, before anything runs."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from importlib import metadata
from pathlib import Path

import pytest

from helm_longctx import helm_api
from helm_longctx.cli import doctor
from helm_longctx.errors import UnsupportedHelmError
from tests.support.commands import Command

NAMES = sorted(helm_api._FIELDS)


def rename_field(name: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give HELM's record another name for one of its fields."""
    module = helm_api._MODULES[name]
    old = getattr(importlib.import_module(module), name)
    fields = [
        (f"{one.name}_new" if one.name == field else one.name, object)
        for one in dataclasses.fields(old)
    ]
    monkeypatch.setattr(f"{module}.{name}", dataclasses.make_dataclass(name, fields))
    helm_api.check_records.cache_clear()


def test_the_installed_helm_has_all_fields() -> None:
    """HELM's records have every field that this package reads or sets."""
    assert list(helm_api.find_changed_records()) == []
    helm_api.check_records()


def test_checkers_and_readers_have_the_same_names() -> None:
    """Every name that can be imported at run time is known to type checkers, and HELM has it."""
    tree = ast.parse(Path(helm_api.__file__).read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("helm."):
            for alias in node.names:
                imported.add((str(node.module), alias.name))
    assert imported == {(module, name) for name, module in helm_api._MODULES.items()}
    for name, module in helm_api._MODULES.items():
        theirs = getattr(importlib.import_module(module), name)
        assert getattr(helm_api, name) is theirs


def test_a_name_that_helm_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that HELM has moved ends in one line with the name and both versions."""
    monkeypatch.delattr("helm.benchmark.run_spec.RunSpec")
    with pytest.raises(UnsupportedHelmError) as error:
        from helm_longctx.helm_api import RunSpec  # noqa: F401
    line = str(error.value)
    assert "helm.benchmark.run_spec has no RunSpec" in line
    assert f"crfm-helm {metadata.version('crfm-helm')}, but helm-longctx" in line
    assert "\n" not in line


@pytest.mark.parametrize("name", NAMES)
def test_a_renamed_field_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record with a renamed field ends in one line with the record, the field and both versions."""
    for field in helm_api._FIELDS[name]:
        with monkeypatch.context() as patched:
            rename_field(name, field, patched)
            with pytest.raises(UnsupportedHelmError) as error:
                helm_api.check_records()
    helm_api.check_records.cache_clear()
    line = str(error.value)
    assert f"{name} has no field {helm_api._FIELDS[name][-1]}" in line
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
    rename_field("RequestState", "result", monkeypatch)
    assert command("doctor", "--no-network", "--no-run") == 1
    assert "BROKEN  versions: HELM's RequestState has no field result" in command.out
    helm_api.check_records.cache_clear()


def test_a_run_with_a_changed_helm_ends_in_one_line(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with a HELM that has changed ends in one line with both versions, without a traceback."""
    rename_field("RequestState", "result", monkeypatch)
    entry = "fresh_text:task=count,length=4k,num_samples=1,model=longctx/null"
    assert command("run", "--entry", entry, "--suite", "new") == 2
    line = command.err.strip().splitlines()[-1]
    start = "helm-longctx: error: this HELM is not supported, because"
    assert line.startswith(f"{start} RequestState has no field result")
    assert "Traceback" not in command.err
    helm_api.check_records.cache_clear()
