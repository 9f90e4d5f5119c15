"""Runs HELMET's eval.py, eval_alce.py and scripts/eval_gpt4_*.py with fabricated answers; `formats` starts it.

Reads cases as JSON from the standard input and writes the official files into the folder that is its argument. The
checkout's modules must be on the path, and the working folder must be the mirror.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import transformers

from helm_longctx.environment import ignore_broken_torchvision
from tests.golden_makers.helmet_official import Llama, load_dataset, make_it_fast

JUDGES = {
    "narrativeqa": "eval_gpt4_longqa",
    "infbench_sum": "eval_gpt4_summ",
    "multi_lexsum": "eval_gpt4_summ",
}
"""The scripts that judge, by the start of the data set's name."""


class Model:
    """A model that gives a right answer in one of several forms, or a wrong one."""

    tokenizer = None

    def __init__(self, chat: bool):
        self._template = "user_template" if chat else "prompt_template"
        self._answers: list[str] = []

    def prepare_inputs(
        self, item: dict[str, Any], data: dict[str, Any]
    ) -> dict[str, str]:
        """Return the prompt, and keep the answer for later."""
        answers = item.get("answers")
        if isinstance(answers, list) and answers and isinstance(answers[0], list):
            self._answers.append(", ".join(names[0] for names in answers[:3]))
        else:
            answer = item.get("answer") or "x"
            self._answers.append(answer if isinstance(answer, str) else answer[0])
        return {"prompt": data[self._template].format(**item)}

    def generate_batch(self, inputs: list[dict[str, str]]) -> list[dict[str, Any]]:
        """Return an answer to each prompt."""
        rng = random.Random(len(inputs))
        return [
            {
                "output": self._dress(rng, answer),
                "input_len": len(inputs_of_answer["prompt"]) // 4,
                "output_len": 3,
                "input_text": "",
            }
            for answer, inputs_of_answer in zip(self._answers, inputs, strict=True)
        ]

    @staticmethod
    def _dress(rng: random.Random, answer: str) -> str:
        cited = f"I think {answer} [1][3]. Other thing is so [2]."
        ranked = "[ID: 3] > 1 > 2 Ranking: 1 > 2"
        return rng.choice(
            [
                answer,
                f"Answer: {answer}\nmore",
                cited,
                "no idea",
                f"label: {answer} \n",
                ranked,
            ]
        )


class Judge:
    """A judge that replies in the forms that the scripts ask for; some replies cannot be parsed, and every tenth is missing."""

    def generate_batch(
        self, prompt: list[str], batch_file: str
    ) -> list[dict[str, str] | None]:
        """Return a reply to each question."""
        rng = random.Random(7)
        return [
            None if number == 10 else {"output": self._reply(rng)}
            for number, _ in enumerate(prompt)
        ]

    @staticmethod
    def _reply(rng: random.Random) -> str:
        numbers = {
            name: rng.choice([0, 1, 1, 2])
            for name in ("correctness", "recall", "precision")
        }
        verdict = json.dumps(
            {"fluency": rng.choice([0, 1, 1]), **numbers, "sentence_count": 4}
        )
        return rng.choice([f"Reason. {verdict}"] * 9 + ["no verdict"])


def make_files(case: dict[str, Any], folder: str) -> None:
    """Write the official files of a case."""
    import eval as official
    import eval_alce

    chat = any(
        part in case["dataset"]
        for part in ("alce", "narrativeqa", "infbench", "lexsum")
    )
    fixed = {
        "tag": "v1",
        "popularity_threshold": 3,
        "do_sample": False,
        "generation_max_length": 100,
        "top_p": 1.0,
    }
    fixed |= {
        "generation_min_length": 0,
        "temperature": 0.0,
        "overwrite": True,
        "debug": False,
        "num_workers": 0,
    }
    fixed |= {
        "count_tokens": False,
        "thinking": False,
        "no_cuda": True,
        "stop_newline": False,
    }
    names = {
        "model_name_or_path": "meta-llama/Llama-3.1-8B",
        "output_dir": folder,
        "use_chat_template": chat,
    }
    arguments = SimpleNamespace(**fixed, **names, **case)
    random.seed(case["seed"])
    np.random.seed(case["seed"])
    path = official.run_test(
        arguments, Model(chat), case["dataset"], case["test_files"], case["demo_files"]
    )
    if "alce" in case["dataset"]:
        eval_alce.main(
            ["--f", path, *(["--citations"] if "nocite" not in case["dataset"] else [])]
        )
    for start, script in JUDGES.items():
        if case["dataset"].startswith(start):
            importlib.import_module(script).check_metrics(
                Judge(), path, path.replace(".json", "-gpt4eval_o.json")
            )


def main() -> None:
    """Make the files of all cases."""
    vars(datasets)["load_dataset"] = load_dataset
    transformers.AutoTokenizer = Llama
    ignore_broken_torchvision()
    make_it_fast()
    import eval_alce

    import data  # noqa: F401  # before eval_alce, whose import brings the real tokenizer back

    eval_alce.autoais_model = "the rule below"
    eval_alce._run_nli_autoais = lambda *pair: int(
        hashlib.sha256("|".join(pair).encode()).digest()[0] % 5 < 3
    )
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        for case in json.load(sys.stdin):
            make_files(case, sys.argv[1])


if __name__ == "__main__":
    main()
