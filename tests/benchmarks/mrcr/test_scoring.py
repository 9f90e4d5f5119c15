"""Scores of MRCR beside those of HELM's own metric."""

from __future__ import annotations

from types import SimpleNamespace

from helm.benchmark.metrics.openai_mrcr_metrics import OpenAIMRCRMetric
from helm.benchmark.scenarios.scenario import CORRECT_TAG

from helm_longctx.benchmarks.mrcr.tasks import score
from tests.benchmarks.mrcr.fabricate import records


def test_scores_are_those_of_helm() -> None:
    """The scores equal those by HELM's own metric."""
    for record in records():
        reference = SimpleNamespace(
            output=SimpleNamespace(text=record["answer"]), tags=[CORRECT_TAG]
        )
        extra = {"random_string_to_prepend": record["random_string_to_prepend"]}
        state = SimpleNamespace(
            result=SimpleNamespace(
                completions=[SimpleNamespace(text=record["prediction"])]
            ),
            instance=SimpleNamespace(references=[reference], extra_data=extra),
        )
        (stat,) = OpenAIMRCRMetric().evaluate_generation(None, state, None, "")  # type: ignore[arg-type]
        assert score(record)["score"] == stat.mean
