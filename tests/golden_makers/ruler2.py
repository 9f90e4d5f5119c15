"""Write golden.json, which has the official samples of fabricated rows, and the official scores of odd outputs.

    python -m tests.golden_makers ruler2 --official FOLDER

FOLDER: a checkout of NVIDIA-NeMo/Gym at 07d6b0d. Its scripts need transformers, tenacity, tqdm, wonderwords, inflect and
editdistance. `datasets` is replaced, so that it has the fabricated rows. The order of HotpotQA's paragraphs, which are a
set in the official code, differs from process to process; here and in the package it is the order of the rows.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from tests.benchmarks.ruler.fabricate import tokenizer
from tests.benchmarks.ruler2.fabricate import (
    CASES,
    hotpotqa_rows,
    letter_cases,
    match_cases,
    mmlu_rows,
)
from tests.golden_makers.running import parse_folders, run_official, write_golden

SAMPLES = """
import contextlib, io, json, runpy, sys, types
from pathlib import Path
from unittest.mock import MagicMock

official, folder = map(Path, sys.argv[1:])
data = json.load(sys.stdin)
sys.path.insert(0, str(official / "benchmarks/ruler2"))
sys.path.insert(0, str(official))
sys.modules["datasets"] = types.SimpleNamespace(load_dataset=lambda name, config: data["rows"][name])
sys.modules["nltk"] = MagicMock()
from benchmarks.ruler2 import prepare
golden = {}
for kind, length, seed, count, tasks in data["cases"]:
    for task in tasks:
        script, arguments = prepare.TASK_TO_ARGS[task]
        sys.argv = [script, "--output_folder", str(folder), "--tokenizer_type", "hf", "--tokenizer_path", str(folder / kind),
                    "--max_seq_length", str(length), "--num_samples", str(count), "--random_seed", str(seed), *arguments]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module("sources." + script, init_globals={"set": dict.fromkeys}, run_name="__main__", alter_sys=True)
        rows = [json.loads(line) for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]
        rows = [prepare._convert_row_to_gym(row, task) for row in rows]
        golden[f"{kind} {length} {seed} {task}"] = [[row["question"], row["expected_answer"]] for row in rows]
print("GOLDEN" + json.dumps(golden))
"""

SCORES = """
import json, sys
from unittest.mock import MagicMock

sys.path.insert(0, sys.argv[1] + "/resources_servers/ruler2")
for name in ("nemo_gym", "nemo_gym.base_resources_server", "nemo_gym.reward_profile"):
    sys.modules[name] = MagicMock()
for name in ("BaseResourcesServerConfig", "BaseRunRequest", "BaseVerifyRequest", "BaseVerifyResponse", "SimpleResourcesServer"):
    setattr(sys.modules["nemo_gym.base_resources_server"], name, type(name, (), {}))
import app
data = json.load(sys.stdin)
matches = [[match(*case) for match in app._MATCH_TYPE_FUNCS.values()] for case in data["matches"]]
print("GOLDEN" + json.dumps({"matches": matches, "letters": [app.extract_mcq_letter(text) for text in data["letters"]]}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    with tempfile.TemporaryDirectory() as name:
        for kind in {kind for kind, *_ in CASES}:
            (Path(name) / kind).mkdir()
            tokenizer(kind).save(str(Path(name) / kind / "tokenizer.json"))
            (Path(name) / kind / "tokenizer_config.json").write_text(
                '{"tokenizer_class": "PreTrainedTokenizerFast"}'
            )
        rows = {"cais/mmlu": mmlu_rows(), "hotpotqa/hotpot_qa": hotpotqa_rows()}
        samples = run_official(
            SAMPLES, official, Path(name), data={"rows": rows, "cases": CASES}
        )
    scores = run_official(
        SCORES, official, data={"matches": match_cases(), "letters": letter_cases()}
    )
    digests = {
        case: [digest_row(*row) for row in rows] for case, rows in samples.items()
    }
    write_golden("benchmarks/ruler2", {"samples": digests, **scores})


def digest_row(prompt: str, answers: str | list[str]) -> str:
    """Return a hash of a sample's prompt and answers. The official answer of a multiple choice is no list."""
    answers = [answers] if isinstance(answers, str) else answers
    return hashlib.sha256(json.dumps([prompt, answers]).encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
