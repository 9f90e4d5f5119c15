"""Long-context evaluation for Stanford HELM: HELMET and LV-Eval as scenarios, adapters, metrics and annotators."""

from helm_longctx._version import VERSION
from helm_longctx.core.adapter import register_adapter

__version__ = VERSION

# helm-summarize, helm-server and the Slurm worker load no plugin: importing the package must be enough.
register_adapter()
