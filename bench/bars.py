"""Compares what long contexts cost with the limit of each figure.

    python -m bench.bars [--only NAME …] [--tokenizer tokenizer.json] [--to bars]

Runs the scripts of `MEASUREMENTS` one after the other (25 minutes, two GB of disk), `bench.peers` without peers, and
prints a table. `--only` names the measurements to make, such as `command large_suite`. It writes the table with all
figures to `bars.json`, and a plot of the cost of a request over its length to `bars.png`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from helm_longctx.documents.plots import write_picture
from helm_longctx.tasks.lengths import STANDARD

ROOT = Path(__file__).resolve().parents[1]
MANY = (
    "--questions",
    "20000",
    "--characters",
    "8000",
    "--threads",
    "64",
    "--turns",
    "1",
)


@dataclass(frozen=True)
class Bar:
    """Args: what is measured, the figure, the most or (`at_least`) the least that it may be, and stock HELM's figure
    where it was measured."""

    what: str
    figure: float
    limit: float
    at_least: bool = False
    stock: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the figure is within the limit."""
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit


def figures(script: str, *arguments: str) -> Any:
    """Return the JSON that a script writes; its output is shown."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        subprocess.run(
            [sys.executable, "-m", f"bench.{script}", *arguments, "--json", path],
            check=True,
            cwd=ROOT,
        )
        return json.loads(path.read_bytes())


def start_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of the processor time of commands, and of `run` until its first request."""
    return [
        Bar(f"processor seconds, {row['what']}", row["seconds"], row["limit"])
        for row in rows
        if row["limit"]
    ]


def overhead_bars(figures: dict[str, Any]) -> list[Bar]:
    """Bars of the cost of a request without its answer."""
    ratios = figures["ratios"]
    stock = ratios["ours / bare"] * ratios["stock / ours"]
    return [
        Bar(
            "a 128k request / one bare tokenization",
            ratios["ours / bare"],
            1.25,
            stock=stock,
        ),
        Bar("stock / ours, a 128k request", ratios["stock / ours"], 6, at_least=True),
        Bar("ours / stock, without tokenizer", ratios["ours / stock, no tokenizer"], 1),
        Bar(
            "1m / the line through 8k and 128k",
            ratios["1m / line through 8k and 128k"],
            1.3,
        ),
        Bar(
            "a prompt 3 times too long / one that fits",
            ratios["3 times over / fits"],
            1.2,
        ),
    ]


def client_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of requests per second."""
    return [
        Bar(
            f"requests/s / bare openai's: {row['size']}, {row['threads']} in flight, answers after {row['after']:g} s",
            row["ratio"],
            0.9,
            at_least=True,
            stock=row["stock"] / row["bare"],
        )
        for row in rows
    ]


def pipeline_bars(figures: dict[str, float]) -> list[Bar]:
    """Bars of the whole way from the first request to the files of the run."""
    return [
        Bar(
            "a whole run's pace / bare openai's: 4k, 32 in flight",
            figures["ratio"],
            0.9,
            at_least=True,
        ),
        Bar("ms to score and write an instance", figures["ms after"], 1.5),
    ]


def file_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of the disk space and memory of a run."""

    def times_text(run: str, figure: str) -> dict[str, float]:
        turns = [row for row in rows if row["run"] == run]
        return {
            side: statistics.median(
                row[figure] / row["text"] for row in turns if row["side"] == side
            )
            for side in ("ours", "stock")
        }

    disk = times_text("json_kv 128k, server", "disk")
    peak = times_text("lv_eval 256k", "peak")
    return [
        Bar("disk / text, 100 x 128k", disk["ours"], 1.3, stock=disk["stock"]),
        Bar(
            "run's peak memory / text, 200 x 256k words",
            peak["ours"],
            1.6,
            stock=peak["stock"],
        ),
    ]


def command_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of the whole command `run` on own questions, imports included."""
    return [
        Bar(
            "seconds of `run`, 2,000 own questions of 4k, 32 in flight",
            rows[0]["seconds"],
            7,
        ),
        Bar("its peak MB", rows[0]["peak_mb"], 280),
    ]


def large_command_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bar of the whole command `run` on many own questions."""
    return [
        Bar(
            "peak MB of `run`, 20,000 own questions of 2k, 64 in flight",
            rows[0]["peak_mb"],
            400,
        )
    ]


