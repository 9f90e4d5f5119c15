"""Patches HELM's adapter factory as soon as a process imports it. Importing this module imports no HELM."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_FACTORY = "helm.benchmark.adaptation.adapters.adapter_factory"


class _AdapterHook:
    """A finder that waits for the import of the factory."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if name != _FACTORY:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = _Loader(spec.loader)
            spec.loader = loader
        return spec


class _Loader:
    """A module's own loader. It also applies the patch after the module was executed."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def exec_module(self, module: ModuleType) -> None:
        self._theirs.exec_module(module)
        _apply()


def _apply() -> None:
    from helm_longctx.helm.patches import make_our_adapter

    make_our_adapter.apply()


def patch_adapter_on_import() -> None:
    """Add our methods to HELM's adapter factory, when it is imported, or now, or raise a `RuntimeError`."""
    if _FACTORY in sys.modules:
        _apply()
    elif not any(isinstance(finder, _AdapterHook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AdapterHook())
