"""A server of SmolLM2 with a prefix cache of real keys and values, and with faults of serving that can be put into it."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.packaged import SMOLLM2, find_model
from tests.support.json_http import ModelServer

TOP = 5
"""Number of the most likely tokens in a reply."""

BLOCK = 16
"""Tokens of a block of the cache."""

GROUP = 32
"""Numbers of the cache that are quantized with one scale, as in llama.cpp's q8_0 and q4_0."""

CHUNK = 64
"""Tokens that are read at once if later ones see quantized keys and values of earlier ones."""


@dataclass(frozen=True)
class Build:
    """How a model is computed.

    Args:
        cache_bits: bits of keys and values beyond `beyond` tokens; 0 for float32.
        rope: factor of the positions of texts with more than `beyond` tokens.
        weight_bits: bits of the weights of all linear layers, with a scale for each row; 0 for float32.
        beyond: tokens.
        is_noisy: whether it computes in bfloat16, and reads each text in chunks of random sizes, so that equal requests
            have other rounding errors, as in a server that joins requests into batches.
    """

    cache_bits: int = 0
    rope: float = 1.0
    weight_bits: int = 0
    beyond: int = 0
    is_noisy: bool = False


class Part(NamedTuple):
    """[first, last) of the tokens that a run has read."""

    run: Run
    first: int
    last: int


class Run(NamedTuple):
    """Tokens that are read after keys and values of other runs.

    Args:
        key: names the run, with all that it has read, and the build.
        past: what stands before its tokens.
        tokens: its own tokens.
        start: position of the first of them.
    """

    key: str
    past: tuple[Part, ...]
    tokens: tuple[int, ...]
    start: int


def make_run(
    build: Build, past: Sequence[Part], tokens: Sequence[int], start: int, salt: int = 0
) -> Run:
    """Return a run. Parts of the past that follow each other in a run are joined."""
    joined: list[Part] = []
    for part in past:
        if (
            joined
            and joined[-1].run.key == part.run.key
            and joined[-1].last == part.first
        ):
            joined[-1] = joined[-1]._replace(last=part.last)
        else:
            joined.append(part)
    about = [
        *([part.run.key, part.first, part.last] for part in joined),
        list(tokens),
        start,
        repr(build),
        salt,
    ]
    return Run(
        hashlib.sha256(json.dumps(about).encode()).hexdigest(),
        tuple(joined),
        tuple(tokens),
        start,
    )


class Replies:
    """What was computed, kept in a file of JSON lines.

    Args:
        path: the file; None keeps nothing.
    """

    def __init__(self, path: Path | None = None):
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.found: dict[str, Any] = dict(map(json.loads, lines))
        self._path = path

    def add(self, name: str, value: Any) -> Any:
        """Keep a value, and return it."""
        self.found[name] = value
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([name, value]) + "\n")
        return value


