"""Write golden.json, which has the official code's requests and scores on the fabricated data.

    python -m tests.golden_makers mrcr_v2 --official FOLDER

FOLDER: a checkout of google-deepmind/eval_hub at 67b7fd2. Its eval_hub/mrcr_v2/run_evaluation.py runs in a process of its
own, with a model that gives fabricated answers in place of Google's.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import hashlib, json, os, sys, types
from pathlib import Path
from unittest import mock
from tests.benchmarks.mrcr_v2.fabricate import NEEDLES, SEEDS, build_mrcr_v2, fingerprint, records
from helm_longctx.benchmarks.mrcr_v2.tasks import LENGTHS, file_of
import pandas as pd

asked = []
def generate_content(model, contents, config):
    (prompt,) = contents
    asked.append(fingerprint(prompt, config["temperature"]))
    return types.SimpleNamespace(text=prompt[-40:])
google = mock.MagicMock()
google.genai.Client = lambda api_key: types.SimpleNamespace(models=types.SimpleNamespace(generate_content=generate_content))
google.genai.types.GenerateContentConfig = dict
sys.modules |= {"google": google, "google.genai": google.genai}
sys.path.insert(0, os.path.join(sys.argv[1], "eval_hub", "mrcr_v2"))
import run_evaluation as official
official.print = lambda *texts: None
golden = {"asked": {}}
for seed in SEEDS:
    build_mrcr_v2(Path("data"), seed)
    for needles in NEEDLES:
        asked.clear()
        official.INPUT_PATH = os.path.join("data", file_of(needles, LENGTHS["8k"]).path)
        official.main()
        golden["asked"][f"{needles} {seed}"] = list(asked)
golden["scores"] = [official.mrcr_v2_metric(record["prediction"], record["answer"]) for record in records()]
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/mrcr_v2", run_official(OFFICIAL, *parse_folders("official"))
    )


if __name__ == "__main__":
    main()
