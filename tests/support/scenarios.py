"""Data for HELM's own long-context scenarios."""

from __future__ import annotations

import json
from pathlib import Path

TOWNS = [
    f"Town {number} lies at a river and has a mayor whose name is Name{number}."
    for number in range(500)
]
"""Of fewer questions than 500 HELM's generator makes no samples, and does not end."""


def question(number: int) -> str:
    """Return a question about the town of this number."""
    return f"Who is the mayor of town {number}?"


def write_ruler(folder: Path) -> None:
    """Write SQuAD and HotpotQA to the place where the scenarios keep them."""
    squad = [
        {
            "context": town,
            "qas": [
                {
                    "question": question(n),
                    "answers": [{"text": f"Name{n}"}],
                    "is_impossible": False,
                }
            ],
        }
        for n, town in enumerate(TOWNS)
    ]
    hotpot = [
        {
            "question": question(n),
            "answer": f"Name{n}",
            "context": [[f"Town {n}", [town]]],
        }
        for n, town in enumerate(TOWNS)
    ]
    for name, data in {
        "squad": {"data": [{"paragraphs": squad}]},
        "hotpotqa": hotpot,
    }.items():
        path = folder / f"benchmark_output/scenarios/ruler_{name}/data/{name}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(data))
