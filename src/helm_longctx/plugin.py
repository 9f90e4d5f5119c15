"""What `helm-run` loads through the entry-point group `helm`: our run entries and models.

Nothing here can fail by itself, and nothing changes HELM: that waits until a run of ours is asked for
(`helm_longctx.helm.patches`). A wrong command line of ours ends the process here.
"""

import sys

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.helm_run import check_command_line
from helm_longctx.helm.run_specs import register_run_specs
from helm_longctx.models.registration import register

register_run_specs(BENCHMARKS)
register()
check_command_line(sys.argv)
