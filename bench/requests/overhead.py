"""Measures what a long request costs without the model's answer: ours, HELM alone ("stock"), and one tokenization.

    python -m bench.requests.overhead [--tokenizer tokenizer.json] [--repeats 15] [--json FILE]

In each turn, an instance with new text passes through the adapter, HELM's client and its SQLite cache, and a model
answers at once. The ways take turns in one process. The first turn, in which tokenizers are loaded, does not count. The
script prints medians of the seconds for a request. Without `--tokenizer`, it first trains a small byte-level BPE.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.adapter_spec import ADAPT_GENERATION, AdapterSpec
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    ModelMetadata,
    register_model_metadata,
)
from helm.benchmark.scenarios.scenario import Instance
from helm.benchmark.tokenizer_config_registry import (
    TokenizerConfig,
    TokenizerSpec,
    register_tokenizer_config,
)
from helm.benchmark.window_services.tokenizer_service import TokenizerService
from helm.clients.simple_client import SimpleClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.local_context import LocalContext
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.helm.scenario import to_instance
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.task import Example

LENGTHS = ("8k", "32k", "128k", "512k", "1m")
BUDGET = 100
SPARE = 1.02
"""A prompt that fits is shorter than its length by this factor, which leaves room for the template and the answer."""
SYLLABLES = [
    "ba",
    "ter",
    "con",
    "ment",
    "ing",
    "lo",
    "ri",
    "sta",
    "per",
    "der",
    "tion",
    "an",
    "el",
    "is",
    "ver",
    "us",
]
RNG = random.Random(1)
WORDS = ["".join(RNG.choices(SYLLABLES, k=RNG.randint(1, 4))) for _ in range(20_000)]

Way = Callable[[Instance], object]


class InstantClient(SimpleClient):
    """HELM's client and cache with a model that answers at once."""

    def invoke_model(self, raw_request: Any) -> dict[str, Any]:
        return {"completions": ["x"]}


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = (
            Tokenizer.from_file(str(args.tokenizer))
            if args.tokenizer
            else train_tokenizer()
        )
        register(tokenizer, Path(folder))
        seconds = measure(tokenizer, Path(folder), args.repeats)
    figures = {"seconds": seconds, "ratios": ratios(seconds)}
    for part in figures.values():
        for name, value in part.items():
            print(f"{name:42} {value:8.3f}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


def measure(tokenizer: Tokenizer, folder: Path, repeats: int) -> dict[str, float]:
    """Return the median seconds of a request for each way and length."""
    rate = 100_000 / len(tokenizer.encode(text(100_000)).ids)  # characters a token
    chars = {name: int(STANDARD[name] * rate / SPARE) for name in LENGTHS}
    stock = make_way("bench/tokenizer", folder, ADAPT_GENERATION)
    ours = make_way("bench/tokenizer", folder)
    ways: dict[str, tuple[Way, str, int]] = {
        "bare tokenization, 128k": (
            lambda instance: bare(tokenizer, instance),
            "128k",
            chars["128k"],
        ),
        "stock, 128k": (stock, "128k", chars["128k"]),
        "stock, 128k, no tokenizer": (
            make_way("bench/none", folder, ADAPT_GENERATION),
            "128k",
            chars["128k"],
        ),
        "ours, 128k, no tokenizer": (
            make_way("bench/none", folder),
            "128k",
            chars["128k"],
        ),
        "ours, 128k, 3 times over": (ours, "128k", 3 * chars["128k"]),
        **{f"ours, {name}": (ours, name, size) for name, size in chars.items()},
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, (way, length, size) in ways.items():
            made = [
                instance(length, size)
                for _ in range(10 if name.endswith("no tokenizer") else 1)
            ]
            start = time.perf_counter()
            for prepared in made:
                way(prepared)
            if turn:
                times[name].append((time.perf_counter() - start) / len(made))
    return {name: statistics.median(taken) for name, taken in times.items()}


def ratios(seconds: dict[str, float]) -> dict[str, float]:
    """Return the ratios of the figures."""
    ours = {name: seconds[f"ours, {name}"] for name in LENGTHS}
    sizes = {n: STANDARD[n] for n in LENGTHS}
    slope = (ours["128k"] - ours["8k"]) / (sizes["128k"] - sizes["8k"])
    return {
        "ours / bare": ours["128k"] / seconds["bare tokenization, 128k"],
        "stock / ours": seconds["stock, 128k"] / ours["128k"],
        "ours / stock, no tokenizer": seconds["ours, 128k, no tokenizer"]
        / seconds["stock, 128k, no tokenizer"],
        "1m / line through 8k and 128k": ours["1m"]
        / (ours["8k"] + slope * (sizes["1m"] - sizes["8k"])),
        "3 times over / fits": seconds["ours, 128k, 3 times over"] / ours["128k"],
    }


def text(size: int) -> str:
    """Return new text with this number of characters."""
    return " ".join(RNG.choices(WORDS, k=size // 5))[:size]


def instance(length: str, size: int) -> Instance:
    """Return a question with a context of this number of characters."""
    task = HELMET.task("nq")
    settings = parse_entry([HELMET], f"helmet_recall:length={length}").settings
    fields = {**dict.fromkeys(task.template.names, "when?"), CONTEXT: text(size)}
    return to_instance(
        HELMET, task, settings, Example("1", fields, ["x"], "generated"), BUDGET
    )


def bare(tokenizer: Tokenizer, instance: Instance) -> list[int]:
    """Tokenize a text once, as fast as the library can."""
    ids: list[int] = tokenizer.encode_batch_fast([instance.input.text])[0].ids
    return ids


def make_way(deployment: str, folder: Path, method: str = "longctx") -> Way:
    """Return a function that gets the answer to an instance, as in a run with only this instance."""
    cache = tempfile.mkdtemp(dir=folder)
    context = LocalContext(cache, SqliteCacheBackendConfig(cache))
    spec = AdapterSpec(
        method=method,
        model="bench/model",
        model_deployment=deployment,
        max_tokens=BUDGET,
        max_train_instances=0,
        num_outputs=1,
        temperature=0.0,
    )
    adapter = AdapterFactory.get_adapter(spec, TokenizerService(context))

    def way(instance: Instance) -> None:
        for state in adapter.adapt([instance], 1):
            assert context.make_request(state.request).success

    return way


def register(tokenizer: Tokenizer, folder: Path) -> None:
    """Register a deployment with the tokenizer and a window, and one without."""
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(
        folder / "tokenizer"
    )
    arguments = {"pretrained_model_name_or_path": str(folder / "tokenizer")}
    kind = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"
    register_tokenizer_config(
        TokenizerConfig("bench/words", TokenizerSpec(kind, arguments), "", "")
    )
    register_model_metadata(
        ModelMetadata("bench/model", "bench", "bench", "", "open", None, [])
    )
    client = ClientSpec("__main__.InstantClient")
    window = 2 * STANDARD["1m"]
    for deployment in (
        ModelDeployment(
            "bench/tokenizer",
            client,
            "bench/model",
            "bench/words",
            max_sequence_length=window,
        ),
        ModelDeployment("bench/none", client, "bench/model"),
    ):
        register_model_deployment(deployment)


def train_tokenizer() -> Tokenizer:
    """Train a byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        [text(200_000)], trainers.BpeTrainer(vocab_size=8000, show_progress=False)
    )
    return tokenizer


if __name__ == "__main__":
    main()
