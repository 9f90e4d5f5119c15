"""A local server whose answers come from a real language model, and short questions for it."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.packaged import SMOLLM2, find_model
from tests.support.servers import faults
from tests.support.servers.llm import Call, Server
from tests.support.servers.models import Counts, Model
from tests.support.servers.protocols import Reply

ENTRY = "any_jsonl:path={path},metric=contains,length=4k,count_with=longctx/words,style=chat,num_output_tokens={tokens}"
"""The run entry of the questions in a folder."""

TOKENS = 12
"""The limit of an answer."""

WARMTH = 0.2
"""The temperature of answers at the temperature 0: as in many engines, equal requests do not always get equal answers."""

GATHER = 0.2
"""Seconds in which requests are gathered that are answered together."""

WORDS = (
    "apple",
    "river",
    "stone",
    "lamp",
    "tiger",
    "cloud",
    "piano",
    "bread",
    "chair",
    "knife",
    "garden",
    "mirror",
)


class _Asked(NamedTuple):
    text: str
    template: str | None
    temperature: float
    answer: Future[tuple[str, int]]


class RealModel:
    """SmolLM2 135M Instruct, which answers several requests at a time.

    Args:
        seed: seed of the samples.
        tokens: the limit of an answer.

    Raises:
        InputError: the model cannot be fetched.
    """

    def __init__(self, seed: int = 0, tokens: int = TOKENS):
        ignore_broken_torchvision()
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        folder = find_model(SMOLLM2)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, padding_side="left"
        )
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder)
        self._tokens = tokens
        torch.manual_seed(seed)
        torch.set_num_threads(
            1
        )  # on a busy machine, threads wait for each other most of the time
        self._waiting: SimpleQueue[_Asked] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def answer(
        self, text: str, template: str | None, temperature: float
    ) -> tuple[str, int]:
        """Return the answer to a user's message, and the tokens of the prompt.

        Args:
            template: a chat template in place of the model's own.
            temperature: 0 for `WARMTH`.
        """
        asked = _Asked(text, template, temperature or WARMTH, Future())
        self._waiting.put(asked)
        return asked.answer.result()

    def _work(self) -> None:
        while True:
            alike: dict[tuple[str | None, float], list[_Asked]] = defaultdict(list)
            first = self._waiting.get()
            alike[first.template, first.temperature].append(first)
            time.sleep(GATHER)
            while not self._waiting.empty():
                asked = self._waiting.get()
                alike[asked.template, asked.temperature].append(asked)
            for (template, temperature), batch in alike.items():
                self._answer(batch, template, temperature)

    def _answer(
        self, batch: Sequence[_Asked], template: str | None, temperature: float
    ) -> None:
        chats = [[{"role": "user", "content": asked.text}] for asked in batch]
        options = {
            "add_generation_prompt": True,
            "return_tensors": "pt",
            "return_dict": True,
            "padding": True,
        }
        tokens = self._tokenizer.apply_chat_template(
            chats, chat_template=template, **options
        )
        sampling = {
            "do_sample": True,
            "temperature": temperature,
            "top_k": 0,
            "top_p": 1.0,
        }
        generated = self._model.generate(
            **tokens, max_new_tokens=self._tokens, **sampling
        )
        texts = self._tokenizer.batch_decode(
            generated[:, tokens["input_ids"].shape[1] :], skip_special_tokens=True
        )
        counts = tokens["attention_mask"].sum(1).tolist()
        for asked, text, count in zip(batch, texts, counts, strict=True):
            asked.answer.set_result((text, count))


class RealServer(Server):
    """A server with a real model. As vLLM does, it takes a `chat_template`, and it counts tokens as the model does."""

    def __init__(self, model: RealModel, models: Mapping[str, Model]):
        super().__init__(str, faults.none, models)
        self._real = model

    def _answer(self, call: Call) -> Reply:
        text, tokens = self._real.answer(
            call.prompt, call.body.get("chat_template"), call.body["temperature"]
        )
        return Reply(text, counts=Counts(prompt=tokens))


def write_questions(folder: Path, number: int) -> str:
    """Write questions about one of five short facts, and return their run entry."""
    folder.mkdir()
    chance = random.Random(0)
    with (folder / "questions.jsonl").open("w") as file:
        for _ in range(number):
            names = chance.sample(WORDS, 5)
            values = chance.sample(range(10, 100), 5)
            facts = [
                f"The number of the {name} is {value}."
                for name, value in zip(names, values, strict=True)
            ]
            position = chance.randrange(5)
            question = f"What is the number of the {names[position]}? Answer with the number only."
            row = {
                "context": "\n".join(facts),
                "question": question,
                "answers": [str(values[position])],
            }
            file.write(json.dumps(row) + "\n")
    return ENTRY.format(path=folder, tokens=TOKENS)
