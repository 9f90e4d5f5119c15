"""Counts how often `helm-longctx gate` finds a proxy that changes what passes, and how often it fails an equal pair.

python -m bench.defects.proxies [SEEDS] [--real] [--questions N]

First the whole command is given once for each proxy, against a local server whose answers differ from request to
request. Then the model and the proxy answer the recorded prompts again for each seed (100 without SEEDS), and the
gate's functions decide. With --real, the model is SmolLM2 135M (`local/smollm2-135m-instruct`), which samples at a low
temperature. It answers N short questions (60), and for each seed questions are drawn with replacement. Of an unchanged
pair, each question's answers also change sides at random, so that on average the pair is equal.
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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from tests.support.deployments import register_server
from tests.support.scores import make_score
from tests.support.servers.llm import Server, run, serve
from tests.support.servers.models import Model, count_tokens
from tests.support.servers.proxies import (
    PROXIES,
    REAL_PROXIES,
    NoisyModel,
    Proxy,
    find_value,
    run_proxy,
)
from tests.support.servers.real_model import RealModel, RealServer, write_questions

from helm_longctx.apps.gate.answers import AnswerPair, pair_answers
from helm_longctx.apps.gate.findings import find_differences
from helm_longctx.apps.gate.folder import GateFolder
from helm_longctx.apps.gate.gate import ALL, decide
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import decide_drops
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.registry import BENCHMARKS

SKILL = {0: 0.95, 1500: 0.85}
NOISE = 0.05
"""The model's share of right answers by tokens of the prompt, and the share of answers that are drawn again."""

INSTANCES = 150