def page_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of summaries and run pages."""
    ours = {row["size"]: row for row in rows if row["side"] == "ours"}
    stock = {row["size"]: row for row in rows if row["side"] == "stock"}
    limits = {"100x128k": (2, 60), "500x128k": (3, 80), "200x256k": (3, 80)}
    bars = [
        Bar(
            f"{what}, {size}",
            ours[size][name],
            limit,
            stock=stock.get(size, {}).get(name),
        )
        for size, (seconds, heap) in limits.items()
        for what, name, limit in (
            ("seconds to open the page", "page_s", seconds),
            ("MB of its heap", "heap_mb", heap),
        )
    ]
    one = ours["200x256k"]
    four = ours["4 runs 200x256k"]
    bars.append(
        Bar(
            "summarize's peak memory / text, 200 x 256k words",
            one["peak_mb"] / one["text_mb"],
            1.6,
        )
    )
    # A ratio of the peaks would depend on the memory of imports.
    growth = (four["peak_mb"] - one["peak_mb"]) / (four["text_mb"] - one["text_mb"])
    return [
        *bars,
        Bar("summarize's peak memory, growth / text of three more runs", growth, 0.05),
    ]


def leaderboard_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of the leaderboard with all published results, and with many instances."""
    published, many = rows
    return [
        Bar("summarize, all published results, seconds", published["summarize_s"], 15),
        Bar("summarize, errors", published["errors"] + many["errors"], 0),
        Bar("first page, seconds", published["page_s"], 1),
        Bar("first page, MB sent", published["sent_mb"], 1),
        Bar("summarize, 20,000 instances, seconds", many["summarize_s"], 10),
        Bar("summarize, 20,000 instances, peak MB", many["peak_mb"], 800),
    ]


def large_suite_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Bars of commands on 100 run entries of 10 models."""
    costs = {row["command"]: row for row in rows}
    return [
        Bar(
            "summarize, 100 entries x 10 models, seconds",
            costs["summarize"]["seconds"],
            60,
        ),
        Bar("its peak MB", costs["summarize"]["peak_mb"], 400),
        Bar("report, 100 entries x 10 models, seconds", costs["report"]["seconds"], 60),
    ]


MEASUREMENTS: dict[str, tuple[str, tuple[str, ...], Callable[[Any], list[Bar]]]] = {
    "start": ("start", (), start_bars),
    "overhead": ("requests.overhead", (), overhead_bars),
    "clients": ("requests.clients", (), client_bars),
    "pipeline": ("requests.pipeline", (), pipeline_bars),
    "command": ("peers", ("--programs", "helm-longctx"), command_bars),
    "large_command": (
        "peers",
        ("--programs", "helm-longctx", *MANY),
        large_command_bars,
    ),
    "files": ("runs.files", (), file_bars),
    "pages": ("pages.long_runs", (), page_bars),
    "leaderboard": ("pages.leaderboard", (), leaderboard_bars),
    "large_suite": ("pages.suite", (), large_suite_bars),
}
"""The script, its arguments, and what makes bars of its figures."""


def draw(seconds: dict[str, float], path: Path) -> None:
    """Draw the cost of a request over its length, and of the other ways at 128k."""
    names = {f"ours, {label}": ("ours", label) for label in STANDARD}
    names |= {f"{way}, 128k": (way, "128k") for way in ("stock", "bare tokenization")}
    rows = [
        {"way": way, "tokens": STANDARD[label], "seconds": seconds[name]}
        for name, (way, label) in names.items()
        if name in seconds
    ]
    axes = {
        "x": ("tokens", "tokens of the prompt"),
        "y": ("seconds", "seconds a request, without the model"),
    }
    encoding: dict[str, Any] = {
        axis: {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"type": "log"},
        }
        for axis, (field, title) in axes.items()
    }
    encoding["color"] = {"field": "way", "type": "nominal", "sort": None, "title": None}
    data = {"values": rows}
    write_picture(
        {
            "data": data,
            "width": 500,
            "mark": {"type": "line", "point": True},
            "encoding": encoding,
        },
        path,
    )


def main() -> None:
    """Measure, print the table, and write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS)
    )
    parser.add_argument("--tokenizer", help="of bench.requests.overhead")
    parser.add_argument("--turns", type=int, default=3, help="of bench.runs.files")
    parser.add_argument(
        "--to",
        type=Path,
        default=Path("bars"),
        help="the folder of bars.json and bars.png",
    )
    args = parser.parse_args()
    given = {
        "overhead": ["--tokenizer", args.tokenizer] if args.tokenizer else [],
        "files": ["--turns", str(args.turns)],
    }
    measured = {}
    bars = []
    for name in args.only:
        script, arguments, make_bars = MEASUREMENTS[name]
        measured[name] = figures(script, *arguments, *given.get(name, ()))
        bars += make_bars(measured[name])
    table = Table("", "measured", "bar", "met", "stock HELM")
    for bar in bars:
        sign = "at least" if bar.at_least else "at most"
        stock = "" if bar.stock is None else f"{bar.stock:.2f}"
        table.add_row(
            bar.what,
            f"{bar.figure:.2f}",
            f"{sign} {bar.limit:g}",
            "yes" if bar.is_met else "NO",
            stock,
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    args.to.mkdir(parents=True, exist_ok=True)
    written = {"bars": [{**asdict(bar), "met": bar.is_met} for bar in bars], **measured}
    (args.to / "bars.json").write_text(json.dumps(written, indent=1) + "\n")
    if "overhead" in measured:
        draw(measured["overhead"]["seconds"], args.to / "bars.png")


if __name__ == "__main__":
    main()
