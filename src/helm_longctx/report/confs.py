"""Makes HELM's run-entry files from the benchmarks' tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.task import Benchmark

DEMO_LENGTHS = (8192, 32768, 131072)
DEMO_SAMPLES = 10
DEMO_MODELS = ("longctx/lexical", "longctx/null")


def conf_files(benchmarks: Iterable[Benchmark]) -> dict[str, str]:
    """Return file names with contents: a file for each benchmark and length, and a demo without data or network."""
    benchmarks = tuple(benchmarks)
    files = {"demo.conf": _file("Runs without data, network, key or GPU.", _demo(benchmarks))}
    for benchmark in benchmarks:
        for length in benchmark.lengths:
            label = length_label(length)
            entries = [
                f"{name}:length={label},model=text"
                for name, category in benchmark.entries.items()
                if category.averaged and all(task.any_length or length in task.sizes for task in category.tasks)
            ]
            files[f"{benchmark.name}_{label}.conf"] = _file(
                f"{benchmark.title} at {label}. Name the models: helm-run --models-to-run …", entries
            )
    return files


def _demo(benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    for benchmark in benchmarks:
        for name, category in benchmark.entries.items():
            if category.averaged and all(task.any_length for task in category.tasks):
                for length in DEMO_LENGTHS:
                    for model in DEMO_MODELS:
                        yield f"{name}:length={length_label(length)},num_samples={DEMO_SAMPLES},model={model}"


def _file(about: str, entries: Iterable[str]) -> str:
    lines = ",\n".join(f'  {{description: "{entry}", priority: 1}}' for entry in entries)
    head = f"# {about}\n# Made from the task table by `helm-longctx confs run_specs`; do not edit.\n\n"
    return f"{head}entries: [\n{lines}\n]\n"
