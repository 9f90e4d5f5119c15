"""Measures log-probabilities of gold answers with SmolLM2: exactness, servers, and which models they tell apart.

    python -m bench.local.likelihood exact --questions 100                 # 200 answers against transformers' own loss
    python -m bench.local.likelihood serve echo --seconds 300              # SmolLM2 behind the protocol of a server
    python -m bench.local.likelihood server http://127.0.0.1:PORT/v1       # a server against the local model
    python -m bench.local.likelihood noise --questions 60                  # weights with noise: likelihood and accuracy

`server --bos` is for a server that puts the model's first token before each text, as llama-cpp-python must: without one
it gives each token the number of its repetition, and is refused.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.servers.real_model import WORDS

NOISE = (0.0, 0.05, 0.1, 0.15, 0.2)
"""Standard deviation of the noise, in that of each matrix of weights."""


def load() -> tuple[Any, Any]:
    """Return SmolLM2 in float32, and its tokenizer."""
    from helm_longctx.environment import ignore_broken_torchvision

    ignore_broken_torchvision()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from helm_longctx.models.local.packaged import SMOLLM2, find_model

    torch.set_num_threads(1)
    folder = find_model(SMOLLM2)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def make_questions(number: int, facts: int = 5) -> list[dict[str, Any]]:
    """Return questions about one of several facts, each with two gold answers."""
    chance = random.Random(0)
    rows = []
    for _ in range(number):
        names = chance.sample(WORDS, facts)
        values = chance.sample(range(100, 1000), facts)
        asked_fact = chance.randrange(facts)
        context = "\n".join(
            f"The number of the {name} is {value}."
            for name, value in zip(names, values, strict=True)
        )
        question = f"What is the number of the {names[asked_fact]}? Answer with the number only."
        rows.append(
            {
                "context": context,
                "question": question,
                "answers": [str(values[asked_fact]), f"It is {values[asked_fact]}"],
            }
        )
    return rows


def requests(rows: list[dict[str, Any]]) -> list[Any]:
    """Return a request for the log-probabilities of each question's answers."""
    from helm.common.request import Request

    from helm_longctx.models.scoring import with_answers

    scoring_requests = []
    for row in rows:
        prompt = f"{row['context']}\n\nQuestion: {row['question']}\nAnswer:"
        asked = Request(
            model="local/smollm2", model_deployment="local/smollm2", prompt=prompt
        )
        scoring_requests.append(
            with_answers(asked, row["answers"], (0, len(row["context"])))
        )
    return scoring_requests


