"""What `helm-run` loads through the entry-point group `helm`: imports, and nothing that can fail by itself."""

import helm_longctx.helmet.run_specs
import helm_longctx.lv_eval.run_specs  # noqa: F401
from helm_longctx.cli.errors import install_excepthook
from helm_longctx.core.subsample import warn_of_subsamples
from helm_longctx.models.registration import register
from helm_longctx.redaction.hooks import install_redaction
from helm_longctx.running.clock import install_steady_clock
from helm_longctx.running.lean import install_lean_logs

install_redaction()
register()
install_excepthook()
install_lean_logs()
install_steady_clock()
warn_of_subsamples()
