"""Counts how often `helm-longctx gate` finds a proxy that changes what passes, and how often it fails an equal pair.

python bench/gate.py [SEEDS] [--model FOLDER] [--questions N]
python bench/gate.py --errors

First the whole command is given once for each proxy, against a local server whose answers differ from request to
request. Then the model and the proxy answer the recorded prompts again for each seed (100 without SEEDS), and the
gate's functions decide. With --model, a model in a local folder (safetensors, with its tokenizer) answers N short
questions (60) greedily, and for each seed its answers are drawn with replacement. With --errors, candidates
whose drop is the margin are simulated, and wrong decisions are counted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.deployments import register_server
from tests.support.servers.llm import Answer, serve
from tests.support.servers.models import Model, count_tokens
from tests.support.servers.proxies import CHANGES, SPOILS, NoisyModel, find_value, run_proxy

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.results.gates.answers import AnswerPair, pair_answers
from helm_longctx.results.gates.findings import find_differences
from helm_longctx.results.gates.folder import GateFolder
from helm_longctx.results.gates.gate import ALL, decide
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import Verdict, decide_drops
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.registry import BENCHMARKS

SKILL, NOISE = {0: 0.95, 1500: 0.85}, 0.05
"""The model's share of right answers by tokens of the prompt, and the share of answers that are drawn again."""

INSTANCES = 150

SIMULATED = [f"helmet_recall:task=json_kv,num_samples={INSTANCES},style=chat,length={size}" for size in ("4k", "8k")]
REAL = ["any_jsonl:path=questions,metric=contains,length=4k,count_with=longctx/words,style=chat"]

SHORT_CUT = 160
"""Characters that the proxy keeps that cuts the real model's prompts."""

WORDS = ("apple", "river", "stone", "lamp", "tiger", "cloud", "piano", "bread", "chair", "knife", "garden", "mirror")

DROP = 5
"""Points of `--max-drop`."""


class Reply(NamedTuple):
    """Args: the score of an answer, its text, and the prompt's tokens as the server counts them."""

    score: float
    text: str
    tokens: int


class Question(NamedTuple):
    """Args: the length's label, and the base's and the candidate's reply."""

    length: str
    base: Reply
    candidate: Reply


def main() -> None:
    """Print a line for each proxy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", type=int, nargs="?", default=100)
    parser.add_argument("--model", type=Path, help="Folder of a real model.")
    parser.add_argument("--questions", type=int, default=30, help="Number of questions to the real model.")
    parser.add_argument("--errors", action="store_true", help="Count wrong decisions at the margin.")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    if options.errors:
        print_errors()
        return
    real = RealModel(options.model.resolve()) if options.model else None
    print("proxy               command    no worse  worse  cannot tell  changes of prompts", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if real:
            write_questions(Path("questions"), options.questions)
            # The prompts are short, so a cut must be short, too.
            CHANGES["cuts at 4k"] = lambda text: text[-SHORT_CUT:]
        for kind in CHANGES:
            verdict, prompts = make_gate(kind, real or NoisyModel(SKILL, NOISE, 1), REAL if real else SIMULATED)
            again = draw_answers if real else partial(ask_again, prompts)
            print_counts(kind, verdict, (again(kind, seed) for seed in range(options.seeds)))


def print_errors() -> None:
    """Print how often a candidate whose drop is the margin is called no worse, and how often it is called worse."""
    print("margin  changed  instances  no worse  worse")
    chance = np.random.default_rng(0)
    for margin, more, size in product((0.02, 0.05), (0.0, 0.02, 0.1), (200, 300, 500, 1000, 2000)):
        shares = [more / 2, margin + more / 2, 1 - margin - more]
        drawn = Counter(map(tuple, chance.multinomial(size, shares, 4000).tolist()))
        verdicts: Counter[Verdict] = Counter()
        for (wins, losses, ties), times in drawn.items():
            a, b = [1] * wins + [0] * (losses + ties), [0] * wins + [1] * losses + [0] * ties
            verdicts[decide_drops({"": [Pairs(a, b, range(size), 1.0)]}, margin, 0.8)[""].verdict] += times
        found = [verdicts[each] / 4000 for each in (Verdict.NO_WORSE, Verdict.WORSE)]
        print(f"{margin:6}  {margin + more:7.2f}  {size:9}  {found[0]:8.1%}  {found[1]:5.1%}", flush=True)


class RealModel:
    """A language model that answers greedily, several prompts at a time. Equal prompts get the stored answer."""

    def __init__(self, folder: Path):
        ignore_broken_torchvision()
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder)
        self._answers: dict[str, Future[str]] = {}
        self._waiting: SimpleQueue[str] = SimpleQueue()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, daemon=True).start()

    def __call__(self, prompt: str) -> str:
        """Return the answer to a prompt, with the model's chat template."""
        with self._lock:
            if prompt not in self._answers:
                self._answers[prompt] = Future()
                self._waiting.put(prompt)
        return self._answers[prompt].result()

    def _work(self) -> None:
        while True:
            batch = [self._waiting.get()]
            time.sleep(1)
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            for prompt, answer in zip(batch, self._generate(batch), strict=True):
                self._answers[prompt].set_result(answer)

    def _generate(self, prompts: Sequence[str]) -> list[str]:
        chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
        options = {"add_generation_prompt": True, "return_tensors": "pt", "return_dict": True, "padding": True}
        tokens = self._tokenizer.apply_chat_template(chats, **options)
        found = self._model.generate(**tokens, max_new_tokens=12, do_sample=False)
        return list(self._tokenizer.batch_decode(found[:, tokens["input_ids"].shape[1] :], skip_special_tokens=True))


