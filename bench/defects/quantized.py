"""Counts how many requests `gate --logprobs` and the gate by scores need to find that a quantized model is worse.

    python -m bench.defects.quantized [--questions 240] [--read 24] [--seeds 100] [--keep FILE]

The model is SmolLM2 135M (`packaged/smollm2-135m-instruct`) in float32. The candidates have the same weights, rounded
row by row to fewer bits. Both gates see the same short questions about a register. A score is 1 if each token of the
value is the most likely one, which is what greedy decoding writes. For each seed questions are drawn with replacement,
and the gates' own functions decide. The command goes on from what is in FILE.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import torch
from tests.support.servers.real_model import WORDS

from helm_longctx.apps.gate import distributions
from helm_longctx.apps.gate.distributions import TEXTS, Asked, Point, compare
from helm_longctx.apps.gate.divergences import FIRST_LOOKS, decide
from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.objects import TransformersClient, TransformersModel
from helm_longctx.models.local.packaged import SMOLLM2, find_model
from helm_longctx.models.objects import OBJECTS
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import Verdict, decide_drops

DROP = 0.05
MARGIN = 0.05
POWER = 0.8
"""The gates' own margins, in score and in nats, and the wanted share of seeds."""

ENTRIES = 5
"""Lines of a register."""

SIZES = (
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    50,
    75,
    100,
    150,
    200,
    300,
    400,
    600,
    800,
    1200,
    1600,
    2400,
)
"""Numbers of questions that are tried."""


def ask(number: int) -> Asked:
    """Return a question about a register with random words and numbers."""
    chance = Random(number)
    words = chance.sample(WORDS, ENTRIES)
    values = {word: str(chance.randint(100, 999)) for word in words}
    lines = "\n".join(
        f"The code of {word} is {value}." for word, value in values.items()
    )
    word = chance.choice(words)
    return Asked(
        None,
        f"{lines}\n\nQuestion: What is the code of {word}?\nAnswer: The code of {word} is",
        values[word],
        str(number),
    )


def round_weights(model: Any, bits: int) -> Any:
    """Round the weights of all linear layers to a number of bits, each row with a scale of its own; 16 is bfloat16."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            weight = module.weight.data
            if bits == 16:
                module.weight.data = weight.bfloat16().float()
                continue
            scale = weight.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
            module.weight.data = (weight / scale).round() * scale
    return model


def find_by_scores(
    base: Sequence[float], candidate: Sequence[float], count: int, seed: int
) -> Verdict:
    """Return the gate's verdict on scores of drawn questions."""
    drawn = Random(seed).choices(range(len(base)), k=count)
    sides = [[scores[question] for question in drawn] for scores in (candidate, base)]
    drops = decide_drops(
        {"all": [Pairs(sides[0], sides[1], [str(n) for n in range(count)], 1.0)]},
        DROP,
        0.0,
    )
    return drops["all"].verdict


def find_by_distributions(
    points: Sequence[Sequence[Point]], count: int, seed: int
) -> Verdict:
    """Return the verdict of `gate --logprobs` on drawn questions."""
    drawn = Random(seed).choices(points, k=count)
    rows = [
        point._replace(group=str(number))
        for number, points_of_question in enumerate(drawn)
        for point in points_of_question
    ]
    looks = (*(size for size in FIRST_LOOKS if size < count), count)
    return decide(rows, [], MARGIN, looks).verdict


def count_requests(
    find: Callable[[int, int], Verdict], requests_per_question: int, seeds: int
) -> str:
    """Return the fewest requests with which enough seeds call the candidate worse, and how many do."""
    for size in SIZES:
        worse = sum(find(size, seed) is Verdict.WORSE for seed in range(seeds))
        if worse >= POWER * seeds:
            return f"{size * requests_per_question} ({worse})"
    return f"over {SIZES[-1] * requests_per_question} ({worse})"


