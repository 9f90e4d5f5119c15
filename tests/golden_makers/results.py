"""Writes digests of what the tasks of all benchmarks make of fabricated data: examples, baselines and scores of outputs.

    python -m tests.golden_makers results

No official code is needed. A line that changes is another question, baseline or score, unless the fabricated data changed.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from helm_longctx.data.root import DataRoot
from tests.support import punkt
from tests.support.fabricate import build_mirror
from tests.support.task_results import (
    RESULTS,
    build_data,
    describe_results,
    list_described,
)


def main() -> None:
    """Write the digests of all benchmarks to `results.json`."""
    with tempfile.TemporaryDirectory() as models:
        # Tests have this model of sentences, whatever NLTK has on the machine.
        os.environ["NLTK_DATA"] = models
        punkt.write_model(Path(models))
        results = _describe_all()
    RESULTS.write_text(f"{json.dumps(results, indent=1)}\n", encoding="utf-8")


def _describe_all() -> dict[str, dict[str, str]]:
    results = {}
    for benchmark in list_described():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            if not build_data(benchmark, path):
                build_mirror(path)
            root = DataRoot(path, mirror=True)
            results[benchmark.name] = describe_results(benchmark, root)
    return results


if __name__ == "__main__":
    main()
