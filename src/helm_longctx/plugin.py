"""The module that HELM loads through the entry-point group `helm`. Importing it registers everything.

It stays small, because HELM turns an exception raised here into a warning. A `helm-run` command line with a mistake ends
the process here.
"""

import sys

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.helm.command_line import check_command_line
from helm_longctx.helm.errors import install_excepthook
from helm_longctx.helm.run_specs import register_run_specs
from helm_longctx.helm.subsample import warn_of_subsamples
from helm_longctx.models.registration import register
from helm_longctx.redaction.hooks import install_redaction
from helm_longctx.redaction.lean import install_lean_logs
from helm_longctx.running.clock import install_steady_clock

register_run_specs(BENCHMARKS)
install_redaction()
register()
install_excepthook()
install_lean_logs()
install_steady_clock()
warn_of_subsamples()
check_command_line(sys.argv)
