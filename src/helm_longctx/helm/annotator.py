"""What a benchmark's judges are to HELM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from helm.benchmark.annotation.annotator import Annotator, AnnotatorSpec
from helm.common.object_spec import get_class_by_name


class JudgeAnnotator(Annotator):
    """An annotator that is made with a run entry's `judge`. It never raises, since that would end the run."""

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Look at the argument before anything is sent.

        Args:
            credentials: of HELM's credentials file; None where they are not known.

        Raises:
            InputError: there cannot be such a judge, or it needs a key and there is none.
        """


def check_annotators(specs: Iterable[AnnotatorSpec], credentials: Mapping[str, Any]) -> None:
    """Look at a run's judges before anything is sent.

    Raises:
        InputError: as `JudgeAnnotator.check`.
    """
    for spec in specs:
        annotator = get_class_by_name(spec.class_name)
        if issubclass(annotator, JudgeAnnotator):
            annotator.check(spec.args["judge"], credentials)
