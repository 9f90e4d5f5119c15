"""Long-context evaluation for Stanford HELM: benchmarks as scenarios, adapter, metrics and run entries."""

from helm_longctx._version import VERSION
from helm_longctx.helm.adapter import register_adapter

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin: importing the package must be enough.
register_adapter()
