"""Compare inputs and scores on the data of the official repository.

    python -m tests.golden_makers rescore.squality --official FOLDER

FOLDER: a checkout of nyu-mll/SQuALITY at dc08d4f, as for the golden file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from helm_longctx.benchmarks.squality import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.golden_makers.running import parse_folders, run_official
from tests.golden_makers.squality import START

CODE = """
read = lambda path: [json.loads(line) for line in Path(path).open(encoding="utf-8")]
stories = {row["metadata"]["passage_id"]: row for part in ("test", "dev", "train") for row in read(f"data/v1-3/txt/{part}.jsonl")}
scores = []
for row in read("data/human-eval/all-responses.jsonl"):
    for number, by_model in row["questions"].items():
        asked = stories[row["passage_id"] if "passage_id" in row else row["passage-id"]]["questions"][int(number)]
        references = [response["response_text"] for response in asked["responses"]]
        scores += [[references, each["response"], measure(references, each["response"])]
                   for name, each in by_model.items() if name in ("bart", "bart-dpr", "human")]
print("GOLDEN" + json.dumps([join(read("data/v1-3/txt/test.jsonl")), scores]))
"""


def main() -> None:
    """Print how many inputs and scores are equal."""
    (official,) = parse_folders("official")
    inputs, scores = run_official(START + CODE, folder=official)
    (task,) = BENCHMARK.tasks
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "squality").symlink_to(official / "data")
        examples = list(
            load_examples(task, Settings(None), DataRoot(Path(folder), mirror=True))
        )
    equal = sum(
        task.prompt(row).messages[0]["content"] == text
        for row, text in zip(examples, inputs, strict=True)
    )
    print(f"{equal} of {len(inputs)} inputs are equal")
    all_scores = [
        [*task.score({"prediction": output, "references": texts}).values()]
        for texts, output, _ in scores
    ]
    same = sum(
        one == other
        for values, row in zip(all_scores, scores, strict=True)
        for one, other in zip(values, row[2], strict=True)
    )
    print(f"{same} of {3 * len(scores)} scores of {len(scores)} summaries are equal")


if __name__ == "__main__":
    main()
