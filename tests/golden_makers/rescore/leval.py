"""Compare prompts and scores on the data and the published outputs of the official repository.

    python -m tests.golden_makers rescore.leval --official FOLDER

FOLDER: a checkout of OpenLMLab/LEval at cd34b05, as for the golden file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.leval import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.golden_makers.leval import START
from tests.golden_makers.running import parse_folders, run_official
from tests.support.official import digest

CODE = """
from pathlib import Path
from tests.benchmarks.leval.fabricate import DATASETS, MEASURES
from tests.support.official import digest
read = lambda path: [json.loads(line) for line in path.open(encoding="utf-8")]
prompts, scores = {}, []
for dataset in DATASETS:
    path = Path("LEval-data") / dataset.source.path.partition("/")[2]
    if path.is_file():
        made = ask(dataset.name, [row for row in read(path) if row["evaluation"] in MEASURES.values()])
        prompts[dataset.name] = [len(made), digest(map(json.dumps, made))]
    for path in sorted(Path("Predictions").glob(f"*_eval/*/{dataset.name}.pred.jsonl")):
        for row in read(path):
            output = next(row[key] for key in row if "_pred" in key)
            scores.append([dataset.name, row["gt"], output, measure(dataset.name, row["gt"], output)])
sys.stdout.write("GOLDEN" + json.dumps([prompts, scores]))
"""


def requests(task: Task, root: DataRoot) -> Iterator[str]:
    """Yield what is sent for each example of a task."""
    settings = Settings(None)
    variant = task.variant(settings)
    for example in load_examples(task, settings, root):
        messages = [
            dict(message) for message in task.prompt(example, variant.system).messages
        ]
        yield json.dumps([messages, task.output_tokens(settings), variant.temperature])


def main() -> None:
    """Print how many prompts and scores are equal."""
    (official,) = parse_folders("official")
    prompts, scores = run_official(START + CODE, folder=official)
    equal = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "leval").symlink_to(official / "LEval-data")
        root = DataRoot(Path(folder), mirror=True)
        for name, (count, official_digest) in prompts.items():
            if digest(requests(BENCHMARK.task(name), root)) == official_digest:
                equal += count
    print(
        f"{equal} of {sum(count for count, _ in prompts.values())} prompts are equal, in {len(prompts)} files"
    )
    same = sum(score(*row[:3]) == row[3] for row in scores)
    print(f"{same} of {len(scores)} outputs have equal scores")


def score(name: str, answer: str, output: str) -> Any:
    """Return our score of an output in the form of the official code's."""
    scores = BENCHMARK.task(name).score({"prediction": output, "references": [answer]})
    return list(scores.values()) if len(scores) > 1 else next(iter(scores.values()))


if __name__ == "__main__":
    main()
