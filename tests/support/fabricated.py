"""What a benchmark's own tests give to the tests of all benchmarks: `tests/benchmarks/<name>/fabricate.py`.

The module can have these names:

- `build_<name>(root)` writes the benchmark's data under a data root.
- `RECORD` is an answer of the benchmark with the fields that its scorers read.
- `read_reply(reply)` returns the verdict of a judge's reply, and `REPLIES` has usual and unusual replies.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from helm_longctx.tasks.registry import BENCHMARKS

_FOLDERS = {
    path.parent.name
    for path in (Path(__file__).parents[1] / "benchmarks").glob("*/fabricate.py")
}
MODULES = {
    benchmark.name: import_module(f"tests.benchmarks.{benchmark.name}.fabricate")
    for benchmark in BENCHMARKS
    if benchmark.name in _FOLDERS
}


def fabricated(pattern: str) -> dict[str, Any]:
    """Return what the modules have under a name, by benchmark; `{name}` in it stands for the benchmark's name."""
    makers = {
        name: getattr(module, pattern.format(name=name), None)
        for name, module in MODULES.items()
    }
    return {name: value for name, value in makers.items() if value is not None}
