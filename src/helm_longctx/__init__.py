"""Long-context evaluation for Stanford HELM."""

from helm_longctx._moved import import_old_names
from helm_longctx._version import VERSION
from helm_longctx.helm.adapter_hook import patch_adapter_on_import

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin, but they import classes of this package. So
# importing the package must register the adapter. It does not import HELM, so that commands without it start fast.
patch_adapter_on_import()
import_old_names()
