"""Tests of `metric=likelihood` and `metric=perplexity` from the run entry to the report."""

from __future__ import annotations

import json
import math
import os
import random
import signal
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import helm_longctx as lc
from helm_longctx.apps.likelihood.sections import likelihood_sections
from helm_longctx.documents.document import Table
from helm_longctx.errors import InputError
from helm_longctx.results.boards import read_suite
from helm_longctx.results.statistics.rare_misses import TOO_FEW
from helm_longctx.tasks.logprobs import KeyTokenRule
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.own_time import LONGEST
from tests.support.programs import start_function
from tests.support.servers.echoing import EchoServer, copying

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm_longctx.models.local import scoring  # noqa: E402
from helm_longctx.models.local.key_tokens import score_text  # noqa: E402
from helm_longctx.models.local.model import LocalModel  # noqa: E402
from helm_longctx.models.local.scoring import make_scorer  # noqa: E402
from tests.models.small_models import save_model  # noqa: E402

QUESTIONS = [
    ("cat", "Olive is a cat.", ["cat", "a cat"]),
    ("key", "The key is 4711.", ["4711"]),
]
WORDS = {"count_with": "longctx/words"}


@pytest.fixture
def questions(tmp_path: Path) -> str:
    """Write two questions, and return their folder."""
    folder = tmp_path / "questions"
    folder.mkdir()
    rows = [
        {"context": text, "question": f"What about the {name}?", "answers": a}
        for name, text, a in QUESTIONS
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(folder)


@pytest.fixture
def model(tmp_path: Path) -> tuple[Any, Any]:
    """Return a small random model and its tokenizer."""
    folder = save_model(tmp_path / "small", positions=8192)
    return (
        transformers.AutoModelForCausalLM.from_pretrained(folder),
        transformers.AutoTokenizer.from_pretrained(folder),
    )


def statistics(result: Any, metric: str) -> dict[str, Any]:
    """Return the statistics of the only task of a board."""
    (board,) = (board for board in result._boards if board.metric == metric)
    (only_result,) = board.tasks
    return only_result


def test_likelihood_of_a_local_model(model: tuple[Any, Any], questions: str) -> None:
    """A run gives what an independent computation gives, beside the accuracy, and `resume` keeps it."""
    arguments = {"path": questions, "metric": "likelihood", **WORDS}
    result = lc.evaluate(model, "any_jsonl", "4k", name="m", arguments=arguments)
    (row,) = result.scores[result.scores.task == "contains"].to_dict("records")
    assert row["metric"] == "likelihood"
    likelihoods = statistics(result, "likelihood").statistics
    best = []
    gains = []
    for prompt in read_prompts(questions):
        whole = max(
            mean_logprob(model, prompt["prompt"], answer)
            for answer in prompt["references"]
        )
        parts = prompt["prompt"].replace(prompt["context"], "")
        bare = max(
            mean_logprob(model, parts, answer) for answer in prompt["references"]
        )
        best.append(whole)
        gains.append(whole - bare)
    assert likelihoods["token_logprob"].interval.mean == pytest.approx(
        fmean(best), abs=1e-5
    )
    assert likelihoods["token_logprob_gain"].interval.mean == pytest.approx(
        fmean(gains), abs=2e-5
    )
    assert row["score"] == pytest.approx(fmean(map(math.exp, best)), abs=1e-5)
    again = lc.evaluate(
        model, "any_jsonl", "4k", name="m", arguments=arguments, resume=True
    )
    assert again.scores.equals(result.scores)


def read_prompts(folder: str) -> list[dict[str, Any]]:
    """Return the official prompts of the questions as completions, with their contexts."""
    from helm_longctx.benchmarks.any_jsonl.prompts import PROMPT

    rows = []
    for name, text, answers in QUESTIONS:
        prompt = PROMPT.render({"context": text, "question": f"What about the {name}?"})
        rows.append(
            {
                "prompt": prompt.text("completion"),
                "context": text,
                "references": answers,
            }
        )
    return rows


def mean_logprob(model: tuple[Any, Any], prompt: str, answer: str) -> float:
    """Return minus transformers' own loss of an answer."""
    loaded, tokenizer = model
    gap = "" if prompt[-1].isspace() else " "
    encoded = tokenizer(f"{prompt}{gap}{answer}", return_offsets_mapping=True)
    ids = encoded["input_ids"]
    start = next(
        n for n, (_, end) in enumerate(encoded["offset_mapping"]) if end > len(prompt)
    )
    labels = torch.tensor([[-100] * start + ids[start:]])
    with torch.inference_mode():
        return -float(loaded(input_ids=torch.tensor([ids]), labels=labels).loss)


def test_accuracy_and_likelihood_stay_apart(
    model: tuple[Any, Any], questions: str, tmp_path: Path
) -> None:
    """Both metrics in one suite are two boards; pages and tables show them, and the report has a page of likelihoods."""
    for arguments in ({"num_output_tokens": 4}, {"metric": "likelihood"}):
        given = {"path": questions, **WORDS, **arguments}
        result = lc.evaluate(
            model, "any_jsonl", "4k", name="m", arguments=given, suite="both"
        )
    boards = read_suite(Path("benchmark_output/runs/both"), BENCHMARKS).boards
    assert sorted(board.metric for board in boards) == ["", "likelihood"]
    assert (
        len({board.name for board in boards})
        == len({board.file_name for board in boards})
        == 2
    )
    page = result.report()
    assert page.is_file()
    pages = [path.read_text() for path in page.parent.glob("*.html")]
    (likelihoods,) = [text for text in pages if "What does the context give?" in text]
    # A few questions say nothing about rare misses.
    assert TOO_FEW in likelihoods
    assert "Below −5 nats" in likelihoods or "Below -5 nats" in likelihoods


def test_perplexity_by_position(model: tuple[Any, Any], tmp_path: Path) -> None:
    """The perplexity of a text is transformers' own, its last tokens included; the score is a token's probability."""
    folder = tmp_path / "texts"
    folder.mkdir()
    text = "The river runs north of the town, where a king once built a school. " * 300
    (folder / "book.txt").write_text(text)
    tokenizer_folder = str(tmp_path / "small")
    arguments = {"path": str(folder), "count_with": tokenizer_folder}
    result = lc.evaluate(
        model, "ppl", "4k", name="m", num_samples=1, arguments=arguments, suite="loss"
    )
    statistics_ = statistics(result, "perplexity").statistics
    loaded, tokenizer = model
    piece = tokenizer.decode(tokenizer(text)["input_ids"][:4096])
    ids = torch.tensor([tokenizer(piece)["input_ids"]])
    with torch.inference_mode():
        loss = float(loaded(input_ids=ids, labels=ids).loss)
    assert statistics_["token_logprob"].interval.mean == pytest.approx(-loss, abs=1e-4)
    ends = [name for name in statistics_ if name.startswith("token_logprob_to_")]
    assert all(statistics_[name].interval.mean < 0 for name in ends)
    assert len(ends) >= 4
    boards = read_suite(Path("benchmark_output/runs/loss"), BENCHMARKS).boards
    (section,) = likelihood_sections(boards)
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    losses = [row[-1].value for row in table.rows]
    assert losses == pytest.approx([-statistics_[name].interval.mean for name in ends])
    rows = result.scores[result.scores.task == "text"]
    scores = rows.set_index("metric").score
    assert scores["perplexity"] == pytest.approx(math.exp(loss), rel=1e-3)
    assert scores["token probability"] == pytest.approx(math.exp(-loss), rel=1e-3)
    assert not result.scores.reason.str.contains("empty").any()
    assert "perplexity" in str(result)


def test_longppl_weighs_each_key_token_alike(
    model: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LongPPL of two texts is that of all their key tokens together, in every place that shows it."""
    # A random model has no key tokens by the usual bounds.
    rule = KeyTokenRule(
        short_context=1000, step=1000, least_gain=0.5, least_logprob=-9.0
    )
    monkeypatch.setattr(scoring, "LONGPPL_RULE", rule)
    folder = tmp_path / "texts"
    folder.mkdir()
    words = ["river ", "key ", "4711 ", "town\n", "king ", "school "]
    chance = random.Random(5)
    (folder / "mixed.txt").write_text("".join(chance.choices(words, k=4000)))
    (folder / "same.txt").write_text("The river runs north of the town. " * 800)
    arguments = {"path": str(folder), "count_with": str(tmp_path / "small")}
    result = lc.evaluate(
        model,
        "ppl",
        "5000",
        name="m",
        num_samples=2,
        arguments={**arguments, "metric": "longppl"},
        suite="keys",
    )
    loaded, tokenizer = model
    texts = []
    for file in sorted(folder.iterdir()):
        piece = tokenizer.decode(tokenizer(file.read_text())["input_ids"][:5000])
        scorer = make_scorer(LocalModel(loaded), 2048)
        texts.append(score_text(tokenizer, scorer, piece, special=True, rule=rule))
    counts = [text.key_tokens.tokens for text in texts]
    assert counts[0] != counts[1]
    loss = -sum(text.key_tokens.logprob for text in texts) / sum(counts)
    rows = result.scores[result.scores.task == "text"].set_index("metric")
    assert rows.score["LongPPL"] == pytest.approx(math.exp(loss), rel=1e-3)
    assert rows.low["LongPPL"] < rows.score["LongPPL"] < rows.high["LongPPL"]
    assert "LongPPL" in str(result)
    boards = read_suite(Path("benchmark_output/runs/keys"), BENCHMARKS).boards
    (section,) = likelihood_sections(boards)
    tables = [block for block in section.blocks if isinstance(block, Table)]
    (row,) = tables[-1].rows
    assert row[-1].value == pytest.approx(fmean(counts))
    assert row[-2].value == pytest.approx(math.exp(loss), rel=1e-3)


def test_longppl_of_short_texts_is_refused(tmp_path: Path) -> None:
    """A length of which no token has a longer context is refused before a text is read."""
    with pytest.raises(InputError, match=r"length=4k and metric=longppl exclude"):
        lc.evaluate(
            len, "ppl", "4k", arguments={"path": str(tmp_path), "metric": "longppl"}
        )


def test_a_server_gives_likelihoods(questions: str) -> None:
    """A run with a server sends each text once, and its estimate counts them."""
    arguments = {"path": questions, "metric": "likelihood", **WORDS}
    with EchoServer("echo") as server:
        result = lc.evaluate(server.url, "any_jsonl", "4k", arguments=arguments)
        sent = [body["prompt"] for body in server.bodies]
    assert (
        len(sent) == len(set(sent)) + sent.count(sent[0]) - 1
    )  # the probe, and each text
    best = []
    for prompt in read_prompts(questions):
        values = []
        for answer in prompt["references"]:
            tokens, logprobs = copying(f"{prompt['prompt']} {answer}")
            start = len(copying(prompt["prompt"])[0])
            values.append(fmean(logprobs[start:]))
            assert len(tokens) > start
        best.append(max(values))
    assert statistics(result, "likelihood").statistics[
        "token_logprob"
    ].interval.mean == pytest.approx(fmean(best))


@pytest.mark.parametrize(
    "arguments", [{"repeats": 2}, {"retry_cut": "2x"}, {"thinking_tokens": 5}]
)
def test_arguments_without_meaning_are_refused(
    questions: str, arguments: dict[str, Any]
) -> None:
    """Arguments about answers are refused, because the model writes none."""
    given = {"path": questions, "metric": "likelihood", **WORDS, **arguments}
    with pytest.raises(lc.InputError, match="the model writes no answer"):
        lc.evaluate(lambda prompt: "", "any_jsonl", "4k", arguments=given)


def test_a_function_is_refused(questions: str) -> None:
    """A function writes texts, so it gives no log-probabilities."""
    with pytest.raises(
        lc.InputError, match="gives no log-probabilities of given texts"
    ):
        lc.evaluate(
            lambda prompt: "",
            "any_jsonl",
            "4k",
            arguments={"path": questions, "metric": "likelihood", **WORDS},
        )


def _score_until_killed(model: str, questions: str, requests: int) -> None:
    """Evaluate a model, note the texts that it scores in a log, and kill this process after so many requests."""
    score = scoring.score_tokens
    left = [requests]

    def note_and_score(local: LocalModel, texts: Any, *rest: Any) -> Any:
        with Path("log").open("a") as log:
            for ids in texts:
                log.write(f"{str(ids).encode().hex()}\n")
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return score(local, texts, *rest)

    scoring.score_tokens = note_and_score
    arguments = {"path": questions, "metric": "likelihood", **WORDS}
    entry = {"path": model, "dtype": "float32", "name": "my/model"}
    lc.evaluate(
        entry, "any_jsonl", "4k", arguments=arguments, parallelism=1, batch_size=1
    )


def test_a_killed_run_goes_on(model: tuple[Any, Any], tmp_path: Path) -> None:
    """A run that is killed in the middle goes on: no answer is scored twice, and the numbers are those of a whole run."""
    folder = tmp_path / "many"
    folder.mkdir()
    rows = [
        {
            "context": f"The key of {name} is {key}.",
            "question": f"What is the key of {name}?",
            "answers": [key],
        }
        for name, key in (
            ("one", "37"),
            ("two", "74"),
            ("three", "111"),
            ("four", "148"),
            ("five", "185"),
        )
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def run(requests: int) -> int:
        """Run a process that is killed in the request after so many, and return its end."""
        program = start_function(
            _score_until_killed,
            str(tmp_path / "small"),
            str(folder),
            requests,
            folder=tmp_path,
            output=tmp_path / "output.txt",
        )
        return program.wait(LONGEST)

    assert run(2) == -signal.SIGKILL
    assert run(99) == 0
    texts = (tmp_path / "log").read_text().split()
    # Each question has a text with the context and one without. Those of the third were not answered when it died.
    assert texts[4:6] == texts[6:8]
    assert len(texts) == 12
    assert len(set(texts)) == 10
    arguments = {"path": str(folder), "metric": "likelihood", **WORDS}
    entry = {"path": str(tmp_path / "small"), "dtype": "float32", "name": "my/model"}
    whole = lc.evaluate(
        entry, "any_jsonl", "4k", arguments=arguments, output_path="whole"
    ).suite
    values = [
        {
            load["name"]["name"]: load["mean"]
            for load in json.loads(path.read_text())
            if "logprob" in load["name"]["name"]
        }
        for suite in (tmp_path / "benchmark_output", whole)
        for path in suite.rglob("stats.json")
    ]
    assert values[0] == values[1] != {}


@pytest.mark.long
def test_200_answers_of_a_real_model() -> None:
    """The losses of 200 answers of SmolLM2, with and without the context, are transformers' own to 1e-5."""
    from helm.common.request import Request

    from helm_longctx.environment import ignore_broken_torchvision
    from helm_longctx.errors import InputError
    from helm_longctx.models.local.model import LocalModel
    from helm_longctx.models.local.packaged import SMOLLM2, find_model
    from helm_longctx.models.local.scoring import make_scorer, respond
    from helm_longctx.models.scoring import scored_texts, with_answers

    ignore_broken_torchvision()
    try:
        folder = find_model(SMOLLM2)
    except InputError as error:
        pytest.skip(f"the model cannot be fetched: {error}")
    loaded, tokenizer = (
        kind.from_pretrained(folder)
        for kind in (transformers.AutoModelForCausalLM, transformers.AutoTokenizer)
    )
    ours = LocalModel(transformers.AutoModelForCausalLM.from_pretrained(folder))
    chance = random.Random(0)
    names = ["apple", "river", "stone", "lamp", "tiger", "cloud", "piano", "bread"]
    for _ in range(100):
        numbers = chance.sample(range(100, 1000), len(names))
        context = "\n".join(
            f"The number of the {name} is {n}."
            for name, n in zip(names, numbers, strict=True)
        )
        position = chance.randrange(len(names))
        prompt = f"{context}\n\nQuestion: What is the number of the {names[position]}?\nAnswer:"
        asked = Request(model="m", model_deployment="m", prompt=prompt)
        request = with_answers(
            asked,
            [str(numbers[position]), f"It is {numbers[position]}"],
            (0, len(context)),
        )
        response = respond(tokenizer, make_scorer(ours, 64), request, prompt)
        for row, (text, answer) in zip(
            response["scored"], scored_texts(request, prompt), strict=True
        ):
            mean = fmean(value for _, value in row)
            assert mean == pytest.approx(
                mean_logprob((loaded, tokenizer), text, answer.strip()), abs=1e-5
            )
