"""Old and new names of modules. Commands, YAML files and `run_spec.json` of earlier versions have the old ones."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "apis": "models.apis",
    "apis.anthropic_client": "models.apis.providers.anthropic",
    "apis.openai_client": "models.apis.providers.openai",
    "batching": "runner.batches",
    "cli.config": "config",
    "endpoints": "models.endpoints",
    "formats": "apps.exchange",
    "helm.answer_judge": "judging.answer_judge",
    "judging.scores": "tasks.judge_scores",
    "models.client": "models.baselines.clients",
    "models.hf": "models.local.huggingface",
    "models.lexical": "models.baselines.lexical",
    "protocol": "tasks",
    "report": "results.leaderboard",
    "running": "runner",
    "sandbox": "tasks.sandbox",
    "scaling": "runner.machines",
    "sources": "data",
    "statistics": "results.statistics",
}
"""Below `helm_longctx`. The modules in a folder that moved moved with it."""

_PACKAGE = f"{__package__}."


def new_name(name: str) -> str | None:
    """Return the new name of a module; None if the module did not move."""
    if name.startswith(_PACKAGE):
        parts = name[len(_PACKAGE) :].split(".")
        for count in (2, 1):
            if new := MOVED.get(".".join(parts[:count])):
                return _PACKAGE + ".".join([new, *parts[count:]])
    return None


def current_name(name: str) -> str:
    """Return the name that a module, or a class by its path, has now."""
    return new_name(name) or name


def former_name(name: str) -> str:
    """Return the name that a module, or a class by its path, had before it moved."""
    for new, old in sorted(((new, old) for old, new in MOVED.items()), reverse=True):
        if name.startswith(f"{_PACKAGE}{new}."):
            return _PACKAGE + old + name[len(_PACKAGE + new) :]
    return name


class _OldNames:
    """Imports a module by its old name: the same module, with one warning.

    It has the methods of Python's finders and loaders. Their abstract classes are slow to import.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True) if new_name(name) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None  # Python makes it

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = new_name(module.__name__)
        assert new
        warnings.warn(
            f"{old} is now {new}. The old name still works in 1.x.", FutureWarning, stacklevel=2
        )
        # Python's import returns what stands here after this call.
        sys.modules[old] = import_module(new)


def import_old_names() -> None:
    """Make the old names importable. Idempotent."""
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        # Python's own finder would load a second copy of a module from the folder of a package that moved.
        sys.meta_path.insert(0, _OldNames())