class Model:
    """SmolLM2 135M, which reads tokens after given keys and values, and writes greedily.

    Args:
        replies: what was computed before.
        memory: most tokens whose keys and values are kept.

    Raises:
        InputError: the model cannot be fetched.
    """

    def __init__(self, replies: Replies | None = None, memory: int = 60_000):
        ignore_broken_torchvision()
        import torch
        from transformers import AutoTokenizer

        torch.set_num_threads(1)
        self.folder = find_model(SMOLLM2)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.folder)
        self.replies = replies or Replies()
        self._memory = memory
        self._loaded: dict[tuple[int, bool], Any] = {}
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def _load(self, build: Build) -> Any:
        """Return the weights of a build."""
        import torch
        from transformers import AutoModelForCausalLM

        key = (build.weight_bits, build.is_noisy)
        if key not in self._loaded:
            dtype = torch.bfloat16 if build.is_noisy else torch.float32
            model: Any = AutoModelForCausalLM.from_pretrained(
                self.folder, dtype=dtype
            ).eval()
            for module in model.modules() if build.weight_bits else ():
                if isinstance(module, torch.nn.Linear):
                    module.weight.data = _quantize(
                        module.weight.data, build.weight_bits, module.weight.shape[-1]
                    )
            self._loaded[key] = model
        return self._loaded[key]

    def read(
        self, build: Build, run: Run, past: Any = None, every: bool = False
    ) -> tuple[Any, Any]:
        """Return the keys and values of a run's tokens, and the logits of the last token, or of every one.

        Args:
            past: keys and values, with the axes [keys and values, layer, head, token, dimension].
        """
        import torch
        from transformers import DynamicCache

        model = self._load(build)
        size = len(run.tokens)
        layers = range(past.shape[1]) if past is not None else ()
        cache = DynamicCache(
            [(past[0, layer][None], past[1, layer][None]) for layer in layers] or None
        )
        before = cache.get_seq_length()
        ends = [*range(CHUNK, size, CHUNK), size] if build.cache_bits else [size]
        if build.is_noisy and size > 2 and not build.cache_bits:
            ends = sorted({*random.sample(range(1, size), 2), size})
        total = run.start + size
        factor = build.rope if total > build.beyond else 1.0
        logits = []
        for first, last in pairwise([0, *ends]):
            positions = torch.arange(run.start + first, run.start + last)[None] * factor
            ids = torch.tensor([run.tokens[first:last]])
            output = model.base_model(
                input_ids=ids,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            )
            hidden = output.last_hidden_state[0]
            logits.append(model.lm_head(hidden if every else hidden[-1:]).float())
            if build.cache_bits and total > build.beyond:
                for layer in cache.layers:
                    for name in ("keys", "values"):
                        numbers = getattr(layer, name)
                        kept_positions = slice(max(before + first, build.beyond), None)
                        numbers[..., kept_positions, :] = _quantize(
                            numbers[..., kept_positions, :], build.cache_bits, GROUP
                        )
        parts = (
            [getattr(layer, name)[0] for layer in cache.layers]
            for name in ("keys", "values")
        )
        stacked = torch.stack([torch.stack(part) for part in parts])
        return stacked[..., before:, :], torch.cat(logits) if every else logits[-1]

    def keys_and_values(self, build: Build, run: Run) -> Any:
        """Return the keys and values of a run's tokens, and of everything before them."""
        import torch

        past = [
            self.keys_and_values(build, part.run)[0][..., part.first : part.last, :]
            for part in run.past
        ]
        before = torch.cat(past, dim=-2) if past else None
        if run.key not in self._kept:
            self._kept[run.key] = self.read(build, run, before)
            while sum(own.shape[-2] for own, _ in self._kept.values()) > self._memory:
                self._kept.popitem(last=False)
        self._kept.move_to_end(run.key)
        own, logits = self._kept[run.key]
        return (
            own,
            logits,
            torch.cat([before, own], dim=-2) if before is not None else own,
        )

    def write(self, build: Build, run: Run, most: int) -> dict[str, Any]:
        """Return the text of a greedy answer, and its tokens as OpenAI's `logprobs.content`."""
        return self.write_all(build, [run], most)[0]

    def write_all(
        self, build: Build, runs: Sequence[Run], most: int
    ) -> list[dict[str, Any]]:
        """Return the answers of several runs, which are written together."""
        import torch

        names = [f"write {most} {run.key}" for run in runs]
        todo = {
            name: run
            for name, run in zip(names, runs, strict=True)
            if name not in self.replies.found
        }
        if todo and most:
            with torch.inference_mode():
                for name, answer in zip(
                    todo, self._write(build, list(todo.values()), most), strict=True
                ):
                    self.replies.add(name, answer)
        return [
            self.replies.found.get(name, {"text": "", "content": []}) for name in names
        ]

    def _write(
        self, build: Build, runs: Sequence[Run], most: int
    ) -> list[dict[str, Any]]:
        import torch
        from torch.nn.functional import pad
        from transformers import DynamicCache

        model = self._load(build)
        states = [self.keys_and_values(build, run)[1:] for run in runs]
        logits = torch.cat([state[0] for state in states])
        pasts = [state[1] for state in states]
        longest = max(past.shape[-2] for past in pasts)
        # Shorter rows have empty places before them, which no token sees.
        past = torch.stack(
            [pad(past, (0, 0, longest - past.shape[-2], 0)) for past in pasts], dim=2
        )
        mask = torch.tensor(
            [[0] * (longest - past.shape[-2]) + [1] * past.shape[-2] for past in pasts]
        )
        cache = DynamicCache(list(zip(past[0], past[1], strict=True)))
        at = torch.tensor([run.start + len(run.tokens) for run in runs])
        factors = torch.tensor(
            [build.rope if end > build.beyond else 1.0 for end in at.tolist()]
        )
        answers: list[list[int]] = [[] for _ in runs]
        contents: list[list[dict[str, Any]]] = [[] for _ in runs]
        ended: set[int] = set()
        for _ in range(most):
            best = torch.log_softmax(logits, -1).topk(TOP)
            for row, (tokens, values) in enumerate(
                zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ):
                if tokens[0] == self.tokenizer.eos_token_id:
                    ended.add(row)
                if row not in ended:
                    pairs = zip(tokens, values, strict=True)
                    tops = [
                        {"token": self.name(token), "logprob": round(value, 6)}
                        for token, value in pairs
                    ]
                    answers[row].append(tokens[0])
                    contents[row].append({**tops[0], "top_logprobs": tops})
            if len(ended) == len(runs):
                break
            mask = pad(mask, (0, 1), value=1)
            output = model.base_model(
                input_ids=best.indices[:, :1],
                position_ids=(at * factors)[:, None],
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
            )
            logits = model.lm_head(output.last_hidden_state[:, 0]).float()
            at = at + 1
        return [
            {"text": self.tokenizer.decode(tokens), "content": content}
            for tokens, content in zip(answers, contents, strict=True)
        ]

    def score(self, build: Build, text: str, salt: int = 0) -> dict[str, Any]:
        """Return a text's tokens with their log-probabilities as in `logprobs` of a completion with `echo`.

        Args:
            salt: number of the repetition, for builds that are noisy.
        """
        import torch

        ids = self.tokenizer(text)["input_ids"]
        run = make_run(build, (), ids, 0, salt)
        name = f"score {run.key}"
        if name in self.replies.found:
            return self.replies.found[name]
        with torch.inference_mode():
            logprobs = torch.log_softmax(self.read(build, run, every=True)[1][:-1], -1)
            own = logprobs[range(len(ids) - 1), ids[1:]].tolist()
            best = logprobs.topk(TOP)
        tops = [
            {
                self.name(token): round(value, 6)
                for token, value in zip(places, values, strict=True)
            }
            for places, values in zip(
                best.indices.tolist(), best.values.tolist(), strict=True
            )
        ]
        answer = {
            "tokens": [self.name(token) for token in ids],
            "token_logprobs": [None, *own],
            "top_logprobs": [None, *tops],
        }
        return self.replies.add(name, answer)

    def name(self, token: int) -> str:
        """Return the text of a token."""
        return str(self.tokenizer.decode([token]))


