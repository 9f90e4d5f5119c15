"""Tests that a local model's reasoning is not scored, although its marks are special tokens of the tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
)

from helm_longctx.models.local.answers import AnswerDecoder
from helm_longctx.models.local.model import Generation, LocalRequest
from helm_longctx.models.objects import OBJECTS
from helm_longctx.tasks.reasoning import special_marks
from tests.models.small_models import END, save_tokenizer
from tests.runner.making import deployed, make_run, means, read
from tests.support.reasoning import REASONING, outputs

RIGHT = "AB12 CD34"
OUTPUTS = [RIGHT, *outputs(RIGHT).values()]
NAME = "python/scripted"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tokenizer that has all marks as special tokens, which decoding drops, and one that no row knows."""
    fast = save_tokenizer(tmp_path_factory.mktemp("tokenizer"))
    words = re.compile(r"[a-z]+|.*[ \n].*", re.DOTALL)
    marks = [
        mark
        for mark in sorted(special_marks())
        if not words.fullmatch(mark) and mark != END
    ]
    fast.add_special_tokens({"additional_special_tokens": [*marks, "<|musing|>"]})
    return fast


class ScriptedModel:
    """A model that writes given texts, in the place of a `LocalModel`."""

    def __init__(self, tokenizer: Any, texts: list[str]):
        self._tokenizer = tokenizer
        self._texts = texts
        self.end_ids = frozenset([tokenizer.eos_token_id])

    def generate(self, job: LocalRequest) -> Generation:
        """Return the text that belongs to the row in the prompt."""
        prompt = self._tokenizer.decode(job.prompt)
        match = re.search(r"Row (\d+) of the list", prompt)
        assert match
        text = self._texts[int(match[1])]
        tokens = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return Generation(
            tokens=[*tokens, self._tokenizer.eos_token_id],
            reused=0,
            seconds=0.1,
            first_seconds=0.1,
            peak_memory=0.1,
        )


def run_texts(
    folder: Path, tokenizer: Any, texts: list[str], style: str = "chat"
) -> Path:
    """Make a run in which a local model writes texts, one for each question."""
    rows = [
        {
            "context": f"Row {number} of the list.",
            "question": "Which?",
            "answers": [RIGHT],
        }
        for number in range(len(texts))
    ]
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    model = ScriptedModel(tokenizer, texts)
    OBJECTS[NAME] = SimpleNamespace(
        load=lambda: model, free=lambda: None, tokenizer=tokenizer, batch=1, path="scripted", commit=None,
        dtype="float32", attn_implementation=None,
    )  # fmt: skip
    spec = ClientSpec(
        "helm_longctx.models.local.objects.TransformersClient", {"deployment": NAME}
    )
    task = f"any_jsonl:path={folder},metric=exact_match,length=8k,count_with=longctx/words,style={style}"
    with deployed(
        ModelDeployment(name=NAME, client_spec=spec, model_name="longctx/lexical")
    ):
        return make_run(
            folder,
            f"{task},model=longctx/lexical,model_deployment={NAME}",
            cache=False,
            exit_on_error=True,
        )


@pytest.fixture(autouse=True)
def no_objects() -> Iterator[None]:
    yield
    OBJECTS.pop(NAME, None)


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_runs(style: str, tokenizer: Any, tmp_path: Path) -> None:
    """Each family's marks give the score of the answer alone, and the reasoning is kept."""
    texts = [text for text in OUTPUTS if style == "chat" or "\n" not in text]
    run = run_texts(tmp_path, tokenizer, texts, style)
    states = read(run, "scenario_state")["request_states"]
    completions = [state["result"]["completions"][0] for state in states]
    wrong = [
        (text, completion["text"])
        for text, completion in zip(texts, completions, strict=True)
        if completion["text"].strip() != RIGHT and "musing" not in text
    ]
    scores = [
        stat["mean"]
        for row in read(run, "per_instance_stats")
        for stat in row["stats"]
        if stat["name"]["name"] == "longctx_score"
    ]
    assert scores == [1.0] * len(texts), wrong
    shares = {name: value for (name, *_), value in means(run).items()}
    assert shares["output_truncated"] == shares["reasoning_suspected"] == 0


def test_open_and_unknown_marks(tokenizer: Any, tmp_path: Path) -> None:
    """Reasoning between special tokens that never ends counts as cut, and unknown special tokens are suspected."""
    texts = [f"[THINK]{RIGHT}, or", f"<|musing|>{REASONING}<|musing|>{RIGHT}"]
    run = run_texts(tmp_path, tokenizer, texts)
    shares = {name: value for (name, *_), value in means(run).items()}
    assert shares["output_truncated"] == shares["thinking_unfinished"] == 0.5
    assert shares["reasoning_suspected"] == 0.5


def test_opening_mark_in_the_prompt(tokenizer: Any) -> None:
    """A chat template can put the opening mark at the end of the prompt."""
    decoder = AnswerDecoder(tokenizer)

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    prompt = encode("What?<think>\n")
    closed = decoder.decode(
        tokenizer, encode(f"{REASONING}</think>\n\n{RIGHT}"), prompt
    )
    assert (closed.text, closed.reasoning, closed.is_open) == (RIGHT, REASONING, False)
    cut = decoder.decode(tokenizer, encode(REASONING), prompt)
    assert (cut.text, cut.is_open) == (REASONING, True)
    plain = decoder.decode(
        tokenizer, encode(RIGHT), encode("What?<think>\n\n</think>\n\n")
    )
    assert (plain.text, plain.reasoning, plain.is_open) == (RIGHT, None, False)


@pytest.mark.parametrize("text", OUTPUTS)
def test_texts_of_engines(text: str, tokenizer: Any) -> None:
    """Engines give texts with all special tokens; the marks stay in them, and other special tokens do not."""
    from helm_longctx.tasks.reasoning import split_reasoning

    decoded = AnswerDecoder(tokenizer).read(tokenizer, f"<s>{text}<turn>", [])
    assert split_reasoning(decoded).answer.strip() == RIGHT