SIMULATED = [
    f"helmet_recall:task=json_kv,num_samples={INSTANCES},style=chat,length={size}"
    for size in ("4k", "8k")
]
MODELS = {name: Model() for name in ("base", "candidate")}
"""What the servers serve."""

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
    parser.add_argument(
        "--real", action="store_true", help="Ask a small language model."
    )
    parser.add_argument(
        "--questions",
        type=int,
        default=60,
        help="Number of questions to the language model.",
    )
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    print(
        "proxy               command    no worse  worse  cannot tell  changes of prompts",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if options.real:
            count_real(options.seeds, options.questions)
        else:
            count_simulated(options.seeds)


def count_simulated(seeds: int) -> None:
    """Print a line for each proxy in front of the simulated model."""
    for kind, proxy in PROXIES.items():
        with serve(NoisyModel(SKILL, NOISE, 1), models=MODELS) as server:
            verdict, _ = make_gate(kind, proxy, server, SIMULATED)
            # Each prompt has its own text, and those of the shorter length come first.
            texts = sorted({call.prompt for call in server.calls}, key=len)
        prompts = {"4k": texts[:INSTANCES], "8k": texts[INSTANCES:]}
        print_counts(
            kind, verdict, (ask_again(prompts, proxy, seed) for seed in range(seeds))
        )


def count_real(seeds: int, number: int) -> None:
    """Print a line for each proxy in front of the real model."""
    entry = write_questions(Path("questions"), number)
    model = RealModel()
    for kind, proxy in REAL_PROXIES.items():
        with run(RealServer(model, MODELS)) as server:
            verdict, folder = make_gate(kind, proxy, server, [entry])
        questions = read_answers(folder)
        draws = (
            draw_answers(questions, kind == "equal", seed) for seed in range(seeds)
        )
        print_counts(kind, verdict, draws)
        base = fmean(question.base.score for question in questions)
        candidate = fmean(question.candidate.score for question in questions)
        print(
            f"  {base:.0%} of the base's answers and {candidate:.0%} of the candidate's are right",
            flush=True,
        )


def read_answers(folder: GateFolder) -> list[Question]:
    """Read the answers of a gate."""
    runs = json.loads(folder.json_path.read_text())["runs"]
    return [
        Question(
            "4k",
            _reply(pair.base, pair.texts[0]),
            _reply(pair.candidate, pair.texts[1]),
        )
        for pair in pair_answers(folder, [tuple(names) for names in runs], BENCHMARKS)
    ]


def draw_answers(
    questions: Sequence[Question], is_equal: bool, seed: int
) -> list[Question]:
    """Draw questions with replacement.

    Args:
        is_equal: whether the answers change sides at random.
    """
    chance = random.Random(seed)
    drawn = chance.choices(questions, k=2 * INSTANCES)
    return (
        [
            Question(question.length, *chance.sample(question[1:], 2))
            for question in drawn
        ]
        if is_equal
        else drawn
    )


def _reply(score: Score, text: str | None) -> Reply:
    assert score.score is not None
    return Reply(score.score, text or "", int(score.values["billed_prompt_tokens"]))


def print_counts(kind: str, verdict: str, draws: Iterable[Sequence[Question]]) -> None:
    """Print how often each verdict is reached, and how often a change of prompts is found."""
    counts: Counter[str] = Counter()
    prompt_changes = 0
    for questions in draws:
        pairs = [
            make_pair(number, question) for number, question in enumerate(questions)
        ]
        findings = find_differences(pairs)
        counts[
            decide(decide_drops(split(questions), DROP / 100, 0.0), findings).name
        ] += 1
        prompt_changes += any(finding.kind in ("cut", "counts") for finding in findings)
    numbers = [counts[name] for name in ("NO_WORSE", "WORSE", "UNDECIDED")]
    print(
        f"{kind:18}  {verdict:9}  {numbers[0]:8}  {numbers[1]:5}  {numbers[2]:11}  {prompt_changes:18}",
        flush=True,
    )


def split(questions: Sequence[Question]) -> dict[str, list[Pairs]]:
    """Return the scores of both arms by length, and of all."""
    lengths = list(dict.fromkeys(question.length for question in questions))
    parts = {
        length: [question for question in questions if question.length == length]
        for length in lengths
    }
    pairs = {length: [_pairs(part, 1.0)] for length, part in parts.items()}
    whole = [_pairs(part, 1 / len(parts)) for part in parts.values()]
    return pairs if len(parts) == 1 else {**pairs, ALL: whole}


def _pairs(part: Sequence[Question], weight: float) -> Pairs:
    scores = [
        [question.candidate.score for question in part],
        [question.base.score for question in part],
    ]
    return Pairs(
        scores[0],
        scores[1],
        [f"{question.length} {number}" for number, question in enumerate(part)],
        weight,
    )


def make_pair(number: int, question: Question) -> AnswerPair:
    """Return a question's replies in the form in which the gate reads them."""
    scores = [
        make_score(
            reply.score,
            f"id{number}",
            task="json_kv",
            values={"billed_prompt_tokens": reply.tokens},
        )
        for reply in (question.base, question.candidate)
    ]
    return AnswerPair(
        scores[0],
        scores[1],
        (question.base.text, question.candidate.text),
        is_base_first=True,
    )


def ask_again(
    prompts: Mapping[str, Sequence[str]], proxy: Proxy, seed: int
) -> list[Question]:
    """Let the model answer the recorded prompts again, with and without the proxy."""
    model = NoisyModel(SKILL, NOISE, seed)
    chance = random.Random(-seed)
    questions = []
    for length, texts in prompts.items():
        for text in texts:
            changed = proxy.change(text)
            right = find_value(text)
            answers = [
                model(text),
                "lost" if chance.random() < proxy.spoils else model(changed),
            ]
            replies = [
                Reply(float(answer == right), answer, count_tokens(prompt))
                for answer, prompt in zip(answers, (text, changed), strict=True)
            ]
            questions.append(Question(length, *replies))
    return questions


def make_gate(
    kind: str, proxy: Proxy, server: Server, entries: Sequence[str]
) -> tuple[str, GateFolder]:
    """Give the whole command with a proxy before the candidate. Return the verdict and the gate's folder."""
    suite = kind.replace(" ", "-")
    with run_proxy(server.address, proxy, 1) as other:
        for name, address in (("base", server.address), ("candidate", other)):
            register_server(f"sim/{name}", address)
        options = ("-m", "1000", "-n", "16", f"--max-drop={DROP}", "--suite", suite)
        call(
            "gate",
            "sim/base",
            "sim/candidate",
            *(f"--entry={entry}" for entry in entries),
            *options,
        )
    folder = GateFolder(Path("benchmark_output"), suite)
    return json.loads(folder.json_path.read_text())["verdict"], folder


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
