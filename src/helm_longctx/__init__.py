"""Long-context evaluation for Stanford HELM."""

from helm_longctx._version import VERSION
from helm_longctx.helm.patches import apply_adapter_patch

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin, but they import classes of this package. So
# importing the package must register the adapter.
apply_adapter_patch()
