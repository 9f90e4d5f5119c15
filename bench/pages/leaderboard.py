"""Measures seconds and memory of `summarize` for large suites, and the first page in Chromium.

    python -m bench.pages.leaderboard [--json FILE]

There are two suites: all published results with two runs beside them, and four runs with 20,000 instances together.
Runs are fabricated. Seconds depend on the machine, and include HELM's imports.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.cost import measure_command
from bench.pages.chromium import open_page
from tests.support.fabricate_runs import long_prompts, write_run
from tests.support.programs import BIN

LENGTHS = ("4k", "8k", "16k", "32k")
INSTANCES = 5_000
"""Of each run."""

STATISTICS = (
    *(
        "exact_match",
        "f1",
        "substring_exact_match",
        "rougeL_f1",
        "rougeL_recall",
        "longctx_score",
        "json_kv_score",
    ),
    *(
        "depth",
        "input_tokens",
        "request_failed",
        "request_too_long",
        "request_seconds",
        "prompt_cut",
        "generated_data",
    ),
)
"""Of each instance."""

SENT = "return performance.getEntriesByType('resource').reduce((sum, file) => sum + file.transferSize, 0)"


@dataclass(frozen=True)
class Figures:
    """Args: seconds, processor seconds, peak memory in MB and errors of `summarize`, seconds until the first page is
    painted, and MB sent for it."""

    suite: str
    summarize_s: float
    cpu_s: float
    peak_mb: float
    errors: int
    page_s: float
    sent_mb: float


def write_published(folder: Path) -> None:
    """Write all published results, and two runs."""
    for benchmark in ("helmet", "lv_eval"):
        subprocess.run(
            [BIN / "helm-longctx", "reference", benchmark, "--suite", "s"],
            cwd=folder,
            check=True,
        )
    for model in ("null", "lexical"):
        entry = f"helmet_recall:task=json_kv,length=128k,model=longctx/{model}"
        write_run(folder / "benchmark_output/runs/s", entry, long_prompts(100, 2_000))


def write_many(folder: Path) -> None:
    """Write many short instances with the statistics of real runs."""
    rng = random.Random(1)
    for length in LENGTHS:
        entry = f"helmet_recall:task=json_kv,length={length},model=longctx/lexical"
        run = write_run(
            folder / "benchmark_output/runs/s", entry, long_prompts(INSTANCES, 200)
        )
        rows = json.loads((run / "per_instance_stats.json").read_text())
        for row in rows:
            row["stats"] = [stat(name, round(rng.random(), 3)) for name in STATISTICS]
        (run / "per_instance_stats.json").write_text(json.dumps(rows, indent=2))
        (run / "stats.json").write_text(
            json.dumps([stat(name, 0.5) for name in STATISTICS], indent=2)
        )


def stat(name: str, value: float) -> dict[str, object]:
    """Return the JSON of HELM's `Stat` with one value."""
    counts = {
        "count": 1,
        "sum": value,
        "sum_squared": value**2,
        "min": value,
        "max": value,
        "mean": value,
    }
    return {
        "name": {"name": name, "split": "test", "sub_split": "json_kv"},
        **counts,
        "variance": 0.0,
        "stddev": 0.0,
    }


def summarize(folder: Path) -> tuple[float, float, float, int]:
    """Return seconds, processor seconds, peak memory in MB, and the number of our errors."""
    cost = measure_command([BIN / "helm-longctx", "summarize", "--suite", "s"], folder)
    # NLTK, which HELM imports, writes other lines if there is no network.
    errors = sum(
        line.startswith("helm-longctx")
        for line in (folder / "log").read_text().splitlines()
    )
    return cost.seconds, cost.cpu_seconds, cost.peak_mb, errors


def open_first_page(folder: Path) -> tuple[float, float]:
    """Return seconds until the leaderboard shows its rows, and MB sent."""
    with open_page(folder, "/leaderboard", "tbody td") as page:
        return page.seconds, page.browser.execute_script(SENT) / 1e6


def measure() -> Iterator[Figures]:
    """Measure both suites."""
    for name, write in (
        ("published", write_published),
        ("20,000 instances", write_many),
    ):
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            write(folder)
            yield Figures(name, *summarize(folder), *open_first_page(folder))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    rows = []
    for figures in measure():
        rows.append(asdict(figures))
        print(json.dumps(rows[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
