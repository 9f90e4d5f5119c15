"""Measures seconds and memory of summaries and of the browser for long runs, with our summarizer and HELM's ("stock").

    python -m bench.pages.long_runs [--json FILE] [--sizes 100x128k …]

Runs are fabricated. "Ours" is `helm-longctx summarize`, and "stock" is `helm-summarize`, which is measured only for
runs that it can summarize. The two take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from bench.cost import Cost, measure_command
from bench.pages.chromium import open_page
from tests.support.fabricate_runs import CHINESE, ENGLISH, long_prompts, write_run
from tests.support.programs import BIN

RECALL = "helmet_recall:task=json_kv,length=128k,model=longctx/null"
LV_EVAL = "lv_eval:dataset=hotpotwikiqa_mixup,length=256k,model=longctx/null"
LV_EVAL_CHINESE = "lv_eval:dataset=dureader_mixup,length=256k,model=longctx/null"
COMMANDS = {
    "ours": ["helm-longctx", "summarize"],
    "stock": ["helm-summarize", "--schema-path", "schema.yaml"],
}


@dataclass(frozen=True)
class Size:
    """Args: number of instances, characters of each, their words, how many such runs, whether stock ends."""

    entry: str
    count: int
    characters: int
    words: list[str]
    runs: int = 1
    stock: bool = False


SIZES = {
    "100x128k": Size(RECALL, 100, 550_000, ENGLISH, stock=True),
    "500x128k": Size(RECALL, 500, 550_000, ENGLISH),
    "200x256k": Size(LV_EVAL, 200, 1_600_000, ENGLISH),
    "200x256k chinese": Size(LV_EVAL_CHINESE, 200, 400_000, CHINESE),
    "4 runs 200x256k": Size(LV_EVAL, 200, 1_600_000, ENGLISH, runs=4),
}


@dataclass(frozen=True)
class Figures:
    """Args: text of the prompts in MB, seconds and peak memory of the summary, the page's seconds and heap in MB."""

    size: str
    side: str
    text_mb: float
    summarize_s: float
    peak_mb: float
    page_s: float
    heap_mb: float


@contextmanager
def fabricate(size: Size) -> Iterator[tuple[Path, list[Path], float]]:
    """Write a suite. Yield its folder, the folders of its runs, and the size of all prompts in MB of UTF-8."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "benchmark_output/runs/s"
        runs = [
            write_run(
                suite, size.entry, long_prompts(size.count, size.characters, size.words)
            )
        ]
        for number in range(1, size.runs):
            runs.append(suite / f"{runs[0].name},run={number}")
            runs[-1].mkdir()
            for path in runs[0].iterdir():
                os.link(path, runs[-1] / path.name)
        schema = subprocess.run(
            [BIN / "helm-longctx", "schema", "--suite", "s"],
            cwd=folder,
            capture_output=True,
        )
        (Path(folder) / "schema.yaml").write_bytes(schema.stdout)
        text = sum(
            len(prompt.encode())
            for prompt, _ in long_prompts(size.count, size.characters, size.words)
        )
        yield Path(folder), runs, size.runs * text / 1e6


def summarize(folder: Path, side: str) -> Cost:
    """Summarize a suite, and return what that costs."""
    program, *arguments = COMMANDS[side]
    return measure_command([BIN / program, *arguments, "--suite", "s"], folder)


def open_run_page(folder: Path, run: Path) -> tuple[float, float]:
    """Return seconds until the run page shows its first instances, and the JavaScript heap in MB, including garbage."""
    route = f"/runs/{quote(run.name, safe='')}"
    with open_page(folder, route, "[id^=instance-]") as page:
        metrics = page.browser.execute_cdp_cmd("Performance.getMetrics", {})
        sizes = {metric["name"]: metric["value"] for metric in metrics["metrics"]}
        return page.seconds, sizes["JSHeapUsedSize"] / 1e6


def measure(name: str) -> Iterator[Figures]:
    """Measure each summarizer, and yield the figures of each."""
    with fabricate(SIZES[name]) as (folder, runs, text):
        for side in ("ours", "stock") if SIZES[name].stock else ("ours",):
            cost = summarize(folder, side)
            yield Figures(
                name,
                side,
                text,
                cost.seconds,
                cost.peak_mb,
                *open_run_page(folder, runs[0]),
            )


def main() -> None:
    """Print a table, and write JSON if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    arguments = parser.parse_args()
    titles = ("text MB", "summarize s", "peak MB", "page s", "heap MB")
    print(f"{'size':20}{'side':8}" + "".join(f"{title:>12}" for title in titles))
    rows = []
    for name in arguments.sizes:
        for row in measure(name):
            rows.append(asdict(row))
            numbers = (
                row.text_mb,
                row.summarize_s,
                row.peak_mb,
                row.page_s,
                row.heap_mb,
            )
            print(
                f"{row.size:20}{row.side:8}"
                + "".join(f"{number:12.1f}" for number in numbers),
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
