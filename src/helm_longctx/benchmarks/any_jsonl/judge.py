"""any_jsonl's judge as HELM's annotator."""

from helm_longctx.benchmarks.any_jsonl.tasks import ANY_JSONL
from helm_longctx.judging.answer_judge import make_annotator

OwnRubricAnnotator = make_annotator(ANY_JSONL.task("rubric"))
