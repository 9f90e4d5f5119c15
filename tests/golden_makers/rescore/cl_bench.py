"""Compare requests on the outputs of a model that a public repository has, with its rows of CL-bench.

    python -m tests.golden_makers rescore.cl_bench --official FOLDER --outputs FOLDER

FOLDER: a checkout of Tencent-Hunyuan/CL-bench at 360d60f, as for the golden file; and one of lisaWangjiaqi/CL-bench, whose
`outputs/*_graded.jsonl` have rows, answers and grades.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from helm_longctx.benchmarks.cl_bench import BENCHMARK
from helm_longctx.benchmarks.cl_bench.tasks import judge_prompt
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.golden_makers.cl_bench import START
from tests.golden_makers.running import parse_folders, run_official
from tests.support.fabricate_words import write

CODE = """
rows = json.load(sys.stdin)
print("GOLDEN" + json.dumps([grade(row, row["model_output"], '{"Overall Score": 1}')[0] for row in rows]))
"""


def main() -> None:
    """Print how many requests to the model and to the judge are equal."""
    official, outputs = parse_folders("official", "outputs")
    paths = sorted((outputs / "outputs").glob("*_graded.jsonl"))
    rows = [json.loads(line) for path in paths for line in path.open(encoding="utf-8")]
    asked = run_official(START + CODE, official, data=rows)
    task = BENCHMARK.task("tasks")
    with tempfile.TemporaryDirectory() as name:
        write(Path(name) / task.paths(None)[0], rows)
        examples = [
            *load_examples(task, Settings(None), DataRoot(Path(name), mirror=True))
        ]
    same = sum(
        example.messages == row["messages"]
        for example, row in zip(examples, rows, strict=True)
    )
    judged = sum(
        [judge_prompt({**example.record, "prediction": row["model_output"]})] == prompts
        for example, row, prompts in zip(examples, rows, asked, strict=True)
    )
    print(
        f"{same} requests and {judged} requests to the judge of {len(rows)} are equal"
    )


if __name__ == "__main__":
    main()
