"""Engines of vLLM and SGLang in the calling process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helm_longctx.models.objects import Prompt


def answer_with(engine: Any) -> tuple[Callable[[list[Prompt]], list[str]], str, Any]:
    """Return a function that answers lists of prompts with an engine, the engine's model, and its tokenizer.

    Args:
        engine: a `vllm.LLM` or a `sglang.Engine`.
    """
    # Both get token ids, because they would add special tokens to a text that has a chat template's.
    if hasattr(engine, "llm_engine"):
        from vllm import SamplingParams

        tokenizer = engine.get_tokenizer()

        def ask_vllm(prompts: list[Prompt]) -> list[str]:
            settings = [
                SamplingParams(temperature=0, max_tokens=each.max_tokens, stop=list(each.stop)) for each in prompts
            ]
            ids = [{"prompt_token_ids": each.encode(tokenizer)} for each in prompts]
            return [each.outputs[0].text for each in engine.generate(ids, settings, use_tqdm=False)]

        return ask_vllm, str(engine.llm_engine.model_config.model), tokenizer
    tokenizer = engine.tokenizer_manager.tokenizer

    def ask_sglang(prompts: list[Prompt]) -> list[str]:
        settings = [{"temperature": 0, "max_new_tokens": each.max_tokens, "stop": list(each.stop)} for each in prompts]
        outputs = engine.generate(input_ids=[each.encode(tokenizer) for each in prompts], sampling_params=settings)
        return [each["text"] for each in outputs]

    return ask_sglang, str(engine.server_args.model_path), tokenizer
