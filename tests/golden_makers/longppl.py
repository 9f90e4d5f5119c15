"""Write longppl.json: what LongPPL's package returns for a short text with a small real model and a random one.

    python -m tests.golden_makers longppl --official FOLDER

FOLDER has the package `longppl` 0.3.0 of the Python package index, with `longppl/longppl.py`. The first call downloads
the real model, `local/smollm2-135m-instruct`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.packaged import SMOLLM2, find_model
from tests.golden_makers.running import find_room, parse_folders, run_official
from tests.support.key_texts import PACKAGED, SMALL, list_cases

CODE = """
import json, sys

from helm_longctx.environment import ignore_broken_torchvision

ignore_broken_torchvision()
import torch

sys.path.insert(0, sys.argv[1])
from longppl.longppl import compute_longppl
from tests.support.key_texts import load_model, make_text

torch.set_num_threads(2)
data = json.load(sys.stdin)
results = []
for case in data["cases"]:
    model, tokenizer = load_model(case, data["folders"])
    rule = case["rule"]
    values = compute_longppl(
        make_text(), model, model, tokenizer, tokenizer,
        trunc_len=rule["short_context"], sliding_window=rule["step"],
        alpha=rule["least_gain"], beta=rule["least_logprob"],
    )
    result = {}
    for name, value in values.items():
        result[name] = None if value is None else float(value)
    results.append(result)
print("GOLDEN" + json.dumps(results))
"""


def main() -> None:
    """Run the package, and write its numbers beside the settings."""
    (official,) = parse_folders("official")
    ignore_broken_torchvision()
    from tests.models.small_models import save_model

    cases = list(list_cases())
    with tempfile.TemporaryDirectory() as small:
        save_model(Path(small))
        folders = {PACKAGED: find_model(SMOLLM2), SMALL: small}
        data = {"cases": cases, "folders": folders}
        results = run_official(CODE, official, data=data)
    golden = []
    for case, result in zip(cases, results, strict=True):
        golden.append({**case, **result})
    path = find_room("models") / "longppl.json"
    path.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
