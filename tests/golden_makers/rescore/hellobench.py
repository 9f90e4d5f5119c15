"""Score HelloBench's judged answers of real models, and compare each score with the official one.

    python -m tests.golden_makers rescore.hellobench --official FOLDER --data FOLDER [--write]

The first folder is a checkout of Quehry/HelloBench at d403282, the second a mirror with its data. Each judged answer is read
as `import` reads it, so that its list of scores is read as a judge's reply, and is scored by the task's scorer and by
results/scripts/compute.py. Words are not counted, which takes an hour. `--write` writes the table of published scores.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import helm_longctx.benchmarks.hellobench as package
from helm_longctx.benchmarks.hellobench.outputs import READER
from helm_longctx.benchmarks.hellobench.tasks import HELLOBENCH
from helm_longctx.data.jsonl import JsonLines
from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.outputs import OutputRun
from helm_longctx.tasks.task import MetricValues, Settings
from tests.golden_makers.running import run_official

MODELS = {
    "gpt4o_0806": "GPT-4o-2024-08-06",
    "mistral_large_api": "Mistral-Large-API",
    "o1_mini": "o1-Mini",
    "claude35": "Claude-3.5-Sonnet",
    "gemini15_pro": "Gemini-1.5-Pro",
    "deepseek_chat_api": "Deepseek-API",
    "yi_large": "Yi-Large",
    "qwen_max": "Qwen-Max",
    "glm4_api": "GLM-4-API",
    "gemma2_27b": "Gemma-2-27B",
    "llama31_70b": "LLaMA-3.1-70B",
    "qwen2_72b": "Qwen-2-72B",
    "internlm25_20b": "InternLM-2.5-20B",
    "yi15_34b": "Yi-1.5-34B",
    "llama31_8b": "LLaMA-3.1-8B",
    "glm4_9b": "GLM-4-9B",
    "qwen2_7b": "Qwen-2-7B",
    "internlm25_7b": "InternLM-2.5-7B",
    "mistral_7b_v02": "Mistral-7B-0.2",
    "phi35_moe": "Phi-3.5-Moe",
    "neo_7b_v01": "MAP-Neo",
    "longwriter_9b": "LongWriter-GLM4-9B",
    "suri_7b": "Suri-I-ORPO",
    "yi15_34b_16k": "Yi-1.5-34B-16K",
    "internlm25_7b_1m": "InternLM-2.5-7B-1M",
    "glm4_9b_1m": "GLM-4-9B-1M",
}
"""The folders of outputs, and the names of their models in the repository's README.md."""

OFFICIAL = """
import contextlib, io, json, os, runpy, sys, types
sys.modules["nltk"] = types.SimpleNamespace(word_tokenize=lambda text: [])
compute = runpy.run_path(sys.argv[1] + "/results/scripts/compute.py")["compute_score_and_length_single"]
os.makedirs("main_exp/m")
results = {}
for path, categories in json.load(sys.stdin):
    def run(text):
        with open("main_exp/m/chat_results.jsonl", "w", encoding="utf-8") as file:
            file.write(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                found = compute("chat", "m", ".", id_category_dict=categories, rescale=False)
            except ZeroDivisionError:
                found = None
        return found
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    results[path] = {"whole": run("".join(lines)), "each": [run(line) for line in lines]}
print("GOLDEN" + json.dumps(results))
"""


def score(run: OutputRun) -> list[MetricValues]:
    """Return our scores of each judged answer."""
    (task,) = parse_entry([HELLOBENCH], run.entry).tasks
    return [
        task.scores({"prediction": "", **output.record, **output.notes})
        for output in run.outputs
    ]


def compare(
    ours: list[MetricValues], theirs: Mapping[str, list[float]]
) -> tuple[int, bool]:
    """Return the number of equal scores, and whether the means are equal."""
    pairs = zip(ours, theirs["each"], strict=True)
    same = sum(
        scores.get("judge_score") == (official[0] / 100 if official else None)
        for scores, official in pairs
    )
    mean = fmean(scores["judge_score"] for scores in ours if "judge_score" in scores)
    return same, abs(100 * mean - theirs["whole"][0]) < 1e-9


def count_equal_prompts(folder: Path, root: DataRoot) -> tuple[int, int]:
    """Return how many of the instructions that were sent equal our prompts, and how many there are."""
    equal = total = 0
    for path in READER.files(folder):
        task = HELLOBENCH.task(path.name.removesuffix("_results.jsonl"))
        prompts = {
            example.id: task.prompt(example).user_turn
            for example in load_examples(task, Settings(None), root)
        }
        for row in JsonLines(path, {"id": str, "instruction": str}):
            equal = equal + (prompts.get(row["id"]) == row["instruction"])
            total = total + 1
    return equal, total


def main() -> None:
    """Compare all judged answers, and write the published scores."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    os.environ[MIRROR] = str(arguments.data.resolve())
    root = DataRoot.find()
    results = arguments.official.resolve() / "results"
    print(
        "{} of {} prompts of answers are equal".format(
            *count_equal_prompts(results / "generations", root)
        )
    )
    runs = {
        path: run
        for path in READER.files(results / "judgements")
        for run in READER.read(path, "")
    }
    jobs = [(str(path), _categories(path, root)) for path in runs]
    official = run_official(OFFICIAL, arguments.official.resolve(), data=jobs)
    same = total = equal = judged = 0
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for path, run in runs.items():
        ours = score(run)
        equal_scores, has_equal_mean = compare(ours, official[str(path)])
        if equal_scores < len(ours) or not has_equal_mean:
            print(
                f"  differs: {path.relative_to(results)}: {len(ours) - equal_scores} scores"
            )
        same = same + equal_scores
        total = total + len(ours)
        equal = equal + has_equal_mean
        judged += sum("judge_score" in our for our in ours)
        means[run.model][path.name.removesuffix("_results.jsonl")] = official[
            str(path)
        ]["whole"][0]
    print(
        f"{same} of {total} judged answers have equal scores ({total - judged} of them none)"
    )
    print(f"{equal} of {len(runs)} files have equal means")
    if arguments.write:
        with (Path(package.__file__).parent / "published.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["model", "task", "score"])
            for model, title in MODELS.items():
                tasks = [
                    task.name for task in HELLOBENCH.tasks if task.name in means[model]
                ]
                writer.writerows(
                    [title, task, f"{means[model][task]:.4f}"] for task in tasks
                )


def _categories(path: Path, root: DataRoot) -> dict[str, str]:
    task = path.name.removesuffix("_results.jsonl")
    file = HELLOBENCH.task(task).sources(None)[0].paths[0]
    return {
        row["id"]: row["category"]
        for row in JsonLines(root / file, {"id": str, "category": str})
    }


if __name__ == "__main__":
    main()
