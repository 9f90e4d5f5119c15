"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers longgenbench --official FOLDER

FOLDER: a checkout of mozhu621/LongGenBench at 62c0e86. Its scripts inference.py and eval.py, the cell of static.ipynb that
makes the table, and the cell of Openai_batch_api_data_process.ipynb that takes the answers of API models run in a process of
their own, with a model and a judge that give fabricated answers in place of vLLM's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longgenbench.tasks import FILES
from tests.benchmarks.longgenbench.fabricate import REPLIES, outputs, rows
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

OFFICIAL = """
import contextlib, io, json, pathlib, runpy, sys, types, zlib
from unittest.mock import MagicMock
task = json.load(sys.stdin)
official, asked = pathlib.Path(sys.argv[1]), []
sys.modules["torch"] = MagicMock()

class LLM:
    def __init__(self, model, **options):
        self.judges = "Meta-Llama-3.1-8B-Instruct" in model
    def generate(self, prompts, parameters):
        asked.extend(prompts)
        texts = [task["replies"][zlib.crc32(prompt.encode()) % len(task["replies"])] for prompt in prompts] \\
            if self.judges else [text.partition(parameters["stop"])[0] for text in task["outputs"]]
        return [types.SimpleNamespace(outputs=[types.SimpleNamespace(text=text)]) for text in texts]

sys.modules["vllm"] = types.SimpleNamespace(LLM=LLM, SamplingParams=lambda **options: options)

def run(script, *arguments):
    sys.argv = [script, *arguments]
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(official / "Evalution" / script))
    found = list(asked)
    asked.clear()
    return found

def cell(notebook, part):
    cells = json.loads((official / notebook).read_text(encoding="utf-8"))["cells"]
    return next(text for text in ("".join(each["source"]) for each in cells) if part in text)

def table(path):
    judge_prompts = run("eval.py", "--data", path, "--csv", "out/accuracy.csv")
    names = {}
    code = cell("Evalution/results/static.ipynb", "def process_directory").rpartition("process_directory(")[0]
    exec(code, names)
    import pandas
    row = pandas.read_csv("out/accuracy.csv", float_precision="round_trip").iloc[-1]
    return {"judge_prompts": judge_prompts, "static": names["analyze_json"](path), "accuracies": list(row.iloc[1:])}

pathlib.Path("out").mkdir()
pathlib.Path("data.json").write_text(json.dumps(task["rows"]), encoding="utf-8")
prompts = run("inference.py", "--model", "x", "--input_file", "data.json", "--output_file", "out/x.json")
whole = table("out/x.json")
code = cell("Dataset/Openai_batch_api_data_process.ipynb", "output.startswith")
code = code.replace("/home/yuhao/THREADING-THE-NEEDLE/Dataset/Dataset_short.json", "data.json")
with contextlib.redirect_stdout(io.StringIO()):
    # The API ends an answer before a stop sequence.
    exec(code, {"outputs": [text.partition("*** finished")[0] for text in task["api_outputs"]]})
pathlib.Path("GPT_4o_16K.json").rename("out/api.json")
print(json.dumps({"prompts": prompts, "local": whole, "api": table("out/api.json")}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    write_golden(
        "benchmarks/longgenbench",
        {str(length): level_results(official, length) for length in FILES},
    )


def level_results(official: Path, length: int) -> dict[str, Any]:
    """Return the results of a level, with digests in place of prompts."""
    texts = {
        "outputs": outputs(length, restart=False),
        "api_outputs": outputs(length, restart=True),
    }
    official_results = run_official(
        OFFICIAL, official, data={"rows": rows(length), "replies": REPLIES, **texts}
    )
    tables = {
        name: {
            **official_results[name],
            "judge_prompts": digest(official_results[name]["judge_prompts"]),
        }
        for name in ("local", "api")
    }
    return {"prompts": digest(official_results["prompts"]), **tables}


if __name__ == "__main__":
    main()
