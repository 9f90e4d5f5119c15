"""LongBench-Write's judge as HELM's annotator."""

from helm_longctx.benchmarks.longbench_write.tasks import LONGBENCH_WRITE
from helm_longctx.judging.answer_judge import make_annotator

QualityAnnotator = make_annotator(*LONGBENCH_WRITE.tasks[:2])
