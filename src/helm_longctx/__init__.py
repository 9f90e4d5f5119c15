"""Long-context evaluation for Stanford HELM."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from helm_longctx._version import VERSION
from helm_longctx.helm.adapter_hook import patch_adapter_on_import

if TYPE_CHECKING:
    from helm_longctx.errors import InputError
    from helm_longctx.evaluation.evaluate import evaluate
    from helm_longctx.models.objects import Prompt

__version__ = VERSION
__all__ = ["InputError", "Prompt", "evaluate"]

_PUBLIC = {
    "InputError": "errors",
    "Prompt": "models.objects",
    "evaluate": "evaluation.evaluate",
}
"""The modules of the public names, which are imported when a name is used, because some of them import HELM."""

# helm-summarize, helm-server and the Slurm worker load no plugin, but they import classes of this package. So
# importing the package must register the adapter. It does not import HELM, so that commands without it start fast.
patch_adapter_on_import()


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
