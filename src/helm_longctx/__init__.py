"""Long-context evaluation for Stanford HELM: benchmarks as scenarios, adapter, metrics and run entries."""

from helm_longctx._version import VERSION
from helm_longctx.helm.patches import apply_adapter_patch

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin: importing the package must be enough.
apply_adapter_patch()
