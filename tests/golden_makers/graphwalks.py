"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers graphwalks --official FOLDER --card FILE --card-2026 FILE

FOLDER: a checkout of NVIDIA-NeMo/Gym at 07d6b0d, of which benchmarks/graphwalks/prepare.py and two functions of
resources_servers/graphwalks/app.py run. The files are the card of the hub data set openai/graphwalks (README.md) before
2026-02-27 and at be6cc6e, whose two blocks of Python run. The requirements are `datasets`, tiktoken and tqdm.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.graphwalks.fabricate import build_graphwalks, records
from tests.golden_makers.running import write_golden


def main() -> None:
    """Run the official code and write its results beside the tests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--card", type=Path, required=True, metavar="FILE")
    parser.add_argument("--card-2026", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    official_f1 = _official_f1(arguments.official)
    card_f1 = _card_f1(arguments.card)
    card_2026_f1 = _card_f1(arguments.card_2026)
    golden = {
        "prompts": _corrected_prompts(arguments.official),
        "f1": [
            official_f1(record["prediction"], record["references"])
            for record in records()
        ],
        "f1_card": [
            card_f1(record["prediction"], record["references"]) for record in records()
        ],
        "f1_card_2026": [
            card_2026_f1(record["prediction"], record["references"])
            for record in records()
        ],
    }
    write_golden("benchmarks/graphwalks", golden, indent=0)


def _official_f1(folder: Path) -> Callable[[str, list[str]], float]:
    tree = ast.parse(
        (folder / "resources_servers/graphwalks/app.py").read_text(encoding="utf-8")
    )
    kept: list[ast.stmt] = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.Assign)
    ]
    names: dict[str, Any] = {}
    exec("import re\nfrom typing import *", names)
    exec(compile(ast.Module(kept, []), "app.py", "exec"), names)

    def f1(output: str, nodes: list[str]) -> float:
        answer, failed = names["_parse_node_list"](output)
        return float(names["_f1_score"](set(answer), set(nodes), failed))

    return f1


def _card_f1(card: Path) -> Callable[[str, list[str]], float]:
    parse, grade = re.findall(
        r"```python\n(.*?)```", card.read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {"re": re}
    exec(parse, names)

    def f1(output: str, nodes: list[str]) -> float:
        answer, failed = names["get_list"](None, output)
        if failed:
            return 0.0
        values: dict[str, Any] = {
            "sampled_set": set(answer),
            "truth_set": set(nodes),
            "failed_to_parse": failed,
        }
        values |= {"n_golden": len(set(nodes)), "n_sampled": len(set(answer))}
        exec(grade, values)
        return float(values["f1"])

    return f1


def _corrected_prompts(folder: Path) -> list[str]:
    """Return hashes of the prompts that `prepare` writes."""
    names: dict[str, Any] = {"__name__": "prepare", "__file__": "prepare.py"}
    exec(
        (folder / "benchmarks/graphwalks/prepare.py").read_text(encoding="utf-8"), names
    )
    with tempfile.TemporaryDirectory() as temporary:
        rows = [
            json.loads(line)
            for line in build_graphwalks(Path(temporary))
            .read_text(encoding="utf-8")
            .splitlines()
        ]
        names |= {
            "load_dataset": lambda name, split: rows,
            "_build_token_counter": lambda name: len,
        }
        path = names["prepare"](output_fpath=Path(temporary) / "rows.jsonl")
        lines = path.read_text(encoding="utf-8").splitlines()
    return [
        digest_prompt(
            json.loads(line)["responses_create_params"]["input"][0]["content"]
        )
        for line in lines
    ]


def digest_prompt(prompt: str) -> str:
    """Return a hash of a prompt."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
