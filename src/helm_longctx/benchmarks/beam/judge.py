"""BEAM's judge as HELM's annotator."""

from dataclasses import replace

from helm_longctx.benchmarks.beam.tasks import BEAM, is_same
from helm_longctx.judging.answer_judge import make_annotator
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.tasks import ScorerInput

_Annotator = make_annotator(*BEAM.tasks)


class RubricAnnotator(_Annotator):  # type: ignore[valid-type, misc]  # made by a function
    """Judges the items of a rubric, and whether lines of an answer are events of a rubric."""

    def questions(self, task: str, record: ScorerInput) -> dict[str, JudgeRequest]:
        """Make the requests. Whether two events are the same is asked with a system message, and any reply is read."""
        requests = super().questions(task, record)
        for part, request in requests.items():
            if not part.startswith("item"):
                requests[part] = replace(
                    request,
                    parse=lambda reply: {"same": float(is_same(reply))},
                    system=record["texts"][2],
                )
        return requests
