"""Reads HELM's objects from JSON with HELM's codec, imported without NLTK, spaCy and PyTorch.

HELM's codec (`helm.common.codec`) imports all perturbations. The one that replaces words by synonyms imports NLTK and
spaCy, and so PyTorch, in 4 seconds and 480 MB. It needs them only when it perturbs.

A module that imports HELM's summarizer or Slurm runner imports this module first, because they import the codec.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["from_json"]

_SYNONYMS = "helm.benchmark.augmentations.synonym_perturbation"
_DEFERRED = ("nltk", "nltk.corpus", "spacy")


class _Deferred(ModuleType):
    """Takes the place of a module. The module is imported when one of its attributes is read."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's import statement asks for these
            raise AttributeError(name)
        module, _, attribute = self.__name__.partition(":")
        owner: Any = importlib.import_module(module)
        if attribute:
            owner = getattr(owner, attribute)
        return getattr(owner, name)


def _import_synonyms() -> None:
    """Import HELM's module of synonyms, with a stand-in for each package that it imports and nothing else has."""
    # These imports come first, so that no other module of HELM is imported while the packages are deferred.
    importlib.import_module("helm.benchmark.runner")
    importlib.import_module("helm.benchmark.augmentations.perturbation")
    deferred = {}
    for name in _DEFERRED:
        if name not in sys.modules:
            deferred[name] = _Deferred(name)
    if "nltk.corpus" in deferred:
        deferred["nltk.corpus"].wordnet = _Deferred("nltk.corpus:wordnet")  # type: ignore[attr-defined]
    sys.modules.update(deferred)
    try:
        importlib.import_module(_SYNONYMS)
    finally:
        for name in deferred:
            del sys.modules[name]


_import_synonyms()

from helm.common.codec import from_json  # noqa: E402
