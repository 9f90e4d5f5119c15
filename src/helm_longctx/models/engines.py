"""Engines of vLLM and SGLang in the calling process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.local.answers import AnswerDecoder
from helm_longctx.models.local.scoring import make_scored_result, respond
from helm_longctx.models.objects import Function, FunctionClient, Prompt, make_prompt
from helm_longctx.models.scoring import ScoreTokens, ScoringRequest


class Engine(NamedTuple):
    """What is needed of an engine.

    Args:
        answer: answers a list of prompts greedily.
        score: returns the log-probabilities of tokens.
        path: the hub name or folder of its model.
    """

    answer: Callable[[list[Prompt]], list[str]]
    score: ScoreTokens
    path: str
    tokenizer: Any
    window: int

    @staticmethod
    def find(engine: Any) -> Engine:
        """Return the parts of a `vllm.LLM` or a `sglang.Engine`."""
        # Both get token ids, because they would add special tokens to a text in which the chat template has put them.
        if hasattr(engine, "llm_engine"):
            return _find_vllm(engine)
        return _find_sglang(engine)


def _find_vllm(engine: Any) -> Engine:
    from vllm import SamplingParams

    tokenizer = engine.get_tokenizer()
    config = engine.llm_engine.model_config

    def answer(prompts: list[Prompt]) -> list[str]:
        settings = [
            SamplingParams(
                temperature=0,
                max_tokens=prompt.max_tokens,
                stop=list(prompt.stop),
                # Marks around reasoning can be special tokens.
                skip_special_tokens=False,
                spaces_between_special_tokens=False,
            )
            for prompt in prompts
        ]
        encoded = []
        for prompt in prompts:
            encoded.append(prompt.encode(tokenizer))
        outputs = engine.generate(
            [{"prompt_token_ids": ids} for ids in encoded], settings, use_tqdm=False
        )
        decoder = AnswerDecoder(tokenizer)
        answers = []
        for output, ids in zip(outputs, encoded, strict=True):
            answers.append(decoder.read(tokenizer, output.outputs[0].text, ids))
        return answers

    def score(texts: Sequence[list[int]], starts: Sequence[int]) -> list[list[float]]:
        settings = SamplingParams(
            temperature=0,
            max_tokens=1,
            prompt_logprobs=0,
        )
        outputs = engine.generate(
            [{"prompt_token_ids": ids} for ids in texts], settings, use_tqdm=False
        )
        # At each position are the text's own token and others that are more likely; at the first one is nothing.
        scores = []
        for ids, start, output in zip(texts, starts, outputs, strict=True):
            tokens = list(zip(ids, output.prompt_logprobs, strict=True))[start:]
            scores.append([likely[token].logprob for token, likely in tokens])
        return scores

    return Engine(
        answer=answer,
        score=score,
        path=str(config.model),
        tokenizer=tokenizer,
        window=config.max_model_len,
    )


def _find_sglang(engine: Any) -> Engine:
    manager = engine.tokenizer_manager

    def answer(prompts: list[Prompt]) -> list[str]:
        settings = [
            {
                "temperature": 0,
                "max_new_tokens": prompt.max_tokens,
                "stop": list(prompt.stop),
                # Marks around reasoning can be special tokens.
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
            }
            for prompt in prompts
        ]
        encoded = []
        for prompt in prompts:
            encoded.append(prompt.encode(manager.tokenizer))
        outputs = engine.generate(input_ids=encoded, sampling_params=settings)
        decoder = AnswerDecoder(manager.tokenizer)
        answers = []
        for output, ids in zip(outputs, encoded, strict=True):
            answers.append(decoder.read(manager.tokenizer, output["text"], ids))
        return answers

    def score(texts: Sequence[list[int]], starts: Sequence[int]) -> list[list[float]]:
        settings = {"temperature": 0, "max_new_tokens": 1}
        asked = {
            "input_ids": list(texts),
            "return_logprob": True,
            "logprob_start_len": 0,
        }
        outputs = engine.generate(sampling_params=settings, **asked)
        rows = []
        for output in outputs:
            rows.append(output["meta_info"]["input_token_logprobs"])
        scores = []
        for start, row in zip(starts, rows, strict=True):
            scores.append([value for value, *_ in row[start:]])
        return scores

    return Engine(
        answer=answer,
        score=score,
        path=str(manager.server_args.model_path),
        tokenizer=manager.tokenizer,
        window=manager.context_len,
    )


class EngineFunction(Function):
    """An engine of the user as a function.

    Args:
        batch: most prompts that the engine gets at once. It schedules them itself.
    """

    def __init__(self, engine: Engine, batch: int):
        super().__init__(engine.answer, batch)
        self.engine = engine


class GivenEngineClient(FunctionClient):
    """HELM's client of an engine of the user. It also gives log-probabilities of given texts."""

    _answer: EngineFunction
    _turn = threading.Lock()

    def _find_engine(self) -> Engine:
        return self._answer.engine

    def score_support(self) -> str:
        """Return why no log-probabilities can be had: empty, because they can."""
        return ""

    def make_request(self, request: Request) -> RequestResult:
        """Answer a request, or return the log-probabilities that it asks for.

        Raises an `InputError` if a chat is scored and the model has no chat template.
        """
        if not isinstance(request, ScoringRequest):
            return super().make_request(request)
        with self._turn:  # an engine answers one thread
            engine = self._find_engine()
            if request.messages is not None and not engine.tokenizer.chat_template:
                raise InputError(
                    f"{engine.path} has no chat template; give style=completion"
                )
            text = make_prompt(request).render(engine.tokenizer)
            return make_scored_result(
                request,
                respond(engine.tokenizer, engine.score, request, text),
                cached=False,
            )


