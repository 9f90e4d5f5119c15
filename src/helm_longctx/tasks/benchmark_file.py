"""Reads what a benchmark's folder says about it: `benchmark.yaml`, and the files of published results beside it.

    name, title, description, comparability, task_argument, …    as in `Benchmark`
    revision    repository and commit; on GitHub they are also the `url`, unless the file has one
    axis        the arguments of `Axis`, with lengths such as `16m`; absent if the benchmark has no lengths
    data        the arguments of `Terms`, by address
    metrics     the arguments of `Metric`, by name; nothing for the metrics of all judges
    task        the arguments of `Task` that the tasks share, for `task_fields`

The files `published.csv`, `models.csv`, `protocols.yaml`, `errata.jsonl` and `outputs.py` are found by their names.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any

import yaml

from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms, read_published
from helm_longctx.tasks.errata import read_errata
from helm_longctx.tasks.judge_scores import SPREAD, STRICT
from helm_longctx.tasks.lengths import Axis, parse_length
from helm_longctx.tasks.publications import read_models, read_protocols

FILE = "benchmark.yaml"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C, where PyYAML has it, because every command reads all of these files."""

_OF_JUDGES = {metric.name: metric for metric in (STRICT, SPREAD)}


@cache
def _read(package: str) -> Mapping[str, Any]:
    text = (resources.files(package) / FILE).read_text(encoding="utf-8")
    about: Mapping[str, Any] = yaml.load(text, Loader=_LOADER)  # noqa: S506  # a safe loader
    return about


def task_fields(package: str) -> dict[str, Any]:
    """Return the arguments of `Task` that the tasks of a package share."""
    return _with_tuples(_read(package)["task"])


def read_benchmark(
    package: str,
    categories: Sequence[Category],
    metrics: Sequence[Metric] = (),
    data: Mapping[str, Terms] | None = None,
    **further: Any,
) -> Benchmark:
    """Make the benchmark of a package from its files. Metrics and terms are added; `further` replaces arguments."""
    folder = resources.files(package)
    about = {name: value for name, value in _read(package).items() if name != "task"}
    own = [
        _OF_JUDGES[name] if each is None else Metric(name, **_with_tuples(each))
        for name, each in about.pop("metrics", {}).items()
    ]
    terms = {address: Terms(**_with_tuples(each)) for address, each in about.pop("data", {}).items()}
    repository, _, commit = about["revision"].partition("@")
    axis: dict[str, Any] = {**about.pop("axis", {})}
    axis |= {name: parse_length(axis[name]) for name in ("shortest", "longest") if name in axis}
    published = partial(read_published, package, categories)
    readers: dict[str, tuple[str, Callable[[], Any]]] = {
        "published": ("published.csv", published),
        "models": ("models.csv", partial(read_models, package)),
        "protocols": ("protocols.yaml", partial(read_protocols, package, further.get("published", published))),
        "errata": ("errata.jsonl", partial(read_errata, package)),
    }
    return Benchmark(
        **{"url": f"https://github.com/{repository}/tree/{commit}", **_with_tuples(about)}
        | {"axis": Axis(**axis) if axis else None, "data": terms | {**(data or {})}, "metrics": (*own, *metrics)}
        | {name: read for name, (file, read) in readers.items() if (folder / file).is_file()}
        | {"outputs": f"{package}.outputs.READER" if (folder / "outputs.py").is_file() else ""}
        | {"categories": tuple(categories), **further}
    )


def _with_tuples(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(each) if isinstance(each, list) else each for name, each in about.items()}