def independent(
    model: Any, tokenizer: Any, text: str, answer: str, double: bool = True
) -> list[float]:
    """Return the log-probabilities of an answer's tokens by one call of the model, with its own attention.

    Args:
        double: whether they are computed from the logits in float64, and not in float32 as transformers' loss is.
    """
    import torch

    encoded = tokenizer(text + answer, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    start = next(
        index
        for index, (_, end) in enumerate(encoded["offset_mapping"])
        if end > len(text)
    )
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
        logits = logits.double() if double else logits
    return torch.log_softmax(logits, -1)[
        range(start - 1, len(ids) - 1), ids[start:]
    ].tolist()


def exact(questions: int, facts: int = 12) -> None:
    """Compare each token, and the loss that transformers computes, with and without the context."""
    import torch

    from helm_longctx.models.local.model import LocalModel
    from helm_longctx.models.local.scoring import make_scorer, respond
    from helm_longctx.models.scoring import scored_texts

    model, tokenizer = load()
    asked = requests(make_questions(questions, facts))
    rows = []
    # A second object has our attention, and the first one stays as transformers makes it.
    local = LocalModel(load()[0])
    worst = {False: 0.0, True: 0.0}
    loss_worst = 0.0
    for request in asked:
        response = respond(tokenizer, make_scorer(local, 64), request, request.prompt)
        for row, (text, answer) in zip(
            response["scored"], scored_texts(request, request.prompt), strict=True
        ):
            for double in worst:
                own = independent(model, tokenizer, text, answer, double)
                apart = [
                    abs(one - other) for one, (_, other) in zip(own, row, strict=True)
                ]
                worst[double] = max(worst[double], *apart)
            ids = tokenizer(text + answer)["input_ids"]
            labels = torch.tensor(
                [[-100] * (len(ids) - len(row)) + ids[len(ids) - len(row) :]]
            )
            with torch.inference_mode():
                loss = model(input_ids=torch.tensor([ids]), labels=labels).loss.item()
            loss_worst = max(
                loss_worst, abs(loss + sum(value for _, value in row) / len(row))
            )
            rows.append(row)
    print(
        f"{len(rows)} texts of {len(rows) // 2} answers: largest difference of an answer's loss {loss_worst:.2e},"
    )
    print(
        f"of a token from one pass in float32 {worst[False]:.2e}, and from its logits in float64 {worst[True]:.2e}"
    )


def serve(way: str, seconds: int) -> None:
    """Serve SmolLM2 in the protocol of a server, computed by one call of the model for each text."""

    import torch
    from tests.support.servers.echoing import EchoServer

    model, tokenizer = load()

    def score(text: str) -> tuple[list[str], list[float]]:
        ids = tokenizer(text)["input_ids"]
        with torch.inference_mode():
            logprobs = torch.log_softmax(
                model(input_ids=torch.tensor([ids])).logits[0], -1
            )
        values = logprobs[range(len(ids) - 1), ids[1:]].tolist()
        return [tokenizer.decode([token]) for token in ids], [0.0, *values]

    with EchoServer(way, score) as server:
        print(server.url, flush=True)
        time.sleep(seconds)


def server(url: str, questions: int, bos: bool) -> None:
    """Compare a server's numbers with the local model's."""
    from helm.common.cache import BlackHoleCacheConfig

    from helm_longctx.models.apis.providers.openai import OpenAIClient
    from helm_longctx.models.scoring import check_scoring, scored_texts

    client = OpenAIClient(
        BlackHoleCacheConfig(), base_url=url, form="completions", model="smollm2"
    )
    check_scoring(client, url)
    model, tokenizer = load()
    worst = 0.0
    texts = 0
    for request in requests(make_questions(questions)):
        result = client.make_request(request)
        assert result.success, result.error
        for output, (text, answer) in zip(
            result.completions, scored_texts(request, request.prompt), strict=True
        ):
            own = independent(
                model, tokenizer, (tokenizer.bos_token if bos else "") + text, answer
            )
            pairs = zip(own, (token.logprob for token in output.tokens), strict=True)
            worst = max(worst, *(abs(one - other) for one, other in pairs))
            texts = texts + 1
    print(f"{client._way}: {texts} texts, largest difference of a token {worst:.2e}")


def noise(questions: int, facts: int, levels: list[float]) -> None:
    """Ask models whose weights have growing noise, and show both scores and how well each separates the models."""
    import torch

    import helm_longctx as lc
    from helm_longctx.results.statistics.power import signal_to_noise

    folder = Path(tempfile.mkdtemp())
    lines = (json.dumps(row) for row in make_questions(questions, facts))
    (folder / "questions.jsonl").write_text("\n".join(lines))
    given = {"path": str(folder), "count_with": "longctx/words"}
    statistics_by_name: dict[str, list[tuple[float, float]]] = {
        "token_logprob": [],
        "likelihood": [],
        "accuracy": [],
    }
    print("noise  log-probability per token      gain of the context       accuracy")
    for level in levels:
        model, tokenizer = load()
        torch.manual_seed(1)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight += level * weight.std() * torch.randn_like(weight)
        results = {}
        for metric, arguments in (
            ("likelihood", {"metric": "likelihood"}),
            ("", {"num_output_tokens": 16, "style": "chat"}),
        ):
            made = lc.evaluate(
                (model, tokenizer), "any_jsonl", "4k", name=f"noise-{level}", suite=f"noise{metric}",
                arguments={**given, **arguments}, output_path=folder / "output", quiet=True, batch_size=8,
            )  # fmt: skip
            results[metric] = next(
                result
                for result in made.results
                if result.model == f"python/noise-{level}"
            )
        statistics_by_name["token_logprob"].append(
            _mean(results["likelihood"], "token_logprob")
        )
        statistics_by_name["likelihood"].append(
            _mean(results["likelihood"], "longctx_score")
        )
        statistics_by_name["accuracy"].append(_mean(results[""], "longctx_score"))
        texts = [
            f"{interval.mean:6.3f} ({interval.low:6.3f} to {interval.high:6.3f})"
            for interval in (
                results["likelihood"].statistics["token_logprob"].interval,
                results["likelihood"].statistics["token_logprob_gain"].interval,
                results[""].interval,
            )
        ]
        print(f"{level:5.2f}  {'  '.join(texts)}", flush=True)
    for name, pairs in statistics_by_name.items():
        signal = signal_to_noise(
            [mean for mean, _ in pairs], [error for _, error in pairs]
        )
        print(
            f"signal to noise of {name}: {signal.ratio if signal else float('nan'):.1f}"
        )


def _mean(result: Any, name: str) -> tuple[float, float]:
    return result.statistics[name].interval.mean, result.statistics[name].error


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("exact", "serve", "server", "noise"))
    parser.add_argument(
        "what",
        nargs="?",
        default="echo",
        help="the way to serve, or the address of a server",
    )
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument(
        "--levels",
        type=float,
        nargs="+",
        default=NOISE,
        help="noise of the models of `noise`",
    )
    parser.add_argument(
        "--facts", type=int, default=1, help="facts of each question of `noise`"
    )
    parser.add_argument("--seconds", type=int, default=300, help="how long to serve")
    parser.add_argument("--bos", action="store_true")
    args = parser.parse_args()
    start = time.process_time()
    if args.part == "exact":
        exact(args.questions)
    elif args.part == "serve":
        serve(args.what, args.seconds)
    elif args.part == "server":
        server(args.what, args.questions, args.bos)
    else:
        noise(args.questions, args.facts, args.levels)
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