class Measurements:
    """Scores and points of questions, kept in a file of JSON lines.

    Args:
        path: the file; None keeps nothing.
    """

    def __init__(self, path: Path | None):
        lines = path.read_text().splitlines() if path and path.exists() else []
        self._found: dict[str, Any] = dict(map(json.loads, lines))
        self._path = path

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return what is kept under a name, or measure and keep it."""
        if name not in self._found:
            self._found[name] = measure()
            if self._path:
                with self._path.open("a") as file:
                    file.write(json.dumps([name, self._found[name]]) + "\n")
        return self._found[name]


def measure(
    options: Any, bits: int | None, kept: Measurements, models: Models
) -> tuple[list[float], list[list[Point]]]:
    """Return the scores of all questions, and the points of some of them against the base."""
    asked = [ask(number) for number in range(options.questions)]
    scores = [
        kept.get(f"{bits} score {n}", partial(models.score, bits, question))
        for n, question in enumerate(asked)
    ]
    if bits is None:
        return scores, []
    read = enumerate(asked[: options.read])
    rows = [
        kept.get(f"{bits} points {n}", partial(models.compare, bits, question))
        for n, question in read
    ]
    return scores, [[Point(*point) for point in row] for row in rows]


class Models:
    """The base (None bits) and the candidate that is asked for, each loaded once."""

    def __init__(self) -> None:
        ignore_broken_torchvision()
        torch.set_num_threads(1)
        distributions.ANSWER_TOKENS = 8
        self._loaded: dict[int | None, TransformersModel] = {}

    def load(self, bits: int | None) -> TransformersModel:
        """Return a model."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if bits not in self._loaded:
            folder = find_model(SMOLLM2)
            model: Any = AutoModelForCausalLM.from_pretrained(folder)
            model = round_weights(model.eval(), bits) if bits else model.eval()
            self._loaded = {
                key: model for key, model in self._loaded.items() if key is None
            }
            self._loaded[bits] = TransformersModel(
                model, AutoTokenizer.from_pretrained(folder)
            )
        return self._loaded[bits]

    def score(self, bits: int | None, asked: Asked) -> float:
        """Return whether greedy decoding writes the value."""
        loaded = self.load(bits)
        prompt = loaded.tokenizer(asked.prompt)["input_ids"]
        ids = loaded.tokenizer(f"{asked.prompt} {asked.gold}")["input_ids"]
        with torch.inference_mode():
            best = loaded.model(torch.tensor([ids])).logits[0].argmax(-1).tolist()
        return float(best[len(prompt) - 1 : -1] == ids[len(prompt) :])

    def compare(self, bits: int, asked: Asked) -> list[Point]:
        """Return what `gate --logprobs` compares of a question."""
        names = ("base", "candidate")
        OBJECTS.update(zip(names, (self.load(None), self.load(bits)), strict=True))
        return compare(
            asked,
            [TransformersClient(name).make_request for name in names],
            names,
            TEXTS,
        ).points


def main() -> None:
    """Print a row for each candidate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--questions", type=int, default=240, help="Questions with scores."
    )
    parser.add_argument(
        "--read", type=int, default=24, help="Questions with distributions."
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--bits", default="16,8,6,5,4")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    kept = Measurements(options.keep)
    models = Models()
    base, _ = measure(options, None, kept, models)
    print(
        f"{options.questions} questions; the base has {fmean(base):.0%} right",
        flush=True,
    )
    print(
        "bits   right   divergence   requests until worse (of all seeds) by scores, by distributions; alarms with 8"
    )
    for bits in map(int, options.bits.split(",")):
        right, points = measure(options, bits, kept, models)
        mean = fmean(
            point.divergence
            for points_of_question in points
            for point in points_of_question
        )

        def by_scores(count: int, seed: int, right: list[float] = right) -> Verdict:
            return find_by_scores(base, right, count, seed)

        def by_distributions(
            count: int, seed: int, points: list[list[Point]] = points
        ) -> Verdict:
            return find_by_distributions(points, count, seed)

        scores = count_requests(by_scores, 2, options.seeds)
        tokens = count_requests(by_distributions, TEXTS.count(), options.seeds)
        alarms = sum(
            by_distributions(8, seed) is Verdict.WORSE for seed in range(options.seeds)
        )
        print(
            f"{bits:4}   {fmean(right):5.0%}   {mean:10.4f}   {scores:>16}   {tokens:>16}   {alarms:4}",
            flush=True,
        )


if __name__ == "__main__":
    main()
