"""The module that HELM loads through the entry-point group `helm`. It registers our run entries and models.

HELM turns an exception of this module into a warning. So nothing here may raise one, and a mistake in the command line
ends the process instead. HELM is patched only when a run of this package is built (`helm_longctx.helm.patches`).
"""

import sys

from helm_longctx.helm.command_line import check_command_line
from helm_longctx.helm.run_specs import register_run_specs
from helm_longctx.models.registration import register, register_ready
from helm_longctx.tasks.registry import BENCHMARKS

register_run_specs(BENCHMARKS)
register()
register_ready()
check_command_line(sys.argv)
