"""Runs the real NeMo Evaluator against local servers: our and HELM's tasks, as chats, as completions and through NVCF.

    python -m bench.runs.eval_factory [--task NAME] [--form chat|completions|nvcf]

Data, answers and judges' replies are fabricated. For each run a line has the time, the score with its standard error in
`results.yml`, and whether `helm-server` shows the same score. The exit status is 1 if a score differs or a standard
error is missing. Each run takes about ten seconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.lv_eval.fabricate import build_lv_eval
from tests.core_evals.evaluating import evaluate, scores_of, shown_scores
from tests.core_evals.medical_rows import EXPECTED, write_rows
from tests.judging.grades import grade
from tests.support.fabricate import build_mirror
from tests.support.servers.llm import Server, serve
from tests.support.servers.nvcf import serve_function

from helm_longctx.models.baselines import lexical

JUDGES = (
    "nvidia/gpt4o-judge",
    "nvdev/llama-3.3-70b-instruct-judge",
    "nvidia/claude-3-7-sonnet-judge",
)
VARIABLES = ("GPT_JUDGE_API_KEY", "LLAMA_JUDGE_API_KEY", "CLAUDE_JUDGE_API_KEY")
FORMS = ("chat", "completions", "nvcf")


class Case(NamedTuple):
    """A task, and the places of its score in the results and on the pages."""

    extra: dict[str, Any]
    result: tuple[str, str]
    page: str
    metric: str = "longctx_score"


FEW = {"num_samples": 4}

CASES = {
    "helmet_recall": Case(
        {"length": "8k", "arguments": FEW}, ("groups", "helmet_recall_8k"), "helmet_8k"
    ),
    "helmet_longqa": Case(
        {"length": "8k", "arguments": FEW}, ("groups", "helmet_longqa_8k"), "helmet_8k"
    ),
    "lv_eval": Case(
        {"length": "16k", "arguments": FEW}, ("groups", "lv_eval_16k"), "lv_eval"
    ),
    **{
        task: Case({}, ("tasks", task), task, metric)
        for task, (_, metric, _) in EXPECTED.items()
        if task != "ehr_sql"
    },
}


def answer(prompt: str) -> str:
    """Return answers of which some are wrong, so that scores vary."""
    known = next(
        (reply for question, reply in _ANSWERS.items() if question in prompt), ""
    )
    return known or (lexical.answer(prompt) if len(prompt) % 3 else "unknown")


_ANSWERS: dict[str, str] = {}
"""The answers to some questions of LV-Eval, whose data no baseline answers well."""


def learn_answers(folder: Path) -> None:
    """Read the answers to every other question of LV-Eval's data."""
    for path in sorted(folder.glob("lveval/*/*.jsonl")):
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        _ANSWERS.update(
            {row["input"]: row["answers"][0] for row in rows[::2] if row["input"]}
        )


@contextmanager
def target_of(form: str, task: str) -> Iterator[dict[str, Any]]:
    """Serve a model, and yield its description in a configuration."""
    with serve(
        lambda prompt: EXPECTED[task].answer if task in EXPECTED else answer(prompt)
    ) as server:
        if form == "nvcf":
            with serve_function(server) as cloud:
                yield {
                    "url": cloud.function,
                    "type": "chat",
                    "adapter_config": {"use_nvcf": True},
                }
        else:
            route = "chat/completions" if form == "chat" else "completions"
            yield {"url": server.openai + route, "type": form}


def name_judges(servers: list[Server]) -> list[dict[str, str]]:
    """Return three judges at servers of their own; their keys are found by their names."""
    return [
        {"name": name, "url": server.openai, "type": "chat"}
        for name, server in zip(JUDGES, servers, strict=True)
    ]


def check(task: str, form: str, data: Path) -> bool:
    """Make a run, print its line, and return whether the results are as they should be."""
    case = CASES[task]
    keys = {name: f"nvapi-{name.lower()}" for name in VARIABLES}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target = stack.enter_context(target_of(form, task))
        servers = [stack.enter_context(serve(grade)) for _ in JUDGES]
        judged = {"judge": name_judges(servers)} if task == "helmet_longqa" else {}
        local = {"data_path": str(data)} if task in ("helmet_longqa", "lv_eval") else {}
        if task in EXPECTED:
            write_rows(task, folder, folder / "out")
        begin = time.monotonic()
        results = evaluate(
            folder, task, target, {**case.extra, **judged, **local}, **keys
        )
        seconds = time.monotonic() - begin
        score = scores_of(results, *case.result)[case.metric]
        is_shown = f"{score['value']:.3f}" in shown_scores(folder, case.page).values()
        used = [{call.key for call in server.calls} for server in servers]
    is_right = is_shown and score["stats"].get("stderr") is not None
    if judged:
        is_right &= used == [{f"Bearer {key}"} for key in keys.values()]
    spread = f"{score['value']:.3f} ± {score['stats'].get('stderr', float('nan')):.3f}"
    print(
        f"{task:14} {form:12} {seconds:5.1f} s  {spread}  {'ok' if is_right else 'WRONG'}",
        flush=True,
    )
    return is_right


def main() -> None:
    """Make the runs that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", choices=CASES)
    parser.add_argument("--form", choices=FORMS)
    args = parser.parse_args()
    tasks = [args.task] if args.task else list(CASES)
    forms = [args.form] if args.form else list(FORMS)
    with tempfile.TemporaryDirectory() as folder:
        mirror = build_mirror(Path(folder) / "mirror")
        words = build_lv_eval(Path(folder) / "words")
        learn_answers(words)
        data = {task: words if task == "lv_eval" else mirror for task in tasks}
        right = [check(task, form, data[task]) for task in tasks for form in forms]
    if not all(right):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