class EngineClient(GivenEngineClient):
    """HELM's client of an engine that runs the weights of a deployment in this process.

    Args:
        pretrained_model_name_or_path, revision, dtype: the weights.
        engine: `vllm` or `sglang`.
        window: the model's window in tokens, or None for the engine's own.
        batch: most prompts that the engine gets at once. It schedules them itself.
        load: further arguments of the engine.
        remote_code: whether the model's code on the hub runs, at the commit.
        facts: what is only kept with runs, such as the step of training.
    """

    def __init__(
        self,
        pretrained_model_name_or_path: str,
        engine: str,
        revision: str | None = None,
        dtype: str | None = None,
        window: int | None = None,
        batch: int = 16,
        load: Mapping[str, Any] | None = None,
        remote_code: bool = False,
        **facts: Any,
    ):
        if engine == "vllm":
            window_argument = "max_model_len"
        else:
            window_argument = "context_length"
        options = {
            "revision": revision,
            "dtype": dtype,
            window_argument: window,
            **(load or {}),
        }
        self._options = {
            name: value for name, value in options.items() if value is not None
        }
        self._options["trust_remote_code"] = remote_code
        # This module imports torch, which a function in the place of a model does not need.
        from helm_longctx.models.local.packaged import find_model

        self._path = find_model(pretrained_model_name_or_path)
        self._engine = engine
        self.concurrency = batch
        self._loaded: Any = None
        self._failure: Exception | None = None
        self._answer = Function(
            lambda prompts: self._find_engine().answer(prompts), batch
        )  # type: ignore[assignment]

    @classmethod
    def takes_sampling(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return nothing: the engine always takes the most likely token."""
        return ()

    def _find_engine(self) -> Engine:
        if (
            self._failure
        ):  # loading takes minutes, so it is not tried again for each question
            raise self._failure
        if self._loaded is None:
            try:
                if self._engine == "vllm":
                    import vllm

                    self._loaded = vllm.LLM(self._path, **self._options)
                else:
                    import sglang

                    self._loaded = sglang.Engine(model_path=self._path, **self._options)
            except Exception as error:
                self._failure = error
                raise
        return Engine.find(self._loaded)

    def close(self) -> None:
        """End the engine and its processes."""
        shutdown = getattr(self._loaded, "shutdown", None)
        if shutdown:
            shutdown()
        self._loaded = None
        gc.collect()
        self._answer.close()
