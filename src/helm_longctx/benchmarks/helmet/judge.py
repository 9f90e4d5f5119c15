"""HELMET's judges as HELM annotators. They run between the requests and the metric."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.helmet import citations
from helm_longctx.benchmarks.helmet.data.passages import all_documents
from helm_longctx.benchmarks.helmet.rubrics import RUBRICS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.helmet.verdicts import JUDGE
from helm_longctx.data.fetch import ensure
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.environment import require
from helm_longctx.helm.metric import scored_record
from helm_longctx.helm_api import AutoClient, RequestState, get_benchmark_output_path
from helm_longctx.judging import entailment
from helm_longctx.judging.answer_judge import AnswerAnnotator, ModelAnnotator
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.judging.keys.client import check_judge
from helm_longctx.tasks import DataRoot, InputError, ScorerInput
from helm_longctx.tasks.sample import Sample


class RubricAnnotator(AnswerAnnotator):
    """Judges answers and summaries with one or several language models, by HELMET's rubrics."""

    official = JUDGE

    def questions(self, task: str, record: ScorerInput) -> dict[str, JudgeRequest]:
        """Make the questions about an answer from the official script."""
        rubric = RUBRICS.get(task)
        if rubric is None:
            return {}
        if absent := [name for name in rubric.needs if name not in record]:
            raise InputError(
                f"there is no {' and no '.join(absent)}: get it with helm-longctx fetch"
            )
        return rubric.questions(_rubric_file(task, record), record)

    def digest(self, task: str, record: ScorerInput) -> str:
        """Return the digest of the rubric's templates."""
        return RUBRICS[task].digest(_rubric_file(task, record))


def _rubric_file(task: str, record: ScorerInput) -> Path:
    """Return the path of the official script: in the present data root, or where it was at the time of the run."""
    # A run may be judged again on another machine, where the path in its record does not exist.
    file = _data_root() / HELMET.task(task).judge_sources["rubric"].paths[0]
    return file if file.is_file() else Path(record["rubric"])


def _data_root() -> DataRoot:
    return DataRoot.find(get_benchmark_output_path())


class CitationAnnotator(ModelAnnotator):
    """Judges which cited documents support an answer.

    Args:
        judge: `auto` (the official NLI model if a GPU has room for it, else none), a HELM deployment, or an NLI model
            on the hub.
        auto_client: passed by HELM; used for a deployment.
        file_storage_path: passed by HELM; the folder in which verdicts are kept.
    """

    name = "citations"

    def __init__(
        self,
        judge: str,
        auto_client: AutoClient,
        file_storage_path: str,
    ):
        folder = Path(file_storage_path)
        super().__init__(
            "citations are not judged",
            lambda: entailment.find_entailment(judge, auto_client, folder),
        )

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Check that a deployment has its key and exists, and that the packages for an NLI model are installed."""
        if judge not in ("auto", "none"):
            require(
                "judges" if entailment.is_deployment(judge) else "citations",
                f"judge={judge!r}",
            )
        if credentials is None or judge == "none":
            return
        if judge != "auto" or entailment.gpu_has_room(entailment.TRUE_NLI_BYTES):
            ensure(
                [SENTENCE_MODEL],
                _data_root(),
                "helm-longctx fetch helmet_cite:length=8k",
            )
        if entailment.is_deployment(judge):
            check_judge(judge, credentials)

    def judge(
        self,
        state: RequestState,
        model: entailment.EntailmentJudge,
    ) -> dict[str, Any]:
        """Judge the citations of an answer."""
        record = scored_record(state, Sample.from_json(state.instance.extra_data))
        where = record["documents"]
        documents = all_documents(where["file"], where["item"], _data_root())
        # Documents at the end of a cut prompt are missing or incomplete, so their texts are searched for.
        if state.prompt_truncated:
            prompt = state.request.prompt
        else:
            prompt = None

        def is_shown(number: int) -> bool:
            return number < where["shown"] and (
                prompt is None or documents[number]["text"] in prompt
            )

        return citations.judge_record({**record, "docs": documents}, model, is_shown)
