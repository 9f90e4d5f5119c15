"""Long-context evaluation for Stanford HELM."""

from helm_longctx._version import VERSION
from helm_longctx.helm.adapter import register_adapter

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin, but they import classes of this package. So the
# import of the package has to register the adapter.
register_adapter()