def write_questions(folder: Path, number: int) -> None:
    """Write questions about one of five short facts."""
    folder.mkdir()
    chance = random.Random(0)
    with (folder / "questions.jsonl").open("w") as file:
        for _ in range(number):
            names, values = chance.sample(WORDS, 5), chance.sample(range(10, 100), 5)
            facts = [f"The number of the {name} is {value}." for name, value in zip(names, values, strict=True)]
            place = chance.randrange(5)
            question = f"What is the number of the {names[place]}? Answer with the number only."
            row = {"context": "\n".join(facts), "question": question, "answers": [str(values[place])]}
            file.write(json.dumps(row) + "\n")


def draw_answers(kind: str, seed: int) -> list[Question]:
    """Draw answers of the last gate of a kind with replacement."""
    folder = GateFolder(Path("benchmark_output"), kind.replace(" ", "-"))
    runs = json.loads(folder.json_path.read_text())["runs"]
    questions = [
        Question("4k", _reply(pair.base, pair.texts[0]), _reply(pair.candidate, pair.texts[1]))
        for pair in pair_answers(folder, [tuple(names) for names in runs], BENCHMARKS)
    ]
    return random.Random(seed).choices(questions, k=2 * INSTANCES)


def _reply(score: InstanceScore, text: str | None) -> Reply:
    assert score.score is not None
    return Reply(score.score, text or "", int(score.values["billed_prompt_tokens"]))


def print_counts(kind: str, verdict: str, draws: Iterable[Sequence[Question]]) -> None:
    """Print how often each verdict is reached, and how often a change of prompts is found."""
    counts: Counter[str] = Counter()
    found = 0
    for questions in draws:
        pairs = [make_pair(number, question) for number, question in enumerate(questions)]
        findings = find_differences(pairs)
        counts[decide(decide_drops(split(questions), DROP / 100, 0.8), findings).name] += 1
        found += any(each.kind in ("cut", "counts") for each in findings)
    numbers = [counts[name] for name in ("NO_WORSE", "WORSE", "UNDECIDED")]
    print(f"{kind:18}  {verdict:9}  {numbers[0]:8}  {numbers[1]:5}  {numbers[2]:11}  {found:18}", flush=True)


def split(questions: Sequence[Question]) -> dict[str, list[Pairs]]:
    """Return the scores of both arms by length, and of all."""
    lengths = list(dict.fromkeys(question.length for question in questions))
    parts = {length: [question for question in questions if question.length == length] for length in lengths}
    pairs = {length: [_pairs(part, 1.0)] for length, part in parts.items()}
    whole = [_pairs(part, 1 / len(parts)) for part in parts.values()]
    return pairs if len(parts) == 1 else {**pairs, ALL: whole}


def _pairs(part: Sequence[Question], weight: float) -> Pairs:
    scores = [[each.candidate.score for each in part], [each.base.score for each in part]]
    return Pairs(scores[0], scores[1], [f"{each.length} {number}" for number, each in enumerate(part)], weight)


def make_pair(number: int, question: Question) -> AnswerPair:
    """Return a question's replies in the form in which the gate reads them."""
    scores = [
        InstanceScore(
            "",
            "",
            "",
            "json_kv",
            None,
            "full",
            f"id{number}",
            0,
            reply.score,
            "",
            None,
            "",
            None,
            "",
            {"billed_prompt_tokens": reply.tokens},
        )
        for reply in (question.base, question.candidate)
    ]
    return AnswerPair(scores[0], scores[1], (question.base.text, question.candidate.text), is_base_first=True)


def ask_again(prompts: Mapping[str, Sequence[str]], kind: str, seed: int) -> list[Question]:
    """Let the model answer the recorded prompts again, with and without the proxy."""
    model, chance = NoisyModel(SKILL, NOISE, seed), random.Random(-seed)
    questions = []
    for length, texts in prompts.items():
        for text in texts:
            changed, right = CHANGES[kind](text), find_value(text)
            answers = [model(text), "lost" if chance.random() < SPOILS.get(kind, 0.0) else model(changed)]
            replies = [
                Reply(float(answer == right), answer, count_tokens(prompt))
                for answer, prompt in zip(answers, (text, changed), strict=True)
            ]
            questions.append(Question(length, *replies))
    return questions


def make_gate(kind: str, model: Answer, entries: Sequence[str]) -> tuple[str, dict[str, list[str]]]:
    """Give the whole command with a proxy before the candidate. Return the verdict and the prompts by length."""
    served = {name: Model() for name in ("base", "candidate")}
    with serve(model, models=served) as server, run_proxy(server.address, kind, 1) as other:
        for name, address in (("base", server.address), ("candidate", other)):
            register_server(f"sim/{name}", address)
        suite = kind.replace(" ", "-")
        options = (
            *(f"--entry={entry}" for entry in entries),
            "-m",
            "1000",
            "-n",
            "16",
            f"--max-drop={DROP}",
            "--suite",
            suite,
        )
        call("gate", "sim/base", "sim/candidate", *options)
        # Each prompt has its own text, and those of the shorter length come first.
        texts = list(dict.fromkeys(each.prompt for each in server.calls if each.body["model"] == "base"))
    result = json.loads(Path(f"benchmark_output/gates/{suite}/gate.json").read_text())
    texts = sorted(texts, key=len)
    return result["verdict"], {"4k": texts[:INSTANCES], "8k": texts[INSTANCES:]}


def call(*arguments: str) -> int:
    """Give a command in this process, and return its exit status."""
    from helm_longctx.cli.main import main as run_command

    sys.argv = ["helm-longctx", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            run_command()
        except SystemExit as error:
            status = int(error.code or 0)
    if status == 2:
        raise RuntimeError(out.getvalue())
    return status


if __name__ == "__main__":
    main()
