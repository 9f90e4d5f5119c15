"""The one adapter for all tasks: an instance becomes one greedy request, in chat or completion form."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance
from helm.benchmark.window_services.tokenizer_service import TokenizerService
from helm.common.request import Request

from helm_longctx.core.style import resolve_style
from helm_longctx.core.truncation import Truncator

METHOD = "longctx"
"""`AdapterSpec.method` with `style=auto`; `longctx_chat` and `longctx_completion` with the others."""


def method_for(style: str) -> str:
    """The adapter method that carries a style."""
    return METHOD if style == "auto" else f"{METHOD}_{style}"


class LongContextAdapter(Adapter):
    """Adapts instances of any of our scenarios. A prompt is neither logged nor copied more than its form needs."""

    def __init__(self, adapter_spec: AdapterSpec, tokenizer_service: TokenizerService):
        super().__init__(adapter_spec, tokenizer_service)
        self.style = resolve_style(adapter_spec.method.removeprefix(METHOD).lstrip("_"), adapter_spec.model_deployment)
        self.truncator = Truncator.for_deployment(adapter_spec.model_deployment)

    def adapt(self, instances: list[Instance], parallelism: int) -> list[RequestState]:
        """One request an instance for each trial, in order; prompts are tokenized outside the GIL, in parallel."""
        evaluated = [instance for instance in instances if instance.split in EVAL_SPLITS]
        with ThreadPoolExecutor(max(1, min(parallelism, os.cpu_count() or 1))) as pool:
            states = list(pool.map(self._adapt, evaluated))
        trials = range(1, self.adapter_spec.num_trials)
        return states + [replace(s, request=replace(s.request, random=str(i))) for i in trials for s in states]

    def _adapt(self, instance: Instance) -> RequestState:
        spec, extra = self.adapter_spec, instance.extra_data or {}
        # A run expander that raises the spec's budget raises each task's by as much; one that lowers it is a cap.
        raised = max(0, spec.max_tokens - extra["run_max_tokens"])
        max_tokens = min(extra["max_tokens"] + raised, spec.max_tokens)
        prompt, cut = self.truncator.fit(self._prompt(instance.input.text, extra), extra, max_tokens, self.style)
        request = Request(
            model=spec.model,
            model_deployment=spec.model_deployment,
            prompt=prompt,
            num_completions=spec.num_outputs,
            temperature=spec.temperature,
            max_tokens=max_tokens,
            stop_sequences=[*spec.stop_sequences, *(extra["stop"] if self.style == "completion" else [])],
            random=spec.random,
        )
        return RequestState(
            instance=replace(instance, extra_data={**extra, "style": self.style}),
            reference_index=None,
            request_mode=None,
            train_trial_index=0,
            output_mapping=None,
            request=request,
            result=None,
            num_train_instances=0,
            prompt_truncated=cut,
        )

    def _prompt(self, user_turn: str, extra: dict[str, Any]) -> str:
        return user_turn if self.style == "chat" else user_turn + (extra["separator"] + extra["answer_prefix"])


def register_adapter() -> None:
    """Make HELM's adapter factory know our methods; it is a closed chain, so its one function is wrapped, once.

    Raises:
        RuntimeError: this HELM has no such factory any more.
    """
    theirs = getattr(AdapterFactory, "get_adapter", None)
    if theirs is None:
        raise RuntimeError(
            "helm-longctx: HELM's AdapterFactory.get_adapter is gone; this version of HELM is not supported"
        )
    if getattr(theirs, "knows_longctx", False):
        return

    def get_adapter(adapter_spec: AdapterSpec, tokenizer_service: TokenizerService) -> Adapter:
        if adapter_spec.method.split("_")[0] == METHOD:
            return LongContextAdapter(adapter_spec, tokenizer_service)
        adapter: Adapter = theirs(adapter_spec, tokenizer_service)
        return adapter

    get_adapter.knows_longctx = True  # type: ignore[attr-defined]
    AdapterFactory.get_adapter = staticmethod(get_adapter)
