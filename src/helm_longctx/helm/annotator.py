"""The base class of HELM's annotators that judge answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from helm.benchmark.annotation.annotator import Annotator, AnnotatorSpec
from helm.common.object_spec import get_class_by_name


class JudgeAnnotator(Annotator):
    """An annotator with a run entry's argument `judge`.

    It raises only a `NotKeptError`, because an exception ends the run.
    """

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check the argument `judge` before anything is sent, or raise an `InputError`."""


def check_annotators(
    specs: Iterable[AnnotatorSpec],
    credentials: Mapping[str, Any],
) -> None:
    """Check a run's judges before anything is sent, or raise an `InputError`."""
    for spec in specs:
        annotator = get_class_by_name(spec.class_name)
        if issubclass(annotator, JudgeAnnotator):
            annotator.check(spec.args["judge"], credentials)
