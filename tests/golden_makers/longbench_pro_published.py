"""Write published.csv: the scores by length in the summaries of the official repository.

    python -m tests.golden_makers longbench_pro_published --official FOLDER

FOLDER: a checkout of caskcsg/longcontext at 88fbeb8.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from tests.golden_makers.running import parse_folders

PLACE = (
    Path(__file__).parents[2]
    / "src/helm_longctx/benchmarks/longbench_pro/published.csv"
)


def rows(output: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield model, category, length and score in percent."""
    types = {
        name: about["type"]
        for name, about in json.loads((output / "model_info.json").read_text()).items()
    }
    for path in sorted(output.glob("*/*_summary.json")):
        thinks = not path.name.startswith("nonthinking")
        model = path.parent.name
        # Models that can think get the plain prompt, with their thinking on or off; only others get the other prompt.
        instructed = types[model] == "Instruct"
        shown = model + (" (thinking)" if thinks and not instructed else "")
        for length, score in json.loads(path.read_text())[
            "average_token_length_metric"
        ].items():
            yield (
                shown,
                "thinking" if thinks and instructed else "",
                length,
                f"{100 * score:.4f}",
            )


def main() -> None:
    """Read the official repository's summaries and write the file."""
    (official,) = parse_folders("official")
    with PLACE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model", "category", "length", "score"))
        writer.writerows(rows(official / "LongBench-Pro/output"))


if __name__ == "__main__":
    main()
