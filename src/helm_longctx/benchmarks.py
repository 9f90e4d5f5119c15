"""Every benchmark of the suite. Adding one: its folder, its line here and its import in `plugin.py`."""

from helm_longctx.helmet.tasks import HELMET

BENCHMARKS = (HELMET,)
