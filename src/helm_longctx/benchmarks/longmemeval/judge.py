"""LongMemEval's judge as HELM's annotator."""

from helm_longctx.benchmarks.longmemeval.tasks import LONGMEMEVAL
from helm_longctx.judging.answer_judge import make_annotator

LabelAnnotator = make_annotator(*LONGMEMEVAL.tasks)
