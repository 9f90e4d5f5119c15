"""What the instance page shows beside prompt and prediction: the question by itself, its depth, the text scored."""

from __future__ import annotations

from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator

from helm_longctx.core.metric import scored_record


class InstanceFacts(Annotator):
    """Facts of the instance, for people; no score depends on them."""

    name = "instance"

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """Never raises: that would end the run."""
        extra = request_state.instance.extra_data or {}
        facts = {key: extra[key] for key in ("question", "depth", "style", "source", "input_tokens") if key in extra}
        if request_state.result and request_state.result.completions:
            facts["scored_text"] = scored_record(request_state)["prediction"]
        return facts