def _quantize(numbers: Any, bits: int, group: int) -> Any:
    """Round numbers to so many bits, each group of the last axis with a scale of its own."""
    parts = numbers.unflatten(-1, (-1, group))
    scale = parts.abs().amax(-1, keepdim=True).clamp(min=1e-12) / (2 ** (bits - 1) - 1)
    return ((parts / scale).round() * scale).flatten(-2)


FAULTS = ("wrong block", "dropped", "stale")
"""
- wrong block: a hit of only a beginning reads its last block from another prompt;
- dropped: a hit loses its last block, which is neither read nor computed;
- stale: a block that was evicted keeps its key, and has what another prompt wrote there.
"""


class RealCachedServer(ModelServer):
    """Serves a model with a prefix cache of blocks.

    Args:
        model: the model, which several servers can share.
        build: how it is computed.
        fault: one of `FAULTS`; empty for none.
        capacity: blocks of the cache.
        drops_middle: whether the middle half of each long message is left out.
        drops_system: whether system turns are left out.
        worse: the build that gets each fifth request; None for none.
    """

    def __init__(
        self,
        model: Model,
        build: Build | None = None,
        fault: str = "",
        capacity: int = 120,
        drops_middle: bool = False,
        drops_system: bool = False,
        worse: Build | None = None,
    ):
        self.model = model
        self.build = build or Build()
        self.fault = fault
        self.capacity = capacity
        self.drops_middle = drops_middle
        self.drops_system = drops_system
        self.worse = worse
        self.requests = 0
        self._blocks: OrderedDict[int, Part] = OrderedDict()
        self._stale: dict[int, Part] = {}
        self._prompts: list[dict[int, tuple[int, Part]]] = []
        self._lock = threading.Lock()

    def see(
        self, tokens: Sequence[int], build: Build, salt: int = 0
    ) -> tuple[Run, int]:
        """Return the run of a prompt after what is in the cache, and the number of cached tokens; fill the cache."""
        keys = []
        key = hash(build)
        for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
            key = hash((key, *tokens[start : start + BLOCK]))
            keys.append(key)
        known = {**self._stale, **self._blocks}
        most = (len(tokens) - 1) // BLOCK
        hits = next(
            (position for position in range(most) if keys[position] not in known), most
        )
        past = [known[key] for key in keys[:hits]]
        if self.fault == "wrong block" and 2 < hits < most - 1:
            others = (
                prompt[hits - 1]
                for prompt in reversed(self._prompts)
                if hits - 1 in prompt
            )
            past[-1] = next(
                (part for other, part in others if other != keys[hits - 1]), past[-1]
            )
        if self.fault == "dropped" and hits > 2:
            past.pop()
        run = make_run(build, past, tokens[hits * BLOCK :], hits * BLOCK, salt)
        parts = {
            index: self._blocks.get(keys[index]) or self._stale.get(keys[index])
            for index in range(hits)
        }
        for index in range(hits, len(keys)):
            parts[index] = Part(run, (index - hits) * BLOCK, (index - hits + 1) * BLOCK)
        for index, part in parts.items():
            if part is not None:
                self._blocks[keys[index]] = part
                self._blocks.move_to_end(keys[index])
        self._prompts = [
            *self._prompts[-30:],
            {index: (keys[index], part) for index, part in parts.items() if part},
        ]
        self._evict(parts)
        return run, hits * BLOCK

    def _evict(self, parts: dict[int, Part | None]) -> None:
        places = iter(range(3, 10**6))
        while len(self._blocks) > self.capacity:
            evicted, _ = self._blocks.popitem(last=False)
            if self.fault == "stale" and (
                part := parts.get(next(places) % max(len(parts), 1))
            ):
                self._stale[evicted] = part

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a chat, or to a completion whose prompt is scored."""
        with self._lock:
            self.requests += 1
            build = self.worse if self.worse and self.requests % 5 == 0 else self.build
            salt = self.requests if build.is_noisy else 0
            if body.get("echo"):
                logprobs = self.model.score(build, body["prompt"], salt)
                usage = {
                    "prompt_tokens": len(logprobs["tokens"]),
                    "completion_tokens": 0,
                }
                return self.reply(
                    {"text": body["prompt"], "logprobs": logprobs},
                    usage,
                    "text_completion",
                )
            tokens = self._tokens(body)
            is_cached = body.get("cache_prompt", True)
            run, cached = (
                self.see(tokens, build, salt)
                if is_cached
                else (make_run(build, (), tokens, 0, salt), 0)
            )
            written = self.model.write(build, run, body.get("max_tokens", 16))
        counts = {
            "prompt_tokens": len(tokens),
            "completion_tokens": len(written["content"]),
        }
        usage = {**counts, "prompt_tokens_details": {"cached_tokens": cached}}
        if "prompt" in body:
            return self.reply({"text": written["text"]}, usage, "text_completion")
        choice = {"message": {"role": "assistant", "content": written["text"]}}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": written["content"]}
        return self.reply(choice, usage)

    def change(self, messages: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        """Return the messages of a chat as far as the stack in front of the model passes them on."""
        kept = [
            dict(message)
            for message in messages
            if not (self.drops_system and message["role"] == "system")
        ]
        for message in kept:
            quarter = len(message["content"]) // 4
            if self.drops_middle and quarter > 300:
                message["content"] = (
                    message["content"][:quarter] + message["content"][-quarter:]
                )
        return kept

    def _tokens(self, body: dict[str, Any]) -> list[int]:
        """Return the tokens of a prompt, as the stack in front of the model makes them."""
        if "prompt" in body:
            return list(self.model.tokenizer(body["prompt"])["input_ids"])
        messages = self.change(body["messages"])
        template: Any = self.model.tokenizer.apply_chat_template
        return list(
            template(messages, add_generation_prompt=True, return_dict=True)[
                "input_ids"
            ]
        )
