"""Makes HELM's run-entry files from the benchmarks' tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.lengths import length_label


def conf_files(benchmarks: Iterable[Benchmark]) -> dict[str, str]:
    """Return file names with contents: a file for each benchmark and length."""
    files = {}
    for benchmark in benchmarks:
        lengths: list[int] | list[None] = benchmark.lengths or [None]
        for length in lengths:
            name, title = benchmark.name, benchmark.title
            if length is not None:
                name, title = f"{name}_{length_label(length)}", f"{title} at {length_label(length)}"
            about = f"{title}. Name the models: helm-run --models-to-run …"
            if entries := list(_entries(benchmark, length)):
                files[f"{name}.conf"] = _file(about, entries)
    return files


def _entries(benchmark: Benchmark, length: int | None) -> Iterator[str]:
    at = "" if length is None else f"length={length_label(length)},"
    for name, category in benchmark.entries.items():
        if category.averaged and category.tasks_at(length) and not category.needs_path:
            yield f"{name}:{at}model=text"


def entry_file(about: str, entries: Iterable[str]) -> str:
    """Return the content of a file of run entries for `helm-run --conf-paths`.

    Args:
        about: its first line, a comment.
    """
    lines = ",\n".join(f'  {{description: "{entry}", priority: 1}}' for entry in entries)
    return f"# {about}\n\nentries: [\n{lines}\n]\n"


def _file(about: str, entries: Iterable[str]) -> str:
    return entry_file(f"{about}\n# Made from the task table by `helm-longctx confs run_specs`; do not edit.", entries)
