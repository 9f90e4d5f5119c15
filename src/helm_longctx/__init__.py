"""Long-context evaluation for Stanford HELM."""

from helm_longctx._moved import import_old_names
from helm_longctx._version import VERSION
from helm_longctx.helm.adapter_hook import patch_adapter_on_import
from helm_longctx.redaction.text import load_formats_with

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin, but they import classes of this package. So
# importing the package must register the adapter. It does not import HELM, so that commands without it start fast.
patch_adapter_on_import()
import_old_names()


def _load_providers() -> None:
    from helm_longctx.models.apis.provider import our_providers

    our_providers()


# Every process must know the formats of the providers' keys before it redacts the first text.
load_formats_with(_load_providers)
