"""An engine in this process, with the part of vLLM's interface that is used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import transformers


class Engine:
    """An object with vLLM's interface (`vllm.LLM`), which runs a model of transformers."""

    def __init__(self, model: Any, tokenizer: Any):
        self._model, self._tokenizer = model, tokenizer
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(model=model.name_or_path, max_model_len=4096))

    @classmethod
    def load(cls, name: str) -> Engine:
        """Load the model with a name."""
        model = transformers.AutoModelForCausalLM.from_pretrained(name)
        return cls(model, transformers.AutoTokenizer.from_pretrained(name))

    def get_tokenizer(self) -> Any:
        """Return the tokenizer of transformers, as `vllm.LLM.get_tokenizer` does."""
        return self._tokenizer

    def generate(self, prompts: list[dict[str, list[int]]], settings: list[Any], use_tqdm: bool) -> list[Any]:
        """Return an output for each prompt."""
        assert len(prompts) == len(settings)
        assert not use_tqdm
        return [self._answer(*each) for each in zip(prompts, settings, strict=True)]

    def _answer(self, prompt: dict[str, list[int]], setting: Any) -> Any:
        ids = torch.tensor([prompt["prompt_token_ids"]])
        written = self._model.generate(ids, max_new_tokens=setting.max_tokens, do_sample=False, pad_token_id=1)
        text = self._tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
        return SimpleNamespace(outputs=[SimpleNamespace(text=text)])
