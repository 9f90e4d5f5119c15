"""Compare prompts and scores on the samples and published outputs of the official repository.

    python -m tests.golden_makers rescore.loogle --official FOLDER

FOLDER: a checkout of bigai-nlco/LooGLE at 6734382, as for the golden file.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from helm_longctx.benchmarks.loogle import BENCHMARK
from helm_longctx.benchmarks.loogle.tasks import ROWS, SIMILARITY
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.golden_makers.loogle import START
from tests.golden_makers.running import parse_folders, run_official

CODE = """
from pathlib import Path
read = lambda path: [json.loads(line) for line in path.open(encoding="utf-8")]
prompts_found = {name: ask(name, read(Path(f"LooGLE-testdata/{name}.jsonl"))) for name in prompts}
outputs = []
for path in sorted(Path("Output").glob("*.jsonl")):
    name = next((name for name in prompts if path.name.startswith(f"{name}_") and "reorder" not in path.name), None)
    for row in read(path) if name else []:
        for answer, output in zip(row["output"], row["llm_output"], strict=True):
            try:
                outputs.append([name, answer, output, measure(name, "", answer, output)])
            except RecursionError:
                outputs.append([name, answer, output, None])
print("GOLDEN" + json.dumps([prompts_found, outputs]))
"""


def main() -> None:
    """Print how many prompts and scores are equal."""
    (official,) = parse_folders("official")
    prompts, outputs = run_official(START + CODE, folder=official)
    equal = 0
    with tempfile.TemporaryDirectory() as name:
        root = DataRoot(Path(name), mirror=True)
        for task in map(BENCHMARK.task, ROWS):
            path = Path(name) / task.paths(None)[0]
            path.parent.mkdir(exist_ok=True)
            shutil.copy(official / f"LooGLE-testdata/{task.name}.jsonl", path)
            for example, (prompt, _, answer) in zip(
                load_examples(task, Settings(None), root),
                prompts[task.name],
                strict=True,
            ):
                reference = (
                    answer
                    if isinstance(answer, str)
                    else json.dumps(answer, ensure_ascii=False)
                )
                equal += task.prompt(example).messages[0][
                    "content"
                ] == prompt and example.references == [reference]
    print(f"{equal} of {sum(map(len, prompts.values()))} prompts are equal")
    scored = [output for output in outputs if output[3]]
    all_scores = [
        BENCHMARK.task(t).score({"prediction": o, "references": [a]})
        for t, a, o, _ in scored
    ]
    same = sum(
        [scores[name] for name in SIMILARITY] == row[3]
        for scores, row in zip(all_scores, scored, strict=True)
    )
    print(
        f"{same} of {len(scored)} outputs have equal scores; the official code fails for {len(outputs) - len(scored)}"
    )


if __name__ == "__main__":
    main()
