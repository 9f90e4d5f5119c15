"""HELM's annotator for the similarity of summaries.

Source: caskcsg/longcontext at 88fbeb8, LongBench-Pro/modules/utils.py (`Summary_Max_Semantic_Similarity`).
"""

from collections.abc import Mapping
from typing import Any

from helm_longctx.benchmarks.longbench_pro.tasks import (
    EMBEDDING_BYTES,
    EMBEDDING_MODEL,
    LONGBENCH_PRO,
    normalize,
)
from helm_longctx.environment import require
from helm_longctx.helm.metric import scored_record
from helm_longctx.helm_api import RequestState
from helm_longctx.judging.answer_judge import ModelAnnotator
from helm_longctx.judging.similarity import EmbeddingModel, find_embedding_model
from helm_longctx.tasks.sample import Sample


class SimilarityAnnotator(ModelAnnotator):
    """Measures the similarity of summaries with the best reference summary.

    Args:
        judge: `auto` (the official model if a GPU has room for it, else none), or a sentence-transformers model on the
            hub or in a folder.
    """

    name = "similarity"

    def __init__(self, judge: str):
        super().__init__(
            "similarity is not measured",
            lambda: find_embedding_model(judge, EMBEDDING_MODEL, EMBEDDING_BYTES),
        )

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check that the packages for an embedding model are installed."""
        if judge not in ("auto", "none"):
            require("similarity", f"judge={judge!r}")

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """Return the similarity and the model's name, or nothing without a model or a summary."""
        is_summary = LONGBENCH_PRO.task(
            request_state.instance.sub_split or ""
        ).has_judge
        if is_summary:
            return super().annotate(request_state)
        return {}

    def judge(self, state: RequestState, model: EmbeddingModel) -> dict[str, Any]:
        """Measure the similarity of a summary."""
        record = scored_record(state, Sample.from_json(state.instance.extra_data))
        summary = normalize(record["prediction"])
        answers = list(map(normalize, record["references"]))
        if not (summary and answers):
            return {}
        return {"value": model.best_similarity(answers, summary), "model": model.name}
