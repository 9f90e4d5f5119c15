"""Measures our runner and summarizer with many short instances and a model that answers at once in this process.

    python -m bench.runs.simulate [--instances 1000000] [--runs 55] [--processes 2] [--json FILE]

The figures are our own cost for each instance: requests, loop, journal, metrics, files and tables. Prompts are
fabricated in LV-Eval's form, a few hundred characters each. The processes share the runs, as the jobs of a cluster do.
The script prints seconds, CPU seconds, the peak memory of a process, and disk space.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path

from bench.cost import measure_command, peak_mb
from tests.runner.making import make_runner, spec_of
from tests.support.programs import BIN

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS, LENGTHS
from helm_longctx.run_settings import MIRROR

ROW = {
    "context": "The town lies at the river. " * 10,
    "answers": ["river"],
    "length": 60,
    "language": "en",
}


def write_data(root: Path, dataset: str, length: str, count: int) -> None:
    """Write a file of LV-Eval with short contexts."""
    path = root / f"lveval/{dataset}/{dataset}_{length}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        {**ROW, "input": f"What is {n}?", "answer_keywords": "", "confusing_facts": []}
        for n in range(count)
    )
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def make_run(folder: Path, instances: int, dataset: str, length: str) -> float:
    """Make one run, as `helm-run` does. Return the peak memory of this process in MB."""
    logging.disable()
    write_data(folder / "mirror", dataset, length, instances)
    entry = f"lv_eval:dataset={dataset},length={length},num_samples={instances},model=longctx/null"
    make_runner(folder).run_all([spec_of(entry, 10**9)])
    peak = peak_mb()
    print(
        f"{dataset} {length}: {time.process_time():.0f} s of CPU, peak {peak:.0f} MB",
        flush=True,
    )
    return peak


def run_all(folder: Path, runs: int, instances: int, processes: int) -> float:
    """Make the runs, in each process one after the other. Return the highest peak memory of a process in MB."""
    names = [
        (dataset.name, length)
        for dataset, length in islice(product(DATASETS, LENGTHS), runs)
    ]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return max(
            pool.map(partial(make_run, folder, instances), *zip(*names, strict=True))
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument(
        "--runs",
        type=int,
        default=55,
        help="at most 55: each has a data set and a length of LV-Eval",
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[MIRROR] = str(folder / "mirror")
        start = time.perf_counter()
        peak = run_all(folder, args.runs, args.instances // args.runs, args.processes)
        seconds = time.perf_counter() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        summary = measure_command(
            [BIN / "helm-longctx", "summarize", "--suite", "s"], folder
        )
        files = (
            path
            for path in (folder / "benchmark_output/runs").rglob("*")
            if path.is_file()
        )
        figures = {
            "instances": args.instances // args.runs * args.runs,
            "runs": args.runs,
            "run_seconds": seconds,
            "run_cpu_seconds": usage.ru_utime + usage.ru_stime,
            "run_peak_mb": peak,
            "summarize_seconds": summary.seconds,
            "summarize_peak_mb": summary.peak_mb,
            "disk_mb": sum(path.stat().st_size for path in files) / 1e6,
        }
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
