"""An engine in this process, with the part of vLLM's interface that is used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import transformers


class Engine:
    """An object with vLLM's interface (`vllm.LLM`), which runs a model of transformers."""

    def __init__(self, model: Any, tokenizer: Any):
        self._model = model
        self._tokenizer = tokenizer
        self.llm_engine = SimpleNamespace(
            model_config=SimpleNamespace(model=model.name_or_path, max_model_len=4096)
        )

    @classmethod
    def load(cls, name: str) -> Engine:
        """Load the model with a name."""
        model = transformers.AutoModelForCausalLM.from_pretrained(name)
        return cls(model, transformers.AutoTokenizer.from_pretrained(name))

    def get_tokenizer(self) -> Any:
        """Return the tokenizer of transformers, as `vllm.LLM.get_tokenizer` does."""
        return self._tokenizer

    def generate(
        self, prompts: list[dict[str, list[int]]], settings: Any, use_tqdm: bool
    ) -> list[Any]:
        """Return an output for each prompt; `settings` are a list, or the same for all."""
        every = settings if isinstance(settings, list) else [settings] * len(prompts)
        assert not use_tqdm
        return [self._answer(*pair) for pair in zip(prompts, every, strict=True)]

    def _answer(self, prompt: dict[str, list[int]], setting: Any) -> Any:
        ids = torch.tensor([prompt["prompt_token_ids"]])
        if getattr(setting, "prompt_logprobs", None) is not None:
            return SimpleNamespace(prompt_logprobs=self._score(ids[0]))
        written = self._model.generate(
            ids, max_new_tokens=setting.max_tokens, do_sample=False, pad_token_id=1
        )
        text = self._tokenizer.decode(
            written[0, ids.shape[1] :], skip_special_tokens=True
        )
        return SimpleNamespace(outputs=[SimpleNamespace(text=text)])

    def _score(self, ids: Any) -> list[Any]:
        """Return nothing for the first token, and for each other one its log-probability and that of the best one."""
        with torch.inference_mode():
            logprobs = torch.log_softmax(self._model(ids[None]).logits[0], -1)
        rows: list[Any] = [None]
        for row, token in zip(logprobs, ids[1:].tolist(), strict=False):
            names = {int(row.argmax()), token}
            rows.append(
                {name: SimpleNamespace(logprob=float(row[name])) for name in names}
            )
        return rows
