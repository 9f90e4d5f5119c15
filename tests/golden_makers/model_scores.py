"""Write golden.json, which has the official scores of the answers in answers.json.

    pip install --no-deps --target SITE tree_sitter==0.21.3 tree_sitter_languages==1.10.2 tempdir
    python -m tests.golden_makers model_scores --official FOLDER --site SITE

FOLDER has a checkout of each repository in `official.SUITES`, at the commit that is there, and of princeton-nlp/HELMET at
4526dfb, each in a folder with the repository's name. The requirements are those of the suites' own
modules here. MRCR's answers are scored by HELM's own metric. LongProc's evaluator of countdown calls `eval` on parts of the
answers: read them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helm_longctx.tasks.entry import Entry, parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from tests.golden_makers import helmet
from tests.golden_makers.model_suites import HARNESS, SUITES
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.models.answers.records import read_records


def main() -> None:
    """Run the official code of each suite on its answers."""
    official, site = parse_folders("official", "site")
    golden: dict[str, list[dict[str, float]]] = {}
    by_benchmark: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for text, records in read_records().items():
        entry = parse_entry(BENCHMARKS, text)
        by_benchmark.setdefault(entry.benchmark.name, []).extend(
            (text, {**names(entry), **row}) for row in records
        )
    for name, pairs in by_benchmark.items():
        for (text, _), scores in zip(
            pairs, score(name, [row for _, row in pairs], official, site), strict=True
        ):
            (task,) = parse_entry(BENCHMARKS, text).tasks
            kept = {
                metric: float(value)
                for metric, value in scores.items()
                if metric in task.metrics
            }
            golden.setdefault(text, []).append(kept)
    write_golden("models/answers", golden, indent=0, ensure_ascii=False)


def names(entry: Entry) -> dict[str, str]:
    """Return the names of an entry's task that the official code needs."""
    (task,) = entry.tasks
    return {"entry": entry.name, "task": task.name, "argument": task.argument}


def score(
    name: str, rows: Sequence[dict[str, Any]], official: Path, site: Path
) -> list[dict[str, float]]:
    """Return the official scores of a benchmark's records."""
    if name == "helmet":
        return score_helmet(rows, official / "HELMET")
    suite = SUITES[name]
    checkout = official / suite.checkout
    folder = checkout / suite.folder if suite.folder else None
    official_results: list[dict[str, float]] = run_official(
        HARNESS.replace("{code}", suite.code), checkout, site, data=rows, folder=folder
    )
    return official_results


def score_helmet(
    rows: Sequence[dict[str, Any]], checkout: Path
) -> list[dict[str, float]]:
    """Return HELMET's scores, of which those of answers with citations come from another script."""
    table = helmet._read_table(checkout)
    # Without citations an answer's record has no documents, but the script looks for them.
    cited = [{"docs": [], **row} for row in rows if row["entry"] == "helmet_cite"]
    others = [row for row in rows if row["entry"] != "helmet_cite"]
    task = {
        "prompts": {},
        "scored": {
            row["task"]: helmet.case(table, f"{row['task']} 8k") for row in others
        },
        "records": others,
        "citations": cited,
    }
    official_results = helmet.run_official(checkout, task)
    scores = {
        "cited": iter(official_results["citations"]),
        "others": iter(official_results["scores"]),
    }
    return [
        next(scores["cited" if row["entry"] == "helmet_cite" else "others"])
        for row in rows
    ]


if __name__ == "__main__":
    main()
